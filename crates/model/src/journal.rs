//! Replies that are kept, by what was asked: a run that is resumed pays for none of them twice.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::call::CallReport;
use super::chat::{
    ChatModel, ChatRequest, ChatStream, Message, ModelInfo, Purpose, ResponseSchema, Role, Sampling,
};
use super::error::ModelError;
use super::openai::StructuredOutput;
use super::reply::Reply;
use crate::source;
use crate::types::{ModelId, Think};

impl ChatRequest {
    /// A hash of all that the answer depends on, for whichever model: the messages, how tokens are chosen, how
    /// much is reasoned, what form the answer has.
    ///
    /// The limit on tokens is no part of it, for an answer that did not reach it is the same under any; nor is
    /// the prediction, which only makes an answer faster.
    pub fn key(&self) -> String {
        let sampling = &self.sampling;
        let how = serde_json::to_string(&(
            [sampling.temperature, sampling.top_p],
            sampling.seed,
            self.think,
            self.top_logprobs,
            self.schema.as_deref().map(ResponseSchema::text),
        ));
        let how = how.expect("numbers, names and JSON can be written as JSON");
        let said = self.messages.iter();
        let said = said.flat_map(|message| [message.role.as_str(), &message.content]);
        source::hash_of(std::iter::once(&*how).chain(said))
    }
}

impl Role {
    /// The word for it, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// How a model was asked, besides the messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Who was asked.
    pub model: ModelId,
    /// What for.
    pub purpose: Purpose,
    /// How tokens were chosen.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// How much the model was to reason.
    pub think: Think,
    /// The name of the JSON Schema that the answer had to fit, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
}

impl Asked {
    fn of(call: &CallReport<'_>) -> Self {
        let request = call.request;
        Self {
            model: call.model.clone(),
            purpose: request.purpose,
            sampling: request.sampling.clone(),
            think: request.think,
            schema: request
                .schema
                .as_ref()
                .map(|schema| schema.name().to_owned()),
        }
    }
}

/// A call that was answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// How the model was asked.
    pub asked: Asked,
    /// [`ChatRequest::key`] of the request.
    pub key: String,
    /// What it was asked.
    pub messages: Vec<Message>,
    /// What it answered.
    pub reply: Reply,
}

impl Exchange {
    /// The call that this report is about; `None` if it failed. `messages` is what is kept of what was asked.
    pub fn of(call: &CallReport<'_>, messages: Vec<Message>) -> Option<Self> {
        call.error.is_none().then(|| Self {
            asked: Asked::of(call),
            key: call.request.key(),
            messages,
            reply: call.reply.clone(),
        })
    }
}

/// Replies by model and request. The same request made again gets the next reply to it; the journal gives each reply
/// once.
#[derive(Debug, Default)]
pub struct Journal(Mutex<HashMap<(ModelId, String), VecDeque<Reply>>>);

impl Journal {
    /// The replies of these calls, which are in the order in which they ended.
    pub fn new(calls: impl IntoIterator<Item = Exchange>) -> Self {
        let mut replies: HashMap<_, VecDeque<Reply>> = HashMap::new();
        for call in calls {
            let key = (call.asked.model, call.key);
            replies.entry(key).or_default().push_back(call.reply);
        }
        Self(Mutex::new(replies))
    }

    /// The model, which is asked only what is not recorded here.
    pub fn before(self: &Arc<Self>, model: Arc<dyn ChatModel>) -> Arc<dyn ChatModel> {
        Arc::new(Recorded {
            model,
            journal: Arc::clone(self),
        })
    }

    /// Whether there is a reply of this model to this request.
    pub fn holds(&self, model: &ModelId, request: &ChatRequest) -> bool {
        let replies = self.0.lock();
        let found = replies.get(&(model.clone(), request.key()));
        found.is_some_and(|replies| !replies.is_empty())
    }

    /// The next reply of this model to this request.
    pub fn take(&self, model: &ModelId, request: &ChatRequest) -> Option<Reply> {
        let mut replies = self.0.lock();
        replies
            .get_mut(&(model.clone(), request.key()))?
            .pop_front()
    }
}

/// A model with the replies that it gave before.
struct Recorded {
    model: Arc<dyn ChatModel>,
    journal: Arc<Journal>,
}

#[async_trait::async_trait]
impl ChatModel for Recorded {
    fn id(&self) -> &ModelId {
        self.model.id()
    }

    fn address(&self) -> Option<String> {
        self.model.address()
    }

    fn journal(&self) -> Option<&Journal> {
        Some(&self.journal)
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        self.model.chat(request)
    }

    fn structured_output(&self) -> Option<StructuredOutput> {
        self.model.structured_output()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        self.model.info().await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;

    use super::*;
    use crate::{CallEvent, EndReason, ResponseSchema, ScriptedModel, call_until};

    fn request(text: &str) -> ChatRequest {
        ChatRequest::new(Purpose::Write, vec![Message::new(Role::User, text)])
    }

    fn exchange(request: &ChatRequest, text: &str, end: EndReason) -> Exchange {
        let model = ModelId {
            provider: "scripted".to_owned(),
            model: "s.toml".to_owned(),
        };
        Exchange {
            asked: Asked {
                model,
                purpose: request.purpose,
                sampling: request.sampling.clone(),
                think: request.think,
                schema: None,
            },
            key: request.key(),
            messages: request.messages.clone(),
            reply: Reply {
                text: text.to_owned(),
                end: Some(end),
                attempts: 2,
                ..Reply::default()
            },
        }
    }

    #[test]
    fn the_key_is_of_all_that_the_answer_depends_on() {
        let plain = request("a");
        assert_eq!(plain.key(), request("a").key());
        assert_eq!(plain.key().len(), 64);
        let changed: Vec<ChatRequest> = vec![
            request("b"),
            ChatRequest {
                think: Think::Low,
                ..plain.clone()
            },
            ChatRequest {
                top_logprobs: Some(1),
                ..plain.clone()
            },
            ChatRequest {
                sampling: Sampling {
                    seed: Some(1),
                    ..Sampling::default()
                },
                ..plain.clone()
            },
            ChatRequest {
                sampling: Sampling {
                    top_p: Some(0.5),
                    ..Sampling::default()
                },
                ..plain.clone()
            },
            ChatRequest {
                sampling: Sampling {
                    temperature: Some(0.5),
                    ..Sampling::default()
                },
                ..plain.clone()
            },
            ChatRequest {
                schema: Some(Arc::new(ResponseSchema::new("x", serde_json::json!({})))),
                ..plain.clone()
            },
            ChatRequest {
                messages: vec![Message::new(Role::System, "a")],
                ..plain.clone()
            },
            ChatRequest {
                messages: vec![Message::new(Role::User, ""), Message::new(Role::User, "a")],
                ..plain.clone()
            },
        ];
        let mut keys: Vec<String> = changed.iter().map(ChatRequest::key).collect();
        keys.push(plain.key());
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), changed.len() + 1);
        let limited = ChatRequest {
            sampling: Sampling {
                max_tokens: Some(9),
                ..Sampling::default()
            },
            prediction: Some("a".to_owned()),
            ..plain.clone()
        };
        assert_eq!(limited.key(), plain.key());
    }

    #[test]
    fn the_key_is_that_of_earlier_versions() {
        let schema = serde_json::json!({"type": "object", "maximum": 1.50, "b": {"a": []}});
        let how = serde_json::json!([[0.1, null], 7, Think::Low, 2, schema]).to_string();
        let asked = ChatRequest {
            sampling: Sampling {
                temperature: Some(0.1),
                seed: Some(7),
                ..Sampling::default()
            },
            think: Think::Low,
            top_logprobs: Some(2),
            schema: Some(Arc::new(ResponseSchema::new("x", schema))),
            ..request("ä")
        };
        assert_eq!(asked.key(), source::hash_of([&*how, "user", "ä"]));
    }

    #[tokio::test]
    async fn each_reply_is_given_once_and_then_the_model_is_asked() {
        let script = "[[reply]]\ntext = 'live'\ntimes = 0";
        let model = ScriptedModel::parse(Path::new("s.toml"), script).unwrap();
        let asked = request("a");
        let journal = Arc::new(Journal::new([
            exchange(&asked, "one", EndReason::Stop),
            exchange(&asked, "two", EndReason::Length),
            exchange(&request("b"), "of b", EndReason::Stop),
        ]));
        let model = journal.before(Arc::new(model));
        let replayed = Mutex::new(Vec::new());
        let observe = |event: CallEvent<'_>| {
            if let CallEvent::End(report) = event {
                replayed.lock().push(report.replayed);
            }
        };
        let mut said = Vec::new();
        assert!(journal.holds(model.id(), &asked));
        for _ in 0..3 {
            let reply = call_until(&*model, asked.clone(), &observe, |_| false).await;
            let reply = reply.unwrap();
            said.push((reply.text, reply.end.unwrap()));
        }
        let said: Vec<(&str, EndReason)> =
            said.iter().map(|(t, e)| (t.as_str(), e.clone())).collect();
        assert_eq!(
            said,
            [
                ("one", EndReason::Stop),
                ("two", EndReason::Length),
                ("live", EndReason::Stop)
            ]
        );
        assert_eq!(*replayed.lock(), [true, true, false]);
        assert!(!journal.holds(model.id(), &asked));
        assert!(journal.holds(model.id(), &request("b")));
    }

    #[tokio::test]
    async fn who_stopped_a_reply_is_shown_it_again_and_nobody_else() {
        let model = ScriptedModel::parse(Path::new("s.toml"), "").unwrap();
        for (end, shown) in [(EndReason::Unwanted, 1), (EndReason::Stop, 0)] {
            let asked = request("a");
            let journal = Arc::new(Journal::new([exchange(&asked, "half", end.clone())]));
            let looks = Cell::new(0);
            let stop = |text: &str| {
                assert_eq!(text, "half");
                looks.set(looks.get() + 1);
                true
            };
            let model = journal.before(Arc::new(model.clone()));
            let reply = call_until(&*model, asked, &|_| {}, stop).await.unwrap();
            assert_eq!((reply.end, looks.get()), (Some(end), shown));
        }
    }

    #[test]
    fn a_reply_comes_back_from_json() {
        let reply = Reply {
            text: "a\u{0}\u{1F600}".to_owned(),
            reasoning: "r".to_owned(),
            end: Some(EndReason::Refused("no".to_owned())),
            usage: crate::types::TokenUsage::new(Some(1), Some(2), None),
            logprobs: vec![crate::TokenLogprob {
                token: "a".to_owned(),
                logprob: -0.123_456_789_012_345_67,
                top: vec![("b".to_owned(), -0.1)],
            }],
            attempts: 3,
        };
        let text = serde_json::to_string(&reply).unwrap();
        assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply);
    }
}
