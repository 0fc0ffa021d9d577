use std::fmt::Write as _;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn parse(format: DataFormat, text: &str) -> Result<Data, SourceError> {
    Data::parse(&Source::new("f", text), format)
}

fn shown(data: &Data, pointer: &str) -> (usize, usize) {
    data.source().position(data.span(pointer).start)
}

#[test]
fn all_formats_parse_to_the_same_value_with_positions() {
    let json = parse(
        DataFormat::Json,
        "{\n  \"a\": {\n    \"b\": [1, \"x\"]\n  }\n}\n",
    )
    .unwrap();
    let yaml = parse(DataFormat::Yaml, "# one\na:\n  b: [1, x]\n").unwrap();
    let toml = parse(DataFormat::Toml, "[a]\nb = [1, \"x\"]\n").unwrap();
    for data in [&json, &yaml, &toml] {
        assert_eq!(data.value(), &json!({ "a": { "b": [1, "x"] } }));
    }
    assert_eq!(shown(&json, "/a/b/1"), (3, 14));
    assert_eq!(shown(&yaml, "/a/b/1"), (3, 10));
    assert_eq!(shown(&toml, "/a/b/1"), (2, 9));
    // A missing path resolves to its nearest existing ancestor.
    assert_eq!(shown(&json, "/a/b/7/c"), (3, 10));
    for data in [json, yaml, toml] {
        let part = data.get("a").unwrap();
        assert_eq!(part.value(), &json!({ "b": [1, "x"] }));
        assert_eq!(shown(&part, "/b/1"), shown(&data, "/a/b/1"));
        assert!(data.get("z").is_none());
    }
}

#[test]
fn yaml_words_stay_strings_and_null_is_null() {
    let data = parse(DataFormat::Yaml, "no: yes\nn: null\nt: true\nz:\n").unwrap();
    assert_eq!(
        data.value(),
        &json!({ "no": "yes", "n": null, "t": true, "z": null })
    );
}

#[test]
fn toml_dates_become_strings_and_infinite_numbers_are_errors() {
    let data = parse(DataFormat::Toml, "d = 2024-05-01\n").unwrap();
    assert_eq!(data.value(), &json!({ "d": "2024-05-01" }));
    let error = parse(DataFormat::Toml, "a = 1\nb = [inf]\n").unwrap_err();
    assert_eq!(error.position(), Some((2, 6)));
}

#[test]
fn parse_errors_have_positions() {
    for (format, text, place, words) in [
        (DataFormat::Json, "{\n \"a\": }", (2, 7), "invalid JSON"),
        (DataFormat::Json, "", (1, 1), "invalid JSON"),
        (DataFormat::Yaml, "a: 1\na: 2\n", (2, 1), "invalid YAML"),
        (DataFormat::Yaml, "a: ]\n", (1, 4), "invalid YAML"),
        (
            DataFormat::Yaml,
            "a: 1\n---\nb: 1\n",
            (3, 1),
            "expected a single YAML document",
        ),
        (DataFormat::Toml, "a = ", (1, 5), "invalid TOML"),
    ] {
        let error = parse(format, text).unwrap_err();
        assert!(error.message().starts_with(words), "{error}");
        assert_eq!(error.position(), Some(place), "{text:?}: {error}");
    }
}

#[test]
fn alias_bombs_are_rejected_quickly() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..12 {
        let last = n - 1;
        let _ = writeln!(
            bomb,
            "a{n}: &a{n} [*a{last}, *a{last}, *a{last}, *a{last}, *a{last}]"
        );
    }
    let started = std::time::Instant::now();
    assert!(parse(DataFormat::Yaml, &bomb).is_err());
    assert!(started.elapsed().as_secs() < 5);
    let deep = "[".repeat(100_000);
    for format in [DataFormat::Json, DataFormat::Yaml, DataFormat::Toml] {
        assert!(parse(format, &deep).is_err());
    }
}

#[test]
fn the_extension_determines_the_format() {
    assert_eq!(
        DataFormat::from_path(Path::new("a/b.YML")),
        Some(DataFormat::Yaml)
    );
    assert_eq!(DataFormat::from_path(Path::new("b.txt")), None);
    assert_eq!(DataFormat::from_path(Path::new("json")), None);
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "[\\[\\]{}:,\"'&*|>#%!a1é \n-]{0,40}") {
        for format in [DataFormat::Json, DataFormat::Yaml, DataFormat::Toml] {
            match parse(format, &text) {
                Ok(data) => { let _ = data.error("/a/0", "x").render(false); }
                Err(error) => { let _ = error.render(false); }
            }
        }
    }
}
