//! `llm.call`: calls a model.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::{Action, ActionCall, ActionKind, response_format};
use crate::model::{
    ChatRequest, EndReason, Message, Purpose, Reply, ResponseSchema, Role, Sampling, call,
    first_block,
};
use crate::source::SourceError;
use crate::types::TokenUsage;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::settings::Settings;
use crate::workflow::template;
use crate::workflow::world::{ActionContext, ModelChoice};

pub(super) const KIND: ActionKind = ActionKind {
    name: "llm.call",
    aliases: &["actions.llm_call", "llm.chat"],
    keys: &[
        "prompt",
        "system",
        "messages",
        "model",
        "provider",
        "api_base",
        "temperature",
        "top_p",
        "seed",
        "max_tokens",
        "max_retries",
        "timeout",
        "base_delay",
        "max_delay",
        "response_format",
        "extract",
    ],
    read: |call| Ok(Box::new(LlmCall::read(call)?)),
};

struct LlmCall {
    question: PromptSource,
    asked: CallConfig,
    /// Whether the answer is the content of the first fenced code block, if there is one.
    extract: bool,
}

/// The model and the parameters of a call.
pub(super) struct CallConfig {
    /// May be a template.
    model: Option<Part>,
    choice: ModelChoice,
    sampling: Sampling,
    /// The required form of the answer. `None` allows any text.
    schema: Option<Arc<ResponseSchema>>,
    settings: Settings,
}

enum PromptSource {
    /// A list of messages.
    Messages(Vec<(Role, Part)>),
    /// A user prompt, with an optional system text.
    Prompt { system: Option<Part>, prompt: Part },
}

impl LlmCall {
    fn read(call: &ActionCall) -> Result<Self, SourceError> {
        let question = match (call.get("messages"), call.get("prompt")) {
            (Some(messages), _) => PromptSource::Messages(read_messages(messages)?),
            (None, Some(prompt)) => PromptSource::Prompt {
                system: call.get("system").cloned(),
                prompt: prompt.clone(),
            },
            (None, None) => {
                let hint = "add the prompt, or a list of `messages`";
                return Err(call.missing(KIND.name, "prompt", hint));
            }
        };
        for key in ["prompt", "system"] {
            if let Some(part) = call.get(key) {
                part.text()?;
                template::check(part)?;
            }
        }
        Ok(Self {
            question,
            asked: CallConfig::read(call, call.get("model"))?,
            extract: call.get("extract").map_or(Ok(false), Part::flag)?,
        })
    }

    fn messages(&self, context: &ActionContext<'_>) -> Result<Vec<Message>, SourceError> {
        let fill = |role, part: &Part| {
            Ok(Message::new(
                role,
                template::fill_text(part, context.names)?,
            ))
        };
        match &self.question {
            PromptSource::Messages(messages) => messages
                .iter()
                .map(|(role, part)| fill(*role, part))
                .collect(),
            PromptSource::Prompt { system, prompt } => {
                let system = system.as_ref().map(|part| fill(Role::System, part));
                system
                    .into_iter()
                    .chain([fill(Role::User, prompt)])
                    .collect()
            }
        }
    }
}

fn read_messages(part: &Part) -> Result<Vec<(Role, Part)>, SourceError> {
    let items = part.items();
    if items.is_empty() {
        return Err(part.expected("a list of messages, each with a `role` and its `content`"));
    }
    items
        .iter()
        .map(|item| {
            item.check_keys(&["role", "content"])?;
            let role = match item.get("role") {
                None => Role::User,
                Some(role) => match role.word(&["system", "user", "assistant"])? {
                    "system" => Role::System,
                    "assistant" => Role::Assistant,
                    _ => Role::User,
                },
            };
            let content = item
                .get("content")
                .ok_or_else(|| item.error("this message has no `content`"))?;
            content.text()?;
            template::check(&content)?;
            Ok((role, content))
        })
        .collect()
}

impl CallConfig {
    /// Parses the keys of an action that belong to the call, except for the model's name.
    pub(super) fn read(call: &ActionCall, model: Option<&Part>) -> Result<Self, SourceError> {
        if let Some(part) = model {
            part.text()?;
            template::check(part)?;
        }
        let text = |key: &str| {
            call.get(key)
                .map(|part| part.text().map(str::to_owned))
                .transpose()
        };
        let number =
            |key: &str, low, high| call.get(key).map(|part| part.number(low, high)).transpose();
        let time = |key: &str| call.get(key).map(Part::time).transpose();
        let retries = match call.get("max_retries") {
            None => None,
            Some(part) => Some(
                u32::try_from(part.whole_number()?).map_err(|_| part.error("too many retries"))?,
            ),
        };
        Ok(Self {
            model: model.cloned(),
            choice: ModelChoice {
                provider: text("provider")?.filter(|provider| provider != "auto"),
                model: None,
                api_base: text("api_base")?,
                retries,
                first_wait: time("base_delay")?,
                longest_wait: time("max_delay")?,
                timeout: time("timeout")?,
                judges: false,
            },
            sampling: Sampling {
                temperature: number("temperature", 0.0, 2.0)?,
                top_p: number("top_p", 0.0, 1.0)?,
                seed: call.get("seed").map(Part::whole_number).transpose()?,
                max_tokens: call.get("max_tokens").map(Part::count).transpose()?,
            },
            schema: call
                .get("response_format")
                .map(response_format::read)
                .transpose()?
                .flatten()
                .map(Arc::new),
            settings: call.settings.clone(),
        })
    }

    /// Calls the model. A refusal and an invalid answer are failures.
    pub(super) async fn call_model(
        &self,
        messages: Vec<Message>,
        context: &ActionContext<'_>,
    ) -> Result<Reply, Failure> {
        let model = match &self.model {
            Some(part) => Some(template::fill_text(part, context.names)?),
            None => None,
        };
        let choice = ModelChoice {
            model,
            ..self.choice.clone()
        };
        let choice = self.settings.complete(choice, context.names);
        let chosen = context.world.models.open(&choice).await?;
        let mut request = ChatRequest::new(Purpose::Write, messages);
        request.sampling = chosen
            .decided
            .or(&self.settings.sampling(&self.sampling))
            .or(&chosen.sampling);
        request.schema.clone_from(&self.schema);
        request.think = chosen.think;
        let observe = |event: crate::model::CallEvent<'_>| context.observe(event);
        let reply = call(&*chosen.model, request, &observe).await?;
        match &reply.end {
            Some(EndReason::Refused(why)) => {
                return Err(Failure::of_code(format!("the model refused: {why}")));
            }
            Some(EndReason::Repetition) => {
                return Err(Failure::of_code("the model's reply loops"));
            }
            _ => {}
        }
        Ok(reply)
    }
}

#[async_trait(?Send)]
impl Action for LlmCall {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        let messages = self.messages(context)?;
        let reply = self.asked.call_model(messages, context).await?;
        let block = self.extract.then(|| first_block(&reply.text)).flatten();
        let answer_text = block.unwrap_or(reply.text);
        // Later nodes may use the keys of an object answer. Data about the call takes precedence
        // over them.
        let mut result: Map<String, Value> = match self.asked.schema {
            Some(_) => serde_json::from_str(&answer_text).unwrap_or_default(),
            None => Map::new(),
        };
        result.insert("content".to_owned(), json!(answer_text));
        result.insert("usage".to_owned(), usage(&reply.usage));
        if reply.attempts > 1 {
            result.insert("attempts".to_owned(), json!(reply.attempts));
        }
        if reply.end == Some(EndReason::Length) {
            result.insert("cut_off".to_owned(), json!(true));
        }
        Ok(Value::Object(result))
    }

    fn answer<'r>(&self, result: &'r Value) -> &'r Value {
        &result["content"]
    }

    fn draft(&self, result: Value) -> Value {
        result.get("content").cloned().unwrap_or(result)
    }
}

/// Returns token counts under the names of the `OpenAI` API.
pub(in crate::workflow) fn usage(usage: &TokenUsage) -> Value {
    let mut map = Map::new();
    for (key, count) in [
        ("prompt_tokens", usage.prompt),
        ("completion_tokens", usage.completion),
        ("total_tokens", usage.total),
        ("cached_tokens", usage.cached),
    ] {
        map.insert(key.to_owned(), json!(count));
    }
    Value::Object(map)
}
