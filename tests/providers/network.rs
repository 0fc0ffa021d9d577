//! Network errors, proxies and connections.

use crate::setup::{BOTH, Setup, ask, call, run, writing};
use crate::support::server::{Fault, Protocol, Reply, Server};
use futures_util::StreamExt;
use reflect::model::ollama::find_ollama;
use reflect::model::{ApiKey, ChatEvent, ErrorClass, RetryPolicy, Timeouts, complete};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

#[test]
fn timeouts() {
    let setup = |protocol| Setup {
        retries: RetryPolicy::none(),
        timeouts: Timeouts {
            first_token: Duration::from_millis(400),
            idle: Duration::from_millis(300),
            ..Timeouts::default()
        },
        ..Setup::new(protocol)
    };
    let second = Duration::from_secs(2);
    for protocol in BOTH {
        for (fault, words) in [
            (Fault::SlowFirst(second), "no response within 0.4 s"),
            (
                Fault::Idle(vec!["a".to_owned()], second),
                "the reply stalled: no response within 0.3 s",
            ),
        ] {
            let server = Server::start();
            server.fault(fault);
            let start = Instant::now();
            let error = ask(&setup(protocol), &server, writing()).error();
            assert_eq!(error.class, ErrorClass::Transient);
            assert!(error.message.contains(words), "{error}");
            assert!(start.elapsed() < second);
        }
        // A slow reply that keeps arriving is not a timeout.
        let server = Server::start();
        server.reply(Reply::pieces(&["a"; 8]).wait(Duration::from_millis(60)));
        assert_eq!(
            ask(&setup(protocol), &server, writing()).ok().text,
            "aaaaaaaa"
        );
    }
}

#[test]
fn a_call_has_a_total_time_limit() {
    let server = Server::start();
    server.reply(Reply::pieces(&["a"; 200]).wait(Duration::from_millis(10)));
    let setup = Setup {
        timeouts: Timeouts {
            total: Duration::from_millis(200),
            ..Timeouts::default()
        },
        ..Setup::new(Protocol::Ollama)
    };
    let error = ask(&setup, &server, writing()).error();
    assert!(
        error.message.contains("longer than 0.2 s in total"),
        "{error}"
    );
    assert_eq!(server.calls(), 1);
}

#[test]
fn an_incomplete_error_response_counts_towards_the_limit() {
    for protocol in BOTH {
        for status in [500, 404] {
            let server = Server::start();
            server.fault(Fault::HangingError(status, Duration::from_secs(30)));
            let setup = Setup {
                timeouts: Timeouts {
                    total: Duration::from_millis(200),
                    ..Timeouts::default()
                },
                ..Setup::new(protocol)
            };
            let begun = Instant::now();
            let error = ask(&setup, &server, writing()).error();
            assert_eq!(error.status, Some(status));
            // Without the limit, it takes 10 s.
            assert!(begun.elapsed() < Duration::from_secs(8), "{protocol:?}");
            assert_eq!(server.calls(), 1);
        }
    }
}

#[test]
fn no_server_is_listening() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{free}");
    for protocol in BOTH {
        let start = Instant::now();
        let model = Setup::new(protocol).model(&url);
        let outcome = call(&*model, writing());
        assert_eq!(outcome.reply.attempts, 1);
        let error = outcome.error();
        assert_eq!(error.class, ErrorClass::Unreachable);
        assert!(start.elapsed() < Duration::from_secs(1));
        let hint = error.hint.unwrap();
        match protocol {
            Protocol::Ollama => {
                assert!(hint.contains("is `ollama serve` running? tried"), "{hint}");
                assert!(hint.contains(&url), "{hint}");
            }
            Protocol::OpenAi => {
                assert!(hint.contains("no server listens at that address"), "{hint}");
            }
        }
    }
    let connection = Setup::new(Protocol::Ollama).connection(&url);
    let start = Instant::now();
    let times = (Duration::from_millis(300), Duration::from_secs(5));
    let found = run(find_ollama(&connection, times, || {
        panic!("the server is not busy")
    }));
    assert_eq!(found.unwrap(), None);
    assert!(start.elapsed() < Duration::from_secs(1));
}

/// A busy Ollama accepts the connection, and responds to the second request.
#[test]
fn a_busy_ollama_is_asked_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        // Kept open, so that only the timeout applies.
        let mut silent = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let mut head = [0; 1024];
            let read = stream.read(&mut head).unwrap();
            if silent.iter().any(|asked| *asked) && read > 0 {
                let body = "{\"models\":[{\"name\":\"slow:1b\"}]}";
                let length = body.len();
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
                )
                .unwrap();
                return;
            }
            silent.push(read > 0);
            std::mem::forget(stream);
        }
    });
    let connection = Setup::new(Protocol::Ollama).connection(&url);
    let times = (Duration::from_millis(300), Duration::from_secs(20));
    let mut waited = false;
    let found = run(find_ollama(&connection, times, || waited = true));
    assert_eq!(found.unwrap().unwrap()[0].name, "slow:1b");
    assert!(waited);
    server.join().unwrap();
}

#[test]
fn a_server_without_tls() {
    let server = Server::start();
    let url = server.url().replace("http://", "https://");
    let error = call(&*Setup::new(Protocol::OpenAi).model(&url), writing()).error();
    assert_eq!(error.class, ErrorClass::Unreachable, "{error}");
    assert!(error.message.starts_with("TLS failed"), "{error}");
}

#[test]
fn a_name_that_does_not_exist() {
    let setup = Setup {
        retries: RetryPolicy::none(),
        ..Setup::new(Protocol::OpenAi)
    };
    let error = call(&*setup.model("http://nowhere.invalid"), writing()).error();
    // Without a network, even the name server is unreachable.
    assert!(
        matches!(error.class, ErrorClass::Unreachable | ErrorClass::Transient),
        "{error}"
    );
    if error.message.contains("cannot resolve") {
        assert!(error.message.contains("nowhere.invalid"), "{error}");
    } else {
        eprintln!("a proxy answers for all names here: {error}");
    }
}

#[test]
fn a_redirect_is_not_followed() {
    let target = Server::start();
    let server = Server::start();
    server.fault(Fault::Status {
        status: 307,
        headers: vec![(
            "Location".to_owned(),
            format!("{}/v1/chat/completions", target.url()),
        )],
        body: String::new(),
    });
    let setup = Setup {
        key: Some(ApiKey::for_url("sk-12345678", &server.url()).unwrap()),
        ..Setup::new(Protocol::OpenAi)
    };
    let error = ask(&setup, &server, writing()).error();
    assert!(error.message.contains(&target.url()), "{error}");
    assert!(target.requests().is_empty());
}

#[test]
fn connections_are_reused() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply_text("a").reply_text("b").reply_text("c");
        let model = Setup::new(protocol).model(&server.url());
        run(async {
            for _ in 0..3 {
                complete(&*model, writing(), |_| {}).await.1.unwrap();
            }
        });
        assert_eq!(server.connections(), 1, "{protocol:?}");
    }
}

#[test]
fn a_kept_connection_closed_before_the_request_is_not_an_error() {
    for protocol in BOTH {
        let server = Server::start();
        server.close_kept_connections();
        server.reply_text("a").reply_text("b").reply_text("c");
        let setup = Setup {
            retries: RetryPolicy::none(),
            ..Setup::new(protocol)
        };
        let model = setup.model(&server.url());
        run(async {
            for expected in ["a", "b", "c"] {
                let (reply, result) = complete(&*model, writing(), |_| {}).await;
                result.unwrap();
                assert_eq!(reply.text, expected);
                assert_eq!(reply.attempts, 1);
            }
        });
        // The request on the closed connection was not read.
        assert_eq!(server.calls(), 3, "{protocol:?}");
        assert_eq!(server.connections(), 3, "{protocol:?}");
    }
}

/// A request that a server may have read is sent again only as a retry.
#[test]
fn a_kept_connection_closed_after_the_request_is_an_error() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply_text("a");
        server.fault(Fault::SlowFirst(Duration::from_millis(1500)));
        server.reply_text("b");
        let setup = Setup {
            retries: RetryPolicy::none(),
            ..Setup::new(protocol)
        };
        let model = setup.model(&server.url());
        run(async {
            complete(&*model, writing(), |_| {}).await.1.unwrap();
            let (reply, result) = complete(&*model, writing(), |_| {}).await;
            assert_eq!(result.unwrap_err().class, ErrorClass::Transient);
            assert_eq!(reply.attempts, 1);
        });
        assert_eq!(server.calls(), 2, "{protocol:?}");
    }
}

#[test]
fn a_closed_new_connection_is_an_error() {
    for protocol in BOTH {
        let server = Server::start();
        server.reply_text("a").fault(Fault::Reset);
        let setup = Setup {
            retries: RetryPolicy::none(),
            ..Setup::new(protocol)
        };
        let model = setup.model(&server.url());
        run(async {
            complete(&*model, writing(), |_| {}).await.1.unwrap();
            let (reply, result) = complete(&*model, writing(), |_| {}).await;
            assert_eq!(result.unwrap_err().class, ErrorClass::Transient);
            assert_eq!(reply.attempts, 1);
        });
        // The kept connection, then a new one, once.
        assert_eq!(server.calls(), 2, "{protocol:?}");
        assert_eq!(server.connections(), 2, "{protocol:?}");
    }
}

/// Runs another test of this program with a proxy in the environment that does not exist.
#[test]
fn no_proxy_is_used_for_loopback() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "answers::a_plain_reply_arrives_in_pieces"])
        .env("HTTP_PROXY", format!("http://{free}"))
        .env("http_proxy", format!("http://{free}"))
        .env("ALL_PROXY", format!("http://{free}"))
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

/// Ignored by default, because it needs a proxy in the environment: see the next test.
#[test]
#[ignore = "run by another test"]
fn a_call_through_the_proxy_of_the_environment() {
    let model = Setup::new(Protocol::OpenAi).model("http://somewhere.example/v1");
    assert_eq!(call(&*model, writing()).ok().text, "by proxy");
}

#[test]
fn a_proxy_is_used_for_other_addresses() {
    let proxy = Server::start();
    proxy.reply_text("by proxy");
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "network::a_call_through_the_proxy_of_the_environment",
        ])
        .env("HTTP_PROXY", proxy.url())
        .env("http_proxy", proxy.url())
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
    assert!(proxy.chats()[0].path.contains("somewhere.example"));
}

#[test]
fn dropping_the_stream_ends_the_call() {
    let server = Server::start();
    server.reply(Reply::pieces(&["a"; 1000]).wait(Duration::from_millis(5)));
    let model = Setup::new(Protocol::Ollama).model(&server.url());
    run(async {
        let mut stream = model.chat(writing());
        assert_eq!(
            stream.next().await.unwrap().unwrap(),
            ChatEvent::Text("a".to_owned())
        );
    });
    assert_eq!(server.calls(), 1);
}

/// A local server that restarts, e.g. for an update, does not end the run. Once it has responded, refused
/// connections are retried.
#[test]
fn a_server_that_restarts_is_waited_for() {
    let answer = |listener: &TcpListener| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; 65_536];
        let _ = stream.read(&mut bytes).unwrap();
        let body =
            json!({"message": {"content": "a"}, "done": true, "done_reason": "stop"}).to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("http://{address}");
    let (refuse, refused) = std::sync::mpsc::channel();
    let server = std::thread::spawn(move || {
        answer(&listener);
        drop(listener);
        // The server is back after a connection was refused.
        refused.recv().unwrap();
        answer(&TcpListener::bind(address).unwrap());
    });
    let model = Setup::new(Protocol::Ollama).model(&url);
    assert_eq!(call(&*model, writing()).ok().text, "a");
    let (reply, result) = run(complete(&*model, writing(), |event| {
        if let ChatEvent::Retry { error, .. } = event {
            assert_eq!(error.class, ErrorClass::Unreachable);
            refuse.send(()).unwrap();
        }
    }));
    result.unwrap();
    assert_eq!((reply.text.as_str(), reply.attempts), ("a", 2));
    server.join().unwrap();

    // A server that never responded counts as missing.
    let start = Instant::now();
    let error = ask_at(&Setup::new(Protocol::Ollama), &url).error();
    assert_eq!(error.class, ErrorClass::Unreachable);
    assert!(start.elapsed() < Duration::from_secs(10));
}

fn ask_at(setup: &Setup, url: &str) -> crate::setup::Outcome {
    call(&*setup.model(url), writing())
}
