//! Signals: the first ends the run and keeps its results, the second ends the process.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::{Running, Test};
use crate::plan::{BOTH, FIRST, answering, draft, verdict};
use crate::support::server::{Protocol, Reply, Server};

/// Starts a server that is slow in the third call, the revision.
fn slow() -> Server {
    answering([
        Reply::text(FIRST),
        Reply::text(&verdict(2).to_string()),
        Reply::pieces(&["word "; 600]).wait(Duration::from_millis(50)),
    ])
}

/// Waits until the run is in its slow call.
fn until_slow(server: &Server) {
    let start = Instant::now();
    while server.calls() < 3 {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "the third call was not made"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
}

fn promptly(running: Running) -> crate::harness::Ran {
    let start = Instant::now();
    let ran = running.finish();
    assert!(
        start.elapsed() < Duration::from_secs(3),
        "{:?}",
        start.elapsed()
    );
    ran
}

#[test]
fn a_signal_ends_the_run_and_nothing_is_lost() {
    for protocol in BOTH {
        for signal in ["INT", "TERM"] {
            let server = slow();
            let running = draft(&server, protocol)
                .code(130)
                .stdout("")
                .stderr_has("interrupted; the draft was not printed; the run is recorded: print the draft with `reflect history show ")
                .spawn();
            until_slow(&server);
            running.signal(signal);
            let ran = promptly(running);
            let history = ran.history();
            assert_eq!(history["convergence_reason"], "interrupted");
            assert_eq!(history["output"], FIRST);
            ran.then(["history", "show", "last", "--best"])
                .stdout("The first draft.\n")
                .run();
        }
    }
}

#[test]
fn the_second_signal_exits_immediately() {
    let server = slow();
    let running = draft(&server, Protocol::Ollama)
        .code(130)
        .stdout("")
        .spawn();
    until_slow(&server);
    running.signal("INT");
    // The run may have ended already; then there is nothing to kill.
    running.try_signal("INT");
    promptly(running);
}

#[test]
fn a_signal_before_the_first_answer() {
    let server = answering([Reply::text(FIRST).first_wait(Duration::from_secs(20))]);
    let running = draft(&server, Protocol::OpenAi)
        .code(130)
        .stdout("")
        .stderr_has("interrupted")
        .spawn();
    while server.calls() < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.signal("INT");
    let ran = promptly(running);
    assert!(ran.drafts().is_empty());
}

#[test]
fn the_wait_before_a_retry_can_be_interrupted() {
    let server = Server::start();
    server.fault(crate::support::server::Fault::rate_limit(
        "Retry-After",
        "30",
    ));
    let running = draft(&server, Protocol::OpenAi)
        .code(130)
        .stdout("")
        .spawn();
    while server.calls() < 1 {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(100));
    running.signal("INT");
    promptly(running);
}

#[test]
fn an_interrupted_run_in_json_and_ndjson() {
    let server = slow();
    let running = draft(&server, Protocol::Ollama)
        .args(["--format", "ndjson"])
        .code(130)
        .spawn();
    until_slow(&server);
    running.signal("INT");
    let lines = promptly(running).lines();
    let ends = lines
        .iter()
        .filter(|line| line["event"] == "run_end")
        .count();
    assert_eq!(ends, 1);
    let end = lines.last().expect("a line");
    assert_eq!(end["event"], "run_end");
    assert_eq!(end["exit_code"], 130);
    assert_eq!(end["convergence_reason"], "interrupted");

    let server = slow();
    let running = draft(&server, Protocol::Ollama)
        .args(["--format", "json"])
        .code(130)
        .spawn();
    until_slow(&server);
    running.signal("INT");
    let result = promptly(running).json();
    assert_eq!(result["convergence_reason"], "interrupted");
    assert_eq!(result["final_output"], FIRST);
    assert_ne!(result["run_id"], Value::Null);
}

/// The file that would be replaced is unchanged.
#[test]
fn an_interrupted_run_does_not_change_the_output_file() {
    let server = slow();
    let running = draft(&server, Protocol::Ollama)
        .file("out.md", "as it was\n")
        .args(["-o", "out.md"])
        .code(130)
        .stdout("")
        .spawn();
    until_slow(&server);
    running.signal("TERM");
    let ran = promptly(running);
    assert_eq!(ran.read("out.md"), "as it was\n");
    let left = std::fs::read_dir(ran.path("")).expect("a folder").count();
    assert_eq!(left, 2, "no temporary file is left behind");
}

/// Whether a process runs; a zombie does not count.
#[cfg(target_os = "linux")]
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()))
        .ok()
        .and_then(|stat| stat.rsplit_once(')').map(|(_, rest)| rest.to_owned()))
        .is_some_and(|rest| !rest.trim_start().starts_with(['Z', 'X']))
}

#[cfg(target_os = "linux")]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A command, its children, a process that has left its session, and the folder with the draft.
#[cfg(target_os = "linux")]
#[test]
fn no_started_process_outlives_the_program() {
    for signal in ["KILL", "HUP", "QUIT", "TERM"] {
        let test = Test::new().file("text.txt", "a draft").folder("seen");
        let seen = test.path("seen");
        let script = "pwd > $0/folder; echo $$ > $0/shell; sleep 600 & echo $! > $0/child; \
                      setsid sleep 600 & echo $! > $0/daemon; wait";
        let criteria = format!(
            "[[criteria]]\nname = 'x'\nevaluator = 'command'\ncommand = ['sh', '-c', '{script}', '{}']\n",
            seen.display()
        );
        let running = test
            .file("c.toml", criteria)
            .args(["evaluate", "text.txt", "-c", "c.toml", "--allow-exec"])
            .code(130)
            .spawn();
        let read = |name: &str| std::fs::read_to_string(seen.join(name)).unwrap_or_default();
        until("the command does not start", || {
            read("daemon").ends_with('\n')
        });
        let names = ["shell", "child", "daemon"];
        assert!(names.iter().all(|name| runs(&read(name))));
        let folder = read("folder");
        let folder = std::path::Path::new(folder.trim_end());
        assert!(folder.is_dir());
        // The folder with the process ids exists as long as the run's result.
        let _ran = if signal == "KILL" {
            running.kill()
        } else {
            running.signal(signal);
            promptly(running)
        };
        for name in names {
            until(&format!("{name} still runs after {signal}"), || {
                !runs(&read(name))
            });
        }
        until(
            &format!("{} is left after {signal}", folder.display()),
            || !folder.exists(),
        );
    }
}

/// Started like by `nohup`.
#[cfg(target_os = "linux")]
#[test]
fn a_hangup_that_is_ignored_from_the_start_stays_ignored() {
    let server = answering([
        Reply::text(FIRST),
        Reply::text(&verdict(5).to_string()).first_wait(Duration::from_millis(500)),
    ]);
    let running = draft(&server, Protocol::Ollama)
        .through_shell("trap '' HUP")
        .spawn();
    until("the second call does not come", || server.calls() == 2);
    running.signal("HUP");
    running.finish();
}
