use std::ops::Range;

use super::boilerplate::{self, LONGEST_REMARK};
use super::{DraftContext, echo, fence, words};

/// An unfinished line that is longer is no heading of a list of changes.
const LONGEST_HEADING: usize = 200;
/// So many paragraphs at the end may turn out to be remarks, once the reply is complete.
const REMARKS: usize = 3;

/// What of a reply that is being written is certain to be in the draft, whatever follows: all but what
/// [`clean`](super::clean) would take away, and what it may turn out to take away. That is a fence's first line,
/// the last line if it is short, and the last paragraphs if each of them is short enough to be a remark. (A row of
/// more than three remarks is not foreseen.)
///
/// The text begins as the draft will; the range is what is certain. `None` if nothing is.
pub(in crate::engine) fn settled<'a>(
    reply: &'a str,
    context: &DraftContext<'_>,
) -> Option<(&'a str, Range<usize>)> {
    let text = reply.trim();
    // What stands in a tag may be preceded by talk of its own.
    if echo::begins_with_tag(text) {
        return None;
    }
    let mut removed = Vec::new();
    let text = boilerplate::without_lead(text, context, &mut removed);
    let begin = fence::begins(text);
    let mut end = boilerplate::without_tail(text, context, &mut removed).len();
    let last = text[..end].rfind('\n').map_or(0, |at| at + 1);
    if end - last <= LONGEST_HEADING {
        end = text[..last].trim_end().len();
    }
    for _ in 0..REMARKS {
        let Some(at) = text[..end].rfind("\n\n") else {
            break;
        };
        if words(&text[at..end]).len() > LONGEST_REMARK {
            break;
        }
        end = text[..at].trim_end().len();
    }
    // A rule goes away with the talk that it sets apart.
    let last = text[..end].rfind('\n').map_or(0, |at| at + 1);
    if boilerplate::is_rule(&text[last..end]) {
        end = text[..last].trim_end().len();
    }
    // So does the end of a fence around the whole, if nothing but talk follows.
    let last = text[..end].rfind('\n').map_or(0, |at| at + 1);
    if begin > 0 && fence::is_end(&text[last..end]) {
        end = text[..last].trim_end().len();
    }
    // "Sure!" is talk if the next line, once it is complete, says what follows.
    let first = text.find('\n').unwrap_or(text.len());
    let may_be_talk = end <= first && first <= LONGEST_HEADING;
    (begin < end && !may_be_talk).then_some((text, begin..end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::Criteria;

    fn criteria() -> Criteria {
        Criteria::new("test", Vec::new())
    }

    fn draft_context(criteria: &Criteria) -> DraftContext<'_> {
        DraftContext {
            prompt: "Tell of the storm.",
            criteria,
            base: None,
            issues: &[],
        }
    }

    #[test]
    fn what_may_be_talk_is_not_settled() {
        let criteria = criteria();
        let settled =
            |reply| settled(reply, &draft_context(&criteria)).map(|(text, range)| &text[range]);
        assert_eq!(settled("The storm ca"), None);
        assert_eq!(settled("<draft>\nThe storm came.\nIt went.\nRain"), None);
        assert_eq!(settled("Sure!\nHere is the te"), None);
        assert_eq!(
            settled("Here is the text:\n\n```\nThe storm came.\nIt we"),
            Some("The storm came.")
        );
        assert_eq!(
            settled("```\nThe storm came.\n```\n*"),
            Some("The storm came.")
        );
        let long = "The storm came at night. ".repeat(20);
        let long = long.trim_end();
        let talk = format!("{long}\n\nI've revised it.\n\nLet me kn");
        assert_eq!(settled(&talk), Some(long));
        assert_eq!(settled(long), Some(long));
    }

    proptest! {
        #[test]
        fn what_is_settled_is_in_the_draft(
            parts in prop::collection::vec(prop_oneof![
                Just("Here is the revised text:\n\n"),
                Just("Sure!\n"),
                Just("```\n"),
                Just("<draft>\n"),
                Just("</draft>"),
                Just("The storm came at night, and took the roof.\n"),
                Just("Rain fell.\n\n"),
                Just("\n\n"),
                Just("---\n\n"),
                Just("# Night\n\n"),
                Just("**Key changes:**\n- the roof\n"),
                Just("Key changes:\n- the roof\n"),
                Just("\n\nI've revised the draft as you asked."),
                Just("\n\nLet me know if the revised version fits."),
            ], 0..16),
        ) {
            let reply = parts.concat();
            // A longer row of remarks is not foreseen.
            if reply.matches("revised").count() + reply.matches("---").count() >= REMARKS {
                return Ok(());
            }
            let criteria = criteria();
            let (draft, _) = super::super::clean(&reply, &draft_context(&criteria));
            for end in (0..=reply.len()).filter(|end| reply.is_char_boundary(*end)) {
                if let Some((text, range)) = settled(&reply[..end], &draft_context(&criteria)) {
                    // A fence stays where it is not around the whole.
                    let with_fence = draft.starts_with(&text[..range.end]);
                    prop_assert!(
                        with_fence || draft.starts_with(&text[range]),
                        "{:?} became {draft:?}", &reply[..end]
                    );
                }
            }
        }
    }
}
