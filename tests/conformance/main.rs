//! Test cases of comparable tools, run with this program: data in, verdict out.
//!
//! A row contains its tool's behaviour (`expected`) and, if that is wrong, the right behaviour
//! (`recommended`, which takes precedence). The wording of messages is up to each tool; the position of an
//! error and the violated keyword are not. Rows that we disagree with are listed with the reason.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests")]

#[cfg(unix)]
mod custom;
mod evaluate;
mod program;
mod reflector;
mod reflexion;
mod rows;
#[cfg(unix)]
mod workflow;
