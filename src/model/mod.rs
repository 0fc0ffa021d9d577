//! Language models behind one trait and one stream of events. This room knows nothing of drafts,
//! criteria or terminals.

mod call;
mod chat;
mod error;
mod reply;

pub use call::{CallEvent, CallObserver, CallReport, call};
pub use chat::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, EndReason, Message, ModelInfo, Purpose,
    ResponseSchema, Role, Sampling, Think, TokenLogprob,
};
pub use error::{ErrorClass, ModelError};
pub use reply::{Reply, complete};
