use std::fmt::Write as _;

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::Finding;
use crate::types::{Criteria, CriterionResult, Evaluation, Issue, Severity, Status};

/// Combines the findings, which are in the order of the criteria, into one evaluation.
///
/// A draft is satisfactory if every criterion has a verdict, the weighted mean reaches the
/// threshold, every score reaches its floor, and no issue is major or critical. The rule alone
/// decides; no model can override it.
pub(super) fn aggregate(
    criteria: &Criteria,
    findings: Vec<Finding>,
    judge_issues: Vec<Issue>,
    confidence: Option<f64>,
) -> Evaluation {
    let weights: Vec<f64> = criteria
        .criteria
        .iter()
        .zip(&findings)
        .map(|(criterion, finding)| criterion.weight * finding.weight)
        .collect();
    let spread = overall_spread(&weights, &findings);
    let mut issues = Vec::new();
    let mut results = Vec::with_capacity(findings.len());
    for (criterion, finding) in criteria.criteria.iter().zip(findings) {
        let passed = finding.passes(criterion);
        let found = finding.issues;
        issues.extend(
            found
                .into_iter()
                .map(|issue| issue.into_issue(&criterion.name, passed)),
        );
        results.push(CriterionResult {
            name: criterion.name.clone(),
            evaluator: criterion.evaluator.kind().to_owned(),
            score: finding.score,
            threshold: criterion.threshold,
            passed,
            required: criterion.required,
            status: finding.status,
            evidence: Some(finding.evidence).filter(|text| !text.is_empty()),
            value: finding.value,
            spread: range(finding.samples.into_iter().flatten()),
            cached: finding.cached,
        });
    }
    issues.extend(judge_issues);
    let mut issues = merge_issues(issues);
    // The sort is stable: at equal severity, issues of hard checks come first, because they are
    // certain.
    issues.sort_by_key(|issue| std::cmp::Reverse(issue.severity));

    let overall_score = weighted_mean(&weights, results.iter().map(|result| result.score));
    // Skipped criteria do not affect the status: a required criterion has failed already.
    let status = results
        .iter()
        .map(|result| result.status)
        .find(|status| !matches!(status, Status::Ok | Status::Skipped))
        .unwrap_or_default();
    let satisfactory = status == Status::Ok
        && overall_score.is_some_and(|score| score >= criteria.threshold)
        && results.iter().all(|result| result.passed)
        && issues.iter().all(|issue| issue.severity < Severity::Major);
    Evaluation {
        overall_score,
        criteria_scores: results
            .iter()
            .map(|result| (result.name.clone(), result.score))
            .collect(),
        satisfactory,
        suggestions: issues
            .iter()
            .filter_map(|issue| issue.suggested_fix.clone())
            .collect(),
        issues,
        confidence,
        status,
        spread,
        criteria: results,
        flaw: None,
    }
}

/// Merges equal issues into one, with the highest severity and a count. Models, and checks that
/// look at several places, often report the same issue repeatedly.
fn merge_issues(issues: Vec<Issue>) -> Vec<Issue> {
    let mut distinct: IndexMap<_, (Issue, u32)> = IndexMap::new();
    for issue in issues {
        let plain = |text: &str| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").trim_end_matches('.').to_lowercase()
        };
        let quote = issue.place.quote.as_deref().map(plain);
        let key = (
            issue.criterion.clone(),
            issue.kind,
            plain(&issue.description),
            quote,
            issue.place.path.clone(),
        );
        match distinct.entry(key) {
            Entry::Occupied(mut known) => {
                let (first, count) = known.get_mut();
                first.severity = first.severity.max(issue.severity);
                first.suggested_fix = first.suggested_fix.take().or(issue.suggested_fix);
                *count += 1;
            }
            Entry::Vacant(new) => drop(new.insert((issue, 1))),
        }
    }
    let counted = distinct.into_values().map(|(mut issue, count)| {
        if count > 1 {
            let _ = write!(issue.description, " ({count} times)");
        }
        issue
    });
    counted.collect()
}

/// Returns the weighted mean of the known scores, rounded to six decimals so that sums of equal
/// terms compare equal.
fn weighted_mean(weights: &[f64], scores: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut sum = 0.0;
    let mut total = 0.0;
    for (weight, score) in weights.iter().zip(scores) {
        if let Some(score) = score {
            sum += weight * score;
            total += weight;
        }
    }
    (total > 0.0).then(|| rounded(sum / total))
}

/// Returns the highest minus the lowest overall score, each computed from one sample of every
/// criterion. A criterion without samples contributes its single score to all. `None` if fewer than
/// two samples exist.
fn overall_spread(weights: &[f64], findings: &[Finding]) -> Option<f64> {
    let samples = findings.iter().map(|f| f.samples.len()).max()?;
    range((0..samples).filter_map(|sample| {
        let scores: Option<Vec<f64>> = findings
            .iter()
            .map(|finding| match finding.samples.get(sample) {
                Some(score) => *score,
                None => finding.score,
            })
            .collect();
        weighted_mean(weights, scores?.into_iter().map(Some))
    }))
}

/// Returns the highest minus the lowest value, or `None` for fewer than two.
fn range(scores: impl Iterator<Item = f64>) -> Option<f64> {
    let scores: Vec<f64> = scores.collect();
    let highest = scores.iter().copied().max_by(f64::total_cmp)?;
    let lowest = scores.iter().copied().min_by(f64::total_cmp)?;
    (scores.len() > 1).then(|| rounded(highest - lowest))
}

fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::evaluate::CheckIssue;
    use crate::types::{Criterion, Evaluator, IssueType, LlmConfig, Place};

    fn criteria(weights: &[f64]) -> Criteria {
        Criteria::new(
            "test",
            weights
                .iter()
                .enumerate()
                .map(|(number, weight)| Criterion {
                    name: format!("c{number}"),
                    description: String::new(),
                    weight: *weight,
                    threshold: 0.7,
                    required: false,
                    evaluator: Evaluator::Llm(LlmConfig::default()),
                })
                .collect(),
        )
    }

    fn finding(score: Option<f64>) -> Finding {
        match score {
            Some(score) => Finding::graded(score, ""),
            None => Finding::none(Status::Unparsed, ""),
        }
    }

    #[test]
    fn equal_issues_are_one_with_a_count() {
        let issue = |severity, description: &str, quote: &str, fix: Option<&str>| Issue {
            kind: IssueType::Incorrect,
            severity,
            description: description.to_owned(),
            suggested_fix: fix.map(str::to_owned),
            criterion: Some("c0".to_owned()),
            place: Place {
                quote: Some(quote.to_owned()),
                ..Place::default()
            },
        };
        let issues = vec![
            issue(Severity::Minor, "Filler.", "very", None),
            issue(Severity::Minor, "Filler.", "really", None),
            issue(Severity::Major, "filler", "very ", Some("Cut it.")),
            issue(Severity::Minor, "Filler.", "very", Some("Drop it.")),
        ];
        let result = aggregate(&criteria(&[1.0]), vec![finding(Some(1.0))], issues, None);
        let descriptions: Vec<_> = (result.issues.iter())
            .map(|it| {
                (
                    it.severity,
                    it.description.as_str(),
                    it.suggested_fix.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            descriptions,
            [
                (Severity::Major, "Filler. (3 times)", Some("Cut it.")),
                (Severity::Minor, "Filler.", None),
            ]
        );
    }

    fn judge_issue(severity: Severity) -> Issue {
        Issue {
            kind: IssueType::Missing,
            severity,
            // The severity is part of the text, so that the issues differ.
            description: severity.as_str().to_owned(),
            suggested_fix: None,
            criterion: None,
            place: Place::default(),
        }
    }

    fn scores(scores: &[f64]) -> Vec<Finding> {
        scores.iter().map(|score| finding(Some(*score))).collect()
    }

    #[test]
    fn weights_count() {
        let evaluation = aggregate(&criteria(&[3.0, 1.0]), scores(&[1.0, 0.8]), vec![], None);
        assert_eq!(evaluation.overall_score, Some(0.95));
        assert!(evaluation.satisfactory);
    }

    #[test]
    fn a_floor_is_not_outweighed() {
        let evaluation = aggregate(&criteria(&[9.0, 1.0]), scores(&[1.0, 0.69]), vec![], None);
        assert!(evaluation.overall_score.unwrap() > 0.9);
        assert!(!evaluation.satisfactory);
    }

    #[test]
    fn the_threshold_itself_is_enough() {
        let evaluation = aggregate(
            &criteria(&[1.0, 1.0, 1.0]),
            scores(&[0.8, 0.8, 0.8]),
            vec![],
            None,
        );
        assert!(evaluation.satisfactory, "{evaluation:?}");
    }

    #[test]
    fn a_major_issue_is_enough_to_fail_and_a_minor_one_is_not() {
        let with = |severity| {
            aggregate(
                &criteria(&[1.0]),
                scores(&[1.0]),
                vec![judge_issue(severity)],
                None,
            )
            .satisfactory
        };
        assert!(with(Severity::Minor));
        assert!(!with(Severity::Major));
        assert!(!with(Severity::Critical));
    }

    #[test]
    fn a_missing_verdict_is_left_out_of_the_mean_and_is_no_pass() {
        let findings = vec![finding(Some(0.9)), finding(None)];
        let evaluation = aggregate(&criteria(&[1.0, 1.0]), findings, vec![], None);
        assert_eq!(evaluation.overall_score, Some(0.9));
        assert_eq!(evaluation.status, Status::Unparsed);
        assert_eq!(evaluation.rank(), None);
        assert!(!evaluation.satisfactory);
        assert_eq!(evaluation.criteria_scores["c0"], Some(0.9));
        assert_eq!(evaluation.criteria_scores["c1"], None);
    }

    #[test]
    fn an_evaluators_own_word_goes_before_its_score() {
        let says = |valid| {
            let finding = Finding {
                valid: Some(valid),
                ..Finding::graded(if valid { 0.1 } else { 0.9 }, "")
            };
            aggregate(&criteria(&[1.0]), vec![finding], vec![], None).criteria[0].passed
        };
        assert!(says(true));
        assert!(!says(false));
    }

    #[test]
    fn what_was_skipped_leaves_the_verdict_on_the_rest_standing() {
        let mut criteria = criteria(&[1.0, 1.0]);
        criteria.criteria[0].required = true;
        let findings = vec![
            finding(Some(0.2)),
            Finding::none(Status::Skipped, "c0 is required"),
        ];
        let evaluation = aggregate(&criteria, findings, vec![], None);
        assert_eq!(evaluation.status, Status::Ok);
        assert_eq!(evaluation.overall_score, Some(0.2));
        assert!(!evaluation.satisfactory && !evaluation.required_met());
    }

    #[test]
    fn certain_faults_come_before_opinions_of_the_same_severity() {
        let issue = CheckIssue::new(IssueType::Incorrect, "hard").fix("fix it");
        let failed = Finding::graded(0.0, "").with_issues([issue]);
        let issues = vec![
            judge_issue(Severity::Minor),
            judge_issue(Severity::Major),
            judge_issue(Severity::Critical),
        ];
        let evaluation = aggregate(&criteria(&[1.0]), vec![failed], issues, None);
        let order: Vec<_> = evaluation
            .issues
            .iter()
            .map(|i| (i.severity, i.description.as_str()))
            .collect();
        assert_eq!(
            order,
            [
                (Severity::Critical, "critical"),
                (Severity::Major, "hard"),
                (Severity::Major, "major"),
                (Severity::Minor, "minor"),
            ]
        );
        assert_eq!(evaluation.suggestions, ["fix it"]);
    }

    #[test]
    fn samples_have_a_spread_each_and_together() {
        let sampled = |samples: [f64; 3], median| Finding {
            samples: samples.map(Some).to_vec(),
            ..Finding::graded(median, "")
        };
        let findings = vec![
            sampled([0.6, 0.85, 1.0], 0.85),
            sampled([1.0, 0.85, 0.6], 0.85),
            Finding::graded(0.5, "hard"),
        ];
        let evaluation = aggregate(&criteria(&[1.0, 1.0, 2.0]), findings, vec![], None);
        assert_eq!(evaluation.criteria[0].spread, Some(0.4));
        assert_eq!(evaluation.criteria[2].spread, None);
        // The first and third samples balance out: (0.6 + 1 + 2 * 0.5) / 4 and (0.85 + 0.85 + 1) /
        // 4.
        assert_eq!(evaluation.spread, Some(0.025));
        let single = aggregate(&criteria(&[1.0]), scores(&[0.7]), vec![], None);
        assert_eq!((single.spread, single.criteria[0].spread), (None, None));
    }

    #[test]
    fn a_judge_that_is_not_trusted_weighs_less() {
        let distrusted = Finding {
            weight: 0.25,
            ..Finding::graded(1.0, "")
        };
        let findings = vec![distrusted, Finding::graded(0.5, "")];
        let evaluation = aggregate(&criteria(&[1.0, 1.0]), findings, vec![], None);
        assert_eq!(evaluation.overall_score, Some(0.6));
    }

    proptest! {
        #[test]
        fn the_mean_lies_between_the_lowest_and_the_highest(
            pairs in prop::collection::vec((0.01f64..100.0, 0.0f64..=1.0), 1..8)
        ) {
            let weights: Vec<f64> = pairs.iter().map(|p| p.0).collect();
            let values: Vec<f64> = pairs.iter().map(|p| p.1).collect();
            let mean = aggregate(&criteria(&weights), scores(&values), vec![], None).overall_score.unwrap();
            let low = values.iter().copied().fold(f64::INFINITY, f64::min);
            let high = values.iter().copied().fold(0.0, f64::max);
            prop_assert!(mean >= low - 1e-6 && mean <= high + 1e-6);
        }
    }
}
