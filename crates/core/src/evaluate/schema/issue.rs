//! Describes schema violations: the place, the value found, and what is allowed.

use std::io;

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

use super::CheckIssue;
use crate::criteria::json_schema::Compiled;
use crate::source;
use crate::text::clip;
use crate::types::{IssueType, Place};

/// The maximum length of a shown value, in characters.
const SHOWN: usize = 80;
/// The maximum number of allowed values or names that are listed.
const LISTED: usize = 20;

/// The message, the fix, and the kind of a violation.
struct Description {
    kind: IssueType,
    message: String,
    fix: Option<String>,
}

impl Description {
    fn wrong(message: String, fix: impl Into<Option<String>>) -> Self {
        Self {
            kind: IssueType::Incorrect,
            message,
            fix: fix.into(),
        }
    }

    fn missing(message: String, fix: impl Into<Option<String>>) -> Self {
        Self {
            kind: IssueType::Missing,
            ..Self::wrong(message, fix)
        }
    }
}

/// Converts a validation error to an issue. `found` is the draft from the start of the value, which
/// follows `before` lines.
pub(super) fn issue(
    error: &ValidationError<'_>,
    compiled: &Compiled,
    found: Option<&str>,
    lines_before: u64,
) -> CheckIssue {
    let path = error.instance_path().to_string();
    let line = found.and_then(|text| {
        let span = source::json_span(text, &path)?;
        Some(lines_before + super::lines_before(text, span.start) + 1)
    });
    let description = describe(error, compiled, true);
    let issue = CheckIssue::new(description.kind, description.message).at(Place {
        line,
        path: Some(path),
        schema_path: Some(error.evaluation_path().to_string()),
        keyword: Some(error.kind().keyword().to_owned()),
        ..Place::default()
    });
    match description.fix {
        Some(fix) => issue.fix(fix),
        None => issue,
    }
}

fn describe(error: &ValidationError<'_>, compiled: &Compiled, alternatives: bool) -> Description {
    let value = error.instance().as_ref();
    let place = place(error);
    let seen = shown(value);
    match error.kind() {
        Kind::Type { kind } => {
            let wanted = wanted(kind);
            Description::wrong(
                format!("{place} is {seen}, but {wanted} is required"),
                format!("make {place} {wanted}"),
            )
        }
        Kind::Required { property } => required(error, compiled, property),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            unexpected_properties(error, compiled, unexpected)
        }
        Kind::Enum { options } => one_of(&place, value, options),
        Kind::Constant { expected_value } => {
            let expected = shown(expected_value);
            Description::wrong(
                format!("{place} is {seen}, but only {expected} is allowed"),
                format!("make {place} {expected}"),
            )
        }
        Kind::Pattern { pattern } => Description::wrong(
            format!("{place} is {seen}, which does not match the regular expression `{pattern}`"),
            format!("make {place} match `{pattern}`"),
        ),
        Kind::Format { format } => Description::wrong(
            format!("{place} is {seen}, which is not of the format `{format}`"),
            format!("make {place} a valid {format}"),
        ),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let nearest = if alternatives {
                nearest(context, compiled)
            } else {
                None
            };
            let message = format!(
                "{place} is {seen}, which fits none of the {} alternatives",
                context.len()
            );
            match nearest {
                Some(description) => Description::wrong(
                    format!("{message}; of the nearest: {}", description.message),
                    description.fix,
                ),
                None => Description::wrong(message, None),
            }
        }
        Kind::OneOfMultipleValid { .. } => Description::wrong(
            format!("{place} is {seen}, which fits several alternatives and must fit exactly one"),
            None,
        ),
        Kind::Not { schema } => Description::wrong(
            format!(
                "{place} is {seen}, which must not be valid under {}",
                shown(schema)
            ),
            None,
        ),
        Kind::FalseSchema => Description::wrong(
            format!("{place} is {seen}, but nothing is allowed there"),
            format!("remove {place}"),
        ),
        Kind::PropertyNames { error } => Description::wrong(
            format!(
                "{place} has the property {}, whose name is not allowed: {}",
                shown(error.instance()),
                clip(&error.to_string(), SHOWN)
            ),
            None,
        ),
        _ => sizes(error, &place, &seen),
    }
}

/// Describes violations of keywords that limit a size or a number.
fn sizes(error: &ValidationError<'_>, place: &str, seen: &str) -> Description {
    let value = error.instance().as_ref();
    let number = |words: &str, limit: &Value| {
        Description::wrong(
            format!("{place} is {seen}, but must be {words} {limit}"),
            format!("make {place} {words} {limit}"),
        )
    };
    let too_few = |count: usize, limit: u64, unit: &str| {
        Description::missing(
            format!("{place} has {count} {unit}, but at least {limit} are required"),
            format!("give {place} at least {limit} {unit}"),
        )
    };
    let too_many = |count: usize, limit: u64, unit: &str| {
        Description::wrong(
            format!("{place} has {count} {unit}, but at most {limit} are allowed"),
            format!("cut {place} to {limit} {unit}"),
        )
    };
    let characters = value.as_str().map_or(0, |text| text.chars().count());
    let items = value.as_array().map_or(0, Vec::len);
    let properties = value.as_object().map_or(0, serde_json::Map::len);
    match error.kind() {
        Kind::Maximum { limit } => number("at most", limit),
        Kind::Minimum { limit } => number("at least", limit),
        Kind::ExclusiveMaximum { limit } => number("less than", limit),
        Kind::ExclusiveMinimum { limit } => number("more than", limit),
        Kind::MultipleOf { multiple_of } => number("a multiple of", &Value::from(*multiple_of)),
        Kind::MinLength { limit } => too_few(characters, *limit, "characters"),
        Kind::MaxLength { limit } => too_many(characters, *limit, "characters"),
        Kind::MinItems { limit } => too_few(items, *limit, "items"),
        Kind::MaxItems { limit } => too_many(items, *limit, "items"),
        Kind::MinProperties { limit } => too_few(properties, *limit, "properties"),
        Kind::MaxProperties { limit } => too_many(properties, *limit, "properties"),
        Kind::AdditionalItems { limit } => too_many(items, *limit as u64, "items"),
        Kind::UniqueItems => {
            let first_duplicate = value.as_array().and_then(|items| first_duplicate(items));
            let message = match first_duplicate {
                Some((first, second, item)) => format!(
                    "{place} has {} twice, as items {first} and {second}; all must be different",
                    shown(item)
                ),
                None => format!("{place} has items that are the same; all must be different"),
            };
            Description::wrong(message, format!("remove what is double in {place}"))
        }
        Kind::Contains => Description::missing(
            format!(
                "{place} is {seen}, and too few or too many of its items are such as `contains` wants"
            ),
            None,
        ),
        _ => Description::wrong(
            format!("{place}: {}", clip(&error.to_string(), SHOWN)),
            None,
        ),
    }
}

fn required(error: &ValidationError<'_>, compiled: &Compiled, property: &Value) -> Description {
    let value = error.instance().as_ref();
    let name = property.as_str().unwrap_or_default();
    let place = match error.instance_path().as_str() {
        "" => "at the top level".to_owned(),
        path => format!("in `{path}`"),
    };
    let enclosing_schema = enclosing_schema(error, compiled);
    let known = |key: &str| properties(enclosing_schema).any(|known| known == key);
    let misspelt = value.as_object().and_then(|object| {
        let others = object.keys().map(String::as_str).filter(|key| !known(key));
        source::similar(name, others)
    });
    if let Some(misspelt) = misspelt {
        return Description::missing(
            format!(
                "the property `{name}` is missing {place}; there is a `{misspelt}`: did you mean `{name}`?"
            ),
            format!("rename `{misspelt}` to `{name}`"),
        );
    }
    let what = enclosing_schema
        .and_then(|schema| schema.get("properties")?.get(name)?.get("type")?.as_str())
        .map(|name| format!(" ({})", article(name)))
        .unwrap_or_default();
    Description::missing(
        format!("the property `{name}` is missing {place}"),
        format!("add the property `{name}`{what} {place}"),
    )
}

fn unexpected_properties(
    error: &ValidationError<'_>,
    compiled: &Compiled,
    unexpected: &[String],
) -> Description {
    let place = place(error);
    let enclosing_schema = enclosing_schema(error, compiled);
    let names = source::list(unexpected.iter().map(String::as_str).take(LISTED));
    let known = source::list(properties(enclosing_schema).take(LISTED));
    let there = |known: &str| error.instance().get(known).is_some();
    let fixes: Vec<String> = unexpected
        .iter()
        .take(LISTED)
        .map(|name| {
            let absent = properties(enclosing_schema).filter(|known| !there(known));
            match source::similar(name, absent) {
                Some(meant) => format!("rename `{name}` to `{meant}`"),
                None => format!("remove `{name}`"),
            }
        })
        .collect();
    let properties = if unexpected.len() == 1 {
        "the property"
    } else {
        "the properties"
    };
    Description::wrong(
        format!("{place} has {properties} {names}, but only these are allowed: {known}"),
        fixes.join("; "),
    )
}

fn one_of(place: &str, value: &Value, options: &Value) -> Description {
    let options = options.as_array().map(Vec::as_slice).unwrap_or_default();
    let listed: Vec<String> = options.iter().take(LISTED).map(shown).collect();
    let more = match options.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let near = value.as_str().and_then(|text| {
        source::similar(text, options.iter().filter_map(Value::as_str))
            .map(|near| Value::from(near).to_string())
    });
    let message = format!(
        "{place} is {}, but only these are allowed: {}{more}",
        shown(value),
        listed.join(", ")
    );
    match near {
        Some(near) => Description::wrong(
            format!("{message}; did you mean {near}?"),
            format!("make {place} {near}"),
        ),
        None => Description::wrong(
            message,
            format!("make {place} one of {}{more}", listed.join(", ")),
        ),
    }
}

/// Describes the violation of the alternative closest to the value: the one with the fewest errors,
/// and among these the one with the deepest errors.
fn nearest(context: &[Vec<ValidationError<'static>>], compiled: &Compiled) -> Option<Description> {
    let depth = |errors: &[ValidationError<'_>]| {
        errors
            .iter()
            .map(|error| error.instance_path().as_str().matches('/').count())
            .max()
    };
    let errors = context
        .iter()
        .filter(|errors| !errors.is_empty())
        .min_by_key(|errors| (std::cmp::Reverse(depth(errors)), errors.len()))?;
    let first = describe(errors.first()?, compiled, false);
    Some(match errors.get(1) {
        None => first,
        Some(second) => Description {
            message: format!(
                "{}; {}",
                first.message,
                describe(second, compiled, false).message
            ),
            ..first
        },
    })
}

/// Returns the schema that contains the violated keyword.
fn enclosing_schema<'c>(error: &ValidationError<'_>, compiled: &'c Compiled) -> Option<&'c Value> {
    let address = error.absolute_keyword_location()?.as_str();
    let (schema, _) = address.rsplit_once('/')?;
    // A keyword at the root of a document: `…#/required`.
    compiled.at(schema.strip_suffix('#').unwrap_or(schema))
}

fn properties(schema: Option<&Value>) -> impl Iterator<Item = &str> {
    schema
        .and_then(|schema| schema.get("properties")?.as_object())
        .into_iter()
        .flat_map(|properties| properties.keys().map(String::as_str))
}

fn place(error: &ValidationError<'_>) -> String {
    match error.instance_path().as_str() {
        "" => "the value".to_owned(),
        path => format!("`{path}`"),
    }
}

fn wanted(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(name) => article(&name.to_string()),
        TypeKind::Multiple(names) => {
            let names: Vec<String> = names
                .iter()
                .map(|name| article(&name.to_string()))
                .collect();
            names.join(" or ")
        }
    }
}

fn article(name: &str) -> String {
    match name {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {name}"),
        name => format!("a {name}"),
    }
}

/// Returns the first two equal items. Looks only at the first items, because each is compared with
/// all before it.
fn first_duplicate(items: &[Value]) -> Option<(usize, usize, &Value)> {
    const LOOKED_AT: usize = 1000;
    items
        .iter()
        .enumerate()
        .take(LOOKED_AT)
        .find_map(|(index, item)| {
            let first = items[..index].iter().position(|other| other == item)?;
            Some((first, index, item))
        })
}

/// Returns the beginning of a value as JSON. Writes no more than is shown, because a draft may be
/// large and have many errors.
fn shown(value: &Value) -> String {
    let mut start = PrefixWriter(Vec::new());
    // Writing fails as soon as the limit is reached.
    let _ = serde_json::to_writer(&mut start, value);
    clip(&String::from_utf8_lossy(&start.0), SHOWN)
}

/// A writer that accepts enough bytes for the shown characters, then fails.
struct PrefixWriter(Vec<u8>);

impl io::Write for PrefixWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const ENOUGH: usize = 4 * (SHOWN + 1);
        if self.0.len() >= ENOUGH {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.0.extend_from_slice(&bytes[..bytes.len().min(ENOUGH)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
