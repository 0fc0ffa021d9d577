//! The models over HTTP, against a scripted server: every fault that a server or a network can have.

#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[expect(
    dead_code,
    unreachable_pub,
    reason = "each test program uses another part of it"
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
