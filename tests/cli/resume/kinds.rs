//! Resuming runs with tools, custom templates or prices.

use std::fs;

use super::*;

#[test]
fn tool_results_come_from_the_log() {
    let server = stuck_at(3);
    let running = draft(&server)
        .file("note.txt", "It rains.")
        .args(["--allow-exec", "--tool", "cat note.txt"])
        .args(["--reflect-on-tools", ""])
        .spawn();
    until_call(&server, 3);
    let killed = running.kill();
    fs::write(killed.path("note.txt"), "The sun shines.").expect("a file");
    resume(&killed).code(2).stderr_has("--allow-exec").run();
    let ran = resume(&killed).arg("--allow-exec").stdout(LAST).run();
    assert_eq!(server.calls() - 3, CALLS - 2, "no call twice");
    assert_eq!(ran.drafts().len(), 3);
    let told: Vec<(bool, bool)> = server
        .chats()
        .iter()
        .skip(3)
        .filter(|chat| chat.purpose() == Purpose::Write)
        .map(|chat| {
            let text = chat.body["messages"].to_string();
            (text.contains("It rains."), text.contains("The sun shines."))
        })
        .collect();
    assert_eq!(told, [(true, false), (false, true)]);
}

#[test]
fn changed_templates_are_rejected() {
    const TEMPLATE: &str = "In one line.\n{{ task }}";
    let server = stuck_at(3);
    let running = draft(&server)
        .file("prompts/draft.j2", TEMPLATE)
        .args(["--prompt-dir", "prompts"])
        .spawn();
    until_call(&server, 3);
    let killed = running.kill();
    let (folder, file) = (killed.path("prompts"), killed.path("prompts/draft.j2"));
    fs::write(&file, "In two lines.\n{{ task }}").expect("a file");
    resume(&killed)
        .code(2)
        .stderr_has("have changed since it started")
        .stderr_has("hint: restore them")
        .run();
    fs::remove_dir_all(&folder).expect("a folder");
    resume(&killed).code(2).stderr_has("restore them").run();
    fs::create_dir(&folder).expect("a folder");
    fs::write(&file, TEMPLATE).expect("a file");
    resume(&killed).stdout(LAST).run();
    assert_eq!(server.calls() - 3, CALLS - 2, "no call twice");
}

#[test]
fn a_run_stopped_by_its_cost_is_resumed_with_a_higher_limit() {
    let prices = "[prices.'openai:test']\ninput = 2\noutput = 8\n";
    let server = quick();
    // Each call uses 100 input and 20 output tokens: 0.00036.
    let stopped = draft(&server)
        .file("../home/.config/reflect/config.toml", prices)
        .args(["--max-cost", "0.0006"])
        .code(5)
        .run();
    assert_eq!(server.calls(), 2);
    resume(&stopped)
        .code(2)
        .stderr_has("raise the limit with `--max-cost`")
        .run();
    resume(&stopped)
        .args(["--max-cost", "0.0005"])
        .code(2)
        .stderr_has("the run has cost ")
        .run();
    let ran = resume(&stopped)
        .args(["--max-cost", "1"])
        .stdout(LAST)
        .run();
    assert_eq!(server.calls(), CALLS);
    let cost = ran.history()["cost"].as_f64().expect("a cost");
    assert!((cost - 0.00216).abs() < 1e-9, "{cost}");
}
