//! Judging the outcome of tasks and plans that something else ran: what went wrong and why, whether
//! another plan would help, what the failures have in common, and what is to be learned from it.
//!
//! Everything here is a pure function of what it is given, and asks no model: the same outcome always has the same
//! verdict. What an executor has to tell is an [`Episode`], a plan and the results of its tasks; [`read`] reads one
//! from JSON.
//!
//! ```
//! use reflect_core::reflector::{self, Episode};
//! use reflect_base::source::Source;
//! use reflect_base::types::ReflectionCriteria;
//!
//! # fn main() -> Result<(), reflect_base::source::SourceError> {
//! let episode = reflector::read(&Source::new(
//!     "episode.json",
//!     r#"{
//!         "plan": { "id": "nightly", "tasks": [{ "id": "fetch", "tool": "http" }] },
//!         "results": [{ "task_id": "fetch", "status": "failed", "error": "Connection timed out" }]
//!     }"#,
//! ))?;
//! let Episode { plan, results } = &episode;
//! let assessment = reflector::evaluate_plan(plan, results, &ReflectionCriteria::default());
//! assert!(!assessment.verdict.success && assessment.verdict.should_replan);
//! # Ok(())
//! # }
//! ```

mod assess;
mod category;
mod cause;
mod episode;
mod gist;
mod learn;
mod order;
mod pattern;
mod read;
mod words;

pub use self::assess::{
    Assessment, Counts, PlanAssessment, evaluate_plan, evaluate_sample, evaluate_task,
};
pub use self::category::ErrorCategory;
pub use self::cause::{Basis, Cause, cause};
pub use self::episode::{Episode, ErrorCode, Plan, PlannedTask, TaskError, TaskResult, TaskStatus};
pub use self::learn::{Insight, InsightCategory, learn_from_episode};
pub use self::pattern::{FailurePattern, PatternType};
pub use self::read::{read, schema};
