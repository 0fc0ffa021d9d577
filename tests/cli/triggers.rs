//! Reflection triggers apart from verdicts: what is requested, and which prompts receive it.

use serde_json::{Value, json};

use crate::harness::{Ran, Test};

const CLEAR: &str = "[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'\n";

fn reply(purpose: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = \"{purpose}\"\ntext = '''{text}'''\n")
}

/// A writer's reply to a prompt that contains this.
fn told(of: &str, text: &str) -> String {
    format!("[[reply]]\npurpose = 'write'\ncontains = '''{of}'''\ntext = '''{text}'''\n")
}

/// A verdict with this scale step and an issue with this description.
fn judged(step: u8, issue: &str) -> String {
    let issues = if step < 4 {
        json!([{"type": "incorrect", "severity": "major", "criterion": "clear", "description": issue}])
    } else {
        json!([])
    };
    let verdict = json!({"scores": {"clear": {"reason": "As it reads.", "score": step}}, "issues": issues, "confidence": 0.8});
    reply("judge", &verdict.to_string())
}

fn draft(script: &[String]) -> Test {
    Test::new()
        .args([
            "draft",
            "Write a line.",
            "-c",
            "criteria.toml",
            "--provider",
            "scripted:script.toml",
            "--format",
            "ndjson",
        ])
        .file("criteria.toml", CLEAR)
        .file("script.toml", script.concat())
}

/// Returns the reflections of a run: trigger and text.
fn reflections(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let lines = ran.lines();
    let said = lines.iter().filter(|line| line["event"] == "reflection");
    said.map(|line| (text(&line["trigger"]), text(&line["text"])))
        .collect()
}

fn calls(ran: &Ran) -> usize {
    let lines = ran.lines();
    lines.iter().filter(|line| line["event"] == "call").count()
}

const ADVICE: &str = "The roof was lost; keep it.";

/// A run whose second version is worse and whose third passes.
fn falling(between: &[String]) -> Vec<String> {
    let before = [
        reply("write", "one with a roof"),
        judged(3, "The roof leaks."),
        reply("write", "two with nothing"),
        judged(1, "Nobody knows what this is about."),
    ];
    let after = [judged(5, "")];
    [&before, between, &after].concat()
}

#[test]
fn a_quality_drop_is_reflected_on_for_the_next_revision() {
    let script = falling(&[
        told("two with nothing", ADVICE),
        told(ADVICE, "three with a roof"),
    ]);
    let ran = draft(&script)
        .args(["--quality-drop-threshold", "0.1", "--adapt", "false"])
        .run();
    let said = [("quality_drop".to_owned(), ADVICE.to_owned())];
    assert_eq!(reflections(&ran), said);
    assert_eq!(calls(&ran), 7);
    assert_eq!(ran.drafts()[2], "three with a roof");
    assert!(
        ran.stderr.contains("is well below draft 1's"),
        "{}",
        ran.stderr
    );
    let result = ran.history();
    assert_eq!(result["reflections"][0]["text"], ADVICE);
    assert_eq!(result["history"]["versions"][2]["based_on"], 1);
}

#[test]
fn a_quality_drop_is_reflected_on_only_on_request() {
    let script = falling(&[reply("write", "three with a roof")]);
    for args in [
        &[][..],
        &["--quality-drop-threshold", "0"],
        // It fell by 0.6.
        &["--quality-drop-threshold", "0.7"],
    ] {
        let ran = draft(&script).args(args).run();
        assert_eq!(reflections(&ran), []);
        assert_eq!(calls(&ran), 6);
        assert_eq!(ran.history().get("reflections"), None);
    }
    draft(&script)
        .args(["--quality-drop-threshold", "2"])
        .code(2)
        .stderr_has("from 0 to 1")
        .run();
    draft(&script)
        .file(
            "criteria.toml",
            format!("[loop]\nquality_drop_threshold = 2\n{CLEAR}"),
        )
        .code(2)
        .stderr_has("`quality_drop_threshold` must be a number from 0 to 1")
        .run();
}

/// The loop continues as without it.
#[test]
fn a_failed_reflection_is_ignored() {
    let none = "contains = 'worse-draft'\n";
    for (of_no_use, warned) in [
        ("text = ''", true),
        ("text = 'Nothing.'", false),
        ("text = 'The roof'\nend = 'length'", true),
        (
            "error = { class = 'context_too_long', message = 'far too long' }",
            true,
        ),
    ] {
        let between = [
            format!("[[reply]]\npurpose = 'write'\n{none}{of_no_use}\n"),
            reply("write", "three with a roof"),
        ];
        let ran = draft(&falling(&between))
            .args(["--quality-drop-threshold", "0.1"])
            .run();
        assert_eq!(reflections(&ran), [], "{of_no_use}");
        assert_eq!(calls(&ran), 7, "{of_no_use}");
        let warnings = ran.history()["warnings"].to_string();
        assert_eq!(
            warnings.contains("without a reflection"),
            warned,
            "{warnings}"
        );
    }
}

#[test]
fn an_unavailable_server_is_not_reflected_on() {
    let script = falling(&[
        "[[reply]]\npurpose = 'write'\nerror = { class = 'auth', message = 'wrong key' }\n"
            .to_owned(),
    ]);
    let ran = draft(&script)
        .args(["--quality-drop-threshold", "0.1"])
        .code(4)
        .stderr_has("wrong key")
        .run();
    assert_eq!(ran.drafts().len(), 2);
}

const REFUSAL: &str = "I'm sorry, but I can't help with that.";

#[test]
fn a_failed_revision_is_reflected_on_and_repeated() {
    let script = [
        reply("write", "one with a roof"),
        judged(3, "The roof leaks."),
        reply("write", REFUSAL),
        told("The reply was rejected: the model refused", ADVICE),
        told(ADVICE, "two with a roof"),
        judged(5, ""),
    ];
    let ran = draft(&script).args(["--reflect-on-error", "-n", "2"]).run();
    let said = [("error".to_owned(), ADVICE.to_owned())];
    assert_eq!(reflections(&ran), said);
    assert_eq!(ran.drafts(), ["one with a roof", "two with a roof"]);
    // Without it, the attempt is lost.
    let script = [
        reply("write", "one with a roof"),
        judged(3, "The roof leaks."),
        reply("write", REFUSAL),
    ];
    for args in [&[][..], &["--reflect-on-error=false"]] {
        let ran = draft(&script).args(args).args(["-n", "2"]).code(3).run();
        assert_eq!(calls(&ran), 3);
    }
}

#[test]
fn a_first_draft_that_fails_twice_is_reflected_on_before_giving_up() {
    let failing = |third: &str| {
        [
            reply("write", REFUSAL),
            told("The last reply was a refusal", REFUSAL),
            told("The reply was rejected: the model refused", ADVICE),
            told(ADVICE, third),
            judged(5, ""),
        ]
    };
    let config = format!("[loop]\nreflect_on_error = true\n{CLEAR}");
    let ran = draft(&failing("one with a roof"))
        .file("criteria.toml", &config)
        .run();
    assert_eq!(reflections(&ran).len(), 1);
    assert_eq!(ran.drafts(), ["one with a roof"]);
    let ran = draft(&failing(REFUSAL))
        .file("criteria.toml", &config)
        .code(3)
        .stderr_has("not a valid draft: the model refused")
        .run();
    assert_eq!(calls(&ran), 4);
    // Without it, there are just two replies.
    let ran = draft(&failing("one with a roof")).code(3).run();
    assert_eq!(calls(&ran), 2);
}

/// The writer cannot fix a server error.
#[test]
fn a_failed_call_is_not_reflected_on() {
    for class in ["auth", "quota", "unreachable"] {
        let script = [format!(
            "[[reply]]\nerror = {{ class = '{class}', message = 'out of order' }}\n"
        )];
        let ran = draft(&script).arg("--reflect-on-error").code(4).run();
        assert_eq!(calls(&ran), 1, "{class}");
        assert_eq!(reflections(&ran), []);
    }
}

#[test]
fn a_reflection_counts_towards_the_token_limit() {
    let advice = format!(
        "[[reply]]\npurpose = 'write'\ntext = '{ADVICE}'\nusage = {{ prompt = 90000, completion = 10000 }}\n"
    );
    let ran = draft(&falling(&[advice]))
        .args([
            "--quality-drop-threshold",
            "0.1",
            "--max-total-tokens",
            "99999",
        ])
        .code(5)
        .run();
    assert_eq!(ran.drafts().len(), 2);
    assert_eq!(reflections(&ran).len(), 1);
}

const OUTLINE: &str = "1. Storm: it comes\n2. Roof: it goes\n3. Morning: it is calm";
const SECTIONS: [&str; 3] = [
    "The storm came at night.",
    "It took the roof and the door.",
    "In the morning all was calm.",
];

/// A run in three sections with a reflection after the second.
fn in_steps() -> Vec<String> {
    vec![
        told("list its sections in order", OUTLINE),
        told("Write only section 1 of 3: Storm: it comes", SECTIONS[0]),
        told("Write only section 2 of 3: Roof: it goes", SECTIONS[1]),
        told("Check the text so far", ADVICE),
        told(ADVICE, SECTIONS[2]),
        judged(5, ""),
    ]
}

#[test]
fn a_draft_in_steps_is_outlined_written_by_section_and_reflected_on() {
    let ran = draft(&in_steps())
        .args(["--steps", "--reflection-interval", "2"])
        .stderr_has("draft 1: writing an outline\n")
        .stderr_has("draft 1: section 3 of 3: Morning\n")
        .run();
    assert_eq!(ran.drafts(), [SECTIONS.join("\n\n")]);
    assert_eq!(calls(&ran), 6);
    let said = [("step_interval".to_owned(), ADVICE.to_owned())];
    assert_eq!(reflections(&ran), said);
    let lines = ran.lines();
    let steps: Vec<_> = lines.iter().filter(|it| it["event"] == "step").collect();
    assert_eq!(steps.len(), 3);
    assert_eq!(
        (&steps[1]["step"], &steps[1]["of"], &steps[1]["title"]),
        (&json!(2), &json!(3), &json!("Roof"))
    );
    let outline = lines.iter().find(|it| it["event"] == "outline").unwrap();
    assert_eq!(outline["sections"][2], "Morning: it is calm");
}

#[test]
fn drafts_are_written_in_steps_only_on_request() {
    let whole = [reply("write", SECTIONS[0]), judged(5, "")];
    for args in [&[][..], &["--steps=false"]] {
        assert_eq!(calls(&draft(&whole).args(args).run()), 2);
    }
    let mut script = in_steps();
    script.remove(3);
    script[3] = reply("write", SECTIONS[2]);
    // Among three sections, there is none after the third.
    for (settings, args) in [
        ("steps = true", &[][..]),
        ("steps = true\nreflection_interval = 0", &[]),
        (
            "reflection_interval = 1",
            &["--steps", "--reflection-interval=0"],
        ),
    ] {
        let ran = draft(&script)
            .file("criteria.toml", format!("[loop]\n{settings}\n{CLEAR}"))
            .args(args)
            .run();
        assert_eq!((calls(&ran), reflections(&ran).len()), (5, 0), "{settings}");
    }
    draft(&whole)
        .args(["--reflection-interval", "2"])
        .code(2)
        .stderr_has("hint: add `--steps`")
        .run();
}

#[test]
fn without_an_outline_the_draft_is_written_in_one_call() {
    for no_outline in ["The storm came at night.", "1. Storm: all of it", ""] {
        let script = [
            reply("write", no_outline),
            told("Reply with only the text", "The storm came at night."),
            judged(5, ""),
        ];
        let ran = draft(&script).arg("--steps").run();
        assert_eq!(ran.drafts(), ["The storm came at night."]);
        let warnings = ran.history()["warnings"].to_string();
        assert!(warnings.contains("is written as a whole"), "{warnings}");
    }
}

#[test]
fn a_failed_section_is_retried_once_and_then_replaced_by_the_whole_draft() {
    let mut script = in_steps();
    script[2] = reply("write", REFUSAL);
    script.insert(3, told("The last reply was a refusal", SECTIONS[1]));
    let ran = draft(&script)
        .args(["--steps", "--reflection-interval", "2"])
        .stderr_has("reply rejected: section 2 of 3: the model refused")
        .run();
    assert_eq!(ran.drafts(), [SECTIONS.join("\n\n")]);
    let script = [
        reply("write", OUTLINE),
        reply("write", SECTIONS[0]),
        reply("write", REFUSAL),
        reply("write", REFUSAL),
        told("Reply with only the text", "The storm came at night."),
        judged(5, ""),
    ];
    let ran = draft(&script).arg("--steps").run();
    assert_eq!(ran.drafts(), ["The storm came at night."]);
    assert_eq!(calls(&ran), 6);
}

#[test]
fn boilerplate_around_a_section_is_removed() {
    let mut script = in_steps();
    let talk = format!("Sure! Here is the text:\n\n{}", SECTIONS[0]);
    script[1] = reply("write", &talk);
    let ran = draft(&script)
        .args(["--steps", "--reflection-interval", "2"])
        .run();
    assert_eq!(ran.drafts(), [SECTIONS.join("\n\n")]);
}

/// Returns prose in which no word is repeated.
fn prose(tag: &str) -> String {
    let sentences: Vec<String> = (0..20)
        .map(|n| format!("House {tag}{n} lost its roof{n} to wind{tag}{n}."))
        .collect();
    sentences.join(" ")
}

#[test]
fn a_draft_in_steps_that_can_no_longer_pass_is_stopped() {
    let criteria = "[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 20\n";
    let script = [
        reply("write", OUTLINE),
        reply("write", &prose("a")),
        reply("write", &prose("b")),
        told("The last reply was far too long", SECTIONS[0]),
    ];
    let ran = draft(&script)
        .file("criteria.toml", criteria)
        .arg("--steps")
        .run();
    assert_eq!(ran.drafts(), [SECTIONS[0]]);
    assert_eq!(ran.history()["stopped_early"], 1);
    let script = [
        reply("write", OUTLINE),
        reply("write", &prose("a")),
        reply("write", &prose("b")),
        reply("write", &prose("c")),
    ];
    let ran = draft(&script)
        .file("criteria.toml", criteria)
        .args([
            "--steps",
            "--no-early-stop",
            "--reflection-interval=0",
            "-n1",
        ])
        .code(3)
        .run();
    assert_eq!(calls(&ran), 4);
}

#[test]
fn a_draft_in_steps_ends_at_the_token_limit() {
    let dear = |text: &str| {
        format!(
            "[[reply]]\npurpose = 'write'\ntext = '''{text}'''\nusage = {{ prompt = 500, completion = 500 }}\n"
        )
    };
    let script: Vec<String> = [OUTLINE, SECTIONS[0], SECTIONS[1]].map(dear).to_vec();
    let ran = draft(&script)
        .args(["--steps", "--max-total-tokens", "2500"])
        .code(5)
        .run();
    assert_eq!(ran.drafts(), [SECTIONS[..2].join("\n\n")]);
    let warnings = ran.history()["warnings"].to_string();
    assert!(
        warnings.contains("ends after 2 of 3 sections"),
        "{warnings}"
    );
    let ran = draft(&script)
        .args(["--steps", "--max-total-tokens", "900"])
        .code(5)
        .run();
    assert_eq!((ran.drafts().len(), calls(&ran)), (0, 1));
    let ran = draft(&[dear("The storm came."), reply("write", SECTIONS[0])])
        .args(["--steps", "--max-total-tokens", "900"])
        .code(5)
        .run();
    assert_eq!((ran.drafts().len(), calls(&ran)), (0, 1));
}

/// Programs that exist on every system these tests run on.
#[cfg(unix)]
mod tools {
    use super::*;

    const MORE: &str = "Four words are enough.";

    /// Returns the tool results of a run: name, exit code, output.
    fn results(ran: &Ran) -> Vec<(String, Value, String)> {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let lines = ran.lines();
        let results = lines.iter().filter(|line| line["event"] == "tool_result");
        results
            .map(|it| {
                (
                    text(&it["tool"]),
                    it["exit_code"].clone(),
                    text(&it["output"]),
                )
            })
            .collect()
    }

    fn result(tool: &str, code: i32, output: &str) -> (String, Value, String) {
        (tool.to_owned(), json!(code), output.to_owned())
    }

    fn with(tool: &str, script: &[String]) -> Test {
        draft(script).args(["--allow-exec", "--tool", tool])
    }

    #[test]
    fn a_tool_is_run_on_the_prompt_and_on_each_draft_and_reflected_on() {
        let script = [
            told(
                "The program `wc` was run on the prompt: it ended with exit code 0, and wrote this:\n\n<tool-result name=\"wc\">\n3",
                ADVICE,
            ),
            told(ADVICE, "one two three four"),
            judged(3, "The roof leaks."),
            told(
                "was run on the draft: it ended with exit code 0, and wrote this:\n\n<tool-result name=\"wc\">\n4",
                MORE,
            ),
            told(MORE, "four words are enough"),
            judged(5, ""),
        ];
        let ran = with("wc -w", &script)
            .stderr_has("draft 1: the tool `wc` ended with exit code 0\n")
            .run();
        let ours = results(&ran);
        assert_eq!(ours, [result("wc", 0, "3"), result("wc", 0, "4")]);
        let said = [ADVICE, MORE].map(|text| ("tool_result".to_owned(), text.to_owned()));
        assert_eq!(reflections(&ran), said);
        assert_eq!(calls(&ran), 6);
    }

    /// Two drafts; the prompt of the second contains this.
    fn two_drafts(shown: &str) -> [String; 4] {
        [
            reply("write", "one with a roof"),
            judged(3, "The roof leaks."),
            told(shown, "two with a roof"),
            judged(5, ""),
        ]
    }

    #[test]
    fn the_same_result_is_reflected_on_once_and_shown_again() {
        let script = [&[reply("write", ADVICE)][..], &two_drafts(ADVICE)].concat();
        let ran = with("echo calm", &script).run();
        assert_eq!(results(&ran).len(), 2);
        assert_eq!((calls(&ran), reflections(&ran).len()), (5, 1));
    }

    #[test]
    fn only_the_tools_that_are_named_are_reflected_on_but_all_are_shown() {
        for (args, config) in [
            (&["--reflect-on-tools", ""][..], ""),
            (&[], "[loop]\nreflect_on_tools = ['wc']\n"),
        ] {
            let ran = with("echo calm", &two_drafts("calm\n</tool-result>"))
                .file("criteria.toml", format!("{config}{CLEAR}"))
                .args(args)
                .run();
            assert_eq!((calls(&ran), reflections(&ran).len()), (4, 0), "{args:?}");
        }
        let script = [&[reply("write", ADVICE)][..], &two_drafts(ADVICE)].concat();
        let ran = with("echo calm", &script)
            .args(["--tool", "pwd", "--reflect-on-tools", "echo"])
            .run();
        assert_eq!((results(&ran).len(), reflections(&ran).len()), (4, 1));
        with("echo calm", &[])
            .args(["--reflect-on-tools", "ehco"])
            .code(2)
            .stderr_has("no tool named `ehco`")
            .stderr_has("hint: tools: `echo`")
            .run();
    }

    #[test]
    fn a_failing_tool_does_not_end_the_run_and_is_reflected_on() {
        let fails = "sh -c 'echo broken >&2; exit 3'";
        let script = [
            &[told(
                "ended with exit code 3, and wrote this:\n\n<tool-result name=\"sh\">\nbroken",
                ADVICE,
            )][..],
            &two_drafts(ADVICE),
        ]
        .concat();
        let ran = with(fails, &script)
            .args(["--reflect-on-tools", "", "--reflect-on-error"])
            .run();
        assert_eq!(results(&ran)[0], result("sh", 3, "broken"));
        assert_eq!(reflections(&ran), [("error".to_owned(), ADVICE.to_owned())]);
        let ran = with(fails, &two_drafts("broken"))
            .args(["--reflect-on-tools", ""])
            .run();
        assert_eq!(calls(&ran), 4);
    }

    #[test]
    fn a_tool_that_needs_the_draft_waits_for_one() {
        let ran = with("cat {draft_file}", &{
            let mut script = two_drafts(ADVICE).to_vec();
            script.insert(
                2,
                told("<tool-result name=\"cat\">\none with a roof", ADVICE),
            );
            script
        })
        .run();
        assert_eq!(results(&ran), [result("cat", 0, "one with a roof")]);
        let ran = Test::new()
            .args([
                "revise",
                "text.txt",
                "-c",
                "criteria.toml",
                "--format",
                "ndjson",
            ])
            .args(["--provider", "scripted:script.toml", "--allow-exec"])
            .args(["--tool", "cat {draft_file}"])
            .file("criteria.toml", CLEAR)
            .file("text.txt", "zero with a roof")
            .file(
                "script.toml",
                [
                    judged(3, "The roof leaks."),
                    told("<tool-result name=\"cat\">\nzero with a roof", ADVICE),
                    told(ADVICE, "one with a roof"),
                    judged(5, ""),
                ]
                .concat(),
            )
            .run();
        assert_eq!(results(&ran).len(), 1);
    }

    /// It runs in the user's folder, without any keys.
    #[test]
    fn a_tool_runs_in_the_users_folder_without_any_keys() {
        let script = [reply("write", "one with a roof"), judged(5, "")];
        let ran = with("sh -c 'ls criteria.toml; env'", &script)
            .args(["--reflect-on-tools", ""])
            .env("OPENAI_API_KEY", crate::harness::KEY)
            .run();
        let (_, code, output) = &results(&ran)[0];
        assert_eq!(code, &json!(0), "{output}");
        assert!(output.starts_with("criteria.toml\n"), "{output}");
    }

    /// Before any model call: the script has no replies.
    #[test]
    fn a_tool_that_cannot_run_is_rejected_before_any_call() {
        let with = |tool: &str| draft(&[]).args(["--tool", tool]).code(2);
        let ran = with("grep -c 'a b'").run();
        for part in [
            "these tools run on this machine, which needs your permission:\n  grep -c 'a b'\n",
            "hint: if you trust this code, add `--allow-exec`",
        ] {
            assert!(ran.stderr.contains(part), "{}", ran.stderr);
        }
        for (tool, said) in [
            ("there-is-no-such-program", "not found"),
            ("echo 'calm", "unterminated quote or backslash"),
            ("echo a | wc", "`|` is a shell operator"),
            ("", "the command is empty"),
        ] {
            with(tool).arg("--allow-exec").stderr_has(said).run();
        }
    }
}
