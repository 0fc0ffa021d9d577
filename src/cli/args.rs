//! What can be typed. Nothing here decides anything.

mod bench;
mod memory;
mod worker;

use std::path::{Path, PathBuf};

use crate::batch::durable::EngineAddress;
use crate::batch::{Concurrency, Pace, Shard};
use clap::builder::PossibleValuesParser;
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::ArgValueCompleter;

pub(super) use self::bench::{BenchArgs, BenchCommand, BenchFormat, JudgeBenchArgs};
pub(super) use self::memory::{
    LearnArgs, MemoryAddCommand, MemoryCommand, MemoryKind, MemoryListArgs,
};
pub(super) use self::worker::WorkerArgs;
use super::complete;
use crate::criteria::BUILTIN_NAMES;
use crate::model::Think;
use crate::types::{JudgeSettings, LoopSettings, Range, ReflectorSettings, word};

/// Drafts, judges and revises a text with a language model until it meets your criteria.
#[derive(Debug, Parser)]
#[command(
    name = "reflect",
    version,
    long_version = env!("REFLECT_VERSION"),
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Try `reflect draft \"Write a haiku about Rust\" -c writing`, or `reflect draft --help`.",
    after_long_help = LONG_HELP
)]
pub(super) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,

    /// What is set for all commands.
    #[command(flatten)]
    pub global: GlobalArgs,
}

const LONG_HELP: &str = "\
Examples:
  reflect draft \"Explain Rust's ownership to a C programmer\" -c writing
  git diff --cached | reflect draft \"Write the commit message\" -c commit.toml | git commit -F -
  reflect draft - -c blog.toml < brief.md > post.md
  reflect draft \"A function that parses ISO dates\" -c code -m ollama:qwen3 -n 5
  reflect revise README.md -c readme.toml -o README.md
  reflect evaluate README.md -c readme.toml

Exit codes:
  0    the criteria are met, or the user accepted
  1    a failure of ours or of the machine (I/O, internal)
  2    wrong usage, configuration or criteria file
  3    finished, criteria not met: the best draft is printed (see --on-failure)
  4    the provider failed: network, key, model missing; the best draft so far is printed
  5    stopped by a limit on tokens, time or cost: the best draft so far is printed
  6    no verdict could be had: the judge was unusable, or a check failed; the last draft is printed
  130  interrupted; `reflect history resume` goes on with the run

Standard output carries the draft and nothing else; progress and errors go to standard error.
The run log stays on this machine. There is no telemetry and no update check.";

/// What is set for all commands.
#[derive(Debug, Clone, Args)]
pub(super) struct GlobalArgs {
    /// Use this configuration file instead of the user's own
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Global options")]
    pub config: Option<PathBuf>,

    /// Use the settings of this profile of the configuration file
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        help_heading = "Global options",
        add = ArgValueCompleter::new(complete::profiles)
    )]
    pub profile: Option<String>,

    /// When to use colours
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        help_heading = "Global options"
    )]
    pub color: ColorWhen,

    /// Say nothing but errors on standard error
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub quiet: bool,

    /// Say what each model call took; twice (-vv), also what was asked and answered
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet", help_heading = "Global options")]
    pub verbose: u8,

    /// Show on standard error what models reason before they answer
    #[arg(
        long,
        global = true,
        hide_short_help = true,
        conflicts_with = "quiet",
        help_heading = "Global options"
    )]
    pub show_reasoning: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorWhen {
    /// Where standard error is a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a draft, judge it, and revise it until it meets the criteria
    Draft(Box<DraftArgs>),
    /// Revise a text until it meets the criteria, or fix named errors
    #[command(visible_alias = "correct")]
    Revise(Box<ReviseArgs>),
    /// Judge texts by criteria, without writing anything: a gate for CI
    #[command(visible_alias = "critique")]
    Evaluate(Box<EvaluateArgs>),
    /// Run a workflow: a YAML file of nodes that generate, evaluate, correct, and loop
    Run(Box<WorkflowArgs>),
    /// Do many tasks, several at once: a task a line in, a row a task out, resumable
    Batch(Box<BatchArgs>),
    /// Measure whether the loop helps: the same tasks written in several ways at the same cost
    Bench(Box<BenchArgs>),
    /// Do the tasks that batches hand in at a Restate server, on any number of machines
    Worker(WorkerArgs),
    /// Judge the outcome of a plan that something else ran: what failed, why, and what helps
    Assess(Box<AssessArgs>),
    /// Look at earlier runs, and go on with one
    #[command(subcommand, arg_required_else_help = true)]
    History(HistoryCommand),
    /// Look at what is known for later runs, and learn from earlier ones
    #[command(subcommand, arg_required_else_help = true)]
    Memory(MemoryCommand),
    /// List, show, check and create criteria
    #[command(subcommand, arg_required_else_help = true)]
    Criteria(CriteriaCommand),
    /// List and fetch models
    #[command(subcommand, arg_required_else_help = true)]
    Models(ModelsCommand),
    /// Show, create and edit the configuration
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Find out whether everything is as a run needs it, and what the model can do
    Doctor(Box<DoctorArgs>),
    /// Print the completion script of a shell
    #[command(after_help = "\
Examples:
  reflect completions bash > ~/.local/share/bash-completion/completions/reflect
  reflect completions zsh > ~/.zfunc/_reflect
  reflect completions fish > ~/.config/fish/completions/reflect.fish

The script asks `reflect` what may come next: models, criteria, runs and profiles are offered as \
they are at that moment. Nothing is asked over the network.")]
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Print the manual page, or write all of them to a folder
    #[command(after_help = "\
Examples:
  reflect man | man -l -
  reflect man --out-dir ~/.local/share/man/man1
  reflect man --markdown > docs/cli.md")]
    Man {
        /// Write a page for every command into this folder
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out_dir: Option<PathBuf>,
        /// Print the reference of all commands in Markdown
        #[arg(long, conflicts_with = "out_dir")]
        markdown: bool,
    },
}

/// `reflect draft`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reflect draft \"Explain Rust's ownership to a C programmer\" -c writing
  git diff --cached | reflect draft \"Write the commit message\" -c commit.toml | git commit -F -
  reflect draft \"A function that parses ISO dates\" -c code --extract > dates.py
  reflect draft - -c blog.toml < brief.md --dry-run

With both a prompt and piped standard input, the input is given to the model as context.")]
pub(super) struct DraftArgs {
    /// What is to be written; `-` reads it from standard input
    #[arg(value_name = "PROMPT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// Read the prompt from a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub prompt_file: Option<PathBuf>,

    /// Do not read standard input even if it is piped
    #[arg(long, hide_short_help = true, help_heading = "Input")]
    pub ignore_stdin: bool,

    /// How the run goes, and what it is given.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What is about judging, or about more than one revision: none of it means anything with `--errors`.
const IGNORED_BY_ERRORS: [&str; 20] = [
    "JudgeSettings",
    "judge_model",
    "stronger_model",
    "interactive",
    "prefetch",
    "max_iterations",
    "min_iterations",
    "threshold",
    "plateau_iterations",
    "improvement_threshold",
    "detect_oscillation",
    "grey_zone",
    "adapt",
    "quality_drop_threshold",
    "steps",
    "reflection_interval",
    "candidates",
    "include_prior_versions",
    "include_reflection_history",
    "select",
];

/// `reflect revise`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reflect revise post.md -c blog.toml -o post.md
  pandoc notes.docx -t plain | reflect revise -c writing --prompt \"Minutes of the board meeting\"
  reflect evaluate a.json --evaluator spec.yaml --format json | reflect revise a.json --errors -

The text is draft 1. If it meets the criteria, it is printed as it is, and nothing is written.")]
pub(super) struct ReviseArgs {
    /// The text to revise; `-` or none for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub text: Option<PathBuf>,

    /// What the text was written for: the models see it
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// Read from a file what the text was written for
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub prompt_file: Option<PathBuf>,

    /// Fix only the issues in this file, in a single revision without evaluation: one issue per line, or JSON as
    /// evaluators print it; `-` for standard input
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = IGNORED_BY_ERRORS)]
    pub errors: Option<PathBuf>,

    /// How the run goes, and what it is given.
    #[command(flatten)]
    pub run: RunArgs,
}

/// What all runs of the loop take.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning
    #[arg(short, long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
    pub criteria: Option<String>,

    /// Give the model this file as context; repeatable
    #[arg(short, long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub files: Vec<PathBuf>,

    /// What the models are given to know.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,

    /// Tell the models what is known from earlier runs (`reflect memory`), and measure whether it helps
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", help_heading = "Input")]
    pub memory: Option<bool>,

    /// Instructions that hold for the whole run
    #[arg(
        short,
        long,
        value_name = "TEXT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub system: Option<String>,

    /// Which model writes and judges, and how it is asked.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read
    /// JSON Schemas outside of their folder; let the tools of --tool run
    #[arg(long, hide_short_help = true, help_heading = "Criteria")]
    pub allow_exec: bool,

    /// Show the writer what this program says, first of the prompt, then of each draft before it is revised; a
    /// program with its arguments, in which `{draft_file}` stands for a file with the draft; repeatable
    #[arg(
        long = "tool",
        value_name = "COMMAND",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub tools: Vec<String>,

    /// How the judge is asked.
    #[command(flatten)]
    pub judge: JudgeSettings,

    /// How the loop goes.
    #[command(flatten)]
    pub flow: LoopSettings,

    /// What ends it early.
    #[command(flatten, next_help_heading = "Loop")]
    pub limits: LimitArgs,

    /// What is asked at the terminal.
    #[command(flatten)]
    pub asking: AskingArgs,

    /// Show on standard error how each draft differs from the one that it revises
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub diff: bool,

    /// Print only what stands in the first fenced code block of the answer; all of it if there is none
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub extract: bool,

    /// Where the answer goes, and how.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `reflect evaluate`.
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  reflect evaluate README.md -c readme.toml
  reflect evaluate docs/*.md -c writing --format markdown > report.md
  git log -1 --format=%B | reflect evaluate -c commit.toml
  reflect evaluate profile.json --evaluator profile-schema.json

Exit codes: 0 all texts meet the criteria, 3 one does not, 6 one could not be judged.",
    mut_arg("stronger_model", |arg| arg.hide(true)),
)]
pub(super) struct EvaluateArgs {
    /// The texts to judge; `-` or none for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub texts: Vec<PathBuf>,

    /// The criteria: a file, or one of the built-in sets code, writing, analysis, reasoning
    #[arg(short, long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
    pub criteria: Option<String>,

    /// A single evaluator in a file of its own (YAML, JSON or TOML; `type: schema`, `llm` or `custom`):
    /// prints its verdict
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "criteria"
    )]
    pub evaluator: Option<PathBuf>,

    /// What the texts are: with `json`, a JSON text is judged by what it says
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub input_format: InputFormat,

    /// What the texts were written for: the judge sees it
    #[arg(long, value_name = "TEXT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// Read from a file what the texts were written for
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub prompt_file: Option<PathBuf>,

    /// Show the judge this file as context; repeatable
    #[arg(short, long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub files: Vec<PathBuf>,

    /// What the models are given to know.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,

    /// Instructions that hold for all calls
    #[arg(
        short,
        long,
        value_name = "TEXT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub system: Option<String>,

    /// The score that is good enough, 0 to 1 [default: the criteria's own, else 0.8]
    #[arg(long, value_name = "SCORE", value_parser = parse_share)]
    pub threshold: Option<f64>,

    /// Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read
    /// JSON Schemas outside of their folder
    #[arg(long, hide_short_help = true, help_heading = "Criteria")]
    pub allow_exec: bool,

    /// Which model judges, and how it is asked.
    #[command(flatten)]
    pub model: ModelArgs,

    /// How the judge is asked.
    #[command(flatten)]
    pub judge: JudgeSettings,

    /// Where the report goes, and how.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `reflect run`.
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  reflect run profile.yaml --input '{\"request\": \"a profile of Ada\"}'
  reflect run article.yaml --input @brief.json --format json -o article.json
  reflect run code.yaml --allow-exec --fail-on-state tests.success=false
  reflect run profile.yaml --check

A model that is named here goes before the file's own.
Exit codes: 0 done, 3 the last loop's draft does not meet its criteria (see `on_failure` in the file).",
    mut_arg("stronger_model", |arg| arg.hide(true)),
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct WorkflowArgs {
    /// The workflow
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// What it is given: a JSON object, or `@FILE` with one; `@-` for standard input
    #[arg(short, long, value_name = "JSON|@FILE")]
    pub input: Option<String>,

    /// Only say what is wrong with the file, and where; nothing runs
    #[arg(long, conflicts_with = "dry_run")]
    pub check: bool,

    /// Only say what would be done; nothing runs
    #[arg(long)]
    pub dry_run: bool,

    /// Reflect on the result of this node, which has the trigger `manual` in the file; repeatable
    #[arg(long, value_name = "NODE")]
    pub reflect: Vec<String>,

    /// Exit with 3 if the state has this value in the end, for example `success=false`; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub fail_on_state: Vec<String>,

    /// Let the workflow run programs on this machine (commands, and code in Python and Prolog), and read JSON
    /// Schemas outside of its folder
    #[arg(long)]
    pub allow_exec: bool,

    /// Which models are asked, and how.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Stop a loop once so many tokens are used
    #[arg(
        long,
        value_name = "N",
        hide_short_help = true,
        help_heading = "Limits"
    )]
    pub max_total_tokens: Option<u64>,

    /// Stop a loop once it has cost so much, by the prices in your configuration
    #[arg(
        long,
        value_name = "X",
        hide_short_help = true,
        help_heading = "Limits"
    )]
    pub max_cost: Option<f64>,

    /// Stop a loop after this time, for example 90s or 10m
    #[arg(
        long,
        value_name = "TIME",
        hide_short_help = true,
        help_heading = "Limits"
    )]
    pub max_time: Option<String>,

    /// Write the answer to a file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// What to print
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub format: WorkflowFormat,

    /// Exit with 0 also where the criteria are not met or a limit was reached
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub exit_zero: bool,

    /// Keep no record of the loops
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub no_log: bool,
}

/// What a workflow prints on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WorkflowFormat {
    /// What the last node gave.
    Text,
    /// The result with the whole state, as one JSON object.
    Json,
    /// The events, one JSON object a line.
    Ndjson,
}

/// `reflect doctor`.
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  reflect doctor
  reflect doctor -m ollama:qwen3:8b
  reflect doctor --base-url http://127.0.0.1:8080/v1 --no-calls
  reflect doctor --json | jq '.checks[] | select(.level != \"ok\")'

It asks each model that a run would use two small questions, and says so first; --no-calls skips that.",
    after_long_help = DOCTOR_HELP
)]
pub(super) struct DoctorArgs {
    /// Ask the models nothing: do only what costs nothing
    #[arg(long)]
    pub no_calls: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Which models a run would use, and how they are asked.
    #[command(flatten)]
    pub model: ModelArgs,
}

const DOCTOR_HELP: &str = "\
Examples:
  reflect doctor
  reflect doctor -m ollama:qwen3:8b
  reflect doctor --base-url http://127.0.0.1:8080/v1 --no-calls
  reflect doctor --json | jq '.checks[] | select(.level != \"ok\")'

It asks each model that a run would use two small questions, and says so first; --no-calls skips that.

Signs:
  ✓  as it should be
  ·  good to know
  !  a run works, but not as well as it could
  ✗  a run would fail

With --json, one object: schema_version, well, exit_code, and checks, a list of objects: area \
(configuration, criteria, storage, programs, model), subject (for a model its name and what it does), \
check, level (ok, note, warning, failed), finding, advice (null if there is none), and measured, the \
figures: latency_ms, models, context_window, num_ctx, first_piece_ms, tokens_per_second, \
reasoning_characters, prompt_tokens, cached_tokens. What was not measured is not there.

Exit codes: 0 a run would work, 1 its record cannot be kept, 2 the configuration or the criteria are wrong, \
4 the provider failed.";

/// `reflect assess`.
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  reflect assess nightly.json
  reflect assess nightly.json --min-success-rate 0.95 --format markdown > report.md
  my-runner --json | reflect assess - --llm -m ollama:qwen3:8b
  reflect assess --schema > episode.schema.json

FILE has a plan and the results of its tasks:
  {\"plan\": {\"id\": \"nightly\", \"tasks\": [{\"id\": \"fetch\", \"tool\": \"http\", \"expected_seconds\": 5}]},
   \"results\": [{\"task_id\": \"fetch\", \"status\": \"failed\", \"error\": \"timed out\", \"seconds\": 30}]}

Exit codes: 0 the plan is a success, 3 it is not, 2 the file is wrong.",
    mut_arg("stronger_model", |arg| arg.hide(true)),
)]
pub(super) struct AssessArgs {
    /// The plan and its results, as JSON; `-` or none for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// Print the JSON Schema of FILE, and read nothing
    #[arg(long, conflicts_with = "file")]
    pub schema: bool,

    /// When the plan is a success.
    #[command(flatten)]
    pub reflector: ReflectorSettings,

    /// Let a model add suggestions, in one call; the verdict is made by rules all the same
    #[arg(long, help_heading = "Model")]
    pub llm: bool,

    /// Which model suggests, and how it is asked.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Write the verdict to a file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// What to print
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub format: AssessFormat,

    /// Exit with 0 also where the plan is no success
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub exit_zero: bool,
}

/// How the verdict on a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum AssessFormat {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// For a pull request or an issue.
    Markdown,
}

/// `reflect batch`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(
    after_help = "\
Examples:
  reflect batch tasks.jsonl -c blog.toml -o results.jsonl
  reflect batch topics.csv -c writing --prompt 'Explain {{ topic }} to a child' -o out.jsonl
  reflect batch tasks.jsonl -c blog.toml -o results.jsonl --retry-failed
  jq -c '{id: .slug, prompt: .brief}' posts.json | reflect batch - -c blog.toml > out.jsonl

The same command again goes on where the last one ended; what has a row in --output is done.",
    after_long_help = BATCH_HELP,
    mut_arg("max_total_tokens", |arg| arg.help("Begin no more tasks once all together have used so many tokens")),
    mut_arg("max_cost", |arg| arg.help("Begin no more tasks once all together have cost so much, by the prices in your configuration")),
    mut_arg("max_time", |arg| arg.help("End after this time, for example 90s or 2h; tasks under way are done again by the next call"))
)]
pub(super) struct BatchArgs {
    /// The tasks: a JSON object a line, or CSV under a line of names; `-` for standard input
    #[arg(value_name = "TASKS", value_hint = ValueHint::FilePath, required = false, required_unless_present = "cancel", default_value_if("cancel", "true", "-"))]
    pub tasks: PathBuf,

    /// The criteria for tasks that name none: a file, or one of the built-in sets
    #[arg(short, long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
    pub criteria: Option<String>,

    /// What prompts are made of, as 'Write about {{ topic }}'; filled in with `vars` and other columns
    #[arg(long, value_name = "TEMPLATE", help_heading = "Input")]
    pub prompt: Option<String>,

    /// How tasks are written down; by the name of the file if nothing is said
    #[arg(
        long,
        value_name = "FORMAT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub input_format: Option<TasksFormat>,

    /// Do only part I of N (I from 0): every N-th task; for arrays of jobs
    #[arg(long, value_name = "I/N", help_heading = "Input")]
    pub shard: Option<Shard>,

    /// Have workers do the tasks (`reflect worker`), over a Restate server: `restate://HOST[:PORT][/NAME]`. A task that
    /// was handed in before under the same NAME is not done again
    #[arg(
        long,
        value_name = "URL",
        hide_short_help = true,
        help_heading = "Many machines"
    )]
    pub engine: Option<EngineAddress>,

    /// The URL of the server's admin API [default: port 9070 of its host]
    #[arg(
        long,
        value_name = "URL",
        requires = "engine",
        hide_short_help = true,
        help_heading = "Many machines"
    )]
    pub admin: Option<String>,

    /// Cancel the tasks that were handed in under the NAME of --engine, and do nothing else
    #[arg(
        long,
        requires = "engine",
        hide_short_help = true,
        help_heading = "Many machines"
    )]
    pub cancel: bool,

    /// Let somebody outside decide after each draft how its task goes on: the address of each task is said, and takes
    /// the decision (see docs/scale.md)
    #[arg(
        long,
        requires = "engine",
        hide_short_help = true,
        help_heading = "Many machines"
    )]
    pub await_decisions: bool,

    /// Give the models this file as context of every task; repeatable
    #[arg(short, long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Input")]
    pub files: Vec<PathBuf>,

    /// What the models are given to know.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,

    /// Tell the models what earlier runs taught, and measure whether it helps
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", hide_possible_values = true, help_heading = "Input")]
    pub memory: Option<bool>,

    /// Instructions that hold for all tasks
    #[arg(
        short,
        long,
        value_name = "TEXT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub system: Option<String>,

    /// How many tasks at once; `auto`: as many as the server takes without becoming slow
    #[arg(
        short = 'j',
        long,
        value_name = "N|auto",
        default_value = "auto",
        help_heading = "Pace"
    )]
    pub concurrency: Concurrency,

    /// How fast requests are made.
    #[command(flatten)]
    pub rates: RateArgs,

    /// Add the rows to this file, instead of writing them to standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Write rows in the order of the tasks, not as they are done
    #[arg(long, help_heading = "Output")]
    pub ordered: bool,

    /// Do again what failed, could not be judged, or was invalid
    #[arg(long, requires = "output", help_heading = "Output")]
    pub retry_failed: bool,

    /// Try a failed task up to N times more, in another way, where that may help
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10), default_value = "0", hide_default_value = true, help_heading = "Output")]
    pub replan: u32,

    /// Begin no more tasks after one that failed, and none at all if a line of a file is bad
    #[arg(long, help_heading = "Output")]
    pub fail_fast: bool,

    /// Exit with 0 also where criteria are not met or a limit was reached
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub exit_zero: bool,

    /// Keep no record of the runs
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub no_log: bool,

    /// What its loops are made of.
    #[command(flatten)]
    pub loops: LoopsArgs,
}

/// How fast the requests of many tasks are made.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pace")]
pub(super) struct RateArgs {
    /// The most requests a minute
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_minute: Option<u32>,

    /// The most tokens a minute, prompts and answers together
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens_per_minute: Option<u32>,
}

impl RateArgs {
    /// This pace, with so many tasks at once.
    pub(super) fn with(&self, concurrency: Concurrency) -> Pace {
        Pace {
            concurrency,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
        }
    }
}

/// What the loops of many tasks are made of, whatever command has the tasks.
#[derive(Debug, Default, Args)]
pub(super) struct LoopsArgs {
    /// Let the criteria run programs on this machine (commands, and scripts in Python and Prolog), and read
    /// JSON Schemas outside of their folder; let the tools of --tool run
    #[arg(long, hide_short_help = true, help_heading = "Criteria")]
    pub allow_exec: bool,

    /// Show the writer what this program says, as `reflect draft` does; repeatable
    #[arg(
        long = "tool",
        value_name = "COMMAND",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub tools: Vec<String>,

    /// Which model writes and judges, and how it is asked.
    #[command(flatten)]
    pub model: ModelArgs,

    /// How the judge is asked.
    #[command(flatten)]
    pub judge: JudgeSettings,

    /// How the loop goes.
    #[command(flatten)]
    pub flow: LoopSettings,

    /// What ends all of them together early.
    #[command(flatten, next_help_heading = "Loop")]
    pub limits: LimitArgs,
}

/// Tasks, and what their loops are made of, whatever command has the tasks.
#[derive(Clone, Copy)]
pub(super) struct TasksArgs<'a> {
    /// The criteria of tasks that name none.
    pub criteria: Option<&'a str>,
    /// The file of the tasks. Criteria that a task names stay inside its folder.
    pub tasks: &'a Path,
    pub knowledge: &'a KnowledgeArgs,
    pub memory: Option<bool>,
    pub loops: &'a LoopsArgs,
    pub no_log: bool,
}

impl BatchArgs {
    /// Its tasks, and what their loops are made of.
    pub(super) fn tasks_args(&self) -> TasksArgs<'_> {
        TasksArgs {
            criteria: self.criteria.as_deref(),
            tasks: &self.tasks,
            knowledge: &self.knowledge,
            memory: self.memory,
            loops: &self.loops,
            no_log: self.no_log,
        }
    }
}

const BATCH_HELP: &str = "\
A task:
  {\"prompt\": \"…\", \"id\": \"…\", \"context\": \"…\", \"criteria\": \"FILE|NAME\" or {…}, \"vars\": {…}}
  Only `prompt` is needed, and not even that with --prompt. Without an id, a task's line is its id. In CSV every \
other column is one of `vars`. A prompt whose line has `vars` may name them: {{name}}.

A row:
  {\"id\", \"line\", \"status\", \"exit_code\", \"output\", \"score\", \"convergence_reason\", \"run_id\", \
\"attempts\", \"iterations_used\", \"token_usage\", \"cost\", \"execution_time\", \"error\", \"error_category\"}
  Every id has exactly one row. What is not known is null.
  status: met, not_met, stopped (a limit of the criteria file), unjudged, failed, invalid (no task, or its criteria \
cannot be used).
  error_category: timeout, permission, not_found, network, validation, resource, execution.
  With --replan, a task that was tried again has `replanned`: for each earlier attempt run_id, error, \
error_category, execution_time, and what was `adjusted` for the next one.

At the end the reflector judges the batch as a plan (`reflect assess`, `[reflector]` in the configuration), on \
standard error. --replan tries again after failures of the categories timeout, not_found, network and resource: the \
writer receives advice, long revisions become edits, the model of --stronger-model takes over. With --memory, \
what failures and runs of the batch teach is kept for later ones (`reflect memory list`).

Examples:
  reflect batch tasks.jsonl -c blog.toml -o results.jsonl
  reflect batch topics.csv -c writing --prompt 'Explain {{ topic }} to a child' -o out.jsonl
  reflect batch tasks.jsonl -c blog.toml -o results.jsonl --retry-failed
  reflect batch tasks.jsonl -o out.$SLURM_ARRAY_TASK_ID.jsonl --shard $SLURM_ARRAY_TASK_ID/16
  reflect batch tasks.jsonl -c blog.toml -m ollama:qwen3:8b -o out.jsonl --engine restate://queue

The same command again goes on where the last one ended: what has a row in the file of --output is done. Ctrl-C \
finishes what is under way; a second one ends at once, and loses only that. A failure that all tasks would meet \
(key, credit, model, server) stops the batch, and no task fails for it. -v tells nothing of single calls: \
`reflect history show RUN_ID --format ndjson` has those of a task.

Exit codes: that of the worst row or of what stopped the batch; from the worst to the best: 130 interrupted, 1 a \
failure of this machine, 4 the provider failed, 2 invalid, 6 unjudged, 5 a limit, 3 not met, 0 all met.";

/// How tasks are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TasksFormat {
    /// A JSON object a line.
    Jsonl,
    /// Comma-separated values under a line of names.
    Csv,
}

/// What the models are given to know.
#[derive(Debug, Default, Args)]
pub(super) struct KnowledgeArgs {
    /// What is known already: message history, facts and procedures, as JSON
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Input")]
    pub context: Option<PathBuf>,

    /// How many of the last messages of the history are used [default: 3]
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Input")]
    pub context_messages: Option<u32>,

    /// Look for evidence in this file or folder of code or documents; repeatable
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, help_heading = "Input")]
    pub evidence: Vec<PathBuf>,

    /// The most tokens of evidence that one search adds to a prompt [default: 2000]
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u32).range(100..), help_heading = "Input")]
    pub evidence_tokens: Option<u32>,
}

/// Which model writes and judges, and how it is asked.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model")]
pub(super) struct ModelArgs {
    /// The model, as MODEL or PROVIDER:MODEL
    #[arg(short, long, add = ArgValueCompleter::new(complete::models))]
    pub model: Option<String>,

    /// A different model to judge the drafts
    #[arg(long, value_name = "MODEL", add = ArgValueCompleter::new(complete::models))]
    pub judge_model: Option<String>,

    /// A model that takes over where the first makes no progress any more
    #[arg(long, value_name = "MODEL", hide_short_help = true, add = ArgValueCompleter::new(complete::models))]
    pub stronger_model: Option<String>,

    /// The provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::providers))]
    pub provider: Option<String>,

    /// The address of an OpenAI-compatible server, or of Ollama with `--provider ollama`; its key is in
    /// `REFLECT_API_KEY`
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    pub base_url: Option<String>,

    /// Randomness, 0 to 2; 0 always takes the likeliest token
    #[arg(long, value_name = "T", hide_short_help = true)]
    pub temperature: Option<f64>,

    /// Choose among the likeliest tokens that together have this probability
    #[arg(long, value_name = "P", hide_short_help = true)]
    pub top_p: Option<f64>,

    /// Make answers repeatable where the server can
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,

    /// The context window to ask Ollama for, in tokens
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub num_ctx: Option<u64>,

    /// How long Ollama keeps the model loaded: `15m`, seconds, or -1 for always
    #[arg(
        long,
        value_name = "TIME",
        hide_short_help = true,
        allow_hyphen_values = true
    )]
    pub keep_alive: Option<String>,

    /// How much the model reasons first
    #[arg(long, value_name = "HOW", hide_short_help = true, value_parser = word::<Think>(&["auto", "on", "off", "low", "medium", "high"]))]
    pub think: Option<Think>,

    /// Ask by the templates in this folder, where they are there; `reflect config prompts` writes some to begin
    /// with
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub prompt_dir: Option<PathBuf>,

    /// Fetch nothing: use only models that are on this machine
    #[arg(long, hide_short_help = true)]
    pub offline: bool,

    /// Let criteria, workflows and a project's configuration choose models of other providers, and download weights
    #[arg(long, hide_short_help = true)]
    pub allow_models: bool,

    /// The limits of a call.
    #[command(flatten)]
    pub limits: CallLimitArgs,
}

/// The limits of a call.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model")]
pub(super) struct CallLimitArgs {
    /// The most tokens of one answer
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub max_tokens: Option<u32>,

    /// The most time until a connection stands [default: 10s]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub timeout_connect: Option<String>,

    /// The most time until the first piece of an answer [default: 10m]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub timeout_first_token: Option<String>,

    /// The most time between two pieces of an answer [default: 2m]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub timeout_idle: Option<String>,

    /// The most time of one call, retries included [default: 30m]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub timeout_total: Option<String>,

    /// How often a call is made again after a fault that may pass [default: 3]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub retries: Option<u32>,
}

/// What ends a loop early.
#[derive(Debug, Default, Args)]
#[expect(clippy::struct_field_names, reason = "each is named as its flag")]
pub(super) struct LimitArgs {
    /// Stop once so many tokens are used
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub max_total_tokens: Option<u64>,

    /// Stop once the run has cost so much, by the prices in your configuration
    #[arg(long, value_name = "X", hide_short_help = true)]
    pub max_cost: Option<f64>,

    /// Stop after this time, for example 90s or 10m
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub max_time: Option<String>,
}

/// What is asked at the terminal.
#[derive(Debug, Args)]
#[command(next_help_heading = "Loop")]
pub(super) struct AskingArgs {
    /// Decide after each evaluation: accept, continue, guide, edit, and more
    #[arg(short, long)]
    pub interactive: bool,

    /// Ask nothing, also with --interactive: the loop decides
    #[arg(short, long, visible_alias = "no-input", hide_short_help = true)]
    pub yes: bool,

    /// Whether to make the next revision while you decide; if you want another one, its tokens are wasted
    /// [default: true for models of Ollama and the embedded one]
    #[arg(long, value_name = "BOOL", hide_short_help = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub prefetch: Option<bool>,
}

/// Where the answer goes, and how.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs {
    /// Write the answer to a file instead of standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// What to print
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,

    /// Write the report to a file whose name ends in .html, .json or .md
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,

    /// Ask no model and write nothing: show the settings, the first call, and what the rest may take
    #[arg(long, conflicts_with = "stream_deltas")]
    pub dry_run: bool,

    /// Exit with 0 also where the criteria are not met or a limit was reached
    #[arg(long, hide_short_help = true)]
    pub exit_zero: bool,

    /// With `--format ndjson`, print the pieces of the answers as they come
    #[arg(long, hide_short_help = true)]
    pub stream_deltas: bool,

    /// Keep no record of the run
    #[arg(long, hide_short_help = true)]
    pub no_log: bool,
}

/// What a text that is judged is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum InputFormat {
    /// Any text, judged as it is.
    Text,
    /// A JSON value. One that is a text is judged as that text, without quotes and escapes.
    Json,
}

/// What is printed on standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// The selected draft; of `evaluate` the report.
    Text,
    /// The result as one JSON object.
    Json,
    /// The events of the run, one JSON object a line.
    Ndjson,
    /// The critique report, below the selected draft if there is one.
    Markdown,
}

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// The selected draft and the critique report.
    #[value(name = "md", alias = "markdown")]
    Markdown,
    /// One page with everything, for a browser.
    Html,
    /// The result as one JSON object.
    Json,
}

/// `reflect history`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  reflect history list -n 5
  reflect history show last
  reflect history show 7f3a91c2 --best > draft.md")]
pub(super) enum HistoryCommand {
    /// List runs, the latest first
    List(ListArgs),
    /// Show what the loop gained: first and final scores, by criteria and model
    Stats(StatsArgs),
    /// Show a run
    Show {
        /// The run's id, its end as `history list` shows it, or `last`
        #[arg(default_value = "last", add = ArgValueCompleter::new(complete::runs))]
        run: String,
        /// Print only the draft that the run selected
        #[arg(long, conflicts_with_all = ["draft", "format"])]
        best: bool,
        /// Print only the draft with this number
        #[arg(long, value_name = "N", conflicts_with = "format")]
        draft: Option<u32>,
        /// What to print; `text` is all of the run, for people
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: Format,
    },
    /// Go on with a run that was killed or interrupted, or that a provider or a limit stopped
    Resume(Box<ResumeArgs>),
    /// Show what differs between two drafts
    #[command(after_help = "\
Examples:
  reflect history diff last                 the first draft of the last run, and its answer
  reflect history diff last:2 last:3        two drafts of the last run
  reflect history diff 0194c1d2 5e6f7a8b    the answers of two runs")]
    Diff {
        /// A draft: `RUN:N`, or `RUN` for the run's answer
        #[arg(value_name = "RUN[:N]", default_value = "last", add = ArgValueCompleter::new(complete::runs))]
        one: String,
        /// The other one; without it, the run's first draft is compared with the given one
        #[arg(value_name = "RUN[:N]", add = ArgValueCompleter::new(complete::runs))]
        other: Option<String>,
        /// Mark words within the lines, instead of showing lines twice
        #[arg(short, long)]
        words: bool,
        /// How many lines to show around each place that differs
        #[arg(short = 'U', long, value_name = "N", default_value_t = 3)]
        context: u16,
    },
    /// Write a report on a run
    Export {
        /// The run's id, its end as `history list` shows it, or `last`
        #[arg(default_value = "last", add = ArgValueCompleter::new(complete::runs))]
        run: String,
        /// What to write; by default what the name of the file says, else `md`
        #[arg(long, value_name = "FORMAT")]
        format: Option<ReportFormat>,
        /// Write to a file instead of standard output
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Take runs out of the log for good
    Rm {
        /// The runs' ids, their ends as `history list` shows them, or `last`
        #[arg(value_name = "RUN", required_unless_present_any = ["older_than", "all"], conflicts_with_all = ["older_than", "all"], add = ArgValueCompleter::new(complete::runs))]
        runs: Vec<String>,
        /// All runs that are older than this: 30d, 12h, or a date
        #[arg(long, value_name = "AGE|DATE", conflicts_with = "all")]
        older_than: Option<String>,
        /// All runs, and all verdicts that are remembered
        #[arg(long)]
        all: bool,
        /// Do not ask first
        #[arg(short, long)]
        yes: bool,
    },
    /// Print where the run log is
    Path,
}

/// `reflect history list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reflect history list ownership            runs with a word that begins so in prompt or drafts
  reflect history list '\"borrow checker\"'   a phrase
  reflect history list --since 7d --failed -m qwen3")]
pub(super) struct ListArgs {
    /// Only runs with all of these words in their prompt or drafts
    pub words: Vec<String>,

    /// The most runs to list
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub limit: usize,

    /// Only runs since then: 7d, 12h, or a date
    #[arg(long, value_name = "AGE|DATE")]
    pub since: Option<String>,

    /// Only runs with a model whose name has this in it
    #[arg(short, long, value_name = "NAME")]
    pub model: Option<String>,

    /// Only runs of this command
    #[arg(long, value_name = "NAME", value_parser = ["draft", "revise", "evaluate"])]
    pub command: Option<String>,

    /// Only runs with these criteria, by their name
    #[arg(short, long, value_name = "NAME")]
    pub criteria: Option<String>,

    /// Only runs that met the criteria
    #[arg(long, conflicts_with = "failed")]
    pub success: bool,

    /// Only runs that ended without meeting them
    #[arg(long)]
    pub failed: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `reflect history stats`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reflect history stats
  reflect history stats --since 30d -m qwen3
  reflect history stats --json | jq '.[] | select(.worse > 0.05)'

Only runs count that have ended and whose first and selected drafts have scores.")]
pub(super) struct StatsArgs {
    /// Only runs since then: 7d, 12h, or a date
    #[arg(long, value_name = "AGE|DATE")]
    pub since: Option<String>,

    /// Only runs with a model whose name contains this
    #[arg(short, long, value_name = "NAME")]
    pub model: Option<String>,

    /// Only runs with these criteria, by their name
    #[arg(short, long, value_name = "NAME")]
    pub criteria: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `reflect history resume`.
#[derive(Debug, Args)]
#[command(
    after_help = "\
Examples:
  reflect history resume last
  reflect history resume 1f3a9c5e --max-total-tokens 50000
  reflect history resume last -i            decide yourself from here on

The run goes on as it was started: same task, criteria, settings and models. What models have answered and \
what was judged is taken from the log; nothing is paid for twice. Keys and the addresses of providers come \
from the configuration and the environment of today.",
    mut_arg("dry_run", |arg| arg.hide(true)),
    mut_arg("no_log", |arg| arg.hide(true)),
)]
pub(super) struct ResumeArgs {
    /// The run's id, its end as `history list` shows it, or `last`
    #[arg(default_value = "last", add = ArgValueCompleter::new(complete::runs))]
    pub run: String,

    /// Raise the limit on drafts, the first included
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Loop")]
    pub max_iterations: Option<u32>,

    /// Raise the limit on tokens, what was used before included
    #[arg(long, value_name = "N", help_heading = "Loop")]
    pub max_total_tokens: Option<u64>,

    /// Raise the limit on time, what was used before included, for example 90s or 10m
    #[arg(long, value_name = "TIME", help_heading = "Loop")]
    pub max_time: Option<String>,

    /// Raise the limit on cost, what was used before included
    #[arg(long, value_name = "X", help_heading = "Loop")]
    pub max_cost: Option<f64>,

    /// The most tokens of one reply that revises
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Loop")]
    pub max_revision_tokens: Option<u32>,

    /// The limits of the calls from now on.
    #[command(flatten)]
    pub limits: CallLimitArgs,

    /// What is asked at the terminal.
    #[command(flatten)]
    pub asking: AskingArgs,

    /// Let criteria and tools run programs on this machine, as when the run was started
    #[arg(long, help_heading = "Criteria")]
    pub allow_exec: bool,

    /// Show on standard error how each draft differs from the one that it revises
    #[arg(long, help_heading = "Output")]
    pub diff: bool,

    /// Print only what stands in the first fenced code block of the answer; all of it if there is none
    #[arg(long, help_heading = "Output")]
    pub extract: bool,

    /// Where the answer goes, and how.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `reflect criteria`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  reflect criteria init blog.toml --task-type writing
  reflect criteria check *.toml
  reflect criteria show code --format toml > my-code.toml
  reflect criteria schema > criteria.schema.json")]
pub(super) enum CriteriaCommand {
    /// List the sets that can be asked for by name
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a set with its defaults filled in
    Show {
        /// A file, or the name of a set
        #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
        criteria: String,
        /// What to print
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: CriteriaFormat,
    },
    /// Say what is wrong with criteria files, and where; no model is asked
    Check {
        /// The files, or names of sets
        #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
        files: Vec<String>,
    },
    /// Write a criteria file to begin with
    Init {
        /// Where to; `-` prints it
        #[arg(value_name = "FILE", default_value = "criteria.toml", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// What kind of text is to be measured: code, writing, analysis or reasoning
        #[arg(long, value_name = "TYPE", default_value = "writing", hide_possible_values = true, value_parser = PossibleValuesParser::new(BUILTIN_NAMES.iter().copied()))]
        task_type: String,
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Print the JSON Schema of criteria files, for editors
    Schema,
}

/// How a set is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CriteriaFormat {
    /// For people.
    Text,
    /// One JSON object.
    Json,
    /// A criteria file.
    Toml,
}

/// `reflect models`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  reflect models list
  reflect models list --base-url http://127.0.0.1:8080/v1
  reflect models pull")]
pub(super) enum ModelsCommand {
    /// List the models that can be used
    List {
        /// Only those of this provider
        #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::providers))]
        provider: Option<String>,
        /// The address of the server
        #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
        base_url: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Fetch an embedded model
    Pull {
        /// `hf:OWNER/REPO/FILE`; without one, the default model
        model: Option<String>,
    },
    /// Print the folder that embedded models are kept in
    Path,
}

/// `reflect config`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  reflect config init
  reflect config edit
  reflect config show --origin
  reflect config schema > config.schema.json")]
pub(super) enum ConfigCommand {
    /// Print where the configuration file is
    Path,
    /// Print the settings in force
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Write the prompt templates into a folder, to be changed and used with `--prompt-dir`
    Prompts {
        /// The folder; it is made if it is not there
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Replace existing files
        #[arg(long)]
        force: bool,
    },
    /// Write a configuration file with every setting explained
    Init {
        /// Replace an existing file
        #[arg(long)]
        force: bool,
    },
    /// Edit the configuration file in `$VISUAL` or `$EDITOR`, and say what is wrong with it afterwards
    Edit,
    /// Print the JSON Schema of the configuration file, for editors
    Schema,
}

fn parse_share(text: &str) -> Result<f64, String> {
    Range::from(0).to(1).parser()(text)
}
