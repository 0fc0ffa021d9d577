//! The action for GitHub, the hooks for pre-commit and the examples of `docs/ci.md`, run as those programs would.

use std::path::Path;

use serde_json::Value;

use crate::harness::Test;
use crate::script::has;

fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(path)
        .expect("a file")
        .replace("\r\n", "\n")
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).expect("YAML")
}

/// The examples of the page, in order.
fn examples() -> Vec<Value> {
    let page = file("docs/ci.md");
    let blocks = page.split("\n```yaml ci\n").skip(1);
    blocks
        .map(|block| yaml(block.split_once("\n```\n").expect("an end").0))
        .collect()
}

/// A step of the action as the runner starts it, with these values for its variables.
fn step(number: usize, values: &[(&str, &str)]) -> Test {
    let action = yaml(&file("action.yml"));
    let step = &action["runs"]["steps"][number];
    assert_eq!(step["shell"], "bash");
    let script = step["run"].as_str().expect("a script");
    let program = Path::new(env!("CARGO_BIN_EXE_reflect"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let mut test = Test::new()
        .program("bash")
        // As documented for `shell: bash`.
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
        .env("PATH", format!("{folder}:{path}"))
        .file(
            "c.toml",
            "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 3\n",
        )
        .file("a b.md", "One two.\n")
        .file("docs/c.md", "One two three four.\n")
        .file("docs/$(touch pwned).md", "One.\n")
        .reports();
    let names = step["env"].as_object().expect("variables");
    for name in names.keys() {
        let value = values.iter().find(|(key, _)| key == name);
        test = test.env(name, value.map_or("", |(_, value)| value));
    }
    test
}

#[test]
fn no_script_of_the_action_contains_an_input() {
    let action = yaml(&file("action.yml"));
    let steps = action["runs"]["steps"].as_array().expect("steps");
    for step in steps {
        let script = step["run"].as_str().expect("a script");
        assert!(!script.contains("${{"), "{script}");
    }
    // Each input reaches a script.
    let all = action.to_string();
    for input in action["inputs"].as_object().expect("inputs").keys() {
        assert!(
            all.contains(&format!("${{{{ inputs.{input} }}}}")),
            "{input}"
        );
    }
}

#[test]
fn the_action_evaluates_what_matches() {
    if !has("bash") {
        return;
    }
    let evaluate = |files: &str, args: &str| {
        step(
            1,
            &[("FILES", files), ("CRITERIA", "c.toml"), ("ARGS", args)],
        )
    };
    let ran = evaluate("a b.md\ndocs/*.md\n", "--threshold\n0.1")
        .code(3)
        .run();
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(
        lines,
        [
            "::notice file=a b.md,title=reflect::meets the criteria, score 1.00",
            "::notice file=docs/$(touch pwned).md,title=reflect::meets the criteria, score 1.00",
            "::error file=docs/c.md,title=length::the text has 4 words, at most 3 are allowed\
             %0Afix: cut at least 1 word",
        ]
    );
    assert!(!ran.path("pwned").exists() && !ran.path("docs/pwned").exists());
    evaluate("a b.md", "").run();
    evaluate("none/*.md", "")
        .code(2)
        .stdout_has("::error title=reflect::no file")
        .run();
    // Neither a flag nor code.
    for files in [
        "--allow-exec",
        "$(touch pwned)",
        "`touch pwned`; touch pwned",
    ] {
        let ran = evaluate(files, "").code(2).run();
        assert!(!ran.path("pwned").exists(), "{files}");
    }
    let ran = evaluate("a b.md", "$(touch pwned)").code(2).run();
    assert!(!ran.path("pwned").exists());
}

#[test]
fn the_action_uses_an_installed_program_and_rejects_an_invalid_version() {
    if !has("bash") {
        return;
    }
    step(0, &[]).stdout("").stderr("").run();
    step(0, &[("VERSION", "1/../../x")])
        .env("RUNNER_TEMP", "temp")
        .code(2)
        .stdout_has("::error::invalid version")
        .run();
}

#[test]
fn the_hooks_take_arguments_and_files_as_pre_commit_passes_them() {
    let hooks = yaml(&file(".pre-commit-hooks.yaml"));
    let examples = examples();
    let used = &examples.last().expect("an example")["repos"][0]["hooks"][0];
    let hooks = hooks.as_array().expect("hooks");
    assert!(hooks.iter().any(|hook| hook["id"] == used["id"]), "{used}");
    for hook in hooks {
        let entry = hook["entry"].as_str().expect("a command");
        let args = entry
            .strip_prefix("reflect ")
            .expect("our program")
            .split(' ');
        let own = used["args"].as_array().expect("arguments");
        let own = own.iter().map(|arg| arg.as_str().expect("a text"));
        Test::new()
            .args(args.chain(own).chain(["docs/a.md", "docs/b.md"]))
            .file(
                "docs.toml",
                "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 3\n",
            )
            .file("docs/a.md", "One.\n")
            .file("docs/b.md", "One two three four.\n")
            .code(3)
            .stdout_has("docs/b.md: does not meet the criteria")
            .run();
    }
}

#[test]
fn the_examples_name_inputs_of_the_action_and_commands_that_run() {
    let action = yaml(&file("action.yml"));
    let examples = examples();
    assert_eq!(examples.len(), 4);
    let with = examples[0]["jobs"]["texts"]["steps"][1]["with"].clone();
    for input in with.as_object().expect("inputs").keys() {
        assert!(action["inputs"][input].is_object(), "{input}");
    }
    let commands = [&examples[1][0]["run"], &examples[2]["texts"]["script"][1]];
    for command in commands {
        let command = command.as_str().expect("a command");
        let args: Vec<&str> = command.split(' ').skip(1).collect();
        let args = args.iter().map(|arg| arg.replace("docs/*.md", "docs/a.md"));
        Test::new()
            .args(args)
            .file(
                "docs.toml",
                "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 3\n",
            )
            .file("docs/a.md", "One.\n")
            .run();
    }
}

/// The archives that the release workflow builds, in the names that the action and the formula use.
#[test]
fn the_homebrew_formula_names_the_released_archives() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workflow = std::fs::read_to_string(root.join(".github/workflows/release.yml")).unwrap();
    let action = std::fs::read_to_string(root.join("action.yml")).unwrap();
    let targets = [
        "x86_64-unknown-linux-musl",
        "aarch64-unknown-linux-musl",
        "x86_64-apple-darwin",
        "aarch64-apple-darwin",
    ];
    let dist = tempfile::tempdir().unwrap();
    for target in targets {
        assert!(
            workflow.contains(target) && action.contains(target),
            "{target}"
        );
        let file = dist
            .path()
            .join(format!("reflect-1.2.3-{target}.tgz.sha256"));
        std::fs::write(
            file,
            format!("sum-of-{target}  reflect-1.2.3-{target}.tgz\n"),
        )
        .unwrap();
    }
    let formula = root.join(".github/packaging/formula");
    let run = std::process::Command::new("bash")
        .arg(&formula)
        .arg(dist.path())
        .args(["1.2.3", "https://example.org/o/reflect"])
        .output()
        .unwrap();
    assert!(run.status.success(), "{run:?}");
    let text = String::from_utf8(run.stdout).unwrap();
    for target in targets {
        let url = format!(
            "url \"https://example.org/o/reflect/releases/download/v1.2.3/reflect-1.2.3-{target}.tgz\"\n      \
             sha256 \"sum-of-{target}\"\n"
        );
        assert!(text.contains(&url), "{text}");
    }
    // A missing archive fails instead of leaving an empty checksum.
    let run = std::process::Command::new("bash")
        .arg(&formula)
        .arg(dist.path())
        .args(["9.9.9", "https://example.org/o/reflect"])
        .output()
        .unwrap();
    assert!(!run.status.success());
}
