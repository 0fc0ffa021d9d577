//! Runs scripts and commands in child processes with limits.
//!
//! All foreign code runs in a separate process and session, with limits on time, memory, output and processes, a
//! minimal environment, and a private directory for temporary files. When it hits a limit or ends, the whole session
//! is killed, including on Linux the processes that left the session.
//!
//! | | Linux | other Unix | Windows |
//! |---|---|---|---|
//! | time, output | yes | yes | yes |
//! | descendants are killed | session, and by a mark in the environment | process group | only the program itself |
//! | open files, file size | yes | yes | no |
//! | memory | each process, and the session in total | Lua: the interpreter | Lua: the interpreter |
//! | processes | the session in total | no | no |
//! | lower priority | yes | yes | no |
//!
//! # Limits on the whole session (Linux)
//!
//! - If possible, the session runs in a control group: version 2 with `pids` enabled next to our own group, as in a
//!   systemd user session, or version 1 as root. The kernel then limits the number of processes, and in version 2 the
//!   memory, and kills all processes in one step. A process cannot leave the group by leaving its session.
//! - Otherwise a monitor thread checks the session every 50 ms and kills it if it exceeds a limit. Between two checks
//!   there may be more processes than the limit; `RLIMIT_NPROC` caps them, except for root. The lower priority of the
//!   children leaves the monitor enough CPU time.
//! - Commands run as the current user even if that is root, because they need to access the same files as the user's
//!   own programs.
//!
//! # Scripts
//!
//! A script sees `output` (the draft) and `state`; see [`ScriptRequest`]. Its value is:
//!
//! - **Lua 5.4**: the returned value, or the global `result`. Available: text, tables, mathematics (with a fixed random
//!   seed), coroutines, `load` of source text, `print` and `json`. Not available: files, processes, clocks and modules.
//!   A JSON null is nil; an empty table is an object, `json.decode("[]")` an empty list.
//! - **Python 3.8 or newer** (`python3 -I -S`: no site packages): the value of a top-level `return`, or the variable
//!   `result`, or `output` if the script assigns to it. `state`, `json`, `re` and the `reflection_…` names are
//!   available without an import.
//! - **SWI-Prolog 9**: the script is a list of clauses and goals. A term without `:-` is a goal if it is a control
//!   structure (`a, b`), a built-in predicate, or one of the five predicates below; otherwise it is a fact. All clauses
//!   are loaded, then the goals run once in order, until one fails. Without goals, `evaluate/0`, `main/0` or `valid/0`
//!   runs. `state(WorkerKey, Value)` and `output(Draft)` are facts. `return(WorkerKey, Value)`, `score(Number)` and
//!   `feedback(Text)` set the verdict; the script can call or define them. The value is whether the goals succeeded.
//!   With a verdict, it is an object of the verdict's keys (`feedback` joined with line feeds); `valid` is false if a
//!   goal failed, and true if neither `valid` nor `score` is set. `return(result, Value)` alone makes `Value` the
//!   value. `library(sandbox)` checks all goals. A JSON string or key becomes an atom (a string in a query
//!   matches it too), an object a dict, and null the atom `null`. In the other direction, atoms become strings, except
//!   `true`, `false`, `null` and `[]`; all other terms become strings in Prolog syntax.
//!
//! Invalid UTF-8 becomes U+FFFD. Numbers that JSON cannot represent are an error.
//!
//! Scripts share no state: Lua gets a fresh interpreter, Python a fork of one, and Prolog a temporary module.

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
mod monitor;
mod pool;
#[cfg(target_os = "linux")]
mod proc;
mod process;
mod prolog;
#[cfg(unix)]
mod rlimits;
mod runner;
mod script;
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
