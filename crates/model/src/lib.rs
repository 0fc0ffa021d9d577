//! Language models behind one trait and one stream of events. This room knows nothing of drafts,
//! criteria or terminals.

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
pub use call::{CallEvent, CallObserver, CallReport, call, call_until};
pub use chat::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, EndReason, Message, ModelInfo, Purpose,
    Reasoning, ResponseSchema, Role, Sampling, TokenLogprob,
};
pub use error::{ErrorClass, ModelError};
pub use fence::fence_marker;
pub use fence::{first_block, inside_fence};
pub use http::tls_config;
pub use http::{Connection, HeaderError, HttpClient, Pool, RetryPolicy, Timeouts};
pub use journal::{Asked, Exchange, Journal};
pub use key::{ApiKey, KeyError};
pub use listing::{ListedModel, nearest};
pub use measure::{Beginning, InJson, JsonAnswer, Writing, cost, measure_json, measure_writing};
pub use reply::{Reply, complete};
pub use scripted::{ScriptError, ScriptedModel};

pub use crate::types::Think;
