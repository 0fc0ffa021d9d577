//! `reflect memory` and `--memory`: learning from runs, using memories in the next one, and measuring whether
//! they helped.

use serde_json::{Value, json};

use crate::harness::{Ran, Test};
use crate::plan::{FIRST, answering, draft, usual_server, verdict};
use crate::support::server::{Protocol, Reply, Server};

/// Starts a server for a run of one draft with this verdict.
fn judging(step: u8) -> Server {
    answering([Reply::text(FIRST), Reply::text(&verdict(step).to_string())])
}

/// Prepares another run of one draft in the same world.
fn run_again(ran: &Ran, server: &Server, args: &[&str]) -> Test {
    ran.then(["draft", "Write a line.", "-c", "criteria.toml"])
        .args(["-n", "1", "--no-cache"])
        .args(args)
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url()))
}

/// Three runs that fail in the same way.
fn failing_runs() -> Ran {
    let ran = draft(&judging(2), Protocol::OpenAi)
        .args(["-n", "1", "--no-cache"])
        .code(3)
        .run();
    for _ in 0..2 {
        run_again(&ran, &judging(2), &[]).code(3).run();
    }
    ran
}

/// Returns the output of `memory list --json`.
pub(crate) fn listed(ran: &Ran, args: &[&str]) -> Vec<Value> {
    let args = [&["memory", "list", "--json"], args].concat();
    let all = ran.then(args).run().json();
    all.as_array().expect("a list").clone()
}

/// Adds an insight for texts of the usual criteria.
fn remember_brevity(ran: &Ran) {
    ran.then([
        "memory",
        "add",
        "insight",
        "Be brief.",
        "--criteria",
        "house",
    ])
    .run();
}

/// Returns the strength of the entry with this id.
fn strength(ran: &Ran, id: u64) -> f64 {
    let all = listed(ran, &[]);
    let found = all.iter().find(|it| it["id"] == id).expect("the entry");
    found["strength"].as_f64().expect("a number")
}

#[test]
fn lessons_of_failing_runs_reach_the_next_writer_and_are_measured() {
    let ran = failing_runs();
    let learned = ran
        .then(["memory", "learn"])
        .stderr("3 runs: 2 new, 0 updated, 0 unchanged\n")
        .run();
    assert!(
        learned.stdout.contains("It does not say what it is about."),
        "{}",
        learned.stdout
    );
    // Learning again finds nothing new.
    ran.then(["memory", "learn"])
        .stdout("")
        .stderr("3 runs: 0 new, 0 updated, 2 unchanged\n")
        .run();
    let insights = listed(&ran, &["--kind", "insight"]);
    let evidence = insights[0]["evidence"].as_array().expect("runs");
    assert_eq!(evidence.len(), 3);
    assert_eq!(insights[0]["criteria"], "house");

    // Without `--memory`, the writer receives no memories.
    let server = judging(2);
    run_again(&ran, &server, &[])
        .code(3)
        .stderr_lacks("memory")
        .run();
    assert!(!server.chats()[0].prompt().contains("<insights>"));

    let (before, server) = (strength(&ran, 1), judging(5));
    let helped = run_again(&ran, &server, &["--memory", "--format", "ndjson"])
        .stderr_has("memory: using 2 of 2")
        .stderr_has("memory: insight 1 (0.65): Texts for the criteria `house` often had this fault")
        .stderr_has("memory: 1 rises from 0.65 to 0.7")
        .run();
    let chats = server.chats();
    let (writer, judge) = (chats[0].prompt(), chats[1].prompt());
    for part in [
        "<insights>",
        "It does not say what it is about.",
        "Say it first.",
    ] {
        assert!(writer.contains(part), "{part}: {writer}");
        assert!(!judge.contains(part), "{part}: {judge}");
    }
    let task = &helped.lines()[0]["task"];
    let mut remembered = task["remembered"].as_array().expect("ids").clone();
    remembered.sort_by_key(Value::as_u64);
    assert_eq!(remembered, [json!(1), json!(2)]);
    assert_eq!(task["insights"].as_array().map(Vec::len), Some(2));
    assert!(strength(&ran, 1) > before);
}

#[test]
fn an_unhelpful_insight_loses_confidence_until_it_is_no_longer_used() {
    let ran = failing_runs();
    ran.then(["memory", "learn"]).run();
    let mut before = strength(&ran, 1);
    for _ in 0..7 {
        run_again(&ran, &judging(2), &["--memory"])
            .code(3)
            .stderr_has("memory: 1 falls from")
            .run();
        let now = strength(&ran, 1);
        assert!(now < before, "{now} {before}");
        before = now;
    }
    assert_eq!(listed(&ran, &["--faded"]).len(), 2);
    let server = judging(2);
    run_again(&ran, &server, &["--memory"])
        .code(3)
        .stderr_has("memory: no match among 2")
        .run();
    assert!(!server.chats()[0].prompt().contains("<insights>"));
    ran.then(["memory", "rm", "--faded"])
        .code(2)
        .stderr_has("this would delete 2 entries from memory\nhint: confirm with `--yes`")
        .run();
    ran.then(["memory", "rm", "--faded", "--yes"])
        .stderr("deleted 2 entries from memory\n")
        .run();
    assert!(listed(&ran, &[]).is_empty());
}

#[test]
fn facts_and_procedures_are_evidence_and_procedures_are_counted() {
    let ran = draft(&usual_server(), Protocol::OpenAi).run();
    let add = |args: &[&str]| ran.then([&["memory", "add"], args].concat());
    add(&[
        "fact",
        "A line is written with a pen.",
        "--confidence",
        "0.9",
    ])
    .stderr("added fact 1\n")
    .run();
    add(&[
        "procedure",
        "Write it twice.",
        "--name",
        "Lines",
        "--success-rate",
        "0.5",
    ])
    .stderr("added procedure 2\n")
    .run();
    add(&["fact", "The sea is wet."]).run();
    let server = judging(5);
    let told = run_again(&ran, &server, &["--memory", "--format", "json"])
        .stderr_has("memory: using 2 of 3")
        .stderr_has("memory: 2 rises from 0.50 to 0.60")
        .run();
    let evidence = &told.json()["evidence"];
    assert_eq!(evidence.as_array().map(Vec::len), Some(2));
    for piece in evidence.as_array().expect("evidence") {
        assert_eq!(piece["source"], "memory");
    }
    let chats = server.chats();
    for chat in &chats {
        let prompt = chat.prompt();
        assert!(prompt.contains("- A line is written with a pen. (confidence 0.90)"));
        assert!(prompt.contains("- Lines: Write it twice. (success rate 0.50)"));
        assert!(!prompt.contains("sea"), "{prompt}");
    }
    let procedure = &listed(&ran, &["--kind", "procedure"])[0];
    assert_eq!(
        (&procedure["uses"], &procedure["successRate"]),
        (&json!(1), &json!(0.6))
    );
    assert_eq!(listed(&ran, &["pens"])[0]["id"], 1);
    ran.then(["memory", "list"])
        .stdout(
            "   1  fact       0.90        A line is written with a pen.\n   2  procedure  0.60        Lines: Write \
             it twice.\n   3  fact       0.50        The sea is wet.\n",
        )
        .run();
}

#[test]
fn a_setting_enables_memory_a_flag_disables_it_and_a_dry_run_shows_it() {
    let ran = draft(&usual_server(), Protocol::OpenAi).run();
    remember_brevity(&ran);
    let config = ["--config", "reflect.toml"];
    let told = |args: &[&str]| {
        let server = judging(5);
        run_again(&ran, &server, args)
            .args(config)
            .file("reflect.toml", "memory = true\n")
            .run();
        server.chats()[0].prompt().contains("- Be brief.")
    };
    assert!(told(&[]));
    assert!(!told(&["--memory=false"]));
    let dry = run_again(&ran, &Server::start(), &["--memory", "--dry-run"]).run();
    assert!(
        dry.stdout.contains("- Be brief. (confidence 0."),
        "{}",
        dry.stdout
    );
    // Project files are untrusted.
    run_again(&ran, &Server::start(), &[])
        .file(".reflect.toml", "memory = true\n")
        .code(2)
        .stderr_has("a project file may not set `memory`")
        .run();
}

#[test]
fn revisions_and_runs_without_a_log_use_memory_too() {
    let ran = draft(&usual_server(), Protocol::OpenAi).run();
    remember_brevity(&ran);
    let server = answering([
        Reply::text(&verdict(2).to_string()),
        Reply::text("Another text altogether, in other words."),
        Reply::text(&verdict(5).to_string()),
    ]);
    ran.then([
        "revise",
        "text.md",
        "-c",
        "criteria.toml",
        "--memory",
        "--no-log",
    ])
    .args(["--strategy", "full_rewrite"])
    .file("text.md", "A text that says nothing of what it is about.")
    .env("OPENAI_BASE_URL", format!("{}/v1", server.url()))
    .stderr_has("memory: using 1 of 1")
    .run();
    let told: Vec<bool> = server
        .chats()
        .iter()
        .map(|chat| chat.prompt().contains("- Be brief."))
        .collect();
    assert_eq!(told, [false, true, false]);
    assert_eq!(listed(&ran, &[])[0]["uses"], 0);
}

#[test]
fn a_model_words_lessons_and_bad_wordings_are_ignored() {
    let ran = failing_runs();
    let learn = |reply: &str| {
        let server = answering([Reply::text(reply)]);
        let test = ran
            .then(["memory", "learn", "--llm"])
            .env("OPENAI_BASE_URL", format!("{}/v1", server.url()));
        (server, test)
    };
    let (_server, test) = learn("I would rather not.");
    test.stderr_has("warning: the model did not phrase all insights")
        .stderr_has("2 new")
        .run();
    let words = "Under `clear`, name the subject in the first words.";
    let reply = json!({"insights": [{"number": 1, "text": words}, {"number": 2, "text": words}]});
    let (server, test) = learn(&reply.to_string());
    test.stderr_has("0 new, 2 updated").run();
    let prompt = server.chats()[0].prompt();
    assert!(
        prompt.contains("1. Texts for the criteria `house`")
            || prompt.contains("1. Of the criteria `house`"),
        "{prompt}"
    );
    assert_eq!(listed(&ran, &[])[0]["content"], words);
    // The rules find the same lessons, and keep the model's wording.
    ran.then(["memory", "learn"])
        .stderr_has("2 unchanged")
        .run();
    assert_eq!(listed(&ran, &[])[1]["content"], words);
}

#[test]
fn memory_is_exported_and_imported() {
    let lines = "{\"kind\":\"fact\",\"content\":\"The port is 8080.\",\"confidence\":0.85}\n\
        {\"kind\":\"procedure\",\"name\":\"Migrate\",\"content\":\"Generate, then push.\",\"successRate\":0.9}\n\
        {\"kind\":\"insight\",\"category\":\"tone\",\"content\":\"Be kind.\",\"confidence\":0.5,\"criteria\":\"blog\"}\n";
    let ran = Test::new()
        .args(["memory", "import", "memory.jsonl"])
        .file("memory.jsonl", lines)
        .stdout("")
        .stderr("3 added, 0 updated\n")
        .run();
    ran.then(["memory", "export"]).stdout(lines).run();
    ran.then(["memory", "export", "-o", "out.jsonl"])
        .stdout("")
        .run();
    assert_eq!(ran.read("out.jsonl"), lines);
    // Importing the same entry changes nothing, and a new value is applied.
    ran.then(["memory", "import", "-"])
        .stdin(lines.replace("0.85", "0.25"))
        .stderr("0 added, 1 updated\n")
        .run();
    ran.then(["memory", "import", "context.json"])
        .file(
            "context.json",
            "{\n\"messageHistory\": [],\n\"retrievedFacts\": [{\"content\": \"New.\"}]\n}\n",
        )
        .stderr("1 added, 0 updated\n")
        .run();
    assert_eq!(listed(&ran, &["--criteria", "blog"]).len(), 1);
    ran.then(["memory", "rm", "1", "3"])
        .stderr("deleted 2 entries from memory\n")
        .run();
    ran.then(["memory", "rm", "1"])
        .code(2)
        .stderr_has("no entry 1 in memory\nhint: list the ids with `reflect memory list`")
        .run();
    ran.then(["memory", "rm", "--all", "--yes", "-q"])
        .stderr("")
        .run();
    ran.then(["memory", "list"])
        .stdout("")
        .stderr("memory is empty\n")
        .run();
}

#[test]
fn an_invalid_import_shows_its_position_and_adds_nothing() {
    let fine = "{\"content\": \"Fine.\"}\n";
    for (line, said) in [
        (
            "{\"content\": \"a\", \"confidence\": 85}",
            "expected a number from 0 to 1",
        ),
        ("{\"content\": \"\"}", "this text is empty"),
        ("nonsense", "invalid JSON"),
    ] {
        let ran = Test::new()
            .args(["memory", "import", "memory.jsonl"])
            .file("memory.jsonl", format!("{fine}{line}\n"))
            .code(2)
            .stderr_has("memory.jsonl:2:")
            .stderr_has(said)
            .run();
        ran.then(["memory", "list"]).stdout("").run();
    }
    let cases: [(&[&str], &str); 8] = [
        (&["import", "nowhere.jsonl"], "nowhere.jsonl"),
        (&["import", "blank.jsonl"], "has no entries"),
        (&["add", "fact", "  "], "the fact is empty"),
        (&["add", "fact", "a", "--confidence", "2"], "from 0 to 1"),
        (&["add", "fact", "a", "--name", "b"], "--name"),
        (&["rm"], "<ID>"),
        (
            &["learn", "--since", "soon"],
            "--since: `soon` is not a valid age or date",
        ),
        (
            &["learn", "-m", "openai:test"],
            "no model is called without `--llm`",
        ),
    ];
    for (args, said) in cases {
        Test::new()
            .arg("memory")
            .args(args)
            .file("blank.jsonl", "\n")
            .code(2)
            .stdout("")
            .stderr_has(said)
            .run();
    }
    Test::new()
        .args(["memory", "learn"])
        .stdout("")
        .stderr("no runs yet\n")
        .run();
}

#[test]
fn an_entry_named_twice_is_removed_once() {
    let ran = Test::new().args(["memory", "add", "fact", "One."]).run();
    ran.then(["memory", "rm", "1", "1"])
        .stderr("deleted 1 entry from memory\n")
        .run();
}

#[test]
fn unreadable_entries_can_be_removed_individually_or_with_all() {
    let ran = Test::new().args(["memory", "add", "fact", "One."]).run();
    ran.then(["memory", "add", "fact", "Two."]).run();
    let path = ran.then(["history", "path"]).run().stdout;
    let spoil = |id: i64| {
        let store = rusqlite::Connection::open(path.trim_end()).expect("the store");
        let spoilt = store.execute("UPDATE memory SET body = '{}' WHERE id = ?1", [id]);
        assert_eq!(spoilt, Ok(1));
    };
    spoil(1);
    ran.then(["memory", "list"])
        .code(1)
        .stderr_has("memory rm 1")
        .run();
    // A number that does not exist is still reported.
    ran.then(["memory", "rm", "1", "3"])
        .code(2)
        .stderr_has("no entry 3 in memory")
        .run();
    ran.then(["memory", "rm", "1"])
        .stderr("deleted 1 entry from memory\n")
        .run();
    spoil(2);
    ran.then(["memory", "rm", "--all", "--yes"])
        .stderr("deleted 1 entry from memory\n")
        .run();
    assert!(listed(&ran, &[]).is_empty());
}

/// The words of a deleted run's judge must not remain in memory.
#[test]
fn insights_are_removed_with_the_run_they_quote() {
    let ran = failing_runs();
    ran.then(["memory", "learn"]).run();
    ran.then(["history", "rm", "last"]).run();
    assert!(listed(&ran, &[]).is_empty());
    // The other runs teach it again.
    ran.then(["memory", "learn"])
        .stderr_has("2 runs: 2 new")
        .run();
}
