//! Criteria files: errors with their position and exit code 2, and the `criteria` commands.

use crate::harness::{Test, each};
use crate::plan::{CRITERIA, draft, usual_server, verdict};
use crate::support::server::{Protocol, Purpose, Reply, Server};

/// Checks a run that must be rejected before any call.
fn refused(content: &[u8], said: &[&str]) -> Test {
    let server = Server::start();
    let mut test = draft(&server, Protocol::OpenAi)
        .file("criteria.toml", content)
        .code(2)
        .stdout("")
        .stderr_has("error: ");
    for part in said {
        test = test.stderr_has(part);
    }
    let ran = test.run();
    assert!(server.requests().is_empty(), "no request is made");
    ran.then(["history", "list"]).stderr_has("no runs yet")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn errors_name_the_problem_its_position_and_a_fix() {
    let with = |line: &str| format!("{CRITERIA}\n{line}\n");
    let cases: Vec<(&str, String, Vec<&str>)> = vec![
        (
            "empty",
            String::new(),
            vec!["criteria.toml", "this criteria file is empty", "hint: "],
        ),
        (
            "comments only",
            "# nothing\n\n".to_owned(),
            vec!["criteria.toml"],
        ),
        (
            "an unknown key",
            with("wieght = 2.0"),
            vec![
                "criteria.toml:15:1",
                "unknown key `wieght`",
                "did you mean `weight`?",
            ],
        ),
        (
            "an unknown key at the top",
            format!("treshold = 0.5\n{CRITERIA}"),
            vec![
                "criteria.toml:1:1",
                "`treshold`",
                "did you mean `threshold`?",
            ],
        ),
        (
            "an unknown key in [loop]",
            "[loop]\nmax_iteration = 3\n[[criteria]]\nname = 'a'\ndescription = 'b'\n".to_owned(),
            vec!["criteria.toml:2:1", "did you mean `max_iterations`?"],
        ),
        (
            "an unknown evaluator",
            "[[criteria]]\nname = 'a'\nevaluator = 'regexp'\npattern = 'a'\n".to_owned(),
            vec!["criteria.toml:3:13", "`regexp`", "did you mean `regex`?"],
        ),
        (
            "a negative weight",
            with("weight = -1.0"),
            vec!["criteria.toml:15:10", "weight"],
        ),
        (
            "weights that add up to nothing",
            "[[criteria]]\nname = 'a'\ndescription = 'b'\nweight = 0.0\n".to_owned(),
            vec!["criteria.toml", "weight"],
        ),
        (
            "two of a name",
            with("[[criteria]]\nname = 'clear'\ndescription = 'Again.'"),
            vec!["criteria.toml:16:8", "`clear`"],
        ),
        (
            "no name",
            "[[criteria]]\ndescription = 'It is good.'\n".to_owned(),
            vec!["criteria.toml:1:1", "name"],
        ),
        (
            "an empty name",
            "[[criteria]]\nname = ' '\ndescription = 'It is good.'\n".to_owned(),
            vec!["criteria.toml:2:8"],
        ),
        (
            "a bad pattern",
            "[[criteria]]\nname = 'a'\nevaluator = 'regex'\npattern = '(oops'\n".to_owned(),
            vec!["criteria.toml:4:1", "unclosed group"],
        ),
        (
            "a threshold above 1",
            "threshold = 85\n[[criteria]]\nname = 'a'\ndescription = 'b'\n".to_owned(),
            vec!["criteria.toml:1:13", "0 to 1"],
        ),
        (
            "a floor below 0",
            "[[criteria]]\nname = 'a'\ndescription = 'b'\nthreshold = -0.1\n".to_owned(),
            vec!["criteria.toml:4:13", "0 to 1"],
        ),
        (
            "bounds the wrong way round",
            "[[criteria]]\nname = 'a'\nevaluator = 'length'\nunit = 'words'\nmin = 9\nmax = 3\n"
                .to_owned(),
            vec!["criteria.toml:5:7"],
        ),
        (
            "no bound",
            "[[criteria]]\nname = 'a'\nevaluator = 'length'\nunit = 'words'\n".to_owned(),
            vec!["criteria.toml", "`min`", "`max`"],
        ),
        (
            "a text for a number",
            with("weight = 'much'"),
            vec!["criteria.toml:15:10"],
        ),
        ("no TOML", "name = \n".to_owned(), vec!["criteria.toml:1:8"]),
        (
            "JSON",
            "{\"name\": \"x\"}".to_owned(),
            vec!["criteria.toml:1:1"],
        ),
    ];
    each(
        &cases,
        |case| case.0.to_owned(),
        |(_, content, said)| {
            refused(content.as_bytes(), said).run();
        },
    );
}

#[test]
fn a_file_that_is_not_text_is_rejected() {
    refused(
        b"\x7fELF\x02\x01\x00\x00\xff\xfe",
        &["criteria.toml", "UTF-8"],
    )
    .run();
    refused(b"name = 'caf\xe9'\n", &["criteria.toml", "UTF-8"]).run();
    // A byte order mark is accepted, because editors write it.
    let server = usual_server();
    draft(&server, Protocol::Ollama)
        .file(
            "criteria.toml",
            format!("\u{feff}{}", CRITERIA.replace('\n', "\r\n")),
        )
        .stdout("The second draft.\n")
        .run();
}

#[test]
fn a_missing_file() {
    for (wanted, said) in [
        ("nowhere.toml", "nowhere.toml: no such file"),
        ("./nowhere", "./nowhere: no such file"),
        (
            "criteria.tmol",
            "known names: `code`, `writing`, `analysis`, `reasoning`, `commit`, ",
        ),
        ("codee", "did you mean `code`?"),
        ("criteria", "did you mean `criteria.toml`?"),
        ("wrting", "did you mean `writing`?"),
    ] {
        let server = Server::start();
        crate::plan::with_server(&server, Protocol::OpenAi)
            .args(["draft", "Write a line.", "-c", wanted])
            .code(2)
            .stdout("")
            .stderr_has("error: ")
            .stderr_has(said)
            .run();
        assert!(server.requests().is_empty());
    }
}

#[test]
fn a_directory_is_rejected() {
    let server = Server::start();
    crate::plan::with_server(&server, Protocol::OpenAi)
        .folder("folder")
        .args(["draft", "Write a line.", "-c", "./folder"])
        .code(2)
        .stderr_has("directory")
        .run();
    assert!(server.requests().is_empty());
}

#[cfg(unix)]
#[test]
fn a_file_without_read_permission() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Server::start();
    let test = draft(&server, Protocol::OpenAi);
    let nobody = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(test.path("criteria.toml"), nobody).expect("permissions");
    test.ordinary_user()
        .code(2)
        .stdout("")
        .stderr_has("criteria.toml")
        .stderr_has("permission denied")
        .run();
    assert!(server.requests().is_empty());
}

#[test]
fn the_built_in_sets() {
    for (name, number) in [
        ("code", 4),
        ("writing", 4),
        ("analysis", 4),
        ("reasoning", 3),
    ] {
        let server = Server::start();
        server.on(Purpose::Write, |_| Reply::text("A line."));
        // Scores every criterion in the requested schema.
        server.on(Purpose::Judge, |request| {
            let schema = request.body["format"].to_string();
            let names: Vec<String> = request.body["format"]["properties"]["scores"]["properties"]
                .as_object()
                .unwrap_or_else(|| panic!("a schema: {schema}"))
                .keys()
                .cloned()
                .collect();
            let scores: serde_json::Map<_, _> = names
                .into_iter()
                .map(|name| (name, serde_json::json!({"analysis": "", "score": 5})))
                .collect();
            Reply::text(&serde_json::json!({"scores": scores, "to_fix": []}).to_string())
        });
        let ran = crate::plan::with_server(&server, Protocol::Ollama)
            .args(["draft", "Write a line.", "--format", "json", "-c", name])
            .run();
        let result = ran.json();
        let scores = result["best_evaluation"]["criteria_scores"].as_object();
        assert_eq!(scores.expect("scores").len(), number, "{name}");
    }
}

#[test]
fn without_criteria_the_default_is_reported() {
    let server = Server::start();
    server.on(Purpose::Write, |_| Reply::text("A line."));
    server.on(Purpose::Judge, |_| Reply::text(&verdict(5).to_string()));
    crate::plan::with_server(&server, Protocol::Ollama)
        .args(["draft", "Write a line."])
        .code(6)
        .stderr_has("criteria: writing (built-in); choose others with `--criteria FILE|NAME`")
        .run();
}

/// Creates a `criteria` command, which calls no model.
fn criteria(command: &str) -> Test {
    Test::new().args(["criteria", command])
}

const MINE: &str =
    "description = 'Mine.'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 5\n";

/// Adds a configuration with a folder of criteria sets.
fn with_own_sets(test: Test) -> Test {
    test.file(
        "../home/.config/reflect/config.toml",
        "criteria_path = ['~/sets']\n",
    )
    .file("../home/sets/mine.toml", MINE)
    .file("../home/sets/code.toml", MINE)
    .file("../home/sets/wrong.toml", "treshold = 1\n")
}

#[test]
fn the_list_shows_names_and_origins() {
    let ran = with_own_sets(criteria("list"))
        .stderr_has("wrong.toml:1:1: unknown key `treshold` (did you mean `threshold`?)")
        .run();
    let list = ran.plain(&ran.stdout);
    let lines: Vec<Vec<&str>> = list
        .lines()
        .map(|line| {
            line.split("  ")
                .map(str::trim)
                .filter(|part| !part.is_empty())
                .collect()
        })
        .collect();
    assert_eq!(
        lines[..4],
        [
            [
                "code",
                "[DIR]/home/sets/code.toml (overrides the built-in set)",
                "Mine."
            ],
            ["mine", "[DIR]/home/sets/mine.toml", "Mine."],
            ["wrong", "[DIR]/home/sets/wrong.toml", "invalid"],
            [
                "writing",
                "built in",
                "Clear, coherent and complete prose in a fitting tone."
            ],
        ]
    );
    assert_eq!(lines.len(), 2 + reflect::criteria::BUILTIN_NAMES.len());
    assert!(lines.iter().all(|line| line.len() == 3), "{list}");
    let sets = with_own_sets(criteria("list")).arg("--json").run().json();
    assert_eq!(sets[1]["name"], "mine");
    assert_eq!(sets[1]["error"], serde_json::Value::Null);
    assert!(
        sets[2]["error"]
            .as_str()
            .is_some_and(|error| error.contains("treshold"))
    );
    assert_eq!(sets[3]["path"], serde_json::Value::Null);
}

#[test]
fn a_set_is_shown_with_its_defaults() {
    with_own_sets(criteria("show"))
        .arg("writing")
        .arg("--format=json")
        .stderr("")
        .run();
    let ran = criteria("show")
        .arg("mine.toml")
        .file("mine.toml", MINE)
        .run();
    assert_eq!(
        ran.stdout,
        "mine: Mine.\nmine.toml; the weighted mean must reach 0.8\n\n\
         short (length): weight 1, floor 1\n  At most 5 words.\n"
    );
    let json = criteria("show")
        .args(["mine.toml", "--format", "json"])
        .file("mine.toml", MINE)
        .run()
        .json();
    assert_eq!(json["threshold"], 0.8);
    assert_eq!(json["criteria"][0]["unit"], "words");
    assert_eq!(json["criteria"][0]["weight"], 1.0);
    // The TOML output is an equivalent criteria file.
    let toml = criteria("show")
        .args(["mine.toml", "--format", "toml"])
        .file("mine.toml", MINE)
        .run();
    let again = criteria("show")
        .args(["again.toml", "--format", "json"])
        .file("again.toml", &toml.stdout)
        .run();
    assert_eq!(again.json(), json);
    criteria("show")
        .arg("wrting")
        .code(2)
        .stderr_has("did you mean `writing`?")
        .run();
}

#[test]
fn every_file_is_checked_and_the_worst_decides_the_exit_code() {
    let ran = criteria("check")
        .args(["one.toml", "none.toml", "mine.toml", "two.toml"])
        .file("one.toml", "treshold = 1\n")
        .file("mine.toml", MINE)
        .file(
            "two.toml",
            "[[criteria]]\nname = 'a'\nevaluator = 'regex'\npattern = '('\n",
        )
        .code(2)
        .stderr_has("one.toml:1:1")
        .stderr_has("hint: did you mean `threshold`?")
        .stderr_has("none.toml: no such file")
        .stderr_has("two.toml:4:11")
        .stderr_has("mine.toml: valid, 1 criterion")
        .run();
    let errors = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), 3);
    criteria("check")
        .arg("vague.toml")
        .file("vague.toml", "[[criteria]]\nname = 'a'\n")
        .stderr("warning: vague.toml: the criterion `a` has no description: the judge sees only its name\n")
        .run();
    criteria("check")
        .args(["writing", "--quiet"])
        .stderr("")
        .run();
    criteria("check").code(2).stderr_has("<FILE>").run();
}

#[test]
fn invalid_hard_evaluators_are_found_before_the_run() {
    let evaluator = |kind: &str, lines: &str| {
        format!("[[criteria]]\nname = 'a'\nevaluator = '{kind}'\n{lines}\n")
    };
    let cases = [
        (
            "a pattern that does not compile",
            evaluator("regex", "pattern = 'a)'"),
            "c.toml:4:11",
            "unopened group",
        ),
        (
            "a pattern that explodes",
            evaluator("regex", "pattern = '(?:\\w{1000}){1000}'"),
            "c.toml:4:11",
            "exceeds size limit",
        ),
        (
            "counts the wrong way round",
            evaluator("regex", "pattern = 'a'\nmin_count = 3\nmax_count = 2"),
            "c.toml:5:13",
            "is above `max_count`",
        ),
        (
            "a count of what must be absent",
            evaluator("regex", "pattern = 'a'\nexpect = 'absent'\nmax_count = 2"),
            "c.toml:6:13",
            "contradicts",
        ),
        (
            "an unknown part of a match",
            evaluator("regex", "pattern = 'a'\nexpect = 'absent'\nmessage = '{2}'"),
            "c.toml:6:11",
            "a match has no part",
        ),
        (
            "no list",
            evaluator("contains", ""),
            "c.toml:1:1",
            "needs `all`, `any` or `none`",
        ),
        (
            "an empty list",
            evaluator("contains", "any = []"),
            "c.toml:4:7",
            "`any` is empty",
        ),
        (
            "no reference",
            evaluator("compare", "min = 0.5"),
            "c.toml:1:1",
            "missing text to compare with",
        ),
        (
            "a missing reference file",
            evaluator("compare", "min = 0.5\nreference_file = 'no.txt'"),
            "c.toml:5:18",
            "no such file: `no.txt`",
        ),
        (
            "a reference file elsewhere",
            evaluator("compare", "min = 0.5\nreference_file = '../home/secret'"),
            "c.toml:5:18",
            "is outside the folder of this file",
        ),
        (
            "a binary reference file",
            evaluator("compare", "min = 0.5\nreference_file = 'binary'"),
            "c.toml:5:18",
            "not a text file",
        ),
        (
            "a huge reference file",
            evaluator("compare", "min = 0.5\nreference_file = 'huge'"),
            "c.toml:5:18",
            "at most 262144 are allowed",
        ),
    ];
    each(
        &cases,
        |case| case.0.to_owned(),
        |(_, text, place, said)| {
            let ran = criteria("check")
                .arg("c.toml")
                .file("c.toml", text)
                .file("../home/secret", "A secret.")
                .file("binary", b"\x7fELF\0\0")
                .file("huge", "x".repeat(300_000))
                .code(2)
                .stdout("")
                .stderr_has(place)
                .stderr_has(said)
                .run();
            assert!(!ran.stderr.contains("A secret."));
        },
    );
}

#[test]
fn a_reference_file_is_recorded_with_the_run() {
    let ran = Test::new()
        .args(["evaluate", "text.txt", "-c", "sets/c.toml", "--format", "json"])
        .file("sets/c.toml", "[[criteria]]\nname = 'like'\nevaluator = 'compare'\nreference_file = 'good.txt'\nmin = 0.8\n")
        .file("sets/good.txt", "The cache is warm.\n")
        .file("text.txt", "The cache is cold.\n")
        .code(3)
        .run();
    let result = ran.json();
    assert_eq!(result["evaluation"]["criteria_scores"]["like"], 0.9375);
    let said = result["evaluation"]["issues"][0]["description"].as_str();
    assert_eq!(
        said,
        Some("the likeness to the reference text is 0.75, at least 0.8 is required")
    );
    let events = ran
        .then(["history", "show", "last", "--format", "ndjson"])
        .run();
    let kept = &events.lines()[0]["criteria"]["criteria"][0];
    assert_eq!(kept["reference"], "The cache is warm.\n", "{kept}");
}

#[test]
fn each_bad_match_has_its_line() {
    let ran = Test::new()
        .args(["evaluate", "text.txt", "-c", "c.toml", "--format", "json"])
        .file(
            "c.toml",
            "[[criteria]]\nname = 'dates'\nevaluator = 'regex'\nexpect = 'absent'\n\
             pattern = '(\\d{1,2})/(\\d{1,2})/(?P<year>\\d{4})'\n\
             message = 'Write {year}-{2}-{1}, not {match}.'\n",
        )
        .file("text.txt", "On 24/12/2025\nand not before\n31/12/2025.\n")
        .code(3)
        .run();
    let issues = ran.json()["evaluation"]["issues"].clone();
    assert_eq!(issues[1]["line"], 3);
    assert_eq!(issues[1]["quote"], "31/12/2025");
    let said = issues[0]["description"].as_str().unwrap_or_default();
    assert_eq!(said, "Write 2025-12-24, not 24/12/2025.");
    assert_eq!(issues.as_array().map(Vec::len), Some(2));
}

#[test]
fn a_template_file_is_valid_and_overwrites_nothing() {
    let ran = criteria("init")
        .stdout("")
        .stderr("wrote criteria.toml; check it with `reflect criteria check criteria.toml`\n")
        .run();
    assert!(ran.read("criteria.toml").contains("name = \"coherence\""));
    ran.then(["criteria", "check", "criteria.toml"])
        .stderr("criteria.toml: valid, 4 criteria\n")
        .run();
    ran.then(["criteria", "init", "--task-type", "code"])
        .code(2)
        .stderr_has("the file already exists: criteria.toml")
        .stderr_has("hint: overwrite it with `--force`")
        .run();
    let forced = ran
        .then(["criteria", "init", "--task-type", "code", "--force"])
        .run();
    assert!(
        forced
            .read("criteria.toml")
            .contains("name = \"edge_cases\"")
    );
    let printed = criteria("init")
        .args(["-", "--task-type", "reasoning"])
        .stderr("")
        .run();
    assert!(printed.stdout.contains("name = \"logical_validity\""));
    criteria("init")
        .args(["x.toml", "--task-type", "poem"])
        .code(2)
        .stderr_has("reasoning")
        .run();
    let copied = ran
        .then(["criteria", "init", "--from", "commit", "mine.toml"])
        .stderr("wrote mine.toml; check it with `reflect criteria check mine.toml`\n")
        .run();
    let text = copied.read("mine.toml");
    assert!(
        text.starts_with("# A commit message from a diff:\n"),
        "{text}"
    );
    assert!(text.contains("-c mine.toml | git commit -F -\n"), "{text}");
    assert!(text.contains("\nname = \"mine\"\n"), "{text}");
    copied
        .then(["criteria", "check", "mine.toml"])
        .stderr("mine.toml: valid, 9 criteria\n")
        .run();
    copied
        .then(["criteria", "init", "--from", "blog", "mine.toml"])
        .code(2)
        .stderr_has("the file already exists: mine.toml")
        .run();
    criteria("init")
        .args(["--from", "comit"])
        .code(2)
        .stderr_has("did you mean `commit`?")
        .run();
    criteria("init")
        .args(["--from", "commit", "--task-type", "code"])
        .code(2)
        .stderr_has("--task-type")
        .run();
    criteria("init")
        .arg("no/such/folder.toml")
        .code(2)
        .stderr_has("no/such/folder.toml")
        .run();
}

#[test]
fn the_schema_is_valid_and_covers_every_evaluator() {
    let schema = criteria("schema").stderr("").run().json();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let valid = |text: &str| {
        let value: toml::Value = toml::from_str(text).expect("TOML");
        validator.is_valid(&serde_json::to_value(value).expect("JSON"))
    };
    assert!(valid(MINE));
    assert!(valid(
        "[[criteria]]\nname = 'a'\nevaluator = 'contains'\nall = ['x']\n"
    ));
    assert!(!valid(
        "[[criteria]]\nname = 'a'\nevaluator = 'contains'\nal = ['x']\n"
    ));
}

/// A first draft has no earlier version to compare with.
#[test]
fn a_revision_is_compared_with_its_predecessor() {
    let ran = Test::new()
        .args(["draft", "Write a line.", "-c", "c.toml", "--format", "json"])
        .args(["--provider", "scripted:script.toml", "--adapt", "false"])
        .file(
            "c.toml",
            "[[criteria]]\nname = 'long'\nevaluator = 'length'\nmin = 6\n\
             [[criteria]]\nname = 'kept'\nevaluator = 'compare'\nwith = 'prior'\nmin = 0.8\n",
        )
        .file(
            "script.toml",
            "[[reply]]\ntext = 'One two three four.'\n\
             [[reply]]\ntext = 'Something else than that it is.'\n\
             [[reply]]\ntext = 'One two three four five six.'\n",
        )
        .run();
    let result = ran.json();
    let seen: Vec<&str> = result["history"]["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|version| {
            version["evaluation"]["criteria"][1]["evidence"]
                .as_str()
                .expect("words")
        })
        .collect();
    assert_eq!(
        seen,
        [
            "there is no version before to compare with",
            "likeness to the version before 0.00",
            "likeness to the version before 0.80",
        ]
    );
}

/// Opening a pipe must not block.
#[cfg(unix)]
#[test]
fn a_schema_that_is_a_named_pipe_is_refused() {
    let test = Test::new();
    let made = std::process::Command::new("mkfifo")
        .arg(test.path("pipe.json"))
        .status();
    assert!(made.expect("mkfifo").success());
    let check = |test: Test, keys: &str| {
        test.file(
            "c.toml",
            format!("[[criteria]]\nname = 'x'\nevaluator = 'schema'\n{keys}\n"),
        )
        .args(["criteria", "check", "c.toml"])
        .code(2)
        .stderr_has("it is not a file")
        .run()
    };
    let ran = check(test, "file = 'pipe.json'");
    check(ran.then([""; 0]), "schema = { '$ref' = 'pipe.json' }");
}
