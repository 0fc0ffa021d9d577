//! Probes a model with two small requests that start with the same text.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    CallEvent, ChatEvent, ChatModel, ChatRequest, EndReason, Message, ModelError, Purpose, Reply,
    ResponseSchema, Role, Sampling, Think, call,
};
use crate::types::TokenUsage;

/// The token limit of the reply for the speed test.
const SPEED_TOKENS: u32 = 96;

/// The token limit of the JSON reply: it takes about 30, plus a few hundred for models that reason first.
const JSON_TOKENS: u32 = 600;

/// The minimum number of tokens and the minimum time for a meaningful speed.
const MIN_TOKENS: u64 = 8;
const MIN_TIME: Duration = Duration::from_millis(20);

/// The required keys of the JSON reply. Not guessable, so a reply that has them follows the schema.
const KEYS: [&str; 2] = ["word_of_verdict", "step_of_verdict"];

/// The length of the text that both requests start with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptPrefix {
    /// About 250 tokens: enough for servers that cache every prompt.
    Short,
    /// About 1,500 tokens: large providers cache prompts from 1,024 tokens on.
    Long,
}

impl PromptPrefix {
    /// The approximate number of tokens.
    pub fn tokens(self) -> u32 {
        match self {
            Self::Short => 250,
            Self::Long => 1_500,
        }
    }

    fn text(self) -> String {
        // A line has about 14 tokens.
        let lines = self.tokens() / 14;
        let mut text = String::from("This is the stock list of a chandler.\n");
        for line in 1..=lines {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "Shelf {line} has {} ropes and {} lamps.",
                line * 7 % 90,
                line * 3 % 40
            );
        }
        text
    }
}

/// The maximum number of tokens that both requests use together: prompt and completion.
pub fn cost(prefix: PromptPrefix) -> (u32, u32) {
    (2 * (prefix.tokens() + 50), SPEED_TOKENS + JSON_TOKENS)
}

/// The results of the speed test.
#[derive(Debug, Clone, PartialEq)]
pub struct SpeedProbe {
    /// The time from the request to the first piece of the answer or the reasoning.
    pub first_piece: Option<Duration>,
    /// The generation speed after the first piece; `None` if the server reports no token counts or sends everything
    /// at once.
    pub tokens_per_second: Option<f64>,
    /// The number of characters of reasoning before the answer.
    pub reasoning: usize,
    /// Whether an answer started before the token limit was reached.
    pub answered: bool,
    /// The token usage, as far as reported.
    pub usage: TokenUsage,
}

/// The results of the JSON test.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonProbe {
    /// What the model returned.
    pub answer: JsonAnswer,
    /// Whether the reply has log-probabilities.
    pub logprobs: bool,
    /// The token usage, as far as reported. Cached prompt tokens mean that the shared text was cached.
    pub usage: TokenUsage,
    /// Notices about what the server rejected.
    pub notices: Vec<String>,
}

/// The reply to a request with a JSON Schema that the prompt does not describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonAnswer {
    /// JSON that follows the schema: the server enforces it.
    FollowsSchema,
    /// Other JSON.
    OtherJson,
    /// Text that is not JSON.
    Text,
    /// JSON that was cut off by the token limit.
    CutOff,
}

/// Requests a text and measures the stream.
///
/// # Errors
/// If the call fails after all retries.
pub async fn measure_speed(
    model: &dyn ChatModel,
    prefix: PromptPrefix,
    think: Think,
) -> Result<SpeedProbe, ModelError> {
    let mut request = ask(
        prefix,
        "Leave the list aside. Count from one to thirty in words, separated by commas.",
        SPEED_TOKENS,
    );
    request.think = think;
    let watch = Mutex::new(StreamTimer::new());
    let reply = call(model, request, &|event: CallEvent<'_>| {
        if let CallEvent::Chat(event) = event {
            let mut watch = watch.lock();
            watch.see(event);
        }
    })
    .await?;
    let watch = watch.into_inner();
    Ok(watch.writing(&reply))
}

/// Records when the pieces of a reply arrive.
struct StreamTimer {
    begun: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl StreamTimer {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            first: None,
            last: None,
        }
    }

    fn see(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::Text(_) | ChatEvent::Reasoning(_) => {
                let now = Instant::now();
                self.first.get_or_insert(now);
                self.last = Some(now);
            }
            // The reply so far is void and starts again.
            ChatEvent::Retry { wait, .. } => {
                *self = Self::new();
                self.begun += *wait;
            }
            _ => {}
        }
    }

    fn writing(&self, reply: &Reply) -> SpeedProbe {
        let took = self
            .first
            .zip(self.last)
            .map(|(first, last)| last.saturating_duration_since(first));
        SpeedProbe {
            first_piece: self
                .first
                .map(|first| first.saturating_duration_since(self.begun)),
            tokens_per_second: reply
                .usage
                .completion
                .zip(took)
                .and_then(|(tokens, took)| rate(tokens, took)),
            reasoning: reply.reasoning.chars().count(),
            answered: !reply.text.trim().is_empty(),
            usage: reply.usage,
        }
    }
}

/// The speed in tokens per second: `tokens` generated in `took`, where the first one marks the start.
fn rate(tokens: u64, took: Duration) -> Option<f64> {
    if tokens < MIN_TOKENS || took < MIN_TIME {
        return None;
    }
    let after_the_first = u32::try_from(tokens - 1).ok()?;
    Some(f64::from(after_the_first) / took.as_secs_f64())
}

/// Requests JSON with a schema and log-probabilities, as for a judge.
///
/// # Errors
/// If the call fails after all retries.
pub async fn measure_json(
    model: &dyn ChatModel,
    prefix: PromptPrefix,
    think: Think,
) -> Result<JsonProbe, ModelError> {
    // Some servers require the word "JSON" in the prompt.
    let mut request = ask(
        prefix,
        "Leave the list aside. Is the sea wet? Give your verdict as JSON.",
        JSON_TOKENS,
    );
    request.think = think;
    request.top_logprobs = Some(2);
    request.schema = Some(Arc::new(ResponseSchema::new(
        "verdict",
        json!({
            "type": "object",
            "properties": {
                KEYS[0]: { "type": "string", "maxLength": 20 },
                KEYS[1]: { "type": "integer", "enum": [1, 2, 3, 4, 5] },
            },
            "required": KEYS,
            "additionalProperties": false,
        }),
    )));
    let notices = Mutex::new(Vec::new());
    let reply = call(model, request, &|event: CallEvent<'_>| {
        if let CallEvent::Chat(ChatEvent::Notice(notice)) = event {
            let mut notices = notices.lock();
            notices.push(notice.clone());
        }
    })
    .await?;
    Ok(JsonProbe {
        answer: json_answer(&reply),
        logprobs: !reply.logprobs.is_empty(),
        usage: reply.usage,
        notices: notices.into_inner(),
    })
}

fn json_answer(reply: &Reply) -> JsonAnswer {
    let text = reply.text.trim();
    let fenced = text
        .strip_prefix("```json")
        .or_else(|| text.strip_prefix("```"))
        .and_then(|text| text.strip_suffix("```"));
    match serde_json::from_str(fenced.unwrap_or(text)) {
        Ok(Value::Object(object)) => {
            let word = object.get(KEYS[0]).is_some_and(Value::is_string);
            let step = object.get(KEYS[1]).and_then(Value::as_u64);
            if object.len() == 2 && word && step.is_some_and(|step| (1..=5).contains(&step)) {
                JsonAnswer::FollowsSchema
            } else {
                JsonAnswer::OtherJson
            }
        }
        Ok(_) => JsonAnswer::OtherJson,
        Err(_) if reply.end == Some(EndReason::Length) => JsonAnswer::CutOff,
        Err(_) => JsonAnswer::Text,
    }
}

/// A request that appends a question to the shared text.
fn ask(prefix: PromptPrefix, question: &str, max_tokens: u32) -> ChatRequest {
    let content = format!("{}\n{question}", prefix.text());
    let mut request = ChatRequest::new(Purpose::Write, vec![Message::new(Role::User, content)]);
    request.sampling = Sampling {
        max_tokens: Some(max_tokens),
        ..Sampling::default()
    };
    request
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::ScriptedModel;
    use crate::ollama::estimate_tokens;

    fn scripted(script: &str) -> ScriptedModel {
        ScriptedModel::parse(Path::new("script.toml"), script).unwrap()
    }

    fn block<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn json_probe(script: &str) -> JsonProbe {
        let model = scripted(script);
        block(measure_json(&model, PromptPrefix::Short, Think::Auto)).unwrap()
    }

    #[test]
    fn the_prefix_has_its_length_and_is_shared() {
        for prefix in [PromptPrefix::Short, PromptPrefix::Long] {
            let tokens = estimate_tokens(&prefix.text());
            let said = u64::from(prefix.tokens());
            assert!((said * 2 / 3..said * 3 / 2).contains(&tokens), "{tokens}");
            let one = ask(prefix, "a", 1).messages[0].content.clone();
            assert!(one.starts_with(&prefix.text()));
        }
    }

    #[test]
    fn speed_is_measured() {
        let pieces: Vec<String> = (0..12).map(|n| format!("\"{n},\"")).collect();
        let pieces = pieces.join(", ");
        let model = scripted(&format!(
            "[[reply]]\nreasoning = 'Hm.'\npieces = [{pieces}]\ndelay_ms = 10\n\
             usage = {{ prompt = 200, completion = 12 }}\n"
        ));
        let writing = block(measure_speed(&model, PromptPrefix::Short, Think::Auto)).unwrap();
        assert!(writing.answered);
        assert_eq!(writing.reasoning, 3);
        assert!(writing.first_piece.is_some());
        let speed = writing.tokens_per_second.unwrap();
        assert!((1.0..=130.0).contains(&speed), "{speed}");
    }

    #[test]
    fn speed_needs_enough_tokens_and_time() {
        assert_eq!(rate(7, Duration::from_secs(1)), None);
        assert_eq!(rate(50, Duration::from_millis(1)), None);
        assert_eq!(rate(11, Duration::from_secs(2)), Some(5.0));
    }

    #[test]
    fn json_replies_are_classified() {
        let reply = |text: &str| json_probe(&format!("[[reply]]\ntext = '''{text}'''\n")).answer;
        let as_asked = r#"{"word_of_verdict": "yes", "step_of_verdict": 5}"#;
        assert_eq!(reply(as_asked), JsonAnswer::FollowsSchema);
        assert_eq!(
            reply(&format!("```json\n{as_asked}\n```")),
            JsonAnswer::FollowsSchema
        );
        assert_eq!(reply(r#"{"verdict": "yes"}"#), JsonAnswer::OtherJson);
        assert_eq!(
            reply(r#"{"word_of_verdict": "yes", "step_of_verdict": 9}"#),
            JsonAnswer::OtherJson
        );
        assert_eq!(reply("Yes, it is."), JsonAnswer::Text);
        let cut = json_probe("[[reply]]\ntext = '{\"word'\nend = 'length'\n").answer;
        assert_eq!(cut, JsonAnswer::CutOff);
    }

    #[test]
    fn log_probabilities_and_notices_are_reported() {
        let seen = json_probe(
            "[[reply]]\ntext = '{}'\nnotice = 'seed is left out'\n\
             usage = { prompt = 300, completion = 2, cached = 250 }\n\
             logprobs = [{ token = '{', logprob = -0.1, top = [['{', -0.1]] }]\n",
        );
        assert!(seen.logprobs);
        assert_eq!(seen.notices, ["seed is left out"]);
        assert_eq!(seen.usage.cached, Some(250));
        assert!(!json_probe("[[reply]]\ntext = '{}'\n").logprobs);
    }

    #[test]
    fn failures_are_returned() {
        let model = scripted("[[reply]]\nerror = { class = 'auth', message = 'no' }\n");
        let error = block(measure_speed(&model, PromptPrefix::Short, Think::Auto)).unwrap_err();
        assert_eq!(error.class, crate::ErrorClass::Auth);
    }
}
