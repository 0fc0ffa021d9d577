//! Search/replace blocks: read from a model's reply, found in the draft, applied to it. All of it is pure.
//!
//! ```text
//! <<<<<<< SEARCH
//! lines of the draft
//! =======
//! what takes their place
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

pub use apply::{Applied, Failed, apply};
pub use locate::{Grade, Haystack, Miss};
pub use parse::{Block, Reading, has_blocks, parse, write};
