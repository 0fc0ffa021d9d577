use super::{Occasion, Removed};

/// Takes away one code fence around everything, unless a fence is wanted: the task or a criterion speaks of one, or
/// the version that was revised has one around everything, too.
pub(super) fn unwrap<'a>(
    text: &'a str,
    occasion: &Occasion<'_>,
    removed: &mut Vec<Removed>,
) -> &'a str {
    let Some(inner) = inside(text) else {
        return text;
    };
    if is_wanted(occasion) || inner.trim().is_empty() {
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
        Some((first, _)) if marker(first).is_some() => first.len() + 1,
        _ => 0,
    }
}

/// Whether a line may close a fence: it has the marks of one and nothing else.
pub(super) fn is_end(line: &str) -> bool {
    let line = line.trim();
    line.len() >= 3 && (line.bytes().all(|b| b == b'`') || line.bytes().all(|b| b == b'~'))
}

fn is_wanted(occasion: &Occasion<'_>) -> bool {
    const WORDS: &[&str] = &["```", "~~~", "fence", "code block", "codeblock", "backtick"];
    let speaks = |text: &str| {
        let text = text.to_lowercase();
        WORDS.iter().any(|word| text.contains(word))
    };
    speaks(occasion.prompt)
        || occasion.criteria.criteria.iter().any(|criterion| {
            speaks(&criterion.description)
                || criterion
                    .evaluator
                    .describe()
                    .is_some_and(|rule| speaks(&rule))
        })
        || occasion
            .base
            .is_some_and(|base| inside(base.trim()).is_some())
}

/// What is inside a fence that begins with the first line and ends with the last; `None` if there is no such fence.
/// A fence in a fence is recognized by its info string; where one without closes the outer fence before the
/// end, the text begins and ends with a fence each, and has none around everything.
fn inside(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    let (mark, _) = marker(first)?;
    let mut open = vec![mark];
    let mut at = first.len() + 1;
    for line in rest.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        let Some((mark, info)) = marker(line.trim_end()) else {
            continue;
        };
        let (outer, length) = open.last().copied()?;
        if mark.0 != outer || (info.is_empty() && mark.1 < length) {
            continue;
        }
        if !info.is_empty() {
            open.push(mark);
            continue;
        }
        open.pop();
        if open.is_empty() {
            let inner = text[first.len() + 1..begin].trim_end_matches(['\n', '\r']);
            return text[at..].trim().is_empty().then_some(inner);
        }
    }
    None
}

/// The character and length of the fence that a line is, and its info string.
fn marker(line: &str) -> Option<((char, usize), &str)> {
    let character = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = line.trim_start_matches(character);
    let length = line.len() - info.len();
    // Back quotes in the same line: code within a line of text.
    (length >= 3 && !info.contains('`')).then_some(((character, length), info.trim()))
}
