//! Replies with more than the draft: some are cleaned, the others rejected.

use serde_json::json;

use crate::harness::Test;

const CRITERIA: &str = "[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'\n";

fn reply(purpose: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = \"{purpose}\"\ntext = '''{text}'''\n")
}

fn judged(step: u8) -> String {
    let verdict = json!({"scores": {"clear": {"reason": "As it reads.", "score": step}}, "issues": [], "confidence": 0.8});
    reply("judge", &verdict.to_string())
}

fn draft(prompt: &str, script: &[String]) -> Test {
    Test::new()
        .args([
            "draft",
            prompt,
            "-c",
            "criteria.toml",
            "--provider",
            "scripted:script.toml",
        ])
        .file("criteria.toml", CRITERIA)
        .file("script.toml", script.concat())
}

#[test]
fn boilerplate_and_an_outer_fence_are_removed() {
    let text = "fn main() {\n    run();\n}";
    let said = format!(
        "Certainly! Here is the function:\n\n```rust\n{text}\n```\n\nLet me know if you'd like any tweaks."
    );
    let ran = draft(
        "Write a function that runs.",
        &[reply("write", &said), judged(5)],
    )
    .args(["--format", "ndjson"])
    .run();
    let lines = ran.lines();
    let removed: Vec<_> = lines
        .iter()
        .filter(|line| line["event"] == "cleaned")
        .map(|line| line["what"].as_str().unwrap())
        .collect();
    let kinds = [
        "talk before the draft",
        "talk after the draft",
        "a code fence around the whole",
    ];
    assert_eq!(removed, kinds);
    assert_eq!(ran.drafts(), [text]);
    draft(
        "Write a function that runs.",
        &[reply("write", &said), judged(5)],
    )
    .stdout(&format!("{text}\n"))
    .stderr_has("draft 1: removed talk before the draft")
    .run();
}

#[test]
fn a_requested_fence_is_kept() {
    let fenced = "```rust\nfn main() {}\n```";
    draft(
        "Write a function in a fenced code block.",
        &[reply("write", fenced), judged(5)],
    )
    .stdout(&format!("{fenced}\n"))
    .run();
    let story = "Here is what happened:\n\nThe storm came at night.";
    draft("Tell of the storm.", &[reply("write", story), judged(5)])
        .stdout(&format!("{story}\n"))
        .run();
}

#[test]
fn a_rejected_reply_is_fed_back_once_and_never_selected() {
    let houses: Vec<String> = (0..20)
        .map(|n| format!("House number {n} lost its door{n}."))
        .collect();
    let base = format!(
        "The storm came at night and took the roof with it. {}",
        houses.join(" ")
    );
    let base = base.as_str();
    for (bad, said) in [
        (
            "I'm sorry, but I can't help with that.",
            "the model refused or asked back",
        ),
        (
            "Tell of the storm that came at night.",
            "the reply is the prompt again",
        ),
        (
            "Key changes:\n- a stronger opening",
            "talks about the text instead of being the text",
        ),
        ("The storm came.", "nothing asks for a shorter text"),
        (
            &format!("{base} {}", base.replace("House", "Barn").repeat(3)),
            "nothing asks for a longer text",
        ),
    ] {
        let script = [
            reply("write", base),
            judged(3),
            reply("write", bad),
            "[[reply]]\npurpose = 'write'\ncontains = 'The last reply '\ntext = '''".to_owned()
                + &base.replace("roof", "barn")
                + "'''\n",
            judged(4),
        ];
        draft("Tell of the storm that came at night.", &script)
            .args(["--judge-confirm", "0"])
            .stdout(&format!("{}\n", base.replace("roof", "barn")))
            .stderr_has("draft 2: reply rejected: ")
            .stderr_has(said)
            .run();
    }
}
