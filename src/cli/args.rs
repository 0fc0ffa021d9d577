//! The command line: commands, arguments and flags. Nothing here decides anything.

mod bench;
mod build;
mod mcp;
mod memory;
mod worker;

use std::path::{Path, PathBuf};

use crate::batch::EngineAddress;
use crate::batch::{Concurrency, Pace, Shard};
use clap::builder::{EnumValueParser, PossibleValuesParser};
use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use clap_complete::engine::ArgValueCompleter;

pub(super) use self::bench::{BenchArgs, BenchCommand, BenchFormat, JudgeBenchArgs};
pub(super) use self::build::{command, parse};
pub(super) use self::mcp::McpArgs;
pub(super) use self::memory::{
    LearnArgs, MemoryAddCommand, MemoryCommand, MemoryKind, MemoryListArgs,
};
pub(super) use self::worker::WorkerArgs;
use super::complete;
use crate::criteria::TASK_TYPES;
use crate::model::Think;
use crate::types::{JudgeSettings, LoopSettings, Range, ReflectorSettings, Switch, switch, word};

/// Draft, evaluate and revise a text with a language model until it meets your criteria
#[derive(Debug, Parser)]
#[command(
    name = "reflect",
    version,
    long_version = env!("REFLECT_VERSION"),
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Try `reflect draft \"Explain why leaves turn red in autumn.\" -c paragraph`.",
    after_long_help = LONG_HELP
)]
pub(super) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,

    /// Options of all commands.
    #[command(flatten)]
    pub global: GlobalArgs,
}

const LONG_HELP: &str = "\
Examples:
  reflect draft \"Explain Rust's ownership to a C programmer\" -c writing
  git diff --staged | reflect draft \"Write the commit message\" -c commit | git commit -F -
  reflect draft - -c blog < brief.md > post.md
  reflect draft \"A function that parses ISO dates\" -c code -m ollama:qwen3 -n 5
  reflect revise README.md -c readme.toml -o README.md
  reflect evaluate README.md -c readme.toml

Exit codes:
  0    criteria met, or accepted by the user
  1    internal or I/O error
  2    wrong usage, configuration or criteria file
  3    criteria not met; the best draft is printed (see --on-failure)
  4    the provider failed: network, key, missing model; the best draft so far is printed
  5    a limit on tokens, time or cost was reached; the best draft so far is printed
  6    no valid verdict: the judge was unusable, or a check failed; the last draft is printed
  130  interrupted; continue with `reflect history resume`

stdout carries only the draft; progress and errors go to stderr.
The run log stays on this machine. There is no telemetry and no update check.";

/// Options of all commands.
#[derive(Debug, Clone, Args)]
pub(super) struct GlobalArgs {
    /// Use this configuration file instead of your own
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub config: Option<PathBuf>,

    /// Use the settings of this profile of the configuration file
    #[arg(
        long,
        global = true,
        value_name = "NAME",
        hide_short_help = true,
        add = ArgValueCompleter::new(complete::profiles)
    )]
    pub profile: Option<String>,

    /// Set a configuration value; repeatable
    ///
    /// KEY and VALUE are as in the configuration file: `--set loop.tie_margin=0.05`, `--set timeouts.idle=5m`. The name of
    /// a table may be left out if the key is unique: `--set tie_margin=0.05`. `reflect config show` lists all keys.
    #[arg(long, global = true, value_name = "KEY=VALUE", add = ArgValueCompleter::new(complete::settings))]
    pub set: Vec<String>,

    /// When to use colors
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true,
        hide_possible_values = true
    )]
    pub color: ColorWhen,

    /// Same as `--color never`
    #[arg(long, global = true, hide_short_help = true, conflicts_with = "color")]
    pub no_color: bool,

    /// Print only errors to stderr
    #[arg(short, long, global = true)]
    pub quiet: bool,

    /// Print each model call; -vv: with request and response
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,

    /// Print the model's reasoning to stderr
    #[arg(long, global = true, hide_short_help = true, conflicts_with = "quiet")]
    pub show_reasoning: bool,
}

/// When to use colors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorWhen {
    /// If the stream is a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a draft and revise it until it meets the criteria
    Draft(Box<DraftArgs>),
    /// Revise a text until it meets the criteria, or fix listed errors
    #[command(alias = "correct")]
    Revise(Box<ReviseArgs>),
    /// Evaluate texts against the criteria; a gate for CI
    #[command(alias = "critique")]
    Evaluate(Box<EvaluateArgs>),
    /// Run a YAML workflow of generate, evaluate and correct nodes
    Run(Box<WorkflowArgs>),
    /// Run many tasks concurrently, from JSON lines or CSV; resumable
    Batch(Box<BatchArgs>),
    /// Measure whether the loop helps, at equal cost
    Bench(Box<BenchArgs>),
    /// Run batch tasks that a Restate server distributes
    Worker(WorkerArgs),
    /// Offer drafting and evaluation to agents, as MCP tools
    Mcp(Box<McpArgs>),
    /// Assess the outcome of a plan that another program ran
    Assess(Box<AssessArgs>),
    /// List, show, compare and resume earlier runs
    #[command(subcommand, arg_required_else_help = true)]
    History(HistoryCommand),
    /// Manage facts, procedures and insights for later runs
    #[command(subcommand, arg_required_else_help = true)]
    Memory(MemoryCommand),
    /// List, show, check and create criteria
    #[command(subcommand, arg_required_else_help = true)]
    Criteria(CriteriaCommand),
    /// List and download models
    Models(ModelsArgs),
    /// Show, create and edit the configuration
    #[command(subcommand, arg_required_else_help = true)]
    Config(ConfigCommand),
    /// Check the configuration, the models and their servers
    Doctor(Box<DoctorArgs>),
    /// Print a shell completion script
    #[command(after_long_help = "\
Examples:
  reflect completions bash > ~/.local/share/bash-completion/completions/reflect
  reflect completions zsh > ~/.zfunc/_reflect
  reflect completions fish > ~/.config/fish/completions/reflect.fish

The script calls `reflect` for completions, so models, criteria, runs and profiles are current. It makes no network \
requests.")]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Print the manual page, or write all pages to a folder
    #[command(after_long_help = "\
Examples:
  reflect man | man -l -
  reflect man --out-dir ~/.local/share/man/man1
  reflect man --markdown > docs/cli.md")]
    Man {
        /// Write a page for each command to this folder
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        out_dir: Option<PathBuf>,
        /// Print the reference of all commands in Markdown
        #[arg(long, conflicts_with = "out_dir")]
        markdown: bool,
    },
}

/// `reflect draft`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  reflect draft \"Explain Rust's ownership to a C programmer\" -c writing
  git diff --staged | reflect draft \"Write the commit message\" -c commit | git commit -F -
  reflect draft \"A function that parses ISO dates\" -c code --extract > dates.py
  reflect draft - -c blog < brief.md --dry-run
  reflect draft --prompt-file brief.md --var name=Ada -c blog.toml

If there is a prompt and stdin is piped, the model sees stdin as context.")]
pub(super) struct DraftArgs {
    /// What to write; `-` reads it from stdin
    #[arg(value_name = "PROMPT", conflicts_with = "prompt_file")]
    pub prompt: Option<String>,

    /// Write the prompt in $VISUAL or $EDITOR
    #[arg(short, long, help_heading = "Input")]
    pub editor: bool,

    /// Read the prompt from a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Input")]
    pub prompt_file: Option<PathBuf>,

    /// Fill in `{{ NAME }}` in the prompt file; repeatable
    #[arg(
        long = "var",
        value_name = "NAME=VALUE",
        requires = "prompt_file",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub vars: Vec<String>,

    /// Do not read stdin, even if it is piped
    #[arg(long, hide_short_help = true, help_heading = "Input")]
    pub ignore_stdin: bool,

    /// Options of the loop.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Options about evaluation, or about more than one revision, which conflict with `--errors`.
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
    "tie_margin",
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
#[command(after_long_help = "\
Examples:
  reflect revise post.md -c blog.toml -o post.md
  pandoc notes.docx -t plain | reflect revise -c writing --prompt \"Minutes of the board meeting\"
  reflect evaluate a.json --evaluator spec.yaml --format json | reflect revise a.json --errors -

The text is draft 1. If it meets the criteria, it is printed unchanged. `reflect correct` is the same command.")]
pub(super) struct ReviseArgs {
    /// The text to revise [default: stdin]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub text: Option<PathBuf>,

    /// The task that the text was written for
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        help_heading = "Input"
    )]
    pub prompt: Option<String>,

    /// Read the task from a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Input")]
    pub prompt_file: Option<PathBuf>,

    /// Fix only the issues in this file
    ///
    /// One issue per line, or JSON as `reflect evaluate --json` prints it; `-` for stdin. There is a single revision,
    /// without evaluation.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input", conflicts_with_all = IGNORED_BY_ERRORS)]
    pub errors: Option<PathBuf>,

    /// Options of the loop.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Options of all runs of the loop.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Criteria file or built-in set; repeatable
    ///
    /// `-` reads the file from stdin. `reflect criteria list` lists the built-in sets. If given several times, the
    /// criteria of all files add up.
    #[arg(short, long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
    pub criteria: Vec<String>,

    /// Where criteria are looked up by name, instead of the configured folders.
    #[arg(skip)]
    pub criteria_path: Option<Vec<PathBuf>>,

    /// Add a file as context; `-` for stdin; repeatable
    #[arg(short, long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub files: Vec<PathBuf>,

    /// What the models know.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,

    /// Offer the model what earlier runs taught (`reflect memory`), and measure whether it helps
    #[arg(long, action = ArgAction::SetTrue, value_parser = switch(true), hide_short_help = true, help_heading = "Input")]
    pub memory: Switch<bool>,

    /// System prompt
    #[arg(
        short,
        long,
        value_name = "TEXT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub system: Option<String>,

    /// The models and their parameters.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Let the criteria run code on this machine
    ///
    /// Commands, and scripts in Python and Prolog. Also lets the criteria read JSON Schemas outside of their folder, and
    /// --tool run programs.
    #[arg(long, hide_short_help = true, help_heading = "Criteria")]
    pub allow_exec: bool,

    /// Show the writer the output of this program; repeatable
    ///
    /// The program runs with the prompt first, then with each draft before it is revised. `{draft_file}` in its arguments
    /// is the path of a file with the draft.
    #[arg(
        long = "tool",
        value_name = "COMMAND",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub tools: Vec<String>,

    /// The judge.
    #[command(flatten)]
    pub judge: JudgeSettings,

    /// The loop.
    #[command(flatten)]
    pub flow: LoopSettings,

    /// Limits that stop the run.
    #[command(flatten, next_help_heading = "Loop")]
    pub limits: LimitArgs,

    /// Questions at the terminal.
    #[command(flatten)]
    pub asking: AskingArgs,

    /// Print a diff of each revision to stderr
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub diff: bool,

    /// Print only the first fenced code block of the draft, or all of it if there is none
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub extract: bool,

    /// Output options.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `reflect evaluate`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "\
Examples:
  reflect evaluate README.md -c readme.toml
  reflect evaluate docs/*.md -c writing --format markdown > report.md
  git log -1 --format=%B | reflect evaluate -c commit
  reflect evaluate profile.json --evaluator profile-schema.json
  reflect evaluate docs/*.md -c docs.toml --format junit -o report.xml

Formats for CI: junit (test reports), sarif (code scanning), github (annotations of GitHub Actions).

Exit codes: 0 all texts meet the criteria, 3 at least one does not, 6 at least one could not be judged.
`reflect critique` is the same command.",
    mut_arg("stronger_model", |arg| arg.hide(true)),
    mut_arg("format", |arg| arg.help("Format: text, json, ndjson, markdown, junit, sarif, github")),
)]
pub(super) struct EvaluateArgs {
    /// The texts to evaluate [default: stdin]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub texts: Vec<PathBuf>,

    /// Criteria file or built-in set; repeatable
    ///
    /// `-` reads the file from stdin. `reflect criteria list` lists the built-in sets. If given several times, the
    /// criteria of all files add up.
    #[arg(short, long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
    pub criteria: Vec<String>,

    /// Where criteria are looked up by name, instead of the configured folders.
    #[arg(skip)]
    pub criteria_path: Option<Vec<PathBuf>>,

    /// Use a single evaluator instead of criteria
    ///
    /// YAML, JSON or TOML with `type: schema`, `llm` or `custom`. Prints its verdict.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "criteria"
    )]
    pub evaluator: Option<PathBuf>,

    /// Format of the texts; `json`: a JSON string is evaluated without quotes and escapes
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub input_format: InputFormat,

    /// The task that the texts were written for
    #[arg(
        long,
        value_name = "TEXT",
        conflicts_with = "prompt_file",
        help_heading = "Input"
    )]
    pub prompt: Option<String>,

    /// Read the task from a file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Input")]
    pub prompt_file: Option<PathBuf>,

    /// Add a file as context; `-` for stdin; repeatable
    #[arg(short, long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Input")]
    pub files: Vec<PathBuf>,

    /// What the models know.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,

    /// System prompt
    #[arg(
        short,
        long,
        value_name = "TEXT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub system: Option<String>,

    /// Score to reach [default: the criteria's own]
    #[arg(long, value_name = "SCORE", value_parser = parse_share)]
    pub threshold: Option<f64>,

    /// Let the criteria run code on this machine
    ///
    /// Commands, and scripts in Python and Prolog. Also lets the criteria read JSON Schemas outside of their folder.
    #[arg(long, hide_short_help = true, help_heading = "Criteria")]
    pub allow_exec: bool,

    /// The judge model and its parameters.
    #[command(flatten)]
    pub model: ModelArgs,

    /// The judge.
    #[command(flatten)]
    pub judge: JudgeSettings,

    /// Output options.
    #[command(flatten)]
    pub output: OutputArgs<EvaluateFormat>,
}

/// `reflect run`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "\
Examples:
  reflect run profile.yaml --input '{\"request\": \"a profile of Ada\"}'
  reflect run article.yaml --input @brief.json --format json -o article.json
  reflect run code.yaml --allow-exec --fail-on-state tests.success=false
  reflect run profile.yaml --check

--model overrides the models in the file.
Exit codes: 0 done, 3 the draft of the last loop does not meet its criteria (see `on_failure` in the file).",
    mut_arg("stronger_model", |arg| arg.hide(true)),
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct WorkflowArgs {
    /// The workflow file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,

    /// Input as a JSON object; `@FILE` reads it from a file, `@-` from stdin
    #[arg(short, long, value_name = "JSON|@FILE")]
    pub input: Option<String>,

    /// Check the file, without running it
    #[arg(long, conflicts_with = "dry_run")]
    pub check: bool,

    /// Print the plan, without running it
    #[arg(long)]
    pub dry_run: bool,

    /// Reflect on the result of this node, which has the trigger `manual`; repeatable
    #[arg(long, value_name = "NODE")]
    pub reflect: Vec<String>,

    /// Exit with 3 if the final state has this value; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub fail_on_state: Vec<String>,

    /// Let the workflow run code on this machine
    ///
    /// Commands, and scripts in Python and Prolog. Also lets the workflow read JSON Schemas outside of its folder.
    #[arg(long)]
    pub allow_exec: bool,

    /// The models and their parameters.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Stop a loop once it has used N tokens
    #[arg(
        long,
        value_name = "N",
        hide_short_help = true,
        help_heading = "Limits"
    )]
    pub max_total_tokens: Option<u64>,

    /// Stop a loop once it has cost X, by the prices in your configuration
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

    /// Write the result to a file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Output format
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub format: WorkflowFormat,

    /// Exit with 0 even if the criteria are not met or a limit was reached
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub exit_zero: bool,

    /// Do not record the loops in the run log
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub no_log: bool,
}

/// The output of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum WorkflowFormat {
    /// The output of the last node.
    Text,
    /// The result with the whole state, as one JSON object.
    Json,
    /// The events, one JSON object per line.
    Ndjson,
}

/// `reflect doctor`.
#[derive(Debug, Args)]
#[command(
    after_long_help = DOCTOR_HELP
)]
pub(super) struct DoctorArgs {
    /// Do not call the models
    #[arg(long)]
    pub no_calls: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// The models and their parameters.
    #[command(flatten)]
    pub model: ModelArgs,
}

const DOCTOR_HELP: &str = "\
Examples:
  reflect doctor
  reflect doctor -m ollama:qwen3:8b
  reflect doctor --base-url http://127.0.0.1:8080/v1 --no-calls
  reflect doctor --json | jq '.checks[] | select(.level != \"ok\")'

doctor makes two small calls to each model that a run would use; --no-calls skips them.

Marks:
  ✓  ok
  ·  note
  !  a run works, but not as well as it could
  ✗  a run would fail

--json prints one object: schema_version, well, exit_code, and checks, a list of objects: area (configuration, \
criteria, storage, programs, model), subject (for a model its name and role), check, level (ok, note, warning, \
failed), finding, advice (or null), and measured, the figures: latency_ms, models, context_window, num_ctx, \
first_piece_ms, tokens_per_second, reasoning_characters, prompt_tokens, cached_tokens. Figures that were not measured \
are missing.

Exit codes: 0 a run would work, 1 the run log is not writable, 2 invalid configuration or criteria, 4 the provider failed.";

/// `reflect assess`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "\
Examples:
  reflect assess nightly.json
  reflect assess nightly.json --min-success-rate 0.95 --format markdown > report.md
  my-runner --json | reflect assess - --llm -m ollama:qwen3:8b
  reflect assess --schema > episode.schema.json

FILE holds a plan and the results of its tasks:
  {\"plan\": {\"id\": \"nightly\", \"tasks\": [{\"id\": \"fetch\", \"tool\": \"http\", \"expected_seconds\": 5}]},
   \"results\": [{\"task_id\": \"fetch\", \"status\": \"failed\", \"error\": \"timed out\", \"seconds\": 30}]}

Exit codes: 0 the plan succeeded, 3 it failed, 2 the file is invalid.",
    mut_arg("stronger_model", |arg| arg.hide(true)),
)]
pub(super) struct AssessArgs {
    /// The plan and its results as JSON [default: stdin]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// Print the JSON Schema of FILE
    #[arg(long, conflicts_with = "file")]
    pub schema: bool,

    /// When the plan succeeds.
    #[command(flatten)]
    pub reflector: ReflectorSettings,

    /// Let a model add suggestions, in one call; the verdict still comes from rules
    #[arg(long, help_heading = "Model")]
    pub llm: bool,

    /// The model and its parameters.
    #[command(flatten)]
    pub model: ModelArgs,

    /// Write the verdict to a file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Output format
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub format: AssessFormat,

    /// Exit with 0 even if the plan failed
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
    after_long_help = BATCH_HELP,
    mut_arg("max_total_tokens", |arg| arg.help("Start no more tasks once all together have used N tokens")),
    mut_arg("max_cost", |arg| arg.help("Start no more tasks once all together have cost X, by the prices in your configuration")),
    mut_arg("max_time", |arg| arg.help("Stop after this time, for example 90s or 2h; the next call repeats the tasks under way"))
)]
pub(super) struct BatchArgs {
    /// The tasks: JSON lines, or CSV with a header; `-` for stdin
    #[arg(value_name = "TASKS", value_hint = ValueHint::FilePath, required = false, required_unless_present = "cancel", default_value_if("cancel", "true", "-"))]
    pub tasks: PathBuf,

    /// Criteria file or built-in set for tasks without their own; repeatable
    #[arg(short, long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
    pub criteria: Vec<String>,

    /// Template for the prompts, filled in with `vars` or columns: 'Explain {{ topic }}'
    #[arg(long, value_name = "TEMPLATE", help_heading = "Input")]
    pub prompt: Option<String>,

    /// Format of the tasks [default: by file name]
    #[arg(
        long,
        value_name = "FORMAT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub input_format: Option<TasksFormat>,

    /// Run only part I of N, counted from 0: every N-th task; for job arrays
    #[arg(
        long,
        value_name = "I/N",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub shard: Option<Shard>,

    /// Hand the tasks to workers (`reflect worker`) over a Restate server: `restate://HOST[:PORT][/NAME]`
    ///
    /// Tasks that were handed in earlier under the same NAME are not repeated.
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

    /// Cancel the tasks that were handed in under the NAME of --engine
    #[arg(
        long,
        requires = "engine",
        hide_short_help = true,
        help_heading = "Many machines"
    )]
    pub cancel: bool,

    /// After each draft, wait for a decision over HTTP; prints the address for each task (see docs/scale.md)
    #[arg(
        long,
        requires = "engine",
        hide_short_help = true,
        help_heading = "Many machines"
    )]
    pub await_decisions: bool,

    /// Add a file as context of every task; repeatable
    #[arg(short, long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Input")]
    pub files: Vec<PathBuf>,

    /// What the models know.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,

    /// Offer the models what earlier runs taught, and measure whether it helps
    #[arg(long, action = ArgAction::SetTrue, value_parser = switch(true), hide_short_help = true, help_heading = "Input")]
    pub memory: Switch<bool>,

    /// System prompt for all tasks
    #[arg(
        short,
        long,
        value_name = "TEXT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub system: Option<String>,

    /// Concurrent tasks; `auto`: as many as the server handles
    #[arg(
        short = 'j',
        long,
        value_name = "N|auto",
        default_value = "auto",
        help_heading = "Pace"
    )]
    pub concurrency: Concurrency,

    /// Limits on the rate of requests.
    #[command(flatten)]
    pub rates: RateArgs,

    /// Append the rows to this file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Write rows in the order of the tasks
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub ordered: bool,

    /// Repeat tasks that failed, were invalid, or could not be judged
    #[arg(long, requires = "output", help_heading = "Output")]
    pub retry_failed: bool,

    /// Retry a failed task up to N times with other settings
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10), default_value = "0", hide_default_value = true, hide_short_help = true, help_heading = "Output")]
    pub replan: u32,

    /// Stop at the first failed task; reject a file with an invalid line
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub fail_fast: bool,

    /// Exit with 0 even if criteria are not met or a limit was reached
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub exit_zero: bool,

    /// Do not record the runs in the run log
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub no_log: bool,

    /// The loops.
    #[command(flatten)]
    pub loops: LoopsArgs,
}

/// Limits on the rate of requests of many tasks.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pace")]
pub(super) struct RateArgs {
    /// Maximum requests per minute
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub requests_per_minute: Option<u32>,

    /// Maximum tokens per minute, prompts and replies together
    #[arg(long, value_name = "N", hide_short_help = true, value_parser = clap::value_parser!(u32).range(1..))]
    pub tokens_per_minute: Option<u32>,
}

impl RateArgs {
    /// Returns these limits with the number of concurrent tasks.
    pub(super) fn with(&self, concurrency: Concurrency) -> Pace {
        Pace {
            concurrency,
            requests_per_minute: self.requests_per_minute,
            tokens_per_minute: self.tokens_per_minute,
        }
    }
}

/// Options of the loops of many tasks.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct LoopsArgs {
    /// Let the criteria run code on this machine
    ///
    /// Commands, and scripts in Python and Prolog. Also lets the criteria read JSON Schemas outside of their folder, and
    /// --tool run programs.
    #[arg(long, hide_short_help = true, help_heading = "Criteria")]
    pub allow_exec: bool,

    /// Show the writer the output of this program, as in `reflect draft`; repeatable
    #[arg(
        long = "tool",
        value_name = "COMMAND",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub tools: Vec<String>,

    /// The models and their parameters.
    #[command(flatten)]
    pub model: ModelArgs,

    /// The judge.
    #[command(flatten)]
    pub judge: JudgeSettings,

    /// The loop.
    #[command(flatten)]
    pub flow: LoopSettings,

    /// Limits on all loops together.
    #[command(flatten, next_help_heading = "Loop")]
    pub limits: LimitArgs,
}

/// Tasks, and the options of their loops.
#[derive(Clone, Copy)]
pub(super) struct TasksArgs<'a> {
    /// The criteria of tasks without their own.
    pub criteria: &'a [String],
    /// The file of the tasks. Criteria that a task names must be inside its folder.
    pub tasks: &'a Path,
    pub knowledge: &'a KnowledgeArgs,
    pub memory: Option<bool>,
    pub loops: &'a LoopsArgs,
    pub no_log: bool,
}

impl BatchArgs {
    /// Returns the tasks and the options of their loops.
    pub(super) fn tasks_args(&self) -> TasksArgs<'_> {
        TasksArgs {
            criteria: &self.criteria,
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
  Only `prompt` is required, or nothing with --prompt. The default id is the line number. In CSV, every other column \
is one of `vars`. A prompt may use `vars` of its line: {{name}}.

A row:
  {\"id\", \"line\", \"status\", \"exit_code\", \"output\", \"overall_score\", \"convergence_reason\", \"run_id\", \
\"attempts\", \"iterations_used\", \"token_usage\", \"cost\", \"execution_time\", \"error\", \"error_category\"}
  Every id has exactly one row. Unknown values are null.
  status: met, not_met, stopped (a limit in the criteria file), unjudged, failed, invalid (the task or its criteria).
  error_category: timeout, permission, not_found, network, validation, resource, execution.
  With --replan, a retried task has `replanned`: for each earlier attempt run_id, error, error_category, \
execution_time, and what was `adjusted` for the next one.

--replan retries failures of the categories timeout, not_found, network and resource: the writer receives advice, \
long revisions become edits, and --stronger-model takes over. With --memory, later runs receive what the batch \
taught (`reflect memory list`).

Examples:
  reflect batch tasks.jsonl -c blog.toml -o results.jsonl
  reflect batch topics.csv -c writing --prompt 'Explain {{ topic }} to a child' -o out.jsonl
  reflect batch tasks.jsonl -c blog.toml -o results.jsonl --retry-failed
  jq -c '{id: .slug, prompt: .brief}' posts.json | reflect batch - -c blog.toml > out.jsonl
  reflect batch tasks.jsonl -o out.$SLURM_ARRAY_TASK_ID.jsonl --shard $SLURM_ARRAY_TASK_ID/16
  reflect batch tasks.jsonl -c blog.toml -m ollama:qwen3:8b -o out.jsonl --engine restate://queue

The same command resumes a batch: tasks with a row in --output are done. Ctrl-C finishes the tasks under way; a second \
Ctrl-C stops at once and loses only those. A failure that all tasks would meet (key, credit, model, server) stops the \
batch and fails no task. -v prints nothing about single calls: use `reflect history show RUN_ID --format ndjson`.

Exit codes: the worst of all rows or of what stopped the batch, from worst to best: 130 interrupted, 1 internal error, \
4 provider failed, 2 invalid, 6 unjudged, 5 limit, 3 not met, 0 all met.";

/// The format of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TasksFormat {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header.
    Csv,
}

/// What the models know.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct KnowledgeArgs {
    /// JSON file with message history, facts and procedures
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Input")]
    pub context: Option<PathBuf>,

    /// Messages of the history to use, the latest ones [default: 3]
    #[arg(long, value_name = "N", hide = true, help_heading = "Input")]
    pub context_messages: Option<u32>,

    /// Search this file or folder for evidence; repeatable
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, hide_short_help = true, help_heading = "Input")]
    pub evidence: Vec<PathBuf>,

    /// Maximum tokens of evidence that one search adds to a prompt [default: 2000]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(100..), help_heading = "Input")]
    pub evidence_tokens: Option<u32>,
}

/// The models and their parameters.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model")]
pub(super) struct ModelArgs {
    /// Model, as NAME or PROVIDER:NAME
    #[arg(short, long, add = ArgValueCompleter::new(complete::models))]
    pub model: Option<String>,

    /// Model that judges [default: --model]
    #[arg(long, value_name = "MODEL", add = ArgValueCompleter::new(complete::models))]
    pub judge_model: Option<String>,

    /// Model that takes over if the first makes no progress
    #[arg(long, value_name = "MODEL", hide_short_help = true, add = ArgValueCompleter::new(complete::models))]
    pub stronger_model: Option<String>,

    /// Provider: ollama, openai, openrouter, groq, …, embedded, scripted:FILE
    #[arg(long, value_name = "NAME", hide_short_help = true, add = ArgValueCompleter::new(complete::providers))]
    pub provider: Option<String>,

    /// Address of an OpenAI-compatible server, or of Ollama with `--provider ollama`
    ///
    /// Its key is read from `REFLECT_API_KEY`.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, hide_short_help = true)]
    pub base_url: Option<String>,

    /// Sampling temperature, 0 to 2
    #[arg(long, value_name = "T", hide_short_help = true)]
    pub temperature: Option<f64>,

    /// Nucleus sampling: the probability mass to sample from
    #[arg(long, value_name = "P", hide = true)]
    pub top_p: Option<f64>,

    /// Seed for reproducible replies, if the server supports it
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub seed: Option<u64>,

    /// Ollama's context window in tokens
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub num_ctx: Option<u64>,

    /// How long Ollama keeps the model loaded: `15m`, seconds, or -1 for always
    #[arg(long, value_name = "TIME", hide = true, allow_hyphen_values = true)]
    pub keep_alive: Option<String>,

    /// How much the model reasons
    #[arg(long, value_name = "HOW", hide_short_help = true, value_parser = word::<Think>(&["auto", "on", "off", "low", "medium", "high"]))]
    pub think: Option<Think>,

    /// Use the prompt templates in this folder
    ///
    /// Templates that are missing there are the built-in ones. `reflect config prompts` writes them to a folder.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    pub prompt_dir: Option<PathBuf>,

    /// Use only models on this machine; download nothing
    #[arg(long, hide_short_help = true)]
    pub offline: bool,

    /// Let criteria, workflows and project configuration choose other models, and download weights
    #[arg(long, hide_short_help = true)]
    pub allow_models: bool,

    /// Limits on a model call.
    #[command(flatten)]
    pub limits: CallLimitArgs,
}

/// Limits on a model call.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Model")]
pub(super) struct CallLimitArgs {
    /// Maximum tokens of a reply
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub max_tokens: Option<u32>,

    /// Maximum time to connect [default: 10s]
    #[arg(long, value_name = "TIME", hide = true)]
    pub timeout_connect: Option<String>,

    /// Maximum time to the first token [default: 10m]
    #[arg(long, value_name = "TIME", hide = true)]
    pub timeout_first_token: Option<String>,

    /// Maximum time between two tokens [default: 2m]
    #[arg(long, value_name = "TIME", hide = true)]
    pub timeout_idle: Option<String>,

    /// Maximum time of a model call, including retries [default: 30m]
    #[arg(
        long = "timeout",
        alias = "timeout-total",
        value_name = "TIME",
        hide_short_help = true
    )]
    pub timeout_total: Option<String>,

    /// Retries of a failed call [default: 3]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub retries: Option<u32>,
}

/// Limits that stop a loop.
#[derive(Debug, Clone, Default, Args)]
#[expect(clippy::struct_field_names, reason = "each is named as its flag")]
pub(super) struct LimitArgs {
    /// Stop once N tokens are used
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub max_total_tokens: Option<u64>,

    /// Stop once the run has cost X
    #[arg(long, value_name = "X", hide_short_help = true)]
    pub max_cost: Option<f64>,

    /// Stop after this time, for example 90s or 10m
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    pub max_time: Option<String>,
}

/// Questions at the terminal.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Loop")]
pub(super) struct AskingArgs {
    /// Decide after each draft what comes next
    #[arg(short, long)]
    pub interactive: bool,

    /// Ask no questions, even with --interactive
    #[arg(short, long, visible_alias = "no-input", hide_short_help = true)]
    pub yes: bool,

    /// Write the next revision while you decide
    ///
    /// Its tokens are wasted if you decide otherwise. The default for Ollama and the embedded model; `--no-prefetch`
    /// disables it.
    #[arg(long, action = ArgAction::SetTrue, value_parser = switch(true), hide_short_help = true)]
    pub prefetch: Switch<bool>,
}

/// Output options.
#[derive(Debug, Default, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own on the command line"
)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputArgs<F: OutputFormat = Format> {
    /// Write the result to a file instead of stdout
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Format: text, json, ndjson, markdown
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true,
        value_parser = EnumValueParser::<F>::new()
    )]
    pub format: F,

    /// Write a report to a .html, .json or .md file
    #[arg(long, hide_short_help = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub report: Option<PathBuf>,

    /// Print the settings, the first call and an estimate; call no model
    #[arg(long, hide_short_help = true, conflicts_with = "stream_deltas")]
    pub dry_run: bool,

    /// Exit with 0 even if the criteria are not met or a limit was reached
    #[arg(long, hide_short_help = true)]
    pub exit_zero: bool,

    /// With `--format ndjson`, print the tokens as they arrive
    #[arg(long, hide_short_help = true)]
    pub stream_deltas: bool,

    /// Do not record the run in the run log
    #[arg(long, hide_short_help = true)]
    pub no_log: bool,
}

/// The format of an evaluated text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum InputFormat {
    /// Any text.
    Text,
    /// A JSON value. A JSON string is evaluated without quotes and escapes.
    Json,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum Format {
    /// The selected draft; for `evaluate` the report.
    #[default]
    Text,
    /// The result as one JSON object.
    Json,
    /// The events of the run, one JSON object per line.
    Ndjson,
    /// The selected draft, if there is one, and the critique report.
    Markdown,
}

/// The output format of `evaluate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(super) enum EvaluateFormat {
    /// The report.
    #[default]
    Text,
    /// The result as one JSON object, or an array of them.
    Json,
    /// The events of the evaluation, one JSON object per line.
    Ndjson,
    /// The report in Markdown.
    Markdown,
    /// `JUnit` XML, for test reports.
    Junit,
    /// SARIF 2.1.0, for code scanning.
    Sarif,
    /// Workflow commands of GitHub Actions, which become annotations.
    Github,
}

/// The formats that a command with [`OutputArgs`] offers.
pub(super) trait OutputFormat: ValueEnum + Copy + PartialEq + Send + Sync + 'static {
    /// The format that prints events.
    const NDJSON: Self;
}

impl OutputFormat for Format {
    const NDJSON: Self = Self::Ndjson;
}

impl OutputFormat for EvaluateFormat {
    const NDJSON: Self = Self::Ndjson;
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// The selected draft and the critique report.
    #[value(name = "md", alias = "markdown")]
    Markdown,
    /// One self-contained page for a browser.
    Html,
    /// The result as one JSON object.
    Json,
}

/// `reflect history`.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  reflect history list -n 5
  reflect history show last
  reflect history show 7f3a91c2 --best > draft.md")]
pub(super) enum HistoryCommand {
    /// List runs, latest first
    List(ListArgs),
    /// Compare first and final scores, by criteria and model
    Stats(StatsArgs),
    /// Show a run
    Show {
        /// Run id, its end as in `history list`, or `last`
        #[arg(default_value = "last", add = ArgValueCompleter::new(complete::runs))]
        run: String,
        /// Print only the selected draft
        #[arg(long, conflicts_with_all = ["draft", "format"])]
        best: bool,
        /// Print only draft N
        #[arg(long, value_name = "N", conflicts_with = "format")]
        draft: Option<u32>,
        /// Output format; `text` shows the whole run
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: Format,
    },
    /// Resume a run that was interrupted, killed, or stopped by an error or a limit
    Resume(Box<ResumeArgs>),
    /// Show the differences between two drafts
    #[command(after_long_help = "\
Examples:
  reflect history diff last                 the first and the selected draft of the last run
  reflect history diff last:2 last:3        two drafts of the last run
  reflect history diff 0194c1d2 5e6f7a8b    the selected drafts of two runs")]
    Diff {
        /// A draft: `RUN:N`, or `RUN` for its selected draft
        #[arg(value_name = "RUN[:N]", default_value = "last", add = ArgValueCompleter::new(complete::runs))]
        one: String,
        /// The other draft [default: the run's first draft]
        #[arg(value_name = "RUN[:N]", add = ArgValueCompleter::new(complete::runs))]
        other: Option<String>,
        /// Mark changed words instead of changed lines
        #[arg(short, long)]
        words: bool,
        /// Lines of context around each difference
        #[arg(short = 'U', long, value_name = "N", default_value_t = 3)]
        context: u16,
    },
    /// Write a report of a run
    Export {
        /// Run id, its end as in `history list`, or `last`
        #[arg(default_value = "last", add = ArgValueCompleter::new(complete::runs))]
        run: String,
        /// Report format [default: by file name, else md]
        #[arg(long, value_name = "FORMAT")]
        format: Option<ReportFormat>,
        /// Write to a file instead of stdout
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Delete runs from the log
    Rm {
        /// Run ids, their ends as in `history list`, or `last`
        #[arg(value_name = "RUN", required_unless_present_any = ["older_than", "all"], conflicts_with_all = ["older_than", "all"], add = ArgValueCompleter::new(complete::runs))]
        runs: Vec<String>,
        /// Delete all runs older than this: 30d, 12h, or a date
        #[arg(long, value_name = "AGE|DATE", conflicts_with = "all")]
        older_than: Option<String>,
        /// Delete all runs and cached verdicts
        #[arg(long)]
        all: bool,
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
    },
    /// Print the path of the run log
    Path,
}

/// `reflect history list`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  reflect history list ownership            runs with this word in the prompt or a draft
  reflect history list '\"borrow checker\"'   a phrase
  reflect history list --since 7d --failed -m qwen3")]
pub(super) struct ListArgs {
    /// Only runs with all of these words in the prompt or drafts
    pub words: Vec<String>,

    /// Maximum number of runs
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub limit: usize,

    /// Only runs since: 7d, 12h, or a date
    #[arg(long, value_name = "AGE|DATE")]
    pub since: Option<String>,

    /// Only runs with a model whose name contains this
    #[arg(short, long, value_name = "NAME")]
    pub model: Option<String>,

    /// Only runs of this command
    #[arg(long, value_name = "NAME", value_parser = ["draft", "revise", "evaluate"])]
    pub command: Option<String>,

    /// Only runs with these criteria, by name
    #[arg(short, long, value_name = "NAME")]
    pub criteria: Option<String>,

    /// Only runs that met the criteria
    #[arg(long, conflicts_with = "failed")]
    pub success: bool,

    /// Only runs that did not meet the criteria
    #[arg(long)]
    pub failed: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `reflect history stats`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  reflect history stats
  reflect history stats --since 30d -m qwen3
  reflect history stats --json | jq '.[] | select(.worse > 0.05)'

Counts only finished runs whose first and selected drafts have scores.")]
pub(super) struct StatsArgs {
    /// Only runs since: 7d, 12h, or a date
    #[arg(long, value_name = "AGE|DATE")]
    pub since: Option<String>,

    /// Only runs with a model whose name contains this
    #[arg(short, long, value_name = "NAME")]
    pub model: Option<String>,

    /// Only runs with these criteria, by name
    #[arg(short, long, value_name = "NAME")]
    pub criteria: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `reflect history resume`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "\
Examples:
  reflect history resume last
  reflect history resume 1f3a9c5e --max-total-tokens 50000
  reflect history resume last -i            decide yourself from here on

The run continues with its own task, criteria, settings and models. Replies and verdicts in the log are reused; nothing \
is paid for twice. Keys and provider addresses come from the current configuration and environment.",
    mut_arg("dry_run", |arg| arg.hide(true)),
    mut_arg("no_log", |arg| arg.hide(true)),
)]
pub(super) struct ResumeArgs {
    /// Run id, its end as in `history list`, or `last`
    #[arg(default_value = "last", add = ArgValueCompleter::new(complete::runs))]
    pub run: String,

    /// Raise the maximum number of drafts, including the first
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Loop")]
    pub max_iterations: Option<u32>,

    /// Raise the limit on tokens, including those used before
    #[arg(long, value_name = "N", help_heading = "Loop")]
    pub max_total_tokens: Option<u64>,

    /// Raise the limit on time, including the time before, for example 90s or 10m
    #[arg(long, value_name = "TIME", help_heading = "Loop")]
    pub max_time: Option<String>,

    /// Raise the limit on cost, including the cost before
    #[arg(long, value_name = "X", help_heading = "Loop")]
    pub max_cost: Option<f64>,

    /// Maximum tokens of a revision
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Loop")]
    pub max_revision_tokens: Option<u32>,

    /// Limits on further model calls.
    #[command(flatten)]
    pub limits: CallLimitArgs,

    /// Questions at the terminal.
    #[command(flatten)]
    pub asking: AskingArgs,

    /// Let criteria and tools run code on this machine, as when the run was started
    #[arg(long, help_heading = "Criteria")]
    pub allow_exec: bool,

    /// Print a diff of each revision to stderr
    #[arg(long, help_heading = "Output")]
    pub diff: bool,

    /// Print only the first fenced code block of the draft, or all of it if there is none
    #[arg(long, help_heading = "Output")]
    pub extract: bool,

    /// Output options.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `reflect criteria`.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  reflect criteria list
  reflect criteria show commit
  reflect criteria init --from commit mine.toml
  reflect criteria init letter.toml --task-type writing
  reflect criteria check *.toml
  reflect criteria schema > criteria.schema.json")]
pub(super) enum CriteriaCommand {
    /// List the criteria that can be used by name
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show criteria with defaults filled in
    Show {
        /// Criteria file or name
        #[arg(value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
        criteria: String,
        /// Output format
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: CriteriaFormat,
    },
    /// Check criteria files, without calling a model
    Check {
        /// Criteria files or names
        #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
        files: Vec<String>,
    },
    /// Write a new criteria file
    Init {
        /// The file to write; `-` for stdout
        #[arg(value_name = "FILE", default_value = "criteria.toml", value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Kind of text: code, writing, analysis or reasoning
        #[arg(long, value_name = "TYPE", default_value = "writing", hide_possible_values = true, value_parser = PossibleValuesParser::new(TASK_TYPES.iter().copied()))]
        task_type: String,
        /// Copy this criteria file or built-in set, with its comments
        #[arg(long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, conflicts_with = "task_type", add = ArgValueCompleter::new(complete::criteria))]
        from: Option<String>,
        /// Overwrite an existing file
        #[arg(long)]
        force: bool,
    },
    /// Print the JSON Schema of criteria files, for editors
    Schema,
}

/// How criteria are printed.
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
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  reflect models
  reflect models list --base-url http://127.0.0.1:8080/v1
  reflect models pull qwen3-1.7b")]
pub(super) struct ModelsArgs {
    /// What to do; without it, list.
    #[command(subcommand)]
    pub command: Option<ModelsCommand>,
}

/// The commands of `reflect models`.
#[derive(Debug, Subcommand)]
pub(super) enum ModelsCommand {
    /// List the available models (the default)
    List {
        /// Only models of this provider
        #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(complete::providers))]
        provider: Option<String>,
        /// Address of the server
        #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
        base_url: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Download an embedded model
    Pull {
        /// A name from `reflect models list`, or `hf:OWNER/REPO/FILE` [default: the default model]
        model: Option<String>,
    },
    /// Print the folder of embedded models
    Path,
}

/// `reflect config`.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  reflect config init
  reflect config edit
  reflect config show --origin
  reflect config schema > config.schema.json")]
pub(super) enum ConfigCommand {
    /// Print the path of the configuration file
    Path,
    /// Print the effective settings
    Show {
        /// Show where each value comes from
        #[arg(long)]
        origin: bool,
    },
    /// Write the prompt templates to a folder, for `--prompt-dir`
    Prompts {
        /// The folder; created if missing
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
        /// Overwrite existing files
        #[arg(long)]
        force: bool,
    },
    /// Write a configuration file with every setting explained
    Init {
        /// Overwrite an existing file
        #[arg(long)]
        force: bool,
    },
    /// Edit the configuration file in $VISUAL or $EDITOR, and check it
    Edit,
    /// Print the JSON Schema of the configuration file, for editors
    Schema,
}

fn parse_share(text: &str) -> Result<f64, String> {
    Range::from(0).to(1).parser()(text)
}
