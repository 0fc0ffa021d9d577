//! The behaviour of a peer (legend and origin: each row of `tea.json` says its own), row by row. A row's
//! `recommended` goes before its `expected`. Rows that we disagree with are listed with the reason.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "these are tests")]

#[cfg(unix)]
mod custom;
