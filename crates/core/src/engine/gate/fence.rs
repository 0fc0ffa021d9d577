use super::{DraftContext, Removed};
use crate::model::{fence_marker, inside_fence};

/// Removes one code fence around everything, unless a fence is requested: the task or a criterion speaks of one,
/// or the revised version has one around everything, too.
pub(super) fn unwrap<'a>(
    text: &'a str,
    context: &DraftContext<'_>,
    removed: &mut Vec<Removed>,
) -> &'a str {
    let Some(inner) = inside_fence(text) else {
        return text;
    };
    if is_wanted(context) || inner.trim().is_empty() {
        return text;
    }
    let first = text.lines().next().unwrap_or_default();
    removed.push(Removed {
        what: "a code fence around the whole",
        text: first.to_owned(),
    });
    inner
}

/// Where the text begins that may turn out to stand in a fence: after a first line that opens one.
pub(super) fn begins(text: &str) -> usize {
    match text.split_once('\n') {
        Some((first, _)) if fence_marker(first).is_some() => first.len() + 1,
        _ => 0,
    }
}

/// Whether a line may close a fence: it has the marks of one and nothing else.
pub(super) fn is_end(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && (line.bytes().all(|b| b == b'`') || line.bytes().all(|b| b == b'~'))
}

fn is_wanted(context: &DraftContext<'_>) -> bool {
    asks_for_one(context.prompt)
        || context.criteria.criteria.iter().any(|criterion| {
            asks_for_one(&criterion.description)
                || criterion
                    .evaluator
                    .describe()
                    .is_some_and(|rule| asks_for_one(&rule))
        })
        || context
            .base
            .is_some_and(|base| inside_fence(base.trim()).is_some())
}

/// Whether a sentence speaks of a fence without ruling it out.
fn asks_for_one(text: &str) -> bool {
    const WORDS: &[&str] = &["```", "~~~", "fence", "code block", "codeblock", "backtick"];
    const RULES_OUT: &[&str] = &[
        "no", "not", "none", "nothing", "never", "without", "neither", "nor", "avoid", "omit",
        "remove", "strip", "don't", "doesn't", "mustn't",
    ];
    /// Where, after something that is ruled out, the next demand begins.
    const NEXT: &[&str] = &[
        ", in ",
        ", inside ",
        ", within ",
        ", use ",
        " but ",
        ", and ",
    ];
    let mut text = text.to_lowercase().replace('’', "'");
    for next in NEXT {
        text = text.replace(next, "\n");
    }
    text.split(['\n', ';', '!', '?'])
        .flat_map(|line| line.split(". "))
        .any(|sentence| {
            let Some(at) = WORDS.iter().filter_map(|word| sentence.find(word)).min() else {
                return false;
            };
            !sentence[..at]
                .split(|c: char| !c.is_alphanumeric() && c != '\'')
                .any(|word| RULES_OUT.contains(&word))
        })
}
