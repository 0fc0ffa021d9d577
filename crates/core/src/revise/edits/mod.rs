//! Search/replace blocks: parsed from a model's reply, located in the draft, and applied to it.
//! Everything here is pure.
//!
//! ```text
//! <<<<<<< SEARCH
//! lines of the draft
//! =======
//! replacement lines
//! >>>>>>> REPLACE
//! ```

mod apply;
mod diff;
mod elide;
mod fold;
mod indent;
mod locate;
mod parse;

#[cfg(test)]
mod cases;

pub use apply::{ApplyResult, FailedBlock, apply};
pub use locate::{Haystack, MatchError, MatchGrade};
pub use parse::{Block, Reading, has_blocks, parse, write};
