//! Unreadable and unwritable paths. They must not lose the results of a run.

use crate::harness::{KEY, Test};
use crate::plan::{FIRST, SECOND, draft, usual_server, verdict, with_server};
use crate::support::server::{Protocol, Purpose, Reply, Server};

/// Checks a run that must be rejected because of a path.
fn refused(prepare: impl FnOnce(Test) -> Test, code: i32, said: &[&str]) {
    let server = Server::start();
    let mut test = prepare(draft(&server, Protocol::OpenAi))
        .code(code)
        .stdout("")
        .stderr_has("error: ");
    for part in said {
        test = test.stderr_has(part);
    }
    test.run();
    assert!(server.requests().is_empty(), "no request is made");
}

#[test]
fn an_output_file_that_cannot_be_written_is_found_before_any_work() {
    refused(
        |test| test.folder("folder").args(["-o", "folder"]),
        2,
        &["cannot write `folder`: it is a directory"],
    );
    refused(
        |test| test.args(["-o", "nowhere/out.md"]),
        2,
        &[
            "cannot write `nowhere/out.md`: no such folder: `nowhere`\n",
            "hint: create the folder",
        ],
    );
    refused(
        |test| test.args(["--report", "nowhere/report.md"]),
        2,
        &["cannot write `nowhere/report.md`"],
    );
    refused(
        |test| test.file("file", "x").args(["-o", "file/out.md"]),
        2,
        &["cannot write `file/out.md`: Not a directory"],
    );
}

#[cfg(unix)]
#[test]
fn a_file_or_folder_without_permission_is_found_before_any_work() {
    use std::os::unix::fs::PermissionsExt as _;
    for name in ["folder", "file"] {
        let prepare = |test: Test| {
            let test = test.ordinary_user().folder("folder").file("file", "old");
            let mode = std::fs::Permissions::from_mode(0o555);
            std::fs::set_permissions(test.path(name), mode).expect("permissions");
            test.args(["-o", if name == "folder" { "folder/x" } else { name }])
        };
        refused(prepare, 2, &["cannot write `", "`: Permission denied"]);
    }
}

#[test]
fn a_draft_and_a_report_need_different_destinations() {
    for (args, said) in [
        (
            &["-o", "out.md", "--report", "out.md"][..],
            "`--output` and `--report` name the same file: `out.md`",
        ),
        (
            &["-o", "folder/../out.md", "--report", "./out.md"],
            "`--output` and `--report` name the same file",
        ),
        (
            &["--report", "-"],
            "the draft and `--report -` both go to stdout",
        ),
        (
            &["--report", "-", "-o", "-"],
            "the draft and `--report -` both go to stdout",
        ),
        (
            &["--report", "-", "--format", "ndjson"],
            "`--format ndjson` and `--report -` both write to stdout",
        ),
        (
            &["--report", "report.pdf"],
            "cannot write `report.pdf`: unknown report format",
        ),
    ] {
        let server = Server::start();
        let test = draft(&server, Protocol::OpenAi).folder("folder").args(args);
        let ran = test.code(2).stderr_has(said).run();
        assert!(!ran.path("out.md").exists() && !ran.path("-").exists());
        assert!(server.requests().is_empty(), "no request is made");
    }
}

#[test]
fn a_dash_is_stdout_for_every_command() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .args(["-o", "-"])
        .stdout("The second draft.\n")
        .run();
    let export = ran.then(["history", "export", "-o", "-"]).run();
    assert!(export.stdout.contains("## Critique report"));
    let export = ran.then(["history", "export"]).run().stdout;
    assert!(export.contains("## Critique report"));
    ran.then(["memory", "add", "fact", "Water is wet."]).run();
    let memory = ran.then(["memory", "export", "-o", "-"]).run();
    assert!(memory.stdout.contains("Water is wet."));
    let init = ran.then(["criteria", "init", "-"]).run();
    assert!(init.stdout.contains("[[criteria]]"));
    assert!(!ran.path("-").exists());

    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .args(["-o", "out.md", "--report", "-"])
        .run();
    assert!(ran.stdout.contains("## Critique report"), "{}", ran.stdout);
    assert_eq!(ran.read("out.md"), "The second draft.\n");
}

/// A limit on file sizes simulates a full disk: files can be created, but nothing can be written.
#[cfg(target_os = "linux")]
fn without_space(test: Test, args: &str) -> Test {
    let program = env!("CARGO_BIN_EXE_reflect");
    let script = format!("trap '' XFSZ; ulimit -f 0; exec {program} {args}");
    test.program("sh").arg("-c").arg(script)
}

#[cfg(target_os = "linux")]
#[test]
fn a_draft_that_cannot_be_written_to_its_file_goes_to_stdout() {
    let server = usual_server();
    let test = with_server(&server, Protocol::OpenAi).file("out.md", "old\n");
    let args = "draft 'Write a line.' -c criteria.toml --no-log -o out.md";
    let ran = without_space(test, args)
        .reports()
        .code(1)
        .stdout("The second draft.\n")
        .stderr_has("error: cannot write `out.md`: File too large")
        .stderr_has("hint: wrote the output to stdout instead")
        .run();
    assert_eq!(ran.read("out.md"), "old\n");
    let left = std::fs::read_dir(ran.path("")).expect("a folder").count();
    assert_eq!(left, 2, "no temporary file is left");
}

#[cfg(target_os = "linux")]
#[test]
fn a_draft_that_cannot_be_printed_goes_to_a_new_file() {
    for format in ["text", "json"] {
        let server = usual_server();
        let test = draft(&server, Protocol::OpenAi).folder("tmp");
        let tmp = test.path("tmp");
        let ran = test
            .env("TMPDIR", &tmp)
            .args(["--no-log", "--format", format])
            .full_stdout()
            .code(1)
            .stderr_has("hint: wrote the output to `")
            .run();
        let named = ran.stderr.split('`').rev().nth(1).expect("a name");
        let saved = std::fs::read_to_string(named).expect("a file");
        assert!(saved.contains(SECOND), "{saved}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn rows_that_cannot_be_written_to_their_file_go_to_stdout() {
    let server = usual_server();
    let test = with_server(&server, Protocol::OpenAi)
        .file("tasks.jsonl", "{\"prompt\": \"Write a line.\"}\n");
    let args = "batch tasks.jsonl -c criteria.toml --no-log -j 1 -o out.jsonl";
    let ran = without_space(test, args)
        .reports()
        .code(1)
        .stderr_has("cannot write `out.jsonl`: File too large")
        .stderr_has("hint: wrote the output to stdout instead")
        .run();
    assert_eq!(ran.json()["output"], SECOND);
}

/// A run with an incomplete log cannot be shown again, so no message suggests it.
#[test]
fn an_incomplete_log_is_not_offered_for_later() {
    let server = Server::start();
    let test = draft(&server, Protocol::OpenAi);
    let log = test.path("state/reflect.db");
    server.on(Purpose::Write, |_| Reply::text(FIRST));
    server.on(Purpose::Judge, move |_| {
        let log = rusqlite::Connection::open(&log).expect("the log");
        log.execute_batch("DROP TABLE event").expect("it is there");
        Reply::text(&verdict(5).to_string())
    });
    test.env("REFLECT_STATE_DIR", "state")
        .stdout("The first draft.\n")
        .stderr_has("warning: the run continues without a record")
        .stderr_lacks("history show")
        .run();
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_stdout() {
    for format in ["text", "json", "markdown"] {
        let server = usual_server();
        let ran = draft(&server, Protocol::OpenAi)
            .args(["--format", format])
            .full_stdout()
            .code(1)
            .stderr_has("error: cannot write to stdout: No space left on device")
            .stderr_has("hint: the run is recorded: print the draft with `reflect history show ")
            .run();
        assert_eq!(ran.drafts(), [FIRST, SECOND]);
        ran.then(["history", "show", "last", "--best"])
            .stdout("The second draft.\n")
            .run();
    }
    // If the first event cannot be written, the run stops.
    let server = usual_server();
    draft(&server, Protocol::OpenAi)
        .args(["--format", "ndjson"])
        .full_stdout()
        .code(1)
        .stderr_has("No space left on device")
        .run();
    assert!(server.calls() <= 1, "{}", server.calls());
}

#[cfg(unix)]
#[test]
fn a_state_directory_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt as _;
    let read_only = |test: Test| {
        let test = test.ordinary_user().folder("state");
        let mode = std::fs::Permissions::from_mode(0o555);
        std::fs::set_permissions(test.path("state"), mode).expect("permissions");
        let state = test.path("state");
        test.env("REFLECT_STATE_DIR", state)
    };
    refused(
        read_only,
        1,
        &[
            "the run log `",
            "cannot write",
            "--no-log",
            "REFLECT_STATE_DIR",
        ],
    );
    let server = usual_server();
    read_only(draft(&server, Protocol::OpenAi))
        .arg("--no-log")
        .stdout("The second draft.\n")
        .run();
}

#[test]
fn a_state_directory_that_is_a_file() {
    refused(
        |test| {
            let file = test.path("file");
            test.file("file", "x").env("REFLECT_STATE_DIR", file)
        },
        1,
        &["the run log `", "--no-log"],
    );
}

#[test]
fn a_run_log_that_is_damaged_or_something_else() {
    let with = |content: &'static [u8]| {
        move |test: Test| {
            let folder = test.path("state");
            test.file("state/reflect.db", content)
                .env("REFLECT_STATE_DIR", folder)
        }
    };
    refused(
        with(b"not a database at all, but a text of some length"),
        1,
        &["state/reflect.db", "move it away", "--no-log"],
    );
    let mut damaged = b"SQLite format 3\0".to_vec();
    damaged.extend(std::iter::repeat_n(0xA5, 5000));
    refused(with(damaged.leak()), 1, &["state/reflect.db", "--no-log"]);
}

/// A log that is damaged later does not affect the run.
#[test]
fn a_log_that_is_damaged_later_is_reported_by_history_too() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .env("REFLECT_STATE_DIR", "state")
        .run();
    std::fs::write(ran.path("state/reflect.db"), vec![0x5A; 8192]).expect("a file");
    for args in [&["history", "list"][..], &["history", "show"]] {
        ran.then(args)
            .code(1)
            .stdout("")
            .stderr_has("state/reflect.db")
            .stderr_has("move it away")
            .run();
    }
}

#[test]
fn without_a_log_nothing_is_stored() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .arg("--no-log")
        .stdout("The second draft.\n")
        .stderr_lacks("history show")
        .run();
    ran.then(["history", "list"])
        .stdout("")
        .stderr_has("no runs yet")
        .run();
    ran.then(["history", "show"])
        .code(2)
        .stderr_has("no runs yet")
        .run();
}

#[test]
fn without_a_home_the_log_needs_a_place() {
    let server = usual_server();
    // The system may know the user's home even if the environment does not. A test must not use that.
    draft(&server, Protocol::OpenAi)
        .env_remove("HOME")
        .env("REFLECT_STATE_DIR", "state")
        .stdout("The second draft.\n")
        .run();
}

/// Concurrent runs share one log.
#[test]
fn many_runs_at_the_same_time() {
    let folder = Test::new();
    let state = folder.path("state");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let server = usual_server();
                draft(&server, Protocol::Ollama)
                    .env("REFLECT_STATE_DIR", &state)
                    .stdout("The second draft.\n")
                    .stderr_lacks("warning")
                    .run();
            });
        }
    });
    let ran = folder
        .env("REFLECT_STATE_DIR", &state)
        .args(["history", "list", "--json"])
        .run();
    let runs = ran.json();
    assert_eq!(runs.as_array().expect("runs").len(), 8);
    for run in runs.as_array().expect("runs") {
        assert_eq!(run["exit_code"], 0, "{run}");
    }
}

/// The log contains prompts and drafts, so only the user may read it.
#[cfg(unix)]
#[test]
fn the_log_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .env("REFLECT_STATE_DIR", "state")
        .run();
    let mode = |name: &str| {
        let metadata = std::fs::metadata(ran.path(name)).expect("it is there");
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("state"), 0o700);
    assert_eq!(mode("state/reflect.db"), 0o600);
}

/// The harness checks after every run that the key is only in the request. This test shows that the check
/// would find a leak.
#[test]
fn the_key_is_sent_but_stored_nowhere() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi).run();
    for chat in server.chats() {
        assert_eq!(
            chat.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
    }
    std::fs::write(ran.path("leaked"), format!("x{KEY}x")).expect("a file");
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ran.history()));
    assert!(checked.is_err(), "a leak is noticed");
}

#[test]
fn history_without_runs() {
    Test::new()
        .args(["history", "list", "--json"])
        .stdout("[]\n")
        .run();
    Test::new()
        .args(["history", "list"])
        .stdout("")
        .stderr("no runs yet\n")
        .run();
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi).run();
    ran.then(["history", "show", "nonsense"])
        .code(2)
        .stderr_has("no run `nonsense`")
        .run();
    ran.then(["history", "show", "last", "--draft", "7"])
        .code(2)
        .stderr_has("the run has no draft 7; it has 1, 2")
        .run();
    ran.then(["history", "show", "last", "--draft", "1"])
        .stdout("The first draft.\n")
        .run();
}
