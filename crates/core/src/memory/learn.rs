//! Learns insights from finished runs. Each rule looks at the runs with the same criteria or the
//! same model, and returns only insights that are based on at least [`MIN_RUNS`] runs and have at
//! least the confidence [`FLOOR`](super::FLOOR).

use std::collections::BTreeMap;

use uuid::Uuid;

use super::confidence::{FLOOR, wilson_lower};
use super::run_summary::{RunIssue, RunSummary};
use super::similarity;
use crate::text::{clip, one_line};
use crate::types::{KnownInsight, Strategy};

/// The minimum number of runs that an insight is based on.
pub const MIN_RUNS: usize = 2;

/// The minimum similarity of two descriptions of the same criterion in different runs to count as
/// the same issue. Two judgements rarely use the same words.
const SAME_ISSUE: f64 = 0.5;

/// The maximum number of characters taken from a judge's text, which ends up in later prompts.
const QUOTED: usize = 240;

/// The minimum number of edits for a statement about a model.
const MIN_EDITS: u32 = 6;

/// Returns the insights from these runs, highest confidence first. The wording comes from the first
/// run that shows an insight, so the latest run should be first.
pub fn learn(run_summaries: &[RunSummary]) -> Vec<KnownInsight> {
    let mut learned = Vec::new();
    for (criteria, runs) in grouped(run_summaries, |run_summary| &run_summary.criteria) {
        learned.extend(recurring_issues(criteria, &runs));
        learned.extend(failing_criterion(criteria, &runs));
        learned.extend(checks_that_catch(criteria, &runs));
    }
    for (writer, runs) in grouped(run_summaries, |run_summary| &run_summary.writer) {
        if !writer.is_empty() {
            learned.extend(rejected_replies(writer, &runs));
            learned.extend(edits_that_do_not_apply(writer, &runs));
        }
    }
    learned.retain(|insight| insight.learned >= FLOOR && insight.evidence.len() >= MIN_RUNS);
    learned.sort_by(|a, b| b.learned.total_cmp(&a.learned));
    learned
}

/// Groups runs by key, in order.
fn grouped<'a>(
    run_summaries: &'a [RunSummary],
    key: impl Fn(&'a RunSummary) -> &'a str,
) -> BTreeMap<&'a str, Vec<&'a RunSummary>> {
    let mut groups: BTreeMap<&str, Vec<&RunSummary>> = BTreeMap::new();
    for run_summary in run_summaries {
        groups
            .entry(key(run_summary))
            .or_default()
            .push(run_summary);
    }
    groups
}

/// Returns an insight of this category that these runs of `all` support.
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

/// An issue of several runs: how often each strategy fixed it, and in which runs it occurred.
struct RecurringIssue<'a> {
    run_issue: &'a RunIssue,
    /// The suggested fix, preferably from a run in which the issue was fixed.
    fix: Option<&'a str>,
    fix_worked: bool,
    fixed_by: BTreeMap<&'static str, usize>,
    runs: Vec<Uuid>,
}

impl<'a> RecurringIssue<'a> {
    fn new(run_issue: &'a RunIssue) -> Self {
        Self {
            run_issue,
            fix: None,
            fix_worked: false,
            fixed_by: BTreeMap::new(),
            runs: Vec::new(),
        }
    }

    fn is_same(&self, other: &RunIssue) -> bool {
        self.run_issue.criterion == other.criterion
            && similarity(&self.run_issue.description, &other.description) >= SAME_ISSUE
    }

    fn add(&mut self, run: Uuid, run_issue: &'a RunIssue) {
        // A run counts once, however often the issue occurs in it.
        if self.runs.last() != Some(&run) {
            self.runs.push(run);
        }
        if let Some(strategy) = run_issue.fixed_by {
            *self.fixed_by.entry(strategy_name(strategy)).or_default() += 1;
        }
        let worked = run_issue.fixed_by.is_some();
        if let Some(fix) = run_issue
            .fix
            .as_deref()
            .filter(|fix| !fix.trim().is_empty())
            && (self.fix.is_none() || (worked && !self.fix_worked))
        {
            (self.fix, self.fix_worked) = (Some(fix), worked);
        }
    }

    /// Returns the advice on how to fix it.
    fn advice(&self) -> String {
        let best = self.fixed_by.iter().max_by_key(|(_, times)| **times);
        let by = best.map(|(strategy_name, _)| format!(" ({strategy_name} did it)"));
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

/// Returns what a judge or check wrote, shortened, with a full stop.
fn sentence(text: &str) -> String {
    let mut text = clip(&one_line(text), QUOTED);
    if !text.ends_with(['.', '!', '?', '…', '。']) {
        text.push('.');
    }
    text
}

/// Describes a revision strategy.
fn strategy_name(strategy: Option<Strategy>) -> &'static str {
    match strategy {
        Some(Strategy::FullRewrite) => "a full rewrite",
        Some(Strategy::TargetedEdit) => "a targeted edit",
        Some(Strategy::Incremental) => "revising section by section",
        Some(Strategy::Hybrid) | None => "a new draft",
    }
}

/// Faults that occurred in several runs with the same criteria, with what fixed them.
fn recurring_issues(criteria: &str, runs: &[&RunSummary]) -> Vec<KnownInsight> {
    let mut found: Vec<RecurringIssue<'_>> = Vec::new();
    for run in runs {
        for run_issue in &run.issues {
            let place = found.iter().position(|known| known.is_same(run_issue));
            let place = place.unwrap_or_else(|| {
                found.push(RecurringIssue::new(run_issue));
                found.len() - 1
            });
            found[place].add(run.run_id, run_issue);
        }
    }
    found
        .into_iter()
        .map(|recurring| {
            let run_issue = recurring.run_issue;
            let subject = clip(&one_line(&run_issue.description), QUOTED);
            let of = run_issue
                .criterion
                .as_ref()
                .map_or_else(String::new, |name| format!(" under `{name}`"));
            let content = format!(
                "Texts for the criteria `{criteria}` often had this fault{of}: {}{}",
                sentence(&run_issue.description),
                recurring.advice()
            );
            KnownInsight {
                criteria: Some(criteria.to_owned()),
                criterion: run_issue.criterion.clone(),
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
fn failing_criterion(criteria: &str, runs: &[&RunSummary]) -> Option<KnownInsight> {
    let judged: Vec<_> = runs.iter().filter(|run| !run.first.is_empty()).collect();
    let mut failed: BTreeMap<&str, Vec<Uuid>> = BTreeMap::new();
    for run in &judged {
        for check in run.first.iter().filter(|check| !check.passed) {
            failed.entry(&check.criterion).or_default().push(run.run_id);
        }
    }
    // Break ties by name, so that the result is deterministic.
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

/// Hard checks that first drafts fail although the judge passes all its criteria.
fn checks_that_catch(criteria: &str, runs: &[&RunSummary]) -> Vec<KnownInsight> {
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

/// A model whose replies are often rejected.
fn rejected_replies(writer: &str, runs: &[&RunSummary]) -> Option<KnownInsight> {
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

/// A model whose edits often do not apply. The share is that of the edits, not of the runs.
fn edits_that_do_not_apply(writer: &str, runs: &[&RunSummary]) -> Option<KnownInsight> {
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

    fn run(n: u128) -> RunSummary {
        RunSummary {
            run_id: Uuid::from_u128(n),
            criteria: "house".to_owned(),
            writer: "ollama:small".to_owned(),
            first: Vec::new(),
            issues: Vec::new(),
            rejected: Vec::new(),
            edits: EditCounts::default(),
        }
    }

    fn run_issue(description: &str, fixed_by: Option<Strategy>) -> RunIssue {
        RunIssue {
            criterion: Some("clear".to_owned()),
            description: description.to_owned(),
            fix: Some("Say it first.".to_owned()),
            fixed_by: fixed_by.map(Some),
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
        runs[0].issues = vec![
            run_issue("It does not say what it is about.", None),
            run_issue("Something that no other run had, of other words.", None),
        ];
        runs[1].issues = vec![run_issue("The text does not say what it is about", rewrite)];
        runs[2].issues = vec![
            run_issue("It does not say what it is about at all.", rewrite),
            run_issue("It does not say what it is about!", None),
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
        let mut runs: Vec<RunSummary> = (0..20).map(run).collect();
        runs[0].issues = vec![run_issue("One thing.", None)];
        assert!(learn(&runs).is_empty());
        runs[1].issues = vec![run_issue("One thing.", None)];
        assert!(learn(&runs).is_empty(), "two of twenty");
        assert_eq!(learn(&runs[..3]).len(), 1, "two of three");
        // Insights do not carry over to other criteria.
        runs[1].criteria = "other".to_owned();
        assert!(learn(&runs[..2]).is_empty());
    }

    #[test]
    fn the_criterion_that_fails_first_and_the_check_that_the_judge_does_not_replace() {
        let mut runs = vec![run(1), run(2), run(3)];
        for (number, run_summary) in runs.iter_mut().enumerate() {
            run_summary.first = vec![
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
        for run_summary in &mut runs[..2] {
            run_summary.rejected = vec!["the reply repeats the prompt".to_owned()];
            run_summary.edits = EditCounts {
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
        // Edits that apply yield no insight.
        for run_summary in &mut runs {
            run_summary.edits = EditCounts {
                exact: 9,
                ..EditCounts::default()
            };
            run_summary.rejected.clear();
        }
        assert!(learn(&runs).is_empty());
    }

    #[test]
    fn what_a_judge_says_is_taken_over_in_part_and_on_one_line() {
        let long = format!("First.\n{}", "word ".repeat(200));
        let mut runs = vec![run(1), run(2)];
        for run_summary in &mut runs {
            run_summary.issues = vec![run_issue(&long, None)];
        }
        let learned = learn(&runs);
        assert!(!learned[0].content.contains('\n'));
        assert!(learned[0].content.chars().count() < 2 * QUOTED + 120);
    }
}
