//! Import and export of memory as JSON lines. The keys are those of a context file.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::confidence::{confidence, success_rate};
use crate::evidence::{Context, NonEmptyText, Share};
use crate::source::{self, Source, SourceError};
use crate::types::{Fact, Knowledge, KnownInsight, KnownProcedure};

/// The maximum length of an entry, in characters.
pub const MAX_LENGTH: usize = 4000;

/// The confidence of an imported insight that states none. The user or another program had a reason
/// to keep it.
const GIVEN: f64 = 0.7;

const EXAMPLE: &str = "for example: {\"kind\": \"fact\", \"content\": \"…\", \"confidence\": 0.85}";

/// Returns an entry as one line of JSON, without the newline. It parses back to an equal entry; its
/// figures are the current ones, which include the effect of its uses.
pub fn line(what: &Knowledge) -> Value {
    let mut object = Map::new();
    let mut set = |key: &str, value: Value| {
        if !value.is_null() {
            object.insert(key.to_owned(), value);
        }
    };
    set("kind", json!(what.kind()));
    match what {
        Knowledge::Fact(fact) => {
            set("content", json!(fact.content));
            set("confidence", json!(fact.confidence));
            set("supportsClaim", json!(fact.supports_claim));
        }
        Knowledge::Procedure(procedure) => {
            set("name", json!(procedure.name));
            set("content", json!(procedure.content));
            set("successRate", json!(success_rate(procedure)));
        }
        Knowledge::Insight(insight) => {
            set("category", json!(insight.category));
            set("content", json!(insight.content));
            set("confidence", json!(confidence(insight)));
            set("criteria", json!(insight.criteria));
            set("criterion", json!(insight.criterion));
            set("model", json!(insight.model));
            if insight.subject != insight.content {
                set("subject", json!(insight.subject));
            }
            if !insight.evidence.is_empty() {
                set("evidence", json!(insight.evidence));
            }
        }
    }
    Value::Object(object)
}

/// Parses entries, one per line: objects in the form of [`line()`]. Without a `kind`, an object
/// with a `category` is an insight, one with a `name` or `successRate` is a procedure, and any
/// other is a fact. Keys may be in snake case; unknown keys are ignored. A context file
/// (`retrievedFacts`, `retrievedProcedures`) is accepted as the whole text or as a line.
///
/// # Errors
/// If a line is not such an object, a text is empty or too long, or a figure is not from 0 to 1.
/// The error shows the position.
pub fn parse(source: &Source) -> Result<Vec<Knowledge>, SourceError> {
    if is_context(source.text()) {
        return context(source);
    }
    let mut all = Vec::new();
    for (number, text) in source.text().lines().enumerate() {
        if text.trim().is_empty() {
            continue;
        }
        // Errors must show positions in the whole text.
        let alone = || Source::new(source.name(), &("\n".repeat(number) + text));
        if is_context(text) {
            all.extend(context(&alone())?);
            continue;
        }
        if text.trim_start().starts_with('[') {
            let begin = number + text.len() - text.trim_start().len();
            return Err(alone()
                .error(begin..begin + 1, "expected an object `{...}`")
                .help(EXAMPLE));
        }
        let entry = match serde_json::from_str::<MemoryLine>(text) {
            Ok(entry) => entry,
            Err(_) => source::json::<MemoryLine>(&alone()).map_err(|error| error.help(EXAMPLE))?,
        };
        all.push(entry.0);
    }
    Ok(all)
}

/// Returns whether a text is a context file.
fn is_context(text: &str) -> bool {
    let Ok(Value::Object(object)) = serde_json::from_str(text) else {
        return false;
    };
    let keys = [
        "retrievedFacts",
        "retrieved_facts",
        "retrievedProcedures",
        "retrieved_procedures",
    ];
    keys.iter().any(|key| object.contains_key(*key))
}

fn context(source: &Source) -> Result<Vec<Knowledge>, SourceError> {
    let context = Context::parse(source)?;
    let facts = context.facts.into_iter().map(Knowledge::Fact);
    let procedures = context.procedures.into_iter().map(|procedure| {
        Knowledge::Procedure(KnownProcedure {
            name: procedure.name,
            content: procedure.content,
            given: procedure.success_rate,
            uses: 0,
            successes: 0,
        })
    });
    let all: Vec<Knowledge> = facts.chain(procedures).collect();
    if all.iter().any(|what| too_long(&what.text())) {
        return Err(source.file_error(TOO_LONG));
    }
    Ok(all)
}

const TOO_LONG: &str = "a text is longer than 4000 characters";

fn too_long(text: &str) -> bool {
    text.chars().count() > MAX_LENGTH
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum EntryKind {
    Fact,
    Procedure,
    Insight,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    kind: Option<EntryKind>,
    name: Option<NonEmptyText>,
    content: Option<NonEmptyText>,
    confidence: Option<Share>,
    #[serde(alias = "supports_claim")]
    supports_claim: Option<NonEmptyText>,
    #[serde(alias = "success_rate")]
    success_rate: Option<Share>,
    category: Option<NonEmptyText>,
    criteria: Option<NonEmptyText>,
    criterion: Option<NonEmptyText>,
    model: Option<NonEmptyText>,
    subject: Option<NonEmptyText>,
    evidence: Option<Vec<String>>,
}

/// One line.
#[derive(Deserialize)]
#[serde(try_from = "Fields")]
struct MemoryLine(Knowledge);

impl TryFrom<Fields> for MemoryLine {
    type Error = &'static str;

    fn try_from(fields: Fields) -> Result<Self, Self::Error> {
        let kind = match fields.kind {
            Some(kind) => kind,
            None if fields.category.is_some() => EntryKind::Insight,
            None if fields.name.is_some() || fields.success_rate.is_some() => EntryKind::Procedure,
            None => EntryKind::Fact,
        };
        let text = |text: Option<NonEmptyText>| text.map(|text| text.0);
        let share = |share: Option<Share>| share.map(|share| share.0);
        let (name, content) = match (text(fields.name), text(fields.content), &kind) {
            (name, Some(content), _) => (name, content),
            (Some(name), None, EntryKind::Procedure) => (None, name),
            (_, None, EntryKind::Procedure) => {
                return Err("a procedure must have a `name` or a `content`");
            }
            (_, None, _) => return Err("the key `content` is missing"),
        };
        let knowledge = match kind {
            EntryKind::Fact => Knowledge::Fact(Fact {
                content,
                confidence: share(fields.confidence),
                supports_claim: text(fields.supports_claim),
            }),
            EntryKind::Procedure => Knowledge::Procedure(KnownProcedure {
                name,
                content,
                given: share(fields.success_rate),
                uses: 0,
                successes: 0,
            }),
            EntryKind::Insight => {
                let category = text(fields.category).unwrap_or_else(|| "general".to_owned());
                let learned = share(fields.confidence).unwrap_or(GIVEN);
                let insight = KnownInsight::new(category, content, learned);
                // Text that differs from the subject was written by a model or a rule; this
                // machine's wording must not replace it.
                let subject = text(fields.subject);
                let runs = fields.evidence.unwrap_or_default();
                Knowledge::Insight(KnownInsight {
                    worded: subject.is_some(),
                    subject: subject.unwrap_or_else(|| insight.subject.clone()),
                    criteria: text(fields.criteria),
                    criterion: text(fields.criterion),
                    model: text(fields.model),
                    evidence: runs
                        .iter()
                        .filter_map(|run| Uuid::parse_str(run).ok())
                        .collect(),
                    ..insight
                })
            }
        };
        if too_long(&knowledge.text()) {
            return Err(TOO_LONG);
        }
        Ok(Self(knowledge))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Vec<Knowledge>, SourceError> {
        parse(&Source::new("m.jsonl", text))
    }

    #[test]
    fn kinds_are_told_apart_with_and_without_the_word() {
        let all = read(
            "{\"content\": \"a\", \"confidence\": 0.5}\n\n\
             {\"name\": \"n\", \"content\": \"b\", \"success_rate\": 0.9}\n\
             {\"category\": \"tone\", \"content\": \"c\", \"id\": 7}\n\
             {\"kind\": \"insight\", \"content\": \"d\", \"criteria\": \"house\"}\n\
             {\"kind\": \"procedure\", \"name\": \"e\"}\n\
             {\"retrievedFacts\": [{\"content\": \"f\"}], \"retrievedProcedures\": [{\"name\": \"g\"}]}\n",
        )
        .unwrap();
        let kinds: Vec<_> = all.iter().map(Knowledge::kind).collect();
        assert_eq!(
            kinds,
            [
                "fact",
                "procedure",
                "insight",
                "insight",
                "procedure",
                "fact",
                "procedure"
            ]
        );
        let texts: Vec<_> = all.iter().map(Knowledge::text).collect();
        assert_eq!(texts, ["a", "n: b", "c", "d", "e", "f", "g"]);
        let Knowledge::Insight(insight) = &all[3] else {
            panic!("an insight");
        };
        assert_eq!(insight.category, "general");
        assert!((insight.learned - GIVEN).abs() < 1e-9);
    }

    #[test]
    fn a_context_file_of_several_lines_is_read_as_a_whole() {
        let text = "{\n  \"retrievedFacts\": [\n    {\"content\": \"a\"}\n  ]\n}\n";
        assert_eq!(read(text).unwrap().len(), 1);
        let error = read(&text.replace("\"a\"", "\" \"")).unwrap_err();
        assert!(error.to_string().starts_with("m.jsonl:3:17"), "{error}");
        assert!(read("").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_is() {
        let long = format!("{{\"content\": \"{}\"}}", "x".repeat(MAX_LENGTH + 1));
        for (line, message) in [
            (
                "{\"content\": \"a\", \"confidence\": 85}",
                "a number from 0 to 1",
            ),
            ("{\"content\": \" \"}", "this text is empty"),
            ("{\"confidence\": 0.5}", "the key `content` is missing"),
            ("{\"kind\": \"procedure\"}", "a procedure must have"),
            (
                "{\"kind\": \"idea\", \"content\": \"a\"}",
                "unknown value `idea`",
            ),
            ("[1]", "expected"),
            ("{\"content\"", "invalid JSON"),
            (long.as_str(), "longer than 4000 characters"),
        ] {
            let error = read(&format!("{{\"content\": \"fine\"}}\n\n{line}\n")).unwrap_err();
            let error = error.to_string();
            assert!(error.starts_with("m.jsonl:3:"), "{line}: {error}");
            assert!(error.contains(message), "{line}: {error}");
        }
    }

    fn some_text() -> impl Strategy<Value = String> {
        "[a-zé\"\\\\\n世 ]{0,20}[a-z]"
    }

    fn maybe(text: impl Strategy<Value = String>) -> impl Strategy<Value = Option<String>> {
        prop::option::of(text)
    }

    fn knowledge() -> impl Strategy<Value = Knowledge> {
        let share = || prop::option::of(0.0f64..=1.0);
        prop_oneof![
            (some_text(), share(), maybe(some_text())).prop_map(|(content, confidence, claim)| {
                Knowledge::Fact(Fact {
                    content,
                    confidence,
                    supports_claim: claim,
                })
            }),
            (maybe(some_text()), some_text(), share()).prop_map(|(name, content, given)| {
                Knowledge::Procedure(KnownProcedure {
                    name,
                    content,
                    given,
                    uses: 0,
                    successes: 0,
                })
            }),
            (
                some_text(),
                maybe(some_text()),
                0.0f64..=1.0,
                maybe(some_text()),
                prop::collection::vec(any::<u128>().prop_map(Uuid::from_u128), 0..3)
            )
                .prop_map(|(content, criteria, learned, subject, evidence)| {
                    let insight = KnownInsight::new("tone", content, learned);
                    let subject = subject.filter(|subject| *subject != insight.content);
                    Knowledge::Insight(KnownInsight {
                        worded: subject.is_some(),
                        subject: subject.unwrap_or_else(|| insight.subject.clone()),
                        criteria,
                        evidence,
                        ..insight
                    })
                }),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(all in prop::collection::vec(knowledge(), 0..5)) {
            let text: String = all.iter().map(|what| line(what).to_string() + "\n").collect();
            prop_assert_eq!(read(&text).unwrap(), all);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "([{}\\[\\]\":,]|content|kind|fact|0.5|\n|\\PC)*") {
            if let Err(error) = read(&text) {
                prop_assert!(error.to_string().starts_with("m.jsonl"));
            }
        }
    }
}
