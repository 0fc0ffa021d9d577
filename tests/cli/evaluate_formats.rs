//! `reflect evaluate --format junit`, `sarif` and `github`: documents that other programs read, whatever a model says.

use serde_json::{Value, json};

use crate::harness::{Ran, Test};
use crate::script::has;

const CRITERIA: &str = "name = 'house & home'\n\
    [[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 5\n\
    [[criteria]]\nname = 'clear'\ndescription = 'It is <clear>.'\n";

/// What ends a document or begins a command, if it is not escaped.
const NASTY: &str =
    "]]> & <b> \"q\" 'q' 50 % \u{1b}[2J\u{0}\u{7}\n::error file=x::pwned\r\n\u{fffe}";

/// A judge who finds the nasty issue, of this severity.
fn judge(severity: &str) -> String {
    let verdict = json!({
        "scores": { "clear": { "reason": NASTY, "score": if severity == "minor" { 5 } else { 2 } } },
        "issues": [{
            "type": "unclear", "severity": severity, "criterion": "clear", "quote": "One",
            "description": NASTY, "suggested_fix": NASTY,
        }],
        "confidence": 0.9,
    });
    format!(
        "[[reply]]\ntimes = 0\ntext = {}\n",
        toml_text(&verdict.to_string())
    )
}

/// A text in TOML. JSON escapes the same way, but for characters that TOML wants escaped and JSON does not.
fn toml_text(text: &str) -> String {
    serde_json::to_string(text)
        .expect("a text")
        .replace('\u{7f}', "\\u007f")
}

fn evaluate(format: &str, severity: &str, files: &[&str]) -> Test {
    Test::new()
        .arg("evaluate")
        .args(files)
        .args(["-c", "house.toml", "--format", format])
        .args(["--provider", "scripted:judge.toml"])
        .file("house.toml", CRITERIA)
        .file("judge.toml", judge(severity))
        .file("good.txt", "One two.\n")
        .file("a, b: c%.txt", "One two three four five six.\n")
}

/// Reads a document as Python's XML parser does, which is strict, and prints its elements as JSON.
fn xml(ran: &Ran) -> Value {
    const READ: &str = "import json, sys, xml.etree.ElementTree as tree\n\
        def read(it): return [it.tag, it.attrib, it.text or '', [read(part) for part in it]]\n\
        print(json.dumps(read(tree.fromstring(sys.stdin.buffer.read()))))";
    let read = ran
        .then(["-c", READ])
        .program("python3")
        .stdin(ran.stdout.as_str());
    read.run().json()
}

#[test]
fn junit_is_one_document_that_a_strict_parser_reads() {
    if !has("python3") {
        return;
    }
    let ran = evaluate("junit", "major", &["good.txt", "a, b: c%.txt"])
        .code(3)
        .run();
    let suites = xml(&ran);
    assert_eq!(suites[0], "testsuites");
    assert_eq!(
        (
            &suites[1]["tests"],
            &suites[1]["failures"],
            &suites[1]["errors"]
        ),
        (&json!("6"), &json!("5"), &json!("0"))
    );
    let names: Vec<_> = suites[3]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it[1]["name"])
        .collect();
    assert_eq!(names, ["good.txt", "a, b: c%.txt"]);
    let suite = &suites[3][0];
    assert_eq!(suite[3][0][0], "properties");
    let cases: Vec<_> = (1..4)
        .map(|case| {
            let case = &suite[3][case];
            let outcome = &case[3][0][0];
            (
                case[1]["classname"].as_str().unwrap().to_owned(),
                case[1]["name"].as_str().unwrap().to_owned(),
                outcome.as_str().map(str::to_owned),
            )
        })
        .collect();
    let house = || "house & home".to_owned();
    let failure = || Some("failure".to_owned());
    assert_eq!(
        cases,
        [
            (house(), "length".to_owned(), None),
            (house(), "clear".to_owned(), failure()),
            (house(), "overall_score".to_owned(), failure()),
        ]
    );
    // The text is there as it was written, but for control characters.
    let failure = suite[3][2][3][0][2].as_str().unwrap();
    assert!(
        failure
            .starts_with("line 1: ]]> & <b> \"q\" 'q' 50 % \u{fffd}[2J\u{fffd}\u{fffd}\n::error"),
        "{failure:?}"
    );
}

#[test]
fn github_annotations_cannot_be_forged() {
    let ran = evaluate("github", "major", &["a, b: c%.txt", "good.txt"])
        .code(3)
        .run();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert_eq!(
        lines[0],
        "::error file=a%2C b%3A c%25.txt,title=length::the text has 6 words, at most 5 are allowed\
         %0Afix: cut at least 1 word"
    );
    assert!(
        lines[1].starts_with("::error file=a%2C b%3A c%25.txt,")
            && lines[1].contains("50 %25 \u{fffd}[2J\u{fffd}\u{fffd}%0A::error file=x::pwned%0A"),
        "{:?}",
        lines[1]
    );
    assert!(lines.iter().all(|line| line.starts_with("::error file=")));
    let passes = evaluate("github", "minor", &["good.txt"]).run();
    let lines: Vec<&str> = passes.stdout.lines().collect();
    assert!(
        lines[0].starts_with("::warning file=good.txt,"),
        "{lines:#?}"
    );
    assert_eq!(
        lines[1..],
        ["::notice file=good.txt,title=reflect::meets the criteria, score 1.00"]
    );
}

#[test]
fn sarif_is_one_run_with_relative_uris() {
    let ran = evaluate("sarif", "major", &["good.txt", "a, b: c%.txt"])
        .code(3)
        .run();
    let log = ran.json();
    assert_eq!(
        (&log["version"], log["runs"].as_array().unwrap().len()),
        (&json!("2.1.0"), 1)
    );
    let run = &log["runs"][0];
    let driver = &run["tool"]["driver"];
    assert_eq!(driver["name"], "reflect");
    assert_eq!(driver["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        driver["rules"][1]["fullDescription"]["text"],
        "It is <clear>."
    );
    assert_eq!(run["invocations"][0]["exitCode"], 3);
    let results = run["results"].as_array().unwrap();
    let uris: Vec<_> = results
        .iter()
        .map(|it| {
            it["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
                .as_str()
                .unwrap()
        })
        .collect();
    let other = "a%2C%20b%3A%20c%25.txt";
    assert_eq!(uris, ["good.txt", "good.txt", other, other, other]);
    let message = results[0]["message"]["text"].as_str().unwrap();
    assert!(message.contains("::error file=x::pwned"), "{message}");
}

#[test]
fn a_text_that_was_not_judged_is_an_error_and_not_a_failure() {
    let unusable = |format: &str| {
        evaluate(format, "minor", &["good.txt"])
            .file("judge.toml", "[[reply]]\ntext = 'Hm.'\ntimes = 0\n")
            .code(6)
            .run()
    };
    let junit = unusable("junit").stdout;
    assert!(junit.contains("failures=\"0\" errors=\"1\""), "{junit}");
    assert!(junit.contains("<error message=\"no verdict: "), "{junit}");
    let github = unusable("github").stdout;
    assert!(
        github.starts_with("::error file=good.txt,title=clear::no verdict: "),
        "{github}"
    );
    let run = &unusable("sarif").json()["runs"][0];
    assert_eq!(run["results"], json!([]));
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
}

#[test]
fn a_report_goes_to_a_file_and_stdin_has_no_file() {
    let hard = |format: &str| {
        Test::new()
            .args([
                "evaluate",
                "-c",
                "c.toml",
                "-o",
                "out",
                "--exit-zero",
                "--format",
                format,
            ])
            .file(
                "c.toml",
                "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 2\n",
            )
            .stdin("One two three.\n")
            .stdout("")
            .run()
            .read("out")
    };
    assert!(hard("junit").contains("<testsuite name=\"stdin\""));
    assert!(hard("github").starts_with("::error title=length::the text has 3 words"));
    let log: Value = serde_json::from_str(&hard("sarif")).expect("JSON");
    assert_eq!(log["runs"][0]["results"][0].get("locations"), None);
    assert_eq!(log["runs"][0]["invocations"][0]["exitCode"], 0);
}

#[test]
fn only_evaluate_has_these_formats() {
    for command in ["draft", "revise", "run", "assess", "history show"] {
        for format in ["junit", "sarif", "github"] {
            Test::new()
                .args(command.split(' '))
                .args(["x", "--format", format])
                .code(2)
                .stderr_has("[possible values: text, json")
                .stderr_lacks("sarif,")
                .run();
        }
    }
}
