use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Source, SourceError, list, similar};

/// Deserializes a whole TOML text.
pub fn parse<T: DeserializeOwned>(source: &Source) -> Result<T, SourceError> {
    table_into(source, table(source)?)
}

/// Parses the text into a table that records the position of each key and value.
pub fn table(source: &Source) -> Result<Spanned<DeTable<'_>>, SourceError> {
    DeTable::parse(source.text()).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let message = error.message();
        let found = source.text().get(span.clone()).unwrap_or_default();
        let new = |text: &str| source.error(span.clone(), text);
        if message.contains("duplicate key") && !found.is_empty() {
            return new(&format!("the key `{found}` is set twice"));
        }
        let error = new(&format!("invalid TOML: {message}"));
        if message.starts_with("string values must be quoted") {
            error.help("put the string in quotes: \"...\", or '...' if it contains backslashes")
        } else {
            error
        }
    })
}

/// Deserializes a table of this source. Errors name the key, the value found and the expected type, and suggest a
/// similar key or value.
pub fn table_into<T: DeserializeOwned>(
    source: &Source,
    table: Spanned<DeTable<'_>>,
) -> Result<T, SourceError> {
    let outline = table.get_ref().clone();
    T::deserialize(toml::Deserializer::from(table)).map_err(|error| {
        let span = error.span().unwrap_or(0..0);
        let mut path = Vec::new();
        locate(&outline, &span, &mut path);
        translate(source, span, &path.join("."), error.message())
    })
}

/// The byte range of the value at a path of keys; `None` if it does not exist.
pub fn value_span(table: &DeTable<'_>, path: &[&str]) -> Option<Range<usize>> {
    let (key, rest) = path.split_first()?;
    let value = table.get(*key)?;
    if rest.is_empty() {
        return Some(value.span());
    }
    match value.get_ref() {
        DeValue::Table(inner) => value_span(inner, rest),
        _ => None,
    }
}

/// Finds the keys that lead to the value at `span`.
fn locate(table: &DeTable<'_>, span: &Range<usize>, path: &mut Vec<String>) -> bool {
    table.iter().any(|(key, value)| {
        path.push(key.get_ref().to_string());
        let found = value.span() == *span || locate_in(value.get_ref(), span, path);
        if !found {
            path.pop();
        }
        found
    })
}

fn locate_in(value: &DeValue<'_>, span: &Range<usize>, path: &mut Vec<String>) -> bool {
    match value {
        DeValue::Table(table) => locate(table, span, path),
        DeValue::Array(items) => items
            .iter()
            .any(|item| item.span() == *span || locate_in(item.get_ref(), span, path)),
        _ => false,
    }
}

/// Rewrites a serde message in our wording. The expected names come from serde, which takes them from the type.
fn translate(source: &Source, span: Range<usize>, path: &str, message: &str) -> SourceError {
    let subject = if path.is_empty() {
        String::new()
    } else {
        format!("`{path}`: ")
    };
    if let Some((name, known)) = unknown(message, "unknown field `") {
        return unknown_key(source, span, name, &known);
    }
    if let Some((name, known)) = unknown(message, "unknown variant `") {
        let near = similar(name, known.iter().copied());
        return source
            .error(span, &format!("{subject}unknown value `{name}`"))
            .help_if(near.map(|n| format!("did you mean `{n}`?")))
            .help(format!("known values: {}", list(known)));
    }
    if let Some(name) = message
        .strip_prefix("missing field `")
        .and_then(|m| m.strip_suffix('`'))
    {
        return source.error(span, &format!("the key `{name}` is missing"));
    }
    if let Some((found, wanted)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|m| m.rsplit_once(", expected "))
    {
        return source
            .error(span, &format!("{subject}expected {}", in_words(wanted)))
            .label(format!("this is {}", found_in_words(found, "a table")));
    }
    source.error(span, &format!("{subject}{message}"))
}

/// The error for an unknown key of a table.
pub fn unknown_key(source: &Source, span: Range<usize>, name: &str, known: &[&str]) -> SourceError {
    let near = similar(name, known.iter().copied());
    source
        .error(span, &format!("unknown key `{name}`"))
        .help_if(near.map(|n| format!("did you mean `{n}`?")))
        .help(format!("known keys: {}", list(known.iter().copied())))
}

/// Parses serde's ``unknown field `x`, expected one of `a`, `b` `` into the name and the known names.
pub(super) fn unknown<'m>(message: &'m str, prefix: &str) -> Option<(&'m str, Vec<&'m str>)> {
    let rest = message.strip_prefix(prefix)?;
    let (name, known) = rest
        .rsplit_once("`, expected ")
        .or_else(|| rest.rsplit_once("`, there are no "))?;
    // Every second piece between backticks is a name.
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

fn in_words(wanted: &str) -> &str {
    match wanted {
        "a string" | "string" => "a string",
        "a boolean" => "`true` or `false`",
        "f64" | "f32" => "a number",
        "u8" | "u16" | "u32" | "u64" | "usize" => "an integer, at least 0",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "a sequence" => "an array `[...]`",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other if other.starts_with("enum ") => "one of a fixed set of strings",
        other => other,
    }
}

/// Describes the value that serde found. `map` is the format's term for a map.
pub(super) fn found_in_words(found: &str, map: &str) -> String {
    match found.split_once(' ') {
        Some(("string", text)) => format!("the string {text}"),
        Some(("integer" | "floating", number)) => {
            format!(
                "the number {}",
                number.trim_start_matches("point ").trim_matches('`')
            )
        }
        Some(("boolean", value)) => format!("the boolean {value}"),
        _ => match found {
            "sequence" => "an array".to_owned(),
            "map" => map.to_owned(),
            other => other.to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields, default)]
    struct Top {
        name: String,
        count: u32,
        share: f64,
        flag: bool,
        mode: Mode,
        inner: Inner,
        items: Vec<Inner>,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        limit: u64,
    }

    #[derive(Debug, Default, Deserialize, PartialEq)]
    #[serde(rename_all = "snake_case")]
    enum Mode {
        #[default]
        Present,
        Absent,
    }

    fn error(text: &str) -> SourceError {
        parse::<Top>(&Source::new("t.toml", text)).unwrap_err()
    }

    #[test]
    fn integers_are_accepted_as_numbers() {
        let top: Top = parse(&Source::new("t", "share = 2\ninner.limit = 3")).unwrap();
        assert!((top.share - 2.0).abs() < f64::EPSILON);
        assert_eq!(top.inner.limit, 3);
    }

    #[test]
    fn errors_name_the_key_position_and_expected_type() {
        let cases = [
            (
                "cuont = 1",
                "t.toml:1:1: unknown key `cuont` (did you mean `count`?)",
            ),
            (
                "\n[inner]\nlimit=1\nlimt=2",
                "t.toml:4:1: unknown key `limt` (did you mean `limit`?)",
            ),
            (
                "mode = 'absnt'",
                "t.toml:1:8: `mode`: unknown value `absnt` (did you mean `absent`?)",
            ),
            (
                "count = 'x'",
                "t.toml:1:9: `count`: expected an integer, at least 0",
            ),
            (
                "count = -1",
                "t.toml:1:9: `count`: expected an integer, at least 0",
            ),
            ("share = 'x'", "t.toml:1:9: `share`: expected a number"),
            ("name = 1", "t.toml:1:8: `name`: expected a string"),
            ("flag = 1", "t.toml:1:8: `flag`: expected `true` or `false`"),
            ("inner = 1", "t.toml:1:9: `inner`: expected a table"),
            (
                "[inner]\nlimit = 'x'",
                "t.toml:2:9: `inner.limit`: expected an integer",
            ),
            (
                "items = 1",
                "t.toml:1:9: `items`: expected an array `[...]`",
            ),
            ("[[items]]\n", "t.toml:1:1: the key `limit` is missing"),
            ("a = 1\na = 2", "t.toml:2:1: the key `a` is set twice"),
            (
                "name = hello",
                "t.toml:1:8: invalid TOML: string values must be quoted",
            ),
            ("name", "t.toml:1:5: invalid TOML: key with no value"),
            ("= 1", "t.toml:1:1: invalid TOML"),
        ];
        for (text, start) in cases {
            let shown = error(text).to_string();
            assert!(shown.starts_with(start), "{text:?}: {shown}");
        }
    }

    #[test]
    fn the_position_is_shown() {
        insta::assert_snapshot!(error("name = 'x'\r\n[inner]\r\nlimit = 1.5 # why\r\n").render(false), @r"
        error: `inner.limit`: expected an integer, at least 0
         --> t.toml:3:9
          |
        3 | limit = 1.5 # why
          |         ^^^ this is the number 1.5
        ");
    }

    #[test]
    fn backticks_in_a_key_are_handled() {
        let shown = error("\"a`, expected one of `count\" = 1");
        assert!(shown.message().starts_with("unknown key"), "{shown}");
    }

    #[test]
    fn values_are_found_by_their_keys() {
        let source = Source::new("t", "a = 1\n[b]\nc = 22\n");
        let table = table(&source).unwrap();
        let span = value_span(table.get_ref(), &["b", "c"]).unwrap();
        assert_eq!(&source.text()[span], "22");
        assert_eq!(value_span(table.get_ref(), &["b", "d"]), None);
        assert_eq!(value_span(table.get_ref(), &["a", "c"]), None);
        assert_eq!(value_span(table.get_ref(), &[]), None);
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,60}|[a-z\\[\\]=\"'.{}#\n,0-9 -]{0,80}") {
            if let Err(error) = parse::<Top>(&Source::new("t", &text)) {
                let _ = error.render(false);
            }
        }
    }
}
