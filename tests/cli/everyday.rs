//! Everyday usage: settings on the command line, switches, input sources, the outcome, colors.

use crate::harness::{Ran, Test};
use crate::plan::{CRITERIA, verdict};

const DRAFT: &str = "The pond is old.";

/// A script with a draft and its verdict.
fn script(step: u8) -> String {
    format!(
        "[[reply]]\npurpose = 'write'\ntext = '{DRAFT}'\n[[reply]]\npurpose = 'judge'\ntimes = 0\ntext = '{}'\n",
        verdict(step)
    )
}

/// Runs `reflect draft` once, with a verdict of this scale step.
fn draft(step: u8) -> Test {
    Test::new()
        .file("criteria.toml", CRITERIA)
        .file("script.toml", script(step))
        .args(["draft", "-n", "1", "--provider", "scripted:script.toml"])
}

fn prompt_of(ran: &Ran) -> String {
    let shown = ran.then(["history", "show", "--format", "ndjson"]).run();
    let start = shown.lines().into_iter().next().expect("a start");
    start["task"]["prompt"]
        .as_str()
        .expect("a prompt")
        .to_owned()
}

#[test]
fn set_takes_the_keys_and_values_of_the_configuration_file() {
    let shown = |setting: &str| {
        let ran = Test::new()
            .args(["config", "show", "--origin", "--set", setting])
            .stderr("")
            .run();
        ran.stdout
    };
    let has = |setting: &str, line: &str| {
        let out = shown(setting);
        assert!(out.contains(line), "{setting}: {out}");
    };
    has(
        "loop.tie_margin=0.2",
        "loop.tie_margin = 0.2  # --set loop.tie_margin",
    );
    // The table name is optional, and a former key name works.
    has(
        "tie-margin=0.3",
        "loop.tie_margin = 0.3  # --set loop.tie_margin",
    );
    has("loop.grey_zone=0.4", "loop.tie_margin = 0.4");
    has("timeouts.idle=5m", "timeouts.idle = \"5m\"");
    has("loop.adapt=false", "loop.adapt = false");
    for (setting, said) in [
        (
            "loop.tie_margin=2",
            "`tie_margin` must be a number from 0 to 1",
        ),
        ("loop.tie_margn=0.2", "did you mean `tie_margin`?"),
        ("tie_margin", "`tie_margin` is not `KEY=VALUE`"),
        ("providers.x.base_url=http://a", "providers"),
    ] {
        Test::new()
            .args(["config", "show", "--set", setting])
            .code(2)
            .stdout("")
            .stderr_has(said)
            .run();
    }
}

#[test]
fn set_overrides_files_and_a_flag_overrides_set() {
    let settings = |args: &[&str]| {
        let ran = draft(5)
            .file(".reflect.toml", "[loop]\nplateau_iterations = 2\n")
            .args(["Write.", "-c", "criteria.toml", "--format", "ndjson"])
            .args(args)
            .run();
        ran.lines()[0]["settings"]["plateau_iterations"].clone()
    };
    assert_eq!(settings(&[]), 2);
    assert_eq!(settings(&["--set", "plateau_iterations=3"]), 3);
    let both = ["--set", "plateau_iterations=3", "--plateau-iterations", "6"];
    assert_eq!(settings(&both), 6);
}

#[test]
fn a_former_key_is_accepted_in_files() {
    let criteria = format!("{CRITERIA}\n[loop]\ngrey_zone = 0.25\n");
    let ran = draft(5)
        .file("criteria.toml", criteria)
        .args(["Write.", "-c", "criteria.toml", "--format", "ndjson"])
        .run();
    assert_eq!(ran.lines()[0]["settings"]["tie_margin"], 0.25);
}

#[test]
fn a_former_spelling_of_a_switch_is_not_a_prompt() {
    let ran = draft(5)
        .args(["--memory", "false", "Write.", "-c", "criteria.toml"])
        .stdout(&format!("{DRAFT}\n"))
        .run();
    assert_eq!(prompt_of(&ran), "Write.");
}

#[test]
fn json_is_short_for_its_format() {
    let ran = draft(5)
        .args(["Write.", "-c", "criteria.toml", "--json"])
        .run();
    assert_eq!(ran.json()["output"], DRAFT);
}

#[test]
fn criteria_and_files_come_from_stdin() {
    let ran = draft(5)
        .args(["Write.", "-c", "-"])
        .stdin(CRITERIA)
        .stdout(&format!("{DRAFT}\n"))
        .run();
    assert_eq!(prompt_of(&ran), "Write.");
    let ran = draft(5)
        .args(["Write.", "-c", "criteria.toml", "-f", "-"])
        .stdin("Some notes.")
        .run();
    let shown = ran.then(["history", "show", "--format", "ndjson"]).run();
    let context = shown.lines()[0]["task"]["context"].clone();
    assert_eq!(context[0]["content"], "Some notes.");
    assert_eq!(context.as_array().map(Vec::len), Some(1), "{context}");
    draft(5)
        .args(["Write.", "-c", "-", "-f", "-"])
        .stdin(CRITERIA)
        .code(2)
        .stderr_has("the criteria and the context cannot both come from stdin")
        .run();
}

#[test]
fn a_prompt_file_has_variables() {
    let with = |args: &[&str]| {
        draft(5)
            .file("brief.md", "About {{ name }} for {{who}}.")
            .args(["--prompt-file", "brief.md", "-c", "criteria.toml"])
            .args(args)
    };
    let ran = with(&["--var", "name=Ada", "--var", "who={{ name }} = you"]).run();
    assert_eq!(prompt_of(&ran), "About Ada for {{ name }} = you.");
    // Without variables, the file is the prompt unchanged.
    assert_eq!(prompt_of(&with(&[]).run()), "About {{ name }} for {{who}}.");
    with(&["--var", "name=Ada"])
        .code(2)
        .stderr_has("`who`")
        .stderr_has("hint: set each variable with `--var NAME=VALUE`")
        .run();
    with(&["--var", "name"])
        .code(2)
        .stderr_has("`name` is not `NAME=VALUE`")
        .run();
}

#[test]
fn a_failed_criterion_is_named_even_if_the_score_is_high() {
    let criteria = "threshold = 0.5\n[[criteria]]\nname = 'long'\nevaluator = 'length'\nunit = 'words'\nmin = 1\nweight = 9\n\
        [[criteria]]\nname = 'no-old'\nevaluator = 'regex'\npattern = 'old'\nexpect = 'absent'\n\
        message = 'Say it with a younger word.'\n";
    let text = || {
        Test::new()
            .file("criteria.toml", criteria)
            .file("a.md", DRAFT)
    };
    let ran = text()
        .args(["evaluate", "a.md", "-c", "criteria.toml"])
        .code(3)
        .run();
    let first = ran.stdout.lines().next().unwrap_or_default();
    assert!(first.contains("; not met: `no-old`"), "{first}");
    // The message is complete on its own.
    assert!(
        ran.stdout
            .contains(": Say it with a younger word. [no-old]\n"),
        "{}",
        ran.stdout
    );
    let ran = draft(5)
        .file("criteria.toml", criteria)
        .args(["Write.", "-c", "criteria.toml"])
        .code(3)
        .run();
    assert!(
        ran.stderr.contains("criteria not met: `no-old`"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains(" · best draft 1 of 1, score 0."),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_worst_severity_is_counted_first() {
    let issue = |severity: &str| {
        serde_json::json!({"type": "missing", "severity": severity, "criterion": "clear",
            "description": format!("A {severity} one."), "suggested_fix": "Fix it."})
    };
    let mut verdict = verdict(2);
    let mut issues = ["major", "critical", "major"].map(issue);
    issues[2]["description"] = "Another one.".into();
    verdict["issues"] = issues.into_iter().collect();
    let script = format!(
        "[[reply]]\npurpose = 'write'\ntext = '{DRAFT}'\n[[reply]]\npurpose = 'judge'\ntimes = 0\ntext = '{verdict}'\n"
    );
    let ran = draft(2)
        .file("script.toml", script)
        .args(["Write.", "-c", "criteria.toml"])
        .code(3)
        .run();
    assert!(
        ran.stderr.contains("1 critical, 2 major issues"),
        "{}",
        ran.stderr
    );
    let show = ran.then(["history", "show"]).run().stdout;
    let place = |text: &str| show.find(text).expect(text);
    assert!(place("A critical one.") < place("A major one."), "{show}");
}

#[test]
fn a_price_is_built_in_for_common_models() {
    use crate::plan::usual_server;
    let server = usual_server();
    Test::new()
        .file("criteria.toml", CRITERIA)
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url()))
        .env("OPENAI_API_KEY", crate::harness::KEY)
        .args([
            "draft",
            "Write.",
            "-c",
            "criteria.toml",
            "-m",
            "openai:gpt-4o-mini",
        ])
        .args(["--max-cost", "1"])
        .stderr_has(" · cost ")
        .run();
}

#[test]
fn unreadable_certificates_are_reported() {
    draft(5)
        .args(["Write.", "-c", "criteria.toml", "--set", "ca_file=none.pem"])
        .stderr_has("warning: `ca_file` none.pem does not exist")
        .run();
}

#[test]
fn colors_are_used_only_on_terminals_or_on_request() {
    let evaluated = || {
        Test::new()
            .file("criteria.toml", CRITERIA)
            .file("script.toml", script(2))
            .file("a.md", DRAFT)
            .args(["evaluate", "a.md", "-c", "criteria.toml"])
            .args(["--provider", "scripted:script.toml"])
            .code(3)
    };
    let plain = evaluated().run();
    assert!(!plain.stdout.contains('\u{1b}'), "{}", plain.stdout);
    let colored = evaluated().args(["--color", "always"]).run();
    assert!(
        colored.stdout.contains("\u{1b}[31m✗\u{1b}[0m"),
        "{}",
        colored.stdout
    );
    for args in [&["--no-color"][..], &["--color", "never"]] {
        let ran = evaluated().env("CLICOLOR_FORCE", "1").args(args).run();
        assert!(!ran.stdout.contains('\u{1b}'), "{args:?}");
    }
    // An error message.
    let error = |args: &[&str]| {
        Test::new()
            .args(["criteria", "show", "nowhere.toml"])
            .args(args)
            .code(2)
            .run()
    };
    assert!(
        error(&[]).stderr.starts_with("error: "),
        "{}",
        error(&[]).stderr
    );
    assert!(error(&["--color", "always"]).stderr.contains("\u{1b}["));
}

#[test]
fn the_first_screen_shows_the_main_commands_first() {
    let screen = Test::new().arg("-h").run().stdout;
    let place = |text: &str| screen.find(text).expect(text);
    assert!(place("\n  draft ") < place("\nMore:"), "{screen}");
    for rare in ["bench", "assess", "memory", "worker", "man"] {
        assert!(
            place("\nMore:") < place(&format!("\n  {rare} ")),
            "{screen}"
        );
    }
    for command in ["draft", "revise", "evaluate"] {
        let help = Test::new()
            .env("COLUMNS", "80")
            .args([command, "-h"])
            .run()
            .stdout;
        let lines = help.lines().count();
        assert!(lines <= 32, "`{command} -h` has {lines} lines");
        let long = Test::new().args([command, "--help"]).run().stdout;
        assert!(long.contains("[env: REFLECT_MODEL]"), "{command}");
        assert!(
            !long.contains("--timeout-idle") && !long.contains("--tie-margin"),
            "{command}"
        );
    }
}

#[test]
fn models_defaults_to_list() {
    let listed = Test::new().args(["models", "list"]).run().stdout;
    Test::new().arg("models").stdout(&listed).run();
}

#[test]
fn the_list_of_runs_has_a_header() {
    let ran = draft(5).args(["Write.", "-c", "criteria.toml"]).run();
    let list = ran.then(["history", "list"]).run().stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines[0].starts_with("RUN ") && lines[0].ends_with("PROMPT"),
        "{list}"
    );
    assert_eq!(lines[0].find("PROMPT"), lines[1].find("Write."), "{list}");
}

#[cfg(unix)]
mod at_a_terminal {
    use super::*;

    #[test]
    fn the_outcome_comes_last() {
        let terminal = draft(2)
            .args(["Write.", "-c", "criteria.toml"])
            .code(3)
            .at_terminal(24, 80);
        terminal
            .until("criteria not met: `clear`")
            .until("history show");
        let screen = terminal.plain_screen();
        terminal.finish();
        let place = |text: &str| screen.rfind(text).expect(text);
        assert!(
            place(DRAFT) < place("criteria not met: `clear`"),
            "{screen}"
        );
        assert!(
            place("criteria not met") < place("show this run with"),
            "{screen}"
        );
        assert_eq!(screen.matches("criteria not met").count(), 1, "{screen}");
    }

    #[test]
    fn the_menu_shows_the_most_severe_issues() {
        let terminal = draft(2)
            .args(["Write.", "-c", "criteria.toml", "-i"])
            .code(3)
            .at_terminal(24, 80);
        terminal.until_menu("draft 1 · score");
        terminal
            .until("- major: It does not say what it is about.")
            .press("q");
        terminal.finish();
    }

    #[test]
    fn a_prompt_is_written_in_the_editor() {
        let terminal = draft(5)
            .file("editor.sh", "printf 'Write in the editor.\\n' > \"$1\"\n")
            .env("VISUAL", "sh editor.sh")
            .args(["-e", "-c", "criteria.toml"])
            .at_terminal_piped(24, 80);
        terminal.until("criteria met");
        let ran = terminal.finish();
        assert_eq!(ran.stdout, format!("{DRAFT}\n"));
        assert_eq!(prompt_of(&ran), "Write in the editor.");
    }
}
