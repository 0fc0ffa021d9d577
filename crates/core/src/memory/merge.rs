//! Merges new memories into the known ones without duplicates.

use std::collections::HashSet;

use uuid::Uuid;

use super::similarity;
use crate::types::{Knowledge, KnownInsight, Memory, MemoryChange};

/// The minimum similarity of the subjects of two insights of one kind about the same thing to count
/// as equal.
const SAME_SUBJECT: f64 = 0.7;

/// The maximum number of runs that an insight lists: the latest ones.
const MAX_EVIDENCE: usize = 20;

/// Returns the changes that merging `new` makes.
///
/// A known fact or procedure with the same text receives the new figures. A known insight (same
/// category, criteria, criterion and model, and a similar subject) keeps its id and the results of
/// its uses. It receives the new text, unless a model worded the old one and not the new one, and
/// the new confidence. If an additional run supports it, its
/// age starts again at zero.
pub fn merge(known: &[Memory], new: impl IntoIterator<Item = Knowledge>) -> Vec<MemoryChange> {
    let mut changes: Vec<MemoryChange> = Vec::new();
    for knowledge in new {
        // The new memories may contain duplicates, too.
        let added = changes.iter_mut().find_map(|change| match change {
            MemoryChange::Add(other) if is_same(other, &knowledge) => Some(other),
            _ => None,
        });
        if let Some(added) = added {
            *added = merged(added, knowledge).0;
            continue;
        }
        let Some(memory) = known.iter().find(|it| is_same(&it.what, &knowledge)) else {
            changes.push(MemoryChange::Add(knowledge));
            continue;
        };
        let (what, found_again) = merged(&memory.what, knowledge);
        if what != memory.what {
            changes.push(MemoryChange::Replace(memory.id, what));
        }
        if found_again {
            changes.push(MemoryChange::Touch(memory.id));
        }
    }
    changes
}

fn is_same(old: &Knowledge, new: &Knowledge) -> bool {
    match (old, new) {
        // A fact with a different number is a different fact.
        (Knowledge::Fact(old), Knowledge::Fact(new)) => same_words(&old.content, &new.content),
        (Knowledge::Procedure(old), Knowledge::Procedure(new)) => {
            old.name == new.name && same_words(&old.content, &new.content)
        }
        (Knowledge::Insight(old), Knowledge::Insight(new)) => {
            about(old) == about(new) && similarity(&old.subject, &new.subject) >= SAME_SUBJECT
        }
        _ => false,
    }
}

/// Returns what an insight is about, except for its subject.
fn about(insight: &KnownInsight) -> [Option<&str>; 4] {
    [
        Some(&insight.category),
        insight.criteria.as_deref(),
        insight.criterion.as_deref(),
        insight.model.as_deref(),
    ]
}

/// Compares texts ignoring case and white space.
fn same_words(a: &str, b: &str) -> bool {
    let words =
        |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_lowercase).collect() };
    words(a) == words(b)
}

/// Merges the two. Also returns whether the insight was found again in a new run.
fn merged(old: &Knowledge, new: Knowledge) -> (Knowledge, bool) {
    match (old, new) {
        (Knowledge::Insight(old), Knowledge::Insight(mut new)) => {
            let known: HashSet<Uuid> = old.evidence.iter().copied().collect();
            let found_again =
                new.evidence.is_empty() || new.evidence.iter().any(|run| !known.contains(run));
            for run in &old.evidence {
                if !new.evidence.contains(run) {
                    new.evidence.push(*run);
                }
            }
            new.evidence.truncate(MAX_EVIDENCE);
            if old.worded && !new.worded {
                new.content.clone_from(&old.content);
                new.worded = true;
            }
            new.subject.clone_from(&old.subject);
            (new.uses, new.compared, new.points) = (old.uses, old.compared, old.points);
            (Knowledge::Insight(new), found_again)
        }
        (_, new) => (new, true),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::types::{Fact, KnownProcedure};

    fn memory(id: u64, what: Knowledge) -> Memory {
        Memory {
            id,
            added: Timestamp::UNIX_EPOCH,
            touched: Timestamp::UNIX_EPOCH,
            what,
        }
    }

    fn fact(content: &str, confidence: f64) -> Knowledge {
        Knowledge::Fact(Fact {
            content: content.to_owned(),
            confidence: Some(confidence),
            supports_claim: None,
        })
    }

    fn insight(subject: &str, runs: &[u128]) -> KnownInsight {
        KnownInsight {
            criteria: Some("house".to_owned()),
            evidence: runs.iter().map(|n| Uuid::from_u128(*n)).collect(),
            ..KnownInsight::new("recurring_issue", subject, 0.5)
        }
    }

    #[test]
    fn facts_are_the_same_only_in_the_same_words() {
        let known = [memory(1, fact("The port is 8080.", 0.5))];
        let changes = merge(
            &known,
            [
                fact("the port  is 8080.", 0.9),
                fact("The port is 8081.", 0.9),
            ],
        );
        assert_eq!(
            changes,
            [
                MemoryChange::Replace(1, fact("the port  is 8080.", 0.9)),
                MemoryChange::Touch(1),
                MemoryChange::Add(fact("The port is 8081.", 0.9))
            ]
        );
        let procedure = Knowledge::Procedure(KnownProcedure {
            name: None,
            content: "The port is 8080.".to_owned(),
            given: None,
            uses: 0,
            successes: 0,
        });
        assert_eq!(
            merge(&known, [procedure.clone()]),
            [MemoryChange::Add(procedure)]
        );
    }

    #[test]
    fn an_insight_that_is_found_again_keeps_what_its_use_has_shown() {
        let mut old = insight("It does not say what it is about.", &[1]);
        (old.uses, old.compared, old.points) = (3, 2, 0.7);
        let known = [memory(7, Knowledge::Insight(old.clone()))];
        let mut new = insight("The text does not say what it is about.", &[2, 1]);
        new.learned = 0.8;
        let changes = merge(&known, [Knowledge::Insight(new.clone())]);
        let [
            MemoryChange::Replace(7, Knowledge::Insight(now)),
            MemoryChange::Touch(7),
        ] = changes.as_slice()
        else {
            panic!("{changes:?}");
        };
        assert_eq!((now.uses, now.compared), (3, 2));
        assert_eq!(now.content, new.content);
        assert_eq!(now.subject, old.subject);
        assert_eq!(now.evidence, [2, 1].map(Uuid::from_u128));
        // The same insight again: nothing changes, and it is not refreshed.
        let known = [memory(7, Knowledge::Insight(now.clone()))];
        assert_eq!(merge(&known, [Knowledge::Insight(new)]), []);
    }

    #[test]
    fn other_criteria_and_other_matters_are_other_insights() {
        let known = [memory(
            1,
            Knowledge::Insight(insight("The title is missing.", &[1])),
        )];
        let mut elsewhere = insight("The title is missing.", &[2]);
        elsewhere.criteria = None;
        let other = insight("Nothing backs the figures of the text.", &[2]);
        let changes = merge(&known, [elsewhere, other].map(Knowledge::Insight));
        assert_eq!(changes.len(), 2);
        assert!(
            changes
                .iter()
                .all(|change| matches!(change, MemoryChange::Add(_)))
        );
    }

    #[test]
    fn what_comes_twice_at_once_is_taken_in_once() {
        let two = [
            insight("The title is missing.", &[1]),
            insight("Missing is the title.", &[2]),
        ];
        let changes = merge(&[], two.map(Knowledge::Insight));
        let [MemoryChange::Add(Knowledge::Insight(one))] = changes.as_slice() else {
            panic!("{changes:?}");
        };
        assert_eq!(one.evidence, [2, 1].map(Uuid::from_u128));
    }

    #[test]
    fn the_words_of_a_model_stay() {
        let mut old = insight("The title is missing.", &[1]);
        (old.content, old.worded) = ("Begin with a title.".to_owned(), true);
        let known = [memory(1, Knowledge::Insight(old))];
        let changes = merge(
            &known,
            [Knowledge::Insight(insight("The title is missing.", &[2]))],
        );
        let MemoryChange::Replace(1, Knowledge::Insight(now)) = &changes[0] else {
            panic!("{changes:?}");
        };
        assert!(now.worded);
        assert_eq!(now.content, "Begin with a title.");
    }
}
