//! Child processes and workers with limits, for code and commands.
//!
//! Everything that is not ours runs in a process of its own, in a session of its own, with limits on
//! time, memory, output and processes, an almost empty environment and a private directory for
//! temporary files. At a limit, and at the end, the whole session is killed, with all that it started.

mod capture;
mod command;
mod limits;
mod lookup;
#[cfg(target_os = "linux")]
mod proc;
mod process;
#[cfg(unix)]
mod rlimits;

pub use capture::Captured;
pub use command::{CommandEnd, CommandError, CommandOutput, CommandSpec, Scratch, run_command};
pub use limits::{LimitHit, Limits};
pub use lookup::minimal_env;

#[cfg(test)]
#[cfg(unix)]
mod command_tests;
