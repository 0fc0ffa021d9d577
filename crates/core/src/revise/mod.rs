//! Revises drafts: one file per strategy. Nothing here calls a model: a [`Revision`] returns the
//! requests, and accepts the replies.

mod choose;
mod common_ends;
pub mod edits;
mod full_rewrite;
mod incremental;
mod revision;
mod scope;
mod sections;
mod targeted_edit;

pub use choose::{StrategyHistory, choose};
pub(crate) use common_ends::common_ends;
pub use revision::{Ask, Revised, Revision, Step};
