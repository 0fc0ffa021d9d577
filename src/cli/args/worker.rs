//! `reflect worker`, as it is typed.

use std::net::SocketAddr;

use clap::Args;

use crate::batch::Concurrency;
use crate::batch::durable::EngineAddress;

/// `reflect worker`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  reflect worker --engine restate://localhost
  reflect worker --engine restate://queue --listen 0.0.0.0:9080 --advertise gpu7:9080
  reflect batch tasks.jsonl -c blog.toml -m ollama:qwen3:8b -o out.jsonl --engine restate://queue

A worker takes its criteria and its models' names from the tasks; the addresses and keys of \
providers are those of its own configuration. It may be ended and started at any time: others go \
on with its tasks, and only calls that were under way are made again. The server and all workers \
must reach each other; nobody else should, for nothing is encrypted.")]
pub(in crate::cli) struct WorkerArgs {
    /// The Restate server, as `restate://HOST[:PORT]`
    #[arg(long, value_name = "URL")]
    pub engine: EngineAddress,

    /// Where the server is administered, as HOST:PORT [default: port 9070 of its host]
    #[arg(long, value_name = "HOST:PORT")]
    pub admin: Option<String>,

    /// Where this worker listens
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9080")]
    pub listen: SocketAddr,

    /// Where the server and the other workers reach this one, as HOST:PORT [default: where it listens]
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,

    /// How many calls at once; `auto`: as many as the models' server takes without becoming slow
    #[arg(short = 'j', long, value_name = "N|auto", default_value = "auto")]
    pub concurrency: Concurrency,

    /// Keep no record of the runs that end here
    #[arg(long)]
    pub no_log: bool,

    /// Let the criteria and tools of all tasks run programs on this machine
    #[arg(long)]
    pub allow_exec: bool,
}
