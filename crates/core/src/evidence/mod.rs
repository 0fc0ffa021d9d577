//! What a draft is checked against: what is known beforehand (a context file: messages, facts, procedures),
//! and passages of code and documents that have to do with the task, or with what is wrong with a draft.

mod context;
mod gather;
mod index;
mod passages;
mod walk;
mod words;

pub use context::{Context, DEFAULT_MESSAGES};
pub(crate) use context::{Share, Text};
pub use gather::{DEFAULT_TOKENS, Gatherer, memory};
pub use index::SearchError;
pub(crate) use index::texts_like;
pub(crate) use words::words;
