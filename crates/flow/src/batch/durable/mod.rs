//! A batch on many machines, through a Restate server: an engine for durable execution. It keeps a journal of each
//! task, and has another worker continue a task whose worker is lost.
//!
//! A task is a workflow: a run of the loop on some worker, recorded in steps ([`Tape`]). A step ends with an answer of
//! a model or with a verdict, and is in the server's journal before the next call begins. A worker that takes over a
//! task receives these steps and resumes the run from them, as `reflect history resume` does from the store. So a
//! worker that dies costs the calls under way, and no other.
//!
//! The server has one address for all workers: that of the only worker, or of a load balancer before them. Rate limits
//! hold for all workers, by an object of the server for each model.
//!
//! The batch decides whether a failed task is tried again, as a job of its own, and what it is told from memory.

mod address;
#[cfg(feature = "restate")]
mod admin;
#[cfg(feature = "restate")]
mod client;
#[cfg(feature = "restate")]
mod error;
#[cfg(feature = "restate")]
mod fitness;
#[cfg(feature = "restate")]
mod ingress;
#[cfg(feature = "restate")]
mod job;
#[cfg(feature = "restate")]
mod limits;
#[cfg(feature = "restate")]
mod serve;
#[cfg(feature = "restate")]
mod tape;
#[cfg(feature = "restate")]
mod workflow;

pub use address::EngineAddress;
#[cfg(feature = "restate")]
pub use admin::Admin;
#[cfg(feature = "restate")]
pub use error::EngineError;
#[cfg(feature = "restate")]
pub use ingress::{Ingress, Notice};
#[cfg(feature = "restate")]
pub use job::{Done, Job, JobPlan, Rates};
#[cfg(feature = "restate")]
pub use serve::serve;
#[cfg(feature = "restate")]
pub use tape::Tape;
#[cfg(feature = "restate")]
pub use workflow::{Begin, Worker};

/// The version of this program, as workers and batches compare it.
#[cfg(feature = "restate")]
pub fn version() -> String {
    format!(
        "reflect {} with prompts {}",
        env!("CARGO_PKG_VERSION"),
        crate::prompt::PROMPT_VERSION
    )
}
