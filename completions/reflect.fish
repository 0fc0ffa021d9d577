# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_reflect_global_optspecs
    string join \n config= profile= color= q/quiet h/help V/version
end

function __fish_reflect_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_reflect_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_reflect_using_subcommand
    set -l cmd (__fish_reflect_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c reflect -n "__fish_reflect_needs_command" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_needs_command" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_needs_command" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_needs_command" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_needs_command" -s V -l version -d 'Print version'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "draft" -d 'Write a draft, judge it, and revise it until it meets the criteria'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "revise" -d 'Revise a text until it meets the criteria, or mend named errors'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "correct" -d 'Revise a text until it meets the criteria, or mend named errors'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "evaluate" -d 'Judge texts by criteria, without writing anything: a gate for CI'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "critique" -d 'Judge texts by criteria, without writing anything: a gate for CI'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "batch" -d 'Do many tasks, several at once: a task a line in, a row a task out, resumable'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "history" -d 'Look at earlier runs'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "criteria" -d 'List, show, check and create criteria'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "models" -d 'List and fetch models'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "config" -d 'Show or create the configuration'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "completions" -d 'Print the completion script of a shell'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "man" -d 'Print the manual page, or write all of them to a folder'
complete -c reflect -n "__fish_reflect_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l prompt-file -d 'Read the prompt from a file' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand draft" -s c -l criteria -d 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand draft" -s f -l file -d 'Give the model this file as context; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l context -d 'What is known already: message history, facts and procedures, as JSON' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l context-messages -d 'How many of the last messages of the history are used [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l evidence -d 'Look for evidence in this file or folder of code or documents; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l evidence-tokens -d 'The most tokens of evidence that one search adds to a prompt [default: 2000]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -s s -l system -d 'Instructions that hold for the whole run' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -s m -l model -d 'The model, as MODEL or PROVIDER:MODEL' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l judge-model -d 'A different model to judge the drafts' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l stronger-model -d 'A model that takes over where the first makes no progress any more' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l provider -d 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l base-url -d 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`' -r -f
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l temperature -d 'Randomness, 0 to 2; 0 always takes the likeliest token' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l top-p -d 'Choose among the likeliest tokens that together have this probability' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l seed -d 'Makes answers repeatable where the server can' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l max-tokens -d 'The most tokens of one answer' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l num-ctx -d 'The context window to ask Ollama for, in tokens' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l keep-alive -d 'How long Ollama keeps the model loaded' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l think -d 'How much the model reasons first' -r -f -a "auto\t''
on\t''
off\t''
low\t''
medium\t''
high\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l prompt-dir -d 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with' -r -f -a "(__fish_complete_directories)"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l timeout-connect -d 'The most time until a connection stands [default: 10s]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l timeout-first-token -d 'The most time until the first piece of an answer [default: 10m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l timeout-idle -d 'The most time between two pieces of an answer [default: 2m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l timeout-total -d 'The most time of one call, retries included [default: 30m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l retries -d 'How often a call is made again after a fault that may pass [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l tool -d 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l judge-mode -d 'One call for all criteria, or one for each [default: joint]' -r -f -a "joint\t''
separate\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l judge-samples -d 'Ask so often, and take the median [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l judge-score -d 'The score: as the judge writes it, or as its probabilities say [default: verdict]' -r -f -a "verdict\t''
expected\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -s n -l max-iterations -d 'The most drafts to make, the first included [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l threshold -d 'The score that is good enough, 0 to 1 [default: the criteria\'s own, else 0.8]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l min-iterations -d 'The fewest drafts to make, the first included [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l plateau-iterations -d 'Stop after so many revisions in a row that are no gain [default: 2]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l improvement-threshold -d 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l detect-oscillation -d 'Whether to stop where scores go up and down without a trend [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l grey-zone -d 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l adapt -d 'Whether to try another way of revising before a run without progress is given up [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l quality-drop-threshold -d 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l reflect-on-error -d 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l reflect-on-tools -d 'Reflect on the results of these tools only, by the names of their programs, with commas; \'\' for none' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l steps -d 'Whether to write the first draft in steps, an outline and then section by section [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l reflection-interval -d 'With --steps, reflect after every so many sections; 0 for never [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l strategy -d 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)' -r -f -a "hybrid\t''
full_rewrite\t''
targeted_edit\t''
incremental\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l candidates -d 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l max-revision-tokens -d 'The most tokens of one reply that revises' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l include-prior-versions -d 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l include-reflection-history -d 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l select -d 'Which draft is the answer; the one with the highest score by default' -r -f -a "highest_score\t''
latest\t''
first_satisfactory\t''
weighted_recency\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l on-failure -d 'Which draft is the answer where the criteria are not met; by default what --select says' -r -f -a "return_best\t''
return_last\t''
raise\t''"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l max-total-tokens -d 'Stop once so many tokens are used' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l max-cost -d 'Stop once the run has cost so much, by the prices in your configuration' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l max-time -d 'Stop after this time, for example 90s or 10m' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -s o -l output -d 'Write the answer to a file instead of standard output' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l format -d 'What to print' -r -f -a "text\t'The selected draft'
json\t'The result as one JSON object'
ndjson\t'The events of the run, one JSON object a line'
markdown\t'The selected draft and the critique report'"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l report -d 'Write the critique report to a file: JSON if its name ends in .json, else Markdown' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l ignore-stdin -d 'Do not read standard input even if it is piped'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l offline -d 'Fetch nothing: use only models that are on this machine'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l allow-exec -d 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l judge-probe -d 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l judge-always -d 'Ask the judge even where a required criterion is not met'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l no-cache -d 'Judge anew what was judged before'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l no-early-stop -d 'Let every draft be written to its end, even where it can no longer meet a hard check'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l exit-zero -d 'Exit with 0 also where the criteria are not met or a limit was reached'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l stream-deltas -d 'With `--format ndjson`, print the pieces of the answers as they come'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -l no-log -d 'Keep no record of the run'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand draft" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l prompt -d 'What the text was written for: the models see it' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l prompt-file -d 'Read from a file what the text was written for' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l errors -d 'Only mend what stands in this file, in one revision that nobody judges: one issue a line, or JSON as evaluators print it; `-` for standard input' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -s c -l criteria -d 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -s f -l file -d 'Give the model this file as context; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l context -d 'What is known already: message history, facts and procedures, as JSON' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l context-messages -d 'How many of the last messages of the history are used [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l evidence -d 'Look for evidence in this file or folder of code or documents; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l evidence-tokens -d 'The most tokens of evidence that one search adds to a prompt [default: 2000]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -s s -l system -d 'Instructions that hold for the whole run' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -s m -l model -d 'The model, as MODEL or PROVIDER:MODEL' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l judge-model -d 'A different model to judge the drafts' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l stronger-model -d 'A model that takes over where the first makes no progress any more' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l provider -d 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l base-url -d 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`' -r -f
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l temperature -d 'Randomness, 0 to 2; 0 always takes the likeliest token' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l top-p -d 'Choose among the likeliest tokens that together have this probability' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l seed -d 'Makes answers repeatable where the server can' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l max-tokens -d 'The most tokens of one answer' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l num-ctx -d 'The context window to ask Ollama for, in tokens' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l keep-alive -d 'How long Ollama keeps the model loaded' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l think -d 'How much the model reasons first' -r -f -a "auto\t''
on\t''
off\t''
low\t''
medium\t''
high\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l prompt-dir -d 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with' -r -f -a "(__fish_complete_directories)"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l timeout-connect -d 'The most time until a connection stands [default: 10s]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l timeout-first-token -d 'The most time until the first piece of an answer [default: 10m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l timeout-idle -d 'The most time between two pieces of an answer [default: 2m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l timeout-total -d 'The most time of one call, retries included [default: 30m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l retries -d 'How often a call is made again after a fault that may pass [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l tool -d 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l judge-mode -d 'One call for all criteria, or one for each [default: joint]' -r -f -a "joint\t''
separate\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l judge-samples -d 'Ask so often, and take the median [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l judge-score -d 'The score: as the judge writes it, or as its probabilities say [default: verdict]' -r -f -a "verdict\t''
expected\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -s n -l max-iterations -d 'The most drafts to make, the first included [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l threshold -d 'The score that is good enough, 0 to 1 [default: the criteria\'s own, else 0.8]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l min-iterations -d 'The fewest drafts to make, the first included [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l plateau-iterations -d 'Stop after so many revisions in a row that are no gain [default: 2]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l improvement-threshold -d 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l detect-oscillation -d 'Whether to stop where scores go up and down without a trend [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l grey-zone -d 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l adapt -d 'Whether to try another way of revising before a run without progress is given up [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l quality-drop-threshold -d 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l reflect-on-error -d 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l reflect-on-tools -d 'Reflect on the results of these tools only, by the names of their programs, with commas; \'\' for none' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l steps -d 'Whether to write the first draft in steps, an outline and then section by section [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l reflection-interval -d 'With --steps, reflect after every so many sections; 0 for never [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l strategy -d 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)' -r -f -a "hybrid\t''
full_rewrite\t''
targeted_edit\t''
incremental\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l candidates -d 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l max-revision-tokens -d 'The most tokens of one reply that revises' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l include-prior-versions -d 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l include-reflection-history -d 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l select -d 'Which draft is the answer; the one with the highest score by default' -r -f -a "highest_score\t''
latest\t''
first_satisfactory\t''
weighted_recency\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l on-failure -d 'Which draft is the answer where the criteria are not met; by default what --select says' -r -f -a "return_best\t''
return_last\t''
raise\t''"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l max-total-tokens -d 'Stop once so many tokens are used' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l max-cost -d 'Stop once the run has cost so much, by the prices in your configuration' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l max-time -d 'Stop after this time, for example 90s or 10m' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -s o -l output -d 'Write the answer to a file instead of standard output' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l format -d 'What to print' -r -f -a "text\t'The selected draft'
json\t'The result as one JSON object'
ndjson\t'The events of the run, one JSON object a line'
markdown\t'The selected draft and the critique report'"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l report -d 'Write the critique report to a file: JSON if its name ends in .json, else Markdown' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l offline -d 'Fetch nothing: use only models that are on this machine'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l allow-exec -d 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l judge-probe -d 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l judge-always -d 'Ask the judge even where a required criterion is not met'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l no-cache -d 'Judge anew what was judged before'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l no-early-stop -d 'Let every draft be written to its end, even where it can no longer meet a hard check'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l exit-zero -d 'Exit with 0 also where the criteria are not met or a limit was reached'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l stream-deltas -d 'With `--format ndjson`, print the pieces of the answers as they come'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -l no-log -d 'Keep no record of the run'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand revise" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l prompt -d 'What the text was written for: the models see it' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l prompt-file -d 'Read from a file what the text was written for' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l errors -d 'Only mend what stands in this file, in one revision that nobody judges: one issue a line, or JSON as evaluators print it; `-` for standard input' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -s c -l criteria -d 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -s f -l file -d 'Give the model this file as context; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l context -d 'What is known already: message history, facts and procedures, as JSON' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l context-messages -d 'How many of the last messages of the history are used [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l evidence -d 'Look for evidence in this file or folder of code or documents; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l evidence-tokens -d 'The most tokens of evidence that one search adds to a prompt [default: 2000]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -s s -l system -d 'Instructions that hold for the whole run' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -s m -l model -d 'The model, as MODEL or PROVIDER:MODEL' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l judge-model -d 'A different model to judge the drafts' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l stronger-model -d 'A model that takes over where the first makes no progress any more' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l provider -d 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l base-url -d 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`' -r -f
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l temperature -d 'Randomness, 0 to 2; 0 always takes the likeliest token' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l top-p -d 'Choose among the likeliest tokens that together have this probability' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l seed -d 'Makes answers repeatable where the server can' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l max-tokens -d 'The most tokens of one answer' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l num-ctx -d 'The context window to ask Ollama for, in tokens' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l keep-alive -d 'How long Ollama keeps the model loaded' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l think -d 'How much the model reasons first' -r -f -a "auto\t''
on\t''
off\t''
low\t''
medium\t''
high\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l prompt-dir -d 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with' -r -f -a "(__fish_complete_directories)"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l timeout-connect -d 'The most time until a connection stands [default: 10s]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l timeout-first-token -d 'The most time until the first piece of an answer [default: 10m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l timeout-idle -d 'The most time between two pieces of an answer [default: 2m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l timeout-total -d 'The most time of one call, retries included [default: 30m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l retries -d 'How often a call is made again after a fault that may pass [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l tool -d 'Show the writer what this program says, first of the prompt, then of each draft before it is revised; a program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l judge-mode -d 'One call for all criteria, or one for each [default: joint]' -r -f -a "joint\t''
separate\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l judge-samples -d 'Ask so often, and take the median [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l judge-score -d 'The score: as the judge writes it, or as its probabilities say [default: verdict]' -r -f -a "verdict\t''
expected\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -s n -l max-iterations -d 'The most drafts to make, the first included [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l threshold -d 'The score that is good enough, 0 to 1 [default: the criteria\'s own, else 0.8]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l min-iterations -d 'The fewest drafts to make, the first included [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l plateau-iterations -d 'Stop after so many revisions in a row that are no gain [default: 2]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l improvement-threshold -d 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l detect-oscillation -d 'Whether to stop where scores go up and down without a trend [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l grey-zone -d 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l adapt -d 'Whether to try another way of revising before a run without progress is given up [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l quality-drop-threshold -d 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l reflect-on-error -d 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l reflect-on-tools -d 'Reflect on the results of these tools only, by the names of their programs, with commas; \'\' for none' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l steps -d 'Whether to write the first draft in steps, an outline and then section by section [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l reflection-interval -d 'With --steps, reflect after every so many sections; 0 for never [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l strategy -d 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)' -r -f -a "hybrid\t''
full_rewrite\t''
targeted_edit\t''
incremental\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l candidates -d 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l max-revision-tokens -d 'The most tokens of one reply that revises' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l include-prior-versions -d 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l include-reflection-history -d 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l select -d 'Which draft is the answer; the one with the highest score by default' -r -f -a "highest_score\t''
latest\t''
first_satisfactory\t''
weighted_recency\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l on-failure -d 'Which draft is the answer where the criteria are not met; by default what --select says' -r -f -a "return_best\t''
return_last\t''
raise\t''"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l max-total-tokens -d 'Stop once so many tokens are used' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l max-cost -d 'Stop once the run has cost so much, by the prices in your configuration' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l max-time -d 'Stop after this time, for example 90s or 10m' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -s o -l output -d 'Write the answer to a file instead of standard output' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l format -d 'What to print' -r -f -a "text\t'The selected draft'
json\t'The result as one JSON object'
ndjson\t'The events of the run, one JSON object a line'
markdown\t'The selected draft and the critique report'"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l report -d 'Write the critique report to a file: JSON if its name ends in .json, else Markdown' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l offline -d 'Fetch nothing: use only models that are on this machine'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l allow-exec -d 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l judge-probe -d 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l judge-always -d 'Ask the judge even where a required criterion is not met'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l no-cache -d 'Judge anew what was judged before'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l no-early-stop -d 'Let every draft be written to its end, even where it can no longer meet a hard check'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l exit-zero -d 'Exit with 0 also where the criteria are not met or a limit was reached'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l stream-deltas -d 'With `--format ndjson`, print the pieces of the answers as they come'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -l no-log -d 'Keep no record of the run'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand correct" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -s c -l criteria -d 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l evaluator -d 'A single evaluator in a file of its own (YAML, JSON or TOML; `type: schema`, `llm` or `custom`): prints its verdict' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l input-format -d 'What the texts are: with `json`, a JSON text is judged by what it says' -r -f -a "text\t'Any text, judged as it is'
json\t'A JSON value. One that is a text is judged as that text, without quotes and escapes'"
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l prompt -d 'What the texts were written for: the judge sees it' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l prompt-file -d 'Read from a file what the texts were written for' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -s f -l file -d 'Show the judge this file as context; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l context -d 'What is known already: message history, facts and procedures, as JSON' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l context-messages -d 'How many of the last messages of the history are used [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l evidence -d 'Look for evidence in this file or folder of code or documents; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l evidence-tokens -d 'The most tokens of evidence that one search adds to a prompt [default: 2000]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -s s -l system -d 'Instructions that hold for all calls' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l threshold -d 'The score that is good enough, 0 to 1 [default: the criteria\'s own, else 0.8]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -s m -l model -d 'The model, as MODEL or PROVIDER:MODEL' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l judge-model -d 'A different model to judge the drafts' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l stronger-model -d 'A model that takes over where the first makes no progress any more' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l provider -d 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l base-url -d 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`' -r -f
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l temperature -d 'Randomness, 0 to 2; 0 always takes the likeliest token' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l top-p -d 'Choose among the likeliest tokens that together have this probability' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l seed -d 'Makes answers repeatable where the server can' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l max-tokens -d 'The most tokens of one answer' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l num-ctx -d 'The context window to ask Ollama for, in tokens' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l keep-alive -d 'How long Ollama keeps the model loaded' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l think -d 'How much the model reasons first' -r -f -a "auto\t''
on\t''
off\t''
low\t''
medium\t''
high\t''"
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l prompt-dir -d 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with' -r -f -a "(__fish_complete_directories)"
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l timeout-connect -d 'The most time until a connection stands [default: 10s]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l timeout-first-token -d 'The most time until the first piece of an answer [default: 10m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l timeout-idle -d 'The most time between two pieces of an answer [default: 2m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l timeout-total -d 'The most time of one call, retries included [default: 30m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l retries -d 'How often a call is made again after a fault that may pass [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l judge-mode -d 'One call for all criteria, or one for each [default: joint]' -r -f -a "joint\t''
separate\t''"
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l judge-samples -d 'Ask so often, and take the median [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l judge-score -d 'The score: as the judge writes it, or as its probabilities say [default: verdict]' -r -f -a "verdict\t''
expected\t''"
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -s o -l output -d 'Write the answer to a file instead of standard output' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l format -d 'What to print' -r -f -a "text\t'The selected draft'
json\t'The result as one JSON object'
ndjson\t'The events of the run, one JSON object a line'
markdown\t'The selected draft and the critique report'"
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l report -d 'Write the critique report to a file: JSON if its name ends in .json, else Markdown' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l allow-exec -d 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l offline -d 'Fetch nothing: use only models that are on this machine'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l judge-probe -d 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l judge-always -d 'Ask the judge even where a required criterion is not met'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l no-cache -d 'Judge anew what was judged before'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l exit-zero -d 'Exit with 0 also where the criteria are not met or a limit was reached'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l stream-deltas -d 'With `--format ndjson`, print the pieces of the answers as they come'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -l no-log -d 'Keep no record of the run'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand evaluate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -s c -l criteria -d 'The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l evaluator -d 'A single evaluator in a file of its own (YAML, JSON or TOML; `type: schema`, `llm` or `custom`): prints its verdict' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l input-format -d 'What the texts are: with `json`, a JSON text is judged by what it says' -r -f -a "text\t'Any text, judged as it is'
json\t'A JSON value. One that is a text is judged as that text, without quotes and escapes'"
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l prompt -d 'What the texts were written for: the judge sees it' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l prompt-file -d 'Read from a file what the texts were written for' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -s f -l file -d 'Show the judge this file as context; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l context -d 'What is known already: message history, facts and procedures, as JSON' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l context-messages -d 'How many of the last messages of the history are used [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l evidence -d 'Look for evidence in this file or folder of code or documents; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l evidence-tokens -d 'The most tokens of evidence that one search adds to a prompt [default: 2000]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -s s -l system -d 'Instructions that hold for all calls' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l threshold -d 'The score that is good enough, 0 to 1 [default: the criteria\'s own, else 0.8]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -s m -l model -d 'The model, as MODEL or PROVIDER:MODEL' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l judge-model -d 'A different model to judge the drafts' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l stronger-model -d 'A model that takes over where the first makes no progress any more' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l provider -d 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l base-url -d 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`' -r -f
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l temperature -d 'Randomness, 0 to 2; 0 always takes the likeliest token' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l top-p -d 'Choose among the likeliest tokens that together have this probability' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l seed -d 'Makes answers repeatable where the server can' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l max-tokens -d 'The most tokens of one answer' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l num-ctx -d 'The context window to ask Ollama for, in tokens' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l keep-alive -d 'How long Ollama keeps the model loaded' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l think -d 'How much the model reasons first' -r -f -a "auto\t''
on\t''
off\t''
low\t''
medium\t''
high\t''"
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l prompt-dir -d 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with' -r -f -a "(__fish_complete_directories)"
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l timeout-connect -d 'The most time until a connection stands [default: 10s]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l timeout-first-token -d 'The most time until the first piece of an answer [default: 10m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l timeout-idle -d 'The most time between two pieces of an answer [default: 2m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l timeout-total -d 'The most time of one call, retries included [default: 30m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l retries -d 'How often a call is made again after a fault that may pass [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l judge-mode -d 'One call for all criteria, or one for each [default: joint]' -r -f -a "joint\t''
separate\t''"
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l judge-samples -d 'Ask so often, and take the median [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l judge-score -d 'The score: as the judge writes it, or as its probabilities say [default: verdict]' -r -f -a "verdict\t''
expected\t''"
complete -c reflect -n "__fish_reflect_using_subcommand critique" -s o -l output -d 'Write the answer to a file instead of standard output' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l format -d 'What to print' -r -f -a "text\t'The selected draft'
json\t'The result as one JSON object'
ndjson\t'The events of the run, one JSON object a line'
markdown\t'The selected draft and the critique report'"
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l report -d 'Write the critique report to a file: JSON if its name ends in .json, else Markdown' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l allow-exec -d 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l offline -d 'Fetch nothing: use only models that are on this machine'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l judge-probe -d 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l judge-always -d 'Ask the judge even where a required criterion is not met'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l no-cache -d 'Judge anew what was judged before'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l exit-zero -d 'Exit with 0 also where the criteria are not met or a limit was reached'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l stream-deltas -d 'With `--format ndjson`, print the pieces of the answers as they come'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -l no-log -d 'Keep no record of the run'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand critique" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s c -l criteria -d 'The criteria for tasks that name none: a file, or one of the built-in sets' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l prompt -d 'What prompts are made of, as \'Write about {{ topic }}\'; filled in with `vars` and other columns' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l input-format -d 'How tasks are written down; by the name of the file if nothing is said' -r -f -a "jsonl\t'A JSON object a line'
csv\t'Comma-separated values under a line of names'"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l shard -d 'Do only part I of N (I from 0): every N-th task; for arrays of jobs' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s f -l file -d 'Give the models this file as context of every task; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l context -d 'What is known already: message history, facts and procedures, as JSON' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l context-messages -d 'How many of the last messages of the history are used [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l evidence -d 'Look for evidence in this file or folder of code or documents; repeatable' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l evidence-tokens -d 'The most tokens of evidence that one search adds to a prompt [default: 2000]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s s -l system -d 'Instructions that hold for all tasks' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s j -l concurrency -d 'How many tasks at once; `auto`: as many as the server takes without becoming slow' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l requests-per-minute -d 'The most requests a minute' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l tokens-per-minute -d 'The most tokens a minute, prompts and answers together' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s o -l output -d 'Add the rows to this file, instead of writing them to standard output' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l tool -d 'Show the writer what this program says, as `reflect draft` does; repeatable' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s m -l model -d 'The model, as MODEL or PROVIDER:MODEL' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l judge-model -d 'A different model to judge the drafts' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l stronger-model -d 'A model that takes over where the first makes no progress any more' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l provider -d 'The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l base-url -d 'The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`' -r -f
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l temperature -d 'Randomness, 0 to 2; 0 always takes the likeliest token' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l top-p -d 'Choose among the likeliest tokens that together have this probability' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l seed -d 'Makes answers repeatable where the server can' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l max-tokens -d 'The most tokens of one answer' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l num-ctx -d 'The context window to ask Ollama for, in tokens' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l keep-alive -d 'How long Ollama keeps the model loaded' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l think -d 'How much the model reasons first' -r -f -a "auto\t''
on\t''
off\t''
low\t''
medium\t''
high\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l prompt-dir -d 'Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin with' -r -f -a "(__fish_complete_directories)"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l timeout-connect -d 'The most time until a connection stands [default: 10s]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l timeout-first-token -d 'The most time until the first piece of an answer [default: 10m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l timeout-idle -d 'The most time between two pieces of an answer [default: 2m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l timeout-total -d 'The most time of one call, retries included [default: 30m]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l retries -d 'How often a call is made again after a fault that may pass [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l judge-mode -d 'One call for all criteria, or one for each [default: joint]' -r -f -a "joint\t''
separate\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l judge-samples -d 'Ask so often, and take the median [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l judge-score -d 'The score: as the judge writes it, or as its probabilities say [default: verdict]' -r -f -a "verdict\t''
expected\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s n -l max-iterations -d 'The most drafts to make, the first included [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l threshold -d 'The score that is good enough, 0 to 1 [default: the criteria\'s own, else 0.8]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l min-iterations -d 'The fewest drafts to make, the first included [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l plateau-iterations -d 'Stop after so many revisions in a row that are no gain [default: 2]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l improvement-threshold -d 'Stop once as many revisions together raise the score by less than this, 0 to 1 [default: 0.05]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l detect-oscillation -d 'Whether to stop where scores go up and down without a trend [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l grey-zone -d 'Scores that differ by less than this are too close: a judge compares the drafts [default: 0.05]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l adapt -d 'Whether to try another way of revising before a run without progress is given up [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l quality-drop-threshold -d 'Where a score falls by more than this below the best one, reflect on it first; 0 for never [default: 0]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l reflect-on-error -d 'Whether to reflect on replies that are no drafts, and to ask once more [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l reflect-on-tools -d 'Reflect on the results of these tools only, by the names of their programs, with commas; \'\' for none' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l steps -d 'Whether to write the first draft in steps, an outline and then section by section [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l reflection-interval -d 'With --steps, reflect after every so many sections; 0 for never [default: 3]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l strategy -d 'How drafts are revised; by default whichever fits the draft and its issues (`hybrid`)' -r -f -a "hybrid\t''
full_rewrite\t''
targeted_edit\t''
incremental\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l candidates -d 'Write so many drafts for each revision (1 to 8), in different ways, and keep the best; `auto`: 2 after a revision that did not help [default: 1]' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l max-revision-tokens -d 'The most tokens of one reply that revises' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l include-prior-versions -d 'Whether to show each revision the last drafts before, besides the one that it revises [default: false]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l include-reflection-history -d 'Whether to tell each revision what earlier ones have mended and what they tried in vain [default: true]' -r -f -a "true\t''
false\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l select -d 'Which draft is the answer; the one with the highest score by default' -r -f -a "highest_score\t''
latest\t''
first_satisfactory\t''
weighted_recency\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l on-failure -d 'Which draft is the answer where the criteria are not met; by default what --select says' -r -f -a "return_best\t''
return_last\t''
raise\t''"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l max-total-tokens -d 'Begin no more tasks once all together have used so many tokens' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l max-cost -d 'Begin no more tasks once all together have cost so much, by the prices in your configuration' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l max-time -d 'End after this time, for example 90s or 2h; tasks under way are done again by the next call' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l ordered -d 'Write rows in the order of the tasks, not as they are done'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l retry-failed -d 'Do again what failed, could not be judged, or was invalid'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l fail-fast -d 'Begin no more tasks after one that failed, and none at all if a line of a file is bad'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l exit-zero -d 'Exit with 0 also where criteria are not met or a limit was reached'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l no-log -d 'Keep no record of the runs'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l allow-exec -d 'Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read JSON Schemas outside of their folder; let the tools of --tool run'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l offline -d 'Fetch nothing: use only models that are on this machine'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l judge-probe -d 'Try the judge on planted texts first, and trust it less if it cannot tell good from bad'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l judge-always -d 'Ask the judge even where a required criterion is not met'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l no-cache -d 'Judge anew what was judged before'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -l no-early-stop -d 'Let every draft be written to its end, even where it can no longer meet a hard check'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand batch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand history; and not __fish_seen_subcommand_from list show help" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand history; and not __fish_seen_subcommand_from list show help" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand history; and not __fish_seen_subcommand_from list show help" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand history; and not __fish_seen_subcommand_from list show help" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand history; and not __fish_seen_subcommand_from list show help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand history; and not __fish_seen_subcommand_from list show help" -f -a "list" -d 'List runs, the latest first'
complete -c reflect -n "__fish_reflect_using_subcommand history; and not __fish_seen_subcommand_from list show help" -f -a "show" -d 'Show a run'
complete -c reflect -n "__fish_reflect_using_subcommand history; and not __fish_seen_subcommand_from list show help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from list" -s n -l limit -d 'How many' -r
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from list" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from list" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from show" -l draft -d 'Print only the draft with this number' -r
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from show" -l format -d 'What to print' -r -f -a "text\t'The selected draft'
json\t'The result as one JSON object'
ndjson\t'The events of the run, one JSON object a line'
markdown\t'The selected draft and the critique report'"
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from show" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from show" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from show" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from show" -l best -d 'Print only the draft that the run selected'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from help" -f -a "list" -d 'List runs, the latest first'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a run'
complete -c reflect -n "__fish_reflect_using_subcommand history; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -f -a "list" -d 'List the sets that can be asked for by name'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -f -a "show" -d 'Show a set with its defaults filled in'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -f -a "check" -d 'Say what is wrong with criteria files, and where; no model is asked'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -f -a "init" -d 'Write a criteria file to begin with'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -f -a "schema" -d 'Print the JSON Schema of criteria files, for editors'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and not __fish_seen_subcommand_from list show check init schema help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from list" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from list" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from show" -l format -d 'What to print' -r -f -a "text\t'For people'
json\t'One JSON object'
toml\t'A criteria file'"
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from show" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from show" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from show" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from check" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from check" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from check" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from check" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from init" -l task-type -d 'What kind of text is to be measured: code, writing, analysis or reasoning' -r -f -a "code\t''
writing\t''
analysis\t''
reasoning\t''"
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from init" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from init" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from init" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from init" -l force -d 'Replace an existing file'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from schema" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from schema" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from schema" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from schema" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the sets that can be asked for by name'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from help" -f -a "show" -d 'Show a set with its defaults filled in'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from help" -f -a "check" -d 'Say what is wrong with criteria files, and where; no model is asked'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from help" -f -a "init" -d 'Write a criteria file to begin with'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from help" -f -a "schema" -d 'Print the JSON Schema of criteria files, for editors'
complete -c reflect -n "__fish_reflect_using_subcommand criteria; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -f -a "list" -d 'List the models that can be used'
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -f -a "pull" -d 'Fetch an embedded model'
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -f -a "path" -d 'Print the folder that embedded models are kept in'
complete -c reflect -n "__fish_reflect_using_subcommand models; and not __fish_seen_subcommand_from list pull path help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from list" -l provider -d 'Only those of this provider' -r
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from list" -l base-url -d 'The address of the server' -r -f
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from list" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from list" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from list" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from list" -l json -d 'Print JSON'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from list" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from pull" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from pull" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from pull" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from pull" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from pull" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from path" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from path" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from path" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from path" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from help" -f -a "list" -d 'List the models that can be used'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from help" -f -a "pull" -d 'Fetch an embedded model'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from help" -f -a "path" -d 'Print the folder that embedded models are kept in'
complete -c reflect -n "__fish_reflect_using_subcommand models; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -f -a "path" -d 'Print where the configuration file is'
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -f -a "show" -d 'Print the settings in force'
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -f -a "prompts" -d 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`'
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -f -a "init" -d 'Write a configuration file with every setting explained'
complete -c reflect -n "__fish_reflect_using_subcommand config; and not __fish_seen_subcommand_from path show prompts init help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from path" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from path" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from path" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from path" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from path" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from show" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from show" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from show" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from show" -l origin -d 'Say where each value comes from'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from show" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from prompts" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from prompts" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from prompts" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from prompts" -l force -d 'Replace existing files'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from prompts" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from prompts" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from init" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from init" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from init" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from init" -l force -d 'Replace an existing file'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from init" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from init" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "path" -d 'Print where the configuration file is'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "show" -d 'Print the settings in force'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "prompts" -d 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "init" -d 'Write a configuration file with every setting explained'
complete -c reflect -n "__fish_reflect_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand completions" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand completions" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand completions" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand completions" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand completions" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand man" -l out-dir -d 'Write a page for every command into this folder' -r -f -a "(__fish_complete_directories)"
complete -c reflect -n "__fish_reflect_using_subcommand man" -l config -d 'Use this configuration file instead of the user\'s own' -r -F
complete -c reflect -n "__fish_reflect_using_subcommand man" -l profile -d 'Use the settings of this profile of the configuration file' -r
complete -c reflect -n "__fish_reflect_using_subcommand man" -l color -d 'When to use colours' -r -f -a "auto\t'Where standard error is a terminal, unless `NO_COLOR` is set'
always\t'Always'
never\t'Never'"
complete -c reflect -n "__fish_reflect_using_subcommand man" -s q -l quiet -d 'Say nothing but errors on standard error'
complete -c reflect -n "__fish_reflect_using_subcommand man" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "draft" -d 'Write a draft, judge it, and revise it until it meets the criteria'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "revise" -d 'Revise a text until it meets the criteria, or mend named errors'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "evaluate" -d 'Judge texts by criteria, without writing anything: a gate for CI'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "batch" -d 'Do many tasks, several at once: a task a line in, a row a task out, resumable'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "history" -d 'Look at earlier runs'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "criteria" -d 'List, show, check and create criteria'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "models" -d 'List and fetch models'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "config" -d 'Show or create the configuration'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "completions" -d 'Print the completion script of a shell'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "man" -d 'Print the manual page, or write all of them to a folder'
complete -c reflect -n "__fish_reflect_using_subcommand help; and not __fish_seen_subcommand_from draft revise evaluate batch history criteria models config completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from history" -f -a "list" -d 'List runs, the latest first'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from history" -f -a "show" -d 'Show a run'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from criteria" -f -a "list" -d 'List the sets that can be asked for by name'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from criteria" -f -a "show" -d 'Show a set with its defaults filled in'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from criteria" -f -a "check" -d 'Say what is wrong with criteria files, and where; no model is asked'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from criteria" -f -a "init" -d 'Write a criteria file to begin with'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from criteria" -f -a "schema" -d 'Print the JSON Schema of criteria files, for editors'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from models" -f -a "list" -d 'List the models that can be used'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from models" -f -a "pull" -d 'Fetch an embedded model'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from models" -f -a "path" -d 'Print the folder that embedded models are kept in'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "path" -d 'Print where the configuration file is'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "show" -d 'Print the settings in force'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "prompts" -d 'Write the prompt templates into a folder, to be changed and used with `--prompt-dir`'
complete -c reflect -n "__fish_reflect_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "init" -d 'Write a configuration file with every setting explained'
