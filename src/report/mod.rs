//! What people and programs read of a run: text, Markdown, JSON, from its record.

mod assessment;
mod critique;
mod json;
mod markdown;
mod text;
mod verdict;

pub use assessment::{AssessmentReport, assessment_json, assessment_markdown, assessment_text};
pub use critique::{cost, critique_markdown, critique_text, critiques_json};
pub use json::json;
pub use markdown::markdown;
pub use text::{critique, duration, evaluation_line, revised, score, summary, thousands, tokens};
pub use verdict::{verdict_markdown, verdict_text, verdicts_json};
