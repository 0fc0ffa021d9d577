//! A batch on many machines, over a Restate server: an engine for durable execution, which keeps a journal of what
//! each task has done, and has another worker go on with it where one is lost.
//!
//! Nothing of the loop is here. A task is a workflow: a run of the loop on some worker, which is told in steps
//! ([`Tape`]). Each step is what happened up to an answer of a model or a verdict, and is in the server's journal
//! before the next call is begun. A worker that takes a task over is given these steps, and the run is resumed from
//! them as `reflect history resume` resumes one from the store: the same run again, with models that have answered
//! already. So a worker that dies costs the calls that were under way, and no other.
//!
//! The server knows one address for all workers. One of them, the front, is there, and shares the work out; the
//! others tell it once a second that they are there. Where the front is lost, the first that notices takes its
//! place. Limits hold for all workers, by an object of the server for each model.
//!
//! What is decided about a task stays where the batch is: whether a task that failed is tried again, as a job of its
//! own, and what it is told from memory.

mod address;
#[cfg(feature = "restate")]
mod error;
#[cfg(feature = "restate")]
mod front;
#[cfg(feature = "restate")]
mod ingress;
#[cfg(feature = "restate")]
mod job;
#[cfg(feature = "restate")]
mod limits;
#[cfg(feature = "restate")]
mod membership;
#[cfg(feature = "restate")]
mod tape;
#[cfg(feature = "restate")]
mod wire;
#[cfg(feature = "restate")]
mod workflow;

pub use address::EngineAddress;
#[cfg(feature = "restate")]
pub use error::EngineError;
#[cfg(feature = "restate")]
pub use front::Front;
#[cfg(feature = "restate")]
pub use ingress::{Ingress, Notice};
#[cfg(feature = "restate")]
pub use job::{Done, Job, JobPlan, Rates};
#[cfg(feature = "restate")]
pub use membership::{Membership, Standing};
#[cfg(feature = "restate")]
pub use tape::Tape;
#[cfg(feature = "restate")]
pub use workflow::Begin;
