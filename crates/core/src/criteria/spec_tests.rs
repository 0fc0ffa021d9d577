use serde_json::json;

use super::*;

fn yaml(text: &str) -> Result<Criteria, SourceError> {
    parse(text, "spec.yaml", DataFormat::Yaml)
}

#[test]
fn a_schema_in_the_form_of_the_seed_is_a_set_of_one_criterion() {
    let text = "type: schema\nschema:\n  type: object\n  required: [name, email]\n  properties:\n    name: {type: string, minLength: 1}\n    nick: {type: [string, 'null'], default: null}\n";
    let criteria = yaml(text).unwrap();
    assert_eq!(criteria.criteria.len(), 1);
    let criterion = &criteria.criteria[0];
    assert_eq!(criterion.name, "schema");
    assert!((criterion.threshold - 1.0).abs() < f64::EPSILON);
    let Evaluator::Schema(config) = &criterion.evaluator else {
        panic!("{criterion:?}");
    };
    assert!(config.coerce && !config.formats);
    assert_eq!(config.schema["required"], json!(["name", "email"]));
    assert_eq!(config.schema["properties"]["nick"]["default"], json!(null));
}

#[test]
fn the_three_formats_and_the_other_names_of_keys_are_read() {
    let json =
        "{\"evaluator_type\": \"schema\", \"schema\": {\"type\": \"object\"}, \"coerce\": false}";
    let toml = "type = 'schema'\ncoerce = false\n[schema]\ntype = 'object'\n";
    let yaml_text = "evaluator_type: schema\ncoerce: false\nschema: {type: object}\n";
    let read = [
        parse(json, "s", DataFormat::Json).unwrap(),
        parse(toml, "s", DataFormat::Toml).unwrap(),
        parse(yaml_text, "s", DataFormat::Yaml).unwrap(),
    ];
    assert_eq!(read[0], read[1]);
    assert_eq!(read[0], read[2]);
}

#[test]
fn what_is_wrong_says_where_and_what_to_do() {
    for (text, shown) in [
        (
            "[1]",
            "spec.yaml:1:1: an evaluator is an object with a `type`",
        ),
        ("schema: {}", "spec.yaml:1:1: the key `type` is missing"),
        (
            "type: magic",
            "spec.yaml:1:7: unknown evaluator type `magic`",
        ),
        (
            "type: shema\nschema: {}",
            "spec.yaml:1:7: unknown evaluator type `shema` (did you mean `schema`?)",
        ),
        (
            "type: object\nproperties: {}",
            "spec.yaml:1:7: unknown evaluator type `object` (this is a JSON Schema;",
        ),
        ("type: 3", "spec.yaml:1:7: `type`: expected a string"),
        (
            "type: schema",
            "spec.yaml:1:1: the type `schema` needs the key `schema`",
        ),
        (
            "type: custom",
            "spec.yaml:1:1: the type `custom` needs the key `run`",
        ),
        (
            "type: schema\nshcema: {}",
            "spec.yaml:2:9: unknown key `shcema` (did you mean `schema`?)",
        ),
        (
            "type: schema\nschema: {}\nrun: x",
            "spec.yaml:3:6: the key `run` belongs to the type `custom`",
        ),
        (
            "type: schema\nschema: {}\ncoerce: 1",
            "spec.yaml:3:9: `coerce`: expected true or false",
        ),
        (
            "type: schema\nschema: {}\nthreshold: 80",
            "spec.yaml:3:12: `threshold` must be from 0 to 1, not 80",
        ),
        (
            "type: schema\nschema:\n  type: strange",
            "spec.yaml:3:9: invalid JSON Schema at `/type`",
        ),
        (
            "type: schema\nschema:\n  items:\n    $ref: '#/x'",
            "spec.yaml:4:11: the `$ref` `#/x` cannot be resolved",
        ),
        (
            "type: schema\nschema: [1]",
            "spec.yaml:2:9: this is not a JSON Schema",
        ),
        (
            "type: schema\nschema: a.json",
            "spec.yaml:2:9: the file `a.json` cannot be used",
        ),
        (
            "type: llm\nprompt: x\nexamples: 3",
            "spec.yaml:3:11: `examples`: expected a list of pairs",
        ),
        ("type: [", "spec.yaml:1:"),
    ] {
        let error = yaml(text).unwrap_err().to_string();
        assert!(error.starts_with(shown), "{text:?}:\n{error}\n{shown}");
    }
}

#[test]
fn code_is_a_script_criterion_or_a_clear_error_where_there_are_none() {
    match yaml("type: custom\nlanguage: lua\nrun: return true\n") {
        Ok(criteria) => assert_eq!(criteria.criteria[0].evaluator.kind(), "script"),
        Err(error) => {
            assert_eq!(
                error.message(),
                "this version has no evaluator `script` yet"
            );
            assert_eq!(error.position(), Some((1, 7)));
        }
    }
}

#[test]
fn incomplete_examples_are_skipped() {
    let text = "type: llm
prompt: Is it good?
examples:
  - {input: a}
  - {output: {valid: true}}
  - {input: null, output: {valid: true}}
  - {input: b, output: Only words.}
  - {input: c, output: '{\"valid\": false, \"score\": 0.2}'}
";
    let criteria = yaml(text).unwrap();
    let Evaluator::Llm(config) = &criteria.criteria[0].evaluator else {
        panic!("a judge");
    };
    let drafts: Vec<&str> = config.examples.iter().map(|it| it.draft.as_str()).collect();
    assert_eq!(drafts, ["c"]);
    assert!(yaml("type: llm\nprompt: x\nexamples: [3]").is_err());
}

#[test]
fn a_judge_without_keys_of_its_own_is_an_llm_criterion() {
    let criteria =
        yaml("type: llm\nname: clear\ndescription: It is clear.\nthreshold: 0.9\n").unwrap();
    let criterion = &criteria.criteria[0];
    assert_eq!(criterion.evaluator.kind(), "llm");
    assert_eq!(criterion.name, "clear");
    assert!((criterion.threshold - 0.9).abs() < f64::EPSILON);
}
