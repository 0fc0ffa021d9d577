//! Evaluates drafts: one file per evaluator, and the combination of their verdicts.

mod advice;
mod aggregate;
mod blocking;
mod command;
mod compare;
mod contains;
mod distill;
mod evaluator_set;
mod external_verdict;
mod finding;
mod grade;
mod issue_list;
mod json_text;
mod judge;
mod key_terms;
mod length;
mod passage;
mod preference;
mod regex;
mod schema;
mod script;
mod script_verdict;
mod subject;
mod tools;
mod unique_keys;
mod watch;

use async_trait::async_trait;

pub use self::advice::{advice_prompt, advise};
pub use self::command::{ProgramRun, run_program};
pub use self::evaluator_set::{EvaluatorError, EvaluatorSet};
pub use self::external_verdict::{InvalidVerdict, read_returned};
use self::finding::{CheckIssue, Finding};
pub use self::issue_list::read_errors;
pub use self::judge::pairwise::{Comparison, ComparisonError, Pair, Preference, prefer};
pub use self::judge::{
    JudgeModel, MemoryCache, OtherModel, VerdictCache, VerdictCall, verdict_calls, verdict_tokens,
};
pub use self::script::interpreter;
pub use self::subject::{Earlier, Progress, Subject};
pub use self::tools::{ExecPermission, NotAllowed, ScriptResult, Tools};
pub use self::watch::{Violation, Watch};

/// An evaluator that needs no model: its verdict is a matter of fact.
#[async_trait]
trait HardCheck: Send + Sync {
    /// Measures the draft.
    async fn check(&self, subject: &Subject<'_>) -> Finding;
}
