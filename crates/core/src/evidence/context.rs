//! Context files: the message history, facts and procedures, as JSON.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::source::{self, Source, SourceError, similar};
use crate::types::{Fact, PastMessage, Procedure, Task};

/// The default number of most recent messages that are used.
pub const DEFAULT_MESSAGES: u32 = 3;

const EXAMPLE: &str = "for example: {\"messageHistory\": [{\"role\": \"user\", \"content\": \"…\"}], \
     \"retrievedFacts\": [{\"content\": \"…\", \"confidence\": 0.85}], \
     \"retrievedProcedures\": [{\"name\": \"…\", \"successRate\": 0.9}]}";

/// The contents of a context file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Context {
    /// The messages under `messageHistory`, oldest first.
    pub message_history: Vec<PastMessage>,
    /// The facts under `retrievedFacts`.
    pub facts: Vec<Fact>,
    /// The procedures under `retrievedProcedures`.
    pub procedures: Vec<Procedure>,
}

impl Context {
    /// Reads a context file: an object with at least one of `messageHistory`, `retrievedFacts` and
    /// `retrievedProcedures`. The same keys in snake case (`message_history`) work as well. Ignores
    /// other keys, at the top level and in each entry, because the programs that write such files
    /// add their own. A key that looks like a misspelling of one of these is an error.
    ///
    /// # Errors
    /// If the file is not such an object, has none of these keys, contains an empty text, or has a
    /// confidence or success rate that is not from 0 to 1. The error shows the position.
    pub fn read(path: &Path) -> Result<Self, SourceError> {
        Self::parse(&source::read(path)?)
    }

    /// Parses a context file from a source that is already in memory. See [`Context::read`].
    pub fn parse(source: &Source) -> Result<Self, SourceError> {
        source::json(source).map_err(|error| error.help(EXAMPLE))
    }

    /// Adds the context to a task, with at most `messages` of the most recent messages.
    pub fn give_to(self, task: &mut Task, messages: u32) {
        let messages = usize::try_from(messages).unwrap_or(usize::MAX);
        let skip = self.message_history.len().saturating_sub(messages);
        task.message_history
            .extend(self.message_history.into_iter().skip(skip));
        task.facts.extend(self.facts);
        task.procedures.extend(self.procedures);
    }
}

/// The keys, each with its form in snake case.
const KEYS: [(&str, &str); 3] = [
    ("messageHistory", "message_history"),
    ("retrievedFacts", "retrieved_facts"),
    ("retrievedProcedures", "retrieved_procedures"),
];

impl<'de> Deserialize<'de> for Context {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ContextVisitor)
    }
}

struct ContextVisitor;

impl<'de> Visitor<'de> for ContextVisitor {
    type Value = Context;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object `{...}`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Context, A::Error> {
        let mut messages: Option<Vec<MessageEntry>> = None;
        let mut facts: Option<Vec<FactEntry>> = None;
        let mut procedures: Option<Vec<ProcedureEntry>> = None;
        while let Some(key) = map.next_key::<String>()? {
            let known = KEYS
                .iter()
                .position(|(camel, snake)| key == *camel || key == *snake);
            let twice = match known {
                Some(0) => messages.replace(map.next_value()?).is_some(),
                Some(1) => facts.replace(map.next_value()?).is_some(),
                Some(_) => procedures.replace(map.next_value()?).is_some(),
                None => {
                    if let Some(meant) = similar(&key, KEYS.map(|(camel, _)| camel)) {
                        return Err(A::Error::custom(format!(
                            "unknown key `{key}`: did you mean `{meant}`?"
                        )));
                    }
                    map.next_value::<IgnoredAny>()?;
                    false
                }
            };
            if twice {
                return Err(A::Error::custom(format!("the key `{key}` is set twice")));
            }
        }
        if messages.is_none() && facts.is_none() && procedures.is_none() {
            return Err(A::Error::custom(
                "it has no `messageHistory`, `retrievedFacts` or `retrievedProcedures`",
            ));
        }
        Ok(Context {
            message_history: entries(messages),
            facts: entries(facts),
            procedures: entries(procedures),
        })
    }
}

fn entries<E: Into<T>, T>(entries: Option<Vec<E>>) -> Vec<T> {
    entries
        .unwrap_or_default()
        .into_iter()
        .map(Into::into)
        .collect()
}

#[derive(Deserialize)]
struct MessageEntry {
    role: NonEmptyText,
    content: NonEmptyText,
}

impl From<MessageEntry> for PastMessage {
    fn from(entry: MessageEntry) -> Self {
        Self {
            role: entry.role.0,
            content: entry.content.0,
        }
    }
}

#[derive(Deserialize)]
struct FactEntry {
    content: NonEmptyText,
    confidence: Option<Share>,
    #[serde(rename = "supportsClaim", alias = "supports_claim")]
    supports_claim: Option<NonEmptyText>,
}

impl From<FactEntry> for Fact {
    fn from(entry: FactEntry) -> Self {
        Self {
            content: entry.content.0,
            confidence: entry.confidence.map(|share| share.0),
            supports_claim: entry.supports_claim.map(|text| text.0),
        }
    }
}

#[derive(Deserialize)]
struct ProcedureFields {
    name: Option<NonEmptyText>,
    content: Option<NonEmptyText>,
    #[serde(rename = "successRate", alias = "success_rate")]
    success_rate: Option<Share>,
}

#[derive(Deserialize)]
#[serde(try_from = "ProcedureFields")]
struct ProcedureEntry(Procedure);

impl TryFrom<ProcedureFields> for ProcedureEntry {
    type Error = &'static str;

    fn try_from(fields: ProcedureFields) -> Result<Self, Self::Error> {
        let success_rate = fields.success_rate.map(|share| share.0);
        let (name, content) = match (fields.name, fields.content) {
            (name, Some(content)) => (name.map(|name| name.0), content.0),
            (Some(name), None) => (None, name.0),
            (None, None) => return Err("a procedure must have a `name` or a `content`"),
        };
        Ok(Self(Procedure {
            name,
            content,
            success_rate,
        }))
    }
}

impl From<ProcedureEntry> for Procedure {
    fn from(entry: ProcedureEntry) -> Self {
        entry.0
    }
}

/// A non-empty string.
#[derive(Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct NonEmptyText(pub(crate) String);

impl TryFrom<String> for NonEmptyText {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.trim().is_empty() {
            return Err("this text is empty");
        }
        Ok(Self(text))
    }
}

/// A number from 0 to 1.
#[derive(Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Share(pub(crate) f64);

impl TryFrom<f64> for Share {
    type Error = &'static str;

    fn try_from(number: f64) -> Result<Self, Self::Error> {
        if !(0.0..=1.0).contains(&number) {
            return Err("expected a number from 0 to 1");
        }
        Ok(Self(number))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Context, SourceError> {
        Context::parse(&Source::new("c.json", text))
    }

    /// A context file as an agent writes it, with all its additional keys.
    const SEED: &str = r#"{
        "sessionId": "abc",
        "currentMessage": "How do I set up database migrations?",
        "messageHistory": [
            {"role": "user", "content": "one"}, {"role": "assistant", "content": "two"},
            {"role": "user", "content": "three"}, {"role": "assistant", "content": "four", "id": 7}
        ],
        "retrievedFacts": [{"content": "Use drizzle-kit for migrations", "confidence": 0.85, "id": "f1"}],
        "retrievedProcedures": [
            {"name": "Migrate", "content": "Generate, then push.", "successRate": 0.9},
            {"name": "Ask the maintainer"}
        ]
    }"#;

    #[test]
    fn the_shape_of_the_seed_is_read_and_the_last_messages_are_used() {
        let context = parse(SEED).unwrap();
        let mut task = Task::new("x");
        context.give_to(&mut task, DEFAULT_MESSAGES);
        let said: Vec<_> = task.message_history.iter().map(|m| &m.content).collect();
        assert_eq!(said, ["two", "three", "four"]);
        assert_eq!(task.facts[0].confidence, Some(0.85));
        assert_eq!(task.procedures[0].name.as_deref(), Some("Migrate"));
        assert_eq!(task.procedures[0].success_rate, Some(0.9));
        assert_eq!(task.procedures[1].content, "Ask the maintainer");
        assert_eq!(task.procedures[1].success_rate, None);
        let mut task = Task::new("x");
        parse(SEED).unwrap().give_to(&mut task, 0);
        assert!(task.message_history.is_empty());
    }

    #[test]
    fn snake_case_is_the_same() {
        let snake = SEED
            .replace("messageHistory", "message_history")
            .replace("retrievedFacts", "retrieved_facts")
            .replace("retrievedProcedures", "retrieved_procedures")
            .replace("successRate", "success_rate");
        assert_eq!(parse(&snake).unwrap(), parse(SEED).unwrap());
    }

    #[test]
    fn what_is_wrong_is_shown_where_it_is() {
        let cases = [
            ("{}", "c.json:1:1", "it has no `messageHistory`"),
            ("[]", "c.json:1:1", "expected an object `{...}`"),
            (
                "{\"retrievedFact\": []}",
                "c.json:1:2",
                "did you mean `retrievedFacts`?",
            ),
            (
                "{\"retrievedFacts\": [], \"retrieved_facts\": []}",
                "c.json:1:44",
                "set twice",
            ),
            (
                "{\"retrievedFacts\": {}}",
                "c.json:1:20",
                "expected an array `[...]`",
            ),
            (
                "{\"retrievedFacts\": [\n{\"content\": \"a\", \"confidence\": 85}]}",
                "c.json:2:32",
                "expected a number from 0 to 1",
            ),
            (
                "{\"retrievedFacts\": [{\"content\": \"a\", \"confidence\": \"high\"}]}",
                "c.json:1:52",
                "expected a number",
            ),
            (
                "{\"retrievedFacts\": [{\"confidence\": 0.5}]}",
                "c.json:1:39",
                "the key `content` is missing",
            ),
            (
                "{\"messageHistory\": [{\"role\": \"user\", \"content\": \" \"}]}",
                "c.json:1:49",
                "this text is empty",
            ),
            (
                "{\"retrievedProcedures\": [{\"successRate\": 1}]}",
                "c.json:1:43",
                "a procedure must have a `name` or a `content`",
            ),
        ];
        for (text, place, message) in cases {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.starts_with(place), "{text}: {error}");
            assert!(error.contains(message), "{text}: {error}");
            assert!(error.contains("for example: "), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn shares_are_kept_and_all_other_numbers_refused(number in -2.0f64..3.0) {
            let text = format!("{{\"retrievedFacts\": [{{\"content\": \"a\", \"confidence\": {number}}}]}}");
            match parse(&text) {
                Ok(context) => {
                    prop_assert!((0.0..=1.0).contains(&number));
                    prop_assert_eq!(context.facts[0].confidence, Some(number));
                }
                Err(_) => prop_assert!(!(0.0..=1.0).contains(&number)),
            }
        }
    }
}
