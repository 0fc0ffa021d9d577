//! Reports on runs: text, Markdown, JSON and the formats of CI from the record, HTML from the events.

mod assessment;
mod bench;
mod critique;
mod diff;
mod findings;
mod github;
mod html;
mod json;
mod junit;
mod markdown;
mod place;
mod sarif;
mod text;
mod verdict;

#[cfg(test)]
mod ci_tests;

pub use assessment::{
    AssessmentReport, assessment_brief, assessment_json, assessment_markdown, assessment_text,
};
pub use bench::{bench_json, bench_markdown, bench_text, judging_text};
pub use critique::{cost, critique_markdown, critique_text, critiques_json};
pub use diff::{Block, Change, Diff, Hunk, Piece, diff};
pub use github::github;
pub use html::{Said, Talk, bench_html, html, html_with_talks};
pub use json::json;
pub use junit::junit;
pub use markdown::markdown;
pub use sarif::sarif;
pub use text::{
    critique, duration, evaluation_line, revised, score, summary, thousands, tokens, worst_issues,
};
pub use verdict::{verdict_markdown, verdict_text, verdicts_json};
