//! The expected score: the mean of all steps that a judge might have written, weighted by their
//! probabilities. It distinguishes drafts between two steps even if the judge always writes the
//! same step.

use crate::model::TokenLogprob;
use crate::prompt::SCALE;

/// The number of alternatives per token to request. Covers all steps in their usual forms.
pub(super) const ALTERNATIVES: u8 = 10;

/// The minimum total probability of all steps. Below it, the model was about to write something
/// else, and the rest is not reliable.
const LEAST_MASS: f64 = 0.5;

/// Returns the expected score of a criterion, 0 to 1. `None` if its step is not found among the
/// tokens, or the steps have too little probability. `only` means that the reply is about this
/// criterion alone and need not name it.
pub(super) fn expected(tokens: &[TokenLogprob], name: &str, only: bool) -> Option<f64> {
    let text: String = tokens.iter().map(|token| token.token.as_str()).collect();
    let at = place_of_step(&text, name, only)?;
    let mut begin = 0;
    let token = tokens.iter().find(|token| {
        let end = begin + token.token.len();
        let found = (begin..end).contains(&at);
        if !found {
            begin = end;
        }
        found
    })?;
    // The part of the token before the step, such as a space or a colon.
    let before = &token.token[..at - begin];
    let mut mass = 0.0;
    let mut sum = 0.0;
    let own = [(token.token.clone(), token.logprob)];
    let alternatives = if token.top.is_empty() {
        &own[..]
    } else {
        &token.top
    };
    for (alternative, logprob) in alternatives {
        if let Some(score) = step(alternative.strip_prefix(before).unwrap_or(alternative)) {
            let probability = logprob.exp();
            mass += probability;
            sum += probability * score;
        }
    }
    (mass.is_finite() && mass >= LEAST_MASS).then(|| sum / mass)
}

/// Returns the score of the step that a token begins with.
fn step(token: &str) -> Option<f64> {
    let mut chars = token.trim_start().chars();
    let step = chars.next()?.to_digit(10)?;
    if chars.next().is_some_and(|c| c.is_ascii_digit() || c == '.') {
        return None;
    }
    SCALE
        .iter()
        .find(|anchor| u32::from(anchor.step) == step)
        .map(|anchor| anchor.score)
}

/// Returns the offset of the digit of a criterion's step in the judge's JSON.
fn place_of_step(text: &str, name: &str, only: bool) -> Option<usize> {
    let key = serde_json::to_string(name).ok()?;
    // Search backwards, because the last verdict counts.
    let from = keys(text, &key).last();
    let at = match from {
        Some(from) => {
            let rest = &text[from..];
            match bare_step(rest) {
                Some(step) => from + step,
                None => {
                    from + keys(rest, "\"score\"")
                        .next()
                        .and_then(|at| bare_step(&rest[at..]).map(|step| at + step))?
                }
            }
        }
        None if only => {
            let from = keys(text, "\"score\"").last()?;
            from + bare_step(&text[from..])?
        }
        None => return None,
    };
    // 4.5 is not a step.
    let next = text[at + 1..].chars().next();
    (!next.is_some_and(|c| c == '.' || c.is_ascii_digit())).then_some(at)
}

/// Returns the end offset of every occurrence of a key: followed by a colon and outside of strings,
/// where its quotes would be escaped.
fn keys<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(key)
        .filter(|(at, _)| !text[..*at].ends_with('\\'))
        .map(|(at, key)| at + key.len())
        .filter(|end| text[*end..].trim_start().starts_with(':'))
}

/// Returns the offset of the digit in `: 4` or `: "4"`.
fn bare_step(rest: &str) -> Option<usize> {
    let value = rest.trim_start().strip_prefix(':')?.trim_start();
    let value = value.strip_prefix('"').unwrap_or(value);
    value
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| rest.len() - value.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(text: &str, top: &[(&str, f64)]) -> TokenLogprob {
        TokenLogprob {
            token: text.to_owned(),
            logprob: top.first().map_or(0.0, |(_, p)| p.ln()),
            top: top
                .iter()
                .map(|(text, p)| ((*text).to_owned(), p.ln()))
                .collect(),
        }
    }

    fn plain(text: &str) -> TokenLogprob {
        token(text, &[])
    }

    #[test]
    fn the_steps_are_weighted_by_their_probabilities() {
        let tokens = [
            plain(r#"{"scores":{"clar"#),
            plain(r#"ity":{"reason":"The \"score\": 1 of \"clarity\": 2","score":"#),
            token("4", &[("4", 0.5), ("3", 0.25), ("5", 0.25), ("x", 0.0001)]),
            plain("}}}"),
        ];
        let score = expected(&tokens, "clarity", false).unwrap();
        let wanted = 0.5 * 0.85 + 0.25 * 0.6 + 0.25;
        assert!((score - wanted).abs() < 1e-9, "{score}");
        assert_eq!(expected(&tokens, "depth", false), None);
        assert_eq!(
            expected(&tokens, "depth", true),
            Some(score),
            "the only one"
        );
    }

    #[test]
    fn tokens_that_hold_more_than_the_digit_are_read() {
        let tokens = [
            plain(r#"{"a": {"score""#),
            token(
                ": 4",
                &[(": 4", 0.5), (": 5", 0.5), (": 45", 0.2), (": \"", 0.1)],
            ),
            plain(r#"}, "b":"#),
            token(" 2,", &[(" 2,", 0.75), (" 1", 0.25)]),
            plain(r#""c": "x"}"#),
        ];
        assert!((expected(&tokens, "a", false).unwrap() - 0.925).abs() < 1e-9);
        assert!((expected(&tokens, "b", false).unwrap() - 0.225).abs() < 1e-9);
        assert_eq!(expected(&tokens, "c", false), None);
    }

    #[test]
    fn what_says_too_little_says_nothing() {
        let with = |top: &[(&str, f64)], after: &str| {
            let tokens = [
                plain(r#"{"a":{"score":"#),
                token(top[0].0, top),
                plain(after),
            ];
            expected(&tokens, "a", false)
        };
        assert!(with(&[("4", 0.9)], "}}").is_some());
        assert_eq!(with(&[("4", 0.3), ("five", 0.6)], "}}"), None);
        assert_eq!(with(&[("4", 0.9)], ".5}}"), None, "no step");
        assert_eq!(with(&[("9", 0.9)], "}}"), None, "off the scale");
        assert_eq!(expected(&[], "a", true), None);
    }

    proptest! {
        #[test]
        fn the_score_is_on_the_scale_whatever_the_tokens(
            texts in prop::collection::vec(r#"[{}":,0-6a é]{0,6}|"a":|"score":"#, 0..12),
            p in 0.0f64..1.0,
        ) {
            let tokens: Vec<_> = texts.iter().map(|text| token(text, &[(text, p), ("3", 1.0 - p)])).collect();
            if let Some(score) = expected(&tokens, "a", true) {
                prop_assert!((0.0..=1.0).contains(&score));
            }
        }
    }
}
