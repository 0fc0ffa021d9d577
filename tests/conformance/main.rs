//! Cases of comparable tools, run against the program: data in, verdict out.
//!
//! A row says what its tool does (`expected`) and, where that is a fault, what is to be done instead
//! (`recommended`, which then goes before it). The wording of messages is each tool's own; where an error
//! is and which keyword is violated is not. Rows that we disagree with are listed with the reason.

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
