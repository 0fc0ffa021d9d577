//! The choice of the model, and which key is sent where.

use serde_json::json;

use crate::harness::{KEY, Test};
use crate::plan::{CRITERIA, FIRST, answering, usual_server, verdict};
use crate::support::server::{Fault, Protocol, Purpose, Reply, Server};

/// A world without any model settings.
fn draft() -> Test {
    Test::new().file("criteria.toml", CRITERIA).args([
        "draft",
        "Write a line.",
        "-c",
        "criteria.toml",
    ])
}

#[test]
fn a_running_ollama_is_used_by_default() {
    let server = usual_server();
    server.models(&[("nomic-embed-text", 2048), ("qwen3:8b", 8192)]);
    draft()
        .env("OLLAMA_HOST", server.url())
        // A cloud key alone does not send the prompt to the cloud.
        .env("OPENAI_API_KEY", KEY)
        .stdout("The second draft.\n")
        .stderr_has("model: ollama:qwen3:8b, the only model installed (Ollama at http://127.0.0.1:")
        .stderr_has("); choose another with `--model PROVIDER:NAME`")
        .run();
    for request in server.requests() {
        assert_eq!(
            request.header("authorization"),
            None,
            "the key is not Ollama's"
        );
    }
    assert_eq!(server.chats()[0].body["model"], "qwen3:8b");
    // By its host and port only, too.
    let server = usual_server();
    draft()
        .env("OLLAMA_HOST", server.url().trim_start_matches("http://"))
        .run();
}

/// One context window for the whole run, and no silent truncation.
#[test]
fn ollama_gets_the_same_window_in_every_call() {
    let server = usual_server();
    draft().env("OLLAMA_HOST", server.url()).run();
    let windows: Vec<_> = server
        .chats()
        .iter()
        .map(|chat| chat.body["options"]["num_ctx"].clone())
        .collect();
    assert!(windows[0].is_u64());
    assert!(
        windows.iter().all(|window| *window == windows[0]),
        "{windows:?}"
    );
    for chat in server.chats() {
        assert_eq!(chat.body["truncate"], false);
        // Another value would make Ollama reload the model.
        assert_eq!(chat.body["shift"], serde_json::Value::Null);
    }
}

#[test]
fn a_cloud_key_is_used_and_reported() {
    let server = usual_server();
    // A proxy in place of the cloud, at the address in the provider's own variable.
    let ran = draft()
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", KEY)
        .stdout("The second draft.\n")
        .stderr_has("model: openai:test, from OPENAI_BASE_URL")
        .run();
    assert!(
        ran.stderr
            .contains("choose another with `--model PROVIDER:NAME`")
    );
    // With nothing but the key. The proxy refuses the connection after the message.
    draft()
        .env("OPENAI_API_KEY", KEY)
        .env("HTTPS_PROXY", "http://127.0.0.1:1")
        .args(["--retries", "0"])
        .code(4)
        .stdout("")
        .stderr_has("OPENAI_API_KEY is set; choose another")
        .stderr_has("your prompt leaves this machine for https://api.openai.com/v1")
        .run();
}

#[test]
fn offline_allows_only_this_machine() {
    draft()
        .env("OPENAI_API_KEY", KEY)
        .args(["--offline", "-m", "openai:gpt-5-mini"])
        .code(2)
        .stdout("")
        .stderr_has("which --offline forbids")
        .stderr_has("hint: ")
        .run();
    let server = usual_server();
    draft()
        .env("OLLAMA_HOST", server.url())
        .arg("--offline")
        .run();
}

#[cfg(not(feature = "embedded"))]
#[test]
fn without_any_model_the_error_says_what_to_do() {
    draft()
        .code(2)
        .stdout("")
        .stderr_has("this build of reflect has no embedded model")
        .stderr_has("hint: start Ollama, set a provider's key, give `--base-url`")
        .run();
}

/// A key is sent only to its provider's address.
#[test]
fn a_key_goes_to_its_own_server_only() {
    let server = usual_server();
    draft()
        .env("OPENAI_API_KEY", KEY)
        .args(["--base-url", &server.openai_url(), "-m", "test"])
        .stdout("The second draft.\n")
        .run();
    for request in server.requests() {
        assert_eq!(request.header("authorization"), None, "{}", request.path);
    }
    let server = usual_server();
    draft()
        .env("OPENAI_API_KEY", KEY)
        .env("REFLECT_BASE_URL", server.openai_url())
        .args(["-m", "openai:test"])
        .run();
    for request in server.requests() {
        assert_eq!(request.header("authorization"), None, "{}", request.path);
    }
    // A key for a custom address is sent there.
    let server = usual_server();
    draft()
        .env("OPENAI_API_KEY", "sk-another-key-0123456789")
        .env("REFLECT_API_KEY", KEY)
        .args(["--base-url", &server.openai_url(), "-m", "test"])
        .run();
    for request in server.requests() {
        assert_eq!(
            request.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
    }
}

/// A judge at another provider does not receive the writer's key.
#[test]
fn each_of_two_providers_gets_its_own_key() {
    let writer = answering([Reply::text(FIRST)]);
    let judge = answering([Reply::text(&verdict(5).to_string())]);
    draft()
        .env("OPENAI_BASE_URL", writer.openai_url())
        .env("OPENAI_API_KEY", KEY)
        .env("OLLAMA_HOST", judge.url())
        .args(["-m", "openai:test", "--judge-model", "ollama:test"])
        .stdout("The first draft.\n")
        .stderr_has("judge: ollama:test")
        .run();
    assert_eq!(writer.calls(), 1);
    assert_eq!(judge.calls(), 1);
    for request in judge.requests() {
        assert_eq!(request.header("authorization"), None);
    }
}

#[test]
fn no_proxy_is_used_for_this_machine() {
    for protocol in [Protocol::Ollama, Protocol::OpenAi] {
        let server = usual_server();
        let mut test = crate::plan::draft(&server, protocol).stdout("The second draft.\n");
        for name in [
            "HTTP_PROXY",
            "http_proxy",
            "HTTPS_PROXY",
            "https_proxy",
            "ALL_PROXY",
            "all_proxy",
        ] {
            test = test.env(name, "http://127.0.0.1:1");
        }
        test.run();
    }
}

#[test]
fn every_way_to_name_a_model() {
    let cases: [(&[&str], &str, Protocol); 7] = [
        (&["-m", "ollama:qwen3:8b"], "qwen3:8b", Protocol::Ollama),
        (&["-m", "qwen3:8b"], "qwen3:8b", Protocol::Ollama),
        (
            &["-m", "qwen3:8b", "--provider", "ollama"],
            "qwen3:8b",
            Protocol::Ollama,
        ),
        (&["--provider", "ollama"], "test", Protocol::Ollama),
        (&["-m", "openai:gpt"], "gpt", Protocol::OpenAi),
        (
            &["-m", "org/name:free", "--provider", "openai"],
            "org/name:free",
            Protocol::OpenAi,
        ),
        (&["-m", "openai:"], "test", Protocol::OpenAi),
    ];
    for (args, model, protocol) in cases {
        let server = usual_server();
        server.models(&[(
            if protocol == Protocol::Ollama {
                model
            } else {
                "test"
            },
            8192,
        )]);
        let mut test = draft().env("OLLAMA_HOST", server.url());
        if protocol == Protocol::OpenAi {
            test = test
                .env("OPENAI_BASE_URL", server.openai_url())
                .env("OPENAI_API_KEY", KEY);
        }
        test.args(args).stdout("The second draft.\n").run();
        let chat = &server.chats()[0];
        assert_eq!(chat.body["model"], model, "{args:?}");
        assert_eq!(chat.protocol(), protocol, "{args:?}");
    }
}

#[test]
fn invalid_model_names() {
    let cases: [(&[&str], i32, &[&str]); 6] = [
        (
            &["--provider", "olama"],
            2,
            &["unknown provider `olama`", "did you mean `ollama`?"],
        ),
        (
            &["--provider", "acme"],
            2,
            &["unknown provider `acme`", "known providers: ", "openrouter"],
        ),
        (
            &["-m", "gpt-5-mini"],
            2,
            &[
                "unknown provider of the model `gpt-5-mini`",
                "--model openai:NAME",
            ],
        ),
        (&["--base-url", "http://"], 2, &["--base-url"]),
        (&["--base-url", "ftp://127.0.0.1/v1"], 2, &["ftp"]),
        (
            &["-m", "openai:gpt-5-mini"],
            4,
            &["no key for `openai`", "OPENAI_API_KEY"],
        ),
    ];
    for (args, code, said) in cases {
        let mut test = draft()
            .args(args)
            .code(code)
            .stdout("")
            .stderr_has("error: ");
        for part in said {
            test = test.stderr_has(part);
        }
        test.run();
    }
}

#[test]
fn a_server_with_many_models_needs_a_choice() {
    let server = Server::start();
    server.models(&[("a", 1), ("b", 1)]);
    draft()
        .args(["--base-url", &server.openai_url()])
        .code(2)
        .stderr_has("has 2 models")
        .stderr_has("choose one with `--model NAME`: a, b")
        .run();
    assert_eq!(server.calls(), 0);
    let server = usual_server();
    draft()
        .args(["--base-url", &server.openai_url()])
        .stdout("The second draft.\n")
        .stderr_has("openai:test")
        .run();
}

#[test]
fn a_model_that_ollama_does_not_have() {
    let server = Server::start();
    server.models(&[("qwen3:8b", 8192)]);
    draft()
        .env("OLLAMA_HOST", server.url())
        .args(["-m", "ollama:qwen3:88b"])
        .code(4)
        .stdout("")
        .stderr_has("ollama pull qwen3:88b")
        .stderr_has("`qwen3:8b`")
        .run();
    // An Ollama without models counts as no Ollama, unless it is named.
    let server = Server::start();
    server.models(&[]);
    draft()
        .env("OLLAMA_HOST", server.url())
        .args(["--provider", "ollama"])
        .code(4)
        .stderr_has("has no models")
        .stderr_has("hint: download one, for example with `ollama pull")
        .run();
}

/// A missing judge is found before the first draft is paid for.
#[test]
fn other_models_are_looked_up_before_the_first_call() {
    let server = usual_server();
    server.models(&[("writer-large", 8192), ("judge-small", 8192)]);
    let of = |args: &[&str]| {
        draft()
            .env("OPENAI_BASE_URL", server.openai_url())
            .env("OPENAI_API_KEY", KEY)
            .args(["-m", "openai:writer-large"])
            .args(args)
    };
    for args in [
        ["--judge-model", "judge-smal"],
        ["--stronger-model", "judge-smal"],
    ] {
        of(&args)
            .code(4)
            .stderr_has("judge-smal")
            .stderr_has("did you mean `judge-small`")
            .run();
    }
    assert_eq!(server.calls(), 0);
    of(&["--judge-model", "judge-small"])
        .stdout("The second draft.\n")
        .run();
}

#[test]
fn models_list() {
    let server = Server::start();
    server.models(&[("qwen3:8b", 8192), ("gemma", 4096)]);
    Test::new()
        .env("OLLAMA_HOST", server.url())
        .args(["models", "list", "--provider", "ollama"])
        .stdout("ollama:qwen3:8b  1.0B Q4_K_M, 1 MB\nollama:gemma     1.0B Q4_K_M, 1 MB\n")
        .run();
    let listed = Test::new()
        .env("OPENAI_API_KEY", KEY)
        .args([
            "models",
            "list",
            "--json",
            "--base-url",
            &server.openai_url(),
        ])
        .run()
        .json();
    let mut names: Vec<_> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|m| m["model"].clone())
        .collect();
    names.sort_by_key(ToString::to_string);
    assert_eq!(names, [json!("gemma"), json!("qwen3:8b")]);
    Test::new()
        .args(["models", "list"])
        .stderr_has("ollama: cannot reach the server")
        .run();
    Test::new()
        .args(["models", "list", "--provider", "olama"])
        .code(2)
        .stderr_has("did you mean `ollama`?")
        .run();
}

/// Embedded models with a short name are listed before they are downloaded.
#[cfg(feature = "embedded")]
#[test]
fn named_embedded_models_are_listed_before_their_download() {
    let list = || Test::new().args(["models", "list", "--provider", "embedded"]);
    list()
        .stdout(
            "embedded:smollm2-135m-instruct  Apache-2.0, 98 MB, not downloaded\n\
             embedded:qwen3-0.6b             Apache-2.0, 640 MB, not downloaded\n\
             embedded:smollm2-1.7b           Apache-2.0, 1060 MB, not downloaded\n\
             embedded:qwen3-1.7b             Apache-2.0, 1830 MB, not downloaded\n\
             embedded:qwen3-4b               Apache-2.0, 2500 MB, not downloaded\n",
        )
        .run();
    let listed = list().arg("--json").run().json();
    assert_eq!(listed[0]["model"], "smollm2-135m-instruct");
    assert_eq!(listed[0]["fetched"], false);
    assert_eq!(listed[3]["model"], "qwen3-1.7b");
    assert_eq!(listed.as_array().map(Vec::len), Some(5));
}

#[test]
fn the_list_names_missing_keys() {
    Test::new()
        .args(["models", "list", "--provider", "groq"])
        .code(4)
        .stdout("")
        .stderr_has("no key for `groq`")
        .stderr_has("GROQ_API_KEY")
        .run();
    let ran = Test::new()
        .file(
            "../home/.config/reflect/config.toml",
            "[providers.groq]\nmodel = 'x'\n",
        )
        .args(["models", "list"])
        .run();
    let line = ran.stderr.lines().find(|line| line.starts_with("groq: "));
    assert!(
        line.unwrap_or_default().contains("GROQ_API_KEY"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_named_provider_overrides_the_model_of_a_lower_layer() {
    let script = "[[reply]]\ntext = \"From the script.\"\n";
    for lower in [
        ("REFLECT_MODEL", "ollama:qwen3"),
        ("REFLECT_MODEL", "qwen3"),
    ] {
        Test::new()
            .file(
                "hard.toml",
                "name = 'hard'\n[[criteria]]\nname = 'l'\nevaluator = 'length'\nmin = 1\n",
            )
            .file("s.toml", script)
            .env(lower.0, lower.1)
            .args([
                "draft",
                "Write a line.",
                "-c",
                "hard.toml",
                "--provider",
                "scripted:s.toml",
            ])
            .stdout("From the script.\n")
            .run();
    }
    Test::new()
        .file(
            "hard.toml",
            "name = 'hard'\n[[criteria]]\nname = 'l'\nevaluator = 'length'\nmin = 1\n",
        )
        .file("s.toml", script)
        .file(".reflect.toml", "model = 'openai:gpt-5-mini'\n")
        .env("OPENAI_API_KEY", "sk-not-to-be-used")
        .args([
            "draft",
            "Write a line.",
            "-c",
            "hard.toml",
            "--provider",
            "scripted:s.toml",
        ])
        .stdout("From the script.\n")
        .run();
}

/// If a server rejects a call without a key, the message says which key was not sent and what to set.
#[test]
fn a_missing_key_is_named() {
    let refusing = || {
        let server = Server::start();
        let body = json!({"error": {"message": "no key", "code": "invalid_api_key"}});
        server.on(Purpose::Write, move |_| Fault::error(401, &body));
        server
    };
    let server = refusing();
    draft()
        .env("OPENAI_API_KEY", KEY)
        .args(["--base-url", &server.openai_url(), "-m", "test"])
        .code(4)
        .stderr_has(
            "hint: OPENAI_API_KEY is not sent to the custom address 127.0.0.1; set REFLECT_API_KEY",
        )
        .run();
    draft()
        .args(["--base-url", &server.openai_url(), "-m", "test"])
        .code(4)
        .stderr_has("set REFLECT_API_KEY to the key for 127.0.0.1")
        .run();
    let config = format!(
        "[providers.work]\nbase_url = '{}'\napi_key_env = 'WORK_KEY'\n",
        server.openai_url()
    );
    let user = "../home/.config/reflect/config.toml";
    draft()
        .file(user, &config)
        .args(["-m", "work:test"])
        .code(4)
        .stderr_has("`api_key_env` of `work` names WORK_KEY, which is not set")
        .run();
    // `doctor` reports the same.
    let ran = Test::new()
        .file(user, &config)
        .args(["doctor", "--no-calls", "-m", "work:test"])
        .run();
    assert!(
        ran.stdout.contains("names WORK_KEY, which is not set"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("none is needed"), "{}", ran.stdout);
    // A key that was sent has another message.
    draft()
        .env("REFLECT_API_KEY", KEY)
        .args(["--base-url", &server.openai_url(), "-m", "test"])
        .code(4)
        .stderr_has("hint: check that the API key is set")
        .run();
}

#[test]
fn a_misspelt_provider_before_a_model_is_recognized() {
    let server = Server::start();
    for host in [server.url(), "127.0.0.1:1".to_owned()] {
        draft()
            .env("OLLAMA_HOST", host)
            .env("OPENAI_API_KEY", KEY)
            .args(["-m", "opnai:gpt-5-mini"])
            .env("HTTPS_PROXY", "http://127.0.0.1:1")
            .stderr_has("did you mean `openai:gpt-5-mini`?")
            .stderr_lacks("ollama pull")
            .code(if server.requests().is_empty() { 4 } else { 2 })
            .run();
    }
}
