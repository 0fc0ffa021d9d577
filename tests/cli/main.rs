//! Black-box tests of the program: what it reads, prints, stores and returns, in an isolated world with a
//! scripted server.

#[expect(
    dead_code,
    unreachable_pub,
    reason = "each test program uses a different part of it"
)]
#[path = "../support/mod.rs"]
mod support;

mod answers;
mod assess;
mod batch;
mod bench;
mod candidates;
#[cfg(unix)]
mod command;
mod compare;
mod completions;
mod config;
mod context;
mod convergence;
mod cost;
mod criteria;
mod docs;
mod doctor;
mod dry_run;
mod early_stop;
mod evaluate;
#[cfg(unix)]
mod evaluate_formats;
mod everyday;
mod evidence;
mod examples;
mod faults;
mod gate;
mod harness;
mod help;
mod history;
mod input;
#[cfg(unix)]
mod integrations;
mod json_errors;
mod judge;
mod mcp;
mod memory;
mod models;
mod no_judge;
mod ollama;
mod output;
#[cfg(unix)]
mod permission;
#[cfg(unix)]
mod pipes;
mod places;
mod plan;
mod prompts;
#[cfg(unix)]
mod recipes;
mod reflector;
mod replan;
mod report;
#[cfg(unix)]
mod resume;
mod revise;
mod revise_strategies;
mod schema;
mod script;
#[cfg(unix)]
mod signals;
mod spec;
#[cfg(unix)]
mod terminal;
mod triggers;
mod trust;
mod workflow;
mod workflow_calls;
