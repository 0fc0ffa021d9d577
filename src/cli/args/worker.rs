//! The arguments of `reflect worker`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::batch::Concurrency;
use crate::batch::EngineAddress;
use crate::types::HumanDuration;

/// `reflect worker`.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  reflect worker --engine restate://localhost --register
  reflect worker --engine restate://queue --listen 0.0.0.0:9080 --advertise balancer:9080 --register
  reflect batch tasks.jsonl -c blog.toml -m ollama:qwen3:8b -o out.jsonl --engine restate://queue

The server has one address for all workers. With one worker that is the worker's own; before several \
of them stands a load balancer (see docs/scale.md), and each advertises the balancer's address.

Tasks bring criteria, settings and the names of models. Addresses, keys and files are those of the \
worker's own configuration. Workers may stop and start at any time: other workers continue their \
tasks, and repeat only the calls that were under way.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(in crate::cli) struct WorkerArgs {
    /// The Restate server: `restate://HOST[:PORT]`, or `https://HOST[:PORT]` behind TLS
    #[arg(long, value_name = "URL")]
    pub engine: EngineAddress,

    /// The URL of the server's admin API [default: port 9070 of its host]
    #[arg(long, value_name = "URL")]
    pub admin: Option<String>,

    /// Have the server send its tasks to the workers at the advertised address; waits for the server
    #[arg(long)]
    pub register: bool,

    /// Register even if the server has workers at another address or of another version: their tasks move here
    #[arg(long, requires = "register")]
    pub replace: bool,

    /// Listen at this address
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:9080")]
    pub listen: SocketAddr,

    /// The address of this worker, or of the load balancer before all workers, as the server reaches it [default: --listen]
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,

    /// Concurrent calls; `auto`: as many as the model server handles without slowing down
    #[arg(short = 'j', long, value_name = "N|auto", default_value = "auto")]
    pub concurrency: Concurrency,

    /// On SIGTERM or Ctrl-C, give the calls under way this long to end
    #[arg(long, value_name = "TIME", default_value = "25s")]
    pub grace: HumanDuration,

    /// Give tasks evidence from this file or folder, if the batch has the same one; repeatable
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub evidence: Vec<PathBuf>,

    /// Refuse requests that the server has not signed with this key, `publickeyv1_…`
    #[arg(long, value_name = "KEY")]
    pub identity: Option<String>,

    /// Keep no record of the runs that end here
    #[arg(long)]
    pub no_log: bool,

    /// Let the criteria and tools of all tasks run programs on this machine
    #[arg(long)]
    pub allow_exec: bool,
}
