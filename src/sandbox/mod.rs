//! Child processes and workers with limits, for code and commands.
//!
//! Everything that is not ours runs in a process of its own, in a session of its own, with limits on
//! time, memory, output and processes, an almost empty environment and a private directory for
//! temporary files. At a limit, and at the end, the whole session is killed, with all that it started.

mod capture;
mod command;
mod interpreter;
mod limits;
mod lookup;
mod lua;
mod lua_json;
mod pool;
#[cfg(target_os = "linux")]
mod proc;
mod process;
mod prolog;
#[cfg(unix)]
mod rlimits;
mod runner;
mod script;
mod wire;
mod worker;

pub use capture::Captured;
pub use command::{CommandEnd, CommandError, CommandOutput, CommandSpec, Scratch, run_command};
pub use limits::{LimitHit, Limits};
pub use lookup::minimal_env;
pub use pool::ScriptPool;
pub use script::{
    Language, ScriptError, ScriptErrorKind, ScriptOutcome, ScriptRequest, UnknownLanguage,
};
pub use worker::worker_main;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod syscalls;

#[cfg(test)]
#[cfg(unix)]
mod command_tests;
