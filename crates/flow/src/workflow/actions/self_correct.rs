//! `reason.self_correct`: improves an answer for a number of rounds with a critic's feedback,
//! without a verdict.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::llm_call::CallConfig;
use super::{Action, ActionCall, ActionKind};
use crate::model::{Message, Role};
use crate::source::SourceError;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::template::{self, Names};
use crate::workflow::world::ActionContext;

pub(super) const KIND: ActionKind = ActionKind {
    name: "reason.self_correct",
    aliases: &[],
    keys: &[
        "task",
        "model",
        "generator_model",
        "critic_model",
        "critic_prompt",
        "improvement_rounds",
        "provider",
        "api_base",
        "temperature",
        "max_tokens",
        "max_retries",
        "timeout",
    ],
    read: |call| Ok(Box::new(SelfCorrect::read(call)?)),
};

/// The default number of rounds.
const DEFAULT_ROUNDS: u32 = 2;
/// The maximum number of rounds in a file. Each round takes two calls.
const MOST_ROUNDS: u32 = 100;

/// The critic's default prompt.
const CRITIC: &str = "List what is wrong with your answer and how to fix it, most severe first. Do not rewrite the \
                      answer.";

struct SelfCorrect {
    task: Part,
    /// May contain templates, which see the answer as `output`.
    critic_prompt: Option<Part>,
    /// May be a template.
    rounds: Option<Part>,
    generator: CallConfig,
    critic: CallConfig,
}

impl SelfCorrect {
    fn read(call: &ActionCall) -> Result<Self, SourceError> {
        let Some(task) = call.get("task") else {
            return Err(call.missing(KIND.name, "task", "add what to write"));
        };
        let critic_prompt = call.get("critic_prompt");
        for part in [Some(task), critic_prompt].into_iter().flatten() {
            part.text()?;
            template::check(part)?;
        }
        let rounds = call.get("improvement_rounds");
        if let Some(part) = rounds {
            match part.value() {
                Value::String(_) => template::check(part)?,
                value => count(part, value).map(drop)?,
            }
        }
        let model = call.get("model");
        Ok(Self {
            task: task.clone(),
            critic_prompt: critic_prompt.cloned(),
            rounds: rounds.cloned(),
            generator: CallConfig::read(call, call.get("generator_model").or(model))?,
            critic: CallConfig::read(call, call.get("critic_model").or(model))?,
        })
    }

    fn rounds(&self, names: &Names) -> Result<u32, SourceError> {
        match &self.rounds {
            None => Ok(DEFAULT_ROUNDS),
            Some(part) => count(part, &template::fill_part(part, names)?),
        }
    }

    /// Returns the prompt for the critic of an answer.
    fn question(&self, answer: &str, context: &ActionContext<'_>) -> Result<String, SourceError> {
        let Some(prompt) = &self.critic_prompt else {
            return Ok(CRITIC.to_owned());
        };
        let mut names = context.names.clone();
        names.more.set("output", json!(answer));
        template::fill_text(prompt, &names)
    }
}

/// Parses a number of rounds.
fn count(part: &Part, value: &Value) -> Result<u32, SourceError> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_u64().and_then(|it| u32::try_from(it).ok()),
    };
    number.filter(|it| *it <= MOST_ROUNDS).ok_or_else(|| {
        part.error(&format!(
            "`improvement_rounds`: expected a whole number from 0 to {MOST_ROUNDS}"
        ))
    })
}

#[async_trait(?Send)]
impl Action for SelfCorrect {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        let rounds = self.rounds(context.names)?;
        let task = Message::new(Role::User, template::fill_text(&self.task, context.names)?);
        let mut answer = self
            .generator
            .call_model(vec![task.clone()], context)
            .await?
            .text;
        let mut history = Vec::new();
        for round in 1..=rounds {
            // The critic sees the task and the answer, whatever the prompt contains.
            let so_far = [task.clone(), Message::new(Role::Assistant, answer.clone())];
            let mut asked = so_far.to_vec();
            asked.push(Message::new(Role::User, self.question(&answer, context)?));
            let critique = self.critic.call_model(asked, context).await?.text;
            let mut asked = so_far.to_vec();
            asked.push(Message::new(
                Role::User,
                format!(
                    "A critic reviewed your answer:\n\n{critique}\n\nRewrite the whole answer and fix what the \
                     critic is right about. Reply with only the answer."
                ),
            ));
            let improved = self.generator.call_model(asked, context).await?.text;
            history.push(json!({
                "round": round,
                "output": answer,
                "critique": critique,
                "improved_output": improved,
            }));
            answer = improved;
        }
        Ok(json!({
            "output": answer,
            "improvement_history": history,
            "rounds_completed": rounds,
        }))
    }

    fn answer<'r>(&self, result: &'r Value) -> &'r Value {
        &result["output"]
    }

    fn draft(&self, result: Value) -> Value {
        result.get("output").cloned().unwrap_or(result)
    }
}
