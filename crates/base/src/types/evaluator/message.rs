use std::sync::LazyLock;

use ::regex::Regex;

/// A piece of a message about a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Said as it stands.
    Text(&'a str),
    /// A name in braces, for which a part of the match is said.
    Value(&'a str),
}

/// A name in braces, or the same in two pairs of them, which stands for itself in one.
static NAMES: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{(\w+)\}\}|\{(\w+)\}").expect("a test takes messages apart with it")
});

/// Takes a message apart. `{name}` is a value and `{{name}}` the text `{name}`; braces around anything else
/// are text.
pub(super) fn pieces(message: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut done = 0;
    for found in NAMES.captures_iter(message) {
        let whole = found.get_match();
        // Of two pairs of braces the inner one is kept.
        let (end, piece) = match (found.get(1), found.get(2)) {
            (None, Some(name)) => (whole.start(), Piece::Value(name.as_str())),
            _ => (
                whole.start(),
                Piece::Text(&message[whole.start() + 1..whole.end() - 1]),
            ),
        };
        if end > done {
            pieces.push(Piece::Text(&message[done..end]));
        }
        pieces.push(piece);
        done = whole.end();
    }
    if done < message.len() {
        pieces.push(Piece::Text(&message[done..]));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_in_braces_are_values_and_other_braces_are_text() {
        use Piece::{Text, Value};
        let cases: [(&str, &[Piece<'_>]); 5] = [
            ("", &[]),
            ("plain", &[Text("plain")]),
            (
                "a {match} b{1}",
                &[Text("a "), Value("match"), Text(" b"), Value("1")],
            ),
            ("{{x}} {y", &[Text("{x}"), Text(" {y")]),
            ("{\"a\": {}} { x }", &[Text("{\"a\": {}} { x }")]),
        ];
        for (message, expected) in cases {
            assert_eq!(pieces(message), expected, "{message}");
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_message_is_lost(message in "[{}a1 é]{0,20}") {
            let said: String = pieces(&message)
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) => text.to_owned(),
                    Piece::Value(name) => format!("{{{name}}}"),
                })
                .collect();
            let plain = NAMES.replace_all(&message, "{$1$2}");
            prop_assert_eq!(said, plain);
        }
    }
}
