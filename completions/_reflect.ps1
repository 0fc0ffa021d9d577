
using namespace System.Management.Automation
using namespace System.Management.Automation.Language

Register-ArgumentCompleter -Native -CommandName 'reflect' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)

    $commandElements = $commandAst.CommandElements
    $command = @(
        'reflect'
        for ($i = 1; $i -lt $commandElements.Count; $i++) {
            $element = $commandElements[$i]
            if ($element -isnot [StringConstantExpressionAst] -or
                $element.StringConstantType -ne [StringConstantType]::BareWord -or
                $element.Value.StartsWith('-') -or
                $element.Value -eq $wordToComplete) {
                break
        }
        $element.Value
    }) -join ';'

    $completions = @(switch ($command) {
        'reflect' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('-V', '-V ', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('--version', '--version', [CompletionResultType]::ParameterName, 'Print version')
            [CompletionResult]::new('draft', 'draft', [CompletionResultType]::ParameterValue, 'Write a draft, judge it, and revise it until it meets the criteria')
            [CompletionResult]::new('revise', 'revise', [CompletionResultType]::ParameterValue, 'Revise a text until it meets the criteria, or mend named errors')
            [CompletionResult]::new('correct', 'correct', [CompletionResultType]::ParameterValue, 'Revise a text until it meets the criteria, or mend named errors')
            [CompletionResult]::new('evaluate', 'evaluate', [CompletionResultType]::ParameterValue, 'Judge texts by criteria, without writing anything: a gate for CI')
            [CompletionResult]::new('critique', 'critique', [CompletionResultType]::ParameterValue, 'Judge texts by criteria, without writing anything: a gate for CI')
            [CompletionResult]::new('batch', 'batch', [CompletionResultType]::ParameterValue, 'Do many tasks, several at once: a task a line in, a row a task out, resumable')
            [CompletionResult]::new('history', 'history', [CompletionResultType]::ParameterValue, 'Look at earlier runs')
            [CompletionResult]::new('criteria', 'criteria', [CompletionResultType]::ParameterValue, 'List, show, check and create criteria')
            [CompletionResult]::new('models', 'models', [CompletionResultType]::ParameterValue, 'List and fetch models')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show or create the configuration')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print the completion script of a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print the manual page, or write all of them to a folder')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;draft' {
            [CompletionResult]::new('--prompt-file', '--prompt-file', [CompletionResultType]::ParameterName, 'Read the prompt from a file')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('--criteria', '--criteria', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Give the model this file as context; repeatable')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Give the model this file as context; repeatable')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'What is known already: message history, facts and procedures, as JSON')
            [CompletionResult]::new('--context-messages', '--context-messages', [CompletionResultType]::ParameterName, 'How many of the last messages of the history are used [default: 3]')
            [CompletionResult]::new('--evidence', '--evidence', [CompletionResultType]::ParameterName, 'Look for evidence in this file or folder of code or documents; repeatable')
            [CompletionResult]::new('--evidence-tokens', '--evidence-tokens', [CompletionResultType]::ParameterName, 'The most tokens of evidence that one search adds to a prompt [default: 2000]')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Instructions that hold for the whole run')
            [CompletionResult]::new('--system', '--system', [CompletionResultType]::ParameterName, 'Instructions that hold for the whole run')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--judge-model', '--judge-model', [CompletionResultType]::ParameterName, 'A different model to judge the drafts')
            [CompletionResult]::new('--stronger-model', '--stronger-model', [CompletionResultType]::ParameterName, 'A model that takes over where the first makes no progress any more')
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`')
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'Randomness, 0 to 2; 0 always takes the likeliest token')
            [CompletionResult]::new('--top-p', '--top-p', [CompletionResultType]::ParameterName, 'Choose among the likeliest tokens that together have this probability')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Makes answers repeatable where the server can')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one answer')
            [CompletionResult]::new('--num-ctx', '--num-ctx', [CompletionResultType]::ParameterName, 'The context window to ask Ollama for, in tokens')
            [CompletionResult]::new('--keep-alive', '--keep-alive', [CompletionResultType]::ParameterName, 'How long Ollama keeps the model loaded')
            [CompletionResult]::new('--think', '--think', [CompletionResultType]::ParameterName, 'How much the model reasons first')
            [CompletionResult]::new('--prompt-dir', '--prompt-dir', [CompletionResultType]::ParameterName, 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with')
            [CompletionResult]::new('--timeout-connect', '--timeout-connect', [CompletionResultType]::ParameterName, 'The most time until a connection stands [default: 10s]')
            [CompletionResult]::new('--timeout-first-token', '--timeout-first-token', [CompletionResultType]::ParameterName, 'The most time until the first piece of an answer [default: 10m]')
            [CompletionResult]::new('--timeout-idle', '--timeout-idle', [CompletionResultType]::ParameterName, 'The most time between two pieces of an answer [default: 2m]')
            [CompletionResult]::new('--timeout-total', '--timeout-total', [CompletionResultType]::ParameterName, 'The most time of one call, retries included [default: 30m]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'How often a call is made again after a fault that may pass [default: 3]')
            [CompletionResult]::new('--tool', '--tool', [CompletionResultType]::ParameterName, 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable')
            [CompletionResult]::new('--judge-mode', '--judge-mode', [CompletionResultType]::ParameterName, 'One call for all criteria, or one for each [default: joint]')
            [CompletionResult]::new('--judge-samples', '--judge-samples', [CompletionResultType]::ParameterName, 'Ask so often, and take the median [default: 1]')
            [CompletionResult]::new('--judge-score', '--judge-score', [CompletionResultType]::ParameterName, 'The score: as the judge writes it, or as its probabilities say [default: verdict]')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'The most drafts to make, the first included [default: 3]')
            [CompletionResult]::new('--max-iterations', '--max-iterations', [CompletionResultType]::ParameterName, 'The most drafts to make, the first included [default: 3]')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]')
            [CompletionResult]::new('--min-iterations', '--min-iterations', [CompletionResultType]::ParameterName, 'The fewest drafts to make, the first included [default: 1]')
            [CompletionResult]::new('--plateau-iterations', '--plateau-iterations', [CompletionResultType]::ParameterName, 'Stop after so many revisions in a row that are no gain [default: 2]')
            [CompletionResult]::new('--improvement-threshold', '--improvement-threshold', [CompletionResultType]::ParameterName, 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]')
            [CompletionResult]::new('--detect-oscillation', '--detect-oscillation', [CompletionResultType]::ParameterName, 'Whether to stop where scores go up and down without a trend [default: true]')
            [CompletionResult]::new('--grey-zone', '--grey-zone', [CompletionResultType]::ParameterName, 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]')
            [CompletionResult]::new('--adapt', '--adapt', [CompletionResultType]::ParameterName, 'Whether to try another way of revising before a run without progress is given up [default: true]')
            [CompletionResult]::new('--quality-drop-threshold', '--quality-drop-threshold', [CompletionResultType]::ParameterName, 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]')
            [CompletionResult]::new('--reflect-on-error', '--reflect-on-error', [CompletionResultType]::ParameterName, 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]')
            [CompletionResult]::new('--reflect-on-tools', '--reflect-on-tools', [CompletionResultType]::ParameterName, 'Reflect on the results of these tools only, by the names of their programs, with commas; '''' for none')
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Whether to write the first draft in steps, an outline and then section by section [default: false]')
            [CompletionResult]::new('--reflection-interval', '--reflection-interval', [CompletionResultType]::ParameterName, 'With --steps, reflect after every so many sections; 0 for never [default: 3]')
            [CompletionResult]::new('--strategy', '--strategy', [CompletionResultType]::ParameterName, 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)')
            [CompletionResult]::new('--candidates', '--candidates', [CompletionResultType]::ParameterName, 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]')
            [CompletionResult]::new('--max-revision-tokens', '--max-revision-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one reply that revises')
            [CompletionResult]::new('--include-prior-versions', '--include-prior-versions', [CompletionResultType]::ParameterName, 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]')
            [CompletionResult]::new('--include-reflection-history', '--include-reflection-history', [CompletionResultType]::ParameterName, 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]')
            [CompletionResult]::new('--select', '--select', [CompletionResultType]::ParameterName, 'Which draft is the answer; the one with the highest score by default')
            [CompletionResult]::new('--on-failure', '--on-failure', [CompletionResultType]::ParameterName, 'Which draft is the answer where the criteria are not met; by default what --select says')
            [CompletionResult]::new('--max-total-tokens', '--max-total-tokens', [CompletionResultType]::ParameterName, 'Stop once so many tokens are used')
            [CompletionResult]::new('--max-cost', '--max-cost', [CompletionResultType]::ParameterName, 'Stop once the run has cost so much, by the prices in your configuration')
            [CompletionResult]::new('--max-time', '--max-time', [CompletionResultType]::ParameterName, 'Stop after this time, for example 90s or 10m')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'What to print')
            [CompletionResult]::new('--report', '--report', [CompletionResultType]::ParameterName, 'Write the critique report to a file: JSON if its name ends in .json, else Markdown')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--ignore-stdin', '--ignore-stdin', [CompletionResultType]::ParameterName, 'Do not read standard input even if it is piped')
            [CompletionResult]::new('--offline', '--offline', [CompletionResultType]::ParameterName, 'Fetch nothing: use only models that are on this machine')
            [CompletionResult]::new('--allow-exec', '--allow-exec', [CompletionResultType]::ParameterName, 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run')
            [CompletionResult]::new('--judge-probe', '--judge-probe', [CompletionResultType]::ParameterName, 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad')
            [CompletionResult]::new('--judge-always', '--judge-always', [CompletionResultType]::ParameterName, 'Ask the judge even where a required criterion is not met')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Judge anew what was judged before')
            [CompletionResult]::new('--no-early-stop', '--no-early-stop', [CompletionResultType]::ParameterName, 'Let every draft be written to its end, even where it can no longer meet a hard check')
            [CompletionResult]::new('--exit-zero', '--exit-zero', [CompletionResultType]::ParameterName, 'Exit with 0 also where the criteria are not met or a limit was reached')
            [CompletionResult]::new('--stream-deltas', '--stream-deltas', [CompletionResultType]::ParameterName, 'With `--format ndjson`, print the pieces of the answers as they come')
            [CompletionResult]::new('--no-log', '--no-log', [CompletionResultType]::ParameterName, 'Keep no record of the run')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;revise' {
            [CompletionResult]::new('--prompt', '--prompt', [CompletionResultType]::ParameterName, 'What the text was written for: the models see it')
            [CompletionResult]::new('--prompt-file', '--prompt-file', [CompletionResultType]::ParameterName, 'Read from a file what the text was written for')
            [CompletionResult]::new('--errors', '--errors', [CompletionResultType]::ParameterName, 'Only mend what stands in this file, in one revision that nobody judges: one issue a line, or JSON as evaluators print it; `-` for standard input')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('--criteria', '--criteria', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Give the model this file as context; repeatable')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Give the model this file as context; repeatable')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'What is known already: message history, facts and procedures, as JSON')
            [CompletionResult]::new('--context-messages', '--context-messages', [CompletionResultType]::ParameterName, 'How many of the last messages of the history are used [default: 3]')
            [CompletionResult]::new('--evidence', '--evidence', [CompletionResultType]::ParameterName, 'Look for evidence in this file or folder of code or documents; repeatable')
            [CompletionResult]::new('--evidence-tokens', '--evidence-tokens', [CompletionResultType]::ParameterName, 'The most tokens of evidence that one search adds to a prompt [default: 2000]')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Instructions that hold for the whole run')
            [CompletionResult]::new('--system', '--system', [CompletionResultType]::ParameterName, 'Instructions that hold for the whole run')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--judge-model', '--judge-model', [CompletionResultType]::ParameterName, 'A different model to judge the drafts')
            [CompletionResult]::new('--stronger-model', '--stronger-model', [CompletionResultType]::ParameterName, 'A model that takes over where the first makes no progress any more')
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`')
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'Randomness, 0 to 2; 0 always takes the likeliest token')
            [CompletionResult]::new('--top-p', '--top-p', [CompletionResultType]::ParameterName, 'Choose among the likeliest tokens that together have this probability')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Makes answers repeatable where the server can')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one answer')
            [CompletionResult]::new('--num-ctx', '--num-ctx', [CompletionResultType]::ParameterName, 'The context window to ask Ollama for, in tokens')
            [CompletionResult]::new('--keep-alive', '--keep-alive', [CompletionResultType]::ParameterName, 'How long Ollama keeps the model loaded')
            [CompletionResult]::new('--think', '--think', [CompletionResultType]::ParameterName, 'How much the model reasons first')
            [CompletionResult]::new('--prompt-dir', '--prompt-dir', [CompletionResultType]::ParameterName, 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with')
            [CompletionResult]::new('--timeout-connect', '--timeout-connect', [CompletionResultType]::ParameterName, 'The most time until a connection stands [default: 10s]')
            [CompletionResult]::new('--timeout-first-token', '--timeout-first-token', [CompletionResultType]::ParameterName, 'The most time until the first piece of an answer [default: 10m]')
            [CompletionResult]::new('--timeout-idle', '--timeout-idle', [CompletionResultType]::ParameterName, 'The most time between two pieces of an answer [default: 2m]')
            [CompletionResult]::new('--timeout-total', '--timeout-total', [CompletionResultType]::ParameterName, 'The most time of one call, retries included [default: 30m]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'How often a call is made again after a fault that may pass [default: 3]')
            [CompletionResult]::new('--tool', '--tool', [CompletionResultType]::ParameterName, 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable')
            [CompletionResult]::new('--judge-mode', '--judge-mode', [CompletionResultType]::ParameterName, 'One call for all criteria, or one for each [default: joint]')
            [CompletionResult]::new('--judge-samples', '--judge-samples', [CompletionResultType]::ParameterName, 'Ask so often, and take the median [default: 1]')
            [CompletionResult]::new('--judge-score', '--judge-score', [CompletionResultType]::ParameterName, 'The score: as the judge writes it, or as its probabilities say [default: verdict]')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'The most drafts to make, the first included [default: 3]')
            [CompletionResult]::new('--max-iterations', '--max-iterations', [CompletionResultType]::ParameterName, 'The most drafts to make, the first included [default: 3]')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]')
            [CompletionResult]::new('--min-iterations', '--min-iterations', [CompletionResultType]::ParameterName, 'The fewest drafts to make, the first included [default: 1]')
            [CompletionResult]::new('--plateau-iterations', '--plateau-iterations', [CompletionResultType]::ParameterName, 'Stop after so many revisions in a row that are no gain [default: 2]')
            [CompletionResult]::new('--improvement-threshold', '--improvement-threshold', [CompletionResultType]::ParameterName, 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]')
            [CompletionResult]::new('--detect-oscillation', '--detect-oscillation', [CompletionResultType]::ParameterName, 'Whether to stop where scores go up and down without a trend [default: true]')
            [CompletionResult]::new('--grey-zone', '--grey-zone', [CompletionResultType]::ParameterName, 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]')
            [CompletionResult]::new('--adapt', '--adapt', [CompletionResultType]::ParameterName, 'Whether to try another way of revising before a run without progress is given up [default: true]')
            [CompletionResult]::new('--quality-drop-threshold', '--quality-drop-threshold', [CompletionResultType]::ParameterName, 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]')
            [CompletionResult]::new('--reflect-on-error', '--reflect-on-error', [CompletionResultType]::ParameterName, 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]')
            [CompletionResult]::new('--reflect-on-tools', '--reflect-on-tools', [CompletionResultType]::ParameterName, 'Reflect on the results of these tools only, by the names of their programs, with commas; '''' for none')
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Whether to write the first draft in steps, an outline and then section by section [default: false]')
            [CompletionResult]::new('--reflection-interval', '--reflection-interval', [CompletionResultType]::ParameterName, 'With --steps, reflect after every so many sections; 0 for never [default: 3]')
            [CompletionResult]::new('--strategy', '--strategy', [CompletionResultType]::ParameterName, 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)')
            [CompletionResult]::new('--candidates', '--candidates', [CompletionResultType]::ParameterName, 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]')
            [CompletionResult]::new('--max-revision-tokens', '--max-revision-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one reply that revises')
            [CompletionResult]::new('--include-prior-versions', '--include-prior-versions', [CompletionResultType]::ParameterName, 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]')
            [CompletionResult]::new('--include-reflection-history', '--include-reflection-history', [CompletionResultType]::ParameterName, 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]')
            [CompletionResult]::new('--select', '--select', [CompletionResultType]::ParameterName, 'Which draft is the answer; the one with the highest score by default')
            [CompletionResult]::new('--on-failure', '--on-failure', [CompletionResultType]::ParameterName, 'Which draft is the answer where the criteria are not met; by default what --select says')
            [CompletionResult]::new('--max-total-tokens', '--max-total-tokens', [CompletionResultType]::ParameterName, 'Stop once so many tokens are used')
            [CompletionResult]::new('--max-cost', '--max-cost', [CompletionResultType]::ParameterName, 'Stop once the run has cost so much, by the prices in your configuration')
            [CompletionResult]::new('--max-time', '--max-time', [CompletionResultType]::ParameterName, 'Stop after this time, for example 90s or 10m')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'What to print')
            [CompletionResult]::new('--report', '--report', [CompletionResultType]::ParameterName, 'Write the critique report to a file: JSON if its name ends in .json, else Markdown')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--offline', '--offline', [CompletionResultType]::ParameterName, 'Fetch nothing: use only models that are on this machine')
            [CompletionResult]::new('--allow-exec', '--allow-exec', [CompletionResultType]::ParameterName, 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run')
            [CompletionResult]::new('--judge-probe', '--judge-probe', [CompletionResultType]::ParameterName, 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad')
            [CompletionResult]::new('--judge-always', '--judge-always', [CompletionResultType]::ParameterName, 'Ask the judge even where a required criterion is not met')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Judge anew what was judged before')
            [CompletionResult]::new('--no-early-stop', '--no-early-stop', [CompletionResultType]::ParameterName, 'Let every draft be written to its end, even where it can no longer meet a hard check')
            [CompletionResult]::new('--exit-zero', '--exit-zero', [CompletionResultType]::ParameterName, 'Exit with 0 also where the criteria are not met or a limit was reached')
            [CompletionResult]::new('--stream-deltas', '--stream-deltas', [CompletionResultType]::ParameterName, 'With `--format ndjson`, print the pieces of the answers as they come')
            [CompletionResult]::new('--no-log', '--no-log', [CompletionResultType]::ParameterName, 'Keep no record of the run')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;correct' {
            [CompletionResult]::new('--prompt', '--prompt', [CompletionResultType]::ParameterName, 'What the text was written for: the models see it')
            [CompletionResult]::new('--prompt-file', '--prompt-file', [CompletionResultType]::ParameterName, 'Read from a file what the text was written for')
            [CompletionResult]::new('--errors', '--errors', [CompletionResultType]::ParameterName, 'Only mend what stands in this file, in one revision that nobody judges: one issue a line, or JSON as evaluators print it; `-` for standard input')
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('--criteria', '--criteria', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Give the model this file as context; repeatable')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Give the model this file as context; repeatable')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'What is known already: message history, facts and procedures, as JSON')
            [CompletionResult]::new('--context-messages', '--context-messages', [CompletionResultType]::ParameterName, 'How many of the last messages of the history are used [default: 3]')
            [CompletionResult]::new('--evidence', '--evidence', [CompletionResultType]::ParameterName, 'Look for evidence in this file or folder of code or documents; repeatable')
            [CompletionResult]::new('--evidence-tokens', '--evidence-tokens', [CompletionResultType]::ParameterName, 'The most tokens of evidence that one search adds to a prompt [default: 2000]')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Instructions that hold for the whole run')
            [CompletionResult]::new('--system', '--system', [CompletionResultType]::ParameterName, 'Instructions that hold for the whole run')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--judge-model', '--judge-model', [CompletionResultType]::ParameterName, 'A different model to judge the drafts')
            [CompletionResult]::new('--stronger-model', '--stronger-model', [CompletionResultType]::ParameterName, 'A model that takes over where the first makes no progress any more')
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`')
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'Randomness, 0 to 2; 0 always takes the likeliest token')
            [CompletionResult]::new('--top-p', '--top-p', [CompletionResultType]::ParameterName, 'Choose among the likeliest tokens that together have this probability')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Makes answers repeatable where the server can')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one answer')
            [CompletionResult]::new('--num-ctx', '--num-ctx', [CompletionResultType]::ParameterName, 'The context window to ask Ollama for, in tokens')
            [CompletionResult]::new('--keep-alive', '--keep-alive', [CompletionResultType]::ParameterName, 'How long Ollama keeps the model loaded')
            [CompletionResult]::new('--think', '--think', [CompletionResultType]::ParameterName, 'How much the model reasons first')
            [CompletionResult]::new('--prompt-dir', '--prompt-dir', [CompletionResultType]::ParameterName, 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with')
            [CompletionResult]::new('--timeout-connect', '--timeout-connect', [CompletionResultType]::ParameterName, 'The most time until a connection stands [default: 10s]')
            [CompletionResult]::new('--timeout-first-token', '--timeout-first-token', [CompletionResultType]::ParameterName, 'The most time until the first piece of an answer [default: 10m]')
            [CompletionResult]::new('--timeout-idle', '--timeout-idle', [CompletionResultType]::ParameterName, 'The most time between two pieces of an answer [default: 2m]')
            [CompletionResult]::new('--timeout-total', '--timeout-total', [CompletionResultType]::ParameterName, 'The most time of one call, retries included [default: 30m]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'How often a call is made again after a fault that may pass [default: 3]')
            [CompletionResult]::new('--tool', '--tool', [CompletionResultType]::ParameterName, 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable')
            [CompletionResult]::new('--judge-mode', '--judge-mode', [CompletionResultType]::ParameterName, 'One call for all criteria, or one for each [default: joint]')
            [CompletionResult]::new('--judge-samples', '--judge-samples', [CompletionResultType]::ParameterName, 'Ask so often, and take the median [default: 1]')
            [CompletionResult]::new('--judge-score', '--judge-score', [CompletionResultType]::ParameterName, 'The score: as the judge writes it, or as its probabilities say [default: verdict]')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'The most drafts to make, the first included [default: 3]')
            [CompletionResult]::new('--max-iterations', '--max-iterations', [CompletionResultType]::ParameterName, 'The most drafts to make, the first included [default: 3]')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]')
            [CompletionResult]::new('--min-iterations', '--min-iterations', [CompletionResultType]::ParameterName, 'The fewest drafts to make, the first included [default: 1]')
            [CompletionResult]::new('--plateau-iterations', '--plateau-iterations', [CompletionResultType]::ParameterName, 'Stop after so many revisions in a row that are no gain [default: 2]')
            [CompletionResult]::new('--improvement-threshold', '--improvement-threshold', [CompletionResultType]::ParameterName, 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]')
            [CompletionResult]::new('--detect-oscillation', '--detect-oscillation', [CompletionResultType]::ParameterName, 'Whether to stop where scores go up and down without a trend [default: true]')
            [CompletionResult]::new('--grey-zone', '--grey-zone', [CompletionResultType]::ParameterName, 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]')
            [CompletionResult]::new('--adapt', '--adapt', [CompletionResultType]::ParameterName, 'Whether to try another way of revising before a run without progress is given up [default: true]')
            [CompletionResult]::new('--quality-drop-threshold', '--quality-drop-threshold', [CompletionResultType]::ParameterName, 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]')
            [CompletionResult]::new('--reflect-on-error', '--reflect-on-error', [CompletionResultType]::ParameterName, 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]')
            [CompletionResult]::new('--reflect-on-tools', '--reflect-on-tools', [CompletionResultType]::ParameterName, 'Reflect on the results of these tools only, by the names of their programs, with commas; '''' for none')
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Whether to write the first draft in steps, an outline and then section by section [default: false]')
            [CompletionResult]::new('--reflection-interval', '--reflection-interval', [CompletionResultType]::ParameterName, 'With --steps, reflect after every so many sections; 0 for never [default: 3]')
            [CompletionResult]::new('--strategy', '--strategy', [CompletionResultType]::ParameterName, 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)')
            [CompletionResult]::new('--candidates', '--candidates', [CompletionResultType]::ParameterName, 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]')
            [CompletionResult]::new('--max-revision-tokens', '--max-revision-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one reply that revises')
            [CompletionResult]::new('--include-prior-versions', '--include-prior-versions', [CompletionResultType]::ParameterName, 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]')
            [CompletionResult]::new('--include-reflection-history', '--include-reflection-history', [CompletionResultType]::ParameterName, 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]')
            [CompletionResult]::new('--select', '--select', [CompletionResultType]::ParameterName, 'Which draft is the answer; the one with the highest score by default')
            [CompletionResult]::new('--on-failure', '--on-failure', [CompletionResultType]::ParameterName, 'Which draft is the answer where the criteria are not met; by default what --select says')
            [CompletionResult]::new('--max-total-tokens', '--max-total-tokens', [CompletionResultType]::ParameterName, 'Stop once so many tokens are used')
            [CompletionResult]::new('--max-cost', '--max-cost', [CompletionResultType]::ParameterName, 'Stop once the run has cost so much, by the prices in your configuration')
            [CompletionResult]::new('--max-time', '--max-time', [CompletionResultType]::ParameterName, 'Stop after this time, for example 90s or 10m')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'What to print')
            [CompletionResult]::new('--report', '--report', [CompletionResultType]::ParameterName, 'Write the critique report to a file: JSON if its name ends in .json, else Markdown')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--offline', '--offline', [CompletionResultType]::ParameterName, 'Fetch nothing: use only models that are on this machine')
            [CompletionResult]::new('--allow-exec', '--allow-exec', [CompletionResultType]::ParameterName, 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run')
            [CompletionResult]::new('--judge-probe', '--judge-probe', [CompletionResultType]::ParameterName, 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad')
            [CompletionResult]::new('--judge-always', '--judge-always', [CompletionResultType]::ParameterName, 'Ask the judge even where a required criterion is not met')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Judge anew what was judged before')
            [CompletionResult]::new('--no-early-stop', '--no-early-stop', [CompletionResultType]::ParameterName, 'Let every draft be written to its end, even where it can no longer meet a hard check')
            [CompletionResult]::new('--exit-zero', '--exit-zero', [CompletionResultType]::ParameterName, 'Exit with 0 also where the criteria are not met or a limit was reached')
            [CompletionResult]::new('--stream-deltas', '--stream-deltas', [CompletionResultType]::ParameterName, 'With `--format ndjson`, print the pieces of the answers as they come')
            [CompletionResult]::new('--no-log', '--no-log', [CompletionResultType]::ParameterName, 'Keep no record of the run')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;evaluate' {
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('--criteria', '--criteria', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('--evaluator', '--evaluator', [CompletionResultType]::ParameterName, 'A single evaluator in a file of its own (YAML, JSON or TOML; `type: schema`, `llm` or `custom`): prints its verdict')
            [CompletionResult]::new('--input-format', '--input-format', [CompletionResultType]::ParameterName, 'What the texts are: with `json`, a JSON text is judged by what it says')
            [CompletionResult]::new('--prompt', '--prompt', [CompletionResultType]::ParameterName, 'What the texts were written for: the judge sees it')
            [CompletionResult]::new('--prompt-file', '--prompt-file', [CompletionResultType]::ParameterName, 'Read from a file what the texts were written for')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Show the judge this file as context; repeatable')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Show the judge this file as context; repeatable')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'What is known already: message history, facts and procedures, as JSON')
            [CompletionResult]::new('--context-messages', '--context-messages', [CompletionResultType]::ParameterName, 'How many of the last messages of the history are used [default: 3]')
            [CompletionResult]::new('--evidence', '--evidence', [CompletionResultType]::ParameterName, 'Look for evidence in this file or folder of code or documents; repeatable')
            [CompletionResult]::new('--evidence-tokens', '--evidence-tokens', [CompletionResultType]::ParameterName, 'The most tokens of evidence that one search adds to a prompt [default: 2000]')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Instructions that hold for all calls')
            [CompletionResult]::new('--system', '--system', [CompletionResultType]::ParameterName, 'Instructions that hold for all calls')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--judge-model', '--judge-model', [CompletionResultType]::ParameterName, 'A different model to judge the drafts')
            [CompletionResult]::new('--stronger-model', '--stronger-model', [CompletionResultType]::ParameterName, 'A model that takes over where the first makes no progress any more')
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`')
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'Randomness, 0 to 2; 0 always takes the likeliest token')
            [CompletionResult]::new('--top-p', '--top-p', [CompletionResultType]::ParameterName, 'Choose among the likeliest tokens that together have this probability')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Makes answers repeatable where the server can')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one answer')
            [CompletionResult]::new('--num-ctx', '--num-ctx', [CompletionResultType]::ParameterName, 'The context window to ask Ollama for, in tokens')
            [CompletionResult]::new('--keep-alive', '--keep-alive', [CompletionResultType]::ParameterName, 'How long Ollama keeps the model loaded')
            [CompletionResult]::new('--think', '--think', [CompletionResultType]::ParameterName, 'How much the model reasons first')
            [CompletionResult]::new('--prompt-dir', '--prompt-dir', [CompletionResultType]::ParameterName, 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with')
            [CompletionResult]::new('--timeout-connect', '--timeout-connect', [CompletionResultType]::ParameterName, 'The most time until a connection stands [default: 10s]')
            [CompletionResult]::new('--timeout-first-token', '--timeout-first-token', [CompletionResultType]::ParameterName, 'The most time until the first piece of an answer [default: 10m]')
            [CompletionResult]::new('--timeout-idle', '--timeout-idle', [CompletionResultType]::ParameterName, 'The most time between two pieces of an answer [default: 2m]')
            [CompletionResult]::new('--timeout-total', '--timeout-total', [CompletionResultType]::ParameterName, 'The most time of one call, retries included [default: 30m]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'How often a call is made again after a fault that may pass [default: 3]')
            [CompletionResult]::new('--judge-mode', '--judge-mode', [CompletionResultType]::ParameterName, 'One call for all criteria, or one for each [default: joint]')
            [CompletionResult]::new('--judge-samples', '--judge-samples', [CompletionResultType]::ParameterName, 'Ask so often, and take the median [default: 1]')
            [CompletionResult]::new('--judge-score', '--judge-score', [CompletionResultType]::ParameterName, 'The score: as the judge writes it, or as its probabilities say [default: verdict]')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'What to print')
            [CompletionResult]::new('--report', '--report', [CompletionResultType]::ParameterName, 'Write the critique report to a file: JSON if its name ends in .json, else Markdown')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--allow-exec', '--allow-exec', [CompletionResultType]::ParameterName, 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder')
            [CompletionResult]::new('--offline', '--offline', [CompletionResultType]::ParameterName, 'Fetch nothing: use only models that are on this machine')
            [CompletionResult]::new('--judge-probe', '--judge-probe', [CompletionResultType]::ParameterName, 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad')
            [CompletionResult]::new('--judge-always', '--judge-always', [CompletionResultType]::ParameterName, 'Ask the judge even where a required criterion is not met')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Judge anew what was judged before')
            [CompletionResult]::new('--exit-zero', '--exit-zero', [CompletionResultType]::ParameterName, 'Exit with 0 also where the criteria are not met or a limit was reached')
            [CompletionResult]::new('--stream-deltas', '--stream-deltas', [CompletionResultType]::ParameterName, 'With `--format ndjson`, print the pieces of the answers as they come')
            [CompletionResult]::new('--no-log', '--no-log', [CompletionResultType]::ParameterName, 'Keep no record of the run')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;critique' {
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('--criteria', '--criteria', [CompletionResultType]::ParameterName, 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning')
            [CompletionResult]::new('--evaluator', '--evaluator', [CompletionResultType]::ParameterName, 'A single evaluator in a file of its own (YAML, JSON or TOML; `type: schema`, `llm` or `custom`): prints its verdict')
            [CompletionResult]::new('--input-format', '--input-format', [CompletionResultType]::ParameterName, 'What the texts are: with `json`, a JSON text is judged by what it says')
            [CompletionResult]::new('--prompt', '--prompt', [CompletionResultType]::ParameterName, 'What the texts were written for: the judge sees it')
            [CompletionResult]::new('--prompt-file', '--prompt-file', [CompletionResultType]::ParameterName, 'Read from a file what the texts were written for')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Show the judge this file as context; repeatable')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Show the judge this file as context; repeatable')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'What is known already: message history, facts and procedures, as JSON')
            [CompletionResult]::new('--context-messages', '--context-messages', [CompletionResultType]::ParameterName, 'How many of the last messages of the history are used [default: 3]')
            [CompletionResult]::new('--evidence', '--evidence', [CompletionResultType]::ParameterName, 'Look for evidence in this file or folder of code or documents; repeatable')
            [CompletionResult]::new('--evidence-tokens', '--evidence-tokens', [CompletionResultType]::ParameterName, 'The most tokens of evidence that one search adds to a prompt [default: 2000]')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Instructions that hold for all calls')
            [CompletionResult]::new('--system', '--system', [CompletionResultType]::ParameterName, 'Instructions that hold for all calls')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--judge-model', '--judge-model', [CompletionResultType]::ParameterName, 'A different model to judge the drafts')
            [CompletionResult]::new('--stronger-model', '--stronger-model', [CompletionResultType]::ParameterName, 'A model that takes over where the first makes no progress any more')
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`')
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'Randomness, 0 to 2; 0 always takes the likeliest token')
            [CompletionResult]::new('--top-p', '--top-p', [CompletionResultType]::ParameterName, 'Choose among the likeliest tokens that together have this probability')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Makes answers repeatable where the server can')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one answer')
            [CompletionResult]::new('--num-ctx', '--num-ctx', [CompletionResultType]::ParameterName, 'The context window to ask Ollama for, in tokens')
            [CompletionResult]::new('--keep-alive', '--keep-alive', [CompletionResultType]::ParameterName, 'How long Ollama keeps the model loaded')
            [CompletionResult]::new('--think', '--think', [CompletionResultType]::ParameterName, 'How much the model reasons first')
            [CompletionResult]::new('--prompt-dir', '--prompt-dir', [CompletionResultType]::ParameterName, 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with')
            [CompletionResult]::new('--timeout-connect', '--timeout-connect', [CompletionResultType]::ParameterName, 'The most time until a connection stands [default: 10s]')
            [CompletionResult]::new('--timeout-first-token', '--timeout-first-token', [CompletionResultType]::ParameterName, 'The most time until the first piece of an answer [default: 10m]')
            [CompletionResult]::new('--timeout-idle', '--timeout-idle', [CompletionResultType]::ParameterName, 'The most time between two pieces of an answer [default: 2m]')
            [CompletionResult]::new('--timeout-total', '--timeout-total', [CompletionResultType]::ParameterName, 'The most time of one call, retries included [default: 30m]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'How often a call is made again after a fault that may pass [default: 3]')
            [CompletionResult]::new('--judge-mode', '--judge-mode', [CompletionResultType]::ParameterName, 'One call for all criteria, or one for each [default: joint]')
            [CompletionResult]::new('--judge-samples', '--judge-samples', [CompletionResultType]::ParameterName, 'Ask so often, and take the median [default: 1]')
            [CompletionResult]::new('--judge-score', '--judge-score', [CompletionResultType]::ParameterName, 'The score: as the judge writes it, or as its probabilities say [default: verdict]')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Write the answer to a file instead of standard output')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'What to print')
            [CompletionResult]::new('--report', '--report', [CompletionResultType]::ParameterName, 'Write the critique report to a file: JSON if its name ends in .json, else Markdown')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--allow-exec', '--allow-exec', [CompletionResultType]::ParameterName, 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder')
            [CompletionResult]::new('--offline', '--offline', [CompletionResultType]::ParameterName, 'Fetch nothing: use only models that are on this machine')
            [CompletionResult]::new('--judge-probe', '--judge-probe', [CompletionResultType]::ParameterName, 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad')
            [CompletionResult]::new('--judge-always', '--judge-always', [CompletionResultType]::ParameterName, 'Ask the judge even where a required criterion is not met')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Judge anew what was judged before')
            [CompletionResult]::new('--exit-zero', '--exit-zero', [CompletionResultType]::ParameterName, 'Exit with 0 also where the criteria are not met or a limit was reached')
            [CompletionResult]::new('--stream-deltas', '--stream-deltas', [CompletionResultType]::ParameterName, 'With `--format ndjson`, print the pieces of the answers as they come')
            [CompletionResult]::new('--no-log', '--no-log', [CompletionResultType]::ParameterName, 'Keep no record of the run')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;batch' {
            [CompletionResult]::new('-c', '-c', [CompletionResultType]::ParameterName, 'The criteria for tasks that name none: a file, or one of the built-in sets')
            [CompletionResult]::new('--criteria', '--criteria', [CompletionResultType]::ParameterName, 'The criteria for tasks that name none: a file, or one of the built-in sets')
            [CompletionResult]::new('--prompt', '--prompt', [CompletionResultType]::ParameterName, 'What prompts are made of, as ''Write about {{ topic }}''; filled in with `vars` and other columns')
            [CompletionResult]::new('--input-format', '--input-format', [CompletionResultType]::ParameterName, 'How tasks are written down; by the name of the file if nothing is said')
            [CompletionResult]::new('--shard', '--shard', [CompletionResultType]::ParameterName, 'Do only part I of N (I from 0): every N-th task; for arrays of jobs')
            [CompletionResult]::new('-f', '-f', [CompletionResultType]::ParameterName, 'Give the models this file as context of every task; repeatable')
            [CompletionResult]::new('--file', '--file', [CompletionResultType]::ParameterName, 'Give the models this file as context of every task; repeatable')
            [CompletionResult]::new('--context', '--context', [CompletionResultType]::ParameterName, 'What is known already: message history, facts and procedures, as JSON')
            [CompletionResult]::new('--context-messages', '--context-messages', [CompletionResultType]::ParameterName, 'How many of the last messages of the history are used [default: 3]')
            [CompletionResult]::new('--evidence', '--evidence', [CompletionResultType]::ParameterName, 'Look for evidence in this file or folder of code or documents; repeatable')
            [CompletionResult]::new('--evidence-tokens', '--evidence-tokens', [CompletionResultType]::ParameterName, 'The most tokens of evidence that one search adds to a prompt [default: 2000]')
            [CompletionResult]::new('-s', '-s', [CompletionResultType]::ParameterName, 'Instructions that hold for all tasks')
            [CompletionResult]::new('--system', '--system', [CompletionResultType]::ParameterName, 'Instructions that hold for all tasks')
            [CompletionResult]::new('-j', '-j', [CompletionResultType]::ParameterName, 'How many tasks at once; `auto`: as many as the server takes without becoming slow')
            [CompletionResult]::new('--concurrency', '--concurrency', [CompletionResultType]::ParameterName, 'How many tasks at once; `auto`: as many as the server takes without becoming slow')
            [CompletionResult]::new('--requests-per-minute', '--requests-per-minute', [CompletionResultType]::ParameterName, 'The most requests a minute')
            [CompletionResult]::new('--tokens-per-minute', '--tokens-per-minute', [CompletionResultType]::ParameterName, 'The most tokens a minute, prompts and answers together')
            [CompletionResult]::new('-o', '-o', [CompletionResultType]::ParameterName, 'Add the rows to this file, instead of writing them to standard output')
            [CompletionResult]::new('--output', '--output', [CompletionResultType]::ParameterName, 'Add the rows to this file, instead of writing them to standard output')
            [CompletionResult]::new('--tool', '--tool', [CompletionResultType]::ParameterName, 'Show the writer what this program says, as `reflect draft` does; repeatable')
            [CompletionResult]::new('-m', '-m', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--model', '--model', [CompletionResultType]::ParameterName, 'The model, as MODEL or PROVIDER:MODEL')
            [CompletionResult]::new('--judge-model', '--judge-model', [CompletionResultType]::ParameterName, 'A different model to judge the drafts')
            [CompletionResult]::new('--stronger-model', '--stronger-model', [CompletionResultType]::ParameterName, 'A model that takes over where the first makes no progress any more')
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`')
            [CompletionResult]::new('--temperature', '--temperature', [CompletionResultType]::ParameterName, 'Randomness, 0 to 2; 0 always takes the likeliest token')
            [CompletionResult]::new('--top-p', '--top-p', [CompletionResultType]::ParameterName, 'Choose among the likeliest tokens that together have this probability')
            [CompletionResult]::new('--seed', '--seed', [CompletionResultType]::ParameterName, 'Makes answers repeatable where the server can')
            [CompletionResult]::new('--max-tokens', '--max-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one answer')
            [CompletionResult]::new('--num-ctx', '--num-ctx', [CompletionResultType]::ParameterName, 'The context window to ask Ollama for, in tokens')
            [CompletionResult]::new('--keep-alive', '--keep-alive', [CompletionResultType]::ParameterName, 'How long Ollama keeps the model loaded')
            [CompletionResult]::new('--think', '--think', [CompletionResultType]::ParameterName, 'How much the model reasons first')
            [CompletionResult]::new('--prompt-dir', '--prompt-dir', [CompletionResultType]::ParameterName, 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with')
            [CompletionResult]::new('--timeout-connect', '--timeout-connect', [CompletionResultType]::ParameterName, 'The most time until a connection stands [default: 10s]')
            [CompletionResult]::new('--timeout-first-token', '--timeout-first-token', [CompletionResultType]::ParameterName, 'The most time until the first piece of an answer [default: 10m]')
            [CompletionResult]::new('--timeout-idle', '--timeout-idle', [CompletionResultType]::ParameterName, 'The most time between two pieces of an answer [default: 2m]')
            [CompletionResult]::new('--timeout-total', '--timeout-total', [CompletionResultType]::ParameterName, 'The most time of one call, retries included [default: 30m]')
            [CompletionResult]::new('--retries', '--retries', [CompletionResultType]::ParameterName, 'How often a call is made again after a fault that may pass [default: 3]')
            [CompletionResult]::new('--judge-mode', '--judge-mode', [CompletionResultType]::ParameterName, 'One call for all criteria, or one for each [default: joint]')
            [CompletionResult]::new('--judge-samples', '--judge-samples', [CompletionResultType]::ParameterName, 'Ask so often, and take the median [default: 1]')
            [CompletionResult]::new('--judge-score', '--judge-score', [CompletionResultType]::ParameterName, 'The score: as the judge writes it, or as its probabilities say [default: verdict]')
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'The most drafts to make, the first included [default: 3]')
            [CompletionResult]::new('--max-iterations', '--max-iterations', [CompletionResultType]::ParameterName, 'The most drafts to make, the first included [default: 3]')
            [CompletionResult]::new('--threshold', '--threshold', [CompletionResultType]::ParameterName, 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]')
            [CompletionResult]::new('--min-iterations', '--min-iterations', [CompletionResultType]::ParameterName, 'The fewest drafts to make, the first included [default: 1]')
            [CompletionResult]::new('--plateau-iterations', '--plateau-iterations', [CompletionResultType]::ParameterName, 'Stop after so many revisions in a row that are no gain [default: 2]')
            [CompletionResult]::new('--improvement-threshold', '--improvement-threshold', [CompletionResultType]::ParameterName, 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]')
            [CompletionResult]::new('--detect-oscillation', '--detect-oscillation', [CompletionResultType]::ParameterName, 'Whether to stop where scores go up and down without a trend [default: true]')
            [CompletionResult]::new('--grey-zone', '--grey-zone', [CompletionResultType]::ParameterName, 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]')
            [CompletionResult]::new('--adapt', '--adapt', [CompletionResultType]::ParameterName, 'Whether to try another way of revising before a run without progress is given up [default: true]')
            [CompletionResult]::new('--quality-drop-threshold', '--quality-drop-threshold', [CompletionResultType]::ParameterName, 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]')
            [CompletionResult]::new('--reflect-on-error', '--reflect-on-error', [CompletionResultType]::ParameterName, 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]')
            [CompletionResult]::new('--reflect-on-tools', '--reflect-on-tools', [CompletionResultType]::ParameterName, 'Reflect on the results of these tools only, by the names of their programs, with commas; '''' for none')
            [CompletionResult]::new('--steps', '--steps', [CompletionResultType]::ParameterName, 'Whether to write the first draft in steps, an outline and then section by section [default: false]')
            [CompletionResult]::new('--reflection-interval', '--reflection-interval', [CompletionResultType]::ParameterName, 'With --steps, reflect after every so many sections; 0 for never [default: 3]')
            [CompletionResult]::new('--strategy', '--strategy', [CompletionResultType]::ParameterName, 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)')
            [CompletionResult]::new('--candidates', '--candidates', [CompletionResultType]::ParameterName, 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]')
            [CompletionResult]::new('--max-revision-tokens', '--max-revision-tokens', [CompletionResultType]::ParameterName, 'The most tokens of one reply that revises')
            [CompletionResult]::new('--include-prior-versions', '--include-prior-versions', [CompletionResultType]::ParameterName, 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]')
            [CompletionResult]::new('--include-reflection-history', '--include-reflection-history', [CompletionResultType]::ParameterName, 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]')
            [CompletionResult]::new('--select', '--select', [CompletionResultType]::ParameterName, 'Which draft is the answer; the one with the highest score by default')
            [CompletionResult]::new('--on-failure', '--on-failure', [CompletionResultType]::ParameterName, 'Which draft is the answer where the criteria are not met; by default what --select says')
            [CompletionResult]::new('--max-total-tokens', '--max-total-tokens', [CompletionResultType]::ParameterName, 'Begin no more tasks once all together have used so many tokens')
            [CompletionResult]::new('--max-cost', '--max-cost', [CompletionResultType]::ParameterName, 'Begin no more tasks once all together have cost so much, by the prices in your configuration')
            [CompletionResult]::new('--max-time', '--max-time', [CompletionResultType]::ParameterName, 'End after this time, for example 90s or 2h; tasks under way are done again by the next call')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--ordered', '--ordered', [CompletionResultType]::ParameterName, 'Write rows in the order of the tasks, not as they are done')
            [CompletionResult]::new('--retry-failed', '--retry-failed', [CompletionResultType]::ParameterName, 'Do again what failed, could not be judged, or was invalid')
            [CompletionResult]::new('--fail-fast', '--fail-fast', [CompletionResultType]::ParameterName, 'Begin no more tasks after one that failed, and none at all if a line of a file is bad')
            [CompletionResult]::new('--exit-zero', '--exit-zero', [CompletionResultType]::ParameterName, 'Exit with 0 also where criteria are not met or a limit was reached')
            [CompletionResult]::new('--no-log', '--no-log', [CompletionResultType]::ParameterName, 'Keep no record of the runs')
            [CompletionResult]::new('--allow-exec', '--allow-exec', [CompletionResultType]::ParameterName, 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run')
            [CompletionResult]::new('--offline', '--offline', [CompletionResultType]::ParameterName, 'Fetch nothing: use only models that are on this machine')
            [CompletionResult]::new('--judge-probe', '--judge-probe', [CompletionResultType]::ParameterName, 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad')
            [CompletionResult]::new('--judge-always', '--judge-always', [CompletionResultType]::ParameterName, 'Ask the judge even where a required criterion is not met')
            [CompletionResult]::new('--no-cache', '--no-cache', [CompletionResultType]::ParameterName, 'Judge anew what was judged before')
            [CompletionResult]::new('--no-early-stop', '--no-early-stop', [CompletionResultType]::ParameterName, 'Let every draft be written to its end, even where it can no longer meet a hard check')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;history' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List runs, the latest first')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show a run')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;history;list' {
            [CompletionResult]::new('-n', '-n', [CompletionResultType]::ParameterName, 'How many')
            [CompletionResult]::new('--limit', '--limit', [CompletionResultType]::ParameterName, 'How many')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;history;show' {
            [CompletionResult]::new('--draft', '--draft', [CompletionResultType]::ParameterName, 'Print only the draft with this number')
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'What to print')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--best', '--best', [CompletionResultType]::ParameterName, 'Print only the draft that the run selected')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;history;help' {
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List runs, the latest first')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show a run')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;history;help;list' {
            break
        }
        'reflect;history;help;show' {
            break
        }
        'reflect;history;help;help' {
            break
        }
        'reflect;criteria' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the sets that can be asked for by name')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show a set with its defaults filled in')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Say what is wrong with criteria files, and where; no model is asked')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a criteria file to begin with')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Print the JSON Schema of criteria files, for editors')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;criteria;list' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;criteria;show' {
            [CompletionResult]::new('--format', '--format', [CompletionResultType]::ParameterName, 'What to print')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;criteria;check' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;criteria;init' {
            [CompletionResult]::new('--task-type', '--task-type', [CompletionResultType]::ParameterName, 'What kind of text is to be measured: code, writing, analysis or reasoning')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Replace an existing file')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;criteria;schema' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;criteria;help' {
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the sets that can be asked for by name')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show a set with its defaults filled in')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Say what is wrong with criteria files, and where; no model is asked')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a criteria file to begin with')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Print the JSON Schema of criteria files, for editors')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;criteria;help;list' {
            break
        }
        'reflect;criteria;help;show' {
            break
        }
        'reflect;criteria;help;check' {
            break
        }
        'reflect;criteria;help;init' {
            break
        }
        'reflect;criteria;help;schema' {
            break
        }
        'reflect;criteria;help;help' {
            break
        }
        'reflect;models' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the models that can be used')
            [CompletionResult]::new('pull', 'pull', [CompletionResultType]::ParameterValue, 'Fetch an embedded model')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print the folder that embedded models are kept in')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;models;list' {
            [CompletionResult]::new('--provider', '--provider', [CompletionResultType]::ParameterName, 'Only those of this provider')
            [CompletionResult]::new('--base-url', '--base-url', [CompletionResultType]::ParameterName, 'The address of the server')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--json', '--json', [CompletionResultType]::ParameterName, 'Print JSON')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;models;pull' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;models;path' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;models;help' {
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the models that can be used')
            [CompletionResult]::new('pull', 'pull', [CompletionResultType]::ParameterValue, 'Fetch an embedded model')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print the folder that embedded models are kept in')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;models;help;list' {
            break
        }
        'reflect;models;help;pull' {
            break
        }
        'reflect;models;help;path' {
            break
        }
        'reflect;models;help;help' {
            break
        }
        'reflect;config' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print where the configuration file is')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print the settings in force')
            [CompletionResult]::new('prompts', 'prompts', [CompletionResultType]::ParameterValue, 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a configuration file with every setting explained')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;config;path' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;config;show' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--origin', '--origin', [CompletionResultType]::ParameterName, 'Say where each value comes from')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;config;prompts' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Replace existing files')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;config;init' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('--force', '--force', [CompletionResultType]::ParameterName, 'Replace an existing file')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;config;help' {
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print where the configuration file is')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print the settings in force')
            [CompletionResult]::new('prompts', 'prompts', [CompletionResultType]::ParameterValue, 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a configuration file with every setting explained')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;config;help;path' {
            break
        }
        'reflect;config;help;show' {
            break
        }
        'reflect;config;help;prompts' {
            break
        }
        'reflect;config;help;init' {
            break
        }
        'reflect;config;help;help' {
            break
        }
        'reflect;completions' {
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;man' {
            [CompletionResult]::new('--out-dir', '--out-dir', [CompletionResultType]::ParameterName, 'Write a page for every command into this folder')
            [CompletionResult]::new('--config', '--config', [CompletionResultType]::ParameterName, 'Use this configuration file instead of the user''s own')
            [CompletionResult]::new('--profile', '--profile', [CompletionResultType]::ParameterName, 'Use the settings of this profile of the configuration file')
            [CompletionResult]::new('--color', '--color', [CompletionResultType]::ParameterName, 'When to use colours')
            [CompletionResult]::new('-q', '-q', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('--quiet', '--quiet', [CompletionResultType]::ParameterName, 'Say nothing but errors on standard error')
            [CompletionResult]::new('-h', '-h', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            [CompletionResult]::new('--help', '--help', [CompletionResultType]::ParameterName, 'Print help (see more with ''--help'')')
            break
        }
        'reflect;help' {
            [CompletionResult]::new('draft', 'draft', [CompletionResultType]::ParameterValue, 'Write a draft, judge it, and revise it until it meets the criteria')
            [CompletionResult]::new('revise', 'revise', [CompletionResultType]::ParameterValue, 'Revise a text until it meets the criteria, or mend named errors')
            [CompletionResult]::new('evaluate', 'evaluate', [CompletionResultType]::ParameterValue, 'Judge texts by criteria, without writing anything: a gate for CI')
            [CompletionResult]::new('batch', 'batch', [CompletionResultType]::ParameterValue, 'Do many tasks, several at once: a task a line in, a row a task out, resumable')
            [CompletionResult]::new('history', 'history', [CompletionResultType]::ParameterValue, 'Look at earlier runs')
            [CompletionResult]::new('criteria', 'criteria', [CompletionResultType]::ParameterValue, 'List, show, check and create criteria')
            [CompletionResult]::new('models', 'models', [CompletionResultType]::ParameterValue, 'List and fetch models')
            [CompletionResult]::new('config', 'config', [CompletionResultType]::ParameterValue, 'Show or create the configuration')
            [CompletionResult]::new('completions', 'completions', [CompletionResultType]::ParameterValue, 'Print the completion script of a shell')
            [CompletionResult]::new('man', 'man', [CompletionResultType]::ParameterValue, 'Print the manual page, or write all of them to a folder')
            [CompletionResult]::new('help', 'help', [CompletionResultType]::ParameterValue, 'Print this message or the help of the given subcommand(s)')
            break
        }
        'reflect;help;draft' {
            break
        }
        'reflect;help;revise' {
            break
        }
        'reflect;help;evaluate' {
            break
        }
        'reflect;help;batch' {
            break
        }
        'reflect;help;history' {
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List runs, the latest first')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show a run')
            break
        }
        'reflect;help;history;list' {
            break
        }
        'reflect;help;history;show' {
            break
        }
        'reflect;help;criteria' {
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the sets that can be asked for by name')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Show a set with its defaults filled in')
            [CompletionResult]::new('check', 'check', [CompletionResultType]::ParameterValue, 'Say what is wrong with criteria files, and where; no model is asked')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a criteria file to begin with')
            [CompletionResult]::new('schema', 'schema', [CompletionResultType]::ParameterValue, 'Print the JSON Schema of criteria files, for editors')
            break
        }
        'reflect;help;criteria;list' {
            break
        }
        'reflect;help;criteria;show' {
            break
        }
        'reflect;help;criteria;check' {
            break
        }
        'reflect;help;criteria;init' {
            break
        }
        'reflect;help;criteria;schema' {
            break
        }
        'reflect;help;models' {
            [CompletionResult]::new('list', 'list', [CompletionResultType]::ParameterValue, 'List the models that can be used')
            [CompletionResult]::new('pull', 'pull', [CompletionResultType]::ParameterValue, 'Fetch an embedded model')
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print the folder that embedded models are kept in')
            break
        }
        'reflect;help;models;list' {
            break
        }
        'reflect;help;models;pull' {
            break
        }
        'reflect;help;models;path' {
            break
        }
        'reflect;help;config' {
            [CompletionResult]::new('path', 'path', [CompletionResultType]::ParameterValue, 'Print where the configuration file is')
            [CompletionResult]::new('show', 'show', [CompletionResultType]::ParameterValue, 'Print the settings in force')
            [CompletionResult]::new('prompts', 'prompts', [CompletionResultType]::ParameterValue, 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`')
            [CompletionResult]::new('init', 'init', [CompletionResultType]::ParameterValue, 'Write a configuration file with every setting explained')
            break
        }
        'reflect;help;config;path' {
            break
        }
        'reflect;help;config;show' {
            break
        }
        'reflect;help;config;prompts' {
            break
        }
        'reflect;help;config;init' {
            break
        }
        'reflect;help;completions' {
            break
        }
        'reflect;help;man' {
            break
        }
        'reflect;help;help' {
            break
        }
    })

    $completions.Where{ $_.CompletionText -like "$wordToComplete*" } |
        Sort-Object -Property ListItemText
}
