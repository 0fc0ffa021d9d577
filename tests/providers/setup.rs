//! Helpers for making calls.

use crate::support::server::{Protocol, Server};
use reflect::model::ollama::{NumCtx, OllamaModel, OllamaOptions};
use reflect::model::openai::{OpenAiModel, OpenAiOptions, StructuredOutput};
use reflect::model::{
    ApiKey, BaseUrl, ChatEvent, ChatModel, ChatRequest, Connection, HttpClient, Message,
    ModelError, Purpose, Reply as Answer, ResponseSchema, RetryPolicy, Role, Sampling, Think,
    Timeouts, complete,
};
use reflect::types::ModelId;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Ollama, Protocol::OpenAi];

/// The settings of a test that differ from the defaults.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) protocol: Protocol,
    pub(crate) key: Option<ApiKey>,
    pub(crate) retries: RetryPolicy,
    pub(crate) timeouts: Timeouts,
    pub(crate) structured: Option<StructuredOutput>,
    pub(crate) extra_body: Value,
    pub(crate) num_ctx: NumCtx,
    pub(crate) stream: bool,
}

impl Setup {
    pub(crate) fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            key: None,
            retries: RetryPolicy {
                max_retries: 2,
                base: Duration::from_millis(1),
                cap: Duration::from_millis(40),
            },
            timeouts: Timeouts::default(),
            structured: None,
            extra_body: json!({}),
            num_ctx: NumCtx::default(),
            stream: true,
        }
    }

    pub(crate) fn connection(&self, url: &str) -> Connection {
        let base = match self.protocol {
            Protocol::Ollama => BaseUrl::ollama(url),
            Protocol::OpenAi => BaseUrl::openai(url),
        };
        let mut connection = Connection::new(base.unwrap()).with_key(self.key.clone());
        connection.retries = self.retries;
        connection.client = HttpClient::new(self.timeouts);
        connection
    }

    pub(crate) fn model(&self, url: &str) -> Box<dyn ChatModel> {
        let connection = self.connection(url);
        let id = |provider: &str| ModelId {
            provider: provider.to_owned(),
            model: "test".to_owned(),
        };
        match self.protocol {
            Protocol::Ollama => {
                let mut options = OllamaOptions::new(id("ollama"), connection);
                options.num_ctx = self.num_ctx.clone();
                options.stream = self.stream;
                Box::new(OllamaModel::new(options))
            }
            Protocol::OpenAi => {
                let mut options = OpenAiOptions::new(id("openai"), connection);
                options.structured_output = self.structured;
                options.stream = self.stream;
                options
                    .extra_body
                    .clone_from(self.extra_body.as_object().unwrap());
                Box::new(OpenAiModel::new(options).unwrap())
            }
        }
    }
}

/// The result of a call, with its events.
pub(crate) struct Outcome {
    pub(crate) reply: Answer,
    pub(crate) result: Result<(), ModelError>,
    pub(crate) events: Vec<ChatEvent>,
}

impl Outcome {
    pub(crate) fn error(self) -> ModelError {
        self.result.expect_err("the call should have failed")
    }

    pub(crate) fn ok(self) -> Answer {
        self.result.expect("the call should have succeeded");
        self.reply
    }

    pub(crate) fn notices(&self) -> Vec<&str> {
        let events = self.events.iter();
        events
            .filter_map(|event| match event {
                ChatEvent::Notice(text) => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn retries(&self) -> Vec<(&ModelError, Duration)> {
        let events = self.events.iter();
        events
            .filter_map(|event| match event {
                ChatEvent::Retry { error, wait } => Some((error, *wait)),
                _ => None,
            })
            .collect()
    }
}

pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

pub(crate) fn call(model: &dyn ChatModel, request: ChatRequest) -> Outcome {
    run(async {
        let mut events = Vec::new();
        let (reply, result) = complete(model, request, |event| events.push(event.clone())).await;
        Outcome {
            reply,
            result,
            events,
        }
    })
}

pub(crate) fn ask(setup: &Setup, server: &Server, request: ChatRequest) -> Outcome {
    call(&*setup.model(&server.url()), request)
}

pub(crate) fn writing() -> ChatRequest {
    ChatRequest::new(
        Purpose::Write,
        vec![
            Message::new(Role::System, "You write."),
            Message::new(Role::User, "Write a line."),
        ],
    )
}

pub(crate) fn judging() -> ChatRequest {
    let schema = json!({"type": "object", "properties": {"score": {"type": "number"}},
        "required": ["score"], "additionalProperties": false});
    ChatRequest {
        schema: Some(Arc::new(ResponseSchema::new("verdict", schema))),
        ..ChatRequest::new(Purpose::Judge, vec![Message::new(Role::User, "Judge it.")])
    }
}

/// A judge request with every parameter.
pub(crate) fn everything() -> ChatRequest {
    ChatRequest {
        sampling: Sampling {
            temperature: Some(0.0),
            top_p: Some(0.9),
            seed: Some(7),
            max_tokens: Some(50),
        },
        top_logprobs: Some(3),
        think: Think::Off,
        ..judging()
    }
}
