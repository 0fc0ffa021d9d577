//! Revision strategies: how each works, its fallbacks, and the choices of `hybrid`.

use serde_json::Value;

use crate::harness::{Ran, Test};
use crate::plan::with_server;
use crate::support::server::{Protocol, Purpose, Reply, Server};

/// Different lines without issues for each section.
const SETUP: &str = "The pump stands on a level floor, a metre from the wall.\n\
                     Its two hoses are joined by hand, without a tool, and sealed with the rings in the small bag.\n\
                     A third one leads to the drain, and must not be bent anywhere on its way down.\n";
const USE: &str = "It is looked after once a week, and what is found is written down at once.\n\
                   When the lamp is yellow the filter wants to be washed.\n\
                   Red means that nobody may open the lid before it has cooled for an hour.\n";
const END: &str = "In winter all water is let out, so that no pipe can burst.\n\
                   Whoever sells the machine gives this book to its new owner.\n\
                   Spare parts are kept for ten years by our shop in the harbour, behind the old crane.\n";

/// Only hard checks: no judge is called, so every call writes.
const CRITERIA: &str = r"
name = 'manual'

[[criteria]]
name = 'no-todo'
evaluator = 'regex'
pattern = 'TODO'
expect = 'absent'

[[criteria]]
name = 'licence'
evaluator = 'regex'
pattern = '(?i)licen[cs]e|TODO'
";

/// Three sections; the second one has an issue.
fn manual() -> String {
    format!(
        "# Setup\n\nInstall it under any licence.\n{SETUP}\n# Use\n\nTODO: say how.\n{USE}\n# End\n\n{END}"
    )
}

fn fixed() -> String {
    manual().replace("TODO: say how.", "Turn the key.")
}

fn edit(search: &str, replace: &str) -> String {
    format!("<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE")
}

fn good_edit() -> String {
    edit("TODO: say how.", "Turn the key.")
}

/// Runs `reflect draft` with a writer that gives these replies.
fn draft(replies: &[&str]) -> Test {
    let script: Vec<String> = replies
        .iter()
        .map(|text| format!("[[reply]]\npurpose = 'write'\ntext = '''\n{text}'''\n"))
        .collect();
    Test::new()
        .file("script.toml", script.concat())
        .file("criteria.toml", CRITERIA)
        .args(["draft", "Write a manual.", "-c", "criteria.toml"])
        .args(["--provider", "scripted:script.toml", "--adapt", "false"])
}

/// Returns a version from the run log.
#[track_caller]
fn version(ran: &Ran, number: usize) -> Value {
    ran.history()["history"]["versions"][number - 1].clone()
}

fn printed(text: &str) -> String {
    format!("{}\n", text.trim_end())
}

#[test]
fn each_strategy_fixes_the_draft() {
    let section = format!("# Use\n\nTurn the key.\n{USE}");
    for (strategy, reply) in [
        ("full_rewrite", fixed()),
        ("targeted_edit", good_edit()),
        ("incremental", section),
        ("hybrid", good_edit()),
    ] {
        let ran = draft(&[&manual(), &reply])
            .args(["--strategy", strategy])
            .stdout(&printed(&fixed()))
            .run();
        let version = version(&ran, 2);
        let used = if strategy == "hybrid" {
            "targeted_edit"
        } else {
            strategy
        };
        assert_eq!(version["strategy"], used, "{strategy}");
        if used == "targeted_edit" {
            assert_eq!(version["edits"]["exact"], 1, "{version}");
        } else {
            assert_eq!(version["edits"], Value::Null, "{version}");
        }
        let shown = ran.then(["history", "show"]).run();
        assert!(
            shown.stdout.contains(&format!("revises draft 1 by {used}")),
            "{}",
            shown.stdout
        );
    }
}

#[test]
fn hybrid_is_the_default_and_reports_its_choice() {
    draft(&[&manual(), &good_edit()])
        .stdout(&printed(&fixed()))
        .stderr_has("draft 2: targeted_edit: 1 issue touches about ")
        .stderr_has("draft 2: 1 edit applied (1 exactly)")
        .run();
    draft(&["A short text: TODO.", "A short text under a licence."])
        .stdout("A short text under a licence.\n")
        .stderr_has("draft 2: full_rewrite: the draft is short (4 words)")
        .run();
}

#[test]
fn the_choice_is_an_event_and_the_draft_records_how_edits_applied() {
    let ran = draft(&[
        &manual(),
        &edit("todo:  say how.", "x"),
        &edit("TODO:  say how.", "Turn the key."),
    ])
    .args(["--strategy", "hybrid", "--format", "ndjson"])
    .run();
    let lines = ran.lines();
    let event = |name: &str| {
        let mut found = lines.iter().filter(|line| line["event"] == name);
        found
            .next_back()
            .unwrap_or_else(|| panic!("an event `{name}`"))
            .clone()
    };
    assert_eq!(event("strategy")["strategy"], "targeted_edit");
    assert_eq!(event("strategy")["iteration"], 2);
    assert!(
        !event("strategy")["reason"]
            .as_str()
            .unwrap_or_default()
            .is_empty()
    );
    let draft = event("draft");
    assert_eq!(draft["strategy"], "targeted_edit");
    assert_eq!(draft["edits"]["tolerant"], 1, "{draft}");
    assert_eq!(draft["edits"]["failed"], 0, "{draft}");
}

#[test]
fn an_edit_that_does_not_apply_is_requested_again_with_the_closest_lines() {
    let script = |again: &str| {
        format!(
            "[[reply]]\ncontains = 'could not be applied'\ntext = '''\n{again}'''\n\
             [[reply]]\ntext = '''\n{}'''\n[[reply]]\ntext = '''\n{}'''\n",
            manual(),
            edit("To be done: say how to do it.", "Turn the key.")
        )
    };
    let ran = draft(&[])
        .file("script.toml", script(&good_edit()))
        .args(["--strategy", "targeted_edit"])
        .stdout(&printed(&fixed()))
        .run();
    assert_eq!(ran.history()["total_llm_calls"], 3);
    assert_eq!(version(&ran, 2)["edits"]["exact"], 1);
}

#[test]
fn the_request_for_a_lost_edit_shows_it_with_the_closest_lines() {
    let server = Server::start();
    let replies = [
        manual(),
        edit("TODO: say when.", "Turn the key."),
        good_edit(),
    ];
    let count = std::sync::atomic::AtomicUsize::new(0);
    server.on(Purpose::Write, move |_| {
        let at = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Reply::text(replies.get(at).map_or("", String::as_str))
    });
    with_server(&server, Protocol::OpenAi)
        .file("criteria.toml", CRITERIA)
        .args(["draft", "Write a manual.", "-c", "criteria.toml"])
        .args(["--strategy", "targeted_edit", "--adapt", "false"])
        .stdout(&printed(&fixed()))
        .run();
    let chats = server.chats();
    let messages = |at: usize| {
        chats[at].body["messages"]
            .as_array()
            .expect("messages")
            .clone()
    };
    let (first, again) = (messages(1), messages(2));
    assert_eq!(again.len(), 3);
    assert_eq!(again[..1], first[..], "the prompt so far is the same bytes");
    let question = again[2]["content"].as_str().expect("a text");
    assert!(question.contains("TODO: say when."), "{question}");
    assert!(
        question.contains("<lines>\nTODO: say how.\n</lines>"),
        "{question}"
    );
}

#[test]
fn edits_that_fail_twice_fall_back_to_the_whole_text() {
    let lost = edit("No such line is in it.", "Turn the key.");
    let ran = draft(&[&manual(), &lost, &lost, &fixed()])
        .args(["--strategy", "targeted_edit"])
        .stdout(&printed(&fixed()))
        .stderr_has("draft 2: full_rewrite: 1 edit did not apply, also when it was asked for again")
        .run();
    let version = version(&ran, 2);
    assert_eq!(version["strategy"], "full_rewrite");
    assert_eq!(version["edits"]["failed"], 1);
}

#[test]
fn a_whole_text_instead_of_edits_is_accepted() {
    let ran = draft(&[&manual(), &fixed()])
        .args(["--strategy", "targeted_edit"])
        .stdout(&printed(&fixed()))
        .stderr_has(
            "draft 2: full_rewrite: the model answered with the whole text instead of edits",
        )
        .run();
    assert_eq!(ran.history()["total_llm_calls"], 2);
}

#[test]
fn hybrid_avoids_edits_after_they_did_not_apply() {
    let lost = edit("No such line is in it.", "Turn the key.");
    let first = manual().replace("# End\n\n", "# End\n\nTODO: sum it up.\n");
    draft(&[&first, &lost, &lost, &manual(), &fixed()])
        .stdout(&printed(&fixed()))
        .stderr_has("draft 2: targeted_edit: ")
        .stderr_has("draft 2: full_rewrite: 1 edit did not apply")
        .stderr_has("draft 3: full_rewrite: 1 of 1 smaller revisions did not apply in this run")
        .run();
}

#[test]
fn sections_that_do_not_change_fall_back_to_the_whole_text() {
    let same = format!("# Use\n\nTODO: say how.\n{USE}");
    let ran = draft(&[&manual(), &same, &fixed()])
        .args(["--strategy", "incremental"])
        .stdout(&printed(&fixed()))
        .stderr_has("draft 2: full_rewrite: no section changed")
        .run();
    assert_eq!(version(&ran, 2)["strategy"], "full_rewrite");
}

#[test]
fn a_missing_section_is_added_at_the_position_the_model_names() {
    let first = fixed().replace("under any licence", "now");
    let wanted = first.replace("# End", "# Licence\n\nIt is free.\n\n# End");
    draft(&[&first, "AFTER 2\n# Licence\n\nIt is free."])
        .args(["--strategy", "incremental"])
        .stdout(&printed(&wanted))
        .run();
}

#[test]
fn the_strategy_comes_from_criteria_or_config_and_the_flag_overrides_both() {
    let criteria = format!("{CRITERIA}\n[loop]\nstrategy = 'incremental'\n");
    let section = format!("# Use\n\nTurn the key.\n{USE}");
    let ran = draft(&[&manual(), &section])
        .file("criteria.toml", &criteria)
        .run();
    assert_eq!(version(&ran, 2)["strategy"], "incremental");
    let ran = draft(&[&manual(), &good_edit()])
        .file("criteria.toml", &criteria)
        .args(["--strategy", "targeted_edit"])
        .run();
    assert_eq!(version(&ran, 2)["strategy"], "targeted_edit");
    let ran = draft(&[&manual(), &section])
        .file("reflect-config.toml", "[loop]\nstrategy = 'incremental'\n")
        .args(["--config", "reflect-config.toml"])
        .run();
    assert_eq!(version(&ran, 2)["strategy"], "incremental");
    draft(&[])
        .args(["--strategy", "patch"])
        .code(2)
        .stderr_has("targeted_edit")
        .run();
    draft(&[])
        .file(
            "criteria.toml",
            format!("{CRITERIA}\n[loop]\nstrategy = 'patch'\n"),
        )
        .code(2)
        .stderr_has("criteria.toml:")
        .stderr_has("patch")
        .run();
    draft(&[])
        .args(["--max-revision-tokens", "0"])
        .code(2)
        .run();
}

#[test]
fn a_revision_may_have_its_own_token_limit() {
    let run = |args: &[&str]| {
        let server = Server::start();
        let count = std::sync::atomic::AtomicUsize::new(0);
        server.on(Purpose::Write, move |_| {
            let first = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            Reply::text(&if first { manual() } else { fixed() })
        });
        with_server(&server, Protocol::OpenAi)
            .file("criteria.toml", CRITERIA)
            .args(["draft", "Write a manual.", "-c", "criteria.toml"])
            .args(["--strategy", "full_rewrite", "--adapt", "false"])
            .args(args)
            .stdout(&printed(&fixed()))
            .run();
        let limit = |at: usize| {
            let body = server.chats()[at].body.clone();
            let old = body["max_tokens"].as_u64();
            old.or(body["max_completion_tokens"].as_u64())
        };
        (limit(0), limit(1))
    };
    assert_eq!(run(&[]), (None, None));
    assert_eq!(run(&["--max-revision-tokens", "900"]), (None, Some(900)));
    assert_eq!(
        run(&["--max-revision-tokens", "900", "--max-tokens", "800"]),
        (Some(800), Some(800))
    );
}
