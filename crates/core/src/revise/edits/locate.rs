use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::fold::{FoldedText, fold};

/// The minimum similarity of an approximate match, 0 to 1. Other tools use 0.8; this is stricter,
/// because an edit in the wrong place is worse than a second request.
const FUZZY: f64 = 0.85;

/// The minimum lead over the next best place. With less, the match is ambiguous.
const MARGIN: f64 = 0.05;

/// The minimum length of a passage for approximate matching, in characters. Shorter ones resemble
/// too much other text.
const FUZZY_CHARS: usize = 20;

/// The minimum similarity of a place that is worth showing as the closest one.
const CLOSE: f64 = 0.4;

/// The maximum number of places that are compared character by character.
const COMPARED: usize = 12;

/// The maximum number of these that overlap each other.
const AROUND: usize = 3;

/// The length above which passages are compared by words instead of characters, in characters, to
/// bound the time.
const BY_CHARACTER: usize = 1500;

/// The size above which a text is not searched approximately, in bytes, to bound the time.
const SEARCHED: usize = 500_000;

/// How a passage was found, most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MatchGrade {
    /// Byte for byte.
    Exact,
    /// Ignoring white space and look-alike characters.
    Tolerant,
    /// Approximately.
    Fuzzy,
}

/// Why a passage has no place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MatchError {
    /// No place is similar enough. Holds the most similar one, if there is any.
    NotFound(Option<Range<usize>>),
    /// The passage occurs at these places.
    Ambiguous(Vec<Range<usize>>),
}

/// A text to search for passages. It is folded once, on first use.
pub struct Haystack<'a> {
    text: &'a str,
    folded: OnceCell<FoldedText>,
}

impl<'a> Haystack<'a> {
    /// Prepares a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            folded: OnceCell::new(),
        }
    }

    /// Returns the text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Returns all places of a passage with this grade, which must not be fuzzy.
    pub fn all(&self, passage: &str, grade: MatchGrade) -> Vec<Range<usize>> {
        match grade {
            _ if passage.trim().is_empty() => Vec::new(),
            MatchGrade::Exact => self
                .text
                .match_indices(passage)
                .map(|(start, found)| start..start + found.len())
                .collect(),
            MatchGrade::Tolerant => {
                let folded = self.folded.get_or_init(|| FoldedText::new(self.text));
                folded.find(&fold(passage))
            }
            MatchGrade::Fuzzy => Vec::new(),
        }
    }

    /// Returns the only place of a passage, with the most reliable grade that has any. Of several
    /// places, prefers the one that consists of whole lines, then the one of whole words, then the
    /// one outside of `touched`.
    pub fn one(
        &self,
        passage: &str,
        touched: &[Range<usize>],
    ) -> Result<(Range<usize>, MatchGrade), MatchError> {
        self.sure(passage, touched)
            .unwrap_or_else(|| self.nearly(passage))
    }

    /// Like [`Haystack::one`], but without approximate matching. Returns `None` if no place is
    /// certain.
    pub fn sure(
        &self,
        passage: &str,
        touched: &[Range<usize>],
    ) -> Option<Result<(Range<usize>, MatchGrade), MatchError>> {
        [MatchGrade::Exact, MatchGrade::Tolerant]
            .into_iter()
            .find_map(|grade| {
                let places = self.all(passage, grade);
                (!places.is_empty())
                    .then(|| self.choose(places, touched).map(|place| (place, grade)))
            })
    }

    /// Returns the place that approximately matches a passage, if it has a clear lead.
    fn nearly(&self, passage: &str) -> Result<(Range<usize>, MatchGrade), MatchError> {
        let nearest = self.nearest(passage);
        let Some((best, place)) = nearest.first().filter(|(best, _)| *best >= CLOSE) else {
            return Err(MatchError::NotFound(None));
        };
        if *best < FUZZY || fold(passage).chars().count() < FUZZY_CHARS {
            return Err(MatchError::NotFound(Some(place.clone())));
        }
        let twin = nearest
            .iter()
            .find(|(score, other)| best - score < MARGIN && !overlap(place, other));
        if let Some((_, other)) = twin {
            return Err(MatchError::Ambiguous(vec![place.clone(), other.clone()]));
        }
        // A different number means another row, version or date.
        if numbers(passage) != numbers(&self.text[place.clone()]) {
            return Err(MatchError::NotFound(Some(place.clone())));
        }
        Ok((place.clone(), MatchGrade::Fuzzy))
    }

    fn choose(
        &self,
        places: Vec<Range<usize>>,
        touched: &[Range<usize>],
    ) -> Result<Range<usize>, MatchError> {
        let only = |wanted: &dyn Fn(&Range<usize>) -> bool| {
            let mut fit = places.iter().filter(|place| wanted(place));
            fit.next().filter(|_| fit.next().is_none()).cloned()
        };
        let lines = |place: &Range<usize>| {
            let before = self.text[..place.start]
                .rsplit('\n')
                .next()
                .unwrap_or_default();
            let after = self.text[place.end..]
                .split('\n')
                .next()
                .unwrap_or_default();
            before.trim().is_empty() && after.trim().is_empty()
        };
        let words = |place: &Range<usize>| {
            let (before, inside, after) = (
                &self.text[..place.start],
                &self.text[place.clone()],
                &self.text[place.end..],
            );
            let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let cut_before = word(before.chars().next_back()) && word(inside.chars().next());
            let cut_after = word(inside.chars().next_back()) && word(after.chars().next());
            !cut_before && !cut_after
        };
        let fresh = |place: &Range<usize>| !touched.iter().any(|range| overlap(range, place));
        only(&|_| true)
            .or_else(|| only(&lines))
            .or_else(|| only(&words))
            .or_else(|| only(&fresh))
            .ok_or(MatchError::Ambiguous(places))
    }

    /// Returns the places most similar to a passage, best first, with their similarity.
    fn nearest(&self, passage: &str) -> Vec<(f64, Range<usize>)> {
        if self.text.len() > SEARCHED {
            return Vec::new();
        }
        let wanted = fold(passage);
        let mut numbers = HashMap::new();
        let wanted_words = words(&mut numbers, &wanted);
        if wanted_words.is_empty() {
            return Vec::new();
        }
        let units: Vec<(Range<usize>, Vec<usize>)> = units(self.text)
            .into_iter()
            .map(|unit| {
                let words = words(&mut numbers, &fold(&self.text[unit.clone()]));
                (unit, words)
            })
            .collect();
        let mut places = candidates(&units, &wanted_words, numbers.len());
        places.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut kept: Vec<Range<usize>> = Vec::new();
        for (_, first, last) in places {
            let place = units[first].0.start..units[last].0.end;
            // Many windows overlap one place; keep only a few of them.
            let around = kept.iter().filter(|other| overlap(other, &place)).count();
            if around < AROUND {
                kept.push(place);
            }
            if kept.len() == COMPARED {
                break;
            }
        }
        let mut compared: Vec<(f64, Range<usize>)> = kept
            .into_iter()
            .map(|place| {
                let there = fold(&self.text[place.clone()]);
                let score = if wanted.len().max(there.len()) <= BY_CHARACTER {
                    strsim::normalized_levenshtein(&wanted, &there)
                } else {
                    let there = words(&mut numbers, &there);
                    similarity(&wanted_words, &there)
                };
                (score, place)
            })
            .collect();
        compared.sort_by(|a, b| b.0.total_cmp(&a.0));
        compared
    }
}

/// Returns runs of units with about the wanted number of words, with the share of common words.
fn candidates(
    units: &[(Range<usize>, Vec<usize>)],
    wanted: &[usize],
    numbers: usize,
) -> Vec<(f64, usize, usize)> {
    let mut counts = vec![0u32; numbers];
    for &word in wanted {
        counts[word] += 1;
    }
    let most = wanted.len() + wanted.len() / 3 + 2;
    let mut found = Vec::new();
    for first in 0..units.len() {
        let mut taken = Vec::new();
        let mut words = 0;
        let mut best: Option<(f64, usize)> = None;
        for (last, (_, unit)) in units.iter().enumerate().skip(first) {
            words += unit.len();
            if words > most && last > first {
                break;
            }
            for &word in unit {
                if counts[word] > 0 {
                    counts[word] -= 1;
                    taken.push(word);
                }
            }
            let dice = ratio(2 * taken.len(), words + wanted.len());
            if best.is_none_or(|(score, _)| dice > score) {
                best = Some((dice, last));
            }
        }
        for word in taken {
            counts[word] += 1;
        }
        if let Some((score, last)) = best.filter(|(score, _)| *score > 0.25) {
            found.push((score, first, last));
        }
    }
    found
}

/// Returns the units at which a passage may begin or end: the sentences of every line.
fn units(text: &str) -> Vec<Range<usize>> {
    let mut units = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        for (offset, sentence) in line.split_sentence_bound_indices() {
            let left = sentence.len() - sentence.trim_start().len();
            let trimmed = sentence.trim();
            if !trimmed.is_empty() {
                let begin = start + offset + left;
                units.push(begin..begin + trimmed.len());
            }
        }
        start += line.len();
    }
    units
}

/// Converts a text to word numbers, counted from 0 in order of first occurrence.
fn words(numbers: &mut HashMap<String, usize>, folded: &str) -> Vec<usize> {
    // Punctuation counts, too: many lines consist of a single brace.
    folded
        .split_word_bounds()
        .filter(|word| !word.trim().is_empty())
        .map(|word| {
            let next = numbers.len();
            *numbers.entry(word.to_owned()).or_insert(next)
        })
        .collect()
}

fn similarity(one: &[usize], other: &[usize]) -> f64 {
    /// `strsim` requires a type that can be iterated by reference.
    struct WordSlice<'a>(&'a [usize]);
    impl<'b> IntoIterator for &'b WordSlice<'_> {
        type Item = &'b usize;
        type IntoIter = std::slice::Iter<'b, usize>;
        fn into_iter(self) -> Self::IntoIter {
            self.0.iter()
        }
    }
    let distance = strsim::generic_levenshtein(&WordSlice(one), &WordSlice(other));
    1.0 - ratio(distance, one.len().max(other.len()).max(1))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of words need no 53 bits"
)]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// Returns the numbers in a text, in order.
fn numbers(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_ascii_digit())
        .filter(|digits| !digits.is_empty())
        .collect()
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found<'a>(text: &'a str, passage: &str) -> Result<(&'a str, MatchGrade), MatchError> {
        let (place, grade) = Haystack::new(text).one(passage, &[])?;
        Ok((&text[place], grade))
    }

    #[test]
    fn the_surest_grade_is_taken() {
        let text = "One “two” three.\nOne \"two\" three.\n";
        assert_eq!(
            found(text, "One \"two\" three.").unwrap(),
            ("One \"two\" three.", MatchGrade::Exact)
        );
        let text = "    if a:\n\t\tb()\n";
        assert_eq!(
            found(text, "if a:\n    b()").unwrap(),
            ("if a:\n\t\tb()", MatchGrade::Tolerant)
        );
        let text = "The quick brown fox jumps over the lazy dog. Then it sleeps.";
        assert_eq!(
            found(text, "The quick brown fox jumped over the lazy dog.").unwrap(),
            (
                "The quick brown fox jumps over the lazy dog.",
                MatchGrade::Fuzzy
            )
        );
    }

    #[test]
    fn of_several_places_whole_lines_go_before_words_and_words_before_parts() {
        let text = "let id = 1;\nlet idx = id;\nid\n";
        let (place, _) = Haystack::new(text).one("id", &[]).unwrap();
        assert_eq!(place.start, text.rfind("id").unwrap());
        let (place, _) = Haystack::new("concatenate the cat")
            .one("cat", &[])
            .unwrap();
        assert_eq!(place.start, 16);
        assert!(
            matches!(found("a\nb\na\n", "a"), Err(MatchError::Ambiguous(places)) if places.len() == 2)
        );
        let (place, _) = Haystack::new("a\nb\na\n")
            .one("a", std::slice::from_ref(&(0..1)))
            .unwrap();
        assert_eq!(place.start, 4);
    }

    #[test]
    fn another_number_is_another_place_and_twins_are_refused() {
        let rows = "| version 1.2 of the parser | 2021 |\n| something else entirely | 2022 |\n";
        assert!(matches!(
            found(rows, "| version 1.3 of the parser | 2021 |"),
            Err(MatchError::NotFound(Some(_)))
        ));
        let twins = "The first of the two brothers went to the sea.\nThe last of the two brothers went to the sea.\n";
        assert!(matches!(
            found(twins, "The next of the two brothers went to the sea."),
            Err(MatchError::Ambiguous(_) | MatchError::NotFound(Some(_)))
        ));
        assert!(matches!(
            found("short", "shart"),
            Err(MatchError::NotFound(_))
        ));
    }

    #[test]
    fn long_texts_take_no_long_time() {
        let text =
            "Sentence after sentence speaks of one thing and of another. It ends.\n".repeat(4000);
        let passage =
            "Sentence after sentense talks of one thing and of others. It ends.\n".repeat(60);
        let begun = std::time::Instant::now();
        let _ = Haystack::new(&text).one(&passage, &[]);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    proptest! {
        #[test]
        fn places_are_at_character_boundaries(text in "\\PC{0,60}", passage in "\\PC{0,30}") {
            let haystack = Haystack::new(&text);
            match haystack.one(&passage, &[]) {
                Ok((place, _)) => prop_assert!(text.get(place).is_some()),
                Err(MatchError::NotFound(place)) => prop_assert!(place.is_none_or(|place| text.get(place).is_some())),
                Err(MatchError::Ambiguous(places)) => prop_assert!(places.len() > 1),
            }
        }
    }
}
