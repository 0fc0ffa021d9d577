//! Language models behind one trait and one stream of events. This room knows nothing of drafts,
//! criteria or terminals.

mod chat;
#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
mod reply;

pub use chat::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, EndReason, Message, ModelInfo, Purpose,
    ResponseSchema, Role, Sampling, Think, TokenLogprob,
};
pub use error::{ErrorClass, ModelError};
pub use reply::{Reply, complete};
