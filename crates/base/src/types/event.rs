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

/// Version of the event stream and of the JSON result. It grows when a field changes its meaning or
/// goes away, not when one is added.
pub const SCHEMA_VERSION: u32 = 1;

/// An event with the moment it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamped {
    /// When it happened.
    pub time: Timestamp,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happens in a run, in order. The run log, the progress display, every output format and the
/// result are folds over these; there is no other state of a run.
///
/// In JSON the variant's name is the field `event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The run begins. Holds all that the loop depends on, so that a run can be understood and resumed
    /// from its log alone.
    RunStart {
        /// See [`SCHEMA_VERSION`].
        schema_version: u32,
        /// The run's id.
        run_id: Uuid,
        /// `draft`, `revise` or `evaluate`.
        command: String,
        /// The file whose text is judged or revised, as it was named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        /// What is to be written.
        task: Box<Task>,
        /// What it is measured by.
        criteria: Box<Criteria>,
        /// How the loop behaves, all layers laid over each other.
        settings: LoopSettings,
        /// Who writes and who judges.
        models: Models,
        /// What else it takes to go on with the run later; `None` where nobody can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        setup: Option<Box<Setup>>,
    },
    /// A run that had stopped goes on from here. What it had done before is not done again.
    Resumed {
        /// The run's id.
        run_id: Uuid,
        /// The version that was being worked on.
        iteration: u32,
        /// How the loop behaves from here on; limits may have been raised.
        settings: LoopSettings,
    },
    /// A step begins.
    Phase {
        /// Which step.
        phase: Phase,
        /// Of which version.
        iteration: u32,
    },
    /// Evidence was found. What is found for the first version is shown with every call of the run; what is
    /// found for a later one, with the calls that write and judge that version.
    Evidence {
        /// The version that it was looked for.
        iteration: u32,
        /// What was found, the most relevant first, after what came with the task; never empty.
        evidence: Vec<Evidence>,
    },
    /// A piece of what a model is writing. For live views only: it is neither stored nor, unless asked
    /// for, printed, since the finished text follows in [`Event::Draft`].
    Delta {
        /// The step it belongs to.
        phase: Phase,
        /// The version it belongs to.
        iteration: u32,
        /// Answer or reasoning.
        kind: DeltaKind,
        /// The piece.
        text: String,
    },
    /// A model call failed in a way that may pass, and is made again. What its deltas said is void.
    Retry {
        /// The step it belongs to.
        phase: Phase,
        /// The version it belongs to.
        iteration: u32,
        /// What went wrong.
        message: String,
        /// How long is waited before the next try, in milliseconds.
        wait_ms: u64,
    },
    /// A model call ended. Each try that reached a server counts as one call.
    Call {
        /// The step it belongs to.
        phase: Phase,
        /// The version it belongs to.
        iteration: u32,
        /// Who answered.
        model: ModelId,
        /// Tokens, as far as the server told.
        usage: TokenUsage,
        /// What it cost, in the unit of the user's prices; `None` where the model has no price or the server did not
        /// count tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
        /// From the request to the end of the answer, waits included, in milliseconds.
        duration_ms: u64,
        /// Requests that were made, retries included; at least 1.
        attempts: u32,
        /// Why it failed, if it did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A reply that is no draft: empty, cut off, refused. It is kept here and never wins.
    Rejected {
        /// The version it was to become.
        iteration: u32,
        /// Why it is no draft.
        reason: String,
        /// What there is of it.
        text: String,
        /// Whether we ended it early, because it could no longer become a draft of use.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        stopped_early: bool,
    },
    /// A reply had something around the draft that was taken away: talk, or a code fence. The draft itself is
    /// untouched; it follows.
    Cleaned {
        /// The version it becomes.
        iteration: u32,
        /// What kind of thing it was, in words.
        what: String,
        /// The text that was taken away.
        removed: String,
    },
    /// Several drafts are written for one version, and something became of one of them. The best one becomes the
    /// version: it follows as [`Event::Draft`], with its evaluation. The calls of all of them are those of the version.
    Candidate {
        /// The version.
        iteration: u32,
        /// Its number among the candidates for that version, from 1.
        candidate: u32,
        /// What became of it.
        #[serde(flatten)]
        step: CandidateStep,
    },
    /// A new version is written; its evaluation follows.
    Draft {
        /// Its number; the first draft, or the text that the run began with, is 1.
        iteration: u32,
        /// The text.
        output: String,
        /// The version it revises.
        based_on: Option<u32>,
        /// How it was revised in the end.
        strategy: Option<Strategy>,
        /// How the edits applied, if edits were tried.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        edits: Option<EditCounts>,
    },
    /// How a version is revised was chosen, or is changed because it did not work.
    Strategy {
        /// The version that is to be written.
        iteration: u32,
        /// How.
        strategy: Strategy,
        /// Why, in words.
        reason: String,
    },
    /// A tool of the user's was run; the writer is shown what it wrote.
    ToolResult {
        /// The version that is to be written next.
        iteration: u32,
        /// What the tool is called.
        tool: String,
        /// How it ended, in words.
        end: String,
        /// Its exit code; `None` if it did not end by itself.
        exit_code: Option<i32>,
        /// What it wrote, standard error first, cut if it is long.
        output: String,
    },
    /// The outline of a draft that is written in steps.
    Outline {
        /// The version that it is to become.
        iteration: u32,
        /// Its sections, one line each.
        sections: Vec<String>,
    },
    /// A section of such a draft is written.
    Step {
        /// The version that it belongs to.
        iteration: u32,
        /// Its number, from 1.
        step: usize,
        /// How many there are.
        of: usize,
        /// What it is called.
        title: String,
    },
    /// The model looked back at what has happened so far; the writer is told what it said.
    Reflection(Reflection),
    /// A version is judged.
    Evaluation {
        /// The version's number.
        iteration: u32,
        /// The verdict.
        evaluation: Evaluation,
    },
    /// What became of the issues with this version; follows its evaluation, or stands for it where a text is only to
    /// be corrected.
    Issues {
        /// The version's number.
        iteration: u32,
        /// Those that it has, those that came back among them, most severe first.
        open: Vec<TrackedIssue>,
        /// Those that the version it revises had and that it has no longer.
        resolved: Vec<TrackedIssue>,
    },
    /// The loop chose, and why.
    Decision {
        /// The version that the choice is about.
        iteration: u32,
        /// What was chosen.
        choice: Choice,
        /// The best version after the choice.
        incumbent: u32,
        /// Why, in words.
        reason: String,
    },
    /// Somebody who may decide for the loop did, after a version was judged; what follows from it follows. Never
    /// [`UserDecision::Auto`].
    UserDecision {
        /// The version that was judged.
        iteration: u32,
        /// What was decided.
        decision: UserDecision,
    },
    /// Something that people should know and that does not stop the run.
    Warning {
        /// What, and what to do about it.
        message: String,
    },
    /// The run is over. The last event, always, and only once.
    RunEnd {
        /// See [`SCHEMA_VERSION`].
        schema_version: u32,
        /// The run's id; `None` if the command failed before a run began.
        run_id: Option<Uuid>,
        /// Why the loop stopped; `None` if it never ran or we failed ourselves.
        convergence_reason: Option<ConvergenceReason>,
        /// Whether the criteria are met, or the user accepted.
        success: bool,
        /// The version that is the run's answer.
        selected: Option<u32>,
        /// The exit code of the command, before `--exit-zero`.
        exit_code: ExitCode,
        /// What went wrong, if something did.
        error: Option<String>,
    },
}

impl Event {
    /// Whether the event is worth keeping: live pieces of text are not.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Self::Delta { .. })
    }
}

/// The steps of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The outline of a draft is made.
    Outline,
    /// The first draft is written.
    Draft,
    /// A version is judged.
    Evaluate,
    /// A better version is written.
    Revise,
    /// A tool of the user's runs.
    Tool,
    /// The writer looks back at what has happened so far.
    Reflect,
}

/// What a piece of a model's answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeltaKind {
    /// The answer itself.
    Text,
    /// The model's reasoning, which is never part of an answer.
    Reasoning,
}

/// What the loop does with a version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Choice {
    /// It is the best so far; revisions start from it.
    Accept,
    /// The earlier one stays the best.
    KeepIncumbent,
    /// The scores are too close: a judge looks at both.
    Compare,
    /// The next draft is made in another way.
    ChangeApproach,
    /// What went wrong is reflected on before the next draft.
    Reflect,
    /// The run ends here.
    Stop,
}
