use similar::{Algorithm, DiffOp, capture_diff_slices};
use unicode_segmentation::UnicodeSegmentation as _;

use super::blocking::Measure;
use super::key_terms::{self, WordIndex};
use super::passage::{MAX_ISSUES, ratio};
use super::{CheckIssue, Finding};
use crate::source;
use crate::types::{Bounds, CompareTarget, IssueType, Terms};

/// The maximum number of words of each text that are compared. 50,000 completely different words
/// take about a second. Words beyond the limit count as different.
const MAX_WORDS: usize = 50_000;

/// The `compare` evaluator. The score is 1 within the bounds. Outside, it falls linearly to 0 at
/// the far end: half of the minimum similarity scores 0.5.
pub(super) enum CompareCheck {
    /// By the words that both texts have in the same order.
    Similarity {
        /// The text to compare with.
        to: CompareTarget,
        /// The allowed range of similarity.
        bounds: Bounds,
    },
    /// By key terms.
    Terms {
        /// The source of the terms.
        of: Terms,
        /// The minimum share of terms that the draft must contain.
        min: f64,
    },
}

impl Measure for CompareCheck {
    fn measure(&self, draft: &str, prior: Option<&str>) -> Finding {
        let finding = match self {
            Self::Similarity { to, bounds } => to
                .text(prior)
                .map(|other| check_similarity(draft, other, to, *bounds)),
            Self::Terms {
                of: Terms::Listed(terms),
                min,
            } => Some(check_terms(draft, terms, *min)),
            Self::Terms {
                of: Terms::Drawn(from),
                min,
            } => from
                .text(prior)
                .map(|other| check_terms(draft, &key_terms::extract_terms(other), *min)),
        };
        finding.unwrap_or_else(nothing_before)
    }
}

/// Returns the finding for a first draft that has no previous version to compare with.
pub(super) fn nothing_before() -> Finding {
    Finding::graded(1.0, "there is no version before to compare with")
}

/// Checks whether the draft's similarity to the other text is within the bounds.
fn check_similarity(
    draft: &str,
    other: &str,
    to: &CompareTarget,
    Bounds { min, max }: Bounds,
) -> Finding {
    let likeness = likeness(draft, other);
    let name = to.name();
    let evidence = format!("likeness to {name} {likeness:.2}");
    let (score, issue) = if likeness < min {
        let issue = CheckIssue::new(
            IssueType::Incorrect,
            format!("the likeness to {name} is {likeness:.2}, at least {min} is required"),
        )
        .fix(match to {
            CompareTarget::Reference(_) => {
                format!("stay closer to {name}: keep its words and their order")
            }
            CompareTarget::Prior => {
                format!("change less of {name}: keep every passage that is not at fault")
            }
        });
        (likeness / min, issue)
    } else if likeness > max {
        let issue = CheckIssue::new(
            IssueType::Incorrect,
            format!("the likeness to {name} is {likeness:.2}, at most {max} is allowed"),
        )
        .fix(format!("say it in other words than {name}"));
        ((1.0 - likeness) / (1.0 - max), issue)
    } else {
        return Finding::graded(1.0, evidence);
    };
    Finding::graded(score, evidence).with_issues([issue])
}

/// Checks whether the draft contains enough of the terms. One issue names all missing terms,
/// because one issue per term would drown out the others.
fn check_terms(draft: &str, terms: &[String], min: f64) -> Finding {
    if terms.is_empty() {
        return Finding::graded(1.0, "the other text has no key terms");
    }
    let words = WordIndex::of(draft);
    let missing: Vec<&str> = terms
        .iter()
        .map(String::as_str)
        .filter(|term| !words.contains_term(term))
        .collect();
    let found = terms.len() - missing.len();
    let share = ratio(found as u64, terms.len() as u64);
    let evidence = format!("{found} of {} key terms", terms.len());
    if share >= min {
        return Finding::graded(1.0, evidence);
    }
    let named = source::list(missing.iter().take(MAX_ISSUES).copied());
    let more = match missing.len().saturating_sub(MAX_ISSUES) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let wanted = if min >= 1.0 {
        "all are".to_owned()
    } else {
        format!("at least {:.0} % are", min * 100.0)
    };
    let issue = CheckIssue::new(
        IssueType::Missing,
        format!(
            "the text has {found} of {} key terms, {wanted} required; missing: {named}{more}",
            terms.len()
        ),
    )
    .fix(format!("deal with what is missing: {named}{more}"));
    Finding::graded(share / min, evidence).with_issues([issue])
}

/// Returns the similarity of two texts, 0 to 1: twice the number of words in common order, divided
/// by the total number of words. Ignores case and everything between words.
fn likeness(one: &str, other: &str) -> f64 {
    let words = |text: &str| {
        let mut words = text.unicode_words();
        let first: Vec<String> = words
            .by_ref()
            .take(MAX_WORDS)
            .map(str::to_lowercase)
            .collect();
        let count = first.len() + words.count();
        (first, count)
    };
    let (one, one_count) = words(one);
    let (other, other_count) = words(other);
    let all = one_count + other_count;
    if all == 0 {
        return 1.0;
    }
    let same: usize = capture_diff_slices(Algorithm::Myers, &one, &other)
        .iter()
        .map(|op| match op {
            DiffOp::Equal { len, .. } => *len,
            _ => 0,
        })
        .sum();
    ratio(2 * same as u64, all as u64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn similarity(to: CompareTarget, min: f64, max: f64) -> CompareCheck {
        CompareCheck::Similarity {
            to,
            bounds: Bounds { min, max },
        }
    }

    fn reference(text: &str) -> CompareTarget {
        CompareTarget::Reference(text.to_owned())
    }

    #[test]
    fn likeness_is_the_share_of_words_in_the_same_order() {
        let pairs = [
            ("", "", 1.0),
            ("a b c d", "", 0.0),
            ("a b c d", "A b. C\nd!", 1.0),
            ("a b c d", "a x c d", 0.75),
            ("a b", "a b c d", 4.0 / 6.0),
            ("a b", "b a", 0.5),
            ("…", "?!", 1.0),
        ];
        for (one, other, expected) in pairs {
            assert!(
                (likeness(one, other) - expected).abs() < 1e-9,
                "{one:?} {other:?} {}",
                likeness(one, other)
            );
        }
    }

    #[test]
    fn outside_the_bounds_the_score_is_the_way_to_the_bound() {
        let check = similarity(reference("a b c d"), 0.5, 0.75);
        let score = |draft| check.measure(draft, None).score.unwrap();
        assert!((score("a b x y") - 1.0).abs() < 1e-9);
        assert!((score("a x y z") - 0.5).abs() < 1e-9);
        assert!(score("a b c d").abs() < 1e-9);
        assert!(score("x y").abs() < 1e-9);
        let few = check.measure("a x y z", None);
        assert_eq!(few.evidence, "likeness to the reference text 0.25");
        assert_eq!(
            few.issues[0].description,
            "the likeness to the reference text is 0.25, at least 0.5 is required"
        );
        let copied = check.measure("a b c d", None);
        assert_eq!(
            copied.issues[0].suggested_fix.as_deref(),
            Some("say it in other words than the reference text")
        );
    }

    #[test]
    fn without_a_version_before_there_is_nothing_to_say() {
        let check = similarity(CompareTarget::Prior, 0.9, 1.0);
        let first = check.measure("a b", None);
        assert_eq!(first.score, Some(1.0));
        assert_eq!(first.evidence, "there is no version before to compare with");
        let revised = check.measure("a b", Some("c d"));
        assert_eq!(revised.score, Some(0.0));
        assert!(revised.issues[0].description.contains("the version before"));
    }

    #[test]
    fn missing_terms_are_named() {
        let listed = CompareCheck::Terms {
            of: Terms::Listed(vec![
                "error".into(),
                "write-ahead log".into(),
                "index".into(),
            ]),
            min: 1.0,
        };
        let finding = listed.measure("Errors go to the write-ahead log.", None);
        assert!((finding.score.unwrap() - 2.0 / 3.0).abs() < 1e-9);
        assert_eq!(
            finding.issues[0].description,
            "the text has 2 of 3 key terms, all are required; missing: `index`"
        );
        assert_eq!(
            listed.measure("Index, error, write-ahead log", None).issues,
            []
        );
        let drawn = |min| CompareCheck::Terms {
            of: Terms::Drawn(reference("The cache keeps the index.")),
            min,
        };
        assert_eq!(
            drawn(0.6).measure("An index in a cache", None).score,
            Some(1.0)
        );
        let most = drawn(1.0).measure("A cache", None);
        assert_eq!(most.evidence, "1 of 3 key terms");
        assert!(
            most.issues[0]
                .description
                .ends_with("missing: `keeps` and `index`")
        );
        assert_eq!(drawn(1.0).measure("", None).score, Some(0.0));
    }

    /// Compares two texts of 100 kB each.
    #[test]
    fn long_texts_are_compared_in_time() {
        let text = |step: u64| -> String {
            let words = (0..20_000_u64).map(|n| format!("w{}", n * n * step % 4_999));
            words.collect::<Vec<_>>().join(" ")
        };
        let started = std::time::Instant::now();
        let likeness = likeness(&text(7), &text(11));
        assert!(likeness > 0.0 && likeness < 0.9, "{likeness}");
        // A generous limit for unoptimized builds on busy machines; an optimized build takes a
        // hundredth.
        assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
    }

    #[test]
    fn what_goes_beyond_the_limit_counts_as_different() {
        let text = "word ".repeat(MAX_WORDS * 2);
        assert!((likeness(&text, &text) - 0.5).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn likeness_is_a_share(one in "[a-d ]{0,40}", other in "[a-d ]{0,40}") {
            let share = likeness(&one, &other);
            prop_assert!((0.0..=1.0).contains(&share));
            prop_assert!((likeness(&one, &one) - 1.0).abs() < 1e-9);
        }
    }
}
