//! Detects while a draft is being written that it can no longer pass, whatever follows.

use std::ops::Range;

use ::regex::Regex;

use super::length::count;
use super::passage::{excerpt, ratio};
use crate::types::{Criteria, Criterion, Evaluator, Expect, LengthConfig, LengthUnit};

/// After this many characters without the beginning of a JSON object or array, the text is not a
/// preface to one.
const PREFACE: usize = 4000;

/// Watches a text for issues that later text cannot repair. Covers only criteria that a part of a
/// text can be enough to fail:
///
/// - `length` with a maximum: the text is so far above it that its score is below the criterion's
///   floor. A margin allows for an unfinished text that may be cut anywhere.
/// - `regex` with `expect = "absent"`: a match followed by more text. Later text then changes
///   neither `\b` nor `$` at its end, and `\z` does not match there, so the whole text has a match,
///   too. It may be a different, longer one, so only the first match counts: it lowers the score to
///   at most 1/2.
/// - `contains` with forbidden texts: likewise, each text once.
/// - `schema` of type `object` or `array`: 4,000 characters without the beginning of one. This is
///   the only heuristic rule: the JSON may come after a long preface.
#[derive(Debug, Clone)]
pub struct Watch {
    rules: Vec<Rule>,
}

/// A violation that later text cannot repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The name of the criterion.
    pub criterion: String,
    /// What is wrong with the text, worded to follow "it".
    pub fault: String,
    /// What to do, as a sentence to the writer.
    pub fix: String,
}

#[derive(Debug, Clone)]
struct Rule {
    criterion: String,
    required: bool,
    kind: RuleKind,
}

#[derive(Debug, Clone)]
enum RuleKind {
    /// A text with more than `most` units cannot pass, however it ends.
    Length {
        config: LengthConfig,
        most: u64,
    },
    /// At most `bearable` of these texts may occur, out of all that the evaluator measures.
    Banned {
        finders: Vec<Regex>,
        bearable: usize,
    },
    Json,
}

impl Watch {
    /// Creates a watch for the criteria that can be watched.
    pub fn new(criteria: &Criteria) -> Self {
        let rules = criteria.criteria.iter().filter_map(|criterion| {
            Some(Rule {
                criterion: criterion.name.clone(),
                required: criterion.required,
                kind: RuleKind::of(criterion)?,
            })
        });
        Self {
            rules: rules.collect(),
        }
    }

    /// Keeps only the criteria for which `keep` returns true, given the name and whether it is
    /// required.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&str, bool) -> bool) -> Self {
        let kept = |rule: &&Rule| keep(&rule.criterion, rule.required);
        Self {
            rules: self.rules.iter().filter(kept).cloned().collect(),
        }
    }

    /// Returns whether there is nothing to watch.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Returns why a text that begins like this cannot pass, whatever follows. `text` begins as the
    /// draft will; `settled` is the part that is certain to be in the draft. Runs in linear time.
    pub fn look(&self, text: &str, settled: Range<usize>) -> Option<Violation> {
        self.rules.iter().find_map(|rule| {
            let (fault, fix) = rule.kind.look(text, settled.clone())?;
            Some(Violation {
                criterion: rule.criterion.clone(),
                fault,
                fix,
            })
        })
    }
}

impl RuleKind {
    fn of(criterion: &Criterion) -> Option<Self> {
        let floor = criterion.threshold;
        match &criterion.evaluator {
            Evaluator::Length(config) => Some(Self::Length {
                config: config.clone(),
                most: most(config.max?, floor, config.unit)?,
            }),
            Evaluator::Regex(config) if config.expect == Expect::Absent && floor > 0.5 => {
                Some(Self::Banned {
                    finders: vec![config.compile().ok()?],
                    bearable: 0,
                })
            }
            Evaluator::Contains(config) => {
                let finders: Vec<Regex> = config
                    .none
                    .iter()
                    .map(|text| config.finder(text))
                    .collect::<Result<_, _>>()
                    .ok()?;
                let rules = config.all.len() + finders.len() + usize::from(!config.any.is_empty());
                let passes =
                    |broken: usize| ratio((rules - broken) as u64, rules.max(1) as u64) >= floor;
                let bearable = (0..=finders.len()).rev().find(|broken| passes(*broken))?;
                (bearable < finders.len()).then_some(Self::Banned { finders, bearable })
            }
            Evaluator::Schema(config) => {
                let kind = config.schema.get("type")?.as_str()?;
                (matches!(kind, "object" | "array") && floor > 0.0).then_some(Self::Json)
            }
            _ => None,
        }
    }

    fn look(&self, text: &str, settled: Range<usize>) -> Option<(String, String)> {
        match self {
            Self::Length { config, most } => {
                let count = count(text.get(settled)?, config.unit);
                let (unit, rule) = (config.unit.as_str(), config.describe());
                (count > *most).then(|| {
                    (
                        format!("has {count} {unit} already, with no end in sight"),
                        format!("Write a shorter text, and end it properly. {rule}"),
                    )
                })
            }
            Self::Banned { finders, bearable } => {
                // Searches the whole text, so that assertions at the end of a match see what
                // follows.
                let mut found = finders.iter().filter_map(|finder| {
                    let found = finder.find_at(text, settled.start)?;
                    (found.end() < settled.end).then(|| excerpt(found.as_str()))
                });
                let shown = found.nth(*bearable)?;
                Some((
                    format!("has `{shown}`, which is not allowed"),
                    format!("Do without `{shown}`."),
                ))
            }
            Self::Json => {
                let holds_some = text.contains(['{', '[']);
                (!holds_some && text.chars().nth(PREFACE).is_some()).then(|| {
                    (
                        "is prose, with no JSON in it so far".to_owned(),
                        "Answer with the complete JSON value, and nothing else.".to_owned(),
                    )
                })
            }
        }
    }
}

/// Returns the maximum count of a unit at which an unfinished text can still pass, or `None` if any
/// count can.
///
/// A text above the maximum scores maximum/count, which the floor may allow. The margin is a tenth
/// and a small constant: a word that is cut in two counts as two, and closing text may be removed
/// later.
fn most(max: u64, floor: f64, unit: LengthUnit) -> Option<u64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of counts needs no 53 bits; the margin is larger, and the cast saturates"
    )]
    let passing = (floor > 0.0).then(|| (max as f64 / floor).ceil() as u64)?;
    let few = match unit {
        LengthUnit::Words => 10,
        LengthUnit::Characters => 80,
        LengthUnit::Lines | LengthUnit::Sentences | LengthUnit::Paragraphs => 2,
    };
    Some(
        passing
            .max(max)
            .saturating_add(max / 10)
            .saturating_add(few),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::blocking::Measure as _;
    use super::super::contains::ContainsCheck;
    use super::super::length::LengthCheck;
    use super::super::regex::RegexCheck;
    use super::*;
    use crate::types::{ContainsConfig, LlmConfig, RegexConfig, SchemaConfig};

    fn criterion(evaluator: Evaluator, threshold: f64) -> Criterion {
        Criterion {
            name: "rule".to_owned(),
            description: String::new(),
            weight: 1.0,
            threshold,
            required: false,
            evaluator,
        }
    }

    fn watch(evaluator: Evaluator, threshold: f64) -> Watch {
        Watch::new(&Criteria::new(
            "test",
            vec![criterion(evaluator, threshold)],
        ))
    }

    fn length(unit: LengthUnit, max: u64) -> LengthConfig {
        LengthConfig {
            unit,
            min: None,
            max: Some(max),
        }
    }

    fn absent(pattern: &str) -> RegexConfig {
        RegexConfig {
            pattern: pattern.to_owned(),
            expect: Expect::Absent,
            min_count: None,
            max_count: None,
            message: None,
        }
    }

    fn none(texts: &[&str]) -> ContainsConfig {
        ContainsConfig {
            none: texts.iter().map(|text| (*text).to_owned()).collect(),
            ..ContainsConfig::default()
        }
    }

    fn is_hopeless(watch: &Watch, text: &str) -> bool {
        watch.look(text, 0..text.len()).is_some()
    }

    #[test]
    fn what_is_far_too_long_is_seen_and_a_little_more_is_let_go_on() {
        for (unit, piece) in [
            (LengthUnit::Words, "word "),
            (LengthUnit::Characters, "c"),
            (LengthUnit::Lines, "A line.\n"),
            (LengthUnit::Sentences, "A sentence. "),
            (LengthUnit::Paragraphs, "A paragraph.\n\n"),
        ] {
            let watch = watch(Evaluator::Length(length(unit, 100)), 1.0);
            assert!(!is_hopeless(&watch, &piece.repeat(105)), "{unit:?}");
            assert!(is_hopeless(&watch, &piece.repeat(200)), "{unit:?}");
        }
    }

    #[test]
    fn a_lower_floor_allows_more() {
        let text = "word ".repeat(170);
        let long = |floor| {
            is_hopeless(
                &watch(Evaluator::Length(length(LengthUnit::Words, 100)), floor),
                &text,
            )
        };
        assert!(long(1.0));
        assert!(!long(0.5));
        assert!(!long(0.0));
    }

    #[test]
    fn a_match_counts_once_text_follows_it() {
        for (pattern, text, hopeless) in [
            ("bad", "A bad", false),
            ("bad", "A bad w", true),
            (r"bad\b", "A badger", false),
            ("bad$", "A bad", false),
            ("bad$", "A bad line", false),
            ("(?m)bad$", "A bad\nline", true),
            (r"\Abad", "A bad line", false),
            (r"\Abad", "bad line", true),
            ("good", "A bad line", false),
        ] {
            let watch = watch(Evaluator::Regex(absent(pattern)), 1.0);
            assert_eq!(is_hopeless(&watch, text), hopeless, "{pattern} in {text}");
        }
        // One match scores 1/2.
        assert!(watch(Evaluator::Regex(absent("bad")), 0.5).is_empty());
    }

    #[test]
    fn what_is_not_settled_does_not_count() {
        let watch = watch(Evaluator::Regex(absent("bad")), 1.0);
        let text = "bad good bad more";
        assert_eq!(watch.look(text, 4..10), None);
        assert!(watch.look(text, 0..10).is_some());
        assert!(watch.look(text, 4..text.len()).is_some());
    }

    #[test]
    fn as_many_texts_may_be_there_as_the_floor_allows() {
        let config = none(&["one", "two", "three", "four"]);
        let strict = watch(Evaluator::Contains(config.clone()), 1.0);
        let found = strict.look("with three in it", 0..16).unwrap();
        assert_eq!(found.fault, "has `three`, which is not allowed");
        assert_eq!(found.fix, "Do without `three`.");
        let half = watch(Evaluator::Contains(config), 0.5);
        assert!(!is_hopeless(&half, "one two and so on"));
        assert!(is_hopeless(&half, "one two three and so on"));
    }

    #[test]
    fn long_prose_is_no_json() {
        let schema = |kind: &str| {
            watch(
                Evaluator::Schema(SchemaConfig::new(json!({"type": kind}))),
                1.0,
            )
        };
        let prose = "Some prose. ".repeat(400);
        assert!(is_hopeless(&schema("object"), &prose));
        assert!(!is_hopeless(&schema("object"), &prose[..3000]));
        assert!(!is_hopeless(&schema("array"), &format!("See [1]. {prose}")));
        assert!(schema("string").is_empty());
    }

    #[test]
    fn what_only_the_end_can_tell_is_not_watched() {
        let present = RegexConfig {
            expect: Expect::Present,
            ..absent("good")
        };
        let short = LengthConfig {
            max: None,
            min: Some(9),
            unit: LengthUnit::Words,
        };
        let there = ContainsConfig {
            all: vec!["good".to_owned()],
            ..ContainsConfig::default()
        };
        for evaluator in [
            Evaluator::Llm(LlmConfig::default()),
            Evaluator::Regex(present),
            Evaluator::Length(short),
            Evaluator::Contains(there),
        ] {
            assert!(watch(evaluator, 0.9).is_empty());
        }
    }

    /// Fragments for texts that are close to every limit.
    const TEXT: &str = "([a-c]{1,3}|3\\.1|[.!?]|é|\r\n|[ \n]| \n\n|ab|c'a|\u{301}|👩‍👩‍👧|ß|日本){0,60}";

    fn prefixes(text: &str) -> impl Iterator<Item = &str> {
        let ends = (0..=text.len()).filter(|end| text.is_char_boundary(*end));
        ends.map(|end| &text[..end])
    }

    proptest! {
        #[test]
        fn no_text_is_stopped_that_is_short_enough(
            text in TEXT,
            unit in 0..5_usize,
            max in 0..8_u64,
            floor in 0.0..=1.0_f64,
        ) {
            let unit = [
                LengthUnit::Words,
                LengthUnit::Characters,
                LengthUnit::Lines,
                LengthUnit::Sentences,
                LengthUnit::Paragraphs,
            ][unit];
            let config = length(unit, max);
            let of = criterion(Evaluator::Length(config.clone()), floor);
            let watch = watch(of.evaluator.clone(), floor);
            if prefixes(&text).any(|prefix| is_hopeless(&watch, prefix)) {
                prop_assert!(!LengthCheck::new(config).measure(&text).passes(&of));
            }
        }

        #[test]
        fn no_text_is_stopped_that_has_no_match(
            text in TEXT,
            pattern in r"(\\b|\^|\\A|\\B|\(\?m\)\^|\(\?s\))?[abc.](a|\.\*|\[a-c\]\+|b\?|\|c)?(\\b|\$|\\z|\\B|\(\?m:\$\)|\\s)?",
            floor in 0.0..=1.0_f64,
        ) {
            let config = absent(&pattern);
            let of = criterion(Evaluator::Regex(config.clone()), floor);
            let watch = watch(of.evaluator.clone(), floor);
            if prefixes(&text).any(|prefix| is_hopeless(&watch, prefix)) {
                let finding = RegexCheck::new(&config).unwrap().measure(&text, None);
                prop_assert!(!finding.passes(&of), "{pattern}");
            }
        }

        #[test]
        fn no_text_is_stopped_that_has_no_more_than_it_may(
            text in TEXT,
            banned in prop::collection::vec("[abc.3é]{1,3}", 1..4),
            all in prop::collection::vec("[abc]{1,2}", 0..3),
            words: bool,
            ignore_case: bool,
            floor in 0.0..=1.0_f64,
        ) {
            let config = ContainsConfig { none: banned, all, words, ignore_case, ..ContainsConfig::default() };
            let of = criterion(Evaluator::Contains(config.clone()), floor);
            let watch = watch(of.evaluator.clone(), floor);
            if prefixes(&text).any(|prefix| is_hopeless(&watch, prefix)) {
                let finding = ContainsCheck::new(&config).unwrap().measure(&text, None);
                prop_assert!(!finding.passes(&of));
            }
        }
    }
}
