//! Child processes and workers with limits, for code and commands.
//!
//! Everything that is not ours runs in a process of its own, in a session of its own, with limits on
//! time, memory, output and processes, an almost empty environment and a private directory for
//! temporary files. At a limit, and at the end, the whole session is killed, with all that it started;
//! on Linux also what has left the session.
//!
//! | | Linux | other Unix | Windows |
//! |---|---|---|---|
//! | time, output | yes | yes | yes |
//! | what it started ends with it | session, and by a mark in the environment | process group | the program itself |
//! | files: open, size | yes | yes | no |
//! | memory | each process, and all together | Lua: the interpreter | Lua: the interpreter |
//! | processes | all together | no | no |
//! | lower priority | yes | yes | no |
//!
//! # All together, on Linux
//!
//! - In a control group, where one can be made (version 2 with `pids` enabled beside our own group, as in
//!   a user's session of systemd; version 1 as root), the kernel keeps the number of processes, and in
//!   version 2 the memory, below the limit, and ends all of them in one step. Nothing leaves a group by
//!   leaving its session.
//! - Everywhere else a watch looks at them every 50 ms, from a thread of its own, and ends them where they
//!   are over a limit. In between they may be more than the limit; `RLIMIT_NPROC` bounds how many, but not
//!   for root, whom it does not bind. Their lower priority leaves the watch its time.
//! - Commands do not become another user where we are root: they are to read and write what the user's
//!   own programs do.
//!
//! # Scripts
//!
//! A script sees `output` (the draft) and `state`; see [`ScriptRequest`]. Its value is:
//!
//! - **Lua 5.4**: what it returns, else the global `result`. It has text, tables, mathematics (with a
//!   fixed random seed), coroutines, `load` of text, `print` and `json`; no files, processes, clocks or
//!   modules. A JSON null is nil; an empty table is an object, `json.decode("[]")` an empty list.
//! - **Python 3.8 or newer** (`python3 -I -S`: no site packages): what a top-level `return` gives, else the
//!   variable `result`, else `output` if it was assigned to. `state`, `json`, `re` and the
//!   `reflection_…` names are there without an import.
//! - **SWI-Prolog 9**: the script is a list of clauses and goals. A term without `:-` is a goal if it is a
//!   control structure (`a, b`), a built-in predicate, or one of the five below; a fact otherwise. All
//!   clauses are loaded, then the goals run in their order, each once, until one fails. Without
//!   goals `evaluate/0`, `main/0` or `valid/0` is run. `state(Key, Value)` and `output(Draft)` are
//!   facts; `return(Key, Value)`, `score(Number)` and `feedback(Text)` say the verdict, called or
//!   defined by the script. The value is whether the goals succeeded; with a verdict an object of
//!   its keys (`feedback` joined by line feeds), with `valid` false if a goal failed, and true if nothing
//!   else says it; `return(result, Value)` alone gives that value. Goals pass `library(sandbox)`.
//!   JSON text is a string, a key an atom, an object a dict, null the atom `null`; the other way, atoms
//!   are text, but for `true`, `false`, `null` and `[]`, and other terms are text as they are written.
//!
//! Text that is not UTF-8 comes back with U+FFFD. Numbers that JSON has not are an error.
//!
//! Nothing of one script is left for the next: Lua gets a fresh interpreter, Python a fork of one,
//! Prolog a module that is removed.

use reflect_base::secrets;

mod capture;
#[cfg(target_os = "linux")]
mod cgroup;
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
mod watch;
#[cfg(target_os = "linux")]
mod watchdog;
mod wire;
mod worker;

pub use capture::Captured;
pub use command::{CommandEnd, CommandError, CommandOutput, CommandSpec, Scratch, run_command};
pub use interpreter::check_interpreter;
pub use limits::{LimitHit, Limits};
pub use lookup::{check_program, minimal_env};
pub use pool::ScriptPool;
pub use script::{
    Language, ScriptError, ScriptErrorKind, ScriptOutcome, ScriptRequest, UnknownLanguage,
};
#[cfg(target_os = "linux")]
pub use watchdog::use_watchdog;
pub use worker::worker_main;

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod syscalls;

#[cfg(test)]
#[cfg(unix)]
mod command_tests;
