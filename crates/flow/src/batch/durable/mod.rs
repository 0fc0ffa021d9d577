//! A batch on many machines, through a Restate server: an engine for durable execution. It keeps a journal of each
//! task, and lets another worker continue a task whose worker is lost.
//!
//! A task is a workflow: a run of the loop on some worker, recorded in steps ([`DurableJournal`]). A step ends with the
//! answer of a model or with a verdict, and is in the server's journal before the next call begins. So is the fact
//! that the call begins, which the server refuses to record once another worker has the task. A worker that takes over
//! a task receives the steps and resumes the run from them, as `reflect history resume` does from the store. So a
//! worker that dies costs the calls under way and no others, and the row counts them.
//!
//! The server has one address for all workers: that of the only worker, or of a load balancer in front of them. Rate
//! limits hold for all workers: the server has an object for each model.
//!
//! The batch decides whether a failed task is tried again, as a job of its own, and what it receives from memory.

mod admin;
mod client;
mod error;
mod fitness;
mod ingress;
mod job;
mod journal;
mod limits;
mod serve;
mod workflow;

pub use admin::Admin;
pub use client::RETRY_PAUSE;
pub use error::EngineError;
pub use ingress::{Ingress, Notice};
pub use job::{Done, Job, JobPlan, Rates};
pub use journal::DurableJournal;
pub use serve::serve;
pub use workflow::{Begin, Worker};

/// The version of this program, as workers and batches compare it.
pub fn version() -> String {
    format!(
        "reflect {} with prompts {}",
        env!("CARGO_PKG_VERSION"),
        crate::prompt::PROMPT_VERSION
    )
}
