//! Criteria files that cannot be used: exit code 2, the place, and no request.

use crate::harness::{Test, each};
use crate::plan::{CRITERIA, draft, usual_server, verdict};
use crate::support::server::{Protocol, Purpose, Reply, Server};

/// A run that must not begin.
fn refused(content: &[u8], said: &[&str]) -> Test {
    let server = Server::start();
    let mut test = draft(&server, Protocol::OpenAi)
        .file("criteria.toml", content)
        .code(2)
        .stdout("")
        .stderr_has("reflect: error: ");
    for part in said {
        test = test.stderr_has(part);
    }
    let ran = test.run();
    assert!(server.requests().is_empty(), "no request is made");
    ran.then(["history", "list"])
        .stderr_has("there are no runs yet")
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_wrong_file_says_what_where_and_what_to_do() {
    let with = |line: &str| format!("{CRITERIA}\n{line}\n");
    let cases: Vec<(&str, String, Vec<&str>)> = vec![
        (
            "empty",
            String::new(),
            vec![
                "criteria.toml",
                "there is nothing in this criteria file",
                "hint: ",
            ],
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
fn what_is_no_text_is_no_criteria() {
    refused(
        b"\x7fELF\x02\x01\x00\x00\xff\xfe",
        &["criteria.toml", "UTF-8"],
    )
    .run();
    refused(b"name = 'caf\xe9'\n", &["criteria.toml", "UTF-8"]).run();
    // A mark at the beginning is no fault: editors write it.
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
fn a_file_that_is_not_there() {
    for (wanted, said) in [
        ("nowhere.toml", "nowhere.toml: there is no such file"),
        ("./nowhere", "./nowhere: there is no such file"),
        (
            "criteria.tmol",
            "known names: `code`, `writing`, `analysis` and `reasoning`",
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
            .stderr_has("reflect: error: ")
            .stderr_has(said)
            .run();
        assert!(server.requests().is_empty());
    }
}

#[test]
fn a_directory_is_no_file() {
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
fn a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = Server::start();
    let test = draft(&server, Protocol::OpenAi);
    let nobody = std::fs::Permissions::from_mode(0o000);
    std::fs::set_permissions(test.path("criteria.toml"), nobody).expect("permissions");
    test.ordinary_user()
        .code(2)
        .stdout("")
        .stderr_has("criteria.toml")
        .stderr_has("may not be read")
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
        // It judges what it is asked to judge.
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
                .map(|name| (name, serde_json::json!({"reason": "", "score": 5})))
                .collect();
            Reply::text(&serde_json::json!({"scores": scores, "issues": []}).to_string())
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
fn without_criteria_the_choice_is_said() {
    let server = Server::start();
    server.on(Purpose::Write, |_| Reply::text("A line."));
    server.on(Purpose::Judge, |_| Reply::text(&verdict(5).to_string()));
    crate::plan::with_server(&server, Protocol::Ollama)
        .args(["draft", "Write a line."])
        .code(6)
        .stderr_has("criteria: writing, built in; choose others with `--criteria FILE|NAME`")
        .run();
}
