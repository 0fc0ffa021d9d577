#![expect(clippy::float_cmp, reason = "scores are exact fractions")]

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

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
        assert!(finding.issues.is_empty());
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
    // If the schema describes the envelope, it is the value.
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
        word.issues[0]
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
        assert_eq!(finding.issues[0].place.line, line, "{draft}");
        assert_eq!(finding.issues[0].place.keyword.as_deref(), Some("type"));
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
    // The deepest value that the parser accepts, under a matching schema.
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
    let finding = check.check(&Subject::of(&draft)).await;
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

/// Returns a function that scores a value without coercion.
fn scorer(schema: &Value) -> impl Fn(&Value) -> f64 + use<> {
    let mut strict = checker(schema.clone());
    strict.coerce = false;
    move |value| strict.check(&value.to_string()).score.unwrap()
}

#[test]
fn a_wrong_root_is_worth_nothing_and_a_nearly_right_object_nearly_all() {
    let schema = json!({
        "type": "object",
        "required": ["name", "email", "skills", "summary"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "minLength": 1 },
            "email": { "type": "string", "pattern": "@" },
            "age": { "type": "integer" },
            "skills": { "type": "array", "items": { "type": "string" }, "minItems": 1 },
            "summary": { "type": "string" },
        },
    });
    let score = scorer(&schema);
    let right = json!({ "name": "A", "email": "a@b", "skills": ["x"], "summary": "s" });
    let with = |key: &str, value: Value| {
        let mut changed = right.clone();
        changed[key] = value;
        changed
    };
    for root in [
        json!([]),
        json!(null),
        json!(7),
        json!(["role"]),
        json!("x"),
    ] {
        assert_eq!(score(&root), 0.0, "{root}");
    }
    let ascending = [
        json!([]),
        json!({}),
        json!({ "name": "A" }),
        json!({ "name": "A", "email": "a@b" }),
        json!({ "name": "A", "email": "a@b", "skills": 3 }),
        json!({ "name": "A", "email": "a@b", "skills": [] }),
        with("skills", json!([])),
        right.clone(),
    ];
    let scores: Vec<f64> = ascending.iter().map(&score).collect();
    assert!(scores.is_sorted_by(|one, next| one < next), "{scores:?}");
    assert_eq!(scores[1], 0.2);
    assert_eq!(scores.last(), Some(&1.0));
    assert!(score(&with("email", json!(3))) > 0.8);
    assert!(score(&with("unknown", json!(3))) < 1.0);
}

#[test]
fn errors_below_references_and_alternatives_count_as_those_beside_them() {
    let address = json!({ "type": "object", "required": ["street", "city"] });
    let plain = json!({ "type": "object", "required": ["a"], "properties": { "a": address } });
    let referred = json!({ "$ref": "#/$defs/p", "$defs": { "p": plain, "address": address } });
    let either = json!({ "anyOf": [{ "type": "array" }, plain] });
    for schema in [plain, referred, either] {
        let score = scorer(&schema);
        let ascending = [
            json!(1),
            json!({}),
            json!({ "a": null }),
            json!({ "a": {} }),
            json!({ "a": { "street": 1 } }),
            json!({ "a": { "street": 1, "city": 1 } }),
        ];
        let scores: Vec<f64> = ascending.iter().map(&score).collect();
        assert!(scores.is_sorted(), "{schema}: {scores:?}");
        assert!(scores[0] == 0.0 && scores[1] > 0.0, "{schema}: {scores:?}");
        assert!(
            scores[3] < scores[4] && scores[5] == 1.0,
            "{schema}: {scores:?}"
        );
    }
}

#[test]
fn each_wrong_item_lowers_the_score_and_few_of_them_are_reported() {
    let schema = json!({ "type": "array", "items": { "type": "null" } });
    let score = scorer(&schema);
    let scores = [1, 2, 7].map(|n| score(&json!(vec![1; n])));
    assert!(scores.is_sorted_by(|one, next| one > next), "{scores:?}");
    assert!(scores[2] > 0.0, "{scores:?}");
    let many = format!("[{}1]", "1,".repeat(10_000));
    assert_eq!(check(schema, &many).issues.len(), MAX_ERRORS);
}

/// A value that is valid under [`order_schema`], as strings for places in it.
fn order() -> Value {
    json!({
        "id": "A-1", "state": "open", "total": 12.5, "note": "none",
        "customer": { "name": "Ann", "email": "ann@example.org", "tags": ["new"] },
        "lines": [{ "sku": "x1", "count": 2 }, { "sku": "y2", "count": 1, "gift": true }],
        "payment": { "card": "1234" },
    })
}

fn order_schema() -> Value {
    json!({
        "$defs": { "customer": {
            "type": "object", "required": ["name", "email"], "additionalProperties": false,
            "properties": {
                "name": { "type": "string", "minLength": 2, "maxLength": 40 },
                "email": { "type": "string", "pattern": "@", "minLength": 5 },
                "tags": { "type": "array", "items": { "enum": ["new", "vip"] }, "uniqueItems": true },
            },
        } },
        "type": "object", "additionalProperties": false,
        "required": ["id", "state", "total", "customer", "lines", "payment"],
        "properties": {
            "id": { "type": "string", "pattern": "^[A-Z]-[0-9]+$" },
            "state": { "type": "string", "enum": ["open", "paid"] },
            "total": { "type": "number", "minimum": 0, "maximum": 1000 },
            "note": { "type": "string", "maxLength": 20 },
            "customer": { "$ref": "#/$defs/customer" },
            "lines": { "type": "array", "minItems": 1, "maxItems": 3, "items": {
                "type": "object", "required": ["sku", "count"], "additionalProperties": false,
                "properties": {
                    "sku": { "type": "string", "minLength": 2 },
                    "count": { "type": "integer", "minimum": 1 },
                    "gift": { "type": "boolean" },
                },
            } },
            "payment": { "oneOf": [
                { "type": "object", "required": ["card"], "properties": { "card": { "type": "string", "minLength": 4 } } },
                { "type": "object", "required": ["iban"], "properties": { "iban": { "type": "string" } } },
            ] },
        },
    })
}

/// Changes that damage one place without affecting the others: a place, and its new value, or
/// `None` to remove it.
const DAMAGE: [(&str, Option<&str>); 17] = [
    ("/id", None),
    ("/id", Some("\"a1\"")),
    ("/id", Some("7")),
    ("/state", Some("\"opne\"")),
    ("/total", Some("-1")),
    ("/total", Some("\"much\"")),
    ("/note", Some("\"much too long for a note\"")),
    ("/note", Some("[]")),
    ("/customer/email", None),
    ("/customer/name", Some("\"A\"")),
    ("/customer/tags/0", Some("\"old\"")),
    ("/customer/age", Some("3")),
    ("/lines/0/count", Some("0")),
    ("/lines/1/sku", None),
    ("/lines/1/gift", Some("\"yes\"")),
    ("/payment/card", Some("\"1\"")),
    ("/unknown", Some("1")),
];

/// Sets the value at a place, or removes it.
fn put(value: &mut Value, place: &str, new: Option<Value>) {
    let (parent, key) = place.rsplit_once('/').unwrap();
    match value.pointer_mut(parent).unwrap() {
        Value::Object(object) => match new {
            Some(new) => drop(object.insert(key.to_owned(), new)),
            None => drop(object.remove(key)),
        },
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = new.unwrap(),
        _ => unreachable!("places are in objects and arrays"),
    }
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
    assert_eq!(finding.issues.len(), 2);
    assert_eq!(finding.value, Some(json!({ "name": 7, "age": "42" })));
    // Conversion follows references, but not alternatives.
    let schema = json!({ "$defs": { "n": { "type": "integer" } }, "type": "object", "properties": {
        "a": { "$ref": "#/$defs/n" }, "b": { "anyOf": [{ "$ref": "#/$defs/n" }] } } });
    let finding = check(schema, "{\"a\": \"1\", \"b\": \"1\"}");
    assert_eq!(finding.value, Some(json!({ "a": 1, "b": "1" })));
    assert_eq!(finding.issues.len(), 1);
    assert_eq!(finding.issues[0].place.path.as_deref(), Some("/b"));
    let null = check(person(), "{\"name\": null}");
    assert_eq!(null.value, Some(json!({ "name": null })));
    assert_eq!(null.valid, Some(false));
}

/// One line per keyword: place, value found, what is allowed.
#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_fault_says_what_is_there_and_what_is_wanted() {
    let cases = [
        (
            json!({ "type": "integer" }),
            json!([]),
            "is [], but an integer is required",
        ),
        (
            json!({ "type": ["integer", "null"] }),
            json!({}),
            "is {}, but null or an integer is required",
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
            "fits none of the 2 alternatives; of the nearest: `/v/a` is 1, but null is required",
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
        let issue = finding
            .issues
            .first()
            .unwrap_or_else(|| panic!("{schema} has no fault"));
        assert!(
            issue.description.contains(words),
            "{schema}: {}",
            issue.description
        );
        assert!(
            issue
                .place
                .path
                .as_deref()
                .is_some_and(|path| path.starts_with("/v")),
            "{schema}"
        );
        assert_eq!(issue.place.line, Some(1), "{schema}");
    }
}

#[test]
fn faults_know_their_line_in_the_draft() {
    let draft = "Here:\n\n```json\n{\n  \"name\": \"A\",\n  \"age\": \"old\"\n}\n```\n";
    let finding = check(person(), draft);
    let place = &finding.issues[0].place;
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
        prop_assert_eq!(finding.valid == Some(true), finding.issues.is_empty());
    }

    /// Repairs damage at several places one by one.
    #[test]
    fn a_repair_never_lowers_the_score(
        damage in proptest::sample::subsequence(DAMAGE.to_vec(), 1..DAMAGE.len()).prop_shuffle()
    ) {
        let (score, sound) = (scorer(&order_schema()), order());
        let mut value = sound.clone();
        for (place, new) in &damage {
            put(&mut value, place, new.map(|text| serde_json::from_str(text).unwrap()));
        }
        let mut last = score(&value);
        prop_assert!(last < 1.0);
        for (place, _) in &damage {
            let right = sound.pointer(place).cloned();
            put(&mut value, place, right);
            let next = score(&value);
            prop_assert!(next >= last, "{} after {}: {}", next, last, value);
            last = next;
        }
        prop_assert_eq!(last, 1.0);
    }

    #[test]
    fn no_schema_makes_it_panic(schema in any_schema(), draft in any_value()) {
        if let Ok(compiled) = Compiled::new(&SchemaConfig::new(schema)) {
            let finding = Checker::new(compiled, true).check(&draft.to_string());
            prop_assert_eq!(finding.valid == Some(true), finding.issues.is_empty());
            prop_assert_eq!(finding.valid == Some(true), finding.score == Some(1.0));
        }
    }
}

/// Small values that the schemas below can apply to.
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

/// Schemas that are mostly valid, some with arbitrary references.
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
