use super::NotADraft;
use crate::model::{EndReason, Reply};

/// Whether a reply is rejected for how it ended: it is empty, was cut off, or is a refusal.
pub(in crate::engine) fn check(reply: &Reply) -> Result<(), NotADraft> {
    let empty = reply.text.trim().is_empty();
    let characters = reply.text.chars().count();
    let rejection = match &reply.end {
        Some(EndReason::Refused(why)) => NotADraft::new(
            format!("the model refused: {why}"),
            "The last reply was a refusal. Write the text that the task asks for.",
        ),
        Some(EndReason::Length) if empty && !reply.reasoning.is_empty() => NotADraft::new(
            "the model used up its tokens for reasoning and wrote no text; allow more with \
             `--max-tokens`, or less reasoning with `--think`",
            "The last reply was all reasoning and no text. Write the text at once.",
        ),
        Some(EndReason::Length) => NotADraft::flaw(
            format!(
                "the text was cut off by the token limit after {characters} characters; allow more with \
                 `--max-tokens` or a larger context window"
            ),
            "The last reply was too long and was cut off. Write a shorter text and end it properly.",
        ),
        Some(EndReason::Repetition) => NotADraft::flaw(
            format!(
                "the model repeated itself without end and was stopped after {characters} characters; a \
                 larger model or a higher `--temperature` may help"
            ),
            "The last reply repeated one passage over and over. Say everything once, and end the text.",
        ),
        Some(EndReason::Unwanted) => NotADraft::flaw(
            "it was stopped before its end",
            "The last reply was stopped before its end. Write the text itself.",
        ),
        _ if empty && !reply.reasoning.is_empty() => NotADraft::new(
            "the model answered with nothing but reasoning",
            "The last reply was all reasoning and no text. Write the text itself.",
        ),
        _ if empty => NotADraft::new(
            "the model's answer is empty",
            "The last reply was empty. Write the text itself.",
        ),
        _ => return Ok(()),
    };
    Err(rejection)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(text: &str, reasoning: &str, end: EndReason) -> Reply {
        Reply {
            text: text.to_owned(),
            reasoning: reasoning.to_owned(),
            end: Some(end),
            ..Reply::default()
        }
    }

    #[test]
    fn a_finished_text_is_a_draft() {
        assert_eq!(check(&reply("Leaves fall.", "hm", EndReason::Stop)), Ok(()));
    }

    #[test]
    fn what_is_cut_off_empty_or_refused_is_not() {
        for (reply, reason) in [
            (reply("", "", EndReason::Stop), "is empty"),
            (reply(" \n", "hm", EndReason::Stop), "nothing but reasoning"),
            (
                reply("Leaves", "", EndReason::Length),
                "cut off by the token limit after 6",
            ),
            (
                reply("", "hm", EndReason::Length),
                "used up its tokens for reasoning",
            ),
            (
                reply("No.", "", EndReason::Refused("policy".to_owned())),
                "refused: policy",
            ),
        ] {
            let rejected = check(&reply).unwrap_err();
            assert!(rejected.reason.contains(reason), "{rejected:?}");
        }
    }
}
