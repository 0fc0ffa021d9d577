//! Single evaluators in their own file: `type: schema`, `llm` or `custom`, with the keys of that
//! type. Each becomes a set with one criterion.

use std::borrow::Cow;
use std::path::Path;

use indexmap::IndexMap;
use serde_json::{Map, Value};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::kinds::{self, SchemaOptions};
use super::{check, json_schema};
use crate::source::{self, Data, DataFormat, FileAccess, Source, SourceError, pointer};
use crate::types::{
    CommandConfig, Criteria, Criterion, DEFAULT_FLOOR, DEFAULT_HARD_FLOOR, DEFAULT_THRESHOLD,
    Evaluator, JudgeExample, LlmConfig, ScoreRange,
};

/// The evaluator types with the keys of each.
const TYPES: &[(&str, &[&str])] = &[
    ("schema", &["schema", "coerce", "formats"]),
    ("llm", &["prompt", "examples", "model"]),
    ("custom", &["run", "language"]),
];

/// The minimum number that code must return to pass if it returns only a number.
const SCRIPT_FLOOR: f64 = 0.5;

/// The keys that every type has.
const COMMON: &[&str] = &["type", "name", "description", "threshold"];

/// Names that other tools use for keys, with the name used here.
const ALIASES: &[(&str, &str)] = &[("evaluator_type", "type"), ("code", "run")];

/// Reads the file of a single evaluator: YAML, JSON or TOML, by extension. `reach` returns which
/// files it may refer to, given its full path.
pub fn load(path: &Path, reach: &dyn Fn(&Path) -> FileAccess) -> Result<Criteria, SourceError> {
    of_data(&Data::read(path)?.with_file_access(reach), None)
}

/// Parses the text of a single evaluator. `name` stands for its path in errors.
pub fn parse(text: &str, name: &str, format: DataFormat) -> Result<Criteria, SourceError> {
    of_data(&Data::parse(&Source::new(name, text), format)?, None)
}

/// Parses a single evaluator inside a larger file. `default` is its type if it names none.
pub fn of_data(data: &Data, default: Option<&'static str>) -> Result<Criteria, SourceError> {
    let spec = EvaluatorSpec::of(data, default)?;
    let evaluator = match spec.kind {
        "schema" => spec.schema()?,
        "llm" => spec.llm()?,
        _ => spec.custom()?,
    };
    let floor = match &evaluator {
        // A judge's score passes at the same value as in a set of criteria.
        Evaluator::Llm(_) => DEFAULT_THRESHOLD.max(DEFAULT_FLOOR),
        Evaluator::Script(_) => SCRIPT_FLOOR,
        _ => DEFAULT_HARD_FLOOR,
    };
    let threshold = match spec.get("threshold") {
        None => floor,
        Some(Value::Number(number)) => {
            let value = number.as_f64().unwrap_or(f64::NAN);
            check::threshold(data.source(), data.span("/threshold"), value)?;
            value
        }
        Some(_) => return Err(data.error("/threshold", "`threshold`: expected a number")),
    };
    let name = spec.text("name")?.unwrap_or(spec.kind);
    let description = spec.text("description")?.unwrap_or_default();
    Ok(set_of_one(name, description, threshold, evaluator))
}

/// Parses a command inside a larger file, with the keys and checks of the `command` evaluator. A
/// file of its own cannot hold one.
pub fn command_of_data(data: &Data) -> Result<Criteria, SourceError> {
    let source = data.source();
    let at = |key: &str| data.span(&pointer::join("", key));
    let known = source::fields::<CommandConfig>();
    let keys = data.value().as_object().into_iter().flat_map(Map::keys);
    if let Some(key) = keys.into_iter().find(|key| !known.contains(&key.as_str())) {
        return Err(source::unknown_key(source, at(key), key, known));
    }
    let mut config: CommandConfig = serde_json::from_value(data.value().clone())
        .map_err(|error| data.error("", &format!("invalid command: {error}")))?;
    config.origin = kinds::origin(source, &data.span(""));
    let config = kinds::command::checked(source, &at, config)?;
    let evaluator = Evaluator::Command(config);
    Ok(set_of_one("command", "", DEFAULT_HARD_FLOOR, evaluator))
}

fn set_of_one(name: &str, description: &str, threshold: f64, evaluator: Evaluator) -> Criteria {
    let criterion = Criterion {
        description: description.to_owned(),
        name: name.to_owned(),
        weight: 1.0,
        threshold,
        required: false,
        evaluator,
    };
    Criteria {
        // There is only one score, and the criterion's own floor decides.
        threshold: 0.0,
        ..Criteria::new(name, vec![criterion])
    }
}

/// A single evaluator as written: an object with known keys of the right type.
struct EvaluatorSpec<'a> {
    data: &'a Data,
    kind: &'static str,
    values: IndexMap<&'static str, (&'a Value, String)>,
}

impl<'a> EvaluatorSpec<'a> {
    fn of(data: &'a Data, default: Option<&'static str>) -> Result<Self, SourceError> {
        let Value::Object(map) = data.value() else {
            return Err(data
                .error("", "an evaluator is an object with a `type`")
                .help("for example: {\"type\": \"schema\", \"schema\": {\"type\": \"object\"}}"));
        };
        let written = |key: &'static str| {
            let alias = ALIASES.iter().find(|(_, name)| *name == key);
            let names = std::iter::once(key).chain(alias.map(|(alias, _)| *alias));
            names
                .into_iter()
                .find_map(|name| map.get(name).map(|value| (value, pointer::join("", name))))
        };
        let kind = match written("type") {
            None => default.ok_or_else(|| {
                data.error("", "the key `type` is missing")
                    .help(known_types())
            })?,
            Some((Value::String(name), place)) => TYPES
                .iter()
                .map(|(kind, _)| *kind)
                .find(|kind| kind == name)
                .ok_or_else(|| {
                    let near = source::similar(name, TYPES.iter().map(|(kind, _)| *kind));
                    let error = data.error(&place, &format!("unknown evaluator type `{name}`"));
                    if json_schema::TYPES.contains(&name.as_str()) {
                        return error.help(
                            "this is a JSON Schema; an evaluator refers to it: \
                             {\"type\": \"schema\", \"schema\": \"FILE\"}",
                        );
                    }
                    error
                        .help_if(near.map(|near| format!("did you mean `{near}`?")))
                        .help(known_types())
                })?,
            Some((_, place)) => {
                return Err(data
                    .error(&place, "`type`: expected a string")
                    .help(known_types()));
            }
        };
        let own = TYPES
            .iter()
            .find(|(name, _)| *name == kind)
            .map_or(&[][..], |(_, keys)| *keys);
        let known: Vec<&'static str> = COMMON.iter().chain(own).copied().collect();
        for key in map.keys() {
            let name = ALIASES
                .iter()
                .find(|(alias, _)| alias == key)
                .map_or(key.as_str(), |(_, name)| *name);
            if !known.contains(&name) {
                let place = data.span(&pointer::join("", key));
                return Err(
                    match TYPES.iter().find(|(_, keys)| keys.contains(&name)) {
                        Some((other, _)) => data.source().error(
                            place,
                            &format!(
                                "the key `{key}` belongs to the type `{other}`, but this evaluator's type is `{kind}`"
                            ),
                        ),
                        None => source::unknown_key(data.source(), place, key, &known),
                    },
                );
            }
        }
        Ok(Self {
            data,
            kind,
            values: known
                .into_iter()
                .filter_map(|key| Some((key, written(key)?)))
                .collect(),
        })
    }

    fn get(&self, key: &str) -> Option<&'a Value> {
        self.values.get(key).map(|(value, _)| *value)
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, SourceError> {
        match self.values.get(key) {
            None => Ok(None),
            Some((Value::String(text), _)) => Ok(Some(text)),
            Some((_, place)) => Err(self
                .data
                .error(place, &format!("`{key}`: expected a string"))),
        }
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool, SourceError> {
        match self.values.get(key) {
            None => Ok(default),
            Some((Value::Bool(flag), _)) => Ok(*flag),
            Some((_, place)) => Err(self
                .data
                .error(place, &format!("`{key}`: expected true or false"))),
        }
    }

    fn missing(&self, key: &str, hint: &str) -> SourceError {
        let message = format!("the type `{}` needs the key `{key}`", self.kind);
        self.data.error("", &message).help(hint)
    }

    /// Returns the schema itself, or loads the file that holds it.
    fn schema(&self) -> Result<Evaluator, SourceError> {
        let options = SchemaOptions {
            coerce: self.flag("coerce", true)?,
            formats: self.flag("formats", false)?,
        };
        let source = self.data.source();
        let (folder, reach) = (source.folder(), source.file_access());
        match self.get("schema") {
            None => Err(self.missing("schema", "add the JSON Schema, or the path of its file")),
            Some(Value::String(file)) => {
                let place = |message: &str| self.data.error("/schema", message);
                let (base, root) = json_schema::open(file, folder, reach, &place)?;
                kinds::assemble(&root, Some(base), IndexMap::new(), (folder, reach), options)
            }
            Some(_) => {
                let root = self
                    .data
                    .get("schema")
                    .ok_or_else(|| self.missing("schema", ""))?;
                kinds::assemble(&root, None, IndexMap::new(), (folder, reach), options)
            }
        }
    }

    /// Parses a judge with a custom prompt: an `llm` criterion with the same keys.
    fn llm(&self) -> Result<Evaluator, SourceError> {
        let own = |key| Ok::<_, SourceError>(self.text(key)?.map(str::to_owned));
        let config = LlmConfig {
            scale: ScoreRange::new(0.0, 1.0),
            prompt: own("prompt")?,
            model: own("model")?,
            examples: match self.values.get("examples") {
                Some((examples, place)) => self.examples(examples, place)?,
                None => Vec::new(),
            },
            origin: kinds::origin(self.data.source(), &self.data.span("")),
            ..LlmConfig::default()
        };
        let at = |key: &str| {
            let place = self.values.get(key).map_or("", |(_, place)| place.as_str());
            self.data.span(place)
        };
        kinds::llm::check(self.data.source(), &at, &config)?;
        Ok(Evaluator::Llm(config))
    }

    /// Parses pairs of a draft and its verdict. The verdict is an object, or its JSON as a string;
    /// any other string is a reason. Skips pairs that lack a part or whose verdict has neither a
    /// decision nor a score.
    fn examples(&self, examples: &Value, place: &str) -> Result<Vec<JudgeExample>, SourceError> {
        let wrong = |place: &str| {
            self.data
                .error(place, "`examples`: expected a list of pairs")
                .help("each with an `input`, and the verdict on it as `output`: {\"valid\": true, \"score\": 1}")
        };
        let as_text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let Value::Array(items) = examples else {
            return Err(wrong(place));
        };
        let read = |(index, item): (usize, &Value)| {
            if !item.is_object() {
                return Err(wrong(&pointer::join(place, &index.to_string())));
            }
            let part = |key| item.get(key).filter(|part| !part.is_null());
            let (Some(input), Some(output)) = (part("input"), part("output")) else {
                return Ok(None);
            };
            let verdict = match output {
                Value::String(text) => serde_json::from_str(text)
                    .ok()
                    .filter(Value::is_object)
                    .unwrap_or_else(|| serde_json::json!({ "reason": text })),
                other => other.clone(),
            };
            let example = JudgeExample {
                draft: as_text(input),
                score: verdict.get("score").and_then(Value::as_f64),
                verdict: verdict.get("valid").and_then(Value::as_bool),
                reason: verdict.get("reason").map(as_text),
            };
            let judged = example.score.is_some() || example.verdict.is_some();
            Ok((judged && !example.draft.trim().is_empty()).then_some(example))
        };
        let examples = items.iter().enumerate().map(read);
        examples.filter_map(Result::transpose).collect()
    }

    /// Parses code: a `script` criterion.
    fn custom(&self) -> Result<Evaluator, SourceError> {
        let Some(code) = self.text("run")? else {
            return Err(self.missing("run", "add the code that judges the draft"));
        };
        let language = self.text("language")?.unwrap_or("python");
        let mut table = DeTable::new();
        self.put(&mut table, "run", "code", code);
        self.put(&mut table, "language", "language", language);
        self.as_criterion("script", table)
    }

    fn put(&self, table: &mut DeTable<'static>, from: &str, to: &'static str, text: &str) {
        let span = match self.values.get(from) {
            Some((_, place)) => self.data.span(place),
            None => self.data.span(""),
        };
        table.insert(
            Spanned::new(span.clone(), Cow::Borrowed(to)),
            Spanned::new(span, DeValue::String(Cow::Owned(text.to_owned()))),
        );
    }

    /// Parses keys with the parser of this kind of criterion.
    fn as_criterion(&self, kind: &str, table: DeTable<'static>) -> Result<Evaluator, SourceError> {
        let source = self.data.source();
        let type_place = self
            .values
            .get("type")
            .map_or("", |(_, place)| place.as_str());
        let kind = kinds::named(source, kind, self.data.span(type_place))?;
        kinds::check_keys(source, kind, &table)?;
        (kind.read)(source, Spanned::new(self.data.span(""), table))
    }
}

fn known_types() -> String {
    format!(
        "known types: {}",
        source::list(TYPES.iter().map(|(kind, _)| *kind))
    )
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
