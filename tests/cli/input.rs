//! The prompt and its context: their sources, and invalid input.

use crate::harness::Test;
use crate::plan::{answering, draft, verdict, with_server};
use crate::support::server::{Protocol, Reply, Server};

/// Starts a server whose first draft passes.
fn content() -> Server {
    answering([Reply::text("A line."), Reply::text(&verdict(5).to_string())])
}

fn run(server: &Server, args: &[&str]) -> Test {
    with_server(server, Protocol::Ollama)
        .args(["draft", "-c", "criteria.toml"])
        .args(args)
}

/// Returns the prompt of the first call.
fn asked(server: &Server) -> String {
    server.chats().first().expect("a call").prompt()
}

#[test]
fn a_prompt_comes_from_the_argument_a_file_or_standard_input() {
    for (test, wanted) in [
        (0, "from the argument"),
        (1, "from a file"),
        (2, "from the pipe"),
        (3, "from a dash"),
    ] {
        let server = content();
        let run = match test {
            0 => run(&server, &["from the argument"]),
            1 => run(&server, &["--prompt-file", "p.md"]).file("p.md", "from a file"),
            2 => run(&server, &[]).stdin("from the pipe"),
            _ => run(&server, &["-"]).stdin("from a dash"),
        };
        run.stdout("A line.\n").run();
        let prompt = asked(&server);
        assert!(prompt.contains(wanted), "{prompt}");
        assert!(!prompt.contains("stdin"), "it is not context: {prompt}");
    }
}

#[test]
fn piped_input_next_to_a_prompt_is_context() {
    for args in [&["Sum it up."][..], &["--prompt-file", "p.md"]] {
        let server = content();
        run(&server, args)
            .file("p.md", "Sum it up.")
            .stdin("the text of the pipe")
            .run();
        let prompt = asked(&server);
        let (task, context) = (
            prompt.find("Sum it up.").expect("the task"),
            prompt.find("the text of the pipe").expect("the context"),
        );
        assert!(context < task, "the task comes last: {prompt}");
        assert!(prompt.contains("stdin"), "it is named: {prompt}");
    }
}

#[test]
fn files_are_context() {
    let server = content();
    run(
        &server,
        &[
            "Sum it up.",
            "-f",
            "a.txt",
            "--file",
            "b.txt",
            "-s",
            "Be brief.",
        ],
    )
    .file("a.txt", "this is a")
    .file("b.txt", "this is b")
    .run();
    let prompt = asked(&server);
    for part in ["a.txt", "this is a", "b.txt", "this is b", "Be brief."] {
        assert!(prompt.contains(part), "{part}: {prompt}");
    }
}

#[test]
fn stdin_can_be_ignored() {
    let server = content();
    run(&server, &["Sum it up.", "--ignore-stdin"])
        .stdin("the text of the pipe")
        .run();
    assert!(!asked(&server).contains("the text of the pipe"));
    // Even if it is never closed, as in a job started by another program.
    let server = content();
    run(&server, &["Sum it up.", "--ignore-stdin"])
        .silent_stdin()
        .stderr_lacks("waiting for standard input")
        .run();
}

/// A message explains the wait for an open pipe.
#[test]
fn a_silent_stdin_is_explained() {
    let server = Server::start();
    let running = run(&server, &["Sum it up."])
        .silent_stdin()
        .stderr_has("waiting for the end of stdin (--ignore-stdin")
        .spawn();
    running.kill_after(std::time::Duration::from_millis(2600));
    assert_eq!(server.calls(), 0);
}

#[test]
fn a_missing_prompt_is_a_usage_error() {
    let cases: [(&[&str], &[u8], &str); 9] = [
        (&[], b"", "no prompt"),
        (&[], b" \n\t\n", "no prompt"),
        (&[""], b"", "the prompt is empty"),
        (&["  \n "], b"", "the prompt is empty"),
        (&["-"], b"", "the prompt is empty"),
        (&["--prompt-file", "empty.md"], b"", "the prompt is empty"),
        (&["--prompt-file", "nowhere.md"], b"", "nowhere.md"),
        (&["--prompt-file", "folder"], b"", "is a directory"),
        (&["Sum it up.", "-f", "nowhere.md"], b"", "nowhere.md"),
    ];
    for (args, stdin, said) in cases {
        let server = Server::start();
        run(&server, args)
            .file("empty.md", "\n")
            .folder("folder")
            .stdin(stdin)
            .code(2)
            .stdout("")
            .stderr_has("error: ")
            .stderr_has(said)
            .run();
        assert!(server.requests().is_empty(), "{args:?}");
    }
}

#[test]
fn a_prompt_in_two_places_is_a_usage_error() {
    let server = Server::start();
    run(&server, &["Sum it up.", "--prompt-file", "p.md"])
        .file("p.md", "Sum it up.")
        .code(2)
        .stderr_has("cannot be used with")
        .run();
}

#[test]
fn input_that_is_not_text_is_rejected() {
    let bytes = b"caf\xe9";
    let cases: [&[&str]; 4] = [
        &[],
        &["-"],
        &["--prompt-file", "p.bin"],
        &["Go.", "-f", "p.bin"],
    ];
    for args in cases {
        let server = Server::start();
        run(&server, args)
            .file("p.bin", bytes)
            .stdin(if args.first() == Some(&"Go.") {
                &b""[..]
            } else {
                &bytes[..]
            })
            .code(2)
            .stdout("")
            .stderr_has("is not UTF-8 text (byte 3)")
            .stderr_has("iconv")
            .run();
        assert!(server.requests().is_empty(), "{args:?}");
    }
}

#[cfg(unix)]
#[test]
fn an_argument_that_is_not_text_is_a_usage_error() {
    use std::os::unix::ffi::OsStrExt as _;
    let server = Server::start();
    run(&server, &[])
        .arg(std::ffi::OsStr::from_bytes(b"caf\xe9"))
        .code(2)
        .stderr_has("UTF-8")
        .run();
}

/// A prompt longer than any context window is sent completely, and the server's error is passed on.
#[test]
fn ten_megabytes() {
    let line = "All work and no play makes Jack a dull boy.\n";
    let text = line.repeat(10_000_000 / line.len());
    let server = content();
    let ran = draft(&server, Protocol::OpenAi).stdin(text.clone()).run();
    assert!(asked(&server).len() > text.len());
    assert!(
        ran.took < std::time::Duration::from_secs(20),
        "{:?}",
        ran.took
    );
}

#[test]
fn input_beyond_the_limit_is_not_read_completely() {
    let server = Server::start();
    run(&server, &["-"])
        .stdin(vec![b'y'; 65 << 20])
        .code(2)
        .stderr_has("stdin is larger than 64 MB")
        .run();
    assert!(server.requests().is_empty());
}
