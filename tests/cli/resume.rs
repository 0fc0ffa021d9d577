//! Resuming runs: a run stopped at any time continues with the same versions, and no call is paid for twice.

mod kinds;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Ran, Running, Test, each};
use crate::plan::{CRITERIA, with_server};
use crate::support::server::{Fault, Planned, Protocol, Purpose, Recorded, Reply, Server};

/// The calls of the whole run: three drafts with a verdict each.
const CALLS: usize = 6;
const LAST: &str = "The gamma draft, at last.\n";

/// Returns the model's reply to a request. It depends on nothing else, so the run may be stopped anywhere.
fn answer(request: &Recorded) -> Reply {
    let text = request.body["messages"].to_string();
    let judged = |step: u8| {
        json!({"scores": {"clear": {"reason": "As it reads.", "score": step}}, "confidence": 0.8,
        "issues": if step < 4 {
            json!([{"type": "missing", "severity": "major", "criterion": "clear",
                "description": format!("It is only step {step}.")}])
        } else {
            json!([])
        }})
        .to_string()
    };
    let has = |word: &str| text.contains(&format!("The {word} draft"));
    let said = match (request.purpose(), has("beta"), has("alpha")) {
        (Purpose::Write, true, _) => "The gamma draft, at last.".to_owned(),
        (Purpose::Write, false, true) => "The beta draft is better.".to_owned(),
        (Purpose::Write, ..) => "The alpha draft.".to_owned(),
        (Purpose::Judge, true, _) => judged(3),
        (Purpose::Judge, false, true) => judged(2),
        (Purpose::Judge, ..) => judged(5),
    };
    let (first, second) = said.split_at(said.len() / 2);
    Reply::pieces(&[first, second]).reasoning("Let me see.")
}

/// Starts a server whose replies depend on the number of the call (from 1) and the request.
fn serving(
    special: impl Fn(usize) -> Option<Planned> + Send + Sync + 'static,
    wait: Duration,
) -> Server {
    let server = Server::start();
    let (special, calls) = (Arc::new(special), Arc::new(AtomicUsize::new(0)));
    for purpose in [Purpose::Write, Purpose::Judge] {
        let (special, calls) = (Arc::clone(&special), Arc::clone(&calls));
        server.on(purpose, move |request| -> Planned {
            let call = calls.fetch_add(1, Ordering::SeqCst) + 1;
            special(call).unwrap_or_else(|| answer(request).first_wait(wait).wait(wait).into())
        });
    }
    server
}

/// Starts a server that never completes its reply to this call.
fn stuck_at(call: usize) -> Server {
    let stuck = move |number| {
        let reply = || Reply::pieces(&["The ", "rest"]).wait(Duration::from_secs(25));
        (number == call).then(|| reply().into())
    };
    serving(stuck, Duration::ZERO)
}

fn quick() -> Server {
    serving(|_| None, Duration::ZERO)
}

const FLAGS: [&str; 8] = [
    "-c",
    "criteria.toml",
    "-n",
    "5",
    "--strategy",
    "full_rewrite",
    "--seed",
    "5",
];

fn draft(server: &Server) -> Test {
    with_server(server, Protocol::OpenAi)
        .args(["draft", "Write a line."])
        .args(FLAGS)
}

/// With flags that override the usual ones.
fn draft_with(server: &Server, flags: &[&str]) -> Test {
    with_server(server, Protocol::OpenAi)
        .args(["draft", "Write a line.", "-c", "criteria.toml"])
        .args(["--strategy", "full_rewrite"])
        .args(flags)
}

fn resume(ran: &Ran) -> Test {
    ran.then(["history", "resume", "last"])
}

/// Waits until the server has had this many calls, and then for this time.
fn until_call_and(server: &Server, call: usize, wait: Duration) {
    let start = Instant::now();
    while server.calls() < call {
        assert!(start.elapsed() < Duration::from_secs(20), "call {call}");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(wait);
}

fn until_call(server: &Server, call: usize) {
    until_call_and(server, call, Duration::from_millis(30));
}

/// Returns what must be the same, however often a run was stopped.
fn essence(history: &Value) -> Value {
    let mut versions = history["history"]["versions"].clone();
    for version in versions.as_array_mut().expect("versions") {
        let version = version.as_object_mut().expect("an object");
        version.remove("timestamp");
        version.remove("duration_ms");
    }
    json!([
        versions,
        history["output"],
        history["convergence_reason"],
        history["token_usage"]
    ])
}

/// Returns the result of an uninterrupted run.
fn uninterrupted() -> Value {
    let server = quick();
    let ran = draft(&server).stdout(LAST).run();
    assert_eq!(server.calls(), CALLS);
    essence(&ran.history())
}

/// Returns the events of the last run in the log.
fn events(ran: &Ran) -> Vec<Value> {
    ran.then(["history", "show", "last", "--format", "ndjson"])
        .run()
        .lines()
}

fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["event"] == kind).count()
}

fn answered(events: &[Value]) -> usize {
    let is_answered = |event: &&Value| event["event"] == "call" && event["error"].is_null();
    events.iter().filter(is_answered).count()
}

#[test]
fn a_run_killed_in_any_call_is_resumed_from_there() {
    let expected = uninterrupted();
    let calls: Vec<usize> = (1..=CALLS).collect();
    each(&calls, ToString::to_string, |&call| {
        let server = stuck_at(call);
        let running = draft(&server).spawn();
        until_call(&server, call);
        let killed = running.kill();
        assert_eq!(answered(&events(&killed)), call - 1);
        let iteration = call.div_ceil(2);
        let ran = resume(&killed)
            .stdout(LAST)
            .stderr_has(&format!("at draft {iteration}"))
            .stderr_has("from the record of the run")
            .run();
        assert_eq!(server.calls() - call, CALLS - (call - 1), "no call twice");
        assert_eq!(essence(&ran.history()), expected);
        let events = events(&ran);
        for kind in ["run_start", "resumed", "run_end"] {
            assert_eq!(count(&events, kind), 1, "{kind}");
        }
        assert_eq!(answered(&events), CALLS);
        // Earlier output is not repeated.
        if call > 2 {
            assert!(!ran.stderr.contains("draft 1: writing"), "{}", ran.stderr);
        }
        resume(&ran)
            .code(2)
            .stderr_has("has ended: the criteria are met")
            .run();
    });
}

#[test]
fn a_run_killed_at_a_random_time_is_resumed_from_there() {
    let expected = uninterrupted();
    let wait = Duration::from_millis(4);
    let mut random = fastrand::Rng::with_seed(6);
    // The number of calls, and the time after them: independent of the speed of the machine.
    let moments: Vec<(usize, Duration)> = (0..100)
        .map(|_| {
            let call = random.usize(0..=CALLS);
            (call, wait.mul_f64(4.0 * random.f64()))
        })
        .collect();
    let (resumed, ended) = (AtomicUsize::new(0), AtomicUsize::new(0));
    each(
        &moments,
        |moment| format!("{moment:?}"),
        |(call, moment)| {
            let server = serving(|_| None, wait);
            let running = draft(&server).spawn();
            until_call_and(&server, *call, *moment);
            let killed = running.kill();
            let list = killed.then(["history", "list", "--json"]).run().json();
            let Some(run) = list.get(0) else {
                // It was killed before the run started.
                resume(&killed).code(2).stderr_has("no run `").run();
                return;
            };
            if !run["exit_code"].is_null() {
                ended.fetch_add(1, Ordering::Relaxed);
                assert_eq!(essence(&killed.history()), expected);
                return;
            }
            let (before, made) = (answered(&events(&killed)), server.calls());
            let ran = resume(&killed).stdout(LAST).run();
            assert_eq!(server.calls() - made, CALLS - before, "no call twice");
            assert_eq!(essence(&ran.history()), expected);
            assert_eq!(count(&events(&ran), "run_end"), 1);
            resumed.fetch_add(1, Ordering::Relaxed);
        },
    );
    assert!(
        resumed.into_inner() > 50,
        "hardly any run was killed while running"
    );
}

#[test]
fn an_interrupted_run_shows_how_to_resume_it() {
    let expected = uninterrupted();
    let server = stuck_at(4);
    let running = draft(&server)
        .code(130)
        .stdout("")
        .stderr_has("resume it with `reflect history resume ")
        .spawn();
    until_call(&server, 4);
    running.signal("INT");
    let stopped = running.finish();
    assert_eq!(count(&events(&stopped), "run_end"), 1);
    resume(&stopped)
        .args(["-n", "1"])
        .code(2)
        .stderr_has("`--max-iterations` is below what is already used")
        .run();
    // The suggested command, from another folder.
    let id = stopped.history()["run_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let ran = stopped
        .then([
            "history",
            "resume",
            &id[id.len() - 8..],
            "--format",
            "ndjson",
        ])
        .folder("elsewhere")
        .run();
    let lines = ran.lines();
    assert_eq!(lines[0]["event"], "resumed");
    assert_eq!(lines[0]["iteration"], 2);
    assert_eq!(count(&lines, "run_start"), 0, "it is not repeated");
    assert_eq!(lines.last().expect("a line")["event"], "run_end");
    assert_eq!(essence(&ran.history()), expected);
    assert_eq!(server.calls() - 4, CALLS - 3);
    let events = events(&ran);
    assert_eq!(count(&events, "run_end"), 1);
    let stops = events.iter().filter(|event| event["choice"] == "stop");
    assert_eq!(stops.count(), 1, "the decision to stop was void");
}

#[test]
fn a_run_stopped_by_a_provider_is_resumed() {
    let expected = uninterrupted();
    for call in [1, 3, 6] {
        let server = serving(
            move |number| (number == call).then(|| Fault::status(401).into()),
            Duration::ZERO,
        );
        let stopped = draft(&server)
            .code(4)
            .stderr_has("resume it with `reflect history resume ")
            .run();
        let ran = resume(&stopped).stdout(LAST).run();
        assert_eq!(server.calls(), CALLS + 1, "one failed");
        let history = ran.history();
        assert_eq!(essence(&history), expected, "call {call}");
        assert_eq!(history["total_llm_calls"], CALLS + 1);
    }
}

#[test]
fn a_run_without_a_usable_draft_requests_one_again() {
    type Case = (&'static str, fn() -> Reply, u8);
    let cases: [Case; 3] = [
        ("empty", || Reply::text(""), 4),
        (
            "refused",
            || Reply::text("I'm sorry, but I can't help with that."),
            3,
        ),
        ("cut off", || Reply::cut_by_length("The storm came at"), 3),
    ];
    each(
        &cases,
        |(name, ..)| (*name).to_owned(),
        |(_, failed, code)| {
            let works = Arc::new(AtomicUsize::new(0));
            let server = Server::start();
            let now = Arc::clone(&works);
            let said = *failed;
            server.on(Purpose::Write, move |request| -> Planned {
                match now.load(Ordering::SeqCst) {
                    0 => said().into(),
                    _ => answer(request).into(),
                }
            });
            server.on(Purpose::Judge, |request| -> Planned {
                answer(request).into()
            });
            let args = ["--max-tokens", "20", "-n", "2"];
            let stopped = draft_with(&server, &args)
                .code(i32::from(*code))
                .stderr_has("resume it with `reflect history resume ")
                .run();
            // It fails again, in new calls.
            let before = server.calls();
            let again = resume(&stopped).code(i32::from(*code)).run();
            assert!(server.calls() > before, "new calls");
            works.store(1, Ordering::SeqCst);
            let ran = resume(&again)
                .args(["--max-tokens", "500", "-n", "5"])
                .stdout(LAST)
                .run();
            let last = server
                .chats()
                .into_iter()
                .rfind(|it| it.purpose() == Purpose::Write);
            assert_eq!(last.expect("a call").body["max_tokens"], 500);
            let outputs = ran.drafts();
            assert_eq!(outputs[0], "The alpha draft.");
        },
    );
}

#[test]
fn a_run_stopped_by_a_limit_is_resumed_with_a_higher_one() {
    let expected = uninterrupted();
    for (flag, little, more, code, reason) in [
        ("--max-total-tokens", "300", "100000", 5, "the token limit"),
        ("--max-iterations", "2", "5", 3, "the iteration limit"),
    ] {
        let server = quick();
        let stopped = draft(&server);
        let stopped = match flag {
            "--max-iterations" => with_server(&server, Protocol::OpenAi)
                .args([
                    "draft",
                    "Write a line.",
                    "-c",
                    "criteria.toml",
                    "-n",
                    little,
                ])
                .args(&FLAGS[4..]),
            _ => stopped.args([flag, little]),
        };
        let stopped = stopped.code(code).run();
        resume(&stopped)
            .code(2)
            .stderr_has(&format!("has ended: {reason}"))
            .stderr_has(&format!("raise the limit with `{flag}`"))
            .run();
        resume(&stopped)
            .args([flag, little])
            .code(2)
            .stderr_has(": the run ")
            .run();
        let ran = resume(&stopped).args([flag, more]).stdout(LAST).run();
        assert_eq!(essence(&ran.history()), expected, "{flag}");
        assert_eq!(server.calls(), CALLS);
    }
}

/// The result of a command is not requested again, but permission to run it is.
#[test]
fn permission_to_run_programs_is_required_again() {
    let criteria = format!(
        "{CRITERIA}\n[[criteria]]\nname = 'there'\nevaluator = 'command'\ncommand = ['test', '-e', '[OK]']\n"
    );
    let server = stuck_at(3);
    let test = draft(&server).file("ok", "");
    let criteria = criteria.replace("[OK]", test.path("ok").to_str().expect("a path"));
    let running = test
        .file("criteria.toml", criteria)
        .arg("--allow-exec")
        .spawn();
    until_call(&server, 3);
    let killed = running.kill();
    std::fs::remove_file(killed.path("ok")).expect("a file");
    resume(&killed)
        .code(2)
        .stderr_has("which needs your permission")
        .stderr_has("--allow-exec")
        .run();
    let ran = resume(&killed).arg("--allow-exec").code(3).run();
    let history = ran.history();
    let there: Vec<&Value> = history["history"]["versions"]
        .as_array()
        .expect("versions")
        .iter()
        .map(|version| &version["evaluation"]["criteria_scores"]["there"])
        .collect();
    assert_eq!(there[0], 1.0, "as it was recorded");
    assert!(there[1..].iter().all(|score| **score == 0.0), "{there:?}");
}

#[test]
fn only_one_process_can_work_on_a_run() {
    let server = serving(
        |call| {
            let slow = || Reply::text("The alpha draft.").first_wait(Duration::from_secs(25));
            (call == 3 || call == 4).then(|| slow().into())
        },
        Duration::ZERO,
    );
    let busy = |ran: &Ran| {
        resume(ran)
            .code(2)
            .stderr_has("another process is working on the run")
            .run();
    };
    // A world to observe the run from.
    let ran = with_server(&server, Protocol::OpenAi)
        .args(["criteria", "list"])
        .run();
    let start = |args: &[&str]| -> Running { ran.then(args).spawn() };
    let first = start(&[&["draft", "Write a line."], &FLAGS[..]].concat());
    until_call(&server, 3);
    busy(&ran);
    let killed = first.kill();
    let second = start(&["history", "resume", "last"]);
    until_call(&server, 4);
    busy(&ran);
    second.kill();
    let ended = resume(&killed).stdout(LAST).run();
    assert_eq!(server.calls(), 2 + 2 + (CALLS - 2));
    assert_eq!(count(&events(&ended), "run_end"), 1);
    let left = std::fs::read_dir(ended.path("../home/.local/state/reflect/reflect.running"));
    assert_eq!(left.expect("a folder").count(), 0, "no file is left");
}

#[test]
fn concurrent_runs_do_not_interfere() {
    let server = serving(|_| None, Duration::from_millis(3));
    let ran = with_server(&server, Protocol::OpenAi)
        .args(["criteria", "list"])
        .run();
    let prompts: Vec<String> = (0..8)
        .map(|number| format!("Write line {number}."))
        .collect();
    let running: Vec<Running> = prompts
        .iter()
        .map(|prompt| {
            let args = [&["draft", prompt.as_str()], &FLAGS[..]].concat();
            ran.then(args).stdout(LAST).stderr_lacks("warning").spawn()
        })
        .collect();
    for running in running {
        running.finish();
    }
    let list = ran.then(["history", "list", "--json"]).run().json();
    assert_eq!(list.as_array().expect("a list").len(), prompts.len());
    for run in list.as_array().expect("a list") {
        let id = run["run_id"].as_str().expect("an id");
        let show = ran.then(["history", "show", id, "--format", "ndjson"]);
        let events = show.run().lines();
        assert_eq!(answered(&events), CALLS);
        assert_eq!(count(&events, "draft"), 3);
    }
}

#[test]
fn the_revised_file_may_be_deleted_before_resuming() {
    for errors in [false, true] {
        let server = stuck_at(if errors { 1 } else { 2 });
        let test = with_server(&server, Protocol::Ollama)
            .file("text.md", "The alpha draft.")
            .file("errors.txt", "It is too short.\n")
            .args(["revise", "text.md"]);
        let test = if errors {
            // A single revision has no number of iterations.
            test.args(["--errors", "errors.txt"])
                .args(&FLAGS[..2])
                .args(&FLAGS[4..])
        } else {
            test.args(FLAGS)
        };
        let running = test.spawn();
        until_call(&server, if errors { 1 } else { 2 });
        let killed = running.kill();
        for file in ["text.md", "errors.txt", "criteria.toml"] {
            std::fs::remove_file(killed.path(file)).expect("a file");
        }
        let expected = if errors {
            "The beta draft is better.\n"
        } else {
            LAST
        };
        let ran = resume(&killed).stdout(expected).run();
        assert_eq!(ran.drafts()[0], "The alpha draft.");
    }
}

#[test]
fn recorded_evidence_is_used_and_changed_files_are_named() {
    let server = stuck_at(3);
    let running = draft(&server)
        .file(
            "notes/line.md",
            "# Line\n\nA line is written from left to right.\n",
        )
        .args(["--evidence", "notes"])
        .spawn();
    until_call(&server, 3);
    let killed = running.kill();
    let unchanged = killed.read("notes/line.md");
    std::fs::write(killed.path("notes/line.md"), "# Line\n\nA line is long.\n").expect("a file");
    let folder = killed.path("notes");
    let away = killed.path("away");
    std::fs::rename(&folder, &away).expect("a folder");
    resume(&killed)
        .code(2)
        .stderr_has("notes")
        .stderr_has("restore it")
        .run();
    std::fs::rename(&away, &folder).expect("a folder");
    let ran = resume(&killed)
        .stdout(LAST)
        .stderr_has("have changed since the run started")
        .run();
    assert_eq!(server.calls() - 3, CALLS - 2);
    let shown = server.chats()[3].body["messages"].to_string();
    assert!(shown.contains("from left to right"), "{shown}");
    let evidence = ran.history()["evidence"].to_string();
    assert!(evidence.contains(unchanged.lines().last().expect("a line")));
}

/// A script continues where it stopped.
#[test]
fn a_scripted_run_continues_in_its_script() {
    let reply = |text: &str, more: &str| format!("[[reply]]\ntext = '{text}'\n{more}\n");
    let script = [
        reply("one two three four five", ""),
        reply("one two three four", "error = { class = 'auth' }"),
        reply("one two three", ""),
    ];
    let criteria = "[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 3\n";
    let stopped = Test::new()
        .file("script.toml", script.concat())
        .file("criteria.toml", criteria)
        .args(["draft", "Write.", "--provider", "scripted:script.toml"])
        .args(["-c", "criteria.toml", "--no-early-stop"])
        .code(4)
        .run();
    // A failed call has no recorded reply, so the script fails there again.
    let again = resume(&stopped).code(4).run();
    let script = stopped
        .read("script.toml")
        .replace("error = { class = 'auth' }", "");
    std::fs::write(again.path("script.toml"), script).expect("a file");
    let ran = resume(&again).run();
    assert_eq!(
        ran.drafts(),
        [
            "one two three four five",
            "one two three four",
            "one two three"
        ]
    );
}

#[test]
fn an_impossible_resume_says_why() {
    let server = quick();
    let judged = with_server(&server, Protocol::OpenAi)
        .file("text.md", "The gamma draft.")
        .args(["evaluate", "text.md", "-c", "criteria.toml"])
        .run();
    resume(&judged).code(2).stderr_has("is an evaluation").run();
    judged
        .then(["history", "resume", "ffff0000"])
        .code(2)
        .stderr_has("no run `ffff0000`")
        .run();
    Test::new()
        .args(["history", "resume"])
        .code(2)
        .stderr_has("no run `last`")
        .run();
    resume(&judged)
        .args(["--format", "ndjson"])
        .code(2)
        .run()
        .lines()
        .iter()
        .for_each(|line| assert_eq!(line["event"], "run_end"));
    let none = draft(&server).arg("--no-log").stdout(LAST).run();
    resume(&none).code(2).stderr_has("no run `").run();
}

#[test]
fn verbose_output_describes_each_call() {
    let server = quick();
    draft(&server)
        .arg("-v")
        .stdout(LAST)
        .stderr_has("draft 1: openai:test took ")
        .stderr_has("120 tokens (100 of them the prompt)")
        .stderr_lacks("[user]")
        .stderr_lacks("Let me see.")
        .run();
    draft(&server)
        .arg("-vv")
        .stdout(LAST)
        .stderr_has("request to openai:test to write at http://127.0.0.1:")
        .stderr_has("seed 5")
        .stderr_has("[user]\n> ")
        .stderr_has("Write a line.")
        .stderr_has("[answer]\n< The alpha draft.")
        .stderr_has("as JSON (`")
        .run();
    draft(&server)
        .arg("--show-reasoning")
        .stdout(LAST)
        .stderr_has("~ Let me see.")
        .stderr_lacks("[user]")
        .run();
    draft(&server).args(["-q", "-v"]).code(2).run();
}
