use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    candidate::CandidateStep,
    criteria::Criteria,
    decision::UserDecision,
    evaluation::Evaluation,
    evidence::Evidence,
    issues::TrackedIssue,
    model_id::{ModelId, Models},
    outcome::{ConvergenceReason, ExitCode},
    reflection::Reflection,
    settings::{LoopSettings, Strategy},
    setup::Setup,
    task::Task,
    usage::TokenUsage,
    version::EditCounts,
};

/// The version of the event stream and of the JSON result. It is incremented when a field changes its meaning or is
/// removed, not when one is added.
pub const SCHEMA_VERSION: u32 = 1;

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// The time.
    pub time: Timestamp,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

/// The events of a run, in order. The run log, the progress display, every output format and the result are folds
/// over them. A run has no other state.
///
/// In JSON the variant name is the field `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run begins. Contains everything the loop depends on, so that the run can be understood and resumed from
    /// its log alone.
    RunStart {
        /// See [`SCHEMA_VERSION`].
        schema_version: u32,
        /// The run's id.
        run_id: Uuid,
        /// The command: `draft`, `revise` or `evaluate`.
        command: String,
        /// The evaluated or revised file, as given on the command line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// The task.
        task: Box<Task>,
        /// The criteria.
        criteria: Box<Criteria>,
        /// The effective loop settings, after all layers are merged.
        settings: LoopSettings,
        /// The writer and the judge.
        models: Models,
        /// What else is needed to resume the run; `None` if it cannot be resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setup: Option<Box<Setup>>,
    },
    /// A stopped run continues. Its completed steps are not repeated.
    Resumed {
        /// The run's id.
        run_id: Uuid,
        /// The version in progress.
        iteration: u32,
        /// The settings from here on; limits may have been raised.
        settings: LoopSettings,
    },
    /// A phase begins.
    Phase {
        /// Which step.
        phase: Phase,
        /// The version it belongs to.
        iteration: u32,
    },
    /// Evidence was found. Evidence for the first version is part of every call of the run. Evidence for a later
    /// version is part of the calls that write and judge that version.
    Evidence {
        /// The version it was retrieved for.
        iteration: u32,
        /// The evidence, most relevant first, after the evidence that came with the task; never empty.
        evidence: Vec<Evidence>,
    },
    /// A piece of a model's output while it is generated. For live display only: it is not stored, and printed only
    /// on request, because [`Event::Draft`] follows with the complete text.
    Delta {
        /// The phase it belongs to.
        phase: Phase,
        /// The version it belongs to.
        iteration: u32,
        /// Answer or reasoning.
        kind: DeltaKind,
        /// The text.
        text: String,
    },
    /// A model call failed with a transient error and is retried. Its deltas so far are void.
    Retry {
        /// The phase it belongs to.
        phase: Phase,
        /// The version it belongs to.
        iteration: u32,
        /// The error message.
        message: String,
        /// The wait before the retry, in milliseconds.
        wait_ms: u64,
    },
    /// A model call ended. Each attempt that reached a server counts as one call.
    Call {
        /// The phase it belongs to.
        phase: Phase,
        /// The version it belongs to.
        iteration: u32,
        /// The model that answered.
        model: ModelId,
        /// The token counts, as far as the server reports them.
        usage: TokenUsage,
        /// The cost in the unit of the user's prices; `None` if the model has no price or the server did not report
        /// token counts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// The time from the request to the end of the reply, including waits, in milliseconds.
        duration_ms: u64,
        /// The number of requests, including retries; at least 1.
        attempts: u32,
        /// The error message, if the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A reply was rejected: empty, truncated or refused. It is recorded and never selected.
    Rejected {
        /// The version it was meant to become.
        iteration: u32,
        /// Why it was rejected.
        reason: String,
        /// The rejected text.
        text: String,
        /// Whether `reflect` stopped the reply early, because it could no longer become a usable draft.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stopped_early: bool,
    },
    /// Text around the draft was removed: boilerplate or a code fence. The draft itself is unchanged and follows.
    Cleaned {
        /// The version it becomes.
        iteration: u32,
        /// A description of the removed text.
        what: String,
        /// The removed text.
        removed: String,
    },
    /// Something happened to one of several candidates for a version. The best one becomes the version and follows as
    /// [`Event::Draft`], with its evaluation. The calls of all candidates belong to the version.
    Candidate {
        /// The version.
        iteration: u32,
        /// The candidate's number for that version, from 1.
        candidate: u32,
        /// What happened.
        #[serde(flatten)]
        step: CandidateStep,
    },
    /// A new version is complete; its evaluation follows.
    Draft {
        /// Its number. The first draft, or the text that the run started with, is 1.
        iteration: u32,
        /// The text.
        output: String,
        /// The version it revises.
        based_on: Option<u32>,
        /// The strategy that was used in the end.
        strategy: Option<Strategy>,
        /// How the edits applied, if the strategy used edits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edits: Option<EditCounts>,
    },
    /// The strategy for a revision was chosen, or changed because the first one failed.
    Strategy {
        /// The version that is written next.
        iteration: u32,
        /// The strategy.
        strategy: Strategy,
        /// The reason, as a message.
        reason: String,
    },
    /// A user tool ran; the writer sees its output.
    ToolResult {
        /// The version that is written next.
        iteration: u32,
        /// The name of the tool.
        tool: String,
        /// A description of how it ended.
        end: String,
        /// Its exit code; `None` if it was killed.
        exit_code: Option<i32>,
        /// Its output, standard error first, truncated if it is long.
        output: String,
    },
    /// The outline of a draft that is written section by section.
    Outline {
        /// The version it becomes.
        iteration: u32,
        /// The sections, one line each.
        sections: Vec<String>,
    },
    /// A section of such a draft is complete.
    Step {
        /// The version it belongs to.
        iteration: u32,
        /// The section's number, from 1.
        step: usize,
        /// The number of sections.
        of: usize,
        /// The section's title.
        title: String,
    },
    /// The model reflected on the run so far; the writer sees the result.
    Reflection(Reflection),
    /// A version is evaluated.
    Evaluation {
        /// The version's number.
        iteration: u32,
        /// The evaluation.
        evaluation: Evaluation,
    },
    /// The issues after a version. Follows its evaluation, or replaces it for a correction without evaluation.
    Issues {
        /// The version's number.
        iteration: u32,
        /// The issues that the version has, including those that came back, most severe first.
        open: Vec<TrackedIssue>,
        /// The issues of the version it revises that are now fixed.
        resolved: Vec<TrackedIssue>,
    },
    /// The loop made a decision.
    Decision {
        /// The version that the decision is about.
        iteration: u32,
        /// The decision.
        choice: Choice,
        /// The best version after the decision.
        incumbent: u32,
        /// The reason, as a message.
        reason: String,
    },
    /// A user, or another decision maker, decided after a version was evaluated. The consequences follow as events.
    /// Never [`UserDecision::Auto`].
    UserDecision {
        /// The evaluated version.
        iteration: u32,
        /// The decision.
        decision: UserDecision,
    },
    /// A warning that does not stop the run.
    Warning {
        /// The problem, and what to do about it.
        message: String,
    },
    /// The run is over. Always the last event, exactly once.
    RunEnd {
        /// See [`SCHEMA_VERSION`].
        schema_version: u32,
        /// The run's id; `None` if the command failed before a run began.
        run_id: Option<Uuid>,
        /// Why the loop stopped; `None` if it never ran or failed internally.
        convergence_reason: Option<ConvergenceReason>,
        /// Whether the criteria are met, or the user accepted a draft.
        success: bool,
        /// The selected version.
        selected: Option<u32>,
        /// The exit code of the command, before `--exit-zero`.
        exit_code: ExitCode,
        /// The error message, if the run failed.
        error: Option<String>,
    },
}

impl Event {
    /// Whether the event is recorded. Deltas are not.
    pub fn is_recorded(&self) -> bool {
        !matches!(self, Self::Delta { .. })
    }
}

/// The phases of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Write the outline of a draft.
    Outline,
    /// Write the first draft.
    Draft,
    /// Evaluate a version.
    Evaluate,
    /// Write a revision.
    Revise,
    /// Run a user tool.
    Tool,
    /// Reflect on the run so far.
    Reflect,
}

/// The kind of a piece of model output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// The answer.
    Text,
    /// The model's reasoning, which is never part of the answer.
    Reasoning,
}

/// What the loop decides about a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Choice {
    /// The version is the best so far; revisions start from it.
    Accept,
    /// The earlier version stays the best.
    KeepIncumbent,
    /// The scores are too close; a judge compares both versions.
    Compare,
    /// The next draft uses another approach.
    ChangeApproach,
    /// The model reflects on what went wrong before the next draft.
    Reflect,
    /// The run ends.
    Stop,
}
