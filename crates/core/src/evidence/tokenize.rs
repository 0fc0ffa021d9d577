//! Splits texts and questions into words for comparison. The index stems them.

use std::collections::HashSet;

/// The maximum length of a word. Longer strings are keys, hashes or data.
const LONGEST: usize = 64;

/// Words that carry no meaning in a question.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by",
    "can", "could", "do", "does", "each", "every", "for", "from", "give", "had", "has", "have",
    "how", "i", "if", "in", "into", "is", "it", "its", "make", "may", "me", "more", "most", "must",
    "my", "no", "nor", "not", "of", "on", "one", "only", "or", "other", "our", "out", "should",
    "so", "some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they",
    "this", "those", "to", "up", "us", "use", "used", "was", "we", "were", "what", "when", "where",
    "which", "who", "why", "will", "with", "would", "write", "you", "your",
];

/// Returns the words of a text in order, in lower case. An identifier (`maxItems`, `max_items`)
/// yields its parts and the whole as one word. Scripts without spaces between words yield each pair
/// of adjacent characters.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for run in text.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let dense = is_dense(first);
            let end = rest.find(|c| is_dense(c) != dense).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            if dense {
                pairs(piece, &mut found);
            } else {
                identifier(piece, &mut found);
            }
            rest = after;
        }
    }
    found
}

/// Returns the distinct words of a question in order, without stop words.
pub(super) fn terms(text: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    words(text)
        .into_iter()
        .filter(|word| !STOP_WORDS.contains(&word.as_str()) && seen.insert(word.clone()))
        .collect()
}

/// Returns whether a character belongs to a script without spaces between words.
fn is_dense(c: char) -> bool {
    // Thai and Lao, Burmese, Khmer, Kana, and Han.
    matches!(c,
        '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

fn pairs(piece: &str, found: &mut Vec<String>) {
    let characters: Vec<char> = piece.chars().collect();
    match characters.as_slice() {
        [single] => found.push(single.to_string()),
        all => found.extend(all.windows(2).map(|pair| pair.iter().collect())),
    }
}

fn identifier(piece: &str, found: &mut Vec<String>) {
    let mut parts: Vec<String> = Vec::new();
    for part in piece.split('_').filter(|part| !part.is_empty()) {
        let characters: Vec<char> = part.chars().collect();
        let mut word = String::new();
        for (at, c) in characters.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| characters[at]);
            let after = characters.get(at + 1);
            // Matches the start of `Items` in `maxItems`, and of `Server` in `HTTPServer`.
            let begins = c.is_uppercase()
                && before.is_some_and(|before| {
                    !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase())
                });
            if begins && !word.is_empty() {
                parts.push(std::mem::take(&mut word));
            }
            word.extend(c.to_lowercase());
        }
        parts.push(word);
    }
    let whole = (parts.len() > 1).then(|| parts.concat());
    found.extend(
        parts
            .into_iter()
            .chain(whole)
            .filter(|word| word.chars().count() <= LONGEST),
    );
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn identifiers_are_taken_apart() {
        let cases: [(&str, &[&str]); 8] = [
            ("Write a line.", &["write", "a", "line"]),
            ("max_items", &["max", "items", "maxitems"]),
            ("maxItems()", &["max", "items", "maxitems"]),
            ("HTTPServer2", &["http", "server2", "httpserver2"]),
            ("std::fs::read", &["std", "fs", "read"]),
            ("__init__", &["init"]),
            ("Grüße, NAÏVE", &["grüße", "naïve"]),
            ("漢字かな x字", &["漢字", "字か", "かな", "x", "字"]),
        ];
        for (text, wanted) in cases {
            assert_eq!(words(text), wanted, "{text}");
        }
    }

    #[test]
    fn a_question_is_its_telling_words_once() {
        assert_eq!(
            terms("How do I set the retry limit of the retry queue?"),
            ["set", "retry", "limit", "queue"]
        );
        assert!(terms("").is_empty());
        assert!(words(&"x".repeat(1000)).is_empty());
    }

    proptest! {
        #[test]
        fn words_are_plain(text in "\\PC*") {
            for word in words(&text) {
                prop_assert!(!word.is_empty());
                prop_assert!(!word.contains(|c: char| c.is_whitespace() || c == '"'), "{:?}", word);
            }
        }
    }
}
