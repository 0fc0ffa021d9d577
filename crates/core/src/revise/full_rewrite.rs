//! The strategy `full_rewrite`: the model writes the whole text again.

use super::common_ends::common_ends;
use super::edits::{apply, has_blocks, parse};

/// Returns the text of the reply. If it contains edits instead, returns the draft with these edits.
pub(super) fn text(reply: &str, draft: &str) -> String {
    if has_blocks(reply) && !has_blocks(draft) {
        let applied = apply(draft, &parse(reply));
        if applied.failed.is_empty() {
            return applied.text;
        }
    }
    reply.trim().to_owned()
}

/// Returns whether a reply that should contain edits is the whole text instead: most of its lines
/// or words are the draft's, and its length is similar.
pub(super) fn is_rewrite(reply: &str, draft: &str) -> bool {
    let (reply, draft) = (reply.to_lowercase(), draft.to_lowercase());
    let mut new: Vec<&str> = reply.split_whitespace().collect();
    let mut old: Vec<&str> = draft.split_whitespace().collect();
    if old.is_empty() || new.len() * 2 < old.len() || new.len() > old.len() * 2 + 40 {
        return false;
    }
    let whole = old.len();
    let (begin, end) = common_ends(&new, &old);
    let own = |words: &mut Vec<&str>| {
        words.truncate(words.len() - end);
        words.drain(..begin);
        words.sort_unstable();
    };
    own(&mut new);
    own(&mut old);
    let (mut shared, mut a, mut b) = (begin + end, 0, 0);
    while let (Some(one), Some(other)) = (new.get(a), old.get(b)) {
        match one.cmp(other) {
            std::cmp::Ordering::Less => a += 1,
            std::cmp::Ordering::Greater => b += 1,
            std::cmp::Ordering::Equal => {
                shared += 1;
                a += 1;
                b += 1;
            }
        }
    }
    shared * 10 >= whole * 6
}

#[cfg(test)]
mod tests {
    use super::{is_rewrite, text};

    #[test]
    fn edits_instead_of_the_text_are_applied() {
        let draft = "One cat.\n\nTwo dogs.\n";
        let edit = "<<<<<<< SEARCH\nTwo dogs.\n=======\nThree dogs.\n>>>>>>> REPLACE";
        assert_eq!(text(edit, draft), "One cat.\n\nThree dogs.\n");
        assert_eq!(text(" Anew. \n", draft), "Anew.");
    }

    #[test]
    fn a_whole_text_is_told_from_talk_about_it() {
        let draft =
            "The cat sat on the mat. It was a warm day, and nothing else happened there at all.";
        assert!(is_rewrite(
            "The cat sat on the mat. It was a cold day, and nothing else happened there.",
            draft
        ));
        assert!(!is_rewrite(
            "I changed warm to cold, as the feedback asks.",
            draft
        ));
        assert!(!is_rewrite("", draft));
        assert!(!is_rewrite("a b", ""));
    }
}
