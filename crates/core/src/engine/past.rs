//! What a revision sees of the run so far, in addition to the version that it revises.

use std::collections::BTreeSet;

use crate::prompt::{EarlierDraft, Past};
use crate::text::{clip, one_line};
use crate::types::{LoopSettings, RunRecord, Version};

/// The most earlier drafts that a revision sees.
pub const PRIOR_DRAFTS: usize = 3;
/// The most characters that these have together. One that does not fit is left out, and so are those before it.
pub const PRIOR_CHARACTERS: usize = 12_000;
/// The most lines about earlier revisions.
const LINES: usize = 12;
/// The most characters of one of them.
const LINE_SIZE: usize = 300;

/// The part of the run that the settings show to a revision of version `base`.
pub(super) fn of(record: &RunRecord, base: u32, settings: &LoopSettings) -> Past {
    let lineage = lineage(record, base);
    Past {
        drafts: if settings.include_prior_versions() {
            drafts(record, base, &lineage)
        } else {
            Vec::new()
        },
        reflections: if settings.include_reflection_history() {
            reflections(record, base, &lineage)
        } else {
            Vec::new()
        },
    }
}

/// The version and its ancestors.
fn lineage(record: &RunRecord, base: u32) -> BTreeSet<u32> {
    let mut lineage = BTreeSet::new();
    let mut next = Some(base);
    while let Some(number) = next.filter(|number| lineage.insert(*number)) {
        next = record.version(number).and_then(|version| version.based_on);
    }
    lineage
}

/// The last drafts except the one that is revised, oldest first.
fn drafts(record: &RunRecord, base: u32, lineage: &BTreeSet<u32>) -> Vec<EarlierDraft> {
    let mut left = PRIOR_CHARACTERS;
    let mut shown: Vec<EarlierDraft> = record
        .versions
        .iter()
        .rev()
        .filter(|version| version.iteration != base)
        .take(PRIOR_DRAFTS)
        .map_while(|version| {
            left = left.checked_sub(version.output.chars().count())?;
            let number = version.iteration;
            let fate = if lineage.contains(&number) {
                "revised since"
            } else {
                "thrown away"
            };
            Some(EarlierDraft {
                name: format!("{number}, {fate}"),
                text: version.output.clone(),
            })
        })
        .collect();
    shown.reverse();
    shown
}

/// What was fixed on the way to the version, and what failed, one thing a line; the last things where
/// there are too many.
fn reflections(record: &RunRecord, base: u32, lineage: &BTreeSet<u32>) -> Vec<String> {
    let is_open = |description: &str| {
        let evaluation = record
            .version(base)
            .and_then(|version| version.evaluation.as_ref());
        evaluation.is_some_and(|evaluation| {
            evaluation
                .issues
                .iter()
                .any(|issue| issue.description == description)
        })
    };
    let mut lines: Vec<String> = Vec::new();
    for version in &record.versions {
        if lineage.contains(&version.iteration) {
            for fixed in &version.improvements_applied {
                if !is_open(fixed) {
                    lines.push(line(&format!("Fixed: {fixed}")));
                }
            }
        } else {
            lines.extend(in_vain(record, version));
        }
    }
    let mut seen = BTreeSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    lines.split_off(lines.len().saturating_sub(LINES))
}

/// The lesson from a discarded revision: the faults that the revised version did not have. `None` if it was not
/// judged, or was not a revision.
fn in_vain(record: &RunRecord, version: &Version) -> Option<String> {
    let evaluation = version.evaluation.as_ref()?;
    let before = record.version(version.based_on?)?.evaluation.as_ref()?;
    let new: Vec<&str> = evaluation
        .issues
        .iter()
        .map(|issue| issue.description.trim())
        .filter(|description| {
            !before
                .issues
                .iter()
                .any(|known| known.description.trim() == *description)
        })
        .collect();
    Some(line(&if new.is_empty() {
        "Failed: a revision that fixed nothing.".to_owned()
    } else {
        format!("Failed: a revision with these issues: {}", new.join(" "))
    }))
}

fn line(text: &str) -> String {
    clip(&one_line(text), LINE_SIZE)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;
    use crate::types::{Evaluation, Issue, IssueType, Place, Severity, TokenUsage};

    fn version(number: u32, based_on: Option<u32>, issues: &[&str], fixed: &[&str]) -> Version {
        Version {
            iteration: number,
            output: format!("text {number}"),
            based_on,
            strategy: None,
            edits: None,
            improvements_applied: fixed.iter().map(|text| (*text).to_owned()).collect(),
            evaluation: Some(Evaluation {
                issues: issues
                    .iter()
                    .map(|text| Issue {
                        kind: IssueType::Incorrect,
                        severity: Severity::Major,
                        description: (*text).to_owned(),
                        suggested_fix: None,
                        criterion: None,
                        place: Place::default(),
                    })
                    .collect(),
                ..Evaluation::default()
            }),
            timestamp: Timestamp::UNIX_EPOCH,
            token_usage: TokenUsage::default(),
            duration_ms: 0,
        }
    }

    fn record(versions: Vec<Version>) -> RunRecord {
        let mut record = RunRecord::default();
        record.versions = versions;
        record
    }

    fn all() -> LoopSettings {
        LoopSettings {
            include_prior_versions: Some(true),
            ..LoopSettings::default()
        }
    }

    #[test]
    fn a_first_revision_has_no_past() {
        let record = record(vec![version(1, None, &["Dull."], &[])]);
        assert_eq!(of(&record, 1, &all()), Past::default());
    }

    #[test]
    fn what_was_mended_and_what_was_in_vain_is_told() {
        let record = record(vec![
            version(1, None, &["Dull.", "Long."], &[]),
            version(2, Some(1), &["Dull."], &["Long."]),
            version(3, Some(2), &["Dull.", "Rude.\nVery."], &[]),
            version(4, Some(2), &["Dull."], &[]),
            version(5, Some(2), &["Long."], &["Dull."]),
            version(6, Some(5), &[], &["Long."]),
        ]);
        let past = of(&record, 5, &all());
        assert_eq!(
            past.reflections,
            [
                "Failed: a revision with these issues: Rude. Very.",
                "Failed: a revision that fixed nothing.",
                "Fixed: Dull.",
            ],
            "what is back is not fixed, and an attempt counts by what it did worse"
        );
        let names: Vec<&str> = past.drafts.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(
            names,
            ["3, thrown away", "4, thrown away", "6, thrown away"]
        );
        let past = of(&record, 2, &all());
        assert!(past.drafts.iter().all(|draft| draft.text != "text 2"));
    }

    #[test]
    fn each_is_shown_only_if_it_is_asked_for() {
        let record = record(vec![
            version(1, None, &["Dull."], &[]),
            version(2, Some(1), &[], &["Dull."]),
        ]);
        let past = of(&record, 2, &LoopSettings::default());
        assert!(past.drafts.is_empty());
        assert_eq!(past.reflections, ["Fixed: Dull."]);
        let none = LoopSettings {
            include_reflection_history: Some(false),
            ..all()
        };
        let past = of(&record, 2, &none);
        assert_eq!(past.drafts[0].name, "1, revised since");
        assert!(past.reflections.is_empty());
    }

    #[test]
    fn long_drafts_are_left_out_rather_than_cut() {
        let mut long = version(2, Some(1), &[], &[]);
        long.output = "x".repeat(PRIOR_CHARACTERS);
        let record = record(vec![
            version(1, None, &[], &[]),
            long,
            version(3, Some(1), &[], &[]),
            version(4, Some(1), &[], &[]),
        ]);
        let past = of(&record, 4, &all());
        let texts: Vec<&str> = past.drafts.iter().map(|d| d.text.as_str()).collect();
        assert_eq!(texts, ["text 3"]);
    }

    proptest! {
        #[test]
        fn it_is_bounded_whatever_happened(
            sizes in prop::collection::vec((0_usize..9_000, 0_u32..9, ".{0,400}"), 1..20),
            base in 1_u32..20,
        ) {
            let versions = (1..).zip(&sizes).map(|(number, (size, from, issue))| {
                let based_on = Some(*from).filter(|from| *from > 0);
                let mut version = version(number, based_on, &[issue], &[issue]);
                version.output = "é".repeat(*size);
                version
            });
            let past = of(&record(versions.collect()), base, &all());
            let drafts: usize = past.drafts.iter().map(|d| d.text.chars().count()).sum();
            prop_assert!(past.drafts.len() <= PRIOR_DRAFTS && drafts <= PRIOR_CHARACTERS);
            prop_assert!(past.reflections.len() <= LINES);
            prop_assert!(past.reflections.iter().all(|line| line.chars().count() <= LINE_SIZE + 1));
        }
    }
}
