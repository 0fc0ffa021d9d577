//! Judging a draft: one file per evaluator, and how their verdicts add up.

mod add_up;
mod finding;
mod judge;
mod length;
mod panel;
mod regex;
mod subject;

use async_trait::async_trait;

use self::finding::{Fault, Finding};
pub use self::judge::pairwise::{Comparison, ComparisonError, Preference, prefer};
pub use self::judge::{JudgeModel, MemoryCache, OtherModel, VerdictCache, verdict_tokens};
pub use self::panel::Panel;
pub use self::subject::Subject;

/// An evaluator that needs no model: its verdict on a draft is a matter of fact.
#[async_trait]
trait HardCheck: Send + Sync {
    /// Measures the draft.
    async fn check(&self, subject: &Subject<'_>) -> Finding;
}
