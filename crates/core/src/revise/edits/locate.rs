use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::fold::{Folded, fold};

/// How like two passages must be to be taken for the same, 0 to 1. Others take 0.8; ours is higher, since an edit
/// in the wrong place is worse than a second question.
const FUZZY: f64 = 0.85;

/// The next best place must be so much worse, or nobody knows which is meant.
const MARGIN: f64 = 0.05;

/// A shorter passage is like too many others, in characters.
const FUZZY_CHARS: usize = 20;

/// A place less like the passage than this is no help to who looks for it.
const CLOSE: f64 = 0.4;

/// The most places that are compared character by character.
const COMPARED: usize = 12;

/// The most of them that overlap one another.
const AROUND: usize = 3;

/// Longer passages are compared word by word: it would take too long otherwise. In characters.
const BY_CHARACTER: usize = 1500;

/// In a longer text nothing is looked for fuzzily, for the same reason. In bytes.
const SEARCHED: usize = 500_000;

/// How a passage was found, the surest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grade {
    /// Byte for byte.
    Exact,
    /// But for white space and look-alikes.
    Tolerant,
    /// Nearly.
    Fuzzy,
}

/// Why a passage has no place in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// Nothing is like it enough; the place that is most like it, if one is at all.
    NotFound(Option<Range<usize>>),
    /// It is there more than once: where.
    Ambiguous(Vec<Range<usize>>),
}

/// A text in which passages are looked for; folded once, when that is first needed.
pub struct Haystack<'a> {
    text: &'a str,
    folded: OnceCell<Folded>,
}

impl<'a> Haystack<'a> {
    /// Prepares a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            folded: OnceCell::new(),
        }
    }

    /// The text itself.
    pub fn text(&self) -> &'a str {
        self.text
    }

    /// Every place of a passage, of a grade other than fuzzy. Empty if there is none.
    pub fn all(&self, passage: &str, grade: Grade) -> Vec<Range<usize>> {
        match grade {
            _ if passage.trim().is_empty() => Vec::new(),
            Grade::Exact => self
                .text
                .match_indices(passage)
                .map(|(start, found)| start..start + found.len())
                .collect(),
            Grade::Tolerant => {
                let folded = self.folded.get_or_init(|| Folded::new(self.text));
                folded.find(&fold(passage))
            }
            Grade::Fuzzy => Vec::new(),
        }
    }

    /// The one place of a passage, of the surest grade that has any: of several the one that is whole lines, else
    /// the one that is whole words, else the one outside of `touched`.
    pub fn one(
        &self,
        passage: &str,
        touched: &[Range<usize>],
    ) -> Result<(Range<usize>, Grade), Miss> {
        self.sure(passage, touched)
            .unwrap_or_else(|| self.nearly(passage))
    }

    /// The same, but never fuzzily; `None` if no place is sure.
    pub fn sure(
        &self,
        passage: &str,
        touched: &[Range<usize>],
    ) -> Option<Result<(Range<usize>, Grade), Miss>> {
        [Grade::Exact, Grade::Tolerant]
            .into_iter()
            .find_map(|grade| {
                let places = self.all(passage, grade);
                (!places.is_empty())
                    .then(|| self.choose(places, touched).map(|place| (place, grade)))
            })
    }

    /// The place that is nearly a passage, if one is by far the likest.
    fn nearly(&self, passage: &str) -> Result<(Range<usize>, Grade), Miss> {
        let nearest = self.nearest(passage);
        let Some((best, place)) = nearest.first().filter(|(best, _)| *best >= CLOSE) else {
            return Err(Miss::NotFound(None));
        };
        if *best < FUZZY || fold(passage).chars().count() < FUZZY_CHARS {
            return Err(Miss::NotFound(Some(place.clone())));
        }
        let twin = nearest
            .iter()
            .find(|(score, other)| best - score < MARGIN && !overlap(place, other));
        if let Some((_, other)) = twin {
            return Err(Miss::Ambiguous(vec![place.clone(), other.clone()]));
        }
        // What differs in a number is another row, version or date.
        if numbers(passage) != numbers(&self.text[place.clone()]) {
            return Err(Miss::NotFound(Some(place.clone())));
        }
        Ok((place.clone(), Grade::Fuzzy))
    }

    fn choose(
        &self,
        places: Vec<Range<usize>>,
        touched: &[Range<usize>],
    ) -> Result<Range<usize>, Miss> {
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
            .ok_or(Miss::Ambiguous(places))
    }

    /// The places that are most like a passage, the likest first, with how like they are.
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
            // Many windows lie around one place; a few of them are enough.
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
                    likeness(&wanted_words, &there)
                };
                (score, place)
            })
            .collect();
        compared.sort_by(|a, b| b.0.total_cmp(&a.0));
        compared
    }
}

/// Runs of units with about as many words as are wanted, with the share of words that both have.
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

/// The parts of a text that a passage may begin or end at: sentences, of every line.
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

/// A text's words as numbers: each word has one, from 0 on.
fn words(numbers: &mut HashMap<String, usize>, folded: &str) -> Vec<usize> {
    // Signs count, too: a brace is all there is of many a line.
    folded
        .split_word_bounds()
        .filter(|word| !word.trim().is_empty())
        .map(|word| {
            let next = numbers.len();
            *numbers.entry(word.to_owned()).or_insert(next)
        })
        .collect()
}

fn likeness(one: &[usize], other: &[usize]) -> f64 {
    /// `strsim` wants something that can be iterated by reference.
    struct Words<'a>(&'a [usize]);
    impl<'b> IntoIterator for &'b Words<'_> {
        type Item = &'b usize;
        type IntoIter = std::slice::Iter<'b, usize>;
        fn into_iter(self) -> Self::IntoIter {
            self.0.iter()
        }
    }
    let distance = strsim::generic_levenshtein(&Words(one), &Words(other));
    1.0 - ratio(distance, one.len().max(other.len()).max(1))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of words need no 53 bits"
)]
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

/// The numbers of a text, in order.
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

    fn found<'a>(text: &'a str, passage: &str) -> Result<(&'a str, Grade), Miss> {
        let (place, grade) = Haystack::new(text).one(passage, &[])?;
        Ok((&text[place], grade))
    }

    #[test]
    fn the_surest_grade_is_taken() {
        let text = "One “two” three.\nOne \"two\" three.\n";
        assert_eq!(
            found(text, "One \"two\" three.").unwrap(),
            ("One \"two\" three.", Grade::Exact)
        );
        let text = "    if a:\n\t\tb()\n";
        assert_eq!(
            found(text, "if a:\n    b()").unwrap(),
            ("if a:\n\t\tb()", Grade::Tolerant)
        );
        let text = "The quick brown fox jumps over the lazy dog. Then it sleeps.";
        assert_eq!(
            found(text, "The quick brown fox jumped over the lazy dog.").unwrap(),
            ("The quick brown fox jumps over the lazy dog.", Grade::Fuzzy)
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
            matches!(found("a\nb\na\n", "a"), Err(Miss::Ambiguous(places)) if places.len() == 2)
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
            Err(Miss::NotFound(Some(_)))
        ));
        let twins = "The first of the two brothers went to the sea.\nThe last of the two brothers went to the sea.\n";
        assert!(matches!(
            found(twins, "The next of the two brothers went to the sea."),
            Err(Miss::Ambiguous(_) | Miss::NotFound(Some(_)))
        ));
        assert!(matches!(found("short", "shart"), Err(Miss::NotFound(_))));
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
                Err(Miss::NotFound(place)) => prop_assert!(place.is_none_or(|place| text.get(place).is_some())),
                Err(Miss::Ambiguous(places)) => prop_assert!(places.len() > 1),
            }
        }
    }
}
