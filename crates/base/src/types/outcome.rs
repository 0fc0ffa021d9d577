use std::collections::BTreeSet;

use indexmap::IndexMap;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    candidate::{Candidate, CandidateStep},
    evaluation::Evaluation,
    event::{Event, SCHEMA_VERSION, Stamped},
    evidence::{Evidence, RunEvidence},
    issues::IssueSummary,
    model_id::Models,
    reflection::Reflection,
    usage::TokenUsage,
    version::Version,
};

/// Why a run stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConvergenceReason {
    /// The draft meets the criteria.
    QualityMet,
    /// The run reached the iteration limit.
    MaxIterations,
    /// No draft improved the score for several iterations.
    Plateau,
    /// Scores go up and down without a trend.
    Oscillation,
    /// The improvements became too small.
    Diminishing,
    /// The text hardly changes any more.
    Stable,
    /// The same issues keep coming back.
    RepeatedIssues,
    /// The run reached the token limit.
    TokenBudget,
    /// The run reached the time limit.
    TimeLimit,
    /// The run reached the cost limit.
    CostLimit,
    /// The single requested correction, without evaluation, is done.
    Corrected,
    /// The user accepted a draft.
    UserAccepted,
    /// The user ended the run without accepting a draft.
    UserQuit,
    /// A draft could not be evaluated: the judge's reply was unparseable twice in a row, or a check itself failed.
    JudgeFailed,
    /// A model was unreachable or unusable.
    ModelError,
    /// Every reply was rejected.
    NoDraft,
    /// A signal interrupted the run.
    Interrupted,
}

impl ConvergenceReason {
    /// The exit code for this reason.
    pub fn exit_code(self, success: bool) -> ExitCode {
        match self {
            Self::ModelError => ExitCode::Provider,
            Self::JudgeFailed => ExitCode::JudgeUnusable,
            Self::Interrupted => ExitCode::Interrupted,
            _ if success => ExitCode::Success,
            Self::TokenBudget | Self::TimeLimit | Self::CostLimit => ExitCode::Limit,
            _ => ExitCode::NotMet,
        }
    }

    /// Returns whether a convergence rule stopped the run because more drafts were not expected to help.
    pub fn is_rule(self) -> bool {
        matches!(
            self,
            Self::Plateau
                | Self::Oscillation
                | Self::Diminishing
                | Self::Stable
                | Self::RepeatedIssues
        )
    }

    /// A description that follows "stopped: ".
    pub fn describe(self) -> &'static str {
        match self {
            Self::QualityMet => "the criteria are met",
            Self::MaxIterations => "the iteration limit is reached",
            Self::Plateau => "no improvement in recent drafts",
            Self::Oscillation => "scores go up and down without a trend",
            Self::Diminishing => "improvements became too small",
            Self::Stable => "the text hardly changes",
            Self::RepeatedIssues => "the same issues recur",
            Self::TokenBudget => "the token limit is reached",
            Self::TimeLimit => "the time limit is reached",
            Self::CostLimit => "the cost limit is reached",
            Self::Corrected => "corrected",
            Self::UserAccepted => "accepted by the user",
            Self::UserQuit => "ended by the user",
            Self::JudgeFailed => "a draft could not be judged",
            Self::ModelError => "a model call failed",
            Self::NoDraft => "every reply was rejected",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The exit codes. They are a contract with scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
#[repr(u8)]
pub enum ExitCode {
    /// Criteria met, or the user accepted a draft.
    Success = 0,
    /// An internal or system error.
    Failure = 1,
    /// A usage, configuration or criteria-file error.
    Usage = 2,
    /// Finished, criteria not met.
    NotMet = 3,
    /// The provider failed: network, authentication, or missing model.
    Provider = 4,
    /// Stopped by a limit on tokens, time or cost.
    Limit = 5,
    /// The judge was unusable: no verdict could be parsed.
    JudgeUnusable = 6,
    /// Interrupted.
    Interrupted = 130,
}

impl From<ExitCode> for u8 {
    fn from(code: ExitCode) -> Self {
        code as Self
    }
}

impl TryFrom<u8> for ExitCode {
    type Error = String;

    fn try_from(code: u8) -> Result<Self, String> {
        Ok(match code {
            0 => Self::Success,
            1 => Self::Failure,
            2 => Self::Usage,
            3 => Self::NotMet,
            4 => Self::Provider,
            5 => Self::Limit,
            6 => Self::JudgeUnusable,
            130 => Self::Interrupted,
            _ => return Err(format!("unknown exit code {code}")),
        })
    }
}

/// The state of a run so far: the fold over its events.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    /// The run's id.
    pub run_id: Option<Uuid>,
    /// The writer and the judge.
    pub models: Option<Models>,
    /// All versions, in order.
    pub versions: Vec<Version>,
    /// The version that the run selected.
    pub selected: Option<u32>,
    /// Why the run stopped.
    pub convergence_reason: Option<ConvergenceReason>,
    /// Whether the criteria are met.
    pub success: bool,
    /// The number of requests to models, including retries.
    pub total_llm_calls: u32,
    /// The token usage of the whole run.
    pub token_usage: TokenUsage,
    /// The total cost of the calls with a known cost.
    known_cost: f64,
    /// The number of calls with an unknown cost.
    calls_of_unknown_cost: u32,
    /// The rejected replies: the version they were meant to become, the reason, and the text.
    pub rejected: Vec<(u32, String, String)>,
    /// How many of them were stopped early.
    pub stopped_early: u32,
    /// The candidates, for versions with more than one.
    pub candidates: Vec<Candidate>,
    /// The model's reflections, in order.
    pub reflections: Vec<Reflection>,
    /// The best version so far, as decided by the loop.
    pub incumbent: Option<u32>,
    /// The ids of the open issues, per version.
    pub open_issues: IndexMap<u32, BTreeSet<u32>>,
    /// The evidence used, without duplicates.
    pub evidence: Vec<RunEvidence>,
    /// The warnings.
    pub warnings: Vec<String>,
    /// The error message, if the run failed.
    pub error: Option<String>,
    /// The exit code, once the run is over.
    pub exit_code: Option<ExitCode>,
    /// When the run began.
    pub started: Option<Timestamp>,
    /// The time of the last event.
    pub last_event: Option<Timestamp>,
    /// The total time between stopping and resuming.
    paused: SignedDuration,
    /// Per version: the start of its first step, and the tokens of its calls.
    steps: IndexMap<u32, (Timestamp, TokenUsage)>,
}

impl RunRecord {
    /// Folds all events of a run.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Stamped>) -> Self {
        let mut record = Self::default();
        for event in events {
            record.apply(event);
        }
        record
    }

    /// Applies one event.
    pub fn apply(&mut self, stamped: &Stamped) {
        let time = stamped.time;
        let before = self.advance_clock(time);
        match &stamped.event {
            Event::RunStart { run_id, models, .. } => {
                self.run_id = Some(*run_id);
                self.models = Some(models.clone());
                self.started = Some(time);
            }
            Event::Resumed { .. } => self.pause(time.duration_since(before)),
            Event::Phase { iteration, .. } => {
                self.step(*iteration, time);
            }
            Event::Call {
                iteration,
                usage,
                cost,
                attempts,
                ..
            } => {
                self.total_llm_calls += attempts;
                self.used(*usage, *cost);
                self.step(*iteration, time).1 += *usage;
                self.refresh(*iteration, time);
            }
            Event::Candidate {
                iteration,
                candidate,
                step,
            } => self.candidate(*iteration, *candidate, step),
            Event::Draft {
                iteration,
                output,
                based_on,
                strategy,
                edits,
            } => {
                let version = Version::new(*iteration, output, time);
                self.versions.push(Version {
                    based_on: *based_on,
                    strategy: *strategy,
                    edits: *edits,
                    ..version
                });
                self.refresh(*iteration, time);
            }
            Event::Evaluation {
                iteration,
                evaluation,
            } => {
                if let Some(version) = self.version_mut(*iteration) {
                    version.evaluation = Some(evaluation.clone());
                }
                self.refresh(*iteration, time);
            }
            Event::Issues {
                iteration,
                open,
                resolved,
            } => {
                let ids = open.iter().map(|issue| issue.id).collect();
                self.open_issues.insert(*iteration, ids);
                if let Some(version) = self.version_mut(*iteration) {
                    let descriptions = resolved.iter().map(|it| it.issue.description.clone());
                    version.improvements_applied = descriptions.collect();
                }
            }
            Event::Decision { incumbent, .. } => self.incumbent = Some(*incumbent),
            Event::Evidence {
                iteration,
                evidence,
            } => self.add_evidence(*iteration, evidence),
            Event::Warning { message } => self.warnings.push(message.clone()),
            Event::RunEnd { .. } => self.end(&stamped.event),
            Event::Rejected {
                iteration,
                reason,
                text,
                stopped_early,
            } => {
                let rejected = (*iteration, reason.clone(), text.clone());
                self.rejected.push(rejected);
                self.stopped_early += u32::from(*stopped_early);
            }
            Event::Reflection(reflection) => self.reflections.push(reflection.clone()),
            Event::Delta { .. }
            | Event::Retry { .. }
            | Event::Strategy { .. }
            | Event::ToolResult { .. }
            | Event::Outline { .. }
            | Event::Step { .. }
            | Event::Cleaned { .. }
            | Event::UserDecision { .. } => {}
        }
    }

    fn end(&mut self, event: &Event) {
        if let Event::RunEnd {
            convergence_reason,
            success,
            selected,
            exit_code,
            error,
            ..
        } = event
        {
            self.convergence_reason = *convergence_reason;
            self.success = *success;
            self.selected = *selected;
            self.exit_code = Some(*exit_code);
            self.error.clone_from(error);
        }
    }

    fn used(&mut self, usage: TokenUsage, cost: Option<f64>) {
        self.known_cost += cost.unwrap_or(0.0);
        self.calls_of_unknown_cost += u32::from(cost.is_none());
        self.token_usage += usage;
    }

    fn candidate(&mut self, iteration: u32, candidate: u32, step: &CandidateStep) {
        Candidate::apply(&mut self.candidates, iteration, candidate, step);
        if let CandidateStep::Lost {
            reason,
            text: Some(text),
            stopped_early,
        } = step
        {
            let reason = format!("candidate {candidate}: {reason}");
            self.rejected.push((iteration, reason, text.clone()));
            self.stopped_early += u32::from(*stopped_early);
        }
    }

    /// Records the time of an event and returns the time of the one before it.
    fn advance_clock(&mut self, time: Timestamp) -> Timestamp {
        let before = self.last_event.unwrap_or(time);
        self.last_event = Some(before.max(time));
        before
    }

    /// Shifts the start of everything in progress, so that the pause does not count.
    fn pause(&mut self, pause: SignedDuration) {
        self.paused += pause;
        for (begun, _) in self.steps.values_mut() {
            *begun = begun.checked_add(pause).unwrap_or(*begun);
        }
    }

    /// The start time and token usage of an iteration.
    fn step(&mut self, iteration: u32, time: Timestamp) -> &mut (Timestamp, TokenUsage) {
        let begins = || (time, TokenUsage::default());
        self.steps.entry(iteration).or_insert_with(begins)
    }

    /// Adds evidence; a passage that was found for several versions is added once.
    fn add_evidence(&mut self, iteration: u32, evidence: &[Evidence]) {
        for piece in evidence {
            let known = self.evidence.iter().any(|known| {
                known.evidence.location == piece.location && known.evidence.content == piece.content
            });
            if !known {
                self.evidence.push(RunEvidence {
                    iteration,
                    evidence: piece.clone(),
                });
            }
        }
    }

    /// The version with this number.
    pub fn version(&self, iteration: u32) -> Option<&Version> {
        self.versions.iter().find(|v| v.iteration == iteration)
    }

    /// Whether the run ended without a usable draft; resuming it then requests one again.
    pub fn ended_without_draft(&self) -> bool {
        let verdict = self.selected().and_then(|it| it.evaluation.as_ref());
        let is_flawed = verdict.is_some_and(|verdict| verdict.flaw.is_some());
        match self.convergence_reason {
            Some(ConvergenceReason::NoDraft) => true,
            Some(ConvergenceReason::MaxIterations) => is_flawed,
            Some(reason) => reason.is_rule() && is_flawed,
            None => false,
        }
    }

    /// The version that the run selected.
    pub fn selected(&self) -> Option<&Version> {
        self.version(self.selected?)
    }

    /// The number of drafts attempted, including failed ones.
    pub fn iterations(&self) -> u32 {
        self.steps.keys().copied().max().unwrap_or(0)
    }

    /// The best version: the loop's incumbent, or, if the loop made no decision, the highest by [`Version::rank`] and
    /// the earliest of equals. `None` if no version has a score.
    pub fn best(&self) -> Option<&Version> {
        if let Some(incumbent) = self.incumbent.and_then(|number| self.version(number)) {
            return Some(incumbent);
        }
        let mut best: Option<&Version> = None;
        for version in &self.versions {
            if version.rank().is_some() && best.is_none_or(|best| version.rank() > best.rank()) {
                best = Some(version);
            }
        }
        best
    }

    /// The JSON result.
    pub fn result(&self) -> RunResult {
        let last = self.versions.last();
        let best = self.best();
        RunResult {
            schema_version: SCHEMA_VERSION,
            run_id: self.run_id,
            success: self.success,
            convergence_reason: self.convergence_reason,
            output: self.selected().map(|v| v.output.clone()),
            final_output: last.map(|v| v.output.clone()),
            best_output: best.map(|v| v.output.clone()),
            final_evaluation: last.and_then(|v| v.evaluation.clone()),
            best_evaluation: best.and_then(|v| v.evaluation.clone()),
            issues: self.issues(),
            iterations_used: self.iterations(),
            history: History {
                versions: self.versions.clone(),
                candidates: self.candidates.clone(),
                best_version: best.map(|v| v.iteration),
                final_version: last.map(|v| v.iteration),
                total_iterations: self.iterations(),
                convergence_reason: self.convergence_reason,
            },
            total_llm_calls: self.total_llm_calls,
            stopped_early: self.stopped_early,
            token_usage: self.token_usage,
            cost: self.cost(),
            execution_time: self.execution_time(),
            models: self.models.clone(),
            evidence: self.evidence.clone(),
            reflections: self.reflections.clone(),
            warnings: self.warnings.clone(),
            error: self.error.clone(),
        }
    }

    /// The total cost of all calls, in the unit of the user's prices; `None` if there was no call, or the cost of a
    /// call is unknown.
    pub fn cost(&self) -> Option<f64> {
        let known = self.total_llm_calls > 0 && self.calls_of_unknown_cost == 0;
        known.then(|| self.known_cost())
    }

    /// The total cost of the calls with a known cost.
    pub fn known_cost(&self) -> f64 {
        // Rounds off floating-point noise.
        (self.known_cost * 1e9).round() / 1e9
    }

    /// The seconds from the run's start to its last event, without the time between stopping and resuming.
    pub fn execution_time(&self) -> Option<f64> {
        let time = self.last_event?.duration_since(self.started?);
        Some((time - self.paused).as_secs_f64())
    }

    fn version_mut(&mut self, iteration: u32) -> Option<&mut Version> {
        self.versions.iter_mut().find(|v| v.iteration == iteration)
    }

    /// Updates a version's duration and token usage.
    fn refresh(&mut self, iteration: u32, now: Timestamp) {
        let Some(&(begun, usage)) = self.steps.get(&iteration) else {
            return;
        };
        if let Some(version) = self.version_mut(iteration) {
            version.token_usage = usage;
            version.duration_ms = u64::try_from(now.duration_since(begun).as_millis()).unwrap_or(0);
        }
    }

    /// What happened to the issues on the path to the selected version, or else to the best one; `None` if neither is
    /// evaluated.
    pub fn issues(&self) -> Option<IssueSummary> {
        let last = self.selected().or_else(|| self.best())?;
        let open = self.open_issues.get(&last.iteration)?;
        let mut found: BTreeSet<u32> = BTreeSet::new();
        let mut next = Some(last);
        while let Some(version) = next {
            found.extend(
                self.open_issues
                    .get(&version.iteration)
                    .into_iter()
                    .flatten(),
            );
            // `based_on` is always an earlier version, so this terminates.
            next = version
                .based_on
                .filter(|base| *base < version.iteration)
                .and_then(|base| self.version(base));
        }
        let resolved = found.len() - open.len();
        #[expect(clippy::cast_precision_loss, reason = "there are not that many issues")]
        let share = resolved as f64 / found.len() as f64;
        Some(IssueSummary {
            found: found.len(),
            resolved,
            share_resolved: (!found.is_empty()).then_some(share),
        })
    }
}

/// The result of a run, as printed by `--format json`. Unknown figures are null, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The run's id.
    pub run_id: Option<Uuid>,
    /// Whether the criteria are met, the user accepted a draft, or a correction without evaluation is done.
    pub success: bool,
    /// Why the loop stopped.
    pub convergence_reason: Option<ConvergenceReason>,
    /// The selected draft: what text mode prints.
    pub output: Option<String>,
    /// The last draft.
    pub final_output: Option<String>,
    /// The best draft: the one with the highest score, unless a judge preferred another in a direct comparison.
    pub best_output: Option<String>,
    /// The evaluation of the last draft.
    pub final_evaluation: Option<Evaluation>,
    /// The evaluation of the best draft.
    pub best_evaluation: Option<Evaluation>,
    /// What happened to the issues on the path to the selected draft.
    #[serde(default)]
    pub issues: Option<IssueSummary>,
    /// All versions.
    pub history: History,
    /// The number of drafts attempted, including failed ones.
    pub iterations_used: u32,
    /// The number of requests to models, including retries.
    pub total_llm_calls: u32,
    /// The number of replies that were stopped early, because they could no longer become usable drafts.
    #[serde(default)]
    pub stopped_early: u32,
    /// The token usage of all calls.
    pub token_usage: TokenUsage,
    /// The total cost, in the unit of the user's prices; `None` if the cost of a call is unknown.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The execution time in seconds.
    pub execution_time: Option<f64>,
    /// The writer and the judge.
    pub models: Option<Models>,
    /// The evidence that drafts were checked against.
    pub evidence: Vec<RunEvidence>,
    /// The model's reflections, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reflections: Vec<Reflection>,
    /// The warnings.
    pub warnings: Vec<String>,
    /// The error message, if the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The versions of a run. `best_version` and `final_version` are iteration numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// All versions, in order.
    pub versions: Vec<Version>,
    /// The candidates, including the chosen ones; empty if every version had only one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// The best version.
    pub best_version: Option<u32>,
    /// The last version.
    pub final_version: Option<u32>,
    /// The number of drafts attempted.
    pub total_iterations: u32,
    /// Why the loop stopped.
    pub convergence_reason: Option<ConvergenceReason>,
}
