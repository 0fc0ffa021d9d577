use crate::model::Message;
use crate::prompt::Prompts;
use crate::types::Version;

/// Asks for the whole text again, with the issues of its evaluation.
pub(super) fn request(prompts: &Prompts, base: &Version, note: Option<&str>) -> Vec<Message> {
    let issues = base
        .evaluation
        .as_ref()
        .map(|evaluation| evaluation.issues.as_slice())
        .unwrap_or_default();
    prompts.revise(&base.output, issues, note)
}

/// The reply is the text.
pub(super) fn apply(reply: &str) -> String {
    reply.trim().to_owned()
}
