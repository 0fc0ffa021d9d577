//! Scripts in the sandbox with real workers: what they return, and what they cannot do.

#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests")]
#![expect(clippy::too_many_lines, reason = "tables of scripts")]

mod lua;
mod pool;
mod prolog;
mod python;
mod support;
