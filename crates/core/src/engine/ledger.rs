use std::collections::{BTreeMap, BTreeSet};

use crate::types::{Evaluation, Issue, IssueStatus, Status, TrackedIssue};

/// Descriptions of issues of one criterion that are at least this similar are the same issue. Judges use new words
/// for the same thing, and usually mean one thing per criterion. In doubt an issue is open rather than resolved.
const SAME_CRITERION: f64 = 0.2;
/// The same for issues at one place: the passage that they quote, or the path in a JSON value.
const SAME_PLACE: f64 = 0.1;
/// The same for issues of which at most one names a criterion.
const NO_CRITERION: f64 = 0.65;

/// The issues of a run. Each keeps its id however often it is found, and in whatever words.
#[derive(Debug, Clone, Default)]
pub(super) struct Ledger {
    /// Every issue that was ever found, in the words of the last verdict that named it; its id is its position,
    /// from 1.
    known: Vec<Known>,
    /// Per judged version, the issues that it has, in its own verdict's words: places are those of its text.
    open: BTreeMap<u32, Vec<TrackedIssue>>,
}

#[derive(Debug, Clone)]
struct Known {
    since: u32,
    issue: Issue,
}

/// How the issues changed with a version.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Change {
    /// Its issues, most severe first.
    pub(super) open: Vec<TrackedIssue>,
    /// The issues of the revised version that it no longer has.
    pub(super) resolved: Vec<TrackedIssue>,
}

impl Ledger {
    /// Takes in the evaluation of a version that revises `based_on`.
    ///
    /// An issue of the evaluation is a known one if it is the same by [`likeness`]; issues of the revised
    /// version are tried first, and no issue is taken twice. What the revised version had and is not named
    /// any more is resolved, unless nobody looked: issues of a criterion that was not judged this time stay
    /// open. What is named, was not in the revised version and is known from earlier has come back.
    pub(super) fn take(
        &mut self,
        iteration: u32,
        based_on: Option<u32>,
        evaluation: &Evaluation,
    ) -> Change {
        let base = based_on
            .and_then(|base| self.open.get(&base))
            .cloned()
            .unwrap_or_default();
        let base_ids: BTreeSet<u32> = base.iter().map(|tracked| tracked.id).collect();
        let ids = self.identify(iteration, &base_ids, &evaluation.issues);
        let mut open = Vec::new();
        for (&id, issue) in ids.iter().zip(&evaluation.issues) {
            let known = &mut self.known[id as usize - 1];
            known.issue.clone_from(issue);
            let back = known.since < iteration && !base_ids.contains(&id);
            open.push(TrackedIssue {
                id,
                status: if back {
                    IssueStatus::CameBack
                } else {
                    IssueStatus::Open
                },
                since: known.since,
                issue: issue.clone(),
            });
        }
        let (resolved, unseen): (Vec<_>, Vec<_>) = base
            .into_iter()
            .filter(|tracked| !ids.contains(&tracked.id))
            .partition(|tracked| was_judged(evaluation, &tracked.issue));
        open.extend(unseen);
        open.sort_by_key(|tracked| std::cmp::Reverse(tracked.issue.severity));
        self.open.insert(iteration, open.clone());
        Change {
            open,
            resolved: resolved
                .into_iter()
                .map(|tracked| TrackedIssue {
                    status: IssueStatus::Resolved,
                    ..tracked
                })
                .collect(),
        }
    }

    /// The issues that a version has, most severe first.
    pub(super) fn issues_of(&self, version: u32) -> &[TrackedIssue] {
        self.open.get(&version).map_or(&[], Vec::as_slice)
    }

    /// The id of each issue, the likeliest pairs first.
    fn identify(&mut self, iteration: u32, base: &BTreeSet<u32>, issues: &[Issue]) -> Vec<u32> {
        let mut pairs = Vec::new();
        for (number, issue) in issues.iter().enumerate() {
            for (id, known) in (1_u32..).zip(&self.known) {
                if let Some(likeness) = likeness(&known.issue, issue) {
                    pairs.push((base.contains(&id), likeness, number, id));
                }
            }
        }
        pairs.sort_by(|a, b| {
            (b.0.cmp(&a.0))
                .then(b.1.total_cmp(&a.1))
                .then(a.2.cmp(&b.2))
                .then(a.3.cmp(&b.3))
        });
        let mut ids: Vec<Option<u32>> = vec![None; issues.len()];
        let mut taken = BTreeSet::new();
        for (_, _, number, id) in pairs {
            if ids[number].is_none() && taken.insert(id) {
                ids[number] = Some(id);
            }
        }
        ids.into_iter()
            .zip(issues)
            .map(|(id, issue)| {
                id.unwrap_or_else(|| {
                    self.known.push(Known {
                        since: iteration,
                        issue: issue.clone(),
                    });
                    u32::try_from(self.known.len()).unwrap_or(u32::MAX)
                })
            })
            .collect()
    }
}

/// Whether the verdict would name an issue if it were still there: its criterion has a verdict; one that names
/// no criterion is the judge's, who was asked about all.
fn was_judged(evaluation: &Evaluation, issue: &Issue) -> bool {
    evaluation.criteria.iter().all(|result| {
        result.status == Status::Ok
            || issue
                .criterion
                .as_ref()
                .is_some_and(|name| *name != result.name)
    })
}

/// How alike two issues are, 0 to 1; `None` if they are not the same issue.
///
/// The same are issues of one criterion at one place (the quoted passage, or the path in a JSON value with the
/// keyword that it violates) or with like descriptions; where one of them names no criterion, the
/// descriptions must be much alike. Lines do not count: they move with every revision.
fn likeness(a: &Issue, b: &Issue) -> Option<f64> {
    let alike = alike(&a.description, &b.description);
    let needed = match (&a.criterion, &b.criterion) {
        (Some(a_name), Some(b_name)) if a_name != b_name => return None,
        (Some(_), Some(_)) if same_place(a, b) => SAME_PLACE,
        // Two places in one JSON value are two issues, however alike the words.
        (Some(_), Some(_)) if a.place.path != b.place.path => return None,
        (Some(_), Some(_)) => SAME_CRITERION,
        _ => NO_CRITERION,
    };
    // An issue of another kind is another thing more often than not.
    let needed = if a.kind == b.kind {
        needed
    } else {
        needed + 0.15
    };
    (alike >= needed).then_some(alike)
}

fn same_place(a: &Issue, b: &Issue) -> bool {
    let (a, b) = (&a.place, &b.place);
    (a.quote.is_some() && a.quote == b.quote)
        || (a.path.is_some() && a.path == b.path && a.keyword == b.keyword)
}

/// Words that say nothing about what an issue is about.
const COMMON: &[&str] = &[
    "the", "a", "an", "is", "are", "of", "to", "in", "and", "or", "it", "this", "that", "be",
    "with", "for", "on", "as", "at", "by", "its", "has", "have", "does", "not", "no", "text",
    "draft", "should", "could",
];

/// How alike two descriptions are, 0 to 1: Dice's coefficient of their telling words, or of their pairs of
/// letters if that is more. Letters see through endings and numbers, words through everything between.
fn alike(a: &str, b: &str) -> f64 {
    let words = |text: &str| -> BTreeSet<String> {
        text.split(|c: char| !c.is_alphanumeric())
            .map(str::to_lowercase)
            .filter(|word| !word.is_empty() && !COMMON.contains(&word.as_str()))
            .collect()
    };
    let (left, right) = (words(a), words(b));
    let all = left.len() + right.len();
    #[expect(clippy::cast_precision_loss, reason = "descriptions are short")]
    let by_words = if all == 0 {
        0.0
    } else {
        2.0 * left.intersection(&right).count() as f64 / all as f64
    };
    // Any two sentences of a language share a third of their pairs of letters.
    let by_letters = strsim::sorensen_dice(&a.to_lowercase(), &b.to_lowercase());
    by_words.max((by_letters - 0.35) / 0.65).max(0.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{CriterionResult, IssueType, Place, Severity};

    fn issue(criterion: &str, description: &str) -> Issue {
        Issue {
            kind: IssueType::Incorrect,
            severity: Severity::Major,
            description: description.to_owned(),
            suggested_fix: None,
            criterion: Some(criterion.to_owned()),
            place: Place::default(),
        }
    }

    fn evaluation(issues: &[Issue]) -> Evaluation {
        Evaluation {
            overall_score: Some(0.5),
            issues: issues.to_vec(),
            ..Evaluation::default()
        }
    }

    fn ids(issues: &[TrackedIssue]) -> Vec<u32> {
        issues.iter().map(|tracked| tracked.id).collect()
    }

    #[test]
    fn the_same_thing_in_other_words_keeps_its_id() {
        for (a, b) in [
            (
                "The opening buries the point.",
                "The opening is too long and hides what matters.",
            ),
            (
                "the text has 7 words, at most 5 are allowed",
                "the text has 12 words, at most 5 are allowed",
            ),
            ("`TODO` in line 1 matches", "`TODO` in line 14 matches"),
            ("no index", "The table still has no index."),
        ] {
            let mut ledger = Ledger::default();
            ledger.take(1, None, &evaluation(&[issue("c", a)]));
            let change = ledger.take(2, Some(1), &evaluation(&[issue("c", b)]));
            assert_eq!(ids(&change.open), [1], "{a} / {b}");
            assert_eq!(change.resolved, []);
        }
    }

    #[test]
    fn another_thing_is_another_issue() {
        for (a, b) in [
            (
                "The opening buries the point.",
                "The dates in section two are wrong.",
            ),
            (
                "No example shows the error case.",
                "The tone is too stiff for a blog.",
            ),
        ] {
            let mut ledger = Ledger::default();
            ledger.take(1, None, &evaluation(&[issue("c", a)]));
            let change = ledger.take(2, Some(1), &evaluation(&[issue("c", b)]));
            assert_eq!(ids(&change.open), [2], "{a} / {b}");
            assert_eq!(ids(&change.resolved), [1]);
        }
        let mut ledger = Ledger::default();
        ledger.take(1, None, &evaluation(&[issue("a", "It is too long.")]));
        let change = ledger.take(2, Some(1), &evaluation(&[issue("b", "It is too long.")]));
        assert_eq!(ids(&change.open), [2], "another criterion");
    }

    #[test]
    fn places_tell_issues_of_the_same_words_apart() {
        let at = |path: &str| Issue {
            place: Place {
                path: Some(path.to_owned()),
                keyword: Some("required".to_owned()),
                ..Place::default()
            },
            ..issue("schema", "a required property is missing")
        };
        let mut ledger = Ledger::default();
        ledger.take(1, None, &evaluation(&[at("/a"), at("/b"), at("/c")]));
        let change = ledger.take(2, Some(1), &evaluation(&[at("/c"), at("/a")]));
        assert_eq!(ids(&change.open), [3, 1]);
        assert_eq!(ids(&change.resolved), [2]);
    }

    #[test]
    fn a_mended_issue_that_is_named_again_has_come_back() {
        let mut ledger = Ledger::default();
        let (a, b) = (
            issue("a", "The sums are wrong."),
            issue("b", "No conclusion."),
        );
        ledger.take(1, None, &evaluation(&[a.clone(), b.clone()]));
        let change = ledger.take(2, Some(1), &evaluation(std::slice::from_ref(&b)));
        assert_eq!(ids(&change.resolved), [1]);
        assert_eq!(change.resolved[0].status, IssueStatus::Resolved);
        let change = ledger.take(3, Some(2), &evaluation(&[a]));
        assert_eq!(change.open[0].status, IssueStatus::CameBack);
        assert_eq!((change.open[0].id, change.open[0].since), (1, 1));
        assert_eq!(ids(&change.resolved), [2]);
    }

    #[test]
    fn a_failed_attempt_does_not_resolve_for_the_next() {
        let mut ledger = Ledger::default();
        let a = issue("a", "The sums are wrong.");
        ledger.take(1, None, &evaluation(std::slice::from_ref(&a)));
        ledger.take(2, Some(1), &evaluation(&[]));
        // The second version was no gain: the third revises the first again.
        let change = ledger.take(3, Some(1), &evaluation(std::slice::from_ref(&a)));
        assert_eq!(change.open[0].status, IssueStatus::Open);
        assert_eq!(ledger.issues_of(1)[0].issue, a);
    }

    #[test]
    fn what_nobody_looked_at_is_not_resolved() {
        let result = |name: &str, status| CriterionResult {
            name: name.to_owned(),
            evaluator: "llm".to_owned(),
            score: None,
            threshold: 0.7,
            passed: false,
            required: false,
            status,
            evidence: None,
            value: None,
            spread: None,
            cached: false,
        };
        let mut ledger = Ledger::default();
        let (tone, sums) = (
            issue("tone", "Too stiff."),
            issue("sums", "They are wrong."),
        );
        let nowhere = Issue {
            criterion: None,
            ..issue("", "It wanders from point to point.")
        };
        ledger.take(1, None, &evaluation(&[tone.clone(), sums, nowhere.clone()]));
        let mut skipped = evaluation(&[]);
        skipped.criteria = vec![result("tone", Status::Skipped), result("sums", Status::Ok)];
        let change = ledger.take(2, Some(1), &skipped);
        assert_eq!(ids(&change.open), [1, 3]);
        assert_eq!(ids(&change.resolved), [2]);
        let left: Vec<&Issue> = ledger.issues_of(2).iter().map(|t| &t.issue).collect();
        assert_eq!(left, [&tone, &nowhere]);
    }

    fn some_issues() -> impl Strategy<Value = Vec<Issue>> {
        prop::collection::vec(
            (
                "[ab]",
                "(the|sums|tone|dates|are|wrong|stiff|end){1,4}( [a-z]{2,5}){0,2}",
            ),
            0..6,
        )
        .prop_map(|issues| {
            issues
                .iter()
                .map(|(criterion, description)| issue(criterion, description))
                .collect()
        })
    }

    proptest! {
        #[test]
        fn every_issue_is_accounted_for_once(rounds in prop::collection::vec(some_issues(), 1..6)) {
            let mut ledger = Ledger::default();
            for (iteration, issues) in (1u32..).zip(&rounds) {
                let based_on = iteration.checked_sub(1).filter(|base| *base > 0);
                let before: BTreeSet<u32> = based_on
                    .map(|base| ids(ledger.issues_of(base)).into_iter().collect())
                    .unwrap_or_default();
                let change = ledger.take(iteration, based_on, &evaluation(issues));
                let open: BTreeSet<u32> = ids(&change.open).into_iter().collect();
                let resolved: BTreeSet<u32> = ids(&change.resolved).into_iter().collect();
                prop_assert_eq!(open.len(), issues.len(), "each issue has an id of its own");
                prop_assert!(open.is_disjoint(&resolved));
                prop_assert!(before.iter().all(|id| open.contains(id) != resolved.contains(id)));
                prop_assert!(resolved.is_subset(&before));
            }
        }

        #[test]
        fn the_same_verdict_again_is_the_same_set(issues in some_issues()) {
            let mut ledger = Ledger::default();
            let first = ledger.take(1, None, &evaluation(&issues));
            let second = ledger.take(2, Some(1), &evaluation(&issues));
            let set = |change: &Change| ids(&change.open).into_iter().collect::<BTreeSet<_>>();
            prop_assert_eq!(set(&first), set(&second));
        }
    }
}
