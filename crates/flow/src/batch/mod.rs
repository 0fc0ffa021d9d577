//! Many tasks at once: one task a line in, one row a task out, resumable, in bounded memory.
//!
//! The way of a task: [`Tasks`] reads lines and says what is to be done; a queue looks a little ahead, so that
//! tasks with the same criteria come one after another; [`run`] keeps as many runs of the loop under way as the
//! [`Gate`] allows; each finished run becomes a [`Row`], which whoever started the batch writes, most often with
//! [`Results`]. What is not written is not done: a batch that is begun again does it then. A task that failed may be
//! tried again in another way first. [`BatchHistory`] tells the reflector how the tasks ended.
//!
//! What grows with the number of tasks is 16 bytes for each id, to know it again; no text is kept, but for the errors
//! of the latest tasks.

mod check;
#[cfg(feature = "restate")]
pub mod durable;
mod ending;
mod engine_address;
mod failure;
mod history;
mod ids;
mod line;
mod order;
mod pace;
mod queue;
mod reader;
mod replan;
mod results;
mod row;
mod run;
mod shard;
mod tally;
mod tasks;
mod template;

pub use check::{Checked, check};
pub use ending::{Ending, Limits, Stop};
pub use engine_address::EngineAddress;
pub use history::{Again, BatchHistory, MOST};
pub use ids::Seen;
pub use line::{Entry, Item};
pub use pace::{Concurrency, Gate, MAX_CONCURRENCY, Pace, Paced};
pub use reader::{InputFormat, Reader};
pub use replan::{Adjustment, Means, advice};
pub use results::{Before, Results, ResultsError};
pub use row::{Replanned, Row, Status};
pub use run::{CriteriaError, Flow, Hands, Host, Now, Options, Output, Remote, RemoteTask, run};
pub use shard::Shard;
pub use tally::Tally;
pub use tasks::{Shape, Tasks};
pub use template::{PromptTemplate, TemplateError};
