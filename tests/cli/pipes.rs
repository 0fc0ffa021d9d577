//! The program in pipes, redirections and loops, with real shells and tools.

use std::process::{Command, Stdio};

use crate::harness::{Ran, Test};
use crate::plan::{CRITERIA, SECOND, usual_server, with_server};
use crate::support::server::{Protocol, Purpose, Reply, Server};

/// Whether a program is installed. Prints a message if a test is skipped without it.
#[expect(clippy::print_stderr, reason = "skipped tests are reported")]
fn there(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    if !found {
        eprintln!("SKIPPED: `{program}` is not here, and what needs it is not tested");
    }
    found
}

/// Starts a server for any number of runs: a draft, and a verdict that passes.
fn content_server(draft: &'static str) -> Server {
    let server = Server::start();
    server.on(Purpose::Write, move |_| Reply::text(draft));
    server.on(Purpose::Judge, |_| {
        Reply::text(&crate::plan::verdict(5).to_string())
    });
    server
}

/// Runs a line of shell, in which `reflect` is the program.
#[track_caller]
fn shell(test: Test, line: &str) -> Ran {
    let line = format!("reflect() {{ \"$REFLECT\" \"$@\"; }}\n{line}");
    test.env("REFLECT", env!("CARGO_BIN_EXE_reflect"))
        .program("sh")
        .args(["-c", &line])
        .run()
}

fn world(server: &Server) -> Test {
    with_server(server, Protocol::OpenAi).reports()
}

#[test]
fn a_commit_message() {
    if !there("git") {
        return;
    }
    let server = content_server("Say what it is about\n\nIt was not said before.");
    let ran = shell(
        world(&server)
            .file("note.txt", "A note.\n")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_AUTHOR_NAME", "Ada")
            .env("GIT_AUTHOR_EMAIL", "ada@example.com")
            .env("GIT_COMMITTER_NAME", "Ada")
            .env("GIT_COMMITTER_EMAIL", "ada@example.com"),
        "git init -q . && git add note.txt && \
         git diff --cached | reflect draft 'Write the commit message' -c criteria.toml | git commit -q -F - && \
         git log -1 --format=%B",
    );
    assert_eq!(
        ran.stdout.trim_end(),
        "Say what it is about\n\nIt was not said before."
    );
    // The model received the piped text.
    let seen = server.chats()[0].body["messages"].to_string();
    assert!(seen.contains("+A note."), "{seen}");
}

#[test]
fn redirections() {
    let server = usual_server();
    let ran = shell(
        world(&server).file("brief.md", "Write a line."),
        "reflect draft - -c criteria.toml < brief.md > post.md 2> run.log",
    );
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
    assert_eq!(ran.read("post.md"), format!("{SECOND}\n"));
    let log = ran.read("run.log");
    assert!(
        log.contains("draft 2: score") && log.contains("criteria met"),
        "{log}"
    );
    assert!(!log.contains('\u{1b}') && !log.contains('\r'), "{log:?}");
}

#[test]
fn a_gate() {
    let server = content_server("");
    let gate = |test: Test, rest: &str| {
        shell(
            test.file("text.md", "The text."),
            &format!("reflect evaluate text.md -c criteria.toml --format json -q | {rest}"),
        )
    };
    // Without `jq`, with what every shell has.
    let ran = gate(world(&server), "grep -c '\"overall_score\": 1'");
    assert_ne!(ran.stdout.trim(), "0");
    if there("jq") {
        gate(
            world(&server),
            "jq -e '.. | .overall_score? // empty | . >= 0.8' > /dev/null",
        );
    }
}

#[test]
fn only_the_code() {
    let server =
        content_server("Here it is:\n\n```python\nprint(\"hello\")\n```\n\nIt says hello.\n");
    // The output is only code, whether the gate or the flag removed the boilerplate.
    let ran = shell(
        world(&server),
        "reflect draft 'Say hello in Python' -c criteria.toml --extract -q | tee hello.py",
    );
    assert_eq!(ran.stdout, "print(\"hello\")\n");
    assert_eq!(ran.read("hello.py"), ran.stdout);
    let ran = shell(
        world(&server),
        "reflect draft 'Say hello in Python' -c criteria.toml --extract -o hello.py",
    );
    assert_eq!(ran.stdout, "");
    assert_eq!(ran.read("hello.py"), "print(\"hello\")\n");
    // The log contains the complete reply.
    assert_ne!(ran.drafts()[0], "print(\"hello\")");
}

#[test]
fn nothing_to_extract() {
    let server = usual_server();
    with_server(&server, Protocol::OpenAi)
        .args(["draft", "Write.", "-c", "criteria.toml", "--extract"])
        .stdout(&format!("{SECOND}\n"))
        .stderr_has("the draft has no fenced code block")
        .run();
    for format in ["json", "ndjson", "markdown"] {
        with_server(&server, Protocol::OpenAi)
            .args(["draft", "Write.", "-c", "criteria.toml", "--extract"])
            .args(["--format", format])
            .code(2)
            .stderr_has("`--extract`")
            .reports()
            .run();
    }
}

#[test]
fn a_loop_over_files() {
    let server = content_server("Better.");
    server.on(Purpose::Judge, |request| {
        let good = !request.body.to_string().contains("is bad");
        Reply::text(&crate::plan::verdict(if good { 5 } else { 1 }).to_string())
    });
    let ran = shell(
        world(&server)
            .file("a.md", "This is good.\n")
            .file("b.md", "This is bad.\n"),
        "for f in *.md; do reflect revise \"$f\" -c criteria.toml -o \"$f.new\" -q </dev/null || echo \"$f: $?\"; done\n\
         reflect revise gone.md -c criteria.toml -o gone.new -q </dev/null 2>/dev/null || echo \"gone.md: $?\"",
    );
    assert_eq!(ran.stdout, "gone.md: 2\n");
    assert_eq!(ran.read("a.md.new"), "This is good.\n");
    assert_eq!(ran.read("b.md.new"), "Better.\n");
    assert!(!ran.path("gone.new").exists());
}

#[test]
fn a_reader_of_only_the_first_lines() {
    let server = content_server("One.\nTwo.\nThree.");
    let ran = shell(
        world(&server),
        "{ reflect draft 'Write.' -c criteria.toml -q; echo \"code $?\" >&2; } | head -1",
    );
    assert_eq!(ran.stdout, "One.\n");
    assert_eq!(ran.stderr, "code 0\n");
    // A reader that reads nothing.
    let ran = shell(
        world(&server),
        "{ reflect draft 'Write.' -c criteria.toml -q; echo \"code $?\" >&2; } | true",
    );
    assert!(
        ["", "code 0\n"].contains(&ran.stderr.as_str()),
        "{}",
        ran.stderr
    );
}

/// A full disk is an error with a message, and nothing is lost.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk() {
    let server = content_server("The draft.");
    let ran = shell(
        world(&server),
        "reflect draft 'Write.' -c criteria.toml > /dev/full; echo \"code $?\"\n\
         reflect draft 'Write.' -c criteria.toml -o /dev/full; echo \"code $?\"\n\
         reflect draft 'Write.' -c criteria.toml --report /dev/full; echo \"code $?\"\n\
         reflect evaluate text.md -c criteria.toml > /dev/full; echo \"code $?\"\n\
         reflect doctor --no-calls > /dev/full; echo \"code $?\"",
    );
    // The second command prints what its file does not accept. The third has written its draft before it
    // finds the disk of the report full. The fourth has no such file.
    assert_eq!(
        ran.stdout,
        "code 1\nThe draft.\ncode 1\nThe draft.\ncode 1\ncode 2\ncode 1\n"
    );
    assert!(
        ran.stderr.contains("cannot write to stdout"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.contains("cannot write `/dev/full`"),
        "{}",
        ran.stderr
    );
    assert_eq!(ran.drafts(), ["The draft."]);
}

/// The old content stays until the new text is complete, and permissions are kept.
#[cfg(unix)]
#[test]
fn files_are_replaced_whole() {
    use std::os::unix::fs::PermissionsExt as _;
    let server = content_server("The draft.");
    let test = world(&server)
        .file("out.md", "Old.\n")
        .file("criteria.toml", CRITERIA);
    let mode = std::fs::Permissions::from_mode(0o640);
    std::fs::set_permissions(test.path("out.md"), mode).expect("permissions");
    let ran = shell(
        test,
        "reflect draft 'Write.' -c criteria.toml -q -o out.md --report report.json && ls -A",
    );
    assert_eq!(ran.read("out.md"), "The draft.\n");
    assert!(ran.read("report.json").contains("best_evaluation"));
    // No temporary file is left next to them.
    assert!(!ran.stdout.contains(".reflect-"), "{}", ran.stdout);
    let mode = std::fs::metadata(ran.path("out.md"))
        .expect("a file")
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o640);
}
