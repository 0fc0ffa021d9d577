//! `docs/recipes.md`: every recipe is run as it stands there, with scripted models.

use std::path::Path;

use serde_json::Value;

use crate::harness::{Ran, Test};
use crate::script::has;

const CRITERIA: &str = "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 8\n";

/// The block of the page with this text after its opening fence.
fn recipe(kind: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/recipes.md");
    let page = std::fs::read_to_string(page)
        .expect("the page")
        .replace("\r\n", "\n");
    let (_, rest) = page
        .split_once(&format!("\n```{kind}\n"))
        .expect("the recipe");
    rest.split_once("\n```\n").expect("its end").0.to_owned() + "\n"
}

/// A shell command in a folder where `reflect` is on the path and answers with this draft.
fn sh(draft: &str, command: &str) -> Test {
    let program = Path::new(env!("CARGO_BIN_EXE_reflect"));
    let folder = program.parent().expect("a folder").display();
    let path = std::env::var("PATH").unwrap_or_default();
    Test::new()
        .program("sh")
        .args(["-ec", command])
        .env("PATH", format!("{folder}:{path}"))
        .env("REFLECT_MODEL", "scripted:script.toml")
        .file(
            "script.toml",
            format!("[[reply]]\ntimes = 0\ntext = '''{draft}'''\n"),
        )
        .file("commit.toml", CRITERIA)
        .file("blog.toml", CRITERIA)
        .file("notes.toml", CRITERIA)
        .reports()
}

const REPOSITORY: &str = "\
    git init -q . && git config user.email ada@example.org && git config user.name Ada\n\
    cp hook .git/hooks/$NAME && chmod +x .git/hooks/$NAME\n\
    echo 'A text.' > a.md && git add a.md\n";

/// A commit in a new repository with this hook.
fn commit(hook: &str, draft: &str, command: &str) -> Test {
    let script = format!(
        "export GIT_CONFIG_GLOBAL=/dev/null REFLECT_MODEL=scripted:$PWD/script.toml\n\
         {REPOSITORY}{command}"
    );
    sh(draft, &script)
        .file("hook", recipe(&format!("sh {hook}")))
        .env("NAME", hook)
}

const LOG: &str = "git log --format=%B";

#[test]
fn git_commits_with_a_drafted_message() {
    if !has("git") {
        return;
    }
    // The editor accepts what is there.
    let drafted = format!("GIT_EDITOR=true git commit -q && {LOG}");
    commit("prepare-commit-msg", "Add a text", &drafted)
        .stdout("Add a text\n\n")
        .run();
    // A message of one's own stays.
    let own = format!("git commit -q -m 'My words' && {LOG}");
    commit("prepare-commit-msg", "Add a text", &own)
        .stdout("My words\n\n")
        .run();
    // Without a draft that meets the criteria there is no message, and git does not commit.
    let long = "one two three four five six seven eight nine";
    commit("prepare-commit-msg", long, "GIT_EDITOR=true git commit -q")
        .code(1)
        .stderr_has("empty commit message")
        .run();
}

#[test]
fn git_rejects_a_message_that_does_not_meet_the_criteria() {
    if !has("git") {
        return;
    }
    commit(
        "commit-msg",
        "",
        &format!("git commit -q -m 'Add a text' && {LOG}"),
    )
    .stdout_has("Add a text\n")
    .run();
    let long = "git commit -q -m 'one two three four five six seven eight nine'";
    let ran = commit("commit-msg", "", long).code(1).run();
    assert!(
        said(&ran).contains("at most 8 are allowed"),
        "{}",
        said(&ran)
    );
}

/// Hooks print to where git wants it.
fn said(ran: &Ran) -> String {
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn make_drafts_and_checks() {
    if !has("make") {
        return;
    }
    let make = |draft: &str, command: &str| {
        sh(draft, command)
            .file("Makefile", recipe("make"))
            .file("briefs/tides.md", "A post about tides.")
    };
    let ran = make(
        "The moon.",
        "make -s && cat posts/tides.md && make -s check && make",
    )
    .run();
    assert!(
        ran.stdout
            .starts_with("The moon.\nposts/tides.md: meets the criteria"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("Nothing to be done"), "{}", ran.stdout);
    let long = "one two three four five six seven eight nine";
    let ran = make(long, "make -s").code(2).run();
    assert!(!ran.path("posts/tides.md").exists());
}

#[test]
fn the_shell_explains_what_a_program_printed() {
    let command = ". ./explain.sh; echo 'error[E0382]: use of moved value' | explain briefly";
    let ran = sh("It was moved.", command)
        .file("explain.sh", recipe("sh explain"))
        .stdout("It was moved.\n")
        .run();
    let list = ran
        .then(["-c", "\"$REFLECT\" history show --format ndjson"])
        .program("sh")
        .env("REFLECT", env!("CARGO_BIN_EXE_reflect"))
        .run();
    let task = &list.lines()[0]["task"];
    assert!(
        task["prompt"]
            .as_str()
            .unwrap()
            .ends_with("how to fix it. briefly"),
        "{task}"
    );
    assert!(task.to_string().contains("use of moved value"), "{task}");
}

/// A text with an issue that has a line, and one that has none.
const WRONG: &str = "One two three four five six seven eight.\n\nTODO\n";
const BLOG: &str = "[[criteria]]\nname = 'length'\nevaluator = 'length'\nmax = 8\n\
    [[criteria]]\nname = 'done'\nevaluator = 'regex'\npattern = 'TODO'\nexpect = 'absent'\n\
    message = '50 % done'\n";

#[test]
fn vim_lists_the_issues_and_revises() {
    if !has("vim") {
        return;
    }
    let vim = |commands: &str| {
        let script =
            format!("vim -es -u NONE -N -S recipe.vim -S test.vim a.md < /dev/null; {commands}");
        sh("Done.", &script)
            .file("recipe.vim", recipe("vim"))
            .file("a.md", WRONG)
            .file("blog.toml", BLOG)
    };
    let found = vim("cat found")
        .file(
            "test.vim",
            "Reflect\n\
             let found = map(getqflist(), {_, it -> bufname(it.bufnr) . ':' . it.lnum . ':' . it.type . ': ' . it.text})\n\
             call writefile(found, 'found')\nqall!\n",
        )
        .run();
    let lines: Vec<&str> = found.stdout.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "a.md:0:e: the text has 9 words, at most 8 are allowed fix: cut at least 1 word",
            "a.md:3:e: 50 % done fix: remove or reword `TODO` in line 3",
        ]
    );
    vim("cat a.md")
        .file("test.vim", "Revise\nwrite\nqall!\n")
        .stdout("Done.\n")
        .run();
}

/// VS Code cannot be installed here: its part, to fill in variables and to match lines, is played.
#[test]
fn the_tasks_of_vs_code_run_and_their_matchers_find_the_issues() {
    let tasks: Value = serde_json::from_str(&recipe("json tasks")).expect("JSON");
    let run = |task: &Value, code: i32| {
        assert_eq!(task["command"], "reflect");
        let args = task["args"].as_array().expect("arguments");
        let args = args.iter().map(|arg| {
            let arg = arg.as_str().expect("a text");
            arg.replace("${relativeFile}", "a.md")
        });
        Test::new()
            .args(args)
            .file("a.md", WRONG)
            .file("blog.toml", BLOG)
            .file("script.toml", "[[reply]]\ntext = 'Done.'\ntimes = 0\n")
            .env("REFLECT_MODEL", "scripted:script.toml")
            .code(code)
            .run()
    };
    let [evaluate, revise] = tasks["tasks"].as_array().expect("tasks").as_slice() else {
        panic!("{tasks}");
    };
    let ran = run(evaluate, 3);
    let mut found = Vec::new();
    for line in ran.stdout.lines() {
        for matcher in evaluate["problemMatcher"].as_array().expect("matchers") {
            let pattern = &matcher["pattern"];
            let regex = regex::Regex::new(pattern["regexp"].as_str().unwrap()).expect("a pattern");
            if let Some(parts) = regex.captures(line) {
                let part = |name: &str| {
                    let group = pattern[name].as_u64();
                    group.map_or("", |group| &parts[usize::try_from(group).unwrap()])
                };
                found.push(["severity", "file", "line", "code"].map(part).join(" "));
            }
        }
    }
    assert_eq!(
        found,
        [
            "error a.md  length",
            "error a.md 3 done",
            "error a.md  overall_score"
        ]
    );
    assert_eq!(run(revise, 0).read("a.md"), "Done.\n");
}
