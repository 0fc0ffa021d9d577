//! Making a better draft of an earlier one: one file per strategy. Nothing here asks a model: a [`Revision`] says what
//! is to be asked, and takes the replies.

mod choose;
pub mod edits;
mod ends;
mod full_rewrite;
mod incremental;
mod revision;
mod scope;
mod sections;
mod targeted_edit;

pub use choose::{History, choose};
pub(crate) use ends::common_ends;
pub use revision::{Ask, Revised, Revision, Step};
