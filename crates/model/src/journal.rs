//! Recorded calls: a resumed run reuses their replies instead of calling the models again.

use serde::{Deserialize, Serialize};
use std::collections::{HashMap, VecDeque};

use super::call::CallReport;
use super::chat::{ChatRequest, Message, Purpose, ResponseSchema, Role, Sampling};
use super::reply::Reply;
use crate::source;
use crate::types::{ModelId, Think};

impl ChatRequest {
    /// A hash of everything in the request that the reply depends on: messages, sampling, reasoning, schema.
    ///
    /// The token limit is left out, because a reply that ended before it is the same under any limit. So is the
    /// prediction, which only makes the reply faster.
    pub fn key(&self) -> String {
        let sampling = &self.sampling;
        let options = serde_json::to_string(&(
            [sampling.temperature, sampling.top_p],
            sampling.seed,
            self.think,
            self.top_logprobs,
            self.schema.as_deref().map(ResponseSchema::text),
        ));
        let options = options.expect("numbers, names and JSON can be written as JSON");
        let messages = self.messages.iter();
        let messages = messages.flat_map(|message| [message.role.as_str(), &message.content]);
        source::hash_of(std::iter::once(&*options).chain(messages))
    }
}

impl Role {
    /// Its name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// The parameters of a request, without its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// The model that was called.
    pub model: ModelId,
    /// What the call was for.
    pub purpose: Purpose,
    /// How tokens were chosen.
    #[serde(flatten)]
    pub sampling: Sampling,
    /// How much the model should reason.
    pub think: Think,
    /// The name of the JSON Schema of the reply, if there was one.
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

/// A call with its reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Exchange {
    /// The parameters of the request.
    pub asked: Asked,
    /// [`ChatRequest::key`] of the request.
    pub key: String,
    /// The messages of the request; empty where they are not needed.
    pub messages: Vec<Message>,
    /// The reply.
    pub reply: Reply,
}

impl Exchange {
    /// The call of this report, with these messages; `None` if it failed.
    pub fn of(call: &CallReport<'_>, messages: Vec<Message>) -> Option<Self> {
        call.error.is_none().then(|| Self {
            asked: Asked::of(call),
            key: call.request.key(),
            messages,
            reply: call.reply.clone(),
        })
    }
}

/// Recorded replies by model and request. Each is taken once: the same request made again gets the next reply to it.
#[derive(Debug, Default)]
pub struct Replies(HashMap<(ModelId, String), VecDeque<Reply>>);

impl Replies {
    /// The replies of these calls, which are in the order in which they ended.
    pub fn new(calls: impl IntoIterator<Item = Exchange>) -> Self {
        let mut replies: HashMap<_, VecDeque<Reply>> = HashMap::new();
        for call in calls {
            let key = (call.asked.model, call.key);
            replies.entry(key).or_default().push_back(call.reply);
        }
        Self(replies)
    }

    /// Whether there is a reply of this model to this request.
    pub fn holds(&self, model: &ModelId, request: &ChatRequest) -> bool {
        let found = self.key_of(model, request).and_then(|key| self.0.get(&key));
        found.is_some_and(|replies| !replies.is_empty())
    }

    /// Takes the next reply of this model to this request.
    pub fn take(&mut self, model: &ModelId, request: &ChatRequest) -> Option<Reply> {
        let key = self.key_of(model, request)?;
        self.0.get_mut(&key)?.pop_front()
    }

    /// The key of a request; `None` if nothing is recorded, so that new runs hash no requests.
    fn key_of(&self, model: &ModelId, request: &ChatRequest) -> Option<(ModelId, String)> {
        (!self.0.is_empty()).then(|| (model.clone(), request.key()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::Path;
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;
    use crate::{CallEvent, CallObserver, ChatModel, EndReason, ScriptedModel, call_until};

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

    /// An observer of a resumed run.
    struct Resumed {
        replies: Mutex<Replies>,
        /// Of each call, whether its reply was recorded.
        replayed: Mutex<Vec<bool>>,
    }

    impl Resumed {
        fn after(calls: impl IntoIterator<Item = Exchange>) -> Self {
            Self {
                replies: Mutex::new(Replies::new(calls)),
                replayed: Mutex::default(),
            }
        }
    }

    impl CallObserver for Resumed {
        fn on_event(&self, event: CallEvent<'_>) {
            if let CallEvent::End(report) = event {
                self.replayed.lock().push(report.replayed);
            }
        }

        fn take_recorded(&self, model: &ModelId, request: &ChatRequest) -> Option<Reply> {
            self.replies.lock().take(model, request)
        }

        fn is_recorded(&self, model: &ModelId, request: &ChatRequest) -> bool {
            self.replies.lock().holds(model, request)
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
        let options = serde_json::json!([[0.1, null], 7, Think::Low, 2, schema]).to_string();
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
        assert_eq!(asked.key(), source::hash_of([&*options, "user", "ä"]));
    }

    #[tokio::test]
    async fn each_reply_is_given_once_and_then_the_model_is_asked() {
        let script = "[[reply]]\ntext = 'live'\ntimes = 0";
        let model = ScriptedModel::parse(Path::new("s.toml"), script).unwrap();
        let asked = request("a");
        let resumed = Resumed::after([
            exchange(&asked, "one", EndReason::Stop),
            exchange(&asked, "two", EndReason::Length),
            exchange(&request("b"), "of b", EndReason::Stop),
        ]);
        let mut said = Vec::new();
        assert!(resumed.is_recorded(model.id(), &asked));
        for _ in 0..3 {
            let reply = call_until(&model, asked.clone(), &resumed, |_| false).await;
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
        assert_eq!(*resumed.replayed.lock(), [true, true, false]);
        assert!(!resumed.is_recorded(model.id(), &asked));
        assert!(resumed.is_recorded(model.id(), &request("b")));
    }

    #[tokio::test]
    async fn who_stopped_a_reply_is_shown_it_again_and_nobody_else() {
        let model = ScriptedModel::parse(Path::new("s.toml"), "").unwrap();
        for (end, shown) in [(EndReason::Unwanted, 1), (EndReason::Stop, 0)] {
            let asked = request("a");
            let resumed = Resumed::after([exchange(&asked, "half", end.clone())]);
            let looks = Cell::new(0);
            let stop = |text: &str| {
                assert_eq!(text, "half");
                looks.set(looks.get() + 1);
                true
            };
            let reply = call_until(&model, asked, &resumed, stop).await.unwrap();
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
