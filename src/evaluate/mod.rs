//! Judging a draft: one file per evaluator, and how their verdicts add up.

mod add_up;
mod apart;
mod compare;
mod contains;
mod finding;
mod judge;
mod length;
mod panel;
mod passage;
mod regex;
mod subject;
mod terms;
mod verdict;

use async_trait::async_trait;

use self::finding::{Fault, Finding};
pub use self::judge::verdict_tokens;
pub use self::panel::{JudgeModel, Panel};
pub use self::subject::Subject;

/// An evaluator that needs no model: its verdict on a draft is a matter of fact.
#[async_trait]
trait HardCheck: Send + Sync {
    /// Measures the draft.
    async fn check(&self, subject: &Subject<'_>) -> Finding;
}
