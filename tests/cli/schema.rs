//! The `schema` evaluator from outside: schema files and their references, drafts of all kinds.

use serde_json::{Value, json};

use crate::harness::Test;

const CRITERIA: &str = "name = 'profile'\n[[criteria]]\nname = 'json'\nevaluator = 'schema'\nfile = 'schemas/profile.yaml'\n";

const PROFILE: &str = "type: object\nrequired: [name, age]\nadditionalProperties: false\nproperties:\n  name: {type: string}\n  age: {$ref: 'age.json#/definitions/years'}\n  home: {$ref: '../shared/address.toml'}\n";

fn profile() -> Test {
    Test::new()
        .args(["evaluate", "-c", "criteria/c.toml"])
        .file("criteria/c.toml", CRITERIA)
        .file("criteria/schemas/profile.yaml", PROFILE)
        .file(
            "criteria/schemas/age.json",
            json!({ "definitions": { "years": { "type": "integer", "maximum": 150 } } })
                .to_string(),
        )
        .file(
            "criteria/shared/address.toml",
            "type = 'object'\n[properties.zip]\ntype = 'string'\npattern = '^[0-9]+$'\n",
        )
}

/// Criteria with one schema, as TOML.
fn inline(schema: &str) -> Test {
    Test::new().args(["evaluate", "-c", "c.toml"]).file(
        "c.toml",
        format!("[[criteria]]\nname = 'json'\nevaluator = 'schema'\nschema = {schema}\n"),
    )
}

#[test]
fn a_schema_of_several_files_reports_position_value_and_fix() {
    profile()
        .stdin("{\"name\": \"Ada\", \"age\": \"36\", \"home\": {\"zip\": 12345}}")
        .stdout(
            "stdin: meets the criteria, score 1.00\n\
             \x20 ✓ json  1.00  valid, having read /age \"36\" as 36, /home/zip 12345 as \"12345\"\n",
        )
        .run();
    profile()
        .stdin("Here you are:\n```json\n{\n  \"nmae\": \"Ada\",\n  \"age\": 200,\n  \"home\": {\"zip\": \"x\"}\n}\n```\n")
        .code(3)
        .stdout(
            "stdin: does not meet the criteria, score 0.41; not met: `json`, 4 major issues\n\
             \x20 ✗ json  0.41  4 errors\n\
             \x20 - major, missing: the property `name` is missing at the top level; there is a `nmae`: did you mean `name`? [json]\n\
             \x20   fix: rename `nmae` to `name`\n\
             \x20 - major, incorrect: `/age` is 200, but must be at most 150 [json]\n\
             \x20   fix: make `/age` at most 150\n\
             \x20 - major, incorrect: `/home/zip` is \"x\", which does not match the regular expression `^[0-9]+$` [json]\n\
             \x20   fix: make `/home/zip` match `^[0-9]+$`\n\
             \x20 - major, incorrect: the value has the property `nmae`, but only these are allowed: `name`, `age` and `home` [json]\n\
             \x20   fix: rename `nmae` to `name`\n",
        )
        .run();
}

/// The log contains every document, so nothing is read during the evaluation.
#[test]
fn events_contain_every_document_and_the_result_the_coerced_value() {
    let ran = profile()
        .args(["--format", "ndjson"])
        .stdin("{\"name\": \"Ada\", \"age\": \"36\"}")
        .run();
    let lines = ran.lines();
    let criterion = &lines[0]["criteria"]["criteria"][0];
    assert_eq!(criterion["base"], "schemas/profile.yaml");
    assert_eq!(
        criterion["documents"]["schemas/age.json"]["definitions"]["years"]["maximum"],
        150
    );
    assert_eq!(
        criterion["documents"]["shared/address.toml"]["type"],
        "object"
    );
    let evaluation = lines
        .iter()
        .find(|line| line["event"] == "evaluation")
        .unwrap();
    assert_eq!(
        evaluation["evaluation"]["criteria"][0]["value"],
        json!({ "name": "Ada", "age": 36 })
    );
    assert!(
        !lines[0].to_string().contains("reflect-cli-"),
        "no local path is recorded"
    );
}

#[test]
fn issues_carry_pointer_keyword_and_line() {
    let ran = profile()
        .args(["--format", "json"])
        .stdin("{\n\"name\": \"Ada\",\n\"age\": \"old\"\n}\n")
        .code(3)
        .run();
    let result = ran.json();
    let issue = &result["evaluation"]["issues"][0];
    assert_eq!(issue["path"], "/age");
    assert_eq!(issue["keyword"], "type");
    assert_eq!(issue["schema_path"], "/properties/age/$ref/type");
    assert_eq!(issue["line"], 3);
    assert_eq!(result["evaluation"]["criteria_scores"]["json"], 0.75);
}

#[test]
fn a_draft_without_json_scores_zero_without_an_error() {
    for draft in [
        "I would rather not.\n",
        "{\"name\": \"A\",\n\"age\": ",
        "[[[[",
    ] {
        let ran = profile()
            .args(["--format", "json"])
            .stdin(draft)
            .code(3)
            .run();
        let result = ran.json();
        assert_eq!(result["evaluation"]["overall_score"], 0.0, "{draft}");
        assert_eq!(result["evaluation"]["status"], "ok");
        assert_eq!(result["evaluation"]["issues"][0]["type"], "missing");
    }
}

#[test]
fn deep_and_large_drafts_are_evaluated() {
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    profile().stdin(deep).code(3).run();
    let wide = format!(
        "{{\"name\": \"A\", \"age\": [{}1]}}",
        "1,".repeat(1_000_000)
    );
    let ran = profile().stdin(wide).code(3).run();
    assert!(ran.took.as_secs() < 20, "{:?}", ran.took);
}

#[test]
fn unresolvable_references_show_their_position() {
    profile()
        .file(
            "criteria/schemas/profile.yaml",
            "properties:\n  age:\n    $ref: none.json\n",
        )
        .code(2)
        .stderr_has("the `$ref` `none.json` cannot be resolved: there is no such file")
        .stderr_has("profile.yaml:3:11")
        .run();
    profile()
        .file("criteria/schemas/age.json", "{}")
        .code(2)
        .stderr_has("the `$ref` `age.json#/definitions/years` cannot be resolved")
        .stderr_has("profile.yaml:6:")
        .run();
    profile()
        .file("criteria/schemas/age.json", "{\n \"type\": }")
        .code(2)
        .stderr_has("invalid JSON")
        .stderr_has("age.json:2:10")
        .stderr_has("the `$ref` `age.json#/definitions/years` in")
        .run();
    profile()
        .file(
            "criteria/schemas/age.json",
            "{\"definitions\": {\"years\": {\"type\": \"yeras\"}}}",
        )
        .code(2)
        .stderr_has("invalid JSON Schema at `/definitions/years/type`")
        .stderr_has("unknown type `yeras`")
        .stderr_has("age.json:1:36")
        .run();
    profile()
        .file(
            "criteria/schemas/age.json",
            "{\"definitions\": {\"years\": {\"$ref\": \"profile.yaml#/properties/age\"}}}",
        )
        .code(2)
        .stderr_has("is circular")
        .run();
}

#[test]
fn nothing_is_read_outside_the_folder_or_from_the_network() {
    let outside = |reference: &str| {
        profile()
            .file("secret.json", "{\"type\": \"object\"}")
            .file(
                "criteria/schemas/profile.yaml",
                format!("properties:\n  age: {{$ref: '{reference}'}}\n"),
            )
            .stdin("{}")
            .code(2)
            .stdout("")
    };
    outside("../../secret.json")
        .stderr_has("it is outside the criteria file's folder")
        .stderr_has("hint: copy it there, or, if you trust the criteria file, let it read files elsewhere with `--allow-exec`")
        .run();
    outside("file:///etc/passwd")
        .stderr_has("it is outside the criteria file's folder")
        .run();
    outside("https://127.0.0.1:1/a.json")
        .stderr_has("schemas are not fetched from the network")
        .stderr_has("hint: ")
        .run();
    Test::new()
        .args(["evaluate", "-c", "criteria/c.toml"])
        .file("secret.json", "{}")
        .file(
            "criteria/c.toml",
            CRITERIA.replace("schemas/profile.yaml", "../secret.json"),
        )
        .code(2)
        .stderr_has("it is outside the criteria file's folder")
        .run();
}

/// A criteria file whose code is trusted may also read schemas elsewhere, but not from the network.
#[test]
fn a_trusted_criteria_file_may_read_schemas_elsewhere() {
    let shared = |place: &str, age: &str| {
        Test::new()
            .args(["evaluate", "-c", "criteria/c.toml"])
            .file(
                "criteria/c.toml",
                CRITERIA.replace("schemas/profile.yaml", place),
            )
            .file("shared/profile.yaml", PROFILE.replace("age.json", age))
            .file(
                "other/age.json",
                json!({ "definitions": { "years": { "type": "integer", "maximum": 150 } } })
                    .to_string(),
            )
            .file("shared/address.toml", "type = 'object'\n")
            .stdin("{\"name\": \"Ada\", \"age\": 200}")
    };
    let elsewhere = || shared("../shared/profile.yaml", "../other/age.json");
    elsewhere().code(2).stderr_has("it is outside").run();
    elsewhere().arg("--allow-exec").code(3).run();
    let test = elsewhere();
    let criteria = test.path("criteria").canonicalize().expect("a folder");
    let config = format!("[trust]\nexec = ['{}']\n", criteria.display());
    test.file("../home/.config/reflect/config.toml", config)
        .code(3)
        .run();
    shared("../shared/profile.yaml", "https://127.0.0.1:1/age.json")
        .arg("--allow-exec")
        .code(2)
        .stderr_has("schemas are not fetched from the network")
        .run();
}

#[cfg(unix)]
#[test]
fn a_link_does_not_lead_out_of_the_folder() {
    let test = profile().file("secret.json", "{\"definitions\": {\"years\": {}}}");
    std::fs::remove_file(test.path("criteria/schemas/age.json")).unwrap();
    std::os::unix::fs::symlink(
        test.path("secret.json"),
        test.path("criteria/schemas/age.json"),
    )
    .unwrap();
    test.code(2)
        .stderr_has("it is outside the criteria file's folder")
        .run();
}

#[test]
fn a_document_may_be_inline_or_a_file() {
    let test = |documents: &str| {
        Test::new()
            .args(["evaluate", "-c", "c.toml"])
            .file("age.json", "{\"type\": \"integer\"}")
            .file(
                "c.toml",
                format!(
                    "[[criteria]]\nname = 'json'\nevaluator = 'schema'\nschema = {{ \"$ref\" = 'https://example.com/age' }}\n{documents}\n"
                ),
            )
    };
    for documents in [
        "documents = { 'https://example.com/age' = 'age.json' }",
        "documents = { 'https://example.com/age' = { type = 'integer' } }",
    ] {
        test(documents).stdin("7").run();
        test(documents).stdin("[]").code(3).run();
    }
    test("documents = { 'https://example.com/age' = 'none.json' }")
        .code(2)
        .stderr_has("the file `none.json` does not exist")
        .run();
}

#[test]
fn errors_name_the_problem_its_position_and_a_fix() {
    inline("{ type = 'strange' }")
        .code(2)
        .stderr_has("invalid JSON Schema at `/type`")
        .stderr_has("c.toml:4:19")
        .run();
    inline("{ '$schema' = 'https://example.com/own' }")
        .code(2)
        .stderr_has("unknown draft `https://example.com/own`")
        .stderr_has("hint: known drafts")
        .run();
    inline("'profile.json'")
        .code(2)
        .stderr_has("`schema` must be the schema itself")
        .stderr_has("file = \"profile.json\"")
        .run();
    inline("{}\nfile = 'a.json'")
        .code(2)
        .stderr_has("both `schema` and `file` are set")
        .run();
    inline("{}\ncoercion = true")
        .code(2)
        .stderr_has("unknown key `coercion`")
        .run();
    for (file, said) in [
        ("none.json", "the file `none.json` does not exist"),
        ("s.txt", "unknown file extension"),
        ("s.json", "invalid JSON"),
    ] {
        Test::new()
            .args(["evaluate", "-c", "c.toml"])
            .file("s.txt", "{}")
            .file("s.json", "{")
            .file(
                "c.toml",
                format!("[[criteria]]\nname = 'j'\nevaluator = 'schema'\nfile = '{file}'\n"),
            )
            .code(2)
            .stderr_has(said)
            .run();
    }
}

/// The writer sees the schema, and the reviser sees the errors of the draft.
#[test]
fn the_loop_revises_towards_the_schema() {
    let script = "[[reply]]\npurpose = 'write'\ncontains = '\"maximum\":150'\ntext = '{\"name\": \"Ada\", \"age\": 200}'\n\
                  [[reply]]\npurpose = 'write'\ncontains = 'must be at most 150'\ntext = '{\"name\": \"Ada\", \"age\": 36}'\n";
    let ran = Test::new()
        .args(["draft", "Write a profile.", "-c", "c.toml", "--provider", "scripted:s.toml"])
        .args(["--format", "json", "--adapt", "false"])
        .file("s.toml", script)
        .file(
            "c.toml",
            "[[criteria]]\nname = 'json'\nevaluator = 'schema'\n[criteria.schema.properties]\nage = { type = 'integer', maximum = 150 }\nname = { type = 'string' }\n",
        )
        .run();
    let result = ran.json();
    assert_eq!(result["success"], true);
    assert_eq!(result["iterations_used"], 2);
    let value: Value = serde_json::from_str(result["output"].as_str().unwrap()).unwrap();
    assert_eq!(value["age"], 36);
}
