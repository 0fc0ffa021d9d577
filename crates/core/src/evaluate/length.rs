use async_trait::async_trait;
use unicode_segmentation::UnicodeSegmentation;

use super::passage::ratio;
use super::{CheckIssue, Finding, HardCheck, Subject};
use crate::text::counted;
use crate::types::{IssueType, LengthConfig, LengthUnit};

/// The `length` evaluator. The score is 1 within the bounds. Outside, it is the ratio of the length
/// to the bound: both half of the minimum and twice the maximum score 0.5.
pub(super) struct LengthCheck {
    config: LengthConfig,
}

impl LengthCheck {
    pub(super) fn new(config: LengthConfig) -> Self {
        Self { config }
    }
}

#[async_trait]
impl HardCheck for LengthCheck {
    async fn check(&self, subject: &Subject<'_>) -> Finding {
        self.measure(subject.draft)
    }
}

impl LengthCheck {
    pub(super) fn measure(&self, draft: &str) -> Finding {
        let LengthConfig { unit, min, max } = self.config;
        let count = count(draft, unit);
        let units = |count| counted(count, unit.as_str().trim_end_matches('s'));
        let seen = units(count);
        let min_is_max = min.is_some() && min == max;
        let (score, issue) = match (min, max) {
            (Some(min), _) if count < min => {
                // Not `missing`: no single passage is, so an edit could not fix it.
                let issue = CheckIssue::new(
                    IssueType::Incorrect,
                    format!("the text has {seen}, at least {min} are required"),
                )
                .fix(format!("add {}", change_by(min - count, min_is_max, units)));
                (ratio(count, min), Some(issue))
            }
            (_, Some(max)) if count > max => {
                let issue = CheckIssue::new(
                    IssueType::Incorrect,
                    format!("the text has {seen}, at most {max} are allowed"),
                )
                .fix(format!("cut {}", change_by(count - max, min_is_max, units)));
                (ratio(max, count), Some(issue))
            }
            _ => (1.0, None),
        };
        Finding::graded(score, seen).with_issues(issue)
    }
}

/// Describes the minimum change of length. A range such as "cut 3 to 43 words" is mistaken for a
/// target length.
fn change_by(least: u64, exactly: bool, units: impl Fn(u64) -> String) -> String {
    let bound = if exactly { "exactly" } else { "at least" };
    format!("{bound} {}", units(least))
}

/// Counts the units of the text. White space around the text does not count as lines or paragraphs.
pub(super) fn count(text: &str, unit: LengthUnit) -> u64 {
    let text = text.trim();
    let count = match unit {
        LengthUnit::Words => text.unicode_words().count(),
        LengthUnit::Characters => text.chars().count(),
        LengthUnit::Lines => text.lines().count(),
        LengthUnit::Sentences => text.unicode_sentences().count(),
        LengthUnit::Paragraphs => {
            text.lines()
                .map(|line| !line.trim().is_empty())
                .fold((0, false), |(count, inside), full| {
                    (count + usize::from(full && !inside), full)
                })
                .0
        }
    };
    count as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(unit: LengthUnit, min: Option<u64>, max: Option<u64>, draft: &str) -> Finding {
        LengthCheck::new(LengthConfig { unit, min, max }).measure(draft)
    }

    #[test]
    fn counts_what_people_would_count() {
        let text = "\nOne two, three. Four?\nFive!\n\n\n  \nIt's naïve.\n";
        assert_eq!(count(text, LengthUnit::Words), 7);
        assert_eq!(count(text, LengthUnit::Sentences), 4);
        assert_eq!(count(text, LengthUnit::Lines), 6);
        assert_eq!(count(text, LengthUnit::Paragraphs), 2);
        assert_eq!(count("naïve", LengthUnit::Characters), 5);
        for unit in [
            LengthUnit::Words,
            LengthUnit::Sentences,
            LengthUnit::Lines,
            LengthUnit::Paragraphs,
            LengthUnit::Characters,
        ] {
            assert_eq!(count(" \n ", unit), 0, "{unit:?}");
        }
    }

    #[test]
    fn the_bounds_themselves_are_allowed() {
        for words in ["a b", "a b c"] {
            let finding = check(LengthUnit::Words, Some(2), Some(3), words);
            assert_eq!(finding.score, Some(1.0));
            assert_eq!(finding.issues, []);
        }
    }

    #[test]
    fn what_to_do_is_one_number() {
        let fix = |min, max, draft| {
            let finding = check(LengthUnit::Words, Some(min), Some(max), draft);
            finding.issues[0].suggested_fix.clone().unwrap()
        };
        assert_eq!(fix(3, 5, "a"), "add at least 2 words");
        assert_eq!(fix(1, 3, "a b c d"), "cut at least 1 word");
        assert_eq!(fix(2, 2, "a b c"), "cut exactly 1 word");
    }

    #[test]
    fn outside_the_score_is_the_share_and_the_fault_says_by_how_much() {
        let short = check(LengthUnit::Words, Some(4), None, "a b");
        assert_eq!(short.score, Some(0.5));
        let issue = &short.issues[0];
        assert_eq!(
            issue.description,
            "the text has 2 words, at least 4 are required"
        );
        assert_eq!(issue.suggested_fix.as_deref(), Some("add at least 2 words"));
        let long = check(LengthUnit::Words, None, Some(1), "a b");
        assert_eq!(long.score, Some(0.5));
        assert_eq!(
            long.issues[0].suggested_fix.as_deref(),
            Some("cut at least 1 word")
        );
        assert_eq!(check(LengthUnit::Words, Some(1), None, "").score, Some(0.0));
        assert_eq!(
            check(LengthUnit::Words, None, Some(0), "a").score,
            Some(0.0)
        );
    }

    proptest::proptest! {
        /// A step towards the bounds never lowers the score, and only a length within them has the
        /// full score.
        #[test]
        fn a_repair_never_lowers_the_score(words in 0usize..60, min in 1u64..40, more in 0u64..20) {
            let (min, max) = (Some(min), Some(min + more));
            let score = |words: usize| {
                let draft = vec!["word"; words].join(" ");
                check(LengthUnit::Words, min, max, &draft).score.unwrap()
            };
            let (now, count) = (score(words), words as u64);
            let within = min <= Some(count) && Some(count) <= max;
            proptest::prop_assert_eq!(now >= 1.0, within);
            if Some(count) < min {
                proptest::prop_assert!(score(words + 1) > now);
            } else if Some(count) > max {
                proptest::prop_assert!(score(words - 1) > now);
            }
        }
    }
}
