//! Runs many tasks: one task per input line, one row per task. Resumable, in bounded memory.
//!
//! [`Tasks`] parses the lines. A queue looks a little ahead, so that tasks with the same criteria run one
//! after another. [`run`] keeps as many runs of the loop in progress as the [`Gate`] allows. Each completed
//! run becomes a [`Row`], which the caller writes, usually with [`Results`]. A task without a written row is
//! repeated when the batch is resumed. A failed task may first be retried in another way. [`BatchHistory`]
//! tells the reflector how the tasks ended.
//!
//! Memory grows by 16 bytes per task, for its id. No text is kept except the errors of the latest tasks.

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
