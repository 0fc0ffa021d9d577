//! The program's help, version and manual pages.

use std::path::Path;

use crate::harness::Test;

#[test]
fn help() {
    let cases: [(&str, &[&str]); 26] = [
        ("help_short", &["-h"]),
        ("help_long", &["--help"]),
        ("help_draft_short", &["draft", "-h"]),
        ("help_draft_long", &["draft", "--help"]),
        ("help_revise_short", &["revise", "-h"]),
        ("help_evaluate_short", &["evaluate", "-h"]),
        ("help_run_short", &["run", "-h"]),
        ("help_assess_short", &["assess", "-h"]),
        ("help_batch_short", &["batch", "-h"]),
        ("help_batch_long", &["batch", "--help"]),
        ("help_history", &["history", "--help"]),
        ("help_history_list", &["history", "list", "--help"]),
        ("help_history_diff", &["history", "diff", "--help"]),
        ("help_history_export", &["history", "export", "--help"]),
        ("help_history_rm", &["history", "rm", "--help"]),
        ("help_worker_short", &["worker", "-h"]),
        ("help_mcp_short", &["mcp", "-h"]),
        ("help_memory", &["memory", "--help"]),
        ("help_memory_list", &["memory", "list", "--help"]),
        ("help_memory_learn_short", &["memory", "learn", "-h"]),
        ("help_criteria", &["criteria", "--help"]),
        ("help_criteria_init", &["criteria", "init", "--help"]),
        ("help_models", &["models", "--help"]),
        ("help_config", &["config", "--help"]),
        ("help_completions", &["completions", "--help"]),
        ("help_doctor_short", &["doctor", "-h"]),
    ];
    for (name, args) in cases {
        let ran = Test::new().args(args).stderr("").run();
        insta::assert_snapshot!(name, ran.stdout);
        if args.ends_with(&["-h"]) {
            let lines = ran.stdout.lines().count();
            assert!(lines <= 60, "{name} has {lines} lines");
        }
        let widest = ran.stdout.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{name} is {widest:?} wide");
    }
}

#[test]
fn version() {
    let version = format!("reflect {}", env!("CARGO_PKG_VERSION"));
    Test::new().arg("-V").stdout(&format!("{version}\n")).run();
    // Includes the commit if it is known.
    let ran = Test::new().arg("--version").run();
    let rest = ran.stdout.strip_prefix(&version).map(str::trim_end);
    assert!(
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" (") && rest.ends_with(')')),
        "{:?}",
        ran.stdout
    );
}

#[test]
fn usage_errors() {
    let cases: [(&[&str], &str); 10] = [
        (&[], "Usage: reflect"),
        (&["drafft", "x"], "draft"),
        (&["draft", "x", "--tempature", "1"], "--temperature"),
        (&["draft", "x", "--format", "yaml"], "ndjson"),
        (&["draft", "x", "-n", "0"], "--max-iterations"),
        (&["draft", "x", "--threshold", "7"], "from 0 to 1"),
        (&["draft", "x", "--think", "hard"], "high"),
        (&["draft", "x", "y"], "unexpected argument 'y'"),
        (&["history"], "show"),
        (&["completions", "tcsh"], "bash"),
    ];
    for (args, said) in cases {
        Test::new()
            .args(args)
            .code(2)
            .stdout("")
            .stderr_has(said)
            .run();
    }
}

const SHELLS: [(&str, &str); 5] = [
    ("bash", "reflect.bash"),
    ("zsh", "_reflect"),
    ("fish", "reflect.fish"),
    ("powershell", "_reflect.ps1"),
    ("elvish", "reflect.elv"),
];

/// Compares a file of the repository with the program's output. `REFLECT_UPDATE=1` regenerates it.
#[track_caller]
fn is_up_to_date(name: &str, args: &[&str]) {
    let printed = Test::new().args(args).stderr("").run().stdout;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if std::env::var_os("REFLECT_UPDATE").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, &printed).expect("a file");
    }
    // A checkout may change line ends.
    let kept = std::fs::read_to_string(&file)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert!(
        kept == printed,
        "{name} is not what `reflect {}` prints; write it anew with\n\
         REFLECT_UPDATE=1 cargo test --test cli up_to_date",
        args.join(" ")
    );
}

#[test]
fn completions_are_up_to_date() {
    for (shell, name) in SHELLS {
        is_up_to_date(&format!("completions/{name}"), &["completions", shell]);
    }
}

#[test]
fn the_reference_is_up_to_date() {
    is_up_to_date("docs/cli.md", &["man", "--markdown"]);
}

/// The help of every command has examples.
#[test]
fn every_command_has_examples() {
    let reference = Test::new().args(["man", "--markdown"]).run().stdout;
    let mut sections = 0;
    for section in reference.split("\n## ").skip(1) {
        let name = section.lines().next().unwrap_or_default();
        let depth = name.split(' ').count();
        if name == "Environment" || depth > 2 {
            continue;
        }
        sections += 1;
        assert!(
            section.contains("Examples:\n  "),
            "`{name} --help` has no examples"
        );
        // One screen, or slightly more.
        let command: Vec<&str> = name.split(' ').skip(1).collect();
        let short = Test::new().args(command).arg("-h").run().stdout;
        let lines = short.lines().count();
        assert!(lines <= 60, "`{name} -h` has {lines} lines");
    }
    assert!(sections > 8, "{sections}");
    for variable in ["REFLECT_MODEL", "OLLAMA_HOST", "NO_COLOR"] {
        assert!(
            reference.contains(&format!("| `{variable}` | ")),
            "{variable}"
        );
    }
}

/// Prose fills the width of the help: a line ends only where the next word does not fit.
#[test]
fn prose_fills_its_lines() {
    let reference = Test::new().args(["man", "--markdown"]).run().stdout;
    let names = reference.split("\n## ").skip(1).map(|section| {
        let name = section.lines().next().unwrap_or_default();
        name.split(' ').skip(1).collect::<Vec<_>>()
    });
    let commands: Vec<Vec<&str>> = names.collect();
    assert!(commands.len() > 40, "{}", commands.len());
    for width in [80, 100] {
        for command in &commands {
            let test = Test::new().env("COLUMNS", width.to_string());
            let help = test.args(command).arg("--help").stderr("").run().stdout;
            for (line, next) in help.lines().zip(help.lines().skip(1)) {
                let word = next.split(' ').next().unwrap_or_default();
                let goes_on = !line.is_empty() && word.starts_with(char::is_lowercase);
                let left = width - line.chars().count();
                assert!(
                    !goes_on || word.chars().count() >= left,
                    "`reflect {} --help`, {width} columns wide, has a short line: {line:?}",
                    command.join(" ")
                );
            }
        }
    }
}

#[test]
fn manual_pages() {
    let ran = Test::new().arg("man").stderr("").run();
    assert!(ran.stdout.contains(".TH reflect 1"), "{}", ran.stdout);
    let ran = Test::new()
        .args(["man", "--out-dir", "pages"])
        .stdout("")
        .run();
    for name in ["reflect.1", "reflect-draft.1", "reflect-history-show.1"] {
        assert!(ran.read(&format!("pages/{name}")).contains(".TH"), "{name}");
    }
    Test::new()
        .file("file", "")
        .args(["man", "--out-dir", "file"])
        .code(1)
        .stderr_has("file")
        .run();
}
