//! The arguments of `reflect memory`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{ModelArgs, parse_share};

/// `reflect memory`.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  reflect memory learn --since 30d
  reflect memory add fact \"Migrations are made with drizzle-kit\" --confidence 0.85
  reflect draft \"How do I set up migrations?\" -c writing --memory
  reflect memory list
  reflect memory export > memory.jsonl

Memory is in the same file as the run log (`reflect history path`). It leaves this machine only in the prompts of your \
runs.")]
pub(in crate::cli) enum MemoryCommand {
    /// List entries with their current confidence
    List(MemoryListArgs),
    /// Add a fact, a procedure or an insight
    #[command(subcommand, arg_required_else_help = true)]
    Add(MemoryAddCommand),
    /// Delete entries; runs keep what they used (`reflect history rm`)
    Rm {
        /// Ids as in `memory list`
        #[arg(value_name = "ID", required_unless_present_any = ["faded", "all"], conflicts_with_all = ["faded", "all"])]
        ids: Vec<u64>,
        /// Delete all faded entries, which are not offered any more
        #[arg(long, conflicts_with = "all")]
        faded: bool,
        /// Delete everything
        #[arg(long)]
        all: bool,
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
    },
    /// Learn from the run log: recurring issues and what fixed them
    Learn(Box<LearnArgs>),
    /// Import entries from JSON lines or a context file
    #[command(after_long_help = "\
Examples:
  reflect memory import memory.jsonl
  reflect memory import context.json        a file as for `--context`

Each line is an object:
  fact: {\"content\": \"…\", \"confidence\": 0.85}
  procedure: {\"name\": \"…\", \"content\": \"…\", \"successRate\": 0.9}
  insight: {\"category\": \"…\", \"content\": \"…\", \"confidence\": 0.6, \"criteria\": \"…\"}
Existing entries get the new values.")]
    Import {
        /// The file; `-` for stdin
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Print everything as JSON lines, for `import`
    Export {
        /// Write to a file instead of stdout
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
}

/// `reflect memory list`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  reflect memory list migrations
  reflect memory list --kind insight --criteria blog
  reflect memory list --json | jq '.[] | select(.faded)'")]
pub(in crate::cli) struct MemoryListArgs {
    /// Only entries that match these words, best first
    pub words: Vec<String>,

    /// Only this kind
    #[arg(long)]
    pub kind: Option<MemoryKind>,

    /// Only insights about the criteria of this name
    #[arg(short, long, value_name = "NAME")]
    pub criteria: Option<String>,

    /// Only faded entries, which are not offered any more
    #[arg(long)]
    pub faded: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum MemoryKind {
    /// A statement.
    Fact,
    /// A way to do something.
    Procedure,
    /// Advice from earlier runs.
    Insight,
}

/// `reflect memory add`.
#[derive(Debug, Subcommand)]
#[command(after_long_help = "\
Examples:
  reflect memory add fact \"We use Postgres 16\" --confidence 0.9
  reflect memory add procedure \"Generate, then push\" --name Migrate --success-rate 0.9
  reflect memory add insight \"Say in the first line what it is about\" --criteria blog")]
pub(in crate::cli) enum MemoryAddCommand {
    /// Add a fact
    Fact {
        /// The fact
        content: String,
        /// Confidence, 0 to 1
        #[arg(long, value_name = "SHARE", value_parser = parse_share)]
        confidence: Option<f64>,
        /// The claim that it supports
        #[arg(long, value_name = "TEXT")]
        supports_claim: Option<String>,
    },
    /// Add a procedure: a way to do something
    Procedure {
        /// The procedure
        content: String,
        /// Its name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// Initial success rate, 0 to 1; runs that use it update it
        #[arg(long, value_name = "SHARE", value_parser = parse_share)]
        success_rate: Option<f64>,
    },
    /// Add an insight: advice for the writer
    Insight {
        /// The advice
        content: String,
        /// Initial confidence, 0 to 1; runs that use it update it
        #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "0.7")]
        confidence: f64,
        /// Category
        #[arg(long, value_name = "WORD", default_value = "general")]
        category: String,
        /// Only for the criteria of this name
        #[arg(short, long, value_name = "NAME")]
        criteria: Option<String>,
        /// Only for this model, as PROVIDER:MODEL
        #[arg(long, value_name = "MODEL")]
        for_model: Option<String>,
    },
}

/// `reflect memory learn`.
#[derive(Debug, Args)]
#[command(
    after_long_help = "\
Examples:
  reflect memory learn
  reflect memory learn --since 30d --llm -m ollama:qwen3:8b

It reads the last 1000 runs and keeps what at least two of them show and most of them do not contradict. It adds nothing \
twice, and calls no model without --llm.",
    mut_arg("stronger_model", |arg| arg.hide(true)),
)]
pub(in crate::cli) struct LearnArgs {
    /// Only from runs since: 30d, 12h, or a date
    #[arg(long, value_name = "AGE|DATE")]
    pub since: Option<String>,

    /// Let a model phrase the insights, in one call; it sees the judges' issues
    #[arg(long)]
    pub llm: bool,

    /// The model and its parameters.
    #[command(flatten)]
    pub model: ModelArgs,
}
