//! What people and programs read of a run: text, Markdown, JSON, from its record; HTML from its events.

mod critique;
mod diff;
mod html;
mod json;
mod markdown;
mod text;
mod verdict;

pub use critique::{cost, critique_markdown, critique_text, critiques_json};
pub use diff::{Block, Change, Diff, Hunk, Piece, diff};
pub use html::html;
pub use json::json;
pub use markdown::markdown;
pub use text::{critique, duration, evaluation_line, revised, score, summary, thousands, tokens};
pub use verdict::{verdict_markdown, verdict_text, verdicts_json};
