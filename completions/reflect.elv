
use builtin;
use str;

set edit:completion:arg-completer[reflect] = {|@words|
    fn spaces {|n|
        builtin:repeat $n ' ' | str:join ''
    }
    fn cand {|text desc|
        edit:complex-candidate $text &display=$text' '(spaces (- 14 (wcswidth $text)))$desc
    }
    var command = 'reflect'
    for word $words[1..-1] {
        if (str:has-prefix $word '-') {
            break
        }
        set command = $command';'$word
    }
    var completions = [
        &'reflect'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand -V 'Print version'
            cand --version 'Print version'
            cand draft 'Write a draft, judge it, and revise it until it meets the criteria'
            cand revise 'Revise a text until it meets the criteria, or mend named errors'
            cand correct 'Revise a text until it meets the criteria, or mend named errors'
            cand evaluate 'Judge texts by criteria, without writing anything: a gate for CI'
            cand critique 'Judge texts by criteria, without writing anything: a gate for CI'
            cand batch 'Do many tasks, several at once: a task a line in, a row a task out, resumable'
            cand history 'Look at earlier runs'
            cand criteria 'List, show, check and create criteria'
            cand models 'List and fetch models'
            cand config 'Show or create the configuration'
            cand completions 'Print the completion script of a shell'
            cand man 'Print the manual page, or write all of them to a folder'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;draft'= {
            cand --prompt-file 'Read the prompt from a file'
            cand -c 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand --criteria 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand -f 'Give the model this file as context; repeatable'
            cand --file 'Give the model this file as context; repeatable'
            cand --context 'What is known already: message history, facts and procedures, as JSON'
            cand --context-messages 'How many of the last messages of the history are used [default: 3]'
            cand --evidence 'Look for evidence in this file or folder of code or documents; repeatable'
            cand --evidence-tokens 'The most tokens of evidence that one search adds to a prompt [default: 2000]'
            cand -s 'Instructions that hold for the whole run'
            cand --system 'Instructions that hold for the whole run'
            cand -m 'The model, as MODEL or PROVIDER:MODEL'
            cand --model 'The model, as MODEL or PROVIDER:MODEL'
            cand --judge-model 'A different model to judge the drafts'
            cand --stronger-model 'A model that takes over where the first makes no progress any more'
            cand --provider 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE'
            cand --base-url 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`'
            cand --temperature 'Randomness, 0 to 2; 0 always takes the likeliest token'
            cand --top-p 'Choose among the likeliest tokens that together have this probability'
            cand --seed 'Makes answers repeatable where the server can'
            cand --max-tokens 'The most tokens of one answer'
            cand --num-ctx 'The context window to ask Ollama for, in tokens'
            cand --keep-alive 'How long Ollama keeps the model loaded'
            cand --think 'How much the model reasons first'
            cand --prompt-dir 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with'
            cand --timeout-connect 'The most time until a connection stands [default: 10s]'
            cand --timeout-first-token 'The most time until the first piece of an answer [default: 10m]'
            cand --timeout-idle 'The most time between two pieces of an answer [default: 2m]'
            cand --timeout-total 'The most time of one call, retries included [default: 30m]'
            cand --retries 'How often a call is made again after a fault that may pass [default: 3]'
            cand --tool 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable'
            cand --judge-mode 'One call for all criteria, or one for each [default: joint]'
            cand --judge-samples 'Ask so often, and take the median [default: 1]'
            cand --judge-score 'The score: as the judge writes it, or as its probabilities say [default: verdict]'
            cand -n 'The most drafts to make, the first included [default: 3]'
            cand --max-iterations 'The most drafts to make, the first included [default: 3]'
            cand --threshold 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]'
            cand --min-iterations 'The fewest drafts to make, the first included [default: 1]'
            cand --plateau-iterations 'Stop after so many revisions in a row that are no gain [default: 2]'
            cand --improvement-threshold 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]'
            cand --detect-oscillation 'Whether to stop where scores go up and down without a trend [default: true]'
            cand --grey-zone 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]'
            cand --adapt 'Whether to try another way of revising before a run without progress is given up [default: true]'
            cand --quality-drop-threshold 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]'
            cand --reflect-on-error 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]'
            cand --reflect-on-tools 'Reflect on the results of these tools only, by the names of their programs, with commas; '''' for none'
            cand --steps 'Whether to write the first draft in steps, an outline and then section by section [default: false]'
            cand --reflection-interval 'With --steps, reflect after every so many sections; 0 for never [default: 3]'
            cand --strategy 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)'
            cand --candidates 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]'
            cand --max-revision-tokens 'The most tokens of one reply that revises'
            cand --include-prior-versions 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]'
            cand --include-reflection-history 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]'
            cand --select 'Which draft is the answer; the one with the highest score by default'
            cand --on-failure 'Which draft is the answer where the criteria are not met; by default what --select says'
            cand --max-total-tokens 'Stop once so many tokens are used'
            cand --max-cost 'Stop once the run has cost so much, by the prices in your configuration'
            cand --max-time 'Stop after this time, for example 90s or 10m'
            cand -o 'Write the answer to a file instead of standard output'
            cand --output 'Write the answer to a file instead of standard output'
            cand --format 'What to print'
            cand --report 'Write the critique report to a file: JSON if its name ends in .json, else Markdown'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --ignore-stdin 'Do not read standard input even if it is piped'
            cand --offline 'Fetch nothing: use only models that are on this machine'
            cand --allow-exec 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run'
            cand --judge-probe 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
            cand --judge-always 'Ask the judge even where a required criterion is not met'
            cand --no-cache 'Judge anew what was judged before'
            cand --no-early-stop 'Let every draft be written to its end, even where it can no longer meet a hard check'
            cand --exit-zero 'Exit with 0 also where the criteria are not met or a limit was reached'
            cand --stream-deltas 'With `--format ndjson`, print the pieces of the answers as they come'
            cand --no-log 'Keep no record of the run'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;revise'= {
            cand --prompt 'What the text was written for: the models see it'
            cand --prompt-file 'Read from a file what the text was written for'
            cand --errors 'Only mend what stands in this file, in one revision that nobody judges: one issue a line, or JSON as evaluators print it; `-` for standard input'
            cand -c 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand --criteria 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand -f 'Give the model this file as context; repeatable'
            cand --file 'Give the model this file as context; repeatable'
            cand --context 'What is known already: message history, facts and procedures, as JSON'
            cand --context-messages 'How many of the last messages of the history are used [default: 3]'
            cand --evidence 'Look for evidence in this file or folder of code or documents; repeatable'
            cand --evidence-tokens 'The most tokens of evidence that one search adds to a prompt [default: 2000]'
            cand -s 'Instructions that hold for the whole run'
            cand --system 'Instructions that hold for the whole run'
            cand -m 'The model, as MODEL or PROVIDER:MODEL'
            cand --model 'The model, as MODEL or PROVIDER:MODEL'
            cand --judge-model 'A different model to judge the drafts'
            cand --stronger-model 'A model that takes over where the first makes no progress any more'
            cand --provider 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE'
            cand --base-url 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`'
            cand --temperature 'Randomness, 0 to 2; 0 always takes the likeliest token'
            cand --top-p 'Choose among the likeliest tokens that together have this probability'
            cand --seed 'Makes answers repeatable where the server can'
            cand --max-tokens 'The most tokens of one answer'
            cand --num-ctx 'The context window to ask Ollama for, in tokens'
            cand --keep-alive 'How long Ollama keeps the model loaded'
            cand --think 'How much the model reasons first'
            cand --prompt-dir 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with'
            cand --timeout-connect 'The most time until a connection stands [default: 10s]'
            cand --timeout-first-token 'The most time until the first piece of an answer [default: 10m]'
            cand --timeout-idle 'The most time between two pieces of an answer [default: 2m]'
            cand --timeout-total 'The most time of one call, retries included [default: 30m]'
            cand --retries 'How often a call is made again after a fault that may pass [default: 3]'
            cand --tool 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable'
            cand --judge-mode 'One call for all criteria, or one for each [default: joint]'
            cand --judge-samples 'Ask so often, and take the median [default: 1]'
            cand --judge-score 'The score: as the judge writes it, or as its probabilities say [default: verdict]'
            cand -n 'The most drafts to make, the first included [default: 3]'
            cand --max-iterations 'The most drafts to make, the first included [default: 3]'
            cand --threshold 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]'
            cand --min-iterations 'The fewest drafts to make, the first included [default: 1]'
            cand --plateau-iterations 'Stop after so many revisions in a row that are no gain [default: 2]'
            cand --improvement-threshold 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]'
            cand --detect-oscillation 'Whether to stop where scores go up and down without a trend [default: true]'
            cand --grey-zone 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]'
            cand --adapt 'Whether to try another way of revising before a run without progress is given up [default: true]'
            cand --quality-drop-threshold 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]'
            cand --reflect-on-error 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]'
            cand --reflect-on-tools 'Reflect on the results of these tools only, by the names of their programs, with commas; '''' for none'
            cand --steps 'Whether to write the first draft in steps, an outline and then section by section [default: false]'
            cand --reflection-interval 'With --steps, reflect after every so many sections; 0 for never [default: 3]'
            cand --strategy 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)'
            cand --candidates 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]'
            cand --max-revision-tokens 'The most tokens of one reply that revises'
            cand --include-prior-versions 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]'
            cand --include-reflection-history 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]'
            cand --select 'Which draft is the answer; the one with the highest score by default'
            cand --on-failure 'Which draft is the answer where the criteria are not met; by default what --select says'
            cand --max-total-tokens 'Stop once so many tokens are used'
            cand --max-cost 'Stop once the run has cost so much, by the prices in your configuration'
            cand --max-time 'Stop after this time, for example 90s or 10m'
            cand -o 'Write the answer to a file instead of standard output'
            cand --output 'Write the answer to a file instead of standard output'
            cand --format 'What to print'
            cand --report 'Write the critique report to a file: JSON if its name ends in .json, else Markdown'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --offline 'Fetch nothing: use only models that are on this machine'
            cand --allow-exec 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run'
            cand --judge-probe 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
            cand --judge-always 'Ask the judge even where a required criterion is not met'
            cand --no-cache 'Judge anew what was judged before'
            cand --no-early-stop 'Let every draft be written to its end, even where it can no longer meet a hard check'
            cand --exit-zero 'Exit with 0 also where the criteria are not met or a limit was reached'
            cand --stream-deltas 'With `--format ndjson`, print the pieces of the answers as they come'
            cand --no-log 'Keep no record of the run'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;correct'= {
            cand --prompt 'What the text was written for: the models see it'
            cand --prompt-file 'Read from a file what the text was written for'
            cand --errors 'Only mend what stands in this file, in one revision that nobody judges: one issue a line, or JSON as evaluators print it; `-` for standard input'
            cand -c 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand --criteria 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand -f 'Give the model this file as context; repeatable'
            cand --file 'Give the model this file as context; repeatable'
            cand --context 'What is known already: message history, facts and procedures, as JSON'
            cand --context-messages 'How many of the last messages of the history are used [default: 3]'
            cand --evidence 'Look for evidence in this file or folder of code or documents; repeatable'
            cand --evidence-tokens 'The most tokens of evidence that one search adds to a prompt [default: 2000]'
            cand -s 'Instructions that hold for the whole run'
            cand --system 'Instructions that hold for the whole run'
            cand -m 'The model, as MODEL or PROVIDER:MODEL'
            cand --model 'The model, as MODEL or PROVIDER:MODEL'
            cand --judge-model 'A different model to judge the drafts'
            cand --stronger-model 'A model that takes over where the first makes no progress any more'
            cand --provider 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE'
            cand --base-url 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`'
            cand --temperature 'Randomness, 0 to 2; 0 always takes the likeliest token'
            cand --top-p 'Choose among the likeliest tokens that together have this probability'
            cand --seed 'Makes answers repeatable where the server can'
            cand --max-tokens 'The most tokens of one answer'
            cand --num-ctx 'The context window to ask Ollama for, in tokens'
            cand --keep-alive 'How long Ollama keeps the model loaded'
            cand --think 'How much the model reasons first'
            cand --prompt-dir 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with'
            cand --timeout-connect 'The most time until a connection stands [default: 10s]'
            cand --timeout-first-token 'The most time until the first piece of an answer [default: 10m]'
            cand --timeout-idle 'The most time between two pieces of an answer [default: 2m]'
            cand --timeout-total 'The most time of one call, retries included [default: 30m]'
            cand --retries 'How often a call is made again after a fault that may pass [default: 3]'
            cand --tool 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable'
            cand --judge-mode 'One call for all criteria, or one for each [default: joint]'
            cand --judge-samples 'Ask so often, and take the median [default: 1]'
            cand --judge-score 'The score: as the judge writes it, or as its probabilities say [default: verdict]'
            cand -n 'The most drafts to make, the first included [default: 3]'
            cand --max-iterations 'The most drafts to make, the first included [default: 3]'
            cand --threshold 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]'
            cand --min-iterations 'The fewest drafts to make, the first included [default: 1]'
            cand --plateau-iterations 'Stop after so many revisions in a row that are no gain [default: 2]'
            cand --improvement-threshold 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]'
            cand --detect-oscillation 'Whether to stop where scores go up and down without a trend [default: true]'
            cand --grey-zone 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]'
            cand --adapt 'Whether to try another way of revising before a run without progress is given up [default: true]'
            cand --quality-drop-threshold 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]'
            cand --reflect-on-error 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]'
            cand --reflect-on-tools 'Reflect on the results of these tools only, by the names of their programs, with commas; '''' for none'
            cand --steps 'Whether to write the first draft in steps, an outline and then section by section [default: false]'
            cand --reflection-interval 'With --steps, reflect after every so many sections; 0 for never [default: 3]'
            cand --strategy 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)'
            cand --candidates 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]'
            cand --max-revision-tokens 'The most tokens of one reply that revises'
            cand --include-prior-versions 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]'
            cand --include-reflection-history 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]'
            cand --select 'Which draft is the answer; the one with the highest score by default'
            cand --on-failure 'Which draft is the answer where the criteria are not met; by default what --select says'
            cand --max-total-tokens 'Stop once so many tokens are used'
            cand --max-cost 'Stop once the run has cost so much, by the prices in your configuration'
            cand --max-time 'Stop after this time, for example 90s or 10m'
            cand -o 'Write the answer to a file instead of standard output'
            cand --output 'Write the answer to a file instead of standard output'
            cand --format 'What to print'
            cand --report 'Write the critique report to a file: JSON if its name ends in .json, else Markdown'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --offline 'Fetch nothing: use only models that are on this machine'
            cand --allow-exec 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run'
            cand --judge-probe 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
            cand --judge-always 'Ask the judge even where a required criterion is not met'
            cand --no-cache 'Judge anew what was judged before'
            cand --no-early-stop 'Let every draft be written to its end, even where it can no longer meet a hard check'
            cand --exit-zero 'Exit with 0 also where the criteria are not met or a limit was reached'
            cand --stream-deltas 'With `--format ndjson`, print the pieces of the answers as they come'
            cand --no-log 'Keep no record of the run'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;evaluate'= {
            cand -c 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand --criteria 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand --evaluator 'A single evaluator in a file of its own (YAML, JSON or TOML; `type: schema`, `llm` or `custom`): prints its verdict'
            cand --input-format 'What the texts are: with `json`, a JSON text is judged by what it says'
            cand --prompt 'What the texts were written for: the judge sees it'
            cand --prompt-file 'Read from a file what the texts were written for'
            cand -f 'Show the judge this file as context; repeatable'
            cand --file 'Show the judge this file as context; repeatable'
            cand --context 'What is known already: message history, facts and procedures, as JSON'
            cand --context-messages 'How many of the last messages of the history are used [default: 3]'
            cand --evidence 'Look for evidence in this file or folder of code or documents; repeatable'
            cand --evidence-tokens 'The most tokens of evidence that one search adds to a prompt [default: 2000]'
            cand -s 'Instructions that hold for all calls'
            cand --system 'Instructions that hold for all calls'
            cand --threshold 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]'
            cand -m 'The model, as MODEL or PROVIDER:MODEL'
            cand --model 'The model, as MODEL or PROVIDER:MODEL'
            cand --judge-model 'A different model to judge the drafts'
            cand --stronger-model 'A model that takes over where the first makes no progress any more'
            cand --provider 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE'
            cand --base-url 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`'
            cand --temperature 'Randomness, 0 to 2; 0 always takes the likeliest token'
            cand --top-p 'Choose among the likeliest tokens that together have this probability'
            cand --seed 'Makes answers repeatable where the server can'
            cand --max-tokens 'The most tokens of one answer'
            cand --num-ctx 'The context window to ask Ollama for, in tokens'
            cand --keep-alive 'How long Ollama keeps the model loaded'
            cand --think 'How much the model reasons first'
            cand --prompt-dir 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with'
            cand --timeout-connect 'The most time until a connection stands [default: 10s]'
            cand --timeout-first-token 'The most time until the first piece of an answer [default: 10m]'
            cand --timeout-idle 'The most time between two pieces of an answer [default: 2m]'
            cand --timeout-total 'The most time of one call, retries included [default: 30m]'
            cand --retries 'How often a call is made again after a fault that may pass [default: 3]'
            cand --judge-mode 'One call for all criteria, or one for each [default: joint]'
            cand --judge-samples 'Ask so often, and take the median [default: 1]'
            cand --judge-score 'The score: as the judge writes it, or as its probabilities say [default: verdict]'
            cand -o 'Write the answer to a file instead of standard output'
            cand --output 'Write the answer to a file instead of standard output'
            cand --format 'What to print'
            cand --report 'Write the critique report to a file: JSON if its name ends in .json, else Markdown'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --allow-exec 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder'
            cand --offline 'Fetch nothing: use only models that are on this machine'
            cand --judge-probe 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
            cand --judge-always 'Ask the judge even where a required criterion is not met'
            cand --no-cache 'Judge anew what was judged before'
            cand --exit-zero 'Exit with 0 also where the criteria are not met or a limit was reached'
            cand --stream-deltas 'With `--format ndjson`, print the pieces of the answers as they come'
            cand --no-log 'Keep no record of the run'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;critique'= {
            cand -c 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand --criteria 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning'
            cand --evaluator 'A single evaluator in a file of its own (YAML, JSON or TOML; `type: schema`, `llm` or `custom`): prints its verdict'
            cand --input-format 'What the texts are: with `json`, a JSON text is judged by what it says'
            cand --prompt 'What the texts were written for: the judge sees it'
            cand --prompt-file 'Read from a file what the texts were written for'
            cand -f 'Show the judge this file as context; repeatable'
            cand --file 'Show the judge this file as context; repeatable'
            cand --context 'What is known already: message history, facts and procedures, as JSON'
            cand --context-messages 'How many of the last messages of the history are used [default: 3]'
            cand --evidence 'Look for evidence in this file or folder of code or documents; repeatable'
            cand --evidence-tokens 'The most tokens of evidence that one search adds to a prompt [default: 2000]'
            cand -s 'Instructions that hold for all calls'
            cand --system 'Instructions that hold for all calls'
            cand --threshold 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]'
            cand -m 'The model, as MODEL or PROVIDER:MODEL'
            cand --model 'The model, as MODEL or PROVIDER:MODEL'
            cand --judge-model 'A different model to judge the drafts'
            cand --stronger-model 'A model that takes over where the first makes no progress any more'
            cand --provider 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE'
            cand --base-url 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`'
            cand --temperature 'Randomness, 0 to 2; 0 always takes the likeliest token'
            cand --top-p 'Choose among the likeliest tokens that together have this probability'
            cand --seed 'Makes answers repeatable where the server can'
            cand --max-tokens 'The most tokens of one answer'
            cand --num-ctx 'The context window to ask Ollama for, in tokens'
            cand --keep-alive 'How long Ollama keeps the model loaded'
            cand --think 'How much the model reasons first'
            cand --prompt-dir 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with'
            cand --timeout-connect 'The most time until a connection stands [default: 10s]'
            cand --timeout-first-token 'The most time until the first piece of an answer [default: 10m]'
            cand --timeout-idle 'The most time between two pieces of an answer [default: 2m]'
            cand --timeout-total 'The most time of one call, retries included [default: 30m]'
            cand --retries 'How often a call is made again after a fault that may pass [default: 3]'
            cand --judge-mode 'One call for all criteria, or one for each [default: joint]'
            cand --judge-samples 'Ask so often, and take the median [default: 1]'
            cand --judge-score 'The score: as the judge writes it, or as its probabilities say [default: verdict]'
            cand -o 'Write the answer to a file instead of standard output'
            cand --output 'Write the answer to a file instead of standard output'
            cand --format 'What to print'
            cand --report 'Write the critique report to a file: JSON if its name ends in .json, else Markdown'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --allow-exec 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder'
            cand --offline 'Fetch nothing: use only models that are on this machine'
            cand --judge-probe 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
            cand --judge-always 'Ask the judge even where a required criterion is not met'
            cand --no-cache 'Judge anew what was judged before'
            cand --exit-zero 'Exit with 0 also where the criteria are not met or a limit was reached'
            cand --stream-deltas 'With `--format ndjson`, print the pieces of the answers as they come'
            cand --no-log 'Keep no record of the run'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;batch'= {
            cand -c 'The criteria for tasks that name none: a file, or one of the built-in sets'
            cand --criteria 'The criteria for tasks that name none: a file, or one of the built-in sets'
            cand --prompt 'What prompts are made of, as ''Write about {{ topic }}''; filled in with `vars` and other columns'
            cand --input-format 'How tasks are written down; by the name of the file if nothing is said'
            cand --shard 'Do only part I of N (I from 0): every N-th task; for arrays of jobs'
            cand -f 'Give the models this file as context of every task; repeatable'
            cand --file 'Give the models this file as context of every task; repeatable'
            cand --context 'What is known already: message history, facts and procedures, as JSON'
            cand --context-messages 'How many of the last messages of the history are used [default: 3]'
            cand --evidence 'Look for evidence in this file or folder of code or documents; repeatable'
            cand --evidence-tokens 'The most tokens of evidence that one search adds to a prompt [default: 2000]'
            cand -s 'Instructions that hold for all tasks'
            cand --system 'Instructions that hold for all tasks'
            cand -j 'How many tasks at once; `auto`: as many as the server takes without becoming slow'
            cand --concurrency 'How many tasks at once; `auto`: as many as the server takes without becoming slow'
            cand --requests-per-minute 'The most requests a minute'
            cand --tokens-per-minute 'The most tokens a minute, prompts and answers together'
            cand -o 'Add the rows to this file, instead of writing them to standard output'
            cand --output 'Add the rows to this file, instead of writing them to standard output'
            cand --tool 'Show the writer what this program says, as `reflect draft` does; repeatable'
            cand -m 'The model, as MODEL or PROVIDER:MODEL'
            cand --model 'The model, as MODEL or PROVIDER:MODEL'
            cand --judge-model 'A different model to judge the drafts'
            cand --stronger-model 'A model that takes over where the first makes no progress any more'
            cand --provider 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE'
            cand --base-url 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`'
            cand --temperature 'Randomness, 0 to 2; 0 always takes the likeliest token'
            cand --top-p 'Choose among the likeliest tokens that together have this probability'
            cand --seed 'Makes answers repeatable where the server can'
            cand --max-tokens 'The most tokens of one answer'
            cand --num-ctx 'The context window to ask Ollama for, in tokens'
            cand --keep-alive 'How long Ollama keeps the model loaded'
            cand --think 'How much the model reasons first'
            cand --prompt-dir 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with'
            cand --timeout-connect 'The most time until a connection stands [default: 10s]'
            cand --timeout-first-token 'The most time until the first piece of an answer [default: 10m]'
            cand --timeout-idle 'The most time between two pieces of an answer [default: 2m]'
            cand --timeout-total 'The most time of one call, retries included [default: 30m]'
            cand --retries 'How often a call is made again after a fault that may pass [default: 3]'
            cand --judge-mode 'One call for all criteria, or one for each [default: joint]'
            cand --judge-samples 'Ask so often, and take the median [default: 1]'
            cand --judge-score 'The score: as the judge writes it, or as its probabilities say [default: verdict]'
            cand -n 'The most drafts to make, the first included [default: 3]'
            cand --max-iterations 'The most drafts to make, the first included [default: 3]'
            cand --threshold 'The score that is good enough, 0 to 1 [default: the criteria''s own, else 0.8]'
            cand --min-iterations 'The fewest drafts to make, the first included [default: 1]'
            cand --plateau-iterations 'Stop after so many revisions in a row that are no gain [default: 2]'
            cand --improvement-threshold 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]'
            cand --detect-oscillation 'Whether to stop where scores go up and down without a trend [default: true]'
            cand --grey-zone 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]'
            cand --adapt 'Whether to try another way of revising before a run without progress is given up [default: true]'
            cand --quality-drop-threshold 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]'
            cand --reflect-on-error 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]'
            cand --reflect-on-tools 'Reflect on the results of these tools only, by the names of their programs, with commas; '''' for none'
            cand --steps 'Whether to write the first draft in steps, an outline and then section by section [default: false]'
            cand --reflection-interval 'With --steps, reflect after every so many sections; 0 for never [default: 3]'
            cand --strategy 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)'
            cand --candidates 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]'
            cand --max-revision-tokens 'The most tokens of one reply that revises'
            cand --include-prior-versions 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]'
            cand --include-reflection-history 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]'
            cand --select 'Which draft is the answer; the one with the highest score by default'
            cand --on-failure 'Which draft is the answer where the criteria are not met; by default what --select says'
            cand --max-total-tokens 'Begin no more tasks once all together have used so many tokens'
            cand --max-cost 'Begin no more tasks once all together have cost so much, by the prices in your configuration'
            cand --max-time 'End after this time, for example 90s or 2h; tasks under way are done again by the next call'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --ordered 'Write rows in the order of the tasks, not as they are done'
            cand --retry-failed 'Do again what failed, could not be judged, or was invalid'
            cand --fail-fast 'Begin no more tasks after one that failed, and none at all if a line of a file is bad'
            cand --exit-zero 'Exit with 0 also where criteria are not met or a limit was reached'
            cand --no-log 'Keep no record of the runs'
            cand --allow-exec 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run'
            cand --offline 'Fetch nothing: use only models that are on this machine'
            cand --judge-probe 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
            cand --judge-always 'Ask the judge even where a required criterion is not met'
            cand --no-cache 'Judge anew what was judged before'
            cand --no-early-stop 'Let every draft be written to its end, even where it can no longer meet a hard check'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;history'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand list 'List runs, the latest first'
            cand show 'Show a run'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;history;list'= {
            cand -n 'How many'
            cand --limit 'How many'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --json 'Print JSON'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;history;show'= {
            cand --draft 'Print only the draft with this number'
            cand --format 'What to print'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --best 'Print only the draft that the run selected'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;history;help'= {
            cand list 'List runs, the latest first'
            cand show 'Show a run'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;history;help;list'= {
        }
        &'reflect;history;help;show'= {
        }
        &'reflect;history;help;help'= {
        }
        &'reflect;criteria'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand list 'List the sets that can be asked for by name'
            cand show 'Show a set with its defaults filled in'
            cand check 'Say what is wrong with criteria files, and where; no model is asked'
            cand init 'Write a criteria file to begin with'
            cand schema 'Print the JSON Schema of criteria files, for editors'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;criteria;list'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --json 'Print JSON'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;criteria;show'= {
            cand --format 'What to print'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;criteria;check'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;criteria;init'= {
            cand --task-type 'What kind of text is to be measured: code, writing, analysis or reasoning'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --force 'Replace an existing file'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;criteria;schema'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;criteria;help'= {
            cand list 'List the sets that can be asked for by name'
            cand show 'Show a set with its defaults filled in'
            cand check 'Say what is wrong with criteria files, and where; no model is asked'
            cand init 'Write a criteria file to begin with'
            cand schema 'Print the JSON Schema of criteria files, for editors'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;criteria;help;list'= {
        }
        &'reflect;criteria;help;show'= {
        }
        &'reflect;criteria;help;check'= {
        }
        &'reflect;criteria;help;init'= {
        }
        &'reflect;criteria;help;schema'= {
        }
        &'reflect;criteria;help;help'= {
        }
        &'reflect;models'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand list 'List the models that can be used'
            cand pull 'Fetch an embedded model'
            cand path 'Print the folder that embedded models are kept in'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;models;list'= {
            cand --provider 'Only those of this provider'
            cand --base-url 'The address of the server'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --json 'Print JSON'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;models;pull'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;models;path'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;models;help'= {
            cand list 'List the models that can be used'
            cand pull 'Fetch an embedded model'
            cand path 'Print the folder that embedded models are kept in'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;models;help;list'= {
        }
        &'reflect;models;help;pull'= {
        }
        &'reflect;models;help;path'= {
        }
        &'reflect;models;help;help'= {
        }
        &'reflect;config'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
            cand path 'Print where the configuration file is'
            cand show 'Print the settings in force'
            cand prompts 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`'
            cand init 'Write a configuration file with every setting explained'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;config;path'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;config;show'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --origin 'Say where each value comes from'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;config;prompts'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --force 'Replace existing files'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;config;init'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand --force 'Replace an existing file'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;config;help'= {
            cand path 'Print where the configuration file is'
            cand show 'Print the settings in force'
            cand prompts 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`'
            cand init 'Write a configuration file with every setting explained'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;config;help;path'= {
        }
        &'reflect;config;help;show'= {
        }
        &'reflect;config;help;prompts'= {
        }
        &'reflect;config;help;init'= {
        }
        &'reflect;config;help;help'= {
        }
        &'reflect;completions'= {
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;man'= {
            cand --out-dir 'Write a page for every command into this folder'
            cand --config 'Use this configuration file instead of the user''s own'
            cand --profile 'Use the settings of this profile of the configuration file'
            cand --color 'When to use colours'
            cand -q 'Say nothing but errors on standard error'
            cand --quiet 'Say nothing but errors on standard error'
            cand -h 'Print help (see more with ''--help'')'
            cand --help 'Print help (see more with ''--help'')'
        }
        &'reflect;help'= {
            cand draft 'Write a draft, judge it, and revise it until it meets the criteria'
            cand revise 'Revise a text until it meets the criteria, or mend named errors'
            cand evaluate 'Judge texts by criteria, without writing anything: a gate for CI'
            cand batch 'Do many tasks, several at once: a task a line in, a row a task out, resumable'
            cand history 'Look at earlier runs'
            cand criteria 'List, show, check and create criteria'
            cand models 'List and fetch models'
            cand config 'Show or create the configuration'
            cand completions 'Print the completion script of a shell'
            cand man 'Print the manual page, or write all of them to a folder'
            cand help 'Print this message or the help of the given subcommand(s)'
        }
        &'reflect;help;draft'= {
        }
        &'reflect;help;revise'= {
        }
        &'reflect;help;evaluate'= {
        }
        &'reflect;help;batch'= {
        }
        &'reflect;help;history'= {
            cand list 'List runs, the latest first'
            cand show 'Show a run'
        }
        &'reflect;help;history;list'= {
        }
        &'reflect;help;history;show'= {
        }
        &'reflect;help;criteria'= {
            cand list 'List the sets that can be asked for by name'
            cand show 'Show a set with its defaults filled in'
            cand check 'Say what is wrong with criteria files, and where; no model is asked'
            cand init 'Write a criteria file to begin with'
            cand schema 'Print the JSON Schema of criteria files, for editors'
        }
        &'reflect;help;criteria;list'= {
        }
        &'reflect;help;criteria;show'= {
        }
        &'reflect;help;criteria;check'= {
        }
        &'reflect;help;criteria;init'= {
        }
        &'reflect;help;criteria;schema'= {
        }
        &'reflect;help;models'= {
            cand list 'List the models that can be used'
            cand pull 'Fetch an embedded model'
            cand path 'Print the folder that embedded models are kept in'
        }
        &'reflect;help;models;list'= {
        }
        &'reflect;help;models;pull'= {
        }
        &'reflect;help;models;path'= {
        }
        &'reflect;help;config'= {
            cand path 'Print where the configuration file is'
            cand show 'Print the settings in force'
            cand prompts 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`'
            cand init 'Write a configuration file with every setting explained'
        }
        &'reflect;help;config;path'= {
        }
        &'reflect;help;config;show'= {
        }
        &'reflect;help;config;prompts'= {
        }
        &'reflect;help;config;init'= {
        }
        &'reflect;help;completions'= {
        }
        &'reflect;help;man'= {
        }
        &'reflect;help;help'= {
        }
    ]
    $completions[$command]
}
