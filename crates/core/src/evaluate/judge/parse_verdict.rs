//! Parses a judge's reply: the requested form, and the other forms that models write.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::question::{Question, Scale};
use super::reply::{any, number, objects, the_one, truth};
use crate::prompt::{MAX_ISSUES, SCALE};
use crate::types::{Issue, IssueType, Place, Severity};

/// Keys that hold scores per criterion.
const SCORES: [&str; 4] = ["scores", "criteria", "criteria_scores", "evaluation"];
/// Keys that models use for a score.
const SCORE: [&str; 5] = ["score", "overall_score", "quality_score", "rating", "value"];
/// Keys for whether the draft passes.
const VALID: [&str; 5] = ["valid", "pass", "passes", "passed", "satisfactory"];
/// Like [`VALID`], but only if no other key is present: next to another key, it means that a
/// verdict exists.
const SUCCESS: &str = "success";
/// Keys for yes/no answers.
const ANSWERS: [&str; 3] = ["answers", "checks", "results"];
/// Keys for issues.
const ISSUES: [&str; 3] = ["to_fix", "issues", "errors"];
/// Keys for an issue's description.
const DESCRIPTION: [&str; 6] = [
    "description",
    "message",
    "issue",
    "problem",
    "error",
    "reason",
];
/// Keys for a reason.
const REASON: [&str; 7] = [
    "analysis",
    "reason",
    "feedback",
    "evidence",
    "explanation",
    "comment",
    "rationale",
];

/// Keys of a verdict that are not about a criterion.
const OTHER: [&str; 6] = [
    "confidence",
    "suggestions",
    "analysis",
    "reason",
    "feedback",
    "comment",
];

/// The error for a reply that merely repeats the form.
const REPEATS_FORM: &str = "it repeats the form of a verdict and says nothing";

/// The placeholders for a reason in the form that the judge receives.
const FORM: [&str; 2] = ["...", "…"];

/// A parsed verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ParsedVerdict {
    /// One answer per criterion, in the requested order.
    pub(super) answers: Vec<CriterionVerdict>,
    pub(super) issues: Vec<Issue>,
    /// From 0 to 1, or `None` if the judge did not state it.
    pub(super) confidence: Option<f64>,
    /// Whether the server returned token probabilities.
    #[serde(default)]
    pub(super) has_probabilities: bool,
}

/// The judge's answer for one criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct CriterionVerdict {
    /// From 0 to 1.
    pub(super) score: f64,
    /// The judge's decision on whether the criterion is met. A refusal always counts. Approval
    /// counts only on a scale that the user defined, because the default prompt does not ask for
    /// it.
    pub(super) valid: Option<bool>,
    pub(super) reason: String,
}

/// Parses a verdict on these criteria.
///
/// Accepts fences, prose around the JSON, reasoning before it and other common forms. Rejects a
/// missing criterion or a score off the scale, because a value would have to be invented.
///
/// # Errors
/// What is wrong, worded for both the judge and people.
pub(super) fn read(reply: &str, questions: &[Question]) -> Result<ParsedVerdict, String> {
    if reply.trim().is_empty() {
        return Err("it is empty".to_owned());
    }
    let found = objects(reply)?;
    let is_form = |object: &&Map<String, Value>| {
        read_object(object, questions).is_err_and(|problem| problem == REPEATS_FORM)
    };
    let verdicts = || (found.iter()).filter(|object| is_meant_as_verdict(object, questions));
    // Models may repeat the form before they fill it in.
    let meant = the_one(verdicts().skip_while(is_form))?;
    match meant.or(verdicts().next()).or(found.last()) {
        Some(object) => read_object(object, questions),
        None => parse_word(reply, questions)
            .ok_or_else(|| "it holds no complete JSON object".to_owned()),
    }
}

/// Parses a reply that consists of a single yes or no word, as a custom prompt may request. The
/// default prompt asks for steps, so a word is not an answer there.
fn parse_word(reply: &str, questions: &[Question]) -> Option<ParsedVerdict> {
    let [question] = questions else {
        return None;
    };
    let Scale::Range(_) = question.scale else {
        return None;
    };
    let parse_word = reply
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase();
    let valid = match parse_word.as_str() {
        "valid" | "pass" | "passed" | "yes" | "true" => true,
        "invalid" | "not valid" | "fail" | "failed" | "no" | "false" => false,
        _ => return None,
    };
    Some(ParsedVerdict {
        answers: vec![CriterionVerdict {
            score: f64::from(u8::from(valid)),
            valid: Some(valid),
            reason: String::new(),
        }],
        issues: Vec::new(),
        confidence: None,
        has_probabilities: false,
    })
}

/// Returns whether an object is a verdict or part of one.
fn is_meant_as_verdict(object: &Map<String, Value>, questions: &[Question]) -> bool {
    object.keys().any(|key| {
        is_known(key)
            || ["severity", "suggested_fix"].contains(&key.as_str())
            || questions
                .iter()
                .any(|question| same_name(key, &question.name))
    })
}

/// Returns whether a key has a meaning other than the name of a criterion.
fn is_known(key: &str) -> bool {
    let known = [&SCORES[..], &SCORE, &VALID, &ANSWERS, &ISSUES];
    key == SUCCESS || known.iter().any(|keys| keys.contains(&key))
}

/// Returns the value that says whether the draft passes.
fn validity(object: &Map<String, Value>) -> Result<Option<&Value>, String> {
    let decision = any(object, &VALID)?;
    Ok(decision.or(any(object, &[SUCCESS])?))
}

fn read_object(
    object: &Map<String, Value>,
    questions: &[Question],
) -> Result<ParsedVerdict, String> {
    let mut issues = issues(object, questions)?;
    let mut answers: Vec<CriterionVerdict> = questions
        .iter()
        .map(|question| {
            let only = questions.len() == 1;
            match find(object, question, questions)? {
                Some(entry) => answer(entry, question),
                // A severe issue alone is a refusal. Minor issues alone, or none, are not an
                // approval.
                None if only && issues.iter().any(is_severe) => Ok(CriterionVerdict {
                    score: 0.0,
                    valid: Some(false),
                    reason: reason(object),
                }),
                None => Err(format!(
                    "it has no score for the criterion `{}`",
                    question.name
                )),
            }
        })
        .collect::<Result<_, String>>()?;
    // Small models repeat the form that they receive, including its scores. That is not a verdict.
    if answers
        .iter()
        .all(|answer| FORM.contains(&answer.reason.trim()))
    {
        return Err(REPEATS_FORM.to_owned());
    }
    apply_refusal(object, questions, &mut answers, &issues)?;
    if let [question] = questions {
        // With a single criterion, every issue is about it.
        for issue in &mut issues {
            issue.criterion = Some(question.name.clone());
        }
    }
    if let ([question], [answer], []) = (questions, &answers[..], &issues[..]) {
        issues = issues_from_suggestions(object, question, answer);
    }
    if issues.len() > MAX_ISSUES {
        issues.sort_by_key(|issue| std::cmp::Reverse(issue.severity));
        issues.truncate(MAX_ISSUES);
    }
    Ok(ParsedVerdict {
        answers,
        issues,
        confidence: object
            .get("confidence")
            .and_then(number)
            .filter(|value| (0.0..=1.0).contains(value)),
        has_probabilities: false,
    })
}

/// Applies a refusal of the whole draft. With a single criterion, its refusal refuses the draft.
///
/// # Errors
/// If nothing else in the verdict explains the refusal.
fn apply_refusal(
    object: &Map<String, Value>,
    questions: &[Question],
    answers: &mut [CriterionVerdict],
    issues: &[Issue],
) -> Result<(), String> {
    if validity(object)?.and_then(truth) != Some(false) {
        return Ok(());
    }
    if let [answer] = answers {
        answer.valid = Some(false);
        return Ok(());
    }
    let fails = |(answer, question): (&CriterionVerdict, &Question)| {
        answer.valid == Some(false) || answer.score < question.floor
    };
    if answers.iter().zip(questions).any(fails) || issues.iter().any(is_severe) {
        return Ok(());
    }
    Err("it refuses the draft, but none of its scores and issues does".to_owned())
}

fn is_severe(issue: &Issue) -> bool {
    issue.severity >= Severity::Major
}

/// Finds the judge's answer for one criterion, wherever it put it.
///
/// # Errors
/// If there are two different answers.
fn find<'a>(
    object: &'a Map<String, Value>,
    question: &Question,
    questions: &[Question],
) -> Result<Option<VerdictEntry<'a>>, String> {
    let means = |found: &str| {
        found == question.name
            || same_name(found, &question.name) && !questions.iter().any(|it| it.name == found)
    };
    let named = |entry: &&Value| {
        ["criterion", "name", "id"]
            .iter()
            .filter_map(|key| entry.get(key)?.as_str())
            .any(means)
    };
    let mut found: Vec<&Value> = Vec::new();
    for key in SCORES {
        match object.get(key) {
            Some(Value::Object(scores)) => {
                found.extend(scores.iter().filter(|it| means(it.0)).map(|it| it.1));
            }
            Some(Value::Array(entries)) => found.extend(entries.iter().filter(named)),
            _ => {}
        }
    }
    let nested = !found.is_empty();
    found.extend(
        object
            .iter()
            .filter(|(key, _)| {
                means(key) && !(nested && (is_known(key) || OTHER.contains(&key.as_str())))
            })
            .map(|it| it.1),
    );
    if found.iter().any(|other| *other != found[0]) {
        return Err(format!(
            "it says two different things about the criterion `{}`",
            question.name
        ));
    }
    if let Some(first) = found.first() {
        return Ok(Some(VerdictEntry::of(first)));
    }
    // With a single criterion, a verdict without a name must be about it.
    let says = [&SCORE[..], &VALID, &ANSWERS, &[SUCCESS]].concat();
    let says = says
        .iter()
        .any(|key| object.get(*key).is_some_and(|it| !it.is_null()));
    Ok((questions.len() == 1 && says).then_some(VerdictEntry::Table(object)))
}

/// The entry of one criterion.
#[derive(Clone, Copy)]
enum VerdictEntry<'a> {
    Table(&'a Map<String, Value>),
    Bare(&'a Value),
}

impl<'a> VerdictEntry<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Object(table) => Self::Table(table),
            bare => Self::Bare(bare),
        }
    }
}

fn answer(entry: VerdictEntry<'_>, question: &Question) -> Result<CriterionVerdict, String> {
    let (table, bare) = match entry {
        VerdictEntry::Table(table) => (Some(table), None),
        VerdictEntry::Bare(value) => (None, Some(value)),
    };
    let get = |keys: &[&str]| table.map_or(Ok(None), |table| any(table, keys));
    let valid = match table.map_or(Ok(None), validity)? {
        None => None,
        Some(value) => Some(truth(value).ok_or_else(|| {
            format!(
                "the verdict on `{}` is {value}, but only true and false are verdicts",
                question.name
            )
        })?),
    };
    let score = match question.scale {
        Scale::Checks(count) => {
            let answers = get(&ANSWERS)?.or(bare);
            share_of_yes(answers.unwrap_or(&Value::Null), count, &question.name)?
        }
        scale => match (get(&SCORE)?.or(bare), valid) {
            // Only a decision, without a degree.
            (None, Some(valid)) => f64::from(u8::from(valid)),
            (score, _) => scaled(score.unwrap_or(&Value::Null), scale, &question.name)?,
        },
    };
    Ok(CriterionVerdict {
        score,
        valid: valid.filter(|valid| !valid || matches!(question.scale, Scale::Range(_))),
        reason: table.map(reason).unwrap_or_default(),
    })
}

fn reason(object: &Map<String, Value>) -> String {
    REASON
        .iter()
        .find_map(|key| object.get(*key)?.as_str())
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// Returns whether a judge that wrote `found` meant `name`. Models change case, and replace hyphens
/// by spaces.
fn same_name(found: &str, name: &str) -> bool {
    let plain = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    found == name || (plain(found) == plain(name) && !plain(name).is_empty())
}

/// Converts a value on a scale to a score from 0 to 1.
fn scaled(value: &Value, scale: Scale, name: &str) -> Result<f64, String> {
    let (low, high) = match scale {
        Scale::Range(range) => {
            return number(value)
                .and_then(|score| range.share(score))
                .ok_or_else(|| {
                    format!(
                        "the score of `{name}` is {value}, but only numbers from {} to {} are scores",
                        range.low(),
                        range.high()
                    )
                });
        }
        Scale::Steps | Scale::Checks(_) => (SCALE[0].step, SCALE[SCALE.len() - 1].step),
    };
    let step = match value {
        Value::String(text) => number(&Value::from(text.trim().trim_end_matches("/5"))),
        value => number(value),
    };
    step.and_then(score_of_step).ok_or_else(|| {
        format!(
            "the score of `{name}` is {value}, but only whole numbers from {low} to {high} are scores"
        )
    })
}

/// Returns the score of a step, interpolated between whole steps. `None` off the scale.
fn score_of_step(step: f64) -> Option<f64> {
    SCALE.windows(2).find_map(|pair| {
        let (low, high) = (f64::from(pair[0].step), f64::from(pair[1].step));
        (low..=high).contains(&step).then(|| {
            let share = (step - low) / (high - low);
            pair[0].score + share * (pair[1].score - pair[0].score)
        })
    })
}

/// Returns the share of yes among the answers, all of which must be present.
fn share_of_yes(answers: &Value, count: usize, name: &str) -> Result<f64, String> {
    let one = |value: &Value| match value {
        Value::Object(table) => {
            let answer = any(table, &["answer", "value", "result"]);
            answer.ok().flatten().and_then(truth)
        }
        value => truth(value),
    };
    let found: Vec<Option<bool>> = match answers {
        Value::Array(items) => items.iter().map(one).collect(),
        // By number, or in order under other names.
        Value::Object(table) if table.contains_key("1") => (1..=count)
            .map(|number| table.get(&number.to_string()).and_then(one))
            .collect(),
        Value::Object(table) => table.values().map(one).collect(),
        _ => Vec::new(),
    };
    let yes = found.iter().filter(|answer| **answer == Some(true)).count();
    if found.len() != count || found.contains(&None) {
        return Err(format!(
            "it does not answer all {count} questions of the criterion `{name}` with true or false"
        ));
    }
    #[expect(clippy::cast_precision_loss, reason = "a handful of questions")]
    Ok(yes as f64 / count as f64)
}

/// Returns the issues of a verdict that has suggestions instead. If the criterion failed, the first
/// one is combined with the reason.
fn issues_from_suggestions(
    object: &Map<String, Value>,
    question: &Question,
    answer: &CriterionVerdict,
) -> Vec<Issue> {
    let fails =
        answer.valid == Some(false) || (answer.valid.is_none() && answer.score < question.floor);
    let suggestions: Vec<&str> = match object.get("suggestions") {
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(text)) => vec![text.as_str()],
        _ => Vec::new(),
    };
    let mut suggestions = suggestions
        .into_iter()
        .map(str::trim)
        .filter(|text| !means_no_issue(text));
    let new = |description: &str, fix: Option<&str>| Issue {
        kind: IssueType::Incorrect,
        severity: if fails {
            Severity::Major
        } else {
            Severity::Minor
        },
        description: description.to_owned(),
        suggested_fix: fix.map(str::to_owned),
        criterion: Some(question.name.clone()),
        place: Place::default(),
    };
    let mut issues = Vec::new();
    if fails && answer.valid == Some(false) && !answer.reason.is_empty() {
        issues.push(new(&answer.reason, suggestions.next()));
    }
    issues.extend(suggestions.map(|text| new(text, Some(text))));
    issues
}

/// Returns whether a judge wrote "no issues" in place of an issue.
fn means_no_issue(text: &str) -> bool {
    let plain: String = text
        .chars()
        .filter(|c| c.is_alphanumeric() || *c == ' ')
        .flat_map(char::to_lowercase)
        .collect();
    matches!(
        plain.trim(),
        "" | "none" | "na" | "null" | "nothing" | "no issue" | "no issues" | "no issues found"
    )
}

/// Parses the issues of a verdict, under any of their names.
///
/// # Errors
/// If they cannot be parsed, because a lost issue might be severe.
fn issues(object: &Map<String, Value>, questions: &[Question]) -> Result<Vec<Issue>, String> {
    let mut found = Vec::new();
    for key in ISSUES {
        let items = match object.get(key) {
            None => continue,
            Some(Value::Array(items)) => &items[..],
            Some(single) => std::slice::from_ref(single),
        };
        for item in items {
            match item {
                Value::Null => {}
                Value::String(_) | Value::Object(_) => found.extend(issue(item, questions)?),
                _ => {
                    return Err(format!(
                        "`{key}` holds {item}, but only objects with a description are issues"
                    ));
                }
            }
        }
    }
    Ok(found)
}

/// Parses an issue. Returns `None` if it is empty. An unknown severity counts as severe, so that a
/// judge's slip does not let a draft pass.
fn issue(item: &Value, questions: &[Question]) -> Result<Option<Issue>, String> {
    let text = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| item.get(key)?.as_str())
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let is_none = text(&["severity"]).is_some_and(|severity| means_no_issue(&severity));
    let description = match item {
        Value::String(text) => Some(text.trim()),
        Value::Object(fields) if fields.is_empty() || is_none => None,
        _ => Some(
            DESCRIPTION
                .iter()
                .find_map(|key| item.get(key)?.as_str())
                .ok_or_else(|| format!("the issue {item} has no description"))?
                .trim(),
        ),
    };
    let Some(description) = description.filter(|text| !means_no_issue(text)) else {
        return Ok(None);
    };
    let kind = match text(&["type", "kind"])
        .map(|kind| kind.to_lowercase())
        .as_deref()
    {
        Some("missing") => IssueType::Missing,
        Some("unsupported") => IssueType::Unsupported,
        _ => IssueType::Incorrect,
    };
    let severity = match text(&["severity"]).map(|s| s.to_lowercase()).as_deref() {
        Some("minor" | "low") => Severity::Minor,
        Some("critical" | "blocker") => Severity::Critical,
        _ => Severity::Major,
    };
    let named = text(&["criterion"]);
    let criterion = named.as_ref().and_then(|found| {
        questions
            .iter()
            .find(|question| same_name(found, &question.name))
            .map(|question| question.name.clone())
    });
    // Other evaluators decide criteria that the judge was not asked about.
    let severity = match (&named, &criterion) {
        (Some(_), None) => Severity::Minor,
        _ => severity,
    };
    Ok(Some(Issue {
        kind,
        severity,
        description: description.to_owned(),
        suggested_fix: text(&["suggested_fix", "suggestion", "fix"]),
        criterion,
        place: Place {
            // If nothing supports the text, the quote is the claim.
            claim: text(&["claim", "quote"])
                .filter(|claim| kind == IssueType::Unsupported && !means_no_issue(claim)),
            quote: text(&["quote", "evidence", "excerpt"]).filter(|quote| !means_no_issue(quote)),
            ..Place::default()
        },
    }))
}

#[cfg(test)]
#[path = "parse_verdict_tests.rs"]
mod tests;
