//! A verdict that is still being written: the scores that have come in. For people to watch; what counts is read
//! from the whole.

/// The most that is kept of a verdict.
const KEPT_BYTES: usize = 64 << 10;

/// The criteria that a verdict is about, and as much of it as there is.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    names: Vec<String>,
    text: String,
}

impl Incoming {
    /// Of a verdict on these criteria.
    pub(super) fn on(names: Vec<String>) -> Self {
        Self {
            names,
            text: String::new(),
        }
    }

    /// Takes a piece in.
    pub(super) fn push(&mut self, piece: &str) {
        if self.text.len() < KEPT_BYTES {
            self.text.push_str(piece);
        }
    }

    /// Another verdict begins.
    pub(super) fn clear(&mut self) {
        self.text.clear();
    }

    /// The criteria that have come up, in the order of the verdict, with the scores that the judge gives them, on
    /// their own scales.
    pub(super) fn scores(&self) -> Vec<(&str, Option<&str>)> {
        let mut found: Vec<(usize, &str)> = self
            .names
            .iter()
            .filter_map(|name| Some((self.after_key(name)?, name.as_str())))
            .collect();
        found.sort_unstable();
        let ends = found.iter().skip(1).map(|(start, _)| *start);
        let ends = ends.chain([self.text.len()]);
        found
            .iter()
            .zip(ends)
            .map(|((start, name), end)| (*name, score(&self.text[*start..end])))
            .collect()
    }

    /// Where the value of this key begins.
    fn after_key(&self, name: &str) -> Option<usize> {
        let key = serde_json::to_string(name).ok()?;
        self.text.match_indices(&key).find_map(|(place, _)| {
            let end = place + key.len();
            let rest = self.text[end..].trim_start();
            rest.starts_with(':').then_some(end)
        })
    }
}

/// The number behind the key `score`, once it is complete.
fn score(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("\"score\"")?;
    let rest = rest.trim_start().strip_prefix(':')?.trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    Some(&rest[..end]).filter(|number| number.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VERDICT: &str = r#"{"scores": {"clear": {"reason": "The \"short\" one: as it reads.", "score": 4},
        "short": {"reason": "It is.", "score": 2}}, "issues": []}"#;

    fn incoming(text: &str) -> Incoming {
        let mut incoming = Incoming::on(vec!["short".to_owned(), "clear".to_owned()]);
        incoming.push(text);
        incoming
    }

    #[test]
    fn scores_come_in_one_by_one() {
        for (until, expected) in [
            ("{\"scores\"", vec![]),
            ("as it reads", vec![("clear", None)]),
            ("\"score\": 4}", vec![("clear", Some("4"))]),
            ("It is.", vec![("clear", Some("4")), ("short", None)]),
            ("issues", vec![("clear", Some("4")), ("short", Some("2"))]),
        ] {
            let end = VERDICT.find(until).unwrap() + until.len();
            assert_eq!(incoming(&VERDICT[..end]).scores(), expected, "{until}");
        }
    }

    #[test]
    fn a_number_counts_once_it_is_complete() {
        assert_eq!(
            incoming("{\"clear\": {\"score\": 1").scores(),
            [("clear", None)]
        );
        let mut again = incoming(VERDICT);
        again.clear();
        assert_eq!(again.scores(), []);
    }

    proptest! {
        #[test]
        fn any_text_is_taken(text in "(\"clear\"|\"short\"|\"score\"|:|[0-9]|[ {}é\n]|\\\\){0,40}") {
            prop_assert!(incoming(&text).scores().len() <= 2);
        }
    }
}
