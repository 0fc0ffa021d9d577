//! Built-in sets by name (`-c NAME`), several sets together, and the project's own README. The checks of the sets are
//! tested in `crates/core`. The judge approves everything.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::harness::Test;

/// One of the texts that belong to a built-in set.
fn text(name: &str, quality: &str) -> String {
    let texts =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/core/src/criteria/builtin/texts");
    std::fs::read_to_string(texts.join(format!("{name}.{quality}.txt"))).expect("a text")
}

/// Evaluates a text with a built-in set.
fn judge(name: &str, text: &str, code: i32) -> Value {
    let shown = Test::new()
        .args(["criteria", "show", name, "--format", "json"])
        .run()
        .json();
    let scores: Map<String, Value> = shown["criteria"]
        .as_array()
        .expect("criteria")
        .iter()
        .filter(|criterion| criterion["evaluator"] == "llm")
        .map(|criterion| {
            let name = criterion["name"].as_str().expect("a name").to_owned();
            (name, json!({ "reason": "It is.", "score": 5 }))
        })
        .collect();
    let verdict = json!({ "scores": scores, "issues": [], "confidence": 0.9 });
    compiler(Test::new())
        .args(["evaluate", "text.txt", "--format", "json", "--allow-exec"])
        .args(["--provider", "scripted:judge.toml", "-c", name])
        .file(
            "judge.toml",
            format!("[[reply]]\ntext = '''{verdict}'''\ntimes = 0\n"),
        )
        .file("text.txt", text)
        .code(code)
        .run()
        .json()
}

/// Lets `rustc` find its toolchain, which it looks for in the user's home; the test has another home.
fn compiler(test: Test) -> Test {
    let home = std::env::var_os("RUSTUP_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".rustup")));
    let toolchain = std::env::var_os("RUSTUP_TOOLCHAIN");
    let test = home
        .into_iter()
        .fold(test, |test, home| test.env("RUSTUP_HOME", home));
    toolchain
        .into_iter()
        .fold(test, |test, it| test.env("RUSTUP_TOOLCHAIN", it))
}

/// Returns the criteria that are not met. The judge is skipped if a required one is not met.
fn missed(result: &Value) -> Vec<&str> {
    result["evaluation"]["criteria"]
        .as_array()
        .expect("criteria")
        .iter()
        .filter(|criterion| criterion["passed"] == false && criterion["status"] == "ok")
        .map(|criterion| criterion["name"].as_str().expect("a name"))
        .collect()
}

#[test]
fn a_set_by_name_tells_good_from_bad() {
    let good = judge("commit", &text("commit", "good"), 0);
    assert_eq!(missed(&good), Vec::<&str>::new(), "{good:#}");
    let bad = judge("commit", &text("commit", "bad"), 3);
    assert!(missed(&bad).contains(&"subject-length"), "{bad:#}");
}

#[test]
fn rust_is_compiled() {
    let good = judge("rust", &text("rust", "good"), 0);
    assert_eq!(missed(&good), Vec::<&str>::new(), "{good:#}");
    let bad = judge("rust", &text("rust", "bad"), 3);
    assert_eq!(
        missed(&bad),
        ["compiles", "only-code", "finished", "no-panics"],
        "{bad:#}"
    );
    Test::new()
        .args(["evaluate", "-c", "rust"])
        .stdin("fn main() {}\n")
        .code(2)
        .stderr_has("these criteria run code on this machine, which needs your permission:")
        .stderr_has("hint: if you trust this code, add `--allow-exec`")
        .run();
}

#[test]
fn all_sets_are_valid() {
    let listed = Test::new()
        .args(["criteria", "list", "--json"])
        .run()
        .json();
    let names: Vec<&str> = listed
        .as_array()
        .expect("sets")
        .iter()
        .map(|set| set["name"].as_str().expect("a name"))
        .collect();
    assert!(names.len() > 20, "{names:?}");
    let ran = Test::new()
        .args(["criteria", "check"])
        .args(&names)
        .stdout("")
        .stderr_lacks("warning")
        .run();
    assert_eq!(ran.stderr.lines().count(), names.len());
}

/// A text must meet the criteria of all given sets.
#[test]
fn several_sets_add_up() {
    let house = "name = 'house'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 3\n\
                 [[criteria]]\nname = 'no-and'\nevaluator = 'contains'\nnone = ['and']\n";
    let evaluate = |stdin: &str| {
        Test::new()
            .args([
                "evaluate",
                "--format",
                "json",
                "-c",
                "paragraph",
                "-c",
                "house.toml",
            ])
            .file("house.toml", house)
            .stdin(stdin.to_owned())
            .code(3)
            .run()
            .json()
    };
    let result = evaluate("Salt and pepper.\n");
    assert_eq!(missed(&result), ["short", "no-and"]);
    let result = evaluate(&text("paragraph", "good"));
    assert_eq!(missed(&result), ["house/short", "no-and"]);
    let ran = Test::new()
        .args([
            "draft",
            "Write a line.",
            "-c",
            "house.toml",
            "-c",
            "more.toml",
        ])
        .args(["--provider", "scripted:script.toml"])
        .file("house.toml", house)
        .file(
            "more.toml",
            "[[criteria]]\nname = 'ends'\nevaluator = 'regex'\npattern = '!$'\n",
        )
        .file(
            "script.toml",
            "[[reply]]\ntext = 'Salt.'\n[[reply]]\ntext = 'Salt!'\n",
        )
        .stdout("Salt!\n")
        .run();
    let events = ran
        .then(["history", "show", "last", "--format", "ndjson"])
        .run();
    assert_eq!(events.lines()[0]["criteria"]["name"], "house + more");
}

/// A file in the current folder overrides a set only if it is given as a path.
#[test]
fn a_file_with_the_name_of_a_set_needs_a_path() {
    let show = |spec: &str, said: &str| {
        let own =
            "description = 'Mine.'\n[[criteria]]\nname = 'a'\nevaluator = 'length'\nmax = 1\n";
        let ran = Test::new()
            .args(["criteria", "show", spec])
            .file("commit", own)
            .file("commit.toml", own)
            .run();
        assert!(ran.stdout.contains(said), "{}", ran.stdout);
    };
    show("commit", "built in;");
    show("./commit", "Mine.");
    show("commit.toml", "Mine.");
}

/// The README meets the project's own criteria for READMEs, and stays short.
#[test]
fn the_readme_meets_its_own_criteria() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let words = readme.split_whitespace().count();
    assert!(words <= 900, "{words} words");
    let scores: Map<String, Value> = ["purpose", "start", "honesty"]
        .map(|name| (name.to_owned(), json!({"analysis": "", "score": 5})))
        .into_iter()
        .collect();
    let verdict = json!({"scores": scores, "to_fix": []});
    let script = format!("[[reply]]\npurpose = 'judge'\ntext = '''{verdict}'''\n");
    Test::new()
        .args(["evaluate", "README.md", "-c", "readme"])
        .args(["-m", "scripted:judge.toml"])
        .file("README.md", &readme)
        .file("judge.toml", script)
        .run();
}

/// The README shows the actual output of a command. `REFLECT_UPDATE=1` regenerates it.
#[test]
fn the_readme_s_output_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = root.join("README.md");
    let readme = std::fs::read_to_string(&file)
        .unwrap()
        .replace("\r\n", "\n");
    let (before, rest) = readme.split_once("$ echo \"").expect("the example");
    let (text, rest) = rest.split_once("\" | reflect ").expect("a text");
    let (command, rest) = rest.split_once('\n').expect("a command");
    let (shown, after) = rest.split_once("```").expect("an end");
    let (name, criteria) = command.split_once(" -c ").expect("criteria");
    let printed = Test::new()
        .arg(name)
        .arg("-c")
        .arg(criteria)
        .stdin(format!("{text}\n"))
        .code(3)
        .run()
        .stdout;
    if std::env::var_os("REFLECT_UPDATE").is_some_and(|value| value == "1") {
        let readme = format!("{before}$ echo \"{text}\" | reflect {command}\n{printed}```{after}");
        std::fs::write(&file, readme).expect("a file");
    } else {
        assert_eq!(shown, printed);
    }
}
