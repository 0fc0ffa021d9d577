//! The prompt that requests better wording for insights.

use minijinja::context;

use super::block::block;
use super::render;
use crate::model::{Message, Role};

/// Requests better wording for these insights, which are numbered from 1. The reply is a JSON
/// object, `{"insights": [{"number": 1, "text": "..."}]}`.
pub fn word_insights(insights: &[&str]) -> Vec<Message> {
    let lines: Vec<String> = (1..)
        .zip(insights)
        .map(|(number, text): (usize, _)| format!("{number}. {}", text.replace('\n', " ")))
        .collect();
    let notes = block(&lines.join("\n"), "notes", None);
    vec![Message::new(
        Role::User,
        render("insights.j2", context! { notes }).trim_end(),
    )]
}
