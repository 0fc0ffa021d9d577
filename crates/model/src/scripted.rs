//! A model that replies from a file: for tests, demos and bug reports (`--provider scripted:FILE`).
//!
//! The file is TOML with a list of `[[reply]]` tables. Each call returns the first reply that is not used up and
//! whose conditions match:
//!
//! ```toml
//! [[reply]]
//! purpose = "write"            # only for writing (or "judge"); default: both
//! contains = "haiku"           # only if a message contains this text
//! times = 2                    # how many times to use it; default 1, 0 for no limit
//! text = "An old silent pond"  # the answer; or in pieces:
//! pieces = ["An old ", "silent pond"]
//! reasoning = "Five syllables first."
//! usage = { prompt = 20, completion = 5, cached = 12 }
//! end = "length"               # "stop" (default), "length" or "refused"
//! refusal = "I would rather not."   # the message for end = "refused"
//! delay_ms = 100               # before every piece
//! notice = "seed is left out"
//! retries = [{ class = "rate", message = "slow down", wait_ms = 50 }]   # failures before the answer
//! logprobs = [{ token = "An", logprob = -0.1, top = [["An", -0.1], ["The", -2.4]] }]
//!
//! [[reply]]
//! purpose = "judge"
//! json = { score = 0.9 }       # the answer is this value as JSON
//!
//! [[reply]]
//! text = "partial output"      # before the failure
//! error = { class = "cut_off", message = "the connection was lost" }
//! ```
//!
//! Error classes: `auth`, `quota`, `rate`, `not_found`, `context_too_long`, `rejected`, `cut_off`, `unreachable`,
//! `transient`, `protocol`. An `error` is final; failures that the client would retry are listed as `retries`.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use serde::Deserialize;

use super::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, EndReason, ErrorClass, Exchange, Message,
    ModelError, ModelInfo, Purpose, TokenLogprob,
};
use crate::types::{ModelId, TokenUsage};

/// A model that replies from a file. Clones share the position in the script.
#[derive(Debug, Clone)]
pub struct ScriptedModel {
    id: ModelId,
    file: PathBuf,
    replies: Arc<Mutex<Vec<Entry>>>,
}

/// Why a script cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script `{file}`")]
    Io {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The file is not a valid script.
    #[error("invalid script `{file}`: {reason}")]
    Syntax {
        /// The file.
        file: PathBuf,
        /// What is wrong with it, and where.
        reason: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Script {
    #[serde(default)]
    reply: Vec<ReplyEntry>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReplyEntry {
    purpose: Option<PurposeName>,
    contains: Option<String>,
    times: Option<u32>,
    text: Option<String>,
    pieces: Option<Vec<String>>,
    json: Option<serde_json::Value>,
    reasoning: Option<String>,
    usage: Option<UsageEntry>,
    #[serde(default)]
    end: End,
    refusal: Option<String>,
    #[serde(default)]
    delay_ms: u64,
    notice: Option<String>,
    #[serde(default)]
    retries: Vec<ErrorEntry>,
    #[serde(default)]
    logprobs: Vec<LogprobEntry>,
    error: Option<ErrorEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PurposeName {
    Write,
    Judge,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum End {
    #[default]
    Stop,
    Length,
    Refused,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageEntry {
    prompt: Option<u64>,
    completion: Option<u64>,
    cached: Option<u64>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorEntry {
    class: ErrorClass,
    #[serde(default = "scripted")]
    message: String,
    hint: Option<String>,
    status: Option<u16>,
    #[serde(default)]
    wait_ms: u64,
}

fn scripted() -> String {
    "scripted failure".to_owned()
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LogprobEntry {
    token: String,
    logprob: f64,
    #[serde(default)]
    top: Vec<(String, f64)>,
}

#[derive(Debug)]
struct Entry {
    reply: ReplyEntry,
    /// How many more times to use it; `None` for no limit.
    left: Option<u32>,
}

impl ScriptedModel {
    /// Reads a script from a file.
    pub fn open(path: &Path) -> Result<Self, ScriptError> {
        let text = fs_err::read_to_string(path).map_err(|source| ScriptError::Io {
            file: path.to_owned(),
            source,
        })?;
        Self::parse(path, &text)
    }

    /// Parses a script; `path` names it in messages.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ScriptError> {
        let syntax = |reason: String| ScriptError::Syntax {
            file: path.to_owned(),
            reason,
        };
        let script: Script = toml::from_str(text).map_err(|error| syntax(error.to_string()))?;
        for (index, reply) in script.reply.iter().enumerate() {
            let answers = [
                reply.text.is_some(),
                reply.pieces.is_some(),
                reply.json.is_some(),
            ];
            if answers.into_iter().filter(|given| *given).count() > 1 {
                return Err(syntax(format!(
                    "reply {} has more than one of `text`, `pieces` and `json`",
                    index + 1
                )));
            }
        }
        Ok(Self {
            id: ModelId {
                provider: "scripted".to_owned(),
                model: path.display().to_string(),
            },
            file: path.to_owned(),
            replies: Arc::new(Mutex::new(
                script
                    .reply
                    .into_iter()
                    .map(|reply| Entry {
                        left: match reply.times {
                            Some(0) => None,
                            times => Some(times.unwrap_or(1)),
                        },
                        reply,
                    })
                    .collect(),
            )),
        })
    }

    /// Skips the replies to these calls, as far as they were made to this model.
    pub fn skip(&self, answered: &[Exchange]) {
        for call in answered.iter().filter(|call| call.asked.model == self.id) {
            let _ = self.take(call.asked.purpose, &call.messages);
        }
    }

    fn take(&self, purpose: Purpose, messages: &[Message]) -> Option<ReplyEntry> {
        let purpose = match purpose {
            Purpose::Write => PurposeName::Write,
            Purpose::Judge => PurposeName::Judge,
        };
        let mut replies = self.replies.lock();
        let entry = replies.iter_mut().find(|entry| {
            let reply = &entry.reply;
            entry.left != Some(0)
                && reply.purpose.is_none_or(|wanted| wanted == purpose)
                && reply.contains.as_deref().is_none_or(|text| {
                    let mut messages = messages.iter();
                    messages.any(|message| message.content.contains(text))
                })
        })?;
        if let Some(left) = &mut entry.left {
            *left -= 1;
        }
        Some(entry.reply.clone())
    }

    fn exhausted_error(&self, request: &ChatRequest) -> ModelError {
        let purpose = match request.purpose {
            Purpose::Write => "write",
            Purpose::Judge => "judge",
        };
        ModelError::new(
            ErrorClass::Rejected,
            format!(
                "the script `{}` has no reply left for this call (purpose `{purpose}`)",
                self.file.display()
            ),
        )
        .with_hint("add a `[[reply]]`, or set `times = 0` on a reply to use it without limit")
    }
}

impl ErrorEntry {
    fn error(&self) -> ModelError {
        ModelError {
            hint: self.hint.clone(),
            status: self.status,
            ..ModelError::new(self.class, self.message.clone())
        }
    }
}

impl ReplyEntry {
    /// The events of the call, each with the wait before it.
    fn steps(self) -> VecDeque<(Duration, Result<ChatEvent, ModelError>)> {
        let delay = Duration::from_millis(self.delay_ms);
        let mut steps = VecDeque::new();
        let mut pending = Duration::ZERO;
        for retry in &self.retries {
            let wait = Duration::from_millis(retry.wait_ms);
            let error = retry.error();
            steps.push_back((pending, Ok(ChatEvent::Retry { error, wait })));
            pending = wait;
        }
        let mut step = |wait, event| {
            steps.push_back((std::mem::take(&mut pending) + wait, event));
        };
        if let Some(notice) = self.notice {
            step(Duration::ZERO, Ok(ChatEvent::Notice(notice)));
        }
        if let Some(reasoning) = self.reasoning {
            step(delay, Ok(ChatEvent::Reasoning(reasoning)));
        }
        let pieces = match (self.text, self.pieces, self.json) {
            (Some(text), _, _) => vec![text],
            (_, Some(pieces), _) => pieces,
            (_, _, Some(json)) => vec![json.to_string()],
            _ => Vec::new(),
        };
        for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
            step(delay, Ok(ChatEvent::Text(piece)));
        }
        if !self.logprobs.is_empty() {
            let tokens = self.logprobs.into_iter().map(|entry| TokenLogprob {
                token: entry.token,
                logprob: entry.logprob,
                top: entry.top,
            });
            step(Duration::ZERO, Ok(ChatEvent::Logprobs(tokens.collect())));
        }
        if let Some(usage) = self.usage {
            let usage = TokenUsage::new(usage.prompt, usage.completion, usage.cached);
            step(Duration::ZERO, Ok(ChatEvent::Usage(usage)));
        }
        if let Some(error) = self.error {
            let wait = Duration::from_millis(error.wait_ms);
            step(wait, Err(error.error()));
            return steps;
        }
        let end = match self.end {
            End::Stop => EndReason::Stop,
            End::Length => EndReason::Length,
            End::Refused => EndReason::Refused(self.refusal.unwrap_or_default()),
        };
        step(Duration::ZERO, Ok(ChatEvent::End(end)));
        steps
    }
}

#[async_trait::async_trait]
impl ChatModel for ScriptedModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn address(&self) -> Option<String> {
        let file = std::path::absolute(&self.file).ok()?;
        Some(file.display().to_string())
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        let steps = match self.take(request.purpose, &request.messages) {
            Some(reply) => reply.steps(),
            None => VecDeque::from([(Duration::ZERO, Err(self.exhausted_error(&request)))]),
        };
        stream::unfold(steps, |mut steps| async {
            let (wait, event) = steps.pop_front()?;
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Some((event, steps))
        })
        .boxed()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        Ok(ModelInfo {
            known: true,
            ..ModelInfo::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, Reply, Role, complete};

    fn model(script: &str) -> ScriptedModel {
        ScriptedModel::parse(Path::new("script.toml"), script).unwrap()
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
            .block_on(future)
    }

    fn ask(
        model: &ScriptedModel,
        purpose: Purpose,
        prompt: &str,
    ) -> (Reply, Result<(), ModelError>) {
        let request = ChatRequest::new(purpose, vec![Message::new(Role::User, prompt)]);
        run(complete(model, request, |_| {}))
    }

    fn text(model: &ScriptedModel, purpose: Purpose, prompt: &str) -> String {
        let (reply, result) = ask(model, purpose, prompt);
        result.unwrap();
        reply.text
    }

    /// The example in the documentation is a valid script.
    #[test]
    fn the_documented_example_works() {
        let example: String = include_str!("scripted.rs")
            .lines()
            .skip_while(|line| !line.contains("```toml"))
            .skip(1)
            .take_while(|line| !line.contains("```"))
            .map(|line| line.trim_start_matches("//!").trim_start().to_owned() + "\n")
            // The documentation shows the same answer in two forms.
            .filter(|line| !line.starts_with("text = \"An old"))
            .collect();
        let model = model(&example);
        let (reply, result) = ask(&model, Purpose::Write, "a haiku, please");
        result.unwrap();
        assert_eq!(reply.text, "An old silent pond");
        assert_eq!(reply.attempts, 2);
        assert_eq!(reply.end, Some(EndReason::Length));
        assert_eq!(reply.usage, TokenUsage::new(Some(20), Some(5), Some(12)));
        assert_eq!(reply.logprobs[0].top[1], ("The".to_owned(), -2.4));
        assert_eq!(text(&model, Purpose::Judge, "x"), "{\"score\":0.9}");
        let (reply, result) = ask(&model, Purpose::Write, "something else");
        assert_eq!(result.unwrap_err().class, ErrorClass::CutOff);
        assert_eq!(reply.text, "partial output");
    }

    #[test]
    fn the_first_matching_reply_is_used() {
        let model = model(
            "[[reply]]\npurpose = 'judge'\ntext = 'j'\ntimes = 2\n\
             [[reply]]\ncontains = 'two'\ntext = 'b'\n\
             [[reply]]\ntext = 'a'\n\
             [[reply]]\npurpose = 'write'\ntext = 'z'\ntimes = 0\n",
        );
        assert_eq!(text(&model, Purpose::Write, "one"), "a");
        assert_eq!(text(&model, Purpose::Write, "two"), "b");
        assert_eq!(text(&model, Purpose::Write, "two"), "z");
        assert_eq!(text(&model, Purpose::Write, "two"), "z");
        assert_eq!(text(&model, Purpose::Judge, "two"), "j");
        assert_eq!(text(&model.clone(), Purpose::Judge, "two"), "j");
        let error = ask(&model, Purpose::Judge, "two").1.unwrap_err();
        assert!(error.message.contains("`script.toml`"), "{error}");
        assert!(error.message.contains("judge"), "{error}");
    }

    #[test]
    fn script_errors_have_a_position() {
        for (script, words) in [
            ("[[reply]]\ntxt = 'a'\n", "txt"),
            ("[[reply]]\ntext = 'a'\npieces = ['b']\n", "more than one"),
            ("[[reply]]\nend = 'never'\n", "never"),
            ("[[reply]\n", "line 1"),
        ] {
            let error = ScriptedModel::parse(Path::new("s.toml"), script).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
            assert!(error.to_string().contains("s.toml"), "{error}");
        }
        let error = ScriptedModel::open(Path::new("/nowhere/s.toml")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/s.toml"));
    }
}
