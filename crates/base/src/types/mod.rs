//! The domain types. All crates exchange these; this module depends on no other.

mod candidate;
mod criteria;
mod decision;
mod evaluation;
mod evaluator;
mod event;
mod evidence;
mod human;
mod issues;
mod judging;
mod memory;
mod model_id;
mod outcome;
mod price;
mod reflecting;
mod reflection;
mod settings;
mod setup;
mod table;
mod task;
mod think;
mod usage;
mod version;

pub use candidate::{Candidate, CandidateStep, Candidates, MAX_CANDIDATES};
pub use criteria::{Criteria, Criterion, DEFAULT_FLOOR, DEFAULT_HARD_FLOOR, DEFAULT_THRESHOLD};
pub use decision::UserDecision;
pub use evaluation::{
    CriterionResult, Evaluation, Issue, IssueType, Place, Rank, Severity, Status,
};
pub use evaluator::*;
pub use event::{Choice, DeltaKind, Event, Phase, SCHEMA_VERSION, Stamped};
pub use evidence::{Evidence, EvidenceSource, RunEvidence};
pub use human::{HumanDuration, HumanSize};
pub use issues::{IssueStatus, IssueSummary, TrackedIssue};
pub use judging::{JudgeMode, JudgeScore, JudgeSettings, MAX_SAMPLES, ProbeTexts};
pub use memory::{
    Comparison, Knowledge, KnownInsight, KnownProcedure, Memory, MemoryChange, RunOutcome,
};
pub use model_id::{ModelId, Models};
pub use outcome::{ConvergenceReason, ExitCode, History, RunRecord, RunResult};
pub use price::{Price, Prices};
pub use reflecting::{ReflectionCriteria, ReflectorSettings};
pub use reflection::{Reflection, Trigger};
pub use settings::{LoopSettings, OnFailure, Select, Strategy};
pub use setup::Setup;
#[cfg(feature = "clap")]
pub use table::{OPPOSITE, switch, word};
pub use table::{Range, Switch};
pub use task::{ContextBlock, Fact, Insight, PastMessage, Procedure, RecalledMemory, Task};
pub use think::Think;
pub use usage::{CHARACTERS_PER_TOKEN, TokenUsage};
pub use version::{EditCounts, Version};
