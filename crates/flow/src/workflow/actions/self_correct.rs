//! `reason.self_correct`: an answer, improved so many times by what a critic says of it, without a verdict.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::llm_call::Asked;
use super::{Action, Call, Kind};
use crate::model::{Message, Role};
use crate::source::SourceError;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::template::{self, Names};
use crate::workflow::world::Scene;

pub(super) const KIND: Kind = Kind {
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

/// As the reference has it.
const DEFAULT_ROUNDS: u32 = 2;
/// The most rounds that a file may ask for: each is two calls.
const MOST_ROUNDS: u32 = 100;

/// What the critic is asked where the file does not say it.
const CRITIC: &str = "Say what is wrong with your answer and how it can be mended, the gravest first. Do not write \
                      the answer again.";

struct SelfCorrect {
    task: Part,
    /// May hold templates, which see the answer as `output`.
    critic_prompt: Option<Part>,
    /// May be a template.
    rounds: Option<Part>,
    generator: Asked,
    critic: Asked,
}

impl SelfCorrect {
    fn read(call: &Call) -> Result<Self, SourceError> {
        let Some(task) = call.get("task") else {
            return Err(call.missing(KIND.name, "task", "say what is to be written"));
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
            generator: Asked::read(call, call.get("generator_model").or(model))?,
            critic: Asked::read(call, call.get("critic_model").or(model))?,
        })
    }

    fn rounds(&self, names: &Names) -> Result<u32, SourceError> {
        match &self.rounds {
            None => Ok(DEFAULT_ROUNDS),
            Some(part) => count(part, &template::fill_part(part, names)?),
        }
    }

    /// What the critic is asked about an answer.
    fn question(&self, answer: &str, scene: &Scene<'_>) -> Result<String, SourceError> {
        let Some(prompt) = &self.critic_prompt else {
            return Ok(CRITIC.to_owned());
        };
        let mut names = scene.names.clone();
        names.more.set("output", json!(answer));
        template::fill_text(prompt, &names)
    }
}

/// How many rounds a value means.
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
    async fn run(&self, scene: &Scene<'_>) -> Result<Value, Failure> {
        let rounds = self.rounds(scene.names)?;
        let task = Message::new(Role::User, template::fill_text(&self.task, scene.names)?);
        let mut answer = self.generator.ask(vec![task.clone()], scene).await?.text;
        let mut history = Vec::new();
        for round in 1..=rounds {
            // Who reads it sees the task and the answer, whatever the prompt shows of them.
            let so_far = [task.clone(), Message::new(Role::Assistant, answer.clone())];
            let mut asked = so_far.to_vec();
            asked.push(Message::new(Role::User, self.question(&answer, scene)?));
            let critique = self.critic.ask(asked, scene).await?.text;
            let mut asked = so_far.to_vec();
            asked.push(Message::new(
                Role::User,
                format!(
                    "A critic says of your answer:\n\n{critique}\n\nWrite the whole answer again, mended where \
                     the critic is right. Answer with it alone."
                ),
            ));
            let improved = self.generator.ask(asked, scene).await?.text;
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
