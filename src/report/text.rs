use std::fmt::Write as _;

use crate::text::counted;
use crate::types::{
    ConvergenceReason, CriterionResult, Evaluation, Issue, RunRecord, Severity, Status, Strategy,
    TokenUsage, Version,
};

/// Formats a score.
pub fn score(value: Option<f64>) -> String {
    value.map_or_else(
        || "no score".to_owned(),
        |value| format!("score {value:.2}"),
    )
}

/// Formats a number with thousands separators.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats token usage, with cached and estimated tokens; `None` if it is unknown.
pub fn tokens(usage: &TokenUsage) -> Option<String> {
    let total = usage.total?;
    let remarks: Vec<String> = [(usage.cached, "cached"), (usage.estimated, "estimated")]
        .into_iter()
        .filter_map(|(part, what)| Some((part.filter(|part| *part > 0)?, what)))
        .map(|(part, what)| format!("{} {what}", thousands(part)))
        .collect();
    let total = thousands(total);
    Some(if remarks.is_empty() {
        format!("{total} tokens")
    } else {
        format!("{total} tokens ({})", remarks.join(", "))
    })
}

/// Formats a cost, in the unit of the user's prices.
pub(super) fn cost(cost: f64) -> String {
    match cost {
        cost if cost >= 1.0 => format!("cost {cost:.2}"),
        cost if cost >= 0.0001 || cost <= 0.0 => format!("cost {cost:.4}"),
        _ => "cost below 0.0001".to_owned(),
    }
}

/// Formats a duration in seconds, such as `12.5 s` or `1 min 05 s`.
pub fn duration(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a run takes less than 600 million years"
    )]
    let seconds = seconds.round() as u64;
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

/// Whether a criterion is met, in one character.
pub(super) fn mark(result: &CriterionResult) -> char {
    match (result.status, result.passed) {
        (Status::Ok, true) => '✓',
        (Status::Ok, false) => '✗',
        _ => '?',
    }
}

/// A criterion's score, or why there is none.
pub(super) fn value(result: &CriterionResult) -> String {
    match result.status {
        Status::Ok => result
            .score
            .map_or_else(String::new, |score| format!("{score:.2}")),
        Status::Unparsed => "unparsed".to_owned(),
        Status::Failed => "failed".to_owned(),
        Status::Skipped => "skipped".to_owned(),
    }
}

/// Remarks on a verdict, such as its spread; `None` if there are none.
pub(super) fn asides(result: &CriterionResult) -> Option<String> {
    let spread = result.spread.map(|spread| format!("spread {spread:.2}"));
    let cached = result.cached.then(|| "cached".to_owned());
    let parts: Vec<String> = spread.into_iter().chain(cached).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Why an issue may not be real; `None` if there is no doubt.
pub(super) fn doubt(issue: &Issue) -> Option<&'static str> {
    match (issue.place.verified, &issue.place.quote) {
        (Some(false), Some(_)) => Some("unverified: the judge's quote is not in the draft"),
        (Some(false), None) => Some("unverified: the judge gave no quote"),
        _ => None,
    }
}

/// Counts the issues that keep a draft from passing, most severe first: `1 critical, 2 major issues`. `None`
/// if there are none.
pub(super) fn severe_issues(evaluation: &Evaluation) -> Option<String> {
    let count = |severity| {
        let issues = evaluation.issues.iter();
        issues.filter(|issue| issue.severity == severity).count()
    };
    let (critical, major) = (count(Severity::Critical), count(Severity::Major));
    match (critical, major) {
        (0, 0) => None,
        (0, major) => Some(counted(major, "major issue")),
        (critical, 0) => Some(counted(critical, "critical issue")),
        (critical, major) => Some(format!(
            "{critical} critical, {}",
            counted(major, "major issue")
        )),
    }
}

/// Lists what keeps a draft from meeting the criteria: the criteria below their floor and severe issues, or else the
/// criteria that were not evaluated. `None` if there is nothing to list, or the draft was not evaluated.
pub(super) fn unmet(version: &Version) -> Option<String> {
    let evaluation = version.evaluation.as_ref()?;
    if evaluation.satisfactory {
        return None;
    }
    let failed = evaluation.criteria.iter().filter(|result| !result.passed);
    let mut parts: Vec<String> = failed
        .filter(|result| result.status != Status::Skipped)
        .map(|result| format!("`{}`", result.name))
        .collect();
    parts.extend(severe_issues(evaluation));
    if parts.is_empty() {
        let names = unevaluated(evaluation);
        return (!names.is_empty()).then(|| format!("{names} not evaluated"));
    }
    Some(parts.join(", "))
}

/// The names of the criteria that were skipped, comma-separated.
fn unevaluated(evaluation: &Evaluation) -> String {
    let skipped = evaluation.criteria.iter();
    let skipped = skipped.filter(|result| result.status == Status::Skipped);
    let names: Vec<String> = skipped.map(|result| format!("`{}`", result.name)).collect();
    names.join(", ")
}

/// Returns up to `most` issues of a draft, most severe first.
pub fn worst_issues(evaluation: &Evaluation, most: usize) -> Vec<&Issue> {
    let mut issues: Vec<&Issue> = evaluation.issues.iter().collect();
    issues.sort_by_key(|issue| std::cmp::Reverse(issue.severity));
    issues.truncate(most);
    issues
}

/// Formats a verdict on one line: the score, its change since `before`, and what failed.
pub fn evaluation_line(version: &Version, before: Option<f64>) -> String {
    let Some(evaluation) = &version.evaluation else {
        return "not judged".to_owned();
    };
    let mut parts = vec![match (evaluation.overall_score, before) {
        (Some(now), Some(before)) => format!("score {now:.2} ({:+.2})", now - before),
        (now, _) => score(now),
    }];
    if evaluation.satisfactory {
        parts.push("meets the criteria".to_owned());
    }
    for result in &evaluation.criteria {
        // Omit skipped criteria: the failure that caused the skip is on the line.
        if !result.passed && result.status != Status::Skipped {
            let (mark, value) = (mark(result), value(result));
            parts.push(format!("{mark} {} {value}", result.name));
        }
    }
    parts.extend(severe_issues(evaluation));
    parts.extend(tokens(&version.token_usage));
    #[expect(clippy::cast_precision_loss, reason = "milliseconds of one call")]
    parts.push(duration(version.duration_ms as f64 / 1000.0));
    parts.join(" · ")
}

/// Describes how a version was made: the draft that it revises, the strategy, and how edits applied. `None`
/// for a first draft.
pub fn revised(version: &Version) -> Option<String> {
    let mut out = format!("revises draft {}", version.based_on?);
    if let Some(strategy) = version.strategy {
        let _ = write!(out, " by {}", strategy.as_str());
    } else {
        out.push_str(", edited by the user");
    }
    if let Some(edits) = version.edits {
        let tried = if version.strategy == Some(Strategy::TargetedEdit) {
            ""
        } else {
            "edits were tried first: "
        };
        let _ = write!(out, "; {tried}{}", edits.describe());
    }
    Some(out)
}

/// Summarizes the end of a run on one line.
pub fn summary(record: &RunRecord) -> String {
    let mut parts = Vec::new();
    let reason = record.convergence_reason;
    let unmet = record
        .selected()
        .and_then(unmet)
        .filter(|_| !record.success);
    match (&unmet, reason) {
        (Some(unmet), _) => parts.push(format!("criteria not met: {unmet}")),
        (None, Some(ConvergenceReason::QualityMet)) => parts.push("criteria met".to_owned()),
        (None, Some(reason)) => parts.push(reason.describe().to_owned()),
        (None, None) => {}
    }
    if let Some(selected) = record.selected() {
        let best = if unmet.is_some() { "best " } else { "" };
        let drafts = format!(
            "{best}draft {} of {}",
            selected.iteration,
            record.iterations()
        );
        // Corrections have no scores.
        if record.convergence_reason == Some(ConvergenceReason::Corrected) {
            parts.push(drafts);
        } else {
            parts.push(format!("{drafts}, {}", score(selected.score())));
            parts.extend(compared_with_first(record, selected));
        }
    }
    if let Some(reason) = reason.filter(|_| unmet.is_some()) {
        parts.push(format!("stopped: {}", reason.describe()));
    }
    parts.push(counted(record.total_llm_calls, "call"));
    match record.stopped_early {
        0 => {}
        1 => parts.push("1 reply stopped early".to_owned()),
        replies => parts.push(format!("{replies} replies stopped early")),
    }
    parts.extend(tokens(&record.token_usage));
    parts.extend(record.cost().map(cost));
    parts.extend(record.execution_time().map(duration));
    parts.join(" · ")
}

/// Compares the selected draft with the first one; `None` if there were no revisions.
fn compared_with_first(record: &RunRecord, selected: &Version) -> Option<String> {
    let first = record.versions.first()?;
    if first.iteration != selected.iteration {
        return Some(format!("first draft {}", score(first.score())));
    }
    (record.versions.len() > 1).then(|| "no revision beat the first draft".to_owned())
}

/// Formats the critique of one version: the criteria, then the issues.
pub fn critique(evaluation: &Evaluation) -> String {
    let mut out = String::new();
    let width = evaluation
        .criteria
        .iter()
        .map(|result| result.name.chars().count())
        .max()
        .unwrap_or(0);
    for result in &evaluation.criteria {
        let (mark, value) = (mark(result), value(result));
        let _ = write!(out, "  {mark} {:width$}  {value}", result.name);
        if let Some(evidence) = &result.evidence {
            let _ = write!(out, "  {}", evidence.replace('\n', " "));
        }
        if let Some(asides) = asides(result) {
            let _ = write!(out, " ({asides})");
        }
        out.push('\n');
    }
    for issue in worst_issues(evaluation, usize::MAX) {
        let _ = write!(
            out,
            "  - {}, {}: {}",
            issue.severity.as_str(),
            issue.kind.as_str(),
            issue.description
        );
        if let Some(criterion) = &issue.criterion {
            let _ = write!(out, " [{criterion}]");
        }
        if let Some(doubt) = doubt(issue) {
            let _ = write!(out, " ({doubt})");
        }
        if let Some(claim) = &issue.place.claim {
            let _ = write!(out, "\n    claim: {claim}");
        }
        if let Some(fix) = &issue.suggested_fix {
            let _ = write!(out, "\n    fix: {fix}");
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::EditCounts;

    #[test]
    fn formats_numbers() {
        assert_eq!(thousands(0), "0");
        assert_eq!(thousands(999), "999");
        assert_eq!(thousands(1000), "1,000");
        assert_eq!(thousands(12_345_678), "12,345,678");
        assert_eq!(duration(0.04), "0.0 s");
        assert_eq!(duration(59.94), "59.9 s");
        assert_eq!(duration(61.0), "1 min 01 s");
        assert_eq!(tokens(&TokenUsage::default()), None);
        let usage = TokenUsage::new(Some(1000), Some(200), Some(800));
        assert_eq!(tokens(&usage).unwrap(), "1,200 tokens (800 cached)");
    }

    #[test]
    fn describes_how_a_version_was_made() {
        let mut version = Version {
            iteration: 2,
            output: String::new(),
            based_on: None,
            strategy: None,
            edits: None,
            improvements_applied: Vec::new(),
            evaluation: None,
            timestamp: jiff::Timestamp::UNIX_EPOCH,
            token_usage: TokenUsage::default(),
            duration_ms: 0,
        };
        assert_eq!(revised(&version), None);
        version.based_on = Some(1);
        assert_eq!(
            revised(&version).unwrap(),
            "revises draft 1, edited by the user"
        );
        version.strategy = Some(Strategy::TargetedEdit);
        version.edits = Some(EditCounts {
            exact: 2,
            fuzzy: 1,
            ..EditCounts::default()
        });
        assert_eq!(
            revised(&version).unwrap(),
            "revises draft 1 by targeted_edit; 3 edits applied (2 exactly, 1 nearly)"
        );
        version.strategy = Some(Strategy::FullRewrite);
        version.edits = Some(EditCounts {
            tolerant: 1,
            failed: 2,
            ..EditCounts::default()
        });
        assert_eq!(
            revised(&version).unwrap(),
            "revises draft 1 by full_rewrite; edits were tried first: 1 edit applied (1 but for white space), 2 did not"
        );
    }
}
