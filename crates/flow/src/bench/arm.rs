//! The ways of writing that are compared.

use std::fmt::Write as _;
use std::str::FromStr;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::meter::Meter;
use crate::engine::{Critique, Loop, Text};
use crate::model::{CallEvent, Message, ModelError, Role};
use crate::types::{ConvergenceReason, Evaluation, ExitCode, Rank, Task, Version};

/// The most drafts of one arm, whatever its budget: a server that counts no tokens must not make it endless.
const MOST_DRAFTS: u32 = 64;

/// A way of writing a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// One call with the bare prompt.
    Single,
    /// Samples of the bare prompt up to the budget or the first that passes; the best one counts.
    BestOfN,
    /// A chat that appends the failed checks to the conversation; the last draft counts.
    AppendLoop,
    /// The loop.
    Reflect,
}

impl Arm {
    /// All of them, in the order of the report.
    pub const ALL: [Self; 4] = [Self::Reflect, Self::BestOfN, Self::AppendLoop, Self::Single];

    /// The name, as in `--arms`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::BestOfN => "best-of-n",
            Self::AppendLoop => "append-loop",
            Self::Reflect => "reflect",
        }
    }

    /// Whether it may spend as many tokens as it is given.
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

/// How many tokens an arm may spend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Budget {
    /// As many evaluated and written tokens as `reflect` spent on the same task.
    Matched(u64),
    /// So many tokens in all, as the loop counts them.
    Total(u64),
}

impl Budget {
    /// Whether another draft fits, which costs as much as those so far did on average.
    fn admits(self, meter: &Meter, drafts: u32) -> bool {
        let (limit, spent) = match self {
            Self::Matched(limit) => (limit, meter.tokens),
            Self::Total(limit) => (limit, meter.total),
        };
        drafts < MOST_DRAFTS && spent + spent.div_ceil(u64::from(drafts.max(1))) <= limit
    }
}

/// What an arm came to.
#[derive(Debug)]
pub(super) struct Answer {
    /// The text; `None` if there is none.
    pub(super) output: Option<String>,
    /// What it used.
    pub(super) meter: Meter,
    /// How many drafts it made.
    pub(super) drafts: u32,
    /// The score of the first draft, where it was judged.
    pub(super) first_score: Option<f64>,
    /// Why the loop stopped.
    pub(super) reason: Option<ConvergenceReason>,
    /// Why there is no result of this arm: the exit code, and what went wrong.
    pub(super) failure: Option<(ExitCode, String)>,
}

impl Answer {
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
    /// Writes a text for the task. The plan has the checks that the arm may see, and its seed.
    pub(super) async fn write(self, plan: &Loop, task: &Task, budget: Option<Budget>) -> Answer {
        let mut writer = Plain {
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
        let Plain {
            meter,
            drafts,
            first_score,
            ..
        } = writer;
        match outcome {
            Ok(sample) => Answer {
                output: Some(sample.text),
                meter,
                drafts,
                first_score,
                reason: None,
                failure: None,
            },
            Err(Failure(code, error)) => Answer::failed(meter, code, error),
        }
    }
}

async fn reflect(plan: &Loop, task: &Task, budget: Option<Budget>) -> Answer {
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
        return Answer::failed(meter, code, error);
    }
    let first = record.versions.first();
    Answer {
        output: record.selected().map(|version| version.output.clone()),
        meter,
        drafts: record.iterations(),
        first_score: first.and_then(Version::score),
        reason: record.convergence_reason,
        failure: None,
    }
}

/// Why there is no result: the exit code that it stands for, and what went wrong.
#[derive(Debug)]
pub(super) struct Failure(pub(super) ExitCode, pub(super) String);

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self(ExitCode::Provider, error.to_string())
    }
}

/// A text that was drawn, with its verdict if it has one.
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

/// A loop that anybody could write in ten lines.
struct Plain<'a> {
    plan: &'a Loop,
    meter: Meter,
    drafts: u32,
    first_score: Option<f64>,
}

impl Plain<'_> {
    async fn best_of(&mut self, task: &Task, budget: Option<Budget>) -> Result<Sample, Failure> {
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

    async fn append(&mut self, task: &Task, budget: Option<Budget>) -> Result<Sample, Failure> {
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

    /// Draws a text and judges it by the checks that the arm may see.
    async fn sample(
        &mut self,
        critique: &Critique,
        task: &Task,
        messages: &[Message],
    ) -> Result<Sample, Failure> {
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

    /// Asks the writer, each time with another seed.
    async fn draw(&mut self, messages: &[Message]) -> Result<Sample, Failure> {
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

    fn critique(&self) -> Result<Critique, Failure> {
        let made = self.plan.critique();
        made.map_err(|problem| Failure(ExitCode::Usage, problem))
    }

    fn may_go_on(&self, budget: Option<Budget>) -> bool {
        budget.is_some_and(|budget| budget.admits(&self.meter, self.drafts))
    }
}

/// Judges a text.
///
/// # Errors
/// If a model failed, so that there is no verdict at all.
pub(super) async fn judge(
    critique: &Critique,
    task: &Task,
    text: &str,
    meter: &mut Meter,
) -> Result<Evaluation, Failure> {
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
        Failure(code, record.error.unwrap_or_default())
    })
}

/// The bare prompt, with the texts that belong to it.
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

/// What a plain loop says about failed checks.
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
