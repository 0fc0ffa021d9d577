//! Shell completion: the candidates for each position.

use std::time::Duration;

use crate::harness::Test;
use crate::plan::{usual_server, with_server};
use crate::support::server::{Protocol, Server};

const USER: &str = "../home/.config/reflect/config.toml";

const CONFIG: &str = "criteria_path = ['sets']\n[aliases]\nfast = 'ollama:qwen3:4b'\n\
    [providers.work]\nbase_url = 'http://127.0.0.1:9/v1'\nmodel = 'qwen'\n[profiles.thorough]\nretries = 1\n";

/// Returns the candidates for the last of these words.
#[track_caller]
fn offered(test: Test, words: &[&str]) -> Vec<String> {
    let ran = test
        .env("_REFLECT_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", "\n")
        .args(["--", "reflect"])
        .args(words)
        .stderr("")
        .run();
    // A generous limit for a busy machine; a network call would take longer.
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    ran.stdout.lines().map(str::to_owned).collect()
}

fn world() -> Test {
    Test::new()
        .file(USER, CONFIG)
        .file("../home/.config/reflect/sets/house.toml", "")
        .file("own.toml", "")
        .file("other.txt", "")
}

#[track_caller]
fn has(offered: &[String], wanted: &[&str], unwanted: &[&str]) {
    for value in wanted {
        assert!(
            offered.iter().any(|it| it == value),
            "no {value:?} in {offered:?}"
        );
    }
    for value in unwanted {
        assert!(
            !offered.iter().any(|it| it == value),
            "{value:?} in {offered:?}"
        );
    }
}

#[test]
fn commands_and_flags() {
    has(&offered(world(), &["dr"]), &["draft"], &["revise"]);
    has(
        &offered(world(), &["draft", "--max-it"]),
        &["--max-iterations"],
        &[],
    );
    has(
        &offered(world(), &["draft", "--think", ""]),
        &["auto", "high"],
        &[],
    );
}

#[test]
fn models_without_asking_a_server() {
    let server = Server::start();
    let test = || world().env("OLLAMA_HOST", server.url());
    let all = offered(test(), &["draft", "-m", ""]);
    has(
        &all,
        &["fast", "work:qwen", "ollama:", "openai:", "work:"],
        &[],
    );
    let some = offered(test(), &["draft", "--judge-model", "wo"]);
    assert_eq!(some, ["work:qwen", "work:"]);
    let some = offered(test(), &["doctor", "--model=wo"]);
    assert_eq!(some, ["--model=work:qwen", "--model=work:"]);
    has(
        &offered(test(), &["draft", "--provider", "op"]),
        &["openai", "openrouter"],
        &["work"],
    );
    assert!(server.requests().is_empty());
}

#[test]
fn criteria_by_name_and_by_file() {
    for words in [
        ["draft", "-c"],
        ["evaluate", "-c"],
        ["batch", "-c"],
        ["criteria", "show"],
        ["criteria", "check"],
    ] {
        let all = offered(world(), &[words[0], words[1], ""]);
        has(
            &all,
            &["house", "code", "writing", "commit", "own.toml"],
            &["other.txt"],
        );
    }
    assert_eq!(offered(world(), &["draft", "-c", "ho"]), ["house"]);
}

#[test]
fn profiles() {
    assert_eq!(offered(world(), &["draft", "--profile", ""]), ["thorough"]);
}

/// Models and runs from earlier runs are offered.
#[test]
fn earlier_runs_and_their_models_are_offered() {
    let server = usual_server();
    let ran = with_server(&server, Protocol::Ollama)
        .args(["draft", "Write a line.", "-c", "criteria.toml"])
        .run();
    let runs = |command: &str| {
        let mut runs = offered(ran.then([""; 0]), &["history", command, ""]);
        // Flags may follow, too.
        runs.retain(|it| !it.starts_with('-'));
        runs
    };
    let shown = runs("show");
    assert_eq!(shown.len(), 2, "{shown:?}");
    assert_eq!(shown[0], "last");
    for command in ["resume", "diff", "export", "rm"] {
        assert_eq!(runs(command), shown, "{command}");
    }
    ran.then(["history", "show", &shown[1]]).run();
    let models = offered(ran.then([""; 0]), &["draft", "-m", "ollama:t"]);
    assert_eq!(models, ["ollama:test"]);
    assert_eq!(server.calls(), 4);
}

#[test]
fn unreadable_files_are_ignored() {
    let broken = || Test::new().file(USER, "this is no TOML");
    has(
        &offered(broken(), &["draft", "-m", "oll"]),
        &["ollama:"],
        &[],
    );
    has(&offered(broken(), &["draft", "-c", ""]), &["writing"], &[]);
    let no_log = broken().file("../home/.local/state/reflect/reflect.db", "no database");
    assert_eq!(offered(no_log, &["history", "show", "l"]), ["last"]);
    // An unknown shell gets no candidates, and the command does not run.
    Test::new()
        .env("_REFLECT_COMPLETE", "tcsh")
        .args(["--", "reflect", "dr"])
        .stdout("")
        .stderr("")
        .run();
}

/// A variable used by something else does not turn a command into a completion.
#[test]
fn other_variables_are_ignored() {
    Test::new()
        .env("COMPLETE", "bash")
        .env("_REFLECT_COMPLETE", "")
        .args(["config", "schema"])
        .run()
        .json();
}

/// Real bash, which splits words at colons.
#[cfg(unix)]
#[test]
fn bash_and_names_with_colons() {
    use std::process::{Command, Stdio};
    let found = Command::new("bash")
        .arg("--version")
        .stdout(Stdio::null())
        .status()
        .is_ok();
    if !found {
        eprintln!("SKIPPED: `bash` is not here, and its completion is not tested");
        return;
    }
    // The line up to the cursor, bash's current word, and its replacement.
    let cases: [(&str, &[&str], &str, &[&str]); 6] = [
        ("reflect dr", &["reflect", "dr"], "dr", &["draft"]),
        (
            "reflect draft -m fa",
            &["reflect", "draft", "-m", "fa"],
            "fa",
            &["fast"],
        ),
        (
            "reflect draft -m work:q",
            &["reflect", "draft", "-m", "work", ":", "q"],
            "q",
            &["qwen"],
        ),
        (
            "reflect draft -m work:",
            &["reflect", "draft", "-m", "work", ":"],
            "",
            &["qwen", ""],
        ),
        (
            "reflect draft --model=work:q",
            &["reflect", "draft", "--model", "=", "work", ":", "q"],
            "q",
            &["qwen"],
        ),
        (
            "reflect draft 'a b: c' -c ho",
            &["reflect", "draft", "'a b: c'", "-c", "ho"],
            "ho",
            &["house"],
        ),
    ];
    let script = Test::new().args(["completions", "bash"]).run().stdout;
    for (line, words, current, wanted) in cases {
        let words: Vec<String> = words
            .iter()
            .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
            .collect();
        let quoted = line.replace('\'', "'\\''");
        let run = format!(
            "reflect() {{ \"$REFLECT\" \"$@\"; }}\nsource ./reflect.bash || exit 9\n\
             COMP_WORDS=({})\nCOMP_CWORD={}\nCOMP_LINE='{quoted}'\nCOMP_POINT={}\n\
             _reflect_complete reflect '{current}' x\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words.join(" "),
            words.len() - 1,
            line.len()
        );
        let ran = world()
            .file("reflect.bash", &script)
            .env("REFLECT", env!("CARGO_BIN_EXE_reflect"))
            .program("bash")
            .args(["--norc", "-c", &run])
            .stderr("")
            .run();
        let offered: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(offered, wanted, "{line}");
    }
}
