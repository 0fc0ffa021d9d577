/// Returns whether a line stands for omitted lines: `...`, alone or in a comment, or "rest
/// unchanged" in a comment.
pub(super) fn is_elision(line: &str) -> bool {
    const WORDS: [&str; 9] = [
        "rest",
        "unchanged",
        "same",
        "existing",
        "remain",
        "omitted",
        "as before",
        "other",
        "unverändert",
    ];
    let line = line.trim();
    if line.is_empty() || line.len() > 120 {
        return false;
    }
    let mut inner = line;
    for mark in ["<!--", "/*", "//", "--", "#", ";", "%", "[", "(", "*"] {
        if let Some(rest) = inner.strip_prefix(mark) {
            inner = rest;
            break;
        }
    }
    for mark in ["-->", "*/", "]", ")", "*"] {
        if let Some(rest) = inner.strip_suffix(mark) {
            inner = rest;
            break;
        }
    }
    let marked = inner.len() < line.len();
    let inner = inner.trim();
    let dots = |c: char| matches!(c, '.' | '…');
    if inner.chars().all(dots) {
        return inner.contains('…') || inner.len() >= 3;
    }
    let (begins, ends) = (
        inner.starts_with("...") || inner.starts_with('…'),
        inner.ends_with("...") || inner.ends_with('…'),
    );
    let lower = inner.to_lowercase();
    let names = WORDS.iter().any(|word| lower.contains(word));
    names && ((begins && ends) || (marked && (begins || ends)))
}

/// Splits a passage at its omissions. Returns one piece if nothing is omitted.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let mut pieces = vec![Vec::new()];
    for line in text.split('\n') {
        if is_elision(line) {
            pieces.push(Vec::new());
        } else if let Some(last) = pieces.last_mut() {
            last.push(line);
        }
    }
    pieces.into_iter().map(|lines| lines.join("\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elided_lines_are_known() {
        for line in [
            "...",
            "…",
            "  ...",
            "# ...",
            "// ...",
            "-- ...",
            "<!-- ... -->",
            "/* ... */",
            "[...]",
            "(…)",
            "# ... rest of the function unchanged ...",
            "// ... existing code ...",
            "... (rest unchanged) ...",
        ] {
            assert!(is_elision(line), "{line}");
        }
        for line in [
            "",
            "..",
            "a ...",
            "...and so on",
            "# rest of the day",
            "...",
            "Wait…",
        ]
        .iter()
        .filter(|l| **l != "...")
        {
            assert!(!is_elision(line), "{line}");
        }
        assert_eq!(pieces("a\n...\nb\nc"), ["a", "b\nc"]);
    }
}
