//! The criteria files in `examples/criteria`: each works unchanged, and its hard checks tell a good text from
//! a bad one. The judge approves everything.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::harness::{Test, each};

/// An example, a text that meets it, and one that does not, with the criteria it misses.
struct Example {
    name: &'static str,
    good: String,
    bad: String,
    missed: &'static [&'static str],
}

fn example(name: &'static str, good: &str, bad: &str, missed: &'static [&'static str]) -> Example {
    Example {
        name,
        good: good.to_owned(),
        bad: bad.to_owned(),
        missed,
    }
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("examples/criteria")
        .join(format!("{name}.toml"))
}

fn blog() -> Example {
    let section = "We measured it on the small machine in the kitchen. It took nine minutes the first \
                   time and two the second, because the cache was warm. Then we pulled the plug. ";
    let body = ["What we did", "What we saw", "What we keep"]
        .map(|heading| {
            let (first, second) = (section.repeat(3), section.repeat(2));
            format!("## {heading}\n\n{first}\n\n{second}\n\n")
        })
        .concat();
    Example {
        name: "blog",
        good: format!(
            "# Nine minutes to two\n\nA cache saved us seven minutes. Here is how.\n\n{body}"
        ),
        bad: format!(
            "In today's fast-paced world, caches are a game-changer!!!!!!!! Wow!\n\n{}",
            section.repeat(16)
        ),
        missed: &[
            "title",
            "headings",
            "calm",
            "short-paragraphs",
            "no-cliches",
        ],
    }
}

fn examples() -> Vec<Example> {
    vec![
        blog(),
        example(
            "code",
            "/// The share of the whole, `None` if there is no whole.\n\
             pub fn share(part: u64, whole: u64) -> Option<u64> {\n    part.checked_div(whole)\n}\n",
            "Here is the code:\n```rust\npub fn share(part: u64, whole: u64) -> u64 {\n    \
             // TODO: check for zero\n    a().unwrap(); b().unwrap(); c().unwrap(); d().unwrap(); e().unwrap();\n    \
             todo!()\n}\n```\n",
            &["compiles", "only-code", "finished", "no-panics"],
        ),
        example(
            "commit",
            "store: Write the log before the answer is printed\n\n\
             A run that was interrupted after its answer was not in the history.\n",
            "Fixed various things in the store, among them the log, the answer and the way in which they work together.\n\
             This commit message goes on and on in a second line that nobody has wrapped, since nobody reads it.\n\
             ```\n",
            &["subject-length", "subject-form", "imperative", "blank-second-line", "wrapped", "no-decoration"],
        ),
        example(
            "email",
            "Subject: Heating in flat 4 still broken\n\nDear Ms Marten,\n\n\
             please have the heating in flat 4 repaired by Friday, 28 November. It has not worked since I wrote \
             to you on the 10th, and the flat is at 14 degrees in the morning. I am at home every day until noon \
             and can let a plumber in.\n\nKind regards,\nT. Okafor\n",
            "Hope this email finds you well. I am [Your Name]. Did you see it? Did you read it? Will you come? \
             When? Why not?\n",
            &["subject", "greeting", "closing", "ready-to-send", "no-filler", "few-questions", "length"],
        ),
        example(
            "haiku",
            "rain on the tin roof\nthe last leaf lets go of its branch\na gutter answers\n",
            "Here is a haiku:\n\"Rain\"\n",
            &["three-lines", "short", "only-the-poem"],
        ),
        example(
            "paragraph",
            "In autumn the days grow short and the tree takes back what it can use from its leaves. The green of \
             the chlorophyll goes first, and what was hidden under it is seen. The red is made anew, from sugar \
             that is left in the leaf on cold, bright days.\n",
            "# Leaves\n\n- They turn red\n",
            &["short", "one-paragraph", "plain", "finished"],
        ),
        example(
            "profile",
            "{\"name\": \"Ada Brandt\", \"email\": \"ada@brandt.dev\", \"skills\": [\"SQL\", \"Rust\"], \
             \"summary\": \"Builds databases for hospitals, and has done so for nine years.\"}\n",
            "Here is the profile: {\"name\": \"John Doe\", \"email\": \"unknown\"}\n",
            &["form", "only-json", "real-values"],
        ),
        example(
            "readme",
            &format!(
                "# quill\n\nquill turns a folder of notes into a book, for people who write in plain text. {}\n\n\
                 ## Install\n\n```sh\ncargo install quill\nquill notes/ -o book.epub\n```\n\n\
                 It reads Markdown and nothing else.\n\nLicence: MIT.\n",
                "It reads every note once, sorts them by date, and writes one file that a reader opens. "
                    .repeat(5)
            ),
            "quill\n\nA blazing, revolutionary, cutting-edge tool that seamlessly does everything. TODO: [docs]()\n",
            &["title", "example", "licence", "install", "finished", "plain-words", "length"],
        ),
        example(
            "release-notes",
            "## 1.4.0\n\n### Breaking changes\n\n- The flag `--fast` is gone; use `--level 1` instead.\n\n\
             ### Fixed\n\n- Files with a space in their name can be opened again.\n",
            "New release\n\n- Merge pull request #12 from fork/main\n- chore(ci): bump\n\nBug fixes and performance \
             improvements.\n",
            &["version", "sections", "no-log", "concrete"],
        ),
        example(
            "sql",
            "-- Customers without an order since a year.\nSELECT c.id, c.name\nFROM customer AS c\n\
             LEFT JOIN orders AS o ON o.customer_id = c.id AND o.placed_at > now() - interval '1 year'\n\
             WHERE o.id IS NULL;\nUPDATE customer SET active = false WHERE id = $1;\n",
            "```sql\nSELECT * FROM customer c, orders o WHERE o.name = '{name}';\nDELETE FROM orders;\n\
             UPDATE customer SET active = false;\nDROP TABLE orders\n```\n",
            &[
                "only-sql",
                "statements",
                "no-destruction",
                "bounded-writes",
                "named-columns",
                "explicit-joins",
                "no-injection",
            ],
        ),
    ]
}

/// Evaluates a text with an example.
fn judge(example: &Example, text: &str, code: i32) -> Value {
    let criteria = path(example.name);
    let shown = Test::new()
        .args(["criteria", "show", "--format", "json"])
        .arg(&criteria)
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
        .args(["--provider", "scripted:judge.toml", "-c"])
        .arg(&criteria)
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
fn each_example_tells_good_from_bad() {
    each(
        &examples(),
        |example| example.name.to_owned(),
        |example| {
            let good = judge(example, &example.good, 0);
            assert_eq!(missed(&good), Vec::<&str>::new(), "{good:#}");
            let bad = judge(example, &example.bad, 3);
            assert_eq!(missed(&bad), example.missed, "{bad:#}");
        },
    );
}

#[test]
fn each_example_is_valid_and_has_test_texts() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(path("x").parent().expect("a folder"))
        .expect("examples")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    let ran = Test::new()
        .args(["criteria", "check"])
        .args(&files)
        .stdout("")
        .stderr_lacks("warning")
        .run();
    assert_eq!(ran.stderr.lines().count(), files.len());
    let mut tested: Vec<PathBuf> = examples().iter().map(|it| path(it.name)).collect();
    tested.sort();
    assert_eq!(
        files, tested,
        "an example without texts, or texts without an example"
    );
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
        .args(["evaluate", "README.md", "-c"])
        .arg(path("readme"))
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
        .arg(root.join(criteria))
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
