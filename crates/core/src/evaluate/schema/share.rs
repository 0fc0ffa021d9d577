//! The share of a schema's requirements that hold.

use std::collections::BTreeMap;

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use referencing::Resolver;
use serde_json::Value;

use crate::criteria::json_schema::Compiled;

/// The keywords that each add one requirement to a value of the right type.
const BOUNDS: [&str; 20] = [
    "enum",
    "const",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "dependentRequired",
    "not",
];

/// The keywords whose subschemas apply to the value itself, not to a part of it.
const IN_PLACE: [&str; 12] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
];
/// The keywords that hold several schemas by name.
const MAPS: [&str; 4] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
];

/// The score of a `oneOf` of which more than one alternative matches.
const SEVERAL_FIT: f64 = 0.5;

/// Returns the share of a schema's requirements that hold for a value with these errors, from 0 to
/// 1: 0 for a value of the wrong type, 1 without errors.
///
/// Computed by path. At each place, the right type, each required property and each bound count as
/// one requirement. A partly valid property or item subtracts its deficit from its parent. A repair
/// therefore never lowers the share: more of the same requirements hold, and nothing else is lost.
pub(super) fn share(compiled: &Compiled, errors: &[ValidationError<'_>]) -> f64 {
    let errors: Vec<LocatedError<'_>> = errors.iter().map(LocatedError::new).collect();
    let whole = compiled.root().map_or_else(
        || f64::from(u8::from(errors.is_empty())),
        |(schema, resolver)| ShareWalk { compiled }.share(schema, &resolver, ("", ""), &errors),
    );
    // Rounding makes sums equal that differ only in the order of their terms.
    (whole * 1e6).round() / 1e6
}

/// An error with its path through the schema as applied, and through the value.
#[derive(Clone, Copy)]
struct LocatedError<'e> {
    error: &'e ValidationError<'e>,
    schema: &'e str,
    value: &'e str,
}

impl<'e> LocatedError<'e> {
    fn new(error: &'e ValidationError<'_>) -> Self {
        Self {
            error,
            schema: error.evaluation_path().as_str(),
            value: error.instance_path().as_str(),
        }
    }
}

/// The requirements of one value.
struct Tally {
    /// Their number.
    required: f64,
    /// The number of violated requirements.
    broken: f64,
    /// The deficits of its parts, which are not requirements themselves.
    lacking: f64,
}

struct ShareWalk<'c> {
    compiled: &'c Compiled,
}

impl ShareWalk<'_> {
    /// Returns the share for the schema applied at these paths through the schema and the value.
    /// All errors are at or below it.
    fn share(
        &self,
        schema: &Value,
        resolver: &Resolver<'_>,
        at: (&str, &str),
        errors: &[LocatedError<'_>],
    ) -> f64 {
        if errors.is_empty() {
            return 1.0;
        }
        self.tally(schema, resolver, at, errors).map_or(0.0, |it| {
            (it.required - it.broken).max(1.0) / (it.required + it.lacking)
        })
    }

    /// Counts a schema's requirements and violations, or returns `None` for a value of the wrong
    /// type.
    fn tally(
        &self,
        schema: &Value,
        resolver: &Resolver<'_>,
        (path, place): (&str, &str),
        errors: &[LocatedError<'_>],
    ) -> Option<Tally> {
        let draft = self.compiled.validator().draft();
        let resolver = (resolver
            .in_subresource(draft.create_resource_ref(schema))
            .ok())?;
        let mut tally = Tally {
            required: requirements(schema),
            broken: 0.0,
            lacking: 0.0,
        };
        let members = members(schema);
        let mut parts: BTreeMap<(&str, &str), Vec<LocatedError<'_>>> = BTreeMap::new();
        for found in errors {
            let rest = &found.schema[path.len()..];
            let keyword = first(rest);
            match found.error.kind() {
                Kind::FalseSchema if rest.is_empty() => return None,
                kind if rest != keyword || matches!(kind, Kind::FalseSchema) => {
                    let inner = match &keyword[1..] {
                        name if IN_PLACE.contains(&name) => "",
                        _ => first(&found.value[place.len()..]),
                    };
                    let part = (applied(schema, rest), inner);
                    parts.entry(part).or_default().push(*found);
                }
                Kind::Type { .. } => return None,
                Kind::Enum { .. } | Kind::Constant { .. } if schema.get("type").is_none() => {
                    return None;
                }
                Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                    let alternatives = (0..).zip(context).map(|(number, errors): (usize, _)| {
                        let errors: Vec<LocatedError<'_>> =
                            errors.iter().map(LocatedError::new).collect();
                        let part = format!("{keyword}/{number}");
                        self.part(schema, &resolver, (path, &part), (place, ""), &errors)
                    });
                    let best = alternatives.fold(0.0, f64::max);
                    if best == 0.0 {
                        return None;
                    }
                    tally.lacking += 1.0 - best;
                }
                Kind::OneOfMultipleValid { .. } => tally.lacking += 1.0 - SEVERAL_FIT,
                Kind::AdditionalProperties { unexpected }
                | Kind::UnevaluatedProperties { unexpected } => {
                    tally.lacking += counted(unexpected.len());
                }
                _ if keyword == "/required" || BOUNDS.contains(&&keyword[1..]) => {
                    tally.broken += 1.0;
                }
                _ => tally.lacking += 1.0,
            }
        }
        for part in &members {
            let errors = parts.remove(&(&**part, "")).unwrap_or_default();
            let Some((schema, resolver)) = within(schema, &resolver, part) else {
                continue;
            };
            let at = (&*format!("{path}{part}"), place);
            let inner = self.tally(schema, &resolver, at, &errors)?;
            // The type has been counted.
            tally.required += inner.required - 1.0;
            tally.broken += inner.broken;
            tally.lacking += inner.lacking;
        }
        for ((part, inner), errors) in parts {
            let share = self.part(schema, &resolver, (path, part), (place, inner), &errors);
            tally.lacking += 1.0 - share;
        }
        Some(tally)
    }

    /// Returns the share of a subschema at a place within the value.
    fn part(
        &self,
        schema: &Value,
        resolver: &Resolver<'_>,
        (path, part): (&str, &str),
        (place, inner): (&str, &str),
        errors: &[LocatedError<'_>],
    ) -> f64 {
        let at = (&*format!("{path}{part}"), &*format!("{place}{inner}"));
        within(schema, resolver, part).map_or(0.0, |(schema, resolver)| {
            self.share(schema, &resolver, at, errors)
        })
    }
}

/// Returns the schema at a path within a schema, following references.
fn within<'s>(
    schema: &'s Value,
    resolver: &Resolver<'s>,
    part: &str,
) -> Option<(&'s Value, Resolver<'s>)> {
    match schema.pointer(part)? {
        Value::String(target) => {
            let (schema, resolver, _) = resolver.lookup(target).ok()?.into_inner();
            Some((schema, resolver))
        }
        schema => Some((schema, resolver.clone())),
    }
}

/// Returns the paths of the subschemas that always apply to the same value.
fn members(schema: &Value) -> Vec<String> {
    let all = schema.get("allOf").and_then(Value::as_array);
    let all = (0..all.map_or(0, Vec::len)).map(|number| format!("/allOf/{number}"));
    let reference = schema.get("$ref").map(|_| "/$ref".to_owned());
    reference.into_iter().chain(all).collect()
}

/// Counts the requirements of a schema at its own place: the type, each required property, each
/// bound.
fn requirements(schema: &Value) -> f64 {
    let bounds = BOUNDS.iter().filter(|bound| schema.get(bound).is_some());
    let properties = schema.get("required").and_then(Value::as_array);
    counted(1 + bounds.count() + properties.map_or(0, Vec::len))
}

fn counted(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns the path from a schema to the subschema that is applied first: `/items`,
/// `/properties/name`, `/allOf/0`.
fn applied<'p>(schema: &Value, path: &'p str) -> &'p str {
    let keyword = first(path);
    let several = match schema.pointer(keyword) {
        Some(Value::Array(_)) => true,
        Some(Value::Object(_)) => MAPS.contains(&&keyword[1..]),
        _ => false,
    };
    let name = if several {
        first(&path[keyword.len()..])
    } else {
        ""
    };
    &path[..keyword.len() + name.len()]
}

/// Returns the first segment of a JSON Pointer with its slash; empty at the end.
fn first(pointer: &str) -> &str {
    let end = pointer.get(1..).and_then(|rest| rest.find('/'));
    end.map_or(pointer, |end| &pointer[..=end])
}
