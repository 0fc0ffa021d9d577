//! Judging a draft: one file per evaluator, and how their verdicts add up.

mod add_up;
mod advice;
mod answer;
mod apart;
mod command;
mod compare;
mod contains;
mod distill;
mod errors;
mod finding;
mod grade;
mod json_text;
mod judge;
mod length;
mod panel;
mod passage;
mod preference;
mod regex;
mod returned;
mod schema;
mod script;
mod subject;
mod terms;
mod tools;
mod unique;
mod watch;

use async_trait::async_trait;

pub use self::advice::{advice_prompt, advise};
pub use self::command::{ProgramRun, run_program};
pub use self::errors::read_errors;
use self::finding::{Fault, Finding};
pub use self::judge::pairwise::{Comparison, ComparisonError, Pair, Preference, prefer};
pub use self::judge::{
    JudgeModel, MemoryCache, OtherModel, VerdictCache, VerdictCall, verdict_calls, verdict_tokens,
};
pub use self::panel::Panel;
pub use self::returned::{NoVerdict, read_returned};
pub use self::script::interpreter;
pub use self::subject::{Earlier, Progress, Subject};
pub use self::tools::{ExecPermission, NotAllowed, RanScript, Tools};
pub use self::watch::{Hopeless, Watch};

/// An evaluator that needs no model: its verdict on a draft is a matter of fact.
#[async_trait]
trait HardCheck: Send + Sync {
    /// Measures the draft.
    async fn check(&self, subject: &Subject<'_>) -> Finding;
}
