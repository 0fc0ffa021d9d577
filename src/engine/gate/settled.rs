use std::ops::Range;

use super::talk::{self, LONGEST_REMARK};
use super::{Occasion, echo, fence, words};

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
    occasion: &Occasion<'_>,
) -> Option<(&'a str, Range<usize>)> {
    let text = reply.trim();
    // What stands in a tag may be preceded by talk of its own.
    if echo::begins_with_tag(text) {
        return None;
    }
    let mut removed = Vec::new();
    let text = talk::without_lead(text, occasion, &mut removed);
    let begin = fence::begins(text);
    let mut end = talk::without_tail(text, occasion, &mut removed).len();
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
    (begin < end).then_some((text, begin..end))
}
