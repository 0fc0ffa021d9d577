//! Evaluates the outcome of tasks and plans that another program ran: what failed and why, whether
//! a new plan would help, which patterns the failures have, and what to learn from it.
//!
//! Everything here is a pure function and uses no model: the same outcome always has the same
//! verdict. The input is an [`Episode`], a plan and the results of its tasks; [`read`] parses one
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
mod dependencies;
mod episode;
mod learn;
mod normalize;
mod pattern;
mod phrases;
mod read;

pub use self::assess::{
    Assessment, Counts, PlanAssessment, evaluate_plan, evaluate_sample, evaluate_task,
};
pub use self::category::ErrorCategory;
pub use self::cause::{Basis, Cause, cause};
pub use self::episode::{Episode, ErrorCode, Plan, PlannedTask, TaskError, TaskResult, TaskStatus};
pub use self::learn::{Insight, InsightCategory, learn_from_episode};
pub use self::pattern::{FailurePattern, PatternType};
pub use self::read::{read, schema};
