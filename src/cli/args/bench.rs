//! The arguments of `reflect bench`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;

use super::{KnowledgeArgs, LoopsArgs, ModelArgs, RateArgs, TasksArgs};
use crate::batch::Concurrency;
use crate::bench::Arm;
use crate::bench::judging::Mode;
use crate::cli::complete;

/// `reflect bench`.
#[derive(Debug, Args)]
#[command(
    after_long_help = BENCH_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    mut_arg("tools", |arg| arg.help("Show the writer of the arm `reflect` the output of this program; repeatable")),
    mut_arg("max_total_tokens", |arg| arg.help("Start no more trials once all together have used this many tokens")),
    mut_arg("max_cost", |arg| arg.help("Start no more trials once all together have cost this much, by the prices in your configuration")),
    mut_arg("max_time", |arg| arg.help("Stop after this time, for example 90s or 2h; unfinished trials run again next time"))
)]
pub(in crate::cli) struct BenchArgs {
    /// Another measurement.
    #[command(subcommand)]
    pub command: Option<BenchCommand>,

    /// `starter`, `ifeval`, or a file with tasks as for `reflect batch`
    #[arg(value_name = "SET|TASKS", required = true, value_hint = ValueHint::FilePath)]
    pub tasks: Option<String>,

    /// Criteria file or built-in set for tasks without their own; repeatable
    #[arg(short, long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
    pub criteria: Vec<String>,

    /// Arms to compare [default: single,best-of-n,append-loop,reflect]
    #[arg(
        long,
        value_name = "ARMS",
        value_delimiter = ',',
        default_value = "single,best-of-n,append-loop,reflect",
        hide_default_value = true,
        help_heading = "Benchmark"
    )]
    pub arms: Vec<Arm>,

    /// Seeds per arm, starting at --seed or 1
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u64).range(1..=100), help_heading = "Benchmark")]
    pub seeds: u64,

    /// Token budget per arm and task [default: the cost of `reflect`]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..), hide_short_help = true, help_heading = "Benchmark")]
    pub budget: Option<u64>,

    /// Use N checks of each task only for scoring, hidden from the arms
    #[arg(
        long,
        value_name = "N",
        default_value = "0",
        help_heading = "Benchmark"
    )]
    pub holdout: usize,

    /// Use only the first N tasks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Benchmark")]
    pub limit: Option<u32>,

    /// Add a file as context of every task; repeatable
    #[arg(short, long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Input")]
    pub files: Vec<PathBuf>,

    /// What the models know.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,

    /// System prompt for all tasks
    #[arg(
        short,
        long,
        value_name = "TEXT",
        hide_short_help = true,
        help_heading = "Input"
    )]
    pub system: Option<String>,

    /// Concurrent trials [default: auto, as many as the server handles]
    #[arg(
        short = 'j',
        long,
        value_name = "N|auto",
        default_value = "auto",
        hide_default_value = true,
        help_heading = "Pace"
    )]
    pub concurrency: Concurrency,

    /// Limits on the rate of requests.
    #[command(flatten)]
    pub rates: RateArgs,

    /// Append a row per trial to this file; resumes from it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Output")]
    pub output: Option<PathBuf>,

    /// Output format: text, json, markdown or html
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        hide_possible_values = true,
        help_heading = "Output"
    )]
    pub format: BenchFormat,

    /// Also write the report to a .html, .json or .md file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true, help_heading = "Output")]
    pub report: Option<PathBuf>,

    /// Exit with 0 even if reflect is worse or a limit was reached
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub exit_zero: bool,

    /// The loops.
    #[command(flatten)]
    pub loops: LoopsArgs,
}

const BENCH_HELP: &str = "\
Sets:
  starter      60 tasks in this program: commit messages, JSON, summaries, SQL, product texts, plans, code; the 8 \
tasks with code run it to test it, and are skipped without --allow-exec
  ifeval       prompts with instructions that can be checked, fetched once from their publisher (Apache-2.0, about \
200 kB); prompts whose official checkers have no exact counterpart are skipped

Arms:
  single       one call with the bare prompt
  best-of-n    samples of the bare prompt up to the first that passes or the budget; the best one counts
  append-loop  a chat that appends the failed checks; the last draft counts
  reflect      the loop, with the settings in force

All arms use the same model, seeds and checks. Cost is the output tokens plus the prompt tokens that the server \
had to evaluate. An arm draws another draft if the mean cost of its drafts still fits the budget. Seed S asks call K \
of a trial with 1000*S+K. Answers are scored by a verdict of their own, which is not part of the cost.

A row is one trial: a row of `reflect batch` with task, arm, seed, met, checks, hidden, calls, cost_tokens, \
total_tokens and setup. Intervals are 95 % bootstrap intervals over tasks; p is that of an exact sign test over tasks.

Examples:
  reflect bench starter -m ollama:qwen3:8b
  reflect bench tasks.jsonl -c blog.toml
  reflect bench tasks.jsonl -c blog.toml -m ollama:qwen3:8b -o rows.jsonl --report bench.html
  reflect bench tasks.jsonl --arms reflect,best-of-n --seeds 5 --holdout 1

Exit codes: 0, or 3 if reflect is significantly worse than another arm (p < 0.05); 130, 4, 5 as for `reflect batch`.";

/// What else `reflect bench` measures.
#[derive(Debug, Subcommand)]
pub(in crate::cli) enum BenchCommand {
    /// Measure a judge against human labels
    Judge(Box<JudgeBenchArgs>),
}

/// `reflect bench judge`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  reflect bench judge labelled.jsonl -c blog.toml
  reflect bench judge labelled.jsonl -c blog.toml --judge-model openai:gpt-4o-mini --write

A line is a text with a label (true, false, or 0 to 1), or a pair of texts:
  {\"prompt\": \"…\", \"text\": \"…\", \"label\": true}
  {\"prompt\": \"…\", \"a\": \"…\", \"b\": \"…\", \"better\": \"a\"}

Each text is judged in each judge mode: twice, and once with padding. Each pair is compared in both orders.")]
pub(in crate::cli) struct JudgeBenchArgs {
    /// Labelled texts, one JSON object per line
    #[arg(value_name = "LABELLED", value_hint = ValueHint::FilePath)]
    pub labelled: PathBuf,

    /// Criteria file or built-in set that the judge applies
    #[arg(short, long, value_name = "FILE|NAME", value_hint = ValueHint::FilePath, add = ArgValueCompleter::new(complete::criteria))]
    pub criteria: String,

    /// The judge modes to measure: joint, expected, separate, three-samples
    #[arg(
        long,
        value_name = "MODES",
        value_delimiter = ',',
        default_value = "joint,expected,separate,three-samples"
    )]
    pub modes: Vec<Mode>,

    /// How many trials to run at once; `auto`: as many as the server takes without becoming slow
    #[arg(short = 'j', long, value_name = "N|auto", default_value = "auto")]
    pub concurrency: Concurrency,

    /// How fast requests are made.
    #[command(flatten)]
    pub rates: RateArgs,

    /// Append the row of each trial to this file; the same command resumes from it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,

    /// Write the recommended [judge] settings and threshold into the criteria file
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    /// Let the criteria run code on this machine
    #[arg(long, hide_short_help = true)]
    pub allow_exec: bool,

    /// The judge model and its parameters.
    #[command(flatten)]
    pub model: ModelArgs,
}

impl BenchArgs {
    /// The set or the file with tasks.
    pub(in crate::cli) fn tasks(&self) -> &str {
        self.tasks.as_deref().unwrap_or_default()
    }

    /// Returns the tasks and the options of their loops. Runs are not recorded and use no memory: trials must not help each
    /// other.
    pub(in crate::cli) fn tasks_args<'a>(&'a self, criteria: &'a [String]) -> TasksArgs<'a> {
        TasksArgs {
            criteria,
            tasks: Path::new(self.tasks()),
            knowledge: &self.knowledge,
            memory: Some(false),
            loops: &self.loops,
            no_log: true,
        }
    }
}

/// How the report of a benchmark is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum BenchFormat {
    /// A table for people.
    Text,
    /// One JSON object.
    Json,
    /// For a pull request or an issue.
    Markdown,
    /// One page with a plot, for a browser.
    Html,
}
