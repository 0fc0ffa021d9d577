//! Evidence for drafts: given context (a context file with messages, facts and procedures), and
//! passages of code and documents that are related to the task or to the issues of a draft.

mod context;
mod gather;
mod index;
mod passages;
mod tokenize;
mod walk;

pub use context::{Context, DEFAULT_MESSAGES};
pub(crate) use context::{NonEmptyText, Share};
pub use gather::{DEFAULT_TOKENS, Gatherer, memory};
pub use index::SearchError;
pub(crate) use index::texts_like;
pub(crate) use tokenize::words;
