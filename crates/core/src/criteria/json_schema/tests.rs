use std::time::Instant;

use serde_json::{Map, Value, json};

use super::*;

fn problem(schema: &Value) -> Problem {
    match Compiled::new(&SchemaConfig::new(schema.clone())) {
        Err(problem) => *problem,
        Ok(_) => panic!("{schema} can be used"),
    }
}

fn compiled(config: &SchemaConfig) -> Compiled {
    Compiled::new(config).unwrap_or_else(|problem| panic!("{problem:?}"))
}

/// Builds the definitions `a0`, `a1`, … up to `count`, each made from the next one's reference.
fn definitions(count: usize, make: impl Fn(Value) -> Value) -> Value {
    let reference = |number: usize| json!({ "$ref": format!("#/$defs/a{number}") });
    let mut definitions: Map<String, Value> = (0..count)
        .map(|number| (format!("a{number}"), make(reference(number + 1))))
        .collect();
    definitions.insert(format!("a{count}"), json!({ "type": "integer" }));
    json!({ "$ref": "#/$defs/a0", "$defs": definitions })
}

#[test]
fn circles_that_never_go_into_the_value_are_refused_where_they_are() {
    for (schema, place) in [
        (json!({ "$ref": "#" }), "/$ref"),
        (
            json!({ "$ref": "#/$defs/a", "$defs": { "a": { "$ref": "#/$defs/b" }, "b": { "$ref": "#/$defs/a" } } }),
            "",
        ),
        (
            json!({ "properties": { "x": { "$ref": "#/$defs/a" } },
                    "$defs": { "a": { "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/a" }] } } }),
            "/$defs/a",
        ),
        (json!({ "allOf": [{ "not": { "$ref": "#" } }] }), "/allOf/0"),
        (json!({ "if": true, "then": { "$ref": "#" } }), "/then"),
        (
            json!({ "dependentSchemas": { "a": { "$ref": "#" } } }),
            "/dependentSchemas",
        ),
    ] {
        let problem = problem(&schema);
        assert!(
            problem.message.contains("is circular"),
            "{schema}: {problem:?}"
        );
        assert!(problem.pointer.starts_with(place), "{schema}: {problem:?}");
    }
}

#[test]
fn recursion_into_the_value_is_no_circle() {
    let tree = json!({
        "type": "object",
        "required": ["value"],
        "properties": { "children": { "type": "array", "items": { "$ref": "#" } } },
    });
    let compiled = compiled(&SchemaConfig::new(tree));
    let validator = compiled.validator();
    assert!(validator.is_valid(&json!({ "value": 1, "children": [{ "value": 2 }] })));
    assert!(!validator.is_valid(&json!({ "value": 1, "children": [{ "children": [] }] })));
}

#[test]
fn references_that_lead_nowhere_say_where_they_are_and_why() {
    for (schema, place, hint) in [
        (
            json!({ "properties": { "x": { "$ref": "#/$defs/none" } } }),
            "/properties/x/$ref",
            "that document has nothing at `/$defs/none`",
        ),
        (json!({ "$ref": "#none" }), "/$ref", "anchor"),
        (
            json!({ "items": { "$ref": "other.json#/a" } }),
            "/items/$ref",
            "was not read with the criteria file",
        ),
        (
            json!({ "items": { "$ref": "https://example.com/a.json" } }),
            "/items/$ref",
            "was not read with the criteria file",
        ),
    ] {
        let problem = problem(&schema);
        assert!(
            problem.message.contains("cannot be resolved"),
            "{problem:?}"
        );
        assert_eq!(problem.pointer, place, "{schema}");
        assert!(
            problem.hint.as_deref().is_some_and(|it| it.contains(hint)),
            "{problem:?}"
        );
    }
}

#[test]
fn what_is_no_schema_is_refused() {
    for (schema, place, words) in [
        (json!([1]), "", "this is not a JSON Schema"),
        (json!("x"), "", "this is not a JSON Schema"),
        (
            json!({ "type": "strange" }),
            "/type",
            "invalid JSON Schema at `/type`",
        ),
        (
            json!({ "properties": { "a": { "minLength": -1 } } }),
            "/properties/a/minLength",
            "invalid JSON Schema",
        ),
        (
            json!({ "$schema": "https://example.com/own" }),
            "/$schema",
            "unknown draft",
        ),
        (json!({ "$schema": 7 }), "/$schema", "must be a string"),
        (json!({ "pattern": "(" }), "/pattern", ""),
    ] {
        let problem = problem(&schema);
        assert_eq!(problem.pointer, place, "{schema}: {problem:?}");
        assert!(problem.message.contains(words), "{schema}: {problem:?}");
    }
}

#[test]
fn each_draft_is_read_by_its_own_rules() {
    let of = |draft: &str, rest: Value| {
        let mut schema = rest;
        schema["$schema"] = json!(draft);
        compiled(&SchemaConfig::new(schema))
    };
    let draft4 = of(
        "http://json-schema.org/draft-04/schema#",
        json!({ "minimum": 3, "exclusiveMinimum": true }),
    );
    assert!(!draft4.validator().is_valid(&json!(3)));
    for draft in [
        "http://json-schema.org/draft-06/schema#",
        "http://json-schema.org/draft-07/schema",
    ] {
        let compiled = of(draft, json!({ "items": [{ "type": "string" }] }));
        assert!(!compiled.validator().is_valid(&json!([1])), "{draft}");
    }
    for draft in ["2019-09", "2020-12"] {
        let draft = format!("https://json-schema.org/draft/{draft}/schema");
        let compiled = of(&draft, json!({ "dependentRequired": { "a": ["b"] } }));
        assert!(
            !compiled.validator().is_valid(&json!({ "a": 1 })),
            "{draft}"
        );
    }
}

#[test]
fn the_drafts_own_schemas_are_there() {
    let of_schemas = json!({ "items": { "$ref": "http://json-schema.org/draft-07/schema#" } });
    let compiled = compiled(&SchemaConfig::new(of_schemas));
    assert!(compiled.validator().is_valid(&json!([{ "type": "null" }])));
    assert!(!compiled.validator().is_valid(&json!([{ "type": 3 }])));
}

#[test]
fn documents_are_found_by_their_names_from_everywhere() {
    let mut config = SchemaConfig::new(json!({ "$ref": "address.json" }));
    config.base = Some("schemas/deep/profile.json".to_owned());
    config.documents.insert(
        "schemas/deep/address.json".to_owned(),
        json!({ "properties": { "zip": { "$ref": "../../../common.json#/$defs/zip" }, "c": { "$ref": "https://example.com/c" } } }),
    );
    config.documents.insert(
        "../common.json".to_owned(),
        json!({ "$defs": { "zip": { "type": "string" } } }),
    );
    config
        .documents
        .insert("https://example.com/c".to_owned(), json!({ "const": 1 }));
    let compiled = compiled(&config);
    assert!(
        compiled
            .validator()
            .is_valid(&json!({ "zip": "1", "c": 1 }))
    );
    assert!(!compiled.validator().is_valid(&json!({ "zip": 1 })));
    assert!(!compiled.validator().is_valid(&json!({ "c": 2 })));
    config.documents.shift_remove("../common.json");
    let problem = Compiled::new(&config).err().unwrap();
    assert_eq!(
        problem.document.as_deref(),
        Some("schemas/deep/address.json")
    );
    assert_eq!(problem.pointer, "/properties/zip/$ref");
}

#[test]
fn a_document_inherits_the_draft_and_must_be_a_schema_itself() {
    let mut config = SchemaConfig::new(json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$ref": "pair.json",
    }));
    config.documents.insert(
        "pair.json".to_owned(),
        json!({ "items": [{ "type": "integer" }] }),
    );
    assert!(!compiled(&config).validator().is_valid(&json!(["x"])));
    config
        .documents
        .insert("pair.json".to_owned(), json!({ "items": 7 }));
    let problem = Compiled::new(&config).err().unwrap();
    assert_eq!(problem.document.as_deref(), Some("pair.json"));
    assert_eq!(problem.pointer, "/items");
}

#[test]
fn chains_and_bushes_of_schemas_are_bounded() {
    let chain = problem(&definitions(5_000, |next| next));
    assert!(chain.message.contains("chain of more than"), "{chain:?}");
    let bush = problem(&definitions(
        40,
        |next| json!({ "allOf": [next.clone(), next] }),
    ));
    assert!(bush.message.contains("more than 20000 schemas"), "{bush:?}");
    // The same number of paths through nested properties is fine, because the value limits them.
    let started = Instant::now();
    let wide = definitions(
        40,
        |next| json!({ "properties": { "x": next.clone(), "y": next } }),
    );
    let wide = compiled(&SchemaConfig::new(wide));
    assert!(wide.validator().is_valid(&json!({ "x": { "y": {} } })));
    // A long chain of properties takes no stack.
    let long = definitions(4_000, |next| json!({ "properties": { "x": next } }));
    let long = compiled(&SchemaConfig::new(long));
    assert!(long.validator().is_valid(&json!({ "x": { "x": {} } })));
    assert!(started.elapsed().as_secs() < 60);
}

#[test]
fn the_patterns_of_a_schema_have_a_limit_together() {
    let of = |pattern: &str| {
        let properties: Map<_, _> = (0..100)
            .map(|n| {
                let schema = json!({"type": "string", "pattern": format!("{pattern}{n}")});
                (format!("p{n}"), schema)
            })
            .collect();
        let schema = json!({"type": "object", "properties": properties});
        Compiled::new(&SchemaConfig::new(schema)).map(|_| ())
    };
    assert!(of("^[a-z]+").is_ok());
    for pattern in [r"^\w{200}", "^(?=[a-z])[a-z]{1,20}"] {
        let problem = of(pattern).unwrap_err();
        assert_eq!(
            problem.message,
            "the patterns take more than 128 MB of memory"
        );
    }
}
