//! What people and programs read of a run: text, Markdown, JSON, from its record.

mod json;
mod markdown;
mod text;

pub use json::json;
pub use markdown::markdown;
pub use text::{critique, duration, evaluation_line, score, summary, thousands, tokens};
