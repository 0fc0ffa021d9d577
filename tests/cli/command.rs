//! The `command` evaluator: what the program receives, and how its result is interpreted.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::harness::{Ran, Test};
use crate::plan::{answering, draft};
use crate::support::server::{Protocol, Reply};

fn evaluate(keys: &str) -> Test {
    Test::new()
        .args([
            "evaluate",
            "text.txt",
            "-c",
            "c.toml",
            "--allow-exec",
            "--format",
            "json",
        ])
        .file("text.txt", "one\ntwo\n")
        .file(
            "c.toml",
            format!("[[criteria]]\nname = 'runs'\nevaluator = 'command'\n{keys}\n"),
        )
}

/// Creates a command that runs a line of shell.
fn sh(script: &str, keys: &str) -> Test {
    assert!(!script.contains("'''"));
    evaluate(&format!(
        "command = ['sh', '-c', '''{script}''', '{{draft_file}}']\n{keys}"
    ))
}

fn evaluation(ran: &Ran) -> Value {
    ran.json()["evaluation"].clone()
}

#[test]
fn exit_code_0_passes() {
    let ran = sh("true", "").run();
    let evaluation = evaluation(&ran);
    assert_eq!(evaluation["overall_score"], 1.0);
    assert_eq!(
        evaluation["criteria"][0]["evidence"],
        "ended with exit code 0"
    );
    assert_eq!(evaluation["criteria"][0]["threshold"], 0.7);
}

/// Models wrap code in a code fence; programs receive only its content.
#[test]
fn a_program_receives_the_content_of_a_fence() {
    let fenced = "```sh\nexit 0\n```\n";
    let criteria = "[[criteria]]\nname = 'runs'\nevaluator = 'command'\ncommand = ['sh', '-e', '{draft_file}']\n";
    for command in ["evaluate", "revise"] {
        Test::new()
            .args([command, "text.sh", "-c", "c.toml", "--allow-exec"])
            .args(["--provider", "scripted:none.toml"])
            .file("none.toml", "[[reply]]\ntext = 'Not asked.'\n")
            .file("text.sh", fenced)
            .file("c.toml", criteria)
            .run();
    }
    // A Markdown check receives the Markdown.
    let grep = "command = ['grep', '-q', '```', '{draft_file}']\nextension = 'md'";
    evaluate(grep).file("text.txt", fenced).run();

    let write = |prompt: &str, text: &str, more: &[&str]| {
        let ran = Test::new()
            .args(["draft", prompt, "-c", "c.toml", "--allow-exec"])
            .args(["--provider", "scripted:write.toml", "-n", "1"])
            .args(more)
            .file(
                "write.toml",
                format!("[[reply]]\ntext = \"\"\"{text}\"\"\"\n"),
            )
            .file("c.toml", criteria)
            .run();
        ran.stdout
    };
    let prompt = "A script that succeeds, in a fenced code block.";
    assert_eq!(write(prompt, fenced, &[]), fenced);
    let talk = format!("Run this:\n\n{fenced}\nIt succeeds.");
    for text in [fenced, &talk] {
        assert_eq!(write(prompt, text, &["--extract"]), "exit 0\n");
    }
}

#[test]
fn any_other_exit_code_fails_the_draft_and_the_output_is_the_issue() {
    let ran = sh(
        "echo 'draft.txt:2: two is wrong' >&2; echo summed up; exit 4",
        "",
    )
    .code(3)
    .run();
    let evaluation = evaluation(&ran);
    assert_eq!(evaluation["status"], "ok");
    assert_eq!(evaluation["overall_score"], 0.0);
    assert_eq!(
        evaluation["issues"][0]["description"],
        "`sh` ended with exit code 4:\n    draft.txt:2: two is wrong\n    summed up"
    );
    assert_eq!(evaluation["issues"][0]["line"], 2);
    // Several errors become several issues, each with its line of the draft.
    let ran = sh("echo draft.txt:2: no; echo draft.txt:1: bad; exit 1", "")
        .code(3)
        .run();
    let issues = self::evaluation(&ran)["issues"].clone();
    let of = |n: usize| (issues[n]["description"].clone(), issues[n]["line"].clone());
    assert_eq!(of(0), (json!("`sh`: no in line 2"), json!(2)));
    assert_eq!(of(1), (json!("`sh`: bad in line 1"), json!(1)));
    // Line numbers refer to the draft, even if the program reads the content of a code fence.
    let script = "echo draft.txt:2: no; echo draft.txt:1: bad; exit 1";
    let fenced = sh(script, "").file("text.txt", "\n```\none\ntwo\n```\n");
    let ran = fenced.code(3).run();
    let issues = self::evaluation(&ran)["issues"].clone();
    assert_eq!(
        (&issues[0]["line"], &issues[1]["line"]),
        (&json!(4), &json!(3))
    );
    let ran = sh("kill -SEGV $$", "").code(3).run();
    let description = self::evaluation(&ran)["issues"][0]["description"].clone();
    assert_eq!(
        description,
        "`sh` was killed by signal 11 (segmentation fault), and wrote nothing"
    );
}

#[test]
fn the_draft_is_passed_as_a_file_and_on_stdin() {
    sh(
        "test \"$(cat)\" = \"$(cat $0)\" && test \"$(wc -l < $0)\" = 2",
        "",
    )
    .run();
    sh(
        "case $0 in *.tar.rs) true;; *) false;; esac",
        "extension = '.tar.rs'",
    )
    .run();
    // The file is alone in its folder, which is also the temporary directory and is deleted afterwards.
    let ran = sh("pwd; test \"$(ls)\" = draft.txt && test \"$TMPDIR\" = \"$PWD\"; echo x > \"$TMPDIR/y\"; exit 1", "")
        .code(3)
        .run();
    let description = evaluation(&ran)["issues"][0]["description"].clone();
    assert_eq!(
        description, "`sh` ended with exit code 1:\n    .",
        "its own name differs each time"
    );
}

#[test]
fn a_command_string_runs_without_a_shell() {
    evaluate("command = 'grep -q \"^two$\" {draft_file}'").run();
    evaluate("command = 'grep -q three {draft_file}'")
        .code(3)
        .run();
}

#[test]
fn cwd_is_relative_to_the_criteria_file() {
    let test = Test::new()
        .args(["evaluate", "text.txt", "-c", "set/c.toml", "--allow-exec"])
        .file("text.txt", "x")
        .file("set/checks/words.txt", "x\n")
        .file("set/checks/check.sh", "#!/bin/sh\ngrep -qxf words.txt \"$1\"\n")
        .file(
            "set/c.toml",
            "[[criteria]]\nname = 'x'\nevaluator = 'command'\ncwd = 'checks'\ncommand = ['checks/check.sh', '{draft_file}']\n",
        );
    let script = test.path("set/checks/check.sh");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    test.run();
}

#[test]
fn the_environment_contains_only_allowed_variables() {
    let script = "test -z \"$OTHER\" && test \"$GIVEN\" = yes && test -z \"$OPENAI_API_KEY\" && test -n \"$PATH\"";
    sh(script, "env = ['GIVEN', 'NOT_SET']")
        .env("GIVEN", "yes")
        .env("OTHER", "yes")
        .env("OPENAI_API_KEY", crate::harness::KEY)
        .run();
    for name in ["OPENAI_API_KEY", "my_api_key", "REFLECT_MODEL"] {
        sh("true", &format!("env = ['{name}']"))
            .code(2)
            .stderr_has("c.toml:5:7")
            .stderr_has("is not passed on")
            .run();
    }
}

/// The program runs as the same user, and can inspect the process that started it.
#[cfg(target_os = "linux")]
#[test]
fn the_environment_of_reflect_itself_contains_no_secrets() {
    let ran = sh("tr '\\0' ' ' < /proc/$PPID/environ; echo read; exit 1", "")
        .env("OPENAI_API_KEY", crate::harness::KEY)
        .env("OTHER", "a-value-of-mine")
        .code(3)
        .run();
    let description = description(&ran);
    assert!(description.contains("read"), "{description}");
    assert!(!description.contains("OTHER"), "{description}");
    assert!(!description.contains("a-value-of-mine"), "{description}");
}

/// Prints the key without containing it as a literal.
const LEAK: &str =
    "printf \"found %s%s and %s\\n\" sk-reflect-test- 7f3a9c5e1b2d4860 header-value-1234";

fn description(ran: &Ran) -> String {
    let evaluation = evaluation(ran);
    evaluation["issues"][0]["description"]
        .as_str()
        .unwrap_or_else(|| panic!("{evaluation}"))
        .to_owned()
}

/// The harness searches everything that the program writes for the key.
#[test]
fn known_keys_are_redacted_in_what_a_program_writes() {
    let ran = sh(&format!("{LEAK} >&2; exit 1"), "")
        .env("MY_TOKEN", crate::harness::KEY)
        .code(3)
        .run();
    assert!(description(&ran).contains("found [key] and header"));

    let config = format!(
        "[providers.mine]\nkind = 'openai'\nbase_url = 'http://localhost:1/v1'\napi_key = '{}'\nheaders = {{ X-Pass = 'header-value-1234' }}",
        crate::harness::KEY
    );
    let test = sh(&format!("{LEAK}; exit 1"), "").file("user.toml", config);
    let path = test.path("user.toml");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ran = test.args(["--config", "user.toml"]).code(3).run();
    assert!(description(&ran).contains("found [key] and [key]"));

    let verdict = format!(
        "printf \"{{\\\"valid\\\": false, \\\"errors\\\": [\\\"\"; {LEAK} | tr -d \"\\n\"; printf \"\\\"]}}\""
    );
    let ran = sh(&verdict, "output = 'json'")
        .env("MY_TOKEN", crate::harness::KEY)
        .code(3)
        .run();
    assert!(description(&ran).contains("found [key]"));
}

#[test]
fn a_key_that_a_program_prints_is_not_sent_to_the_reviser() {
    let server = answering([Reply::text("One draft."), Reply::text("Another draft.")]);
    draft(&server, Protocol::OpenAi)
        .args(["--allow-exec", "-n", "2", "--adapt", "false"])
        .args(["--report", "report.html"])
        .file(
            "criteria.toml",
            format!("[[criteria]]\nname = 'runs'\nevaluator = 'command'\ncommand = ['sh', '-c', '''{LEAK}; exit 1''']\n"),
        )
        .env("MY_TOKEN", crate::harness::KEY)
        .code(3)
        .run();
    let revision = server.chats()[1].prompt();
    assert!(revision.contains("found [key]"), "{revision}");
}

#[test]
fn json_output_is_the_verdict_with_any_exit_code() {
    let verdict = r#"echo '{"score": 0.85, "errors": [{"message": "m", "line": 2, "severity": "minor"}]}'; exit 1"#;
    let ran = sh(verdict, "output = 'json'").run();
    let evaluation = evaluation(&ran);
    assert_eq!(evaluation["overall_score"], 0.85);
    assert_eq!(evaluation["issues"][0]["line"], 2);
    sh("echo false", "output = 'json'").code(3).run();
}

#[test]
fn without_a_json_verdict_the_check_fails() {
    for (script, said) in [
        (
            "echo oops >&2; exit 3",
            "its standard output is empty (it ended with exit code 3): oops",
        ),
        ("echo hello", "its standard output is not JSON"),
        ("echo '[1]'", "a list is not a verdict"),
        ("echo '{\"valid\":'", "not JSON"),
        ("echo true; kill -9 $$", "it did not end by itself"),
        ("yes | head -c 3000000", "which is too much"),
    ] {
        let ran = sh(script, "output = 'json'")
            .code(6)
            .stderr_has("the criterion `runs` could not be checked: `sh` gave no verdict: ")
            .stderr_has(said)
            .run();
        assert_eq!(evaluation(&ran)["status"], "failed");
    }
}

#[test]
fn a_hanging_program_is_killed_and_the_timeout_is_an_issue() {
    let ran = sh("echo before; sleep 60", "timeout = '500ms'")
        .code(3)
        .run();
    assert!(ran.took.as_secs() < 20, "{:?}", ran.took);
    let description = evaluation(&ran)["issues"][0]["description"].clone();
    assert_eq!(
        description,
        "`sh` hit the time limit of 500ms and was killed:\n    before"
    );
}

/// Stops after a hundred processes even if the limit fails.
#[cfg(target_os = "linux")]
#[test]
fn a_fork_bomb_is_killed() {
    let ran = sh(
        "for i in $(seq 100); do sleep 20 & done; wait",
        "processes = 20",
    )
    .code(3)
    .run();
    assert!(ran.took.as_secs() < 15, "{:?}", ran.took);
    let description = evaluation(&ran)["issues"][0]["description"].clone();
    let description = description.as_str().unwrap();
    assert!(
        description.contains("hit the limit of 20 processes"),
        "{description}"
    );
}

#[test]
fn a_gigabyte_of_output_is_truncated() {
    let ran = sh("echo first; yes | head -c 1000000000; echo last", "")
        .code(3)
        .run();
    assert!(ran.took.as_secs() < 20, "{:?}", ran.took);
    let evaluation = evaluation(&ran);
    let description = evaluation["issues"][0]["description"].as_str().unwrap();
    assert!(
        description.contains("hit the output limit of 16 MiB and was killed:\n    first\n    y ("),
        "{description}"
    );
    assert!(description.len() < 3_000, "{}", description.len());
    let kept = evaluation["criteria"][0]["value"].as_str().unwrap();
    assert!(kept.contains("characters cut ...]"));
    assert!(kept.len() < 70_000, "{}", kept.len());
}

#[test]
fn control_characters_in_the_output_do_not_reach_the_report() {
    let ran = sh("printf '\\033[31mred\\033[0m\\007 text\\r\\n'; exit 1", "")
        .code(3)
        .run();
    let description = evaluation(&ran)["issues"][0]["description"].clone();
    assert_eq!(description, "`sh` ended with exit code 1:\n    red  text");
}

/// The writer's prompt contains the command, and then its output.
#[test]
fn in_the_loop_the_output_reaches_the_reviser() {
    let server = answering([Reply::text("The pond."), Reply::text("The frog.")]);
    let criteria = "[[criteria]]\nname = 'frog'\nevaluator = 'command'\n\
                    command = ['sh', '-c', 'grep -q frog || { echo no frog at all; exit 1; }']\n";
    draft(&server, Protocol::OpenAi)
        .args(["--adapt", "false"])
        .file("criteria.toml", criteria)
        .arg("--allow-exec")
        .stdout("The frog.\n")
        .run();
    let requests = server.requests();
    assert!(
        requests[0]
            .body
            .to_string()
            .contains("Frog: `sh` finds no errors.")
    );
    assert!(
        requests
            .last()
            .unwrap()
            .body
            .to_string()
            .contains("no frog at all")
    );
}

#[test]
fn errors_in_a_command_criterion_show_their_position() {
    for (keys, said) in [
        ("", "the key `command` is missing"),
        ("command = []", "`command` is empty"),
        ("command = ''", "`command` is empty"),
        (
            "command = 3",
            "expected a list of strings (the program and its arguments) or one string",
        ),
        ("command = 'a | b'", "`|` is a shell operator"),
        ("command = 'a \"b'", "unterminated"),
        (
            "command = ['{draft_file}']",
            "the draft cannot be the program",
        ),
        (
            "command = 'x'\nextension = '../x'",
            "must be a file extension",
        ),
        (
            "command = 'x'\ntimeout = '2h'",
            "`timeout` must be at most 1h, not 2h",
        ),
        (
            "command = 'x'\nprocesses = 0",
            "`processes` must be from 1 to 4096, not 0",
        ),
        ("command = 'x'\nmemory = '1TB'", "invalid memory size"),
        ("command = 'x'\ncwd = 'nowhere'", "does not exist"),
        ("command = 'x'\noutput = 'text'", "unknown value `text`"),
        ("command = 'x'\nargs = 'y'", "unknown key `args`"),
    ] {
        evaluate(keys)
            .code(2)
            .stderr_has("c.toml:")
            .stderr_has(said)
            .run();
    }
}

#[test]
fn an_interrupt_leaves_no_process_behind() {
    let test = sh("echo $$ > pid.new; mv pid.new pid; sleep 60", "cwd = '.'").code(130);
    let file = test.path("pid");
    let running = test.spawn();
    let begun = std::time::Instant::now();
    while !file.exists() && begun.elapsed().as_secs() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let pid = std::fs::read_to_string(file).expect("the program has begun");
    running.signal("INT");
    running.finish();
    let there = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", pid.trim()])
        .output()
        .expect("ps");
    let stat = String::from_utf8_lossy(&there.stdout).trim().to_owned();
    // Without an init process that reaps orphans, it may remain as a zombie.
    assert!(stat.is_empty() || stat.starts_with('Z'), "{stat}");
}

#[test]
fn fewer_errors_score_higher_but_only_exit_code_0_passes() {
    let errors = "errors = '(?m)^error'";
    let graded = |script: &str, keys: &str, score: f64| {
        let ran = sh(script, keys).code(3).run();
        let evaluation = evaluation(&ran);
        assert_eq!(evaluation["overall_score"], score, "{script}");
        assert_eq!(evaluation["satisfactory"], false, "{script}");
    };
    let wrote = |count: usize| {
        format!(
            "for i in {}; do echo error >&2; done; exit 1",
            "x ".repeat(count)
        )
    };
    graded(&wrote(1), errors, 0.5);
    graded(&wrote(3), errors, 0.25);
    graded("exit 1", errors, 0.0);
    graded("echo error; kill -SEGV $$", errors, 0.0);
    graded(&wrote(3), "", 0.0);
    let tests = r"tests = '(?P<passed>\d+) passed; (?P<failed>\d+) failed'";
    graded("echo '3 passed; 1 failed'; exit 1", tests, 0.75);
    graded("echo '4 passed; 0 failed'; exit 1", tests, 0.99);
    sh(
        "echo error; echo '0 passed; 9 failed'",
        &format!("{errors}\n{tests}"),
    )
    .run();
}

#[test]
fn long_output_is_summarized_for_the_reviser_and_recorded_in_full() {
    let script = "i=0; while [ $i -lt 39 ]; do i=$((i+1)); \
        printf 'error: unknown start of token: `\\n --> draft.txt:%s:1\\n  |\\n4 | ```\\n  | ^\\n\\n' $((i+3)); done; exit 1";
    let ran = sh(script, "").code(3).run();
    let evaluation = evaluation(&ran);
    assert_eq!(
        evaluation["issues"][0]["description"],
        "`sh` ended with exit code 1:\n    unknown start of token: `, line 4, and 38 more"
    );
    let kept = evaluation["criteria"][0]["value"].as_str().unwrap();
    assert_eq!(kept.matches("unknown start").count(), 39);
}
