//! The cost of a run, and its limit.

use serde_json::{Value, json};

use crate::harness::{Test, drafts_of};

const CONFIG: &str = "../home/.config/reflect/config.toml";
const CLEAR: &str = "[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'\n";
/// Per million tokens: 2 for input, 8 for output, 0.5 for cached input.
const PRICES: &str = "[prices.'scripted:script.toml']\ninput = 2\noutput = 8\ncached_input = 0.5\n";

fn write(text: &str, usage: &str) -> String {
    format!("[[reply]]\npurpose = 'write'\ntext = '{text}'\n{usage}\n")
}

fn judge(step: u8, usage: &str) -> String {
    let verdict = json!({"scores": {"clear": {"reason": "As it reads.", "score": step}}, "issues": [], "confidence": 0.8});
    format!("[[reply]]\npurpose = 'judge'\ntext = '{verdict}'\n{usage}\n")
}

const USAGE: &str = "usage = { prompt = 100000, completion = 50000 }";
const CACHED: &str = "usage = { prompt = 100000, completion = 50000, cached = 80000 }";

fn draft(config: &str, script: &[String]) -> Test {
    Test::new()
        .args(["draft", "Write.", "-c", "criteria.toml"])
        .args(["--provider", "scripted:script.toml"])
        .file("criteria.toml", CLEAR)
        .file("script.toml", script.concat())
        .file(CONFIG, config)
}

fn cost(test: Test) -> Value {
    test.args(["--format", "json"]).run().json()["cost"].clone()
}

#[test]
fn the_cost_is_in_the_result_the_summary_and_the_report() {
    let script = [write("one", USAGE), judge(5, CACHED)];
    let ran = draft(PRICES, &script)
        .args(["--format", "json", "--report", "report.md"])
        .stderr_has(" · cost 1.08 · ")
        .run();
    assert_eq!(ran.json()["cost"], 1.08);
    assert!(ran.read("report.md").contains("cost 1.08"));
    assert_eq!(ran.history()["cost"], 1.08, "the run log contains it, too");
    // The price applies to any provider of the model. Cached input costs the same by default.
    let config = "[prices.'script.toml']\ninput = 2\noutput = 8\n";
    assert_eq!(cost(draft(config, &script)), 1.2);
}

#[test]
fn an_unknown_cost_is_null() {
    let script = [write("one", USAGE), judge(5, USAGE)];
    let other = "[prices.'openai:gpt-5']\ninput = 2\noutput = 8\n";
    for config in ["", other] {
        let ran = draft(config, &script)
            .args(["--format", "json"])
            .stderr_lacks("cost")
            .run();
        assert_eq!(ran.json()["cost"], Value::Null);
    }
    // One call without usage makes the total unknown.
    let script = [write("one", USAGE), judge(5, "")];
    assert_eq!(cost(draft(PRICES, &script)), Value::Null);
}

#[test]
fn an_evaluation_has_a_cost_too() {
    let ran = Test::new()
        .args(["evaluate", "text.md", "-c", "criteria.toml"])
        .args(["--provider", "scripted:script.toml", "--format", "json"])
        .file("text.md", "A text.\n")
        .file("criteria.toml", CLEAR)
        .file("script.toml", judge(5, USAGE))
        .file(CONFIG, PRICES)
        .stderr_has("cost 0.60")
        .run();
    assert_eq!(ran.json()["cost"], 0.6);
}

#[test]
fn the_run_stops_at_the_limit_with_the_best_draft() {
    let script = [
        write("one", USAGE),
        judge(2, USAGE),
        write("two", USAGE),
        judge(3, USAGE),
    ];
    let ran = draft(PRICES, &script)
        .args(["--max-cost", "1.5", "--format", "json"])
        .code(5)
        .stderr_has("stopped: the cost limit is reached")
        .run();
    let result = ran.json();
    assert_eq!(result["convergence_reason"], "cost_limit");
    assert_eq!(result["output"], "one");
    assert_eq!(drafts_of(&result), ["one", "two"]);
    // Usage that the server does not report is estimated, so that the limit applies.
    let script = [write("one", ""), judge(2, "")];
    let ran = draft(PRICES, &script)
        .args(["--max-cost", "0.000001", "--format", "json"])
        .code(5)
        .run();
    assert_eq!(ran.json()["cost"], Value::Null);
}

#[test]
fn a_user_limit_without_prices_is_rejected_before_any_call() {
    let refused = |config: &str, args: &[&str], said: &str| {
        draft(config, &[])
            .args(args)
            .code(2)
            .stderr_has(said)
            .stderr_has("no price set for `scripted:script.toml`")
            .stderr_has("hint: add `[prices.\"scripted:script.toml\"]`")
            .run();
    };
    refused("", &["--max-cost", "1"], "--max-cost");
    refused("[loop]\nmax_cost = 1\n", &[], "config.toml:2");
    // Every model that may be called needs a price.
    draft(PRICES, &[])
        .args(["--max-cost", "1", "--judge-model", "scripted:judge.toml"])
        .file("judge.toml", "")
        .code(2)
        .stderr_has("no price set for `scripted:judge.toml`")
        .run();
}

#[test]
fn criteria_may_lower_the_limit_but_not_raise_it() {
    let script = || {
        [
            write("one", USAGE),
            judge(2, USAGE),
            write("two", USAGE),
            judge(5, USAGE),
        ]
    };
    let criteria = |limit: &str| format!("{CLEAR}[loop]\nmax_cost = {limit}\n");
    let config = |limit: &str| format!("[loop]\nmax_cost = {limit}\n{PRICES}");
    for (mine, theirs, code) in [("9", "1", 5), ("1", "9", 5), ("9", "8", 0)] {
        draft(&config(mine), &script())
            .file("criteria.toml", criteria(theirs))
            .code(code)
            .run();
    }
    // Criteria do not know the user's prices. Without one, their limit has no effect.
    draft("", &script())
        .file("criteria.toml", criteria("1"))
        .stderr_has("`max_cost` from criteria `criteria` has no effect")
        .run();
}

#[test]
fn invalid_prices_and_limits_are_rejected() {
    for (config, said) in [
        ("[prices.m]\ninput = -1\noutput = 2\n", "config.toml:2:9"),
        ("[prices.m]\ninput = 1\n", "`output` is missing"),
        (
            "[prices.m]\ninput = 1\noutput = 2\nprice = 3\n",
            "unknown key `price`",
        ),
        ("[loop]\nmax_cost = 0\n", "config.toml:2:12"),
    ] {
        draft(config, &[]).code(2).stderr_has(said).run();
    }
    for bad in ["0", "-1", "nan", "inf", "much"] {
        draft(PRICES, &[])
            .arg(format!("--max-cost={bad}"))
            .code(2)
            .stderr_has("--max-cost")
            .run();
    }
    // A project file may not set prices.
    draft("", &[])
        .file(".reflect.toml", PRICES)
        .code(2)
        .stderr_has("a project file may not set `prices`")
        .run();
}
