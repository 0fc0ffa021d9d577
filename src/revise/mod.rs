//! Making a better draft of an earlier one: one file per strategy.

mod full_rewrite;

use crate::model::Message;
use crate::prompt::Prompts;
use crate::types::{Strategy, Version};

/// Asks for a revision of a version by a strategy. `note` is added at the end of the prompt.
pub fn request(
    strategy: Strategy,
    prompts: &Prompts,
    base: &Version,
    note: Option<&str>,
) -> Vec<Message> {
    match strategy {
        Strategy::FullRewrite => full_rewrite::request(prompts, base, note),
    }
}

/// The revised draft that a reply stands for.
pub fn apply(strategy: Strategy, reply: &str) -> String {
    match strategy {
        Strategy::FullRewrite => full_rewrite::apply(reply),
    }
}
