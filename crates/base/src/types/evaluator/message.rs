use std::sync::LazyLock;

use ::regex::Regex;

/// A piece of a message template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// The name of a placeholder for part of the match.
    Value(&'a str),
}

/// Matches `{name}` and the escaped form `{{name}}`.
static NAMES: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\{\{(\w+)\}\}|\{(\w+)\}").expect("a test covers the pattern"));

/// Splits a message template. `{name}` is a placeholder and `{{name}}` is the literal text `{name}`. Braces around
/// anything else are literal.
pub(super) fn pieces(message: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut done = 0;
    for found in NAMES.captures_iter(message) {
        let whole = found.get_match();
        // An escaped placeholder keeps its inner braces.
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
    fn names_in_braces_are_placeholders_and_other_braces_are_literal() {
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
        fn splitting_a_message_loses_nothing(message in "[{}a1 é]{0,20}") {
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
