use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::evaluate::Progress;
use crate::types::Task;

fn checker(schema: Value) -> Checker {
    let compiled =
        Compiled::new(&SchemaConfig::new(schema)).unwrap_or_else(|problem| panic!("{problem:?}"));
    Checker::new(compiled, true)
}

fn check(schema: Value, draft: &str) -> Finding {
    checker(schema).check(draft)
}

fn person() -> Value {
    json!({
        "type": "object",
        "required": ["name"],
        "properties": { "name": { "type": "string" }, "age": { "type": "integer" } },
    })
}

#[test]
fn the_value_is_found_bare_fenced_and_among_prose() {
    for draft in [
        "{\"name\": \"A\"}",
        "  {\"name\": \"A\"}\n",
        "```json\n{\"name\": \"A\"}\n```",
        "Here it is [1]:\n\n```\n{\"name\": \"A\"}\n```\nHope that helps [2]!",
        "First {\"name\": 1, \"age\": \"x\"}. No: {\"name\": \"A\"}",
        "<think>{\"age\": []}</think>{\"name\": \"A\"}",
        "\"{\\\"name\\\": \\\"A\\\"}\"",
        "{\"content\": \"{\\\"name\\\": \\\"A\\\"}\", \"usage\": {\"total\": 3}}",
        "{\"role\": \"assistant\", \"content\": \"Sure: {\\\"name\\\": \\\"A\\\"}\"}",
    ] {
        let finding = check(person(), draft);
        assert_eq!(finding.valid, Some(true), "{draft}: {finding:?}");
        assert_eq!(finding.value, Some(json!({ "name": "A" })), "{draft}");
        assert_eq!(finding.score, Some(1.0));
        assert!(finding.faults.is_empty());
    }
}

#[test]
fn the_wanted_type_decides_which_value_is_meant() {
    let list = json!({ "type": "array", "items": { "type": "integer" } });
    let finding = check(list, "[1, \"2\"] for {\"a\": 1}");
    assert_eq!(finding.value, Some(json!([1, 2])));
    let untyped = json!({ "required": ["name"] });
    let finding = check(untyped, "{\"name\": 1} as in [3]");
    assert_eq!(finding.valid, Some(true), "{finding:?}");
    // An envelope that the schema wants is no envelope.
    let message = json!({ "type": "object", "required": ["content"] });
    let finding = check(message, "{\"content\": \"{}\"}");
    assert_eq!(finding.value, Some(json!({ "content": "{}" })));
}

#[test]
fn a_scalar_may_be_the_whole_text() {
    assert_eq!(
        check(json!({ "type": "integer" }), " 12\n").value,
        Some(json!(12))
    );
    assert_eq!(
        check(json!({ "type": "boolean" }), "Yes").value,
        Some(json!(true))
    );
    assert_eq!(
        check(json!({ "type": "string" }), "Some words.").value,
        Some(json!("Some words."))
    );
    assert_eq!(
        check(json!({ "type": "string" }), "\"Some words.\"").value,
        Some(json!("Some words."))
    );
    assert_eq!(
        check(json!({ "type": "integer" }), "```\n7\n```").value,
        Some(json!(7))
    );
    let word = check(json!({ "enum": ["red", "green"] }), "gren");
    assert_eq!(word.valid, Some(false));
    assert!(
        word.faults[0]
            .description
            .contains("did you mean \"green\"?"),
        "{word:?}"
    );
}

#[test]
fn a_draft_without_json_is_as_bad_as_can_be_and_no_failure() {
    for (draft, words, line) in [
        ("I cannot do that.", "there is no JSON value", None),
        ("see [here] and {there}", "there is no JSON value", None),
        (
            "Sure:\n{\"name\": \"A\",\n \"age\": 3",
            "begins in line 2 is not valid: it is cut off",
            Some(3),
        ),
        (
            "{\"name\": \"A\",\n 'age': 3}",
            "key must be a string (line 2)",
            Some(2),
        ),
    ] {
        let finding = check(person(), draft);
        assert_eq!(
            (finding.score, finding.valid),
            (Some(0.0), Some(false)),
            "{draft}"
        );
        assert_eq!(finding.status, Status::Ok);
        assert!(
            finding.evidence.contains(words),
            "{draft}: {}",
            finding.evidence
        );
        assert_eq!(finding.faults[0].place.line, line, "{draft}");
        assert_eq!(finding.faults[0].place.keyword.as_deref(), Some("type"));
    }
}

#[test]
fn depth_is_bounded() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let finding = check(json!({ "type": "array" }), &deep);
    assert!(
        finding.evidence.contains("nested too deeply"),
        "{}",
        finding.evidence
    );
    // The deepest that is read, under a schema that goes with it.
    let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
    let nested =
        json!({ "anyOf": [{ "type": "array", "items": { "$ref": "#" } }, { "type": "integer" }] });
    assert_eq!(check(nested, &deep).valid, Some(true));
}

#[tokio::test]
async fn a_schema_that_multiplies_ends_at_the_limit_or_before() {
    let schema = json!({ "type": "object", "properties": { "a": { "anyOf": [
        { "$ref": "#" }, { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] }, { "$ref": "#" }
    ] } } });
    let check = SchemaCheck::new(&SchemaConfig::new(schema)).unwrap();
    let draft = format!("{}1{}", "{\"a\":".repeat(40), "}".repeat(40));
    let started = std::time::Instant::now();
    let finding = check
        .check(&Subject {
            draft: &draft,
            prior: None,
            attempt: 0,
            progress: Progress {
                iteration: 1,
                task: &Task::new(""),
                earlier: &[],
            },
        })
        .await;
    assert!(started.elapsed() < LIMIT * 2, "{:?}", started.elapsed());
    assert!(matches!(finding.status, Status::Ok | Status::Failed));
}

#[test]
fn a_pattern_that_explodes_is_a_failure_and_no_error_of_the_draft() {
    let schema = json!({ "properties": { "v": { "pattern": "^((?=a)(a|aa))+$" } } });
    let finding = check(
        schema,
        &json!({ "v": format!("{}!", "a".repeat(60)) }).to_string(),
    );
    assert_eq!(finding.status, Status::Failed, "{finding:?}");
    assert!(
        finding.evidence.contains("`/properties/v/pattern`"),
        "{finding:?}"
    );
    assert_eq!(finding.score, None);
}

#[test]
fn the_score_falls_with_each_error_and_the_verdict_is_strict() {
    let schema = json!({ "type": "array", "items": { "type": "null" } });
    for (draft, score) in [
        ("[null]", 1.0),
        ("[1]", 0.8),
        ("[1,1,1]", 0.4),
        ("[1,1,1,1,1,1,1]", 0.0),
    ] {
        let finding = check(schema.clone(), draft);
        assert_eq!(finding.score, Some(score), "{draft}");
        assert_eq!(finding.valid, Some(draft == "[null]"));
    }
    let many = format!("[{}1]", "1,".repeat(10_000));
    assert_eq!(check(schema, &many).faults.len(), MAX_ERRORS);
}

#[test]
fn values_are_coerced_before_they_are_judged_and_it_is_said() {
    let finding = check(person(), "{\"name\": 7, \"age\": \"42\"}");
    assert_eq!(finding.value, Some(json!({ "name": "7", "age": 42 })));
    assert_eq!(
        finding.evidence,
        "valid, having read /name 7 as \"7\", /age \"42\" as 42"
    );
    let mut strict = checker(person());
    strict.coerce = false;
    let finding = strict.check("{\"name\": 7, \"age\": \"42\"}");
    assert_eq!(finding.faults.len(), 2);
    assert_eq!(finding.value, Some(json!({ "name": 7, "age": "42" })));
    // Through references, and not where several readings are possible.
    let schema = json!({ "$defs": { "n": { "type": "integer" } }, "type": "object", "properties": {
        "a": { "$ref": "#/$defs/n" }, "b": { "anyOf": [{ "$ref": "#/$defs/n" }] } } });
    let finding = check(schema, "{\"a\": \"1\", \"b\": \"1\"}");
    assert_eq!(finding.value, Some(json!({ "a": 1, "b": "1" })));
    assert_eq!(finding.faults.len(), 1);
    assert_eq!(finding.faults[0].place.path.as_deref(), Some("/b"));
    let null = check(person(), "{\"name\": null}");
    assert_eq!(null.value, Some(json!({ "name": null })));
    assert_eq!(null.valid, Some(false));
}

/// Place, value seen, what would be allowed: one line for each keyword.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_fault_says_what_is_there_and_what_is_wanted() {
    let cases = [
        (
            json!({ "type": "integer" }),
            json!([]),
            "is [], but an integer is wanted",
        ),
        (
            json!({ "type": ["integer", "null"] }),
            json!({}),
            "is {}, but null or an integer is wanted",
        ),
        (
            json!({ "enum": ["a", 1, {}] }),
            json!([]),
            "only these are allowed: \"a\", 1, {}",
        ),
        (json!({ "const": [1] }), json!([]), "only [1] is allowed"),
        (
            json!({ "maximum": 3 }),
            json!(4),
            "is 4, but must be at most 3",
        ),
        (
            json!({ "exclusiveMinimum": 3 }),
            json!(3),
            "must be more than 3",
        ),
        (json!({ "multipleOf": 2 }), json!(3), "a multiple of 2"),
        (
            json!({ "minLength": 2 }),
            json!("é"),
            "has 1 characters, but at least 2",
        ),
        (
            json!({ "maxItems": 1 }),
            json!([1, 2]),
            "has 2 items, but at most 1",
        ),
        (
            json!({ "minProperties": 1 }),
            json!({}),
            "has 0 properties, but at least 1",
        ),
        (
            json!({ "uniqueItems": true }),
            json!([1, 2, 1]),
            "has 1 twice, as items 0 and 2",
        ),
        (
            json!({ "pattern": "^a" }),
            json!("b"),
            "regular expression `^a`",
        ),
        (
            json!({ "contains": { "type": "null" } }),
            json!([1]),
            "`contains`",
        ),
        (
            json!({ "not": { "type": "array" } }),
            json!([1]),
            "must not be valid under",
        ),
        (json!(false), json!([1]), "nothing is allowed there"),
        (
            json!({ "propertyNames": { "maxLength": 1 } }),
            json!({ "ab": 1 }),
            "the property \"ab\"",
        ),
        (
            json!({ "required": ["name"] }),
            json!({ "nmae": 1 }),
            "there is a `nmae`: did you mean `name`?",
        ),
        (
            json!({ "properties": { "name": {} }, "additionalProperties": false }),
            json!({ "nmae": 1 }),
            "has the property `nmae`, but only these are allowed: `name`",
        ),
        (
            json!({ "anyOf": [{ "type": "integer" }, { "properties": { "a": { "type": "null" } } }] }),
            json!({ "a": 1 }),
            "fits none of the 2 alternatives; of the nearest: `/v/a` is 1, but null is wanted",
        ),
        (
            json!({ "oneOf": [{}, {}] }),
            json!([1]),
            "fits several alternatives",
        ),
        (
            json!({ "dependentRequired": { "a": ["b"] } }),
            json!({ "a": 1 }),
            "the property `b` is missing in `/v`",
        ),
        (
            json!({ "prefixItems": [{}], "items": false }),
            json!([1, 2]),
            "`/v/1` is 2, but nothing is allowed there",
        ),
        (
            json!({ "properties": { "a": {} }, "unevaluatedProperties": false }),
            json!({ "b": 2 }),
            "has the property `b`",
        ),
    ];
    for (schema, value, words) in cases {
        let around = json!({ "properties": { "v": schema } });
        let finding = check(around, &json!({ "v": value }).to_string());
        let fault = finding
            .faults
            .first()
            .unwrap_or_else(|| panic!("{schema} has no fault"));
        assert!(
            fault.description.contains(words),
            "{schema}: {}",
            fault.description
        );
        assert!(
            fault
                .place
                .path
                .as_deref()
                .is_some_and(|path| path.starts_with("/v")),
            "{schema}"
        );
        assert_eq!(fault.place.line, Some(1), "{schema}");
    }
}

#[test]
fn faults_know_their_line_in_the_draft() {
    let draft = "Here:\n\n```json\n{\n  \"name\": \"A\",\n  \"age\": \"old\"\n}\n```\n";
    let finding = check(person(), draft);
    let place = &finding.faults[0].place;
    assert_eq!(place.line, Some(6));
    assert_eq!(place.path.as_deref(), Some("/age"));
    assert_eq!(place.schema_path.as_deref(), Some("/properties/age/type"));
    assert_eq!(place.keyword.as_deref(), Some("type"));
}

#[test]
fn formats_are_checked_only_where_that_is_asked_for() {
    let mut config = SchemaConfig::new(json!({
        "type": "object", "properties": { "e": { "type": "string", "format": "email" } }
    }));
    for (formats, valid) in [(false, true), (true, false)] {
        config.formats = formats;
        let compiled = Compiled::new(&config).unwrap_or_else(|problem| panic!("{problem:?}"));
        let finding = Checker::new(compiled, true).check("{\"e\": \"no mail\"}");
        assert_eq!(finding.valid, Some(valid));
    }
}

proptest! {
    #[test]
    fn no_draft_makes_it_panic(draft in r#"([{}\[\]":,0-9a-z \n`]|"name"|é|null)*"#) {
        let finding = check(person(), &draft);
        let score = finding.score.unwrap();
        prop_assert!((0.0..=1.0).contains(&score));
        prop_assert_eq!(finding.valid == Some(true), finding.faults.is_empty());
    }

    #[test]
    fn no_schema_makes_it_panic(schema in any_schema(), draft in any_value()) {
        if let Ok(compiled) = Compiled::new(&SchemaConfig::new(schema)) {
            let finding = Checker::new(compiled, true).check(&draft.to_string());
            prop_assert_eq!(finding.valid == Some(true), finding.faults.is_empty());
        }
    }
}

/// Values of a few words, such as the schemas below have something to say of.
fn any_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(json!(null)),
        Just(json!("a")),
        Just(json!("7")),
        Just(json!(true)),
        Just(json!(7)),
        Just(json!(1.5)),
    ];
    scalar.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::hash_map("[ab]", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Schemas, most of them right, some with references that go anywhere.
fn any_schema() -> impl Strategy<Value = Value> {
    const NAMES: [&str; 8] = [
        "object", "array", "string", "integer", "number", "boolean", "null", "x",
    ];
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        proptest::sample::select(NAMES.as_slice()).prop_map(|name| json!({ "type": name })),
        proptest::sample::select(["#", "#/properties/a", "#/x", "b.json", "#a"].as_slice())
            .prop_map(|to| json!({ "$ref": to })),
        any_value().prop_map(|value| json!({ "enum": [value] })),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let several = proptest::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| json!({
                "type": "object", "properties": { "a": a, "b": b }, "required": ["a"],
            })),
            inner
                .clone()
                .prop_map(|items| json!({ "type": "array", "items": items })),
            inner
                .clone()
                .prop_map(|not| json!({ "not": not, "unevaluatedProperties": false })),
            several.clone().prop_map(|all| json!({ "allOf": all })),
            several.clone().prop_map(|any| json!({ "anyOf": any })),
            several.prop_map(|one| json!({ "oneOf": one, "additionalProperties": false })),
        ]
    })
}
