//! Runs a batch on many machines through a Restate server, an engine for durable execution. The server keeps
//! a journal of each task and lets another worker continue a task whose worker is lost.
//!
//! A task is a workflow: a run of the loop on a worker, recorded in steps ([`DurableJournal`]). A step ends
//! with a model's reply or a verdict, and is in the server's journal before the next call begins. The start
//! of a call is recorded as well; the server rejects it once another worker has the task. A worker that takes
//! over a task resumes the run from its steps, as `reflect history resume` does from the store. A crashed
//! worker therefore loses only the calls in progress, and the row counts them.
//!
//! The server has one address for all workers: that of the only worker, or of a load balancer. Rate limits
//! are shared by all workers: the server has an object for each model.
//!
//! The batch process decides whether to retry a failed task as a new job, and which memories a task receives.

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

/// Returns the version of this program, for comparing workers and batches.
pub fn version() -> String {
    format!(
        "reflect {} with prompts {}",
        env!("CARGO_PKG_VERSION"),
        crate::prompt::PROMPT_VERSION
    )
}
