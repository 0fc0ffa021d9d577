//! `reflect bench`: compares the loop with simpler methods, on the same tasks at the same cost.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::harness::{Ran, Test};
use crate::plan::{CRITERIA, verdict, with_server};
use crate::support::server::{Fault, Planned, Protocol, Purpose, Recorded, Reply, Server};

const SHORT: &str = "name = 'short'\nthreshold = 1.0\n[[criteria]]\nname = 'end'\nevaluator = 'contains'\n\
                     all = ['END']\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 20\n";

fn tasks(number: usize) -> String {
    (0..number)
        .map(|n| {
            json!({"id": format!("t{n}"), "prompt": format!("Name fruit {n}.")}).to_string() + "\n"
        })
        .collect()
}

/// Starts a model that succeeds only when it is told what is missing. A call costs 50 prompt and 10 output
/// tokens.
fn teachable() -> Server {
    answering(|request| {
        let told = request.prompt().contains("END");
        Reply::text(if told { "An apple. END" } else { "An apple." }).usage(50, 10, Some(20))
    })
}

fn answering(answer: impl Fn(&Recorded) -> Reply + Send + Sync + 'static) -> Server {
    let server = Server::start();
    server.on(Purpose::Write, answer);
    server
}

fn world(server: &Server, number: usize) -> Test {
    with_server(server, Protocol::OpenAi)
        .file("tasks.jsonl", tasks(number))
        .file("short.toml", SHORT)
}

const BENCH: [&str; 8] = [
    "bench",
    "tasks.jsonl",
    "-c",
    "short.toml",
    "--seeds",
    "1",
    "-o",
    "rows.jsonl",
];

/// Returns the rows by id.
#[track_caller]
fn rows(ran: &Ran) -> BTreeMap<String, Value> {
    let mut rows = BTreeMap::new();
    for line in ran.read("rows.jsonl").lines() {
        let row: Value = serde_json::from_str(line).expect("a row");
        let id = row["id"].as_str().expect("an id").to_owned();
        assert!(rows.insert(id.clone(), row).is_none(), "{id} has two rows");
    }
    rows
}

#[test]
fn arms_are_compared_on_the_same_tasks() {
    let server = teachable();
    let ran = world(&server, 8).args(BENCH).run();
    let rows = rows(&ran);
    assert_eq!(rows.len(), 32);
    let row = &rows["t3/reflect/1"];
    assert_eq!(
        (&row["task"], &row["arm"], &row["seed"]),
        (&json!("t3"), &json!("reflect"), &json!(1))
    );
    assert_eq!((&row["met"], &row["status"]), (&json!(true), &json!("met")));
    assert_eq!(row["checks"], json!({"end": true, "short": true}));
    let single = &rows["t3/single/1"];
    assert_eq!(single["output"], "An apple.");
    assert_eq!(single["checks"], json!({"end": false, "short": true}));
    // 10 tokens are written, and 30 of the 50 prompt tokens are not cached.
    assert_eq!(
        (&single["cost_tokens"], &single["total_tokens"]),
        (&json!(40), &json!(60))
    );
    // The plain prompt is sent unchanged, without a frame.
    let plain = server.requests().into_iter().find(|request| {
        request.body["messages"] == json!([{"role": "user", "content": "Name fruit 3."}])
    });
    assert!(plain.is_some());
    let said = &ran.stdout;
    let verdict = said.lines().next().expect("a sentence");
    assert!(verdict.starts_with("reflect met 8 of 8, "), "{verdict}");
    assert!(verdict.contains("× a single draft"), "{verdict}");
    assert!(said.contains("single       0/8 0 %"), "{said}");
}

#[test]
fn best_of_n_has_the_budget_of_reflect_and_stops_at_a_pass() {
    // The loop needs two calls, and the plain prompt never succeeds.
    let server = answering(|request| {
        let framed = request.body["messages"].to_string().contains("contain");
        let text = if framed { "END" } else { "An apple." };
        Reply::text(text).usage(50, 10, None)
    });
    let ran = world(&server, 2)
        .args(BENCH)
        .args(["--arms", "reflect,best-of-n"])
        .run();
    let table = rows(&ran);
    let calls = |id: &str| table[id]["calls"].as_u64().expect("calls");
    assert_eq!(calls("t0/reflect/1"), calls("t0/best-of-n/1"));
    assert_eq!(table["t0/best-of-n/1"]["met"], false);
    // A budget of four calls; the third sample passes.
    let asked = AtomicUsize::new(0);
    let server = answering(move |_| {
        let third = asked.fetch_add(1, Ordering::Relaxed) == 2;
        Reply::text(if third { "END" } else { "An apple." }).usage(50, 10, None)
    });
    let ran = world(&server, 1)
        .args(BENCH)
        .args(["--arms", "best-of-n", "--budget", "240"])
        .run();
    let row = &rows(&ran)["t0/best-of-n/1"];
    assert_eq!(
        (&row["calls"], &row["met"], &row["output"]),
        (&json!(3), &json!(true), &json!("END"))
    );
}

#[test]
fn the_append_loop_shows_failures_and_its_last_draft_counts() {
    let server = teachable();
    let ran = world(&server, 1)
        .args(BENCH)
        .args(["--arms", "append-loop", "--budget", "1000"])
        .run();
    let row = &rows(&ran)["t0/append-loop/1"];
    assert_eq!((&row["calls"], &row["met"]), (&json!(2), &json!(true)));
    let last = server.requests().pop().expect("a request").body;
    let roles: Vec<&str> = last["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter_map(|it| it["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    assert_eq!(last["messages"][1]["content"], "An apple.");
}

#[test]
fn the_exit_code_shows_that_the_loop_is_worse() {
    // The plain prompt succeeds, and every call of the loop fails.
    let server = answering(|request| {
        let plain = !request.prompt().contains("Requirements:");
        Reply::text(if plain { "An apple. END" } else { "An apple." })
    });
    let ran = world(&server, 8).args(BENCH).code(3).run();
    assert!(
        ran.stdout.contains("is the better choice here"),
        "{}",
        ran.stdout
    );
    ran.then(BENCH).arg("--exit-zero").run();
}

#[test]
fn hidden_checks_are_scored_but_not_shown() {
    let server = answering(|_| Reply::text("An apple."));
    let test = world(&server, 6);
    let ran = test
        .args(BENCH)
        .args(["--arms", "reflect", "--holdout", "1"])
        .run();
    let rows = rows(&ran);
    let mut hidden = 0;
    for row in rows.values() {
        // Both checks count, whichever one the loop saw.
        assert_eq!(row["checks"], json!({"end": false, "short": true}));
        if row["hidden"] == json!(["end"]) {
            hidden += 1;
            assert_eq!((&row["calls"], &row["met"]), (&json!(1), &json!(false)));
        }
    }
    assert!((1..6).contains(&hidden), "{hidden}");
    let about = &ran.stdout;
    assert!(about.contains("1 check of each task hidden"), "{about}");
}

#[test]
fn tasks_may_contain_their_own_criteria() {
    let server = teachable();
    let criteria = json!({"threshold": 1, "criteria": [{"name": "end", "evaluator": "contains", "all": ["END"]}]});
    let lines = [
        json!({"id": 1, "prompt": "Name fruit 1.", "criteria": criteria, "instructions": [{"id": "x"}]}),
        json!({"id": 2, "prompt": "Name fruit 2.", "criteria": SHORT}),
    ];
    let text = format!("{}\n{}\n", lines[0], lines[1]);
    let ran = with_server(&server, Protocol::OpenAi)
        .file("own.jsonl", text)
        .args([
            "bench",
            "own.jsonl",
            "--seeds",
            "2",
            "--arms",
            "single,reflect",
            "-o",
            "rows.jsonl",
        ])
        .stderr_lacks("criteria: writing")
        .run();
    let rows = rows(&ran);
    assert_eq!(rows.len(), 8);
    assert_eq!(rows["1/single/2"]["checks"], json!({"end": false}));
    assert_eq!(
        rows["2/reflect/1"]["checks"],
        json!({"end": true, "short": true})
    );
    // Different trials use different seeds, so they share no call.
    let mut seeds: Vec<u64> = server
        .requests()
        .iter()
        .filter_map(|it| it.body["seed"].as_u64())
        .collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert!(seeds.contains(&1000) && seeds.contains(&2000), "{seeds:?}");
}

#[test]
fn an_interrupted_benchmark_is_resumed() {
    let failing = Server::start();
    let asked = AtomicUsize::new(0);
    failing.on(Purpose::Write, move |_| {
        if asked.fetch_add(1, Ordering::Relaxed) < 9 {
            Planned::from(Reply::text("END"))
        } else {
            Planned::from(Fault::status(401))
        }
    });
    let ran = world(&failing, 6)
        .args(BENCH)
        .args(["-j", "1"])
        .code(4)
        .stderr_has("run the same command again")
        .run();
    let done = rows(&ran);
    assert!((1..24).contains(&done.len()), "{}", done.len());
    let server = teachable();
    let url = format!("{}/v1", server.url());
    let ran = ran.then(BENCH).env("OPENAI_BASE_URL", &url).run();
    let all = rows(&ran);
    assert_eq!(all.len(), 24);
    for (id, row) in &done {
        assert_eq!(all[id], *row);
    }
    // With other settings, the rows would not be comparable.
    ran.then(BENCH)
        .args(["-n", "2"])
        .env("OPENAI_BASE_URL", &url)
        .code(2)
        .stderr_has("was made with other settings")
        .run();
}

#[test]
fn the_report_has_text_json_and_html_formats() {
    let server = teachable();
    let ran = world(&server, 3)
        .args(BENCH)
        .args(["--format", "json", "--report", "bench.html"])
        .run();
    let json = ran.json();
    assert_eq!(json["tasks"], 3);
    assert_eq!(json["arms"][0]["arm"], "reflect");
    assert_eq!(json["arms"][0]["tasks"], json!({"met": 3, "of": 3}));
    assert_eq!(json["comparisons"][0]["against"], "best-of-n");
    let page = ran.read("bench.html");
    assert!(
        page.contains("<path class=\"step append-loop\" d=\"M40.0"),
        "{page}"
    );
    assert!(page.contains("reflect met 3 of 3"), "{page}");
    let markdown = ran.then(BENCH).args(["--format", "markdown"]).run();
    assert!(
        markdown.stdout.contains("\n| reflect | 3/3 100 %"),
        "{}",
        markdown.stdout
    );
}

#[test]
fn impossible_comparisons_are_rejected_before_any_call() {
    let server = teachable();
    let refused = |args: &[&str], said: &str| {
        let mut all = vec!["bench", "tasks.jsonl", "-c", "short.toml"];
        all.extend(args);
        world(&server, 1).args(all).code(2).stderr_has(said).run();
    };
    refused(
        &["--arms", "best-of-n"],
        "hint: add `reflect`, or set a budget with `--budget`",
    );
    refused(
        &["--arms", "reflect,best"],
        "known arms: single, best-of-n, append-loop, reflect",
    );
    world(&server, 1)
        .file("tasks.jsonl", "{\"prompt\": \"x\"}\n{\"promt\": \"y\"}\n")
        .args(["bench", "tasks.jsonl", "-c", "short.toml"])
        .code(2)
        .stderr_has("tasks.jsonl:2: unknown key `promt`")
        .run();
    world(&server, 1)
        .file(
            "rows.jsonl",
            "{\"id\": \"a\", \"line\": 1, \"status\": \"met\", \"exit_code\": 0}\n",
        )
        .args(BENCH)
        .code(2)
        .stderr_has("rows.jsonl:1: not a row of a benchmark")
        .run();
    assert_eq!(server.calls(), 0);
}

/// Returns the prompts and solutions of the starter set.
fn solutions() -> Vec<(String, String)> {
    let read = |text: &'static str, key: &'static str| {
        let values = text.lines().map(move |line| {
            let value: Value = serde_json::from_str(line).expect("a line of JSON");
            value[key].as_str().expect("a text").to_owned()
        });
        values.collect::<Vec<_>>()
    };
    let prompts = read(
        include_str!("../../crates/flow/src/bench/sets/starter.jsonl"),
        "prompt",
    );
    let answers = read(
        include_str!("../../crates/flow/src/bench/sets/answers.jsonl"),
        "answer",
    );
    prompts.into_iter().zip(answers).collect()
}

#[test]
fn the_starter_set_is_built_in_and_runs_code_only_with_permission() {
    let known = solutions();
    let server = answering(move |request| {
        let asked = request.prompt();
        let found = known.iter().find(|(prompt, _)| *prompt == asked);
        Reply::text(&found.expect("a known prompt").1)
    });
    let bench = [
        "bench", "starter", "--arms", "single", "--seeds", "1", "--format", "json",
    ];
    let ran = with_server(&server, Protocol::OpenAi)
        .args(bench)
        .stderr_has("starter: 8 tasks run programs and are skipped")
        .run();
    let report = ran.json();
    assert_eq!(report["arms"][0]["tasks"], json!({"met": 52, "of": 52}));
    assert_eq!(report["left_out"], 0);
}

/// Starts a host that returns this text for every request.
fn host(text: String) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            let mut asked = [0; 2048];
            let _ = std::io::Read::read(&mut stream, &mut asked);
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
                text.len()
            );
            let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
        }
    });
    format!("http://{address}")
}

#[test]
fn a_published_set_is_downloaded_once_and_cached() {
    let prompt = |key: u64, id: &str, given: Value| json!({"key": key, "prompt": format!("Write tale {key}."), "instruction_id_list": [id], "kwargs": [given]});
    let words = json!({"relation": "less than", "num_words": 3});
    let text = [
        prompt(1, "punctuation:no_comma", json!({})),
        prompt(2, "length_constraints:number_words", words),
        prompt(3, "language:response_language", json!({"language": "kn"})),
        prompt(4, "combination:two_responses", json!({})),
        prompt(
            5,
            "detectable_format:number_highlighted_sections",
            json!({"num_highlights": 2}),
        ),
    ];
    let text = text.map(|line| line.to_string()).join("\n");
    let server = answering(|_| Reply::text("**one** tale ****** *two* tales."));
    let bench = [
        "bench",
        "ifeval",
        "--arms",
        "single",
        "--seeds",
        "1",
        "-o",
        "rows.jsonl",
    ];
    let world = with_server(&server, Protocol::OpenAi);
    let ran = world
        .args(bench)
        .arg("--offline")
        .code(4)
        .stderr_has("the set is not stored on this machine, and `--offline` is set")
        .run();
    let ran = ran
        .then(bench)
        .env("REFLECT_SETS_MIRROR", host(text))
        .stderr_has("fetching ifeval.jsonl (Apache-2.0)")
        .stderr_has(
            "ifeval: 4 prompts; 1 without exact checks are skipped (language:response_language 1)",
        )
        .run();
    let met: Vec<(String, bool)> = rows(&ran)
        .values()
        .map(|row| {
            (
                row["task"].as_str().expect("a task").to_owned(),
                row["met"] == true,
            )
        })
        .collect();
    let expected = [("1", true), ("2", false), ("4", true), ("5", true)];
    assert_eq!(met, expected.map(|(task, met)| (task.to_owned(), met)));
    // From now on it is on this machine, and must match exactly.
    let again = ran
        .then(bench)
        .arg("--offline")
        .stderr_lacks("fetching")
        .run();
    let kept = "../home/.cache/reflect/sets/ifeval.jsonl";
    again
        .then(bench)
        .file(kept, "{}")
        .code(2)
        .stderr_has("was changed after it was fetched")
        .run();
}

/// Starts a judge that likes clear texts, likes long ones a little more, and always picks the first of two
/// texts unless one is terrible.
fn lenient_judge() -> Server {
    let server = Server::start();
    server.on(Purpose::Judge, |request| {
        let asked = request.prompt();
        if request.body.to_string().contains("\"better\"") {
            let second_is_bad = asked.rfind("terrible") > asked.rfind("splendid");
            let better = if asked.contains("terrible") && !second_is_bad {
                "B"
            } else {
                "A"
            };
            return Reply::text(&json!({"reason": "So it reads.", "better": better}).to_string());
        }
        let step = if asked.contains("splendid") {
            5
        } else if asked.contains("passable") {
            4
        } else {
            2
        };
        Reply::text(&verdict(step).to_string())
    });
    server
}

#[test]
fn a_judge_is_measured_against_labels_and_its_settings_are_written() {
    let server = lenient_judge();
    let one = |text: &str, label: Value| json!({"prompt": "Write.", "text": text, "label": label});
    let pair = |a: &str, b: &str| json!({"prompt": "Write.", "a": a, "b": b, "better": "a"});
    let labelled = [
        one("A splendid text.", json!(true)),
        one("Another splendid text.", json!(0.9)),
        one("A passable text.", json!(false)),
        one("A poor text.", json!(false)),
        pair("A splendid one.", "A terrible one."),
        pair("One.", "Two."),
    ];
    let labelled = labelled.map(|line| format!("{line}\n")).concat();
    let changed = labelled.replace("Another splendid", "One more splendid");
    let command = ["bench", "judge", "labelled.jsonl", "-c", "criteria.toml"];
    let test = with_server(&server, Protocol::OpenAi).file("labelled.jsonl", labelled);
    let ran = test.args(command).arg("--json").run();
    let report = ran.json();
    let joint = &report["modes"][0];
    assert_eq!(
        (&joint["mode"], &joint["texts"]),
        (&json!("joint"), &json!(4))
    );
    let confusion = json!({"true_pass": 2, "false_pass": 1, "false_fail": 0, "true_fail": 1});
    assert_eq!(joint["confusion"], confusion);
    assert_eq!(
        (&joint["false_pass_rate"], &joint["repeat_difference"]),
        (&json!(0.5), &json!(0.0))
    );
    assert_eq!(joint["best_threshold"]["kappa"], 1.0);
    assert_eq!(report["pairs"]["pairs"], 2);
    // The first text wins in both orders, which is not a choice.
    assert_eq!(
        (&report["pairs"]["right"], &report["pairs"]["undecided"]),
        (&json!(1), &json!(1))
    );
    let ran = ran
        .then(command)
        .file("criteria.toml", format!("# mine\n{CRITERIA}"))
        .arg("--write")
        .stderr_has("`criteria.toml` has the recommended settings now")
        .run();
    let written = ran.read("criteria.toml");
    assert!(written.starts_with("# mine\n"), "{written}");
    assert!(
        written.contains("[judge]\nmode = \"joint\"\nsamples = 1\nscore = \"verdict\""),
        "{written}"
    );
    let best = joint["best_threshold"]["score"]
        .as_f64()
        .expect("a threshold");
    assert!(
        written.contains(&format!("threshold = {best}\n")),
        "{written}"
    );
    ran.then(["criteria", "check", "criteria.toml"]).run();
    // One row per trial: the same command makes no further calls, and rows of another judge are rejected.
    let kept = ran
        .then(command)
        .args(["--modes", "joint", "-o", "rows.jsonl", "--json"])
        .run();
    let rows = kept.read("rows.jsonl");
    assert_eq!(rows.lines().count(), 6, "{rows}");
    let before = server.requests().len();
    let again = kept
        .then(command)
        .args(["--modes", "joint", "-o", "rows.jsonl", "--json"])
        .run();
    assert_eq!(server.requests().len(), before);
    assert_eq!(again.json(), kept.json());
    again
        .then(command)
        .file("labelled.jsonl", changed)
        .args(["-o", "rows.jsonl"])
        .code(2)
        .stderr_has("was measured with another text, judge, criteria or settings")
        .run();
    ran.then([
        "bench",
        "judge",
        "labelled.jsonl",
        "-c",
        "writing",
        "--write",
    ])
    .code(2)
    .stderr_has("--write: `writing` is built in and has no file")
    .run();
    ran.then(command)
        .file("labelled.jsonl", "{\"text\": \"x\"}\n")
        .code(2)
        .stderr_has("labelled.jsonl:1: not a labelled text")
        .run();
}
