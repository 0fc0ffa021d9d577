//! Suggestions of a model about the outcome of a plan. The model only suggests; rules decide the
//! verdict.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::json_text::scan;
use super::judge::JudgeModel;
use crate::model::{CallObserver, ChatRequest, EndReason, Message, Purpose, ResponseSchema, call};
use crate::prompt;
use crate::reflector::{Assessment, Episode, PlanAssessment};
use crate::text::{clip, one_line};

/// The maximum number of suggestions to request and accept.
const MOST: usize = 5;

/// The maximum number of tasks in the prompt (tasks with issues first), and the maximum length of
/// each line in characters.
const MOST_TASKS: usize = 40;
const MOST_LINE: usize = 300;

/// The maximum number of tokens of a reply.
const CAP: u32 = 1024;

/// Returns the messages of the request, also used to estimate its length.
pub fn advice_prompt(episode: &Episode, assessment: &PlanAssessment) -> Vec<Message> {
    prompt::advise(&outcome(episode, assessment), &found(assessment), MOST)
}

/// Asks a model once what would make the next run of a plan succeed.
///
/// # Errors
/// A sentence, if the model fails or its reply contains no suggestions that can be parsed.
pub async fn advise(
    episode: &Episode,
    assessment: &PlanAssessment,
    model: &JudgeModel,
    observer: &dyn CallObserver,
) -> Result<Vec<String>, String> {
    let mut request = ChatRequest::new(Purpose::Judge, advice_prompt(episode, assessment));
    request.sampling = model.sampling.clone();
    request.sampling.max_tokens.get_or_insert(CAP);
    request.think = model.think;
    request.schema = Some(Arc::new(ResponseSchema::new(
        "advice",
        json!({
            "type": "object",
            "properties": {
                "suggestions": { "type": "array", "items": { "type": "string" } }
            },
            "required": ["suggestions"],
            "additionalProperties": false,
        }),
    )));
    let reply = call(&*model.model, request, observer)
        .await
        .map_err(|error| format!("cannot get suggestions from the model: {error}"))?;
    match reply.end {
        Some(EndReason::Refused(why)) => Err(format!("the model refused: {why}")),
        Some(EndReason::Repetition) => Err("the model's reply loops".to_owned()),
        _ => suggestions(&reply.text)
            .ok_or_else(|| "the model's reply contains no readable suggestions".to_owned()),
    }
}

/// Parses suggestions: JSON in any wrapping, or else a numbered or bulleted list. `None` for
/// anything else.
fn suggestions(reply: &str) -> Option<Vec<String>> {
    let found = scan(reply).found;
    let listed = found.iter().rev().find_map(|found| match &found.value {
        Value::Array(items) => Some(items),
        value => value.get("suggestions")?.as_array(),
    });
    let texts: Vec<String> = match listed {
        Some(items) => items.iter().filter_map(text).map(tidy).collect(),
        // A broken JSON object is not a list, even if it contains dashes.
        None if reply.trim_start().starts_with(['{', '[']) => return None,
        None => reply.lines().filter_map(item).map(tidy).collect(),
    };
    if listed.is_none() && texts.is_empty() {
        return None;
    }
    let suggestions = texts.into_iter().filter(|text| !text.is_empty());
    Some(suggestions.take(MOST).collect())
}

/// Returns the text of a suggestion, which some models write as an object.
fn text(item: &Value) -> Option<&str> {
    ["suggestion", "text", "description", "action"]
        .iter()
        .find_map(|key| item.get(key)?.as_str())
        .or_else(|| item.as_str())
}

/// Returns the text of a list item without its marker.
fn item(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix(['-', '*', '•']) {
        return rest.strip_prefix(' ');
    }
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if rest.len() == line.len() {
        return None;
    }
    rest.strip_prefix(['.', ')'])
}

fn tidy(text: &str) -> String {
    line_of(&text.replace("**", ""))
}

fn line_of(text: &str) -> String {
    clip(&one_line(text), MOST_LINE)
}

/// Describes the plan and its outcome, one line per task.
fn outcome(episode: &Episode, assessment: &PlanAssessment) -> String {
    let plan = &episode.plan;
    let mut out = format!(
        "The plan `{}`: {} of {} tasks were done, {} failed, {} did not come to an end.",
        line_of(&plan.id),
        assessment.succeeded,
        assessment.total,
        assessment.failed,
        assessment.incomplete
    );
    if let Some(goal) = &plan.goal {
        let _ = write!(out, "\nIts goal: {}", line_of(goal));
    }
    let judged = plan.tasks.iter().zip(&assessment.tasks);
    let good = |verdict: &Assessment| verdict.success;
    let (fine, wrong): (Vec<_>, Vec<_>) = judged.partition(|(_, verdict)| good(verdict));
    let all = fine.len() + wrong.len();
    for (task, verdict) in wrong.into_iter().chain(fine).take(MOST_TASKS) {
        let tool = task
            .tool
            .as_ref()
            .map_or(String::new(), |tool| format!(" with `{tool}`"));
        let after = match task.depends_on.as_slice() {
            [] => String::new(),
            before => format!(", after {}", before.join(", ")),
        };
        let state = if verdict.success {
            "done"
        } else {
            "not as it should be"
        };
        let line = format!("`{}`{tool}{after}: {state}. {}", task.id, task.description);
        let _ = write!(out, "\n- {}", line_of(&line));
        for issue in &verdict.issues {
            let _ = write!(out, "\n  {}", line_of(issue));
        }
    }
    if all > MOST_TASKS {
        let _ = write!(out, "\n- and {} more tasks", all - MOST_TASKS);
    }
    out
}

/// Describes what the rules found.
fn found(assessment: &PlanAssessment) -> String {
    let patterns = assessment
        .patterns
        .iter()
        .map(|pattern| &pattern.description);
    let all: Vec<String> = patterns
        .chain(&assessment.verdict.suggestions)
        .take(MOST_TASKS)
        .map(|text| format!("- {}", line_of(text)))
        .collect();
    if all.is_empty() {
        return "Nothing.".to_owned();
    }
    all.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn suggestions_are_read_in_whatever_form() {
        let some = |texts: &[&str]| Some(texts.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            suggestions(r#"{"suggestions": ["a", " b  c "]}"#),
            some(&["a", "b c"])
        );
        assert_eq!(
            suggestions("Sure:\n```json\n{\"suggestions\": [{\"text\": \"a\"}]}\n```"),
            some(&["a"])
        );
        assert_eq!(suggestions("[\"a\"]"), some(&["a"]));
        assert_eq!(suggestions("{\"suggestions\": []}"), some(&[]));
        assert_eq!(
            suggestions("Here:\n1. **Split** it\n2) Wait\n- then\n3 cows"),
            some(&["Split it", "Wait", "then"])
        );
        assert_eq!(suggestions("I would rather not."), None);
        assert_eq!(suggestions("{\"suggestions\": [\"a\","), None);
        let many = format!("{{\"suggestions\": {:?}}}", vec!["x"; 40]);
        assert_eq!(suggestions(&many).map(|texts| texts.len()), Some(MOST));
    }

    proptest! {
        #[test]
        fn any_reply_is_read(reply in r#"([{}\[\]":,0-9.\-*) \n]|é|suggestions|text){0,40}"#) {
            if let Some(texts) = suggestions(&reply) {
                prop_assert!(texts.len() <= MOST);
            }
        }
    }
}
