//! The program from outside: what it reads, prints, keeps and returns, in a world of its own, against a
//! scripted server.

#[expect(
    dead_code,
    unreachable_pub,
    reason = "each test program uses another part of it"
)]
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod config;
mod context;
mod criteria;
mod evaluate;
mod evidence;
mod faults;
mod harness;
mod help;
mod input;
mod models;
mod output;
mod places;
mod plan;
#[cfg(unix)]
mod signals;
