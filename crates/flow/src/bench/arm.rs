//! The arms of a benchmark: the methods of writing that are compared.

use std::fmt::Write as _;
use std::str::FromStr;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::meter::Meter;
use crate::engine::{EvaluateOnce, Loop, Text};
use crate::model::{CallEvent, Message, ModelError, Role};
use crate::types::{ConvergenceReason, Evaluation, ExitCode, Rank, Task, Version};

/// The maximum number of drafts of one arm, whatever its budget, because a server may report no
/// token counts.
const MOST_DRAFTS: u32 = 64;

/// A method of writing a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// One call with the plain prompt.
    Single,
    /// Samples of the plain prompt, until the budget is spent or one passes. The best one counts.
    BestOfN,
    /// A chat that appends the failed checks to the conversation. The last draft counts.
    AppendLoop,
    /// `reflect`'s loop.
    Reflect,
}

impl Arm {
    /// All arms, in the order of the report.
    pub const ALL: [Self; 4] = [Self::Reflect, Self::BestOfN, Self::AppendLoop, Self::Single];

    /// Returns the name, as in `--arms`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::BestOfN => "best-of-n",
            Self::AppendLoop => "append-loop",
            Self::Reflect => "reflect",
        }
    }

    /// Returns whether the arm spends up to a token budget.
    pub fn needs_budget(self) -> bool {
        matches!(self, Self::BestOfN | Self::AppendLoop)
    }
}

impl FromStr for Arm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|arm| arm.as_str() == text);
        found.ok_or_else(|| "known arms: single, best-of-n, append-loop, reflect".to_owned())
    }
}

/// The token budget of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Budget {
    /// The number of evaluated and generated tokens that `reflect` spent on the same task.
    Matched(u64),
    /// A total number of tokens, as the loop counts them.
    Total(u64),
}

impl Budget {
    /// Returns whether another draft of average cost fits the budget.
    fn admits(self, meter: &Meter, drafts: u32) -> bool {
        let (limit, spent) = match self {
            Self::Matched(limit) => (limit, meter.tokens),
            Self::Total(limit) => (limit, meter.total),
        };
        drafts < MOST_DRAFTS && spent + spent.div_ceil(u64::from(drafts.max(1))) <= limit
    }
}

/// The result of an arm.
#[derive(Debug)]
pub(super) struct ArmResult {
    /// The text, or `None` if there is none.
    pub(super) output: Option<String>,
    /// Its usage.
    pub(super) meter: Meter,
    /// The number of drafts.
    pub(super) drafts: u32,
    /// The score of the first draft, if it was judged.
    pub(super) first_score: Option<f64>,
    /// Why the loop stopped.
    pub(super) reason: Option<ConvergenceReason>,
    /// Why the arm has no result: the exit code and the error.
    pub(super) failure: Option<(ExitCode, String)>,
}

impl ArmResult {
    pub(super) fn failed(meter: Meter, code: ExitCode, error: String) -> Self {
        Self {
            output: None,
            meter,
            drafts: 0,
            first_score: None,
            reason: None,
            failure: Some((code, error)),
        }
    }
}

impl Arm {
    /// Writes a text for the task. The plan holds the checks that the arm may see, and its seed.
    pub(super) async fn write(self, plan: &Loop, task: &Task, budget: Option<Budget>) -> ArmResult {
        let mut writer = SimpleLoop {
            plan,
            meter: Meter::new(),
            drafts: 0,
            first_score: None,
        };
        let outcome = match self {
            Self::Reflect => return reflect(plan, task, budget).await,
            Self::Single => writer.draw(&messages(task)).await,
            Self::BestOfN => writer.best_of(task, budget).await,
            Self::AppendLoop => writer.append(task, budget).await,
        };
        let SimpleLoop {
            meter,
            drafts,
            first_score,
            ..
        } = writer;
        match outcome {
            Ok(sample) => ArmResult {
                output: Some(sample.text),
                meter,
                drafts,
                first_score,
                reason: None,
                failure: None,
            },
            Err(ArmFailure(code, error)) => ArmResult::failed(meter, code, error),
        }
    }
}

async fn reflect(plan: &Loop, task: &Task, budget: Option<Budget>) -> ArmResult {
    let limited = match budget {
        Some(Budget::Total(tokens)) => Some(plan.with_max_total_tokens(tokens)),
        _ => None,
    };
    let mut meter = Meter::new();
    let plan = limited.as_ref().unwrap_or(plan);
    let record = plan.run(task, &mut meter, &CancellationToken::new()).await;
    let code = record.exit_code.unwrap_or(ExitCode::Failure);
    if matches!(
        code,
        ExitCode::Failure | ExitCode::Usage | ExitCode::Provider
    ) {
        let error = record.error.unwrap_or_default();
        return ArmResult::failed(meter, code, error);
    }
    let first = record.versions.first();
    ArmResult {
        output: record.selected().map(|version| version.output.clone()),
        meter,
        drafts: record.iterations(),
        first_score: first.and_then(Version::score),
        reason: record.convergence_reason,
        failure: None,
    }
}

/// Why there is no result: the exit code and the error.
#[derive(Debug)]
pub(super) struct ArmFailure(pub(super) ExitCode, pub(super) String);

impl From<ModelError> for ArmFailure {
    fn from(error: ModelError) -> Self {
        Self(ExitCode::Provider, error.to_string())
    }
}

/// A generated text, with its verdict if it has one.
struct Sample {
    text: String,
    evaluation: Option<Evaluation>,
}

impl Sample {
    fn rank(&self) -> Option<Rank> {
        self.evaluation.as_ref()?.rank()
    }

    fn passes(&self) -> bool {
        self.rank().is_some_and(|rank| rank.satisfactory)
    }
}

/// A simple loop, as anyone could write it in ten lines.
struct SimpleLoop<'a> {
    plan: &'a Loop,
    meter: Meter,
    drafts: u32,
    first_score: Option<f64>,
}

impl SimpleLoop<'_> {
    async fn best_of(&mut self, task: &Task, budget: Option<Budget>) -> Result<Sample, ArmFailure> {
        let critique = self.critique()?;
        let prompt = messages(task);
        let mut best = self.sample(&critique, task, &prompt).await?;
        while !best.passes() && self.may_go_on(budget) {
            let next = self.sample(&critique, task, &prompt).await?;
            if next.rank() > best.rank() {
                best = next;
            }
        }
        Ok(best)
    }

    async fn append(&mut self, task: &Task, budget: Option<Budget>) -> Result<Sample, ArmFailure> {
        let critique = self.critique()?;
        let mut chat = messages(task);
        let mut last = self.sample(&critique, task, &chat).await?;
        while !last.passes() && self.may_go_on(budget) {
            chat.push(Message::new(Role::Assistant, last.text));
            chat.push(Message::new(Role::User, feedback(last.evaluation)));
            last = self.sample(&critique, task, &chat).await?;
        }
        Ok(last)
    }

    /// Generates a text, and judges it by the checks that the arm may see.
    async fn sample(
        &mut self,
        critique: &EvaluateOnce,
        task: &Task,
        messages: &[Message],
    ) -> Result<Sample, ArmFailure> {
        let text = self.draw(messages).await?.text;
        let evaluation = judge(critique, task, &text, &mut self.meter).await?;
        if self.drafts == 1 {
            self.first_score = evaluation.overall_score;
        }
        Ok(Sample {
            text,
            evaluation: Some(evaluation),
        })
    }

    /// Calls the writer with a new seed.
    async fn draw(&mut self, messages: &[Message]) -> Result<Sample, ArmFailure> {
        let number = u64::from(self.drafts);
        self.drafts += 1;
        let meter = Mutex::new(std::mem::take(&mut self.meter));
        let observe = |event: CallEvent<'_>| {
            if let CallEvent::End(call) = event {
                let mut meter = meter.lock();
                meter.take(&call, self.plan.prices());
            }
        };
        let reply = self.plan.ask(messages.to_vec(), number, &observe).await;
        self.meter = meter.into_inner();
        Ok(Sample {
            text: reply?.text,
            evaluation: None,
        })
    }

    fn critique(&self) -> Result<EvaluateOnce, ArmFailure> {
        let made = self.plan.critique();
        made.map_err(|problem| ArmFailure(ExitCode::Usage, problem.into()))
    }

    fn may_go_on(&self, budget: Option<Budget>) -> bool {
        budget.is_some_and(|budget| budget.admits(&self.meter, self.drafts))
    }
}

/// Judges a text.
///
/// # Errors
/// If a model failed, so that there is no verdict.
pub(super) async fn judge(
    critique: &EvaluateOnce,
    task: &Task,
    text: &str,
    meter: &mut Meter,
) -> Result<Evaluation, ArmFailure> {
    let text = Text {
        content: text.to_owned(),
        file: None,
    };
    let cancel = CancellationToken::new();
    let record = critique.run(task, text, meter, &cancel).await;
    let version = record.versions.into_iter().next();
    let evaluation = version.and_then(|version| version.evaluation);
    evaluation.ok_or_else(|| {
        let code = record.exit_code.unwrap_or(ExitCode::Failure);
        ArmFailure(code, record.error.unwrap_or_default())
    })
}

/// Returns the plain prompt, with the texts that belong to it.
fn messages(task: &Task) -> Vec<Message> {
    let mut prompt = task.prompt.clone();
    for block in &task.context {
        let _ = write!(prompt, "\n\n{}:\n{}", block.name, block.content);
    }
    let system = task.system.as_deref();
    let system = system.map(|text| Message::new(Role::System, text));
    system
        .into_iter()
        .chain([Message::new(Role::User, prompt)])
        .collect()
}

/// Returns the simple loop's message about failed checks.
fn feedback(evaluation: Option<Evaluation>) -> String {
    let mut said = "The text does not meet these requirements yet:\n".to_owned();
    for issue in evaluation.into_iter().flat_map(|it| it.issues) {
        let _ = write!(said, "- {}", issue.description);
        if let Some(fix) = issue.suggested_fix {
            let _ = write!(said, ": {fix}");
        }
        said.push('\n');
    }
    said.push_str("\nWrite the whole text again so that it meets all of them.");
    said
}
