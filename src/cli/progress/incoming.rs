//! The scores of a verdict while it arrives. Only for display; the final scores are parsed from the complete
//! verdict.

/// The maximum length of a verdict to keep, in bytes.
const KEPT_BYTES: usize = 64 << 10;

/// The criteria of a verdict, and its text so far.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    names: Vec<String>,
    text: String,
}

impl Incoming {
    /// Creates it for a verdict on these criteria.
    pub(super) fn on(names: Vec<String>) -> Self {
        Self {
            names,
            text: String::new(),
        }
    }

    /// Adds a piece of the reply.
    pub(super) fn push(&mut self, piece: &str) {
        if self.text.len() < KEPT_BYTES {
            self.text.push_str(piece);
        }
    }

    /// Starts another verdict.
    pub(super) fn clear(&mut self) {
        self.text.clear();
    }

    /// Returns the criteria that have appeared, in the order of the verdict, with the judge's scores on their
    /// own scales.
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

    /// Finds the position after a key.
    fn after_key(&self, name: &str) -> Option<usize> {
        let key = serde_json::to_string(name).ok()?;
        self.text.match_indices(&key).find_map(|(place, _)| {
            let end = place + key.len();
            let rest = self.text[end..].trim_start();
            rest.starts_with(':').then_some(end)
        })
    }
}

/// Returns the number after the key `score`, once it is complete.
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
    fn scores_arrive_one_by_one() {
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
        fn any_text_is_accepted(text in "(\"clear\"|\"short\"|\"score\"|:|[0-9]|[ {}é\n]|\\\\){0,40}") {
            prop_assert!(incoming(&text).scores().len() <= 2);
        }
    }
}
