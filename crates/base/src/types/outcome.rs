use std::collections::BTreeSet;

use indexmap::IndexMap;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    candidate::{Candidate, CandidateStep},
    evaluation::Evaluation,
    event::{Event, SCHEMA_VERSION, Stamped},
    evidence::{Evidence, Gathered},
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
    /// The criteria are met.
    QualityMet,
    /// The iteration limit is reached.
    MaxIterations,
    /// No better draft for some iterations.
    Plateau,
    /// Scores go up and down without a trend.
    Oscillation,
    /// Improvements became too small.
    Diminishing,
    /// The text hardly changes any more.
    Stable,
    /// The same issues are found again and again.
    RepeatedIssues,
    /// The token limit is reached.
    TokenBudget,
    /// The time limit is reached.
    TimeLimit,
    /// The limit on cost is reached.
    CostLimit,
    /// The one correction that was asked for is made; nobody was to judge it.
    Corrected,
    /// The user took a draft.
    UserAccepted,
    /// The user ended the run without taking a draft.
    UserQuit,
    /// No verdict could be had: the judge's could not be read, twice in a row, or a check failed itself.
    JudgeFailed,
    /// A model could not be reached or used.
    ModelError,
    /// Every reply that was to be a draft was rejected.
    NoDraft,
    /// A signal ended the run.
    Interrupted,
}

impl ConvergenceReason {
    /// The exit code of a run that stopped for this reason.
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

    /// The reason in words, to follow "stopped: ".
    pub fn describe(self) -> &'static str {
        match self {
            Self::QualityMet => "the criteria are met",
            Self::MaxIterations => "the iteration limit is reached",
            Self::Plateau => "no better draft for some iterations",
            Self::Oscillation => "scores go up and down without a trend",
            Self::Diminishing => "improvements became too small",
            Self::Stable => "the text hardly changes any more",
            Self::RepeatedIssues => "the same issues are found again",
            Self::TokenBudget => "the token limit is reached",
            Self::TimeLimit => "the time limit is reached",
            Self::CostLimit => "the limit on cost is reached",
            Self::Corrected => "the correction is made",
            Self::UserAccepted => "accepted by the user",
            Self::UserQuit => "ended by the user",
            Self::JudgeFailed => "a draft could not be judged",
            Self::ModelError => "it could not go on",
            Self::NoDraft => "no reply was a usable draft",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The exit codes that scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "u8", try_from = "u8")]
#[repr(u8)]
pub enum ExitCode {
    /// Criteria met, or the user accepted.
    Success = 0,
    /// A failure of ours or of the machine.
    Failure = 1,
    /// Usage, configuration or criteria-file error.
    Usage = 2,
    /// Finished, criteria not met.
    NotMet = 3,
    /// The provider failed: network, authentication, model missing.
    Provider = 4,
    /// Stopped by a limit: tokens, time, cost.
    Limit = 5,
    /// No verdict could be read.
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
            _ => return Err(format!("{code} is no exit code of ours")),
        })
    }
}

/// A run as far as it has got: the fold over its events.
#[derive(Debug, Clone, Default)]
pub struct RunRecord {
    /// The run's id.
    pub run_id: Option<Uuid>,
    /// Who writes and who judges.
    pub models: Option<Models>,
    /// Every version, in order.
    pub versions: Vec<Version>,
    /// The version that the run selected.
    pub selected: Option<u32>,
    /// Why it stopped.
    pub convergence_reason: Option<ConvergenceReason>,
    /// Whether the criteria are met.
    pub success: bool,
    /// Requests to models, retries included.
    pub total_llm_calls: u32,
    /// Tokens of the whole run.
    pub token_usage: TokenUsage,
    /// What the calls cost whose cost is known.
    known_cost: f64,
    /// Calls whose cost is not known.
    calls_of_unknown_cost: u32,
    /// Replies that were no drafts: the version they were to become, why not, and what there is of them.
    pub rejected: Vec<(u32, String, String)>,
    /// Those of them that were ended early.
    pub stopped_early: u32,
    /// The drafts that versions were chosen from, where there was a choice.
    pub candidates: Vec<Candidate>,
    /// What the model said when it looked back, in order.
    pub reflections: Vec<Reflection>,
    /// The best version so far, as the loop has decided.
    pub incumbent: Option<u32>,
    /// Per version, the ids of the issues that it has.
    pub open_issues: IndexMap<u32, BTreeSet<u32>>,
    /// What drafts were checked against, each piece once.
    pub evidence: Vec<Gathered>,
    /// Things people should know.
    pub warnings: Vec<String>,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// The exit code, once the run is over.
    pub exit_code: Option<ExitCode>,
    /// When the run began.
    pub started: Option<Timestamp>,
    /// When the last event happened.
    pub last_event: Option<Timestamp>,
    /// How long nobody was at work, from when the run was stopped until it was resumed.
    paused: SignedDuration,
    /// Per version: when its first step began, and the tokens of its calls.
    steps: IndexMap<u32, (Timestamp, TokenUsage)>,
}

impl RunRecord {
    /// Folds a whole run.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a Stamped>) -> Self {
        let mut record = Self::default();
        for event in events {
            record.apply(event);
        }
        record
    }

    /// Takes one more event in.
    pub fn apply(&mut self, stamped: &Stamped) {
        let time = stamped.time;
        let before = self.moment(time);
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
            } => self.gather(*iteration, evidence),
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

    /// Something happens at that time; gives when the last thing before it did.
    fn moment(&mut self, time: Timestamp) -> Timestamp {
        let before = self.last_event.unwrap_or(time);
        self.last_event = Some(before.max(time));
        before
    }

    /// Nobody was at work for so long: what is under way has not taken longer for it.
    fn pause(&mut self, pause: SignedDuration) {
        self.paused += pause;
        for (begun, _) in self.steps.values_mut() {
            *begun = begun.checked_add(pause).unwrap_or(*begun);
        }
    }

    /// When an iteration began, and what it has used.
    fn step(&mut self, iteration: u32, time: Timestamp) -> &mut (Timestamp, TokenUsage) {
        let begins = || (time, TokenUsage::default());
        self.steps.entry(iteration).or_insert_with(begins)
    }

    /// A passage that is found for several versions is relevant to each in its own way, and is taken in once.
    fn gather(&mut self, iteration: u32, evidence: &[Evidence]) {
        for piece in evidence {
            let known = self.evidence.iter().any(|known| {
                known.evidence.location == piece.location && known.evidence.content == piece.content
            });
            if !known {
                self.evidence.push(Gathered {
                    iteration,
                    evidence: piece.clone(),
                });
            }
        }
    }

    /// The version with that number.
    pub fn version(&self, iteration: u32) -> Option<&Version> {
        self.versions.iter().find(|v| v.iteration == iteration)
    }

    /// Whether the run came to its end without a proper draft: resuming it requests one again.
    pub fn ended_without_draft(&self) -> bool {
        use ConvergenceReason::{
            Diminishing, MaxIterations, NoDraft, Oscillation, Plateau, RepeatedIssues, Stable,
        };
        let verdict = self.selected().and_then(|it| it.evaluation.as_ref());
        let is_flawed = verdict.is_some_and(|verdict| verdict.flaw.is_some());
        match self.convergence_reason {
            Some(NoDraft) => true,
            Some(MaxIterations | Plateau | Oscillation | Diminishing | Stable | RepeatedIssues) => {
                is_flawed
            }
            _ => false,
        }
    }

    /// The version that the run selected.
    pub fn selected(&self) -> Option<&Version> {
        self.version(self.selected?)
    }

    /// How many drafts were tried, those included that came to nothing.
    pub fn iterations(&self) -> u32 {
        self.steps.keys().copied().max().unwrap_or(0)
    }

    /// The best version: the loop's incumbent; where nobody decided, the best by [`Version::rank`], of
    /// equals the earliest. `None` if none has a score.
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

    /// The JSON result (design §6).
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

    /// What all calls cost together, in the unit of the user's prices; `None` where there was no call, or the cost of
    /// one is not known.
    pub fn cost(&self) -> Option<f64> {
        let known = self.total_llm_calls > 0 && self.calls_of_unknown_cost == 0;
        known.then(|| self.known_cost())
    }

    /// What those calls cost together of which it is known.
    pub fn known_cost(&self) -> f64 {
        // What is left of adding is no money.
        (self.known_cost * 1e9).round() / 1e9
    }

    /// Seconds from the run's start to its last event, without those between its end and its resumption.
    pub fn execution_time(&self) -> Option<f64> {
        let time = self.last_event?.duration_since(self.started?);
        Some((time - self.paused).as_secs_f64())
    }

    fn version_mut(&mut self, iteration: u32) -> Option<&mut Version> {
        self.versions.iter_mut().find(|v| v.iteration == iteration)
    }

    /// Brings a version's time and tokens up to date.
    fn refresh(&mut self, iteration: u32, now: Timestamp) {
        let Some(&(begun, usage)) = self.steps.get(&iteration) else {
            return;
        };
        if let Some(version) = self.version_mut(iteration) {
            version.token_usage = usage;
            version.duration_ms = u64::try_from(now.duration_since(begun).as_millis()).unwrap_or(0);
        }
    }

    /// What became of the issues on the way to the selected version, else to the best one; `None` if neither
    /// has a verdict.
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
            // A base is always an earlier version, so this ends.
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

/// The result of a run as `--format json` prints it. A figure that is not known is null, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The run's id.
    pub run_id: Option<Uuid>,
    /// Whether the criteria are met, the user accepted, or a correction without judgement is made.
    pub success: bool,
    /// Why the loop stopped.
    pub convergence_reason: Option<ConvergenceReason>,
    /// The selected draft: what text mode prints.
    pub output: Option<String>,
    /// The last draft.
    pub final_output: Option<String>,
    /// The best draft: the one with the highest score, unless a judge who saw both preferred another.
    pub best_output: Option<String>,
    /// The verdict on the last draft.
    pub final_evaluation: Option<Evaluation>,
    /// The verdict on the best draft.
    pub best_evaluation: Option<Evaluation>,
    /// What became of the issues on the way to the selected draft.
    #[serde(default)]
    pub issues: Option<IssueSummary>,
    /// All versions.
    pub history: History,
    /// How many drafts were tried, those included that came to nothing.
    pub iterations_used: u32,
    /// Requests to models, retries included.
    pub total_llm_calls: u32,
    /// Replies that were ended early, because they could no longer become drafts of use.
    #[serde(default)]
    pub stopped_early: u32,
    /// Tokens of all calls.
    pub token_usage: TokenUsage,
    /// What all calls cost, in the unit of the user's prices, if it is known of each of them.
    #[serde(default)]
    pub cost: Option<f64>,
    /// Seconds.
    pub execution_time: Option<f64>,
    /// Who wrote and who judged.
    pub models: Option<Models>,
    /// What drafts were checked against.
    pub evidence: Vec<Gathered>,
    /// What the model said when it looked back, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reflections: Vec<Reflection>,
    /// Things people should know.
    pub warnings: Vec<String>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The versions of a run. `best_version` and `final_version` are iteration numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// Every version, in order.
    pub versions: Vec<Version>,
    /// The drafts that versions were chosen from, the chosen ones included; empty where there was no choice.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
    /// The best one.
    pub best_version: Option<u32>,
    /// The last one.
    pub final_version: Option<u32>,
    /// How many were tried.
    pub total_iterations: u32,
    /// Why the loop stopped.
    pub convergence_reason: Option<ConvergenceReason>,
}
