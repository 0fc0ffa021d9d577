//! What finished runs teach. Every rule looks at the runs of the same criteria, or of the same model, and says
//! nothing that rests on fewer than [`MIN_RUNS`] of them, or that is less sure than [`FLOOR`](super::FLOOR).

use std::collections::BTreeMap;

use uuid::Uuid;

use super::confidence::{FLOOR, wilson_lower};
use super::episode::{Episode, Fault};
use super::likeness;
use crate::text::{clip, one_line};
use crate::types::{KnownInsight, Strategy};

/// The fewest runs that an insight rests on.
pub const MIN_RUNS: usize = 2;

/// Descriptions of two runs, of the same criterion, that are at least so alike are of the same fault: two judgements
/// never use the same words.
const SAME_FAULT: f64 = 0.5;

/// The most characters that are taken over of what a judge said: it goes into later prompts.
const QUOTED: usize = 240;

/// The fewest edits that say something of a model.
const MIN_EDITS: u32 = 6;

/// What these runs teach, the surest first. They are looked at from the first on: the first one whose words say a
/// thing gives the words, so the latest run goes first.
pub fn learn(episodes: &[Episode]) -> Vec<KnownInsight> {
    let mut learned = Vec::new();
    for (criteria, runs) in grouped(episodes, |episode| &episode.criteria) {
        learned.extend(recurring_issues(criteria, &runs));
        learned.extend(failing_criterion(criteria, &runs));
        learned.extend(checks_that_catch(criteria, &runs));
    }
    for (writer, runs) in grouped(episodes, |episode| &episode.writer) {
        if !writer.is_empty() {
            learned.extend(rejected_replies(writer, &runs));
            learned.extend(edits_that_do_not_apply(writer, &runs));
        }
    }
    learned.retain(|insight| insight.learned >= FLOOR && insight.evidence.len() >= MIN_RUNS);
    learned.sort_by(|a, b| b.learned.total_cmp(&a.learned));
    learned
}

/// The runs that have the same key, in order.
fn grouped<'a>(
    episodes: &'a [Episode],
    key: impl Fn(&'a Episode) -> &'a str,
) -> BTreeMap<&'a str, Vec<&'a Episode>> {
    let mut groups: BTreeMap<&str, Vec<&Episode>> = BTreeMap::new();
    for episode in episodes {
        groups.entry(key(episode)).or_default().push(episode);
    }
    groups
}

/// An insight of this category that these of all runs show.
fn insight(
    category: &str,
    subject: String,
    content: String,
    evidence: Vec<Uuid>,
    all: usize,
) -> KnownInsight {
    KnownInsight {
        subject,
        learned: wilson_lower(evidence.len(), all),
        evidence,
        ..KnownInsight::new(category, content, 0.0)
    }
}

/// A fault that several runs had: how often each way of revising fixed it, and who said so.
struct Recurring<'a> {
    fault: &'a Fault,
    /// The suggestion, of a fault that was fixed by preference.
    fix: Option<&'a str>,
    fix_worked: bool,
    mended: BTreeMap<&'static str, usize>,
    runs: Vec<Uuid>,
}

impl<'a> Recurring<'a> {
    fn new(fault: &'a Fault) -> Self {
        Self {
            fault,
            fix: None,
            fix_worked: false,
            mended: BTreeMap::new(),
            runs: Vec::new(),
        }
    }

    fn is_same(&self, other: &Fault) -> bool {
        self.fault.criterion == other.criterion
            && likeness(&self.fault.description, &other.description) >= SAME_FAULT
    }

    fn add(&mut self, run: Uuid, fault: &'a Fault) {
        // A run counts once, however many such faults it had.
        if self.runs.last() != Some(&run) {
            self.runs.push(run);
        }
        if let Some(strategy) = fault.mended {
            *self.mended.entry(way(strategy)).or_default() += 1;
        }
        let worked = fault.mended.is_some();
        if let Some(fix) = fault.fix.as_deref().filter(|fix| !fix.trim().is_empty())
            && (self.fix.is_none() || (worked && !self.fix_worked))
        {
            (self.fix, self.fix_worked) = (Some(fix), worked);
        }
    }

    /// What is to be done about it.
    fn advice(&self) -> String {
        let best = self.mended.iter().max_by_key(|(_, times)| **times);
        let by = best.map(|(way, _)| format!(" ({way} did it)"));
        match (self.fix, &by) {
            (Some(fix), Some(by)) if self.fix_worked => {
                format!(" This fixed it{by}: {}", sentence(fix))
            }
            (Some(fix), _) => format!(" Fix: {}", sentence(fix)),
            (None, Some(by)) => format!(" It can be fixed{by}."),
            (None, None) => String::new(),
        }
    }
}

/// What a judge or a check said, as much as is taken over, with the end of a sentence.
fn sentence(text: &str) -> String {
    let mut text = clip(&one_line(text), QUOTED);
    if !text.ends_with(['.', '!', '?', '…', '。']) {
        text.push('.');
    }
    text
}

/// A way of revising, in words.
fn way(strategy: Option<Strategy>) -> &'static str {
    match strategy {
        Some(Strategy::FullRewrite) => "a full rewrite",
        Some(Strategy::TargetedEdit) => "a targeted edit",
        Some(Strategy::Incremental) => "revising section by section",
        Some(Strategy::Hybrid) | None => "a new draft",
    }
}

/// Faults that came up in several runs of the same criteria, with what fixed them.
fn recurring_issues(criteria: &str, runs: &[&Episode]) -> Vec<KnownInsight> {
    let mut found: Vec<Recurring<'_>> = Vec::new();
    for run in runs {
        for fault in &run.faults {
            let place = found.iter().position(|known| known.is_same(fault));
            let place = place.unwrap_or_else(|| {
                found.push(Recurring::new(fault));
                found.len() - 1
            });
            found[place].add(run.run_id, fault);
        }
    }
    found
        .into_iter()
        .map(|recurring| {
            let fault = recurring.fault;
            let subject = clip(&one_line(&fault.description), QUOTED);
            let of = fault
                .criterion
                .as_ref()
                .map_or_else(String::new, |name| format!(" under `{name}`"));
            let content = format!(
                "Texts for the criteria `{criteria}` often had this fault{of}: {}{}",
                sentence(&fault.description),
                recurring.advice()
            );
            KnownInsight {
                criteria: Some(criteria.to_owned()),
                criterion: fault.criterion.clone(),
                ..insight(
                    "recurring_issue",
                    subject,
                    content,
                    recurring.runs,
                    runs.len(),
                )
            }
        })
        .collect()
}

/// The criterion that first drafts fail most often.
fn failing_criterion(criteria: &str, runs: &[&Episode]) -> Option<KnownInsight> {
    let judged: Vec<_> = runs.iter().filter(|run| !run.first.is_empty()).collect();
    let mut failed: BTreeMap<&str, Vec<Uuid>> = BTreeMap::new();
    for run in &judged {
        for check in run.first.iter().filter(|check| !check.passed) {
            failed.entry(&check.criterion).or_default().push(run.run_id);
        }
    }
    // Of equals the first by name, so that it is the same each time.
    let (name, runs) = failed
        .into_iter()
        .rev()
        .max_by_key(|(_, runs)| runs.len())?;
    let content = format!(
        "Of the criteria `{criteria}`, first drafts most often fail `{name}`: look at it before all others."
    );
    Some(KnownInsight {
        criteria: Some(criteria.to_owned()),
        criterion: Some(name.to_owned()),
        ..insight(
            "failing_criterion",
            name.to_owned(),
            content,
            runs,
            judged.len(),
        )
    })
}

/// Hard checks that first drafts fail which the judge finds good under everything that it judges.
fn checks_that_catch(criteria: &str, runs: &[&Episode]) -> Vec<KnownInsight> {
    let judged: Vec<_> = runs.iter().filter(|run| !run.first.is_empty()).collect();
    let mut caught: BTreeMap<&str, (Option<&str>, Vec<Uuid>)> = BTreeMap::new();
    for run in &judged {
        let (hard, soft): (Vec<_>, Vec<_>) = run.first.iter().partition(|check| check.hard);
        if soft.is_empty() || soft.iter().any(|check| !check.passed) {
            continue;
        }
        for check in hard.into_iter().filter(|check| !check.passed) {
            let (issue, runs) = caught.entry(&check.criterion).or_default();
            *issue = issue.or(check.issue.as_deref());
            runs.push(run.run_id);
        }
    }
    caught
        .into_iter()
        .map(|(name, (issue, runs))| {
            let example = issue.map_or_else(String::new, |it| {
                format!(", for example: {}", clip(&one_line(it), QUOTED))
            });
            let content = format!(
                "The check `{name}` of the criteria `{criteria}` catches what reads well{example}"
            );
            KnownInsight {
                criteria: Some(criteria.to_owned()),
                criterion: Some(name.to_owned()),
                ..insight("check", name.to_owned(), content, runs, judged.len())
            }
        })
        .collect()
}

/// A model whose replies are often no drafts.
fn rejected_replies(writer: &str, runs: &[&Episode]) -> Option<KnownInsight> {
    let failed: Vec<_> = runs.iter().filter(|run| !run.rejected.is_empty()).collect();
    let reason = clip(&one_line(failed.first()?.rejected.first()?), QUOTED);
    let content = format!(
        "Replies of `{writer}` were often no drafts, last because of this: {reason}. Reply with the text that is \
         asked for, and nothing else."
    );
    let evidence = failed.iter().map(|run| run.run_id).collect();
    Some(KnownInsight {
        model: Some(writer.to_owned()),
        ..insight(
            "model",
            "rejected replies".to_owned(),
            content,
            evidence,
            runs.len(),
        )
    })
}

/// A model whose edits often do not apply: the share is that of the edits, not of the runs.
fn edits_that_do_not_apply(writer: &str, runs: &[&Episode]) -> Option<KnownInsight> {
    let failed: u32 = runs.iter().map(|run| run.edits.failed).sum();
    let all: u32 = failed + runs.iter().map(|run| run.edits.applied()).sum::<u32>();
    if all < MIN_EDITS {
        return None;
    }
    let evidence: Vec<Uuid> = runs
        .iter()
        .filter(|run| run.edits.failed > 0)
        .map(|run| run.run_id)
        .collect();
    let content = format!(
        "Edits of `{writer}` often do not apply: copy the lines that are to be replaced character for character."
    );
    Some(KnownInsight {
        model: Some(writer.to_owned()),
        learned: wilson_lower(failed as usize, all as usize),
        ..insight("model", "edits".to_owned(), content, evidence, runs.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::FirstCheck;
    use crate::types::EditCounts;

    fn run(n: u128) -> Episode {
        Episode {
            run_id: Uuid::from_u128(n),
            criteria: "house".to_owned(),
            writer: "ollama:small".to_owned(),
            first: Vec::new(),
            faults: Vec::new(),
            rejected: Vec::new(),
            edits: EditCounts::default(),
        }
    }

    fn fault(description: &str, mended: Option<Strategy>) -> Fault {
        Fault {
            criterion: Some("clear".to_owned()),
            description: description.to_owned(),
            fix: Some("Say it first.".to_owned()),
            mended: mended.map(Some),
        }
    }

    fn check(criterion: &str, hard: bool, passed: bool) -> FirstCheck {
        FirstCheck {
            criterion: criterion.to_owned(),
            hard,
            passed,
            issue: Some(format!("{criterion} is wrong.")),
        }
    }

    #[test]
    fn an_issue_of_several_runs_is_learned_with_what_mended_it() {
        let mut runs = vec![run(3), run(2), run(1), run(4)];
        let rewrite = Some(Strategy::FullRewrite);
        runs[0].faults = vec![
            fault("It does not say what it is about.", None),
            fault("Something that no other run had, of other words.", None),
        ];
        runs[1].faults = vec![fault("The text does not say what it is about", rewrite)];
        runs[2].faults = vec![
            fault("It does not say what it is about at all.", rewrite),
            fault("It does not say what it is about!", None),
        ];
        let learned = learn(&runs);
        assert_eq!(learned.len(), 1, "{learned:?}");
        let insight = &learned[0];
        assert_eq!(insight.category, "recurring_issue");
        assert_eq!(insight.criterion.as_deref(), Some("clear"));
        assert_eq!(insight.evidence, [3, 2, 1].map(Uuid::from_u128));
        assert!((insight.learned - wilson_lower(3, 4)).abs() < 1e-9);
        assert_eq!(insight.subject, "It does not say what it is about.");
        assert_eq!(sentence("cut\n6 words"), "cut 6 words.");
        assert_eq!(
            insight.content,
            "Texts for the criteria `house` often had this fault under `clear`: It does not say what it is about. \
             This fixed it (a full rewrite did it): Say it first."
        );
    }

    #[test]
    fn what_one_run_says_and_what_is_rare_is_not_learned() {
        let mut runs: Vec<Episode> = (0..20).map(run).collect();
        runs[0].faults = vec![fault("One thing.", None)];
        assert!(learn(&runs).is_empty());
        runs[1].faults = vec![fault("One thing.", None)];
        assert!(learn(&runs).is_empty(), "two of twenty");
        assert_eq!(learn(&runs[..3]).len(), 1, "two of three");
        // Other criteria are another matter.
        runs[1].criteria = "other".to_owned();
        assert!(learn(&runs[..2]).is_empty());
    }

    #[test]
    fn the_criterion_that_fails_first_and_the_check_that_the_judge_does_not_replace() {
        let mut runs = vec![run(1), run(2), run(3)];
        for (number, episode) in runs.iter_mut().enumerate() {
            episode.first = vec![
                check("clear", false, number != 0),
                check("short", true, false),
            ];
        }
        let learned = learn(&runs);
        let of = |category: &str| learned.iter().find(|it| it.category == category).unwrap();
        let failing = of("failing_criterion");
        assert_eq!(failing.criterion.as_deref(), Some("short"));
        assert_eq!(failing.evidence.len(), 3);
        let catches = of("check");
        assert_eq!(catches.evidence, [2, 3].map(Uuid::from_u128));
        assert!(
            catches.content.ends_with("for example: short is wrong."),
            "{}",
            catches.content
        );
        assert_eq!(learned.len(), 2);
    }

    #[test]
    fn what_a_model_fails_at_is_about_the_model() {
        let mut runs = vec![run(1), run(2), run(3)];
        for episode in &mut runs[..2] {
            episode.rejected = vec!["the reply repeats the prompt".to_owned()];
            episode.edits = EditCounts {
                exact: 1,
                failed: 3,
                ..EditCounts::default()
            };
        }
        runs[2].writer = "openai:large".to_owned();
        let learned = learn(&runs);
        assert_eq!(learned.len(), 2, "{learned:?}");
        for insight in &learned {
            assert_eq!(insight.model.as_deref(), Some("ollama:small"));
            assert_eq!((&insight.criteria, insight.evidence.len()), (&None, 2));
        }
        let edits = learned.iter().find(|it| it.subject == "edits").unwrap();
        assert!((edits.learned - wilson_lower(6, 8)).abs() < 1e-9);
        // Edits that apply teach nothing.
        for episode in &mut runs {
            episode.edits = EditCounts {
                exact: 9,
                ..EditCounts::default()
            };
            episode.rejected.clear();
        }
        assert!(learn(&runs).is_empty());
    }

    #[test]
    fn what_a_judge_says_is_taken_over_in_part_and_on_one_line() {
        let long = format!("First.\n{}", "word ".repeat(200));
        let mut runs = vec![run(1), run(2)];
        for episode in &mut runs {
            episode.faults = vec![fault(&long, None)];
        }
        let learned = learn(&runs);
        assert!(!learned[0].content.contains('\n'));
        assert!(learned[0].content.chars().count() < 2 * QUOTED + 120);
    }
}
