//! Places that cannot be written to or read from. What a run has cost is not lost by them.

use crate::harness::{KEY, Test};
use crate::plan::{FIRST, SECOND, draft, usual_server};
use crate::support::server::{Protocol, Server};

/// A run that must not begin, for want of a place.
fn refused(prepare: impl FnOnce(Test) -> Test, code: i32, said: &[&str]) {
    let server = Server::start();
    let mut test = prepare(draft(&server, Protocol::OpenAi))
        .code(code)
        .stdout("")
        .stderr_has("reflect: error: ");
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
        1,
        &["cannot write `folder`: it is a directory"],
    );
    refused(
        |test| test.args(["-o", "nowhere/out.md"]),
        1,
        &["cannot write `nowhere/out.md`", "o such file or directory"],
    );
    refused(
        |test| test.args(["--report", "nowhere/report.md"]),
        1,
        &["cannot write `nowhere/report.md`"],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output() {
    for format in ["text", "json", "markdown"] {
        let server = usual_server();
        let ran = draft(&server, Protocol::OpenAi)
            .args(["--format", format])
            .full_stdout()
            .code(1)
            .stderr_has("reflect: error: cannot write to standard output: No space left on device")
            .stderr_has("hint: nothing is lost: `reflect history show ")
            .run();
        assert_eq!(ran.drafts(), [FIRST, SECOND]);
        ran.then(["history", "show", "last", "--best"])
            .stdout("The second draft.\n")
            .run();
    }
    // Events cannot be written from the first on: there is no reason to go on spending.
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
            "cannot be written",
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
fn a_state_directory_that_is_none() {
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

/// A log that breaks while the run goes on costs the log, not the run.
#[test]
fn a_log_that_is_damaged_later_is_said_by_history_too() {
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
fn without_a_log_nothing_is_kept() {
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi)
        .arg("--no-log")
        .stdout("The second draft.\n")
        .stderr_lacks("history show")
        .run();
    ran.then(["history", "list"])
        .stdout("")
        .stderr_has("there are no runs yet")
        .run();
    ran.then(["history", "show"])
        .code(2)
        .stderr_has("there are no runs yet")
        .run();
}

#[test]
fn without_a_home_the_log_needs_a_place() {
    let server = usual_server();
    // The system may know a home of the user where the environment does not: then that is used, which
    // a test must not do.
    draft(&server, Protocol::OpenAi)
        .env_remove("HOME")
        .env("REFLECT_STATE_DIR", "state")
        .stdout("The second draft.\n")
        .run();
}

/// Runs side by side share one log.
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

/// The log holds prompts and drafts: it is for the user alone.
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

/// The key is in the request, and nowhere else: that is checked after every run. This one makes sure that
/// the check would find it.
#[test]
fn the_key_is_sent_and_kept_nowhere() {
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
        .stderr("there are no runs yet\n")
        .run();
    let server = usual_server();
    let ran = draft(&server, Protocol::OpenAi).run();
    ran.then(["history", "show", "nonsense"])
        .code(2)
        .stderr_has("there is no run `nonsense`")
        .run();
    ran.then(["history", "show", "last", "--draft", "7"])
        .code(2)
        .stderr_has("the run has no draft 7; it has 1, 2")
        .run();
    ran.then(["history", "show", "last", "--draft", "1"])
        .stdout("The first draft.\n")
        .run();
}
