//! `IFEval` (Zhou et al. 2023): its instructions as criteria that match the official checkers.
//! Instructions whose checkers rely on trained models (sentences, words in capitals, languages)
//! have no exact equivalent.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::sets::{Published, SetError, TaskLines};

/// The official data, pinned to the revision of its publication.
pub(super) const PUBLISHED: Published = Published {
    host: "https://raw.githubusercontent.com",
    path: "/google-research/google-research/19638399cc9e03623c5b9087a1d6fa8813974ce9/\
           instruction_following_eval/data/input_data.jsonl",
    licence: "Apache-2.0",
    file: "ifeval.jsonl",
};

/// Matches a single JSON object or array, with an optional code fence.
const JSON_ALONE: &str = r"(?s)\A\s*(?:```(?:json|Json|JSON)?\s*)?[\[{].*[\]}]\s*(?:```)?\s*\z";

#[derive(Deserialize)]
struct Prompt {
    key: u64,
    #[serde(rename = "prompt")]
    text: String,
    instruction_id_list: Vec<String>,
    kwargs: Vec<Map<String, Value>>,
}

/// Converts the official data to tasks.
///
/// # Errors
/// If the data has another format.
pub(super) fn translate(published: &str) -> Result<TaskLines, SetError> {
    let mut lines = TaskLines::default();
    let mut skipped: BTreeMap<String, usize> = BTreeMap::new();
    for (number, line) in published.lines().enumerate() {
        let prompt: Prompt = serde_json::from_str(line).map_err(|source| SetError {
            line: number + 1,
            source,
        })?;
        match prompt.criteria() {
            Ok(criteria) => {
                let task = json!({"id": prompt.key, "prompt": prompt.text, "criteria": criteria});
                lines.text.push_str(&task.to_string());
                lines.text.push('\n');
            }
            Err(instruction) => *skipped.entry(instruction).or_default() += 1,
        }
    }
    lines.skipped = skipped.into_iter().collect();
    Ok(lines)
}

impl Prompt {
    /// Returns the criteria, or the first instruction without an equivalent as the error.
    fn criteria(&self) -> Result<Value, String> {
        let pairs = self.instruction_id_list.iter().zip(&self.kwargs);
        let mut criteria = Vec::new();
        for (number, (id, given)) in pairs.enumerate() {
            let kind = id.rsplit(':').next().unwrap_or(id).replace('_', "-");
            let mut named = |mut criterion: Value, name: String| {
                criterion["name"] = name.into();
                criterion["threshold"] = 1.into();
                criteria.push(criterion);
            };
            if id == "detectable_format:json_format" {
                let schema = json!({"type": ["object", "array"]});
                named(
                    json!({"evaluator": "schema", "schema": schema}),
                    format!("{kind}-{number}"),
                );
                let alone = present(JSON_ALONE, "Write nothing before or after the JSON.");
                named(alone, format!("only-json-{number}"));
                continue;
            }
            let criterion = criterion(id, &Arguments(given)).ok_or_else(|| id.clone())?;
            named(criterion, format!("{kind}-{number}"));
        }
        Ok(json!({"name": format!("ifeval-{}", self.key), "threshold": 1, "criteria": criteria}))
    }
}

/// The arguments of an instruction.
struct Arguments<'a>(&'a Map<String, Value>);

impl Arguments<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    fn number(&self, key: &str) -> Option<u64> {
        // Some numbers are written as `3.0`.
        let value = self.0.get(key)?;
        value.as_u64().or_else(|| {
            let number = value.as_f64()?;
            format!("{number:.0}").parse().ok()
        })
    }

    fn texts(&self, key: &str) -> Option<Vec<&str>> {
        self.0
            .get(key)?
            .as_array()?
            .iter()
            .map(Value::as_str)
            .collect()
    }
}

/// Returns the criterion for an instruction, or `None` if there is no exact equivalent.
#[expect(
    clippy::too_many_lines,
    reason = "a table: one arm for each instruction"
)]
fn criterion(id: &str, given: &Arguments<'_>) -> Option<Value> {
    Some(match id {
        "punctuation:no_comma" => absent(",", "Do not use any commas."),
        "change_case:english_lowercase" => absent(
            r"\p{Lu}",
            "Use only lower-case letters, no capital letters.",
        ),
        "change_case:english_capital" => absent(r"\p{Ll}", "Use only CAPITAL LETTERS."),
        "length_constraints:number_words" => {
            counted(r"\w+", given, "relation", "num_words", |bound| {
                format!("Write {bound} words.")
            })?
        }
        "keywords:frequency" => {
            let word = given.text("keyword")?;
            counted(&literal(word), given, "relation", "frequency", |bound| {
                format!("Use the word {word} {bound} times.")
            })?
        }
        "keywords:letter_frequency" => {
            let letter = given.text("letter")?;
            counted(
                &literal(letter),
                given,
                "let_relation",
                "let_frequency",
                |bound| format!("Use the letter {letter} {bound} times."),
            )?
        }
        "keywords:existence" => {
            json!({"evaluator": "contains", "all": given.texts("keywords")?, "ignore_case": true})
        }
        "keywords:forbidden_words" => {
            json!({"evaluator": "contains", "ignore_case": true, "words": true,
            "none": given.texts("forbidden_words")?})
        }
        "detectable_content:number_placeholders" => {
            let number = given.number("num_placeholders")?;
            at_least(
                r"\[.*?\]",
                number,
                format!(
                    "Use at least {number} placeholders in square brackets, such as [address]."
                ),
            )
        }
        "detectable_content:postscript" => {
            let marker = given.text("postscript_marker")?;
            let pattern = match marker {
                "P.P.S" => r"(?i)p\.\s?p\.\s?s".to_owned(),
                "P.S." => r"(?i)p\.\s?s\.".to_owned(),
                _ => literal(marker),
            };
            present(
                &pattern,
                format!("Add a postscript at the end that starts with {marker}"),
            )
        }
        "detectable_format:number_bullet_lists" => {
            let number = given.number("num_bullets")?;
            let mut found = at_least(
                r"(?m)^\s*(?:\*[^*].*|-.*)$",
                number,
                format!(
                    "Use exactly {number} bullet points, each on a line that starts with `* `."
                ),
            );
            found["max_count"] = number.into();
            found
        }
        "detectable_format:constrained_response" => json!({"evaluator": "contains",
            "any": ["My answer is yes.", "My answer is no.", "My answer is maybe."]}),
        "detectable_format:multiple_sections" => {
            let (mark, number) = (
                given.text("section_spliter")?,
                given.number("num_sections")?,
            );
            at_least(
                &format!(r"{}\s?\d+", regex::escape(mark)),
                number,
                format!(
                    "Write {number} sections, each starting with {mark} X, where X is its number."
                ),
            )
        }
        "detectable_format:title" => present(
            r"<<[^\n]*[^\s<>][^\n]*>>",
            "Give a title in double angular brackets, such as <<title>>.",
        ),
        "startend:quotation" => present(
            r#"(?s)\A\s*".*"\s*\z"#,
            "Wrap the whole reply in double quotation marks.",
        ),
        "startend:end_checker" => {
            let phrase = given.text("end_phrase")?.trim();
            present(
                &format!("{}\"*\\s*\\z", literal(phrase)),
                format!("End with exactly these words: {phrase}"),
            )
        }
        "combination:repeat_prompt" => {
            let prompt = given.text("prompt_to_repeat")?.trim();
            present(
                &format!(r"\A\s*{}", literal(prompt)),
                "Begin with the request, repeated word for word.",
            )
        }
        "combination:two_responses" => script(
            include_str!("sets/two_responses.lua"),
            &[],
            "Give exactly two different responses, separated by 6 asterisks: ******",
        ),
        "length_constraints:number_paragraphs" => {
            let number = given.number("num_paragraphs")?;
            script(
                include_str!("sets/paragraphs.lua"),
                &[("wanted", number.into())],
                &format!(
                    "Write exactly {number} paragraphs, separated by the markdown divider ***"
                ),
            )
        }
        "detectable_format:number_highlighted_sections" => {
            let number = given.number("num_highlights")?;
            script(
                include_str!("sets/highlights.lua"),
                &[("wanted", number.into())],
                &format!("Highlight at least {number} sections with markdown, like *this*."),
            )
        }
        "length_constraints:nth_paragraph_first_word" => {
            let (number, nth) = (
                given.number("num_paragraphs")?,
                given.number("nth_paragraph")?,
            );
            let word = given.text("first_word")?;
            script(
                include_str!("sets/first_word.lua"),
                &[
                    ("wanted", number.into()),
                    ("nth", nth.into()),
                    ("word", word.into()),
                ],
                &format!(
                    "Write {number} paragraphs, separated by two line breaks; paragraph {nth} starts with the word {word}."
                ),
            )
        }
        _ => return None,
    })
}

fn literal(text: &str) -> String {
    format!("(?i){}", regex::escape(text))
}

/// Escapes a text for a message, where braces are placeholders.
fn message(text: impl Into<String>) -> String {
    text.into().replace(['{', '}'], "")
}

/// Returns a script criterion, with values for the names that the script uses.
fn script(code: &str, given: &[(&str, Value)], description: &str) -> Value {
    let given = given
        .iter()
        .map(|(name, value)| format!("local {name} = {value}\n"));
    let code = format!("{}{code}", given.collect::<String>());
    json!({"evaluator": "script", "code": code, "description": description})
}

fn present(pattern: &str, said: impl Into<String>) -> Value {
    json!({"evaluator": "regex", "pattern": pattern, "message": message(said)})
}

fn absent(pattern: &str, said: &str) -> Value {
    json!({"evaluator": "regex", "pattern": pattern, "message": message(said), "expect": "absent"})
}

fn at_least(pattern: &str, number: u64, said: String) -> Value {
    json!({"evaluator": "regex", "pattern": pattern, "message": message(said), "min_count": number})
}

/// Returns a criterion for at least, or less than, this number of matches.
fn counted(
    pattern: &str,
    given: &Arguments<'_>,
    relation: &str,
    number: &str,
    say: impl Fn(&str) -> String,
) -> Option<Value> {
    let (relation, number) = (given.text(relation)?, given.number(number)?);
    let said = say(&format!("{relation} {number}"));
    Some(match (relation, number) {
        ("at least", _) => at_least(pattern, number, said),
        ("less than", 1) => absent(pattern, &said),
        ("less than", 2..) => {
            json!({"evaluator": "regex", "pattern": pattern, "message": message(said),
            "min_count": 0, "max_count": number - 1})
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{InputFormat, Reader, Shape, Tasks};

    fn line(instructions: &[(&str, Value)]) -> String {
        let (ids, kwargs): (Vec<_>, Vec<_>) = instructions.iter().cloned().unzip();
        let prompt = "Write a tale.";
        json!({"key": 7, "prompt": prompt, "instruction_id_list": ids, "kwargs": kwargs})
            .to_string()
    }

    #[test]
    fn every_instruction_becomes_a_criterion_that_can_be_read() {
        let all = [
            ("punctuation:no_comma", json!({})),
            ("change_case:english_lowercase", json!({})),
            (
                "length_constraints:number_words",
                json!({"relation": "at least", "num_words": 3}),
            ),
            (
                "length_constraints:number_words",
                json!({"relation": "less than", "num_words": 9.0}),
            ),
            (
                "keywords:frequency",
                json!({"relation": "less than", "keyword": "a.b", "frequency": 1}),
            ),
            (
                "keywords:letter_frequency",
                json!({"let_relation": "at least", "letter": "#", "let_frequency": 4}),
            ),
            ("keywords:existence", json!({"keywords": ["mom", "dad"]})),
            (
                "keywords:forbidden_words",
                json!({"forbidden_words": ["rock"]}),
            ),
            (
                "detectable_content:number_placeholders",
                json!({"num_placeholders": 2}),
            ),
            (
                "detectable_content:postscript",
                json!({"postscript_marker": "P.P.S"}),
            ),
            (
                "detectable_format:number_bullet_lists",
                json!({"num_bullets": 3}),
            ),
            ("detectable_format:constrained_response", json!({})),
            (
                "detectable_format:multiple_sections",
                json!({"section_spliter": "PART", "num_sections": 2}),
            ),
            ("detectable_format:title", json!({})),
            ("detectable_format:json_format", json!({})),
            (
                "detectable_format:number_highlighted_sections",
                json!({"num_highlights": 1}),
            ),
            ("startend:quotation", json!({})),
            (
                "startend:end_checker",
                json!({"end_phrase": "Is {that} all?"}),
            ),
            (
                "combination:repeat_prompt",
                json!({"prompt_to_repeat": "Write a tale."}),
            ),
            ("combination:two_responses", json!({})),
            (
                "length_constraints:number_paragraphs",
                json!({"num_paragraphs": 2}),
            ),
            (
                "length_constraints:nth_paragraph_first_word",
                json!({"num_paragraphs": 4, "nth_paragraph": 1, "first_word": "once"}),
            ),
            ("change_case:english_capital", json!({})),
        ];
        let lines = translate(&line(&all)).unwrap();
        assert_eq!(lines.skipped, []);
        let reader = Reader::new(lines.text.as_bytes(), InputFormat::Jsonl);
        let mut tasks = Tasks::new(reader, std::sync::Arc::new(Shape::default()));
        let entry = tasks.next_entry().unwrap().unwrap();
        assert_eq!(entry.id.as_deref(), Some("7"));
        let held = entry.task.unwrap().criteria.unwrap();
        let criteria =
            crate::criteria::parse(&held, "criteria").unwrap_or_else(|e| panic!("{e}\n{held}"));
        // The JSON instruction becomes two checks: that it is JSON, and that nothing else is in the
        // reply.
        assert_eq!(criteria.criteria.len(), all.len() + 1);
        assert!(
            criteria
                .criteria
                .iter()
                .all(|it| (it.threshold - 1.0).abs() < 1e-9)
        );
    }

    #[test]
    fn a_prompt_without_exact_checks_is_skipped_and_counted() {
        let none = (
            "length_constraints:number_sentences",
            json!({"relation": "at least", "num_sentences": 3}),
        );
        let some = ("punctuation:no_comma", json!({}));
        let text = [
            line(&[some.clone(), none.clone()]),
            line(&[some]),
            line(&[none]),
        ]
        .join("\n");
        let lines = translate(&text).unwrap();
        assert_eq!(lines.text.lines().count(), 1);
        assert_eq!(
            lines.skipped,
            [("length_constraints:number_sentences".to_owned(), 2)]
        );
        assert!(
            translate("<html>")
                .unwrap_err()
                .to_string()
                .starts_with("line 1: ")
        );
    }
}
