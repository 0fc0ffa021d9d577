//! What a model can do, found out by asking it two small questions that begin with the same text.

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

/// The most tokens of the answer whose speed is measured.
const COUNTED: u32 = 96;

/// The most tokens of the answer in JSON: it takes some 30, a model that reasons first some hundreds.
const JSON_TOKENS: u32 = 600;

/// The fewest tokens, and the shortest time, that a speed can be told from.
const ENOUGH_TOKENS: u64 = 8;
const ENOUGH_TIME: Duration = Duration::from_millis(20);

/// The keys that the JSON has to have. Nobody guesses them: an answer with them was made to have them.
const KEYS: [&str; 2] = ["word_of_verdict", "step_of_verdict"];

/// How long the text is that both questions begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// Some 250 tokens: enough for servers that cache whatever they have read.
    Short,
    /// Some 1,500 tokens: large providers cache from 1,024 tokens on.
    Long,
}

impl Beginning {
    /// About how many tokens it has.
    pub fn tokens(self) -> u32 {
        match self {
            Self::Short => 250,
            Self::Long => 1_500,
        }
    }

    fn text(self) -> String {
        // A line has some 14 tokens.
        let lines = self.tokens() / 14;
        let mut text = String::from("This is the stock list of a chandler.\n");
        for line in 1..=lines {
            // Writing to a text does not fail.
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

/// The most tokens that both questions together take: to read, and to write.
pub fn cost(beginning: Beginning) -> (u32, u32) {
    (2 * (beginning.tokens() + 50), COUNTED + JSON_TOKENS)
}

/// How a model writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Writing {
    /// From the request to the first piece of the answer or of its reasoning.
    pub first_piece: Option<Duration>,
    /// How fast it writes from then on; `None` if the server counts no tokens, or sends all of them at once.
    pub tokens_per_second: Option<f64>,
    /// Characters of reasoning that came before the answer.
    pub reasoning: usize,
    /// Whether an answer came, too, before the limit was reached.
    pub answered: bool,
    /// Tokens, as far as the server told.
    pub usage: TokenUsage,
}

/// How a model answers where JSON is demanded.
#[derive(Debug, Clone, PartialEq)]
pub struct InJson {
    /// What came.
    pub answer: JsonAnswer,
    /// Whether log-probabilities came with it.
    pub logprobs: bool,
    /// Tokens, as far as the server told; those of the prompt begin with what the first question began with.
    pub usage: TokenUsage,
    /// What the server did not accept, in words.
    pub notices: Vec<String>,
}

/// What comes where JSON is demanded under a schema that the prompt does not describe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonAnswer {
    /// JSON as the schema says: the server enforces it.
    AsTheSchema,
    /// Some JSON.
    SomeJson,
    /// No JSON.
    Text,
    /// The limit on tokens was reached before it was complete.
    CutOff,
}

/// Asks for a text, and watches how it comes.
///
/// # Errors
/// If the call fails for good.
pub async fn measure_writing(
    model: &dyn ChatModel,
    beginning: Beginning,
    think: Think,
) -> Result<Writing, ModelError> {
    let mut request = ask(
        beginning,
        "Leave the list aside. Count from one to thirty in words, separated by commas.",
        COUNTED,
    );
    request.think = think;
    let watch = Mutex::new(Watch::new());
    let reply = call(model, request, &|event| {
        if let CallEvent::Chat(event) = event {
            let mut watch = watch.lock();
            watch.see(event);
        }
    })
    .await?;
    let watch = watch.into_inner();
    Ok(watch.writing(&reply))
}

/// When the pieces of an answer come.
struct Watch {
    begun: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Watch {
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
            // What came is void, and the answer begins anew.
            ChatEvent::Retry { wait, .. } => {
                *self = Self::new();
                self.begun += *wait;
            }
            _ => {}
        }
    }

    fn writing(&self, reply: &Reply) -> Writing {
        let took = self
            .first
            .zip(self.last)
            .map(|(first, last)| last.saturating_duration_since(first));
        Writing {
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

/// Tokens per second, from so many tokens of which the first came at the beginning of the time.
fn rate(tokens: u64, took: Duration) -> Option<f64> {
    if tokens < ENOUGH_TOKENS || took < ENOUGH_TIME {
        return None;
    }
    let after_the_first = u32::try_from(tokens - 1).ok()?;
    Some(f64::from(after_the_first) / took.as_secs_f64())
}

/// Asks for JSON under a schema, with log-probabilities, as a judge is asked.
///
/// # Errors
/// If the call fails for good.
pub async fn measure_json(
    model: &dyn ChatModel,
    beginning: Beginning,
    think: Think,
) -> Result<InJson, ModelError> {
    // Some servers demand the word where any JSON is demanded.
    let mut request = ask(
        beginning,
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
    let reply = call(model, request, &|event| {
        if let CallEvent::Chat(ChatEvent::Notice(notice)) = event {
            let mut notices = notices.lock();
            notices.push(notice.clone());
        }
    })
    .await?;
    Ok(InJson {
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
                JsonAnswer::AsTheSchema
            } else {
                JsonAnswer::SomeJson
            }
        }
        Ok(_) => JsonAnswer::SomeJson,
        Err(_) if reply.end == Some(EndReason::Length) => JsonAnswer::CutOff,
        Err(_) => JsonAnswer::Text,
    }
}

/// A question behind the text that all of them begin with.
fn ask(beginning: Beginning, question: &str, max_tokens: u32) -> ChatRequest {
    let content = format!("{}\n{question}", beginning.text());
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

    fn in_json(script: &str) -> InJson {
        let model = scripted(script);
        block(measure_json(&model, Beginning::Short, Think::Auto)).unwrap()
    }

    #[test]
    fn the_beginning_is_as_long_as_it_says_and_the_same_for_both() {
        for beginning in [Beginning::Short, Beginning::Long] {
            let tokens = estimate_tokens(&beginning.text());
            let said = u64::from(beginning.tokens());
            assert!((said * 2 / 3..said * 3 / 2).contains(&tokens), "{tokens}");
            let one = ask(beginning, "a", 1).messages[0].content.clone();
            assert!(one.starts_with(&beginning.text()));
        }
    }

    #[test]
    fn a_writer_is_timed() {
        let pieces: Vec<String> = (0..12).map(|n| format!("\"{n},\"")).collect();
        let pieces = pieces.join(", ");
        let model = scripted(&format!(
            "[[reply]]\nreasoning = 'Hm.'\npieces = [{pieces}]\ndelay_ms = 10\n\
             usage = {{ prompt = 200, completion = 12 }}\n"
        ));
        let writing = block(measure_writing(&model, Beginning::Short, Think::Auto)).unwrap();
        assert!(writing.answered);
        assert_eq!(writing.reasoning, 3);
        assert!(writing.first_piece.is_some());
        let speed = writing.tokens_per_second.unwrap();
        assert!((1.0..=130.0).contains(&speed), "{speed}");
    }

    #[test]
    fn a_speed_needs_something_to_be_told_from() {
        assert_eq!(rate(7, Duration::from_secs(1)), None);
        assert_eq!(rate(50, Duration::from_millis(1)), None);
        assert_eq!(rate(11, Duration::from_secs(2)), Some(5.0));
    }

    #[test]
    fn json_is_told_from_what_is_not() {
        let reply = |text: &str| in_json(&format!("[[reply]]\ntext = '''{text}'''\n")).answer;
        let as_asked = r#"{"word_of_verdict": "yes", "step_of_verdict": 5}"#;
        assert_eq!(reply(as_asked), JsonAnswer::AsTheSchema);
        assert_eq!(
            reply(&format!("```json\n{as_asked}\n```")),
            JsonAnswer::AsTheSchema
        );
        assert_eq!(reply(r#"{"verdict": "yes"}"#), JsonAnswer::SomeJson);
        assert_eq!(
            reply(r#"{"word_of_verdict": "yes", "step_of_verdict": 9}"#),
            JsonAnswer::SomeJson
        );
        assert_eq!(reply("Yes, it is."), JsonAnswer::Text);
        let cut = in_json("[[reply]]\ntext = '{\"word'\nend = 'length'\n").answer;
        assert_eq!(cut, JsonAnswer::CutOff);
    }

    #[test]
    fn log_probabilities_and_notices_are_seen() {
        let seen = in_json(
            "[[reply]]\ntext = '{}'\nnotice = 'seed is left out'\n\
             usage = { prompt = 300, completion = 2, cached = 250 }\n\
             logprobs = [{ token = '{', logprob = -0.1, top = [['{', -0.1]] }]\n",
        );
        assert!(seen.logprobs);
        assert_eq!(seen.notices, ["seed is left out"]);
        assert_eq!(seen.usage.cached, Some(250));
        assert!(!in_json("[[reply]]\ntext = '{}'\n").logprobs);
    }

    #[test]
    fn a_failure_is_passed_on() {
        let model = scripted("[[reply]]\nerror = { class = 'auth', message = 'no' }\n");
        let error = block(measure_writing(&model, Beginning::Short, Think::Auto)).unwrap_err();
        assert_eq!(error.class, crate::ErrorClass::Auth);
    }
}
