//! Permission to run code: who can give it, and what is shown first.

use crate::harness::Test;
use crate::plan::draft;
use crate::support::server::{Protocol, Server};

const USER: &str = "../home/.config/reflect/config.toml";

/// A command that exists on every system these tests run on.
const COMMAND: &str = "name = 'c'\n[[criteria]]\nname = 'other'\nevaluator = 'length'\nmin = 1\n\
                       [[criteria]]\nname = 'runs'\nevaluator = 'command'\n\
                       command = ['sh', '-c', 'grep -q \"a b\"', '{draft_file}']\nenv = ['EDITOR']\n";

fn evaluate() -> Test {
    evaluate_by("set/c.toml")
}

/// Runs `evaluate` with criteria elsewhere.
fn evaluate_by(criteria: &str) -> Test {
    Test::new()
        .args(["evaluate", "text.txt", "-c", criteria])
        .file("text.txt", "a b\n")
        .file("set/c.toml", COMMAND)
}

/// The configuration of a user who trusts this path.
fn trusting(test: Test, path: &str) -> Test {
    let full = test
        .path(path)
        .canonicalize()
        .expect("a path that is there");
    test.file(USER, format!("[trust]\nexec = ['{}']\n", full.display()))
}

#[test]
fn without_permission_nothing_runs_and_the_code_is_shown() {
    let ran = evaluate().code(2).run();
    let said = ran.said();
    for part in [
        "error: these criteria run code on this machine, which needs your permission:\n",
        "/work/set/c.toml:6: `runs` runs the command\n      sh -c 'grep -q \"a b\"' {draft_file}\n",
        "with access to the environment variables EDITOR\n",
        "hint: if you trust this code, add `--allow-exec`, or always allow it with these lines in ",
        "/.config/reflect/config.toml:\n  [trust]\n  exec = [",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
}

/// Before the first draft is paid for.
#[test]
fn permission_is_checked_before_any_call() {
    let server = Server::start();
    draft(&server, Protocol::OpenAi)
        .file("criteria.toml", COMMAND)
        .code(2)
        .stderr_has("which needs your permission")
        .run();
    assert!(server.requests().is_empty());
    server.reply_text("a b");
    draft(&server, Protocol::OpenAi)
        .file("criteria.toml", COMMAND)
        .arg("--allow-exec")
        .stdout("a b\n")
        .run();
    assert_eq!(server.calls(), 1);
}

#[test]
fn events_end_even_without_permission() {
    let ran = evaluate().args(["--format", "ndjson"]).code(2).run();
    let lines = ran.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["event"], "run_end");
    assert_eq!(lines[0]["exit_code"], 2);
}

#[test]
fn permission_comes_from_the_flag_or_the_users_configuration() {
    evaluate().arg("--allow-exec").run();
    trusting(evaluate(), "set/c.toml").run();
    trusting(evaluate(), "set").run();
    evaluate()
        .file("mine.toml", "")
        .args(["--config", "mine.toml"])
        .code(2)
        .stderr_has("mine.toml:\n  [trust]")
        .run();
    evaluate_by("../home/sets/c.toml")
        .file("../home/sets/c.toml", COMMAND)
        .file(USER, "[trust]\nexec = ['~/sets']\n")
        .run();
}

#[test]
fn permission_does_not_come_from_anywhere_else() {
    // Another folder whose name has the same prefix.
    let test = evaluate().folder("se");
    trusting(test, "se")
        .code(2)
        .stderr_has("needs your permission")
        .run();
    // A trusted path that does not exist.
    evaluate()
        .file(USER, "[trust]\nexec = ['/nowhere/at/all']\n")
        .code(2)
        .stderr_has("needs your permission")
        .run();
    evaluate()
        .file(USER, "[trust]\nexec = ['set/c.toml']\n")
        .code(2)
        .stderr_has("config.toml:2:8")
        .stderr_has("is not an absolute path")
        .run();
    evaluate()
        .file(".reflect.toml", "[trust]\nexec = ['/']\n")
        .code(2)
        .stderr_has("a project file may not set `trust`")
        .run();
    evaluate()
        .file("set/c.toml", format!("trust.exec = ['/']\n{COMMAND}"))
        .code(2)
        .stderr_has("unknown key `trust`")
        .run();
    evaluate()
        .file("set/c.toml", format!("loop.allow_exec = true\n{COMMAND}"))
        .code(2)
        .stderr_has("unknown key `allow_exec`")
        .run();
}

/// The real location of a file counts, not the path used to reach it.
#[cfg(unix)]
#[test]
fn a_link_in_a_trusted_folder_is_not_trusted() {
    let test = evaluate_by("trusted/link.toml").folder("trusted");
    std::os::unix::fs::symlink(test.path("set/c.toml"), test.path("trusted/link.toml"))
        .expect("a link");
    trusting(test, "trusted")
        .code(2)
        .stderr_has("needs your permission")
        .stderr_has("/work/set/c.toml:6")
        .run();
}

#[test]
fn python_and_prolog_scripts_need_permission_and_are_shown() {
    for language in ["python", "prolog"] {
        let code = "first line\nsecond \u{202e}line";
        evaluate()
            .file(
                "set/c.toml",
                format!("[[criteria]]\nname = 'x'\nevaluator = 'script'\nlanguage = '{language}'\nfile = 'check.txt'\n"),
            )
            .file("set/check.txt", code)
            .code(2)
            .stderr_has(&format!("`x` runs this {language} script of "))
            .stderr_has("/set/check.txt\n      first line\n      second \\u{202e}line\n")
            .run();
    }
}

/// Before any model call, with a hint.
#[test]
fn missing_programs_are_found_before_the_run() {
    let server = Server::start();
    for (criterion, said) in [
        (
            "evaluator = 'script'\nlanguage = 'python'\ncode = 'x'",
            "apt install python3",
        ),
        (
            "evaluator = 'script'\nlanguage = 'prolog'\ncode = 'x'",
            "apt install swi-prolog-core",
        ),
        (
            "evaluator = 'command'\ncommand = 'mdlint {draft_file}'",
            "program `mdlint` not found",
        ),
    ] {
        draft(&server, Protocol::OpenAi)
            .env("PATH", "/nowhere")
            .file(
                "criteria.toml",
                format!("[[criteria]]\nname = 'x'\n{criterion}\n"),
            )
            .arg("--allow-exec")
            .code(2)
            .stderr_has("criteria.toml:1: criterion `x` cannot be checked: ")
            .stderr_has(said)
            .stderr_has("/nowhere")
            .run();
    }
    assert!(server.requests().is_empty());
}
