//! `reflect memory`, as it is typed.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{ModelArgs, parse_share};

/// `reflect memory`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  reflect memory learn --since 30d
  reflect memory add fact \"Migrations are made with drizzle-kit\" --confidence 0.85
  reflect draft \"How do I set up migrations?\" -c writing --memory
  reflect memory list
  reflect memory export > memory.jsonl

It is in the same file as the run log (`reflect history path`), and nothing of it leaves this machine but what a run \
tells its model.")]
pub(in crate::cli) enum MemoryCommand {
    /// List what is known, with how sure it is now
    List(MemoryListArgs),
    /// Add a fact, a procedure or an insight
    #[command(subcommand, arg_required_else_help = true)]
    Add(MemoryAddCommand),
    /// Remove something for good; what runs were told stays with these runs (`reflect history rm`)
    Rm {
        /// The numbers that `memory list` shows
        #[arg(value_name = "ID", required_unless_present_any = ["faded", "all"], conflicts_with_all = ["faded", "all"])]
        ids: Vec<u64>,
        /// All that has faded and is not offered any more
        #[arg(long, conflicts_with = "all")]
        faded: bool,
        /// All of it
        #[arg(long)]
        all: bool,
        /// Do not ask first
        #[arg(short, long)]
        yes: bool,
    },
    /// Learn from the runs in the log: what goes wrong again and again, and what fixed it
    Learn(Box<LearnArgs>),
    /// Take in what another program or machine knows: JSON lines, or a context file
    #[command(after_help = "\
Examples:
  reflect memory import memory.jsonl
  reflect memory import context.json        a file as for `--context`

Each line is an object:
  fact: {\"content\": \"…\", \"confidence\": 0.85}
  procedure: {\"name\": \"…\", \"content\": \"…\", \"successRate\": 0.9}
  insight: {\"category\": \"…\", \"content\": \"…\", \"confidence\": 0.6, \"criteria\": \"…\"}
What is there already gets the new figures.")]
    Import {
        /// The file; `-` for standard input
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    /// Print everything as JSON lines, which `import` reads
    Export {
        /// Write to a file instead of standard output
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
}

/// `reflect memory list`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reflect memory list migrations
  reflect memory list --kind insight --criteria blog
  reflect memory list --json | jq '.[] | select(.faded)'")]
pub(in crate::cli) struct MemoryListArgs {
    /// Only what has to do with these words, the best first
    pub words: Vec<String>,

    /// Only this kind
    #[arg(long)]
    pub kind: Option<MemoryKind>,

    /// Only insights about the criteria of this name
    #[arg(short, long, value_name = "NAME")]
    pub criteria: Option<String>,

    /// Only what has faded and is not offered any more
    #[arg(long)]
    pub faded: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum MemoryKind {
    /// Something that is so.
    Fact,
    /// A way to do something.
    Procedure,
    /// Advice that earlier runs taught.
    Insight,
}

/// `reflect memory add`.
#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  reflect memory add fact \"We use Postgres 16\" --confidence 0.9
  reflect memory add procedure \"Generate, then push\" --name Migrate --success-rate 0.9
  reflect memory add insight \"Say in the first line what it is about\" --criteria blog")]
pub(in crate::cli) enum MemoryAddCommand {
    /// Something that is so
    Fact {
        /// The fact in words
        content: String,
        /// How sure it is, 0 to 1
        #[arg(long, value_name = "SHARE", value_parser = parse_share)]
        confidence: Option<f64>,
        /// The claim that it bears on
        #[arg(long, value_name = "TEXT")]
        supports_claim: Option<String>,
    },
    /// A way to do something
    Procedure {
        /// The procedure in words
        content: String,
        /// What it is called
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
        /// How often it works, 0 to 1; the runs that use it go on from there
        #[arg(long, value_name = "SHARE", value_parser = parse_share)]
        success_rate: Option<f64>,
    },
    /// Advice for the writer
    Insight {
        /// The advice in words
        content: String,
        /// How sure it is, 0 to 1; the runs that use it go on from there
        #[arg(long, value_name = "SHARE", value_parser = parse_share, default_value = "0.7")]
        confidence: f64,
        /// What kind of insight
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
    after_help = "\
Examples:
  reflect memory learn
  reflect memory learn --since 30d --llm -m ollama:qwen3:8b

It looks at the last 1000 runs, and keeps what at least two of them show and most of them do not refute. What it knows \
already is not kept twice. No model is asked without --llm.",
    mut_arg("stronger_model", |arg| arg.hide(true)),
)]
pub(in crate::cli) struct LearnArgs {
    /// Only from runs since then: 30d, 12h, or a date
    #[arg(long, value_name = "AGE|DATE")]
    pub since: Option<String>,

    /// Let a model word what was learned, in one call; the model sees what judges said about your drafts
    #[arg(long)]
    pub llm: bool,

    /// Which model words it, and how it is asked.
    #[command(flatten)]
    pub model: ModelArgs,
}
