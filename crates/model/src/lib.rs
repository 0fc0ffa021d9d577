//! Language models behind one trait with a stream of events. This crate knows nothing about drafts, criteria or
//! terminals.

use reflect_base::{secrets, source, types};

mod base_url;
mod call;
mod chat;
mod error;
mod fence;
mod http;
mod journal;
mod key;
mod listing;
mod measure;
pub mod ollama;
pub mod openai;
pub mod repetition;
mod reply;
mod runaway;
mod scripted;
mod think;

pub use base_url::{BaseUrl, BaseUrlError};
pub use call::{CallEvent, CallObserver, CallReport, call, call_until, call_with};
pub use chat::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, EndReason, Message, Middleware, ModelInfo,
    Purpose, Reasoning, ResponseSchema, Role, Sampling, TokenLogprob,
};
pub use error::{ErrorClass, ModelError};
pub use fence::fence_marker;
pub use fence::{first_block, inside_fence};
pub use http::{Connection, HeaderError, HttpClient, Pool, RetryPolicy, Timeouts};
pub use http::{tls_config, trust_certificates};
pub use journal::{Asked, Exchange, Replies};
pub use key::{ApiKey, KeyError};
pub use listing::{ListedModel, nearest};
pub use measure::{
    JsonAnswer, JsonProbe, PromptPrefix, SpeedProbe, cost, measure_json, measure_speed,
};
pub use reply::{Reply, complete};
pub use scripted::{ScriptError, ScriptedModel};

pub use crate::types::Think;
