//! Models over HTTP, with a scripted server: every fault of a server or a network.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[expect(
    dead_code,
    unreachable_pub,
    reason = "each test program uses a different part of it"
)]
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod faults;
mod learning;
mod network;
mod recorded;
mod requests;
mod setup;
