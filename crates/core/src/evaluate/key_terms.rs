//! Key terms: the words that characterize a text, and the search for them in another text.

use std::collections::{HashMap, HashSet};

use unicode_segmentation::UnicodeSegmentation as _;

/// The maximum number of terms extracted from a text.
const DRAWN: usize = 40;

/// English words that occur in every text. Words of one or two letters are ignored anyway.
const STOP_WORDS: &str = "\
about above after again against all almost also although always and another any anything are around \
because been before being below between both but can cannot could did does doing done down during each \
either else enough even ever every everything few first for from further get gets give given gives goes \
going good got had has have having her here hers him his how however into its itself just keep last least \
less let like made make makes many may maybe might more most much must need needs neither never new next \
nor not nothing now off often once one ones only onto other others otherwise our ours out over own per \
perhaps put quite rather really said same say says see seem seems several shall she should since some \
something still such take takes than that the their theirs them then there therefore these they thing \
things this those though three through thus together too toward towards two under until upon use used \
uses using very want wants was way ways well were what whatever when where whether which while who whole \
whom whose why will with within without would yet you your yours";

/// The endings of English contractions.
const CONTRACTIONS: &[&str] = &["n't", "'re", "'ve", "'ll", "'d", "'m"];

/// Returns the terms of a text: its most frequent words, in order of first occurrence at equal
/// frequency, without stop words and numbers.
pub(super) fn extract_terms(text: &str) -> Vec<String> {
    let stop: HashSet<&str> = STOP_WORDS.split(' ').collect();
    // Maps a stem to its count, its first position and its spelling there.
    let mut seen: HashMap<String, (usize, usize, String)> = HashMap::new();
    for (place, word) in text.unicode_words().enumerate() {
        let lower = word.to_lowercase().replace('’', "'");
        let whole = lower.strip_suffix("'s").unwrap_or(&lower);
        let counts = whole.chars().count() > 2
            && whole.chars().any(char::is_alphabetic)
            && !stop.contains(whole)
            && !CONTRACTIONS.iter().any(|end| whole.ends_with(end));
        if counts {
            seen.entry(stem(word))
                .or_insert_with(|| (0, place, lower.clone()))
                .0 += 1;
        }
    }
    let mut terms: Vec<_> = seen.into_values().collect();
    terms.sort_by_key(|(count, place, _)| (std::cmp::Reverse(*count), *place));
    terms.truncate(DRAWN);
    terms.into_iter().map(|(_, _, term)| term).collect()
}

/// The words of a text, for term lookup.
pub(super) struct WordIndex {
    in_order: Vec<String>,
    places: HashMap<String, Vec<usize>>,
}

impl WordIndex {
    pub(super) fn of(text: &str) -> Self {
        let in_order: Vec<String> = text.unicode_words().map(stem).collect();
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, word) in in_order.iter().enumerate() {
            places.entry(word.clone()).or_default().push(place);
        }
        Self { in_order, places }
    }

    /// Returns whether the words of the term occur consecutively.
    pub(super) fn contains_term(&self, term: &str) -> bool {
        let term: Vec<String> = term.unicode_words().map(stem).collect();
        let Some(starts) = term.first().and_then(|first| self.places.get(first)) else {
            return false;
        };
        starts
            .iter()
            .any(|start| self.in_order[*start..].starts_with(&term))
    }
}

/// Returns a word in lower case without plural and possessive endings: `Leaf's` becomes `leaf`,
/// `errors` becomes `error`. A rough stemmer suffices, because it is applied to both sides.
fn stem(word: &str) -> String {
    let lower = word.to_lowercase().replace('’', "'");
    let word = lower.strip_suffix("'s").unwrap_or(&lower);
    let stem = if word.chars().count() > 3 && !word.ends_with("ss") {
        word.strip_suffix('s').unwrap_or(word)
    } else {
        word
    };
    stem.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stop_words_are_in_order_and_each_there_once() {
        assert!(STOP_WORDS.split(' ').is_sorted_by(|a, b| a < b));
    }

    #[test]
    fn what_a_text_is_about_is_drawn_the_most_frequent_first() {
        let text =
            "The cache keeps errors. An error in the cache's index, and there is 1 cache of 2026.";
        assert_eq!(extract_terms(text), ["cache", "errors", "keeps", "index"]);
        assert_eq!(
            extract_terms("It is what it is, isn't it? We'll see."),
            Vec::<String>::new()
        );
        let many: Vec<String> = (0..99).map(|n| format!("word{n}x")).collect();
        assert_eq!(extract_terms(&many.join(" ")), many[..DRAWN]);
    }

    #[test]
    fn terms_are_found_whatever_their_case_and_number() {
        let words =
            WordIndex::of("Errors of the B-tree's index; eventual\nconsistency. Class Größe");
        for term in [
            "error",
            "ERRORS",
            "b-tree",
            "eventual consistency",
            "class",
            "größe",
            "indexs",
            "tree index",
        ] {
            assert!(words.contains_term(term), "{term}");
        }
        for term in ["err", "consistency eventual", "", "…", "clas"] {
            assert!(!words.contains_term(term), "{term}");
        }
    }

    proptest! {
        #[test]
        fn a_text_has_all_terms_that_are_drawn_from_it(text in "\\PC{0,120}") {
            let words = WordIndex::of(&text);
            for term in extract_terms(&text) {
                prop_assert!(words.contains_term(&term), "{}", term);
            }
        }
    }
}
