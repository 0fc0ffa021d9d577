//! The nouns of the project. Everything that another room takes or gives is one of these; this room
//! knows no other.

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
pub use evaluator::compile;
pub use evaluator::{
    Against, Anchors, Bounds, CommandConfig, CommandSyntaxError, CommandVerdict, CompareConfig,
    CompareError, CompareKeys, CompareMethod, CompareWith, ContainsConfig, DRAFT_FILE, Evaluator,
    Expect, JudgeExample, LengthConfig, LengthUnit, LlmConfig, MAX_REFERENCE, MAX_TEXTS, Origin,
    Piece, RegexConfig, SchemaConfig, ScoreRange, ScriptConfig, ScriptLanguage, TIE_SCORE, Terms,
    WHOLE_MATCH,
};
pub use event::{Choice, DeltaKind, Event, Phase, SCHEMA_VERSION, Stamped};
pub use evidence::{Evidence, EvidenceSource, Gathered};
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
pub use table::Range;
#[cfg(feature = "clap")]
pub use table::word;
pub use task::{ContextBlock, Fact, Insight, PastMessage, Procedure, Recollection, Task};
pub use think::Think;
pub use usage::{CHARACTERS_PER_TOKEN, TokenUsage};
pub use version::{EditCounts, Version};
