//! Reading a judge's reply: what it asks for, and all that models write instead.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::question::{Question, Scale};
use super::reply::{any, number, objects, the_one, truth};
use crate::prompt::{MAX_ISSUES, SCALE};
use crate::types::{Issue, IssueType, Place, Severity};

/// Keys under which scores per criterion stand.
const SCORES: [&str; 4] = ["scores", "criteria", "criteria_scores", "evaluation"];
/// Keys that models use for a score.
const SCORE: [&str; 5] = ["score", "overall_score", "quality_score", "rating", "value"];
/// Keys of a word on whether the draft is good enough.
const VALID: [&str; 5] = ["valid", "pass", "passes", "passed", "satisfactory"];
/// The same, unless another key says it: in verdicts that have both, it says that there is a verdict.
const SUCCESS: &str = "success";
/// Keys of answers of yes or no.
const ANSWERS: [&str; 3] = ["answers", "checks", "results"];
/// Keys of issues.
const ISSUES: [&str; 3] = ["to_fix", "issues", "errors"];
/// Keys of what an issue is.
const DESCRIPTION: [&str; 6] = [
    "description",
    "message",
    "issue",
    "problem",
    "error",
    "reason",
];
/// Keys of a reason.
const REASON: [&str; 7] = [
    "analysis",
    "reason",
    "feedback",
    "evidence",
    "explanation",
    "comment",
    "rationale",
];

/// Keys of a verdict that say nothing of a criterion.
const OTHER: [&str; 6] = [
    "confidence",
    "suggestions",
    "analysis",
    "reason",
    "feedback",
    "comment",
];

/// Why a verdict is refused that is the form itself.
const REPEATS_FORM: &str = "it repeats the form of a verdict and says nothing";

/// What stands for a reason in the form that the judge is shown, and how models write it.
const FORM: [&str; 2] = ["...", "…"];

/// A verdict that could be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Verdict {
    /// One for each criterion, in the order asked for.
    pub(super) answers: Vec<Answer>,
    pub(super) issues: Vec<Issue>,
    /// 0 to 1; `None` if the judge did not say.
    pub(super) confidence: Option<f64>,
    /// Whether the server gave the probabilities of the judge's words.
    #[serde(default)]
    pub(super) has_probabilities: bool,
}

/// What the judge says of one criterion.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Answer {
    /// 0 to 1.
    pub(super) score: f64,
    /// Its word on whether the criterion is met, where that counts: a refusal always, approval only on a scale
    /// that the user has brought along. On our own scale nobody asks for it.
    pub(super) valid: Option<bool>,
    pub(super) reason: String,
}

/// Reads a verdict on these criteria.
///
/// Fences, prose around the JSON, reasoning before it and other common forms are accepted; a missing criterion
/// or a score that is not on the scale is not, for both would have to be made up.
///
/// # Errors
/// What is wrong, to be told to the judge and to people.
pub(super) fn read(reply: &str, questions: &[Question]) -> Result<Verdict, String> {
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
        None => word(reply, questions).ok_or_else(|| "it holds no complete JSON object".to_owned()),
    }
}

/// A reply that is one word of judgement and nothing else, as an answer to a prompt of the user's own may well
/// be. Our own prompt asks for steps, and one word is no step.
fn word(reply: &str, questions: &[Question]) -> Option<Verdict> {
    let [question] = questions else {
        return None;
    };
    let Scale::Range(_) = question.scale else {
        return None;
    };
    let word = reply
        .trim_matches(|c: char| !c.is_alphanumeric())
        .to_lowercase();
    let valid = match word.as_str() {
        "valid" | "pass" | "passed" | "yes" | "true" => true,
        "invalid" | "not valid" | "fail" | "failed" | "no" | "false" => false,
        _ => return None,
    };
    Some(Verdict {
        answers: vec![Answer {
            score: f64::from(u8::from(valid)),
            valid: Some(valid),
            reason: String::new(),
        }],
        issues: Vec::new(),
        confidence: None,
        has_probabilities: false,
    })
}

/// Whether an object is a verdict or a part of one.
fn is_meant_as_verdict(object: &Map<String, Value>, questions: &[Question]) -> bool {
    object.keys().any(|key| {
        is_known(key)
            || ["severity", "suggested_fix"].contains(&key.as_str())
            || questions
                .iter()
                .any(|question| same_name(key, &question.name))
    })
}

/// Whether a key of a verdict has a meaning that is not the name of a criterion.
fn is_known(key: &str) -> bool {
    let known = [&SCORES[..], &SCORE, &VALID, &ANSWERS, &ISSUES];
    key == SUCCESS || known.iter().any(|keys| keys.contains(&key))
}

/// What it says on whether the draft is good enough.
fn validity(object: &Map<String, Value>) -> Result<Option<&Value>, String> {
    let said = any(object, &VALID)?;
    Ok(said.or(any(object, &[SUCCESS])?))
}

fn read_object(object: &Map<String, Value>, questions: &[Question]) -> Result<Verdict, String> {
    let mut issues = issues(object, questions)?;
    let mut answers: Vec<Answer> = questions
        .iter()
        .map(|question| {
            let only = questions.len() == 1;
            match find(object, question, questions)? {
                Some(entry) => answer(entry, question),
                // Nothing but a severe issue: that is a refusal. Nothing but small ones, or none, is no approval.
                None if only && issues.iter().any(is_severe) => Ok(Answer {
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
    // Small models give back the form that they are shown, its scores and all. That is no verdict.
    if answers
        .iter()
        .all(|answer| FORM.contains(&answer.reason.trim()))
    {
        return Err(REPEATS_FORM.to_owned());
    }
    refuse(object, questions, &mut answers, &issues)?;
    if let [question] = questions {
        // It can be about no other.
        for issue in &mut issues {
            issue.criterion = Some(question.name.clone());
        }
    }
    if let ([question], [answer], []) = (questions, &answers[..], &issues[..]) {
        issues = of_suggestions(object, question, answer);
    }
    if issues.len() > MAX_ISSUES {
        issues.sort_by_key(|issue| std::cmp::Reverse(issue.severity));
        issues.truncate(MAX_ISSUES);
    }
    Ok(Verdict {
        answers,
        issues,
        confidence: object
            .get("confidence")
            .and_then(number)
            .filter(|value| (0.0..=1.0).contains(value)),
        has_probabilities: false,
    })
}

/// Applies a refusal of the draft as a whole. The refusal of one criterion is that of the draft.
///
/// # Errors
/// If nothing else in the verdict is a reason for it.
fn refuse(
    object: &Map<String, Value>,
    questions: &[Question],
    answers: &mut [Answer],
    issues: &[Issue],
) -> Result<(), String> {
    if validity(object)?.and_then(truth) != Some(false) {
        return Ok(());
    }
    if let [answer] = answers {
        answer.valid = Some(false);
        return Ok(());
    }
    let fails = |(answer, question): (&Answer, &Question)| {
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

/// What the judge says of one criterion, wherever it has put that.
///
/// # Errors
/// If it says two different things.
fn find<'a>(
    object: &'a Map<String, Value>,
    question: &Question,
    questions: &[Question],
) -> Result<Option<Entry<'a>>, String> {
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
        return Ok(Some(Entry::of(first)));
    }
    // One criterion only: a verdict that does not name it can mean no other.
    let says = [&SCORE[..], &VALID, &ANSWERS, &[SUCCESS]].concat();
    let says = says
        .iter()
        .any(|key| object.get(*key).is_some_and(|it| !it.is_null()));
    Ok((questions.len() == 1 && says).then_some(Entry::Table(object)))
}

/// What stands for one criterion.
#[derive(Clone, Copy)]
enum Entry<'a> {
    Table(&'a Map<String, Value>),
    Bare(&'a Value),
}

impl<'a> Entry<'a> {
    fn of(value: &'a Value) -> Self {
        match value {
            Value::Object(table) => Self::Table(table),
            bare => Self::Bare(bare),
        }
    }
}

fn answer(entry: Entry<'_>, question: &Question) -> Result<Answer, String> {
    let (table, bare) = match entry {
        Entry::Table(table) => (Some(table), None),
        Entry::Bare(value) => (None, Some(value)),
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
            // It says whether, and not how much.
            (None, Some(valid)) => f64::from(u8::from(valid)),
            (score, _) => scaled(score.unwrap_or(&Value::Null), scale, &question.name)?,
        },
    };
    Ok(Answer {
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

/// Whether a judge that wrote `found` meant `name`: models change case, and put spaces for hyphens.
fn same_name(found: &str, name: &str) -> bool {
    let plain = |text: &str| {
        text.chars()
            .filter(|c| c.is_alphanumeric())
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    found == name || (plain(found) == plain(name) && !plain(name).is_empty())
}

/// The score, 0 to 1, of what was written on a scale.
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

/// The score of a step of the scale; steps between two are interpolated. `None` off the scale.
fn score_of_step(step: f64) -> Option<f64> {
    SCALE.windows(2).find_map(|pair| {
        let (low, high) = (f64::from(pair[0].step), f64::from(pair[1].step));
        (low..=high).contains(&step).then(|| {
            let share = (step - low) / (high - low);
            pair[0].score + share * (pair[1].score - pair[0].score)
        })
    })
}

/// The share of yes among the answers, which must all be there.
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
        // By number; or, under other names, in order.
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

/// The issues of a verdict that has suggestions instead: if the criterion is not met, the
/// first one goes with the reason.
fn of_suggestions(object: &Map<String, Value>, question: &Question, answer: &Answer) -> Vec<Issue> {
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
        .filter(|text| !says_nothing(text));
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

/// Whether a judge wrote that there is no issue where one would stand.
fn says_nothing(text: &str) -> bool {
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

/// The issues of a verdict, under any of their names.
///
/// # Errors
/// If they cannot be read as issues. What is lost might be severe.
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

/// An issue; `None` if it says nothing. What cannot be read of it is taken to be severe, so that a
/// judge's slip does not make a draft pass.
fn issue(item: &Value, questions: &[Question]) -> Result<Option<Issue>, String> {
    let text = |keys: &[&str]| {
        keys.iter()
            .find_map(|key| item.get(key)?.as_str())
            .map(|text| text.trim().to_owned())
            .filter(|text| !text.is_empty())
    };
    let is_none = text(&["severity"]).is_some_and(|severity| says_nothing(&severity));
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
    let Some(description) = description.filter(|text| !says_nothing(text)) else {
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
    // A criterion that the judge was not asked about is decided elsewhere.
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
            // What is quoted where nothing backs it is the claim.
            claim: text(&["claim", "quote"])
                .filter(|claim| kind == IssueType::Unsupported && !says_nothing(claim)),
            quote: text(&["quote", "evidence", "excerpt"]).filter(|quote| !says_nothing(quote)),
            ..Place::default()
        },
    }))
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
