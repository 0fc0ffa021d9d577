//! JSON Schemas compiled for use, with every document that they refer to.

mod files;
mod graph;

use jsonschema::Validator;
use referencing::{Draft, Registry, Resolver, SPECIFICATIONS, Uri};
use reqwest::Url;
use serde_json::Value;

pub(crate) use self::files::{gather, open};
use super::check;
use crate::source;
use crate::text::clip;
use crate::types::SchemaConfig;

/// The name of a schema that is written in the criteria file itself.
const INLINE: &str = "%3Cinline%3E";

/// The maximum length of the reason in an invalid-schema error, in characters.
const MAX_REASON: usize = 300;

/// The supported drafts, for error messages.
const KNOWN_DRAFTS: &str = "known drafts: https://json-schema.org/draft/2020-12/schema, \
    https://json-schema.org/draft/2019-09/schema, http://json-schema.org/draft-07/schema#, -06 and -04";
/// The type names of JSON Schema.
pub(crate) const TYPES: [&str; 7] = [
    "array", "boolean", "integer", "null", "number", "object", "string",
];

/// A JSON Schema ready for validation: it is valid, and every `$ref` resolves without a cycle.
pub(crate) struct Compiled {
    validator: Validator,
    registry: Registry<'static>,
    base: Uri<String>,
}

/// An error in a schema, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The document as the configuration names it, or `None` for the schema itself.
    pub(crate) document: Option<String>,
    /// The JSON Pointer into that document.
    pub(crate) pointer: String,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    fn new(document: Option<&str>, pointer: &str, message: impl Into<String>) -> Self {
        Self {
            document: document.map(str::to_owned),
            pointer: pointer.to_owned(),
            message: message.into(),
            hint: None,
        }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl Compiled {
    /// Compiles a schema. Reads only the configuration, no files.
    ///
    /// # Errors
    /// The first problem found in the schema.
    pub(crate) fn new(config: &SchemaConfig) -> Result<Self, Box<Problem>> {
        let draft = check_document(None, &config.schema, Draft::default())?;
        for (name, document) in &config.documents {
            check_document(Some(name), document, draft)?;
        }
        let limit = check::PATTERNS_SIZE_LIMIT;
        if check::first_beyond(&config.patterns(), limit).is_some() {
            let problem = Problem::new(None, "", check::too_much_memory(limit));
            return Err(Box::new(problem.hint(check::FEWER_PATTERNS)));
        }
        let folder = folder_of(config);
        let whole = |message: String| Box::new(Problem::new(None, "", message));
        let base = url(&folder, config.base.as_deref().unwrap_or(INLINE))
            .map_err(|reason| whole(format!("`base` is not a relative URL: {reason}")))?;
        // Includes the meta-schemas of all drafts, because a schema may refer to them.
        let mut builder = SPECIFICATIONS
            .add(base.as_str(), config.schema.clone())
            .map_err(|error| whole(error.to_string()))?
            .draft(draft);
        for (name, document) in &config.documents {
            let fail = |reason: String| {
                Box::new(Problem::new(
                    Some(name),
                    "",
                    format!("`{name}` is not a URL: {reason}"),
                ))
            };
            let url = url(&folder, name).map_err(fail)?;
            builder = builder
                .add(url.as_str(), document.clone())
                .map_err(|error| fail(error.to_string()))?;
        }
        // Maps the URLs of documents to the names that problems show.
        let mut names = vec![(base.to_string(), None)];
        for name in config.documents.keys() {
            if let Ok(url) = url(&folder, name) {
                names.push((url.to_string(), Some(name.as_str())));
            }
        }
        let registry = builder
            .prepare()
            .map_err(|error| Box::new(graph::unresolved(config, &folder, &error)))?;
        let base =
            referencing::uri::from_str(base.as_str()).map_err(|error| whole(error.to_string()))?;
        graph::check(&registry, &names, draft)?;
        let validator = jsonschema::options()
            .with_draft(draft)
            .with_base_uri(base.as_str())
            .with_registry(&registry)
            .should_validate_formats(config.formats)
            .build(&config.schema)
            .map_err(|error| {
                let pointer = error.schema_path().to_string();
                Box::new(Problem::new(
                    None,
                    &pointer,
                    format!("the schema cannot be used: {error}"),
                ))
            })?;
        Ok(Self {
            validator,
            registry,
            base,
        })
    }

    /// Returns the compiled validator.
    pub(crate) fn validator(&self) -> &Validator {
        &self.validator
    }

    /// Returns the schema itself, with the resolver for its `$ref`s.
    pub(crate) fn root(&self) -> Option<(&Value, Resolver<'_>)> {
        let resolved = self.registry.resolver(self.base.clone()).lookup("").ok()?;
        Some((resolved.contents(), resolved.resolver().clone()))
    }

    /// Returns the subschema at an address (a URL with a JSON Pointer as its fragment).
    pub(crate) fn at(&self, address: &str) -> Option<&Value> {
        let resolver = self.registry.resolver(self.base.clone());
        resolver.lookup(address).ok().map(|found| found.contents())
    }
}

/// Checks that a single document is a schema of a supported draft. A document without `$schema`
/// uses the draft of the schema that refers to it.
fn check_document(
    name: Option<&str>,
    document: &Value,
    default: Draft,
) -> Result<Draft, Box<Problem>> {
    if !matches!(document, Value::Object(_) | Value::Bool(_)) {
        return Err(Box::new(
            Problem::new(name, "", "this is not a JSON Schema")
                .hint("a schema is an object, or `true` or `false`"),
        ));
    }
    let draft = match document.get("$schema") {
        None => default,
        Some(Value::String(uri)) => match Draft::from_schema_uri(uri) {
            Draft::Unknown => {
                return Err(Box::new(
                    Problem::new(name, "/$schema", unknown_draft(uri)).hint(KNOWN_DRAFTS),
                ));
            }
            draft => draft,
        },
        Some(_) => {
            return Err(Box::new(Problem::new(
                name,
                "/$schema",
                "`$schema` must be a string: the URL of a draft",
            )));
        }
    };
    let checked = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validate(document),
        Draft::Draft6 => jsonschema::draft6::meta::validate(document),
        Draft::Draft7 => jsonschema::draft7::meta::validate(document),
        Draft::Draft201909 => jsonschema::draft201909::meta::validate(document),
        _ => jsonschema::draft202012::meta::validate(document),
    };
    checked.map_err(|error| {
        let pointer = error.instance_path().to_string();
        let place = if pointer.is_empty() {
            String::new()
        } else {
            format!(" at `{pointer}`")
        };
        let (reason, near) = match error.instance().as_ref() {
            Value::String(found) if pointer.ends_with("/type") => (
                format!("unknown type `{found}`"),
                source::similar(found, TYPES),
            ),
            _ => (clip(&error.to_string(), MAX_REASON), None),
        };
        let message = format!("invalid JSON Schema{place}: {reason}");
        let problem = Problem::new(name, &pointer, message);
        Box::new(match near {
            Some(near) => problem.hint(format!("did you mean `{near}`?")),
            None if document.get("$schema").is_none() => {
                problem.hint("a schema without `$schema` uses draft 2020-12")
            }
            None => problem,
        })
    })?;
    Ok(draft)
}

fn unknown_draft(uri: &str) -> String {
    format!("unknown draft `{uri}`")
}

/// Returns an invented folder that stands for the criteria file's folder, deep enough for every
/// `../` in the names.
fn folder_of(config: &SchemaConfig) -> String {
    let ups = |name: &str| name.split('/').take_while(|step| *step == "..").count();
    let depth = config
        .documents
        .keys()
        .map(String::as_str)
        .chain(config.base.as_deref())
        .map(ups)
        .max()
        .unwrap_or(0);
    format!("file:///{}", "folder/".repeat(depth))
}

/// Resolves a name, relative or absolute, to a URL.
fn url(folder: &str, name: &str) -> Result<Url, String> {
    let folder = Url::parse(folder).map_err(|error| error.to_string())?;
    let mut url = folder.join(name).map_err(|error| error.to_string())?;
    url.set_fragment(None);
    Ok(url)
}

#[cfg(test)]
mod tests;
