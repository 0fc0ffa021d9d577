//! Untrusted files: project configuration, criteria, workflows, rows of a batch. They must not open files
//! outside their folder, download anything, or choose a server or provider on their own.

use serde_json::json;

use crate::harness::{KEY, Test, each};
use crate::plan::{CRITERIA, answering, draft, usual_server, verdict, with_server};
use crate::support::server::{Protocol, Reply, Server};

const USER: &str = "../home/.config/reflect/config.toml";

/// A line of a private file, which must not be shown.
const SECRET: &str = "AWS_SECRET = this-is-not-for-you\n";

/// A criterion that is judged by this model.
fn judged_by(model: &str) -> String {
    format!("[[criteria]]\nname = 'clear'\nmodel = '{model}'\n")
}

/// A workflow of one call with these keys.
fn workflow(keys: &serde_json::Value) -> String {
    json!({ "nodes": [{ "name": "ask", "uses": "llm.call", "with": keys }] }).to_string()
}

/// Checks a run that must be rejected, and must not show the private file.
#[track_caller]
fn refused(server: &Server, test: Test, said: &[&str]) {
    let mut test = test
        .file("../home/.env", SECRET)
        .code(2)
        .stderr_has("error: ")
        .stderr_has("hint: ")
        .stderr_lacks("this-is-not-for-you")
        .stderr_lacks("AWS_SECRET");
    for part in said {
        test = test.stderr_has(part);
    }
    let ran = test.run();
    assert!(!ran.stdout.contains("this-is-not-for-you"));
    assert_eq!(server.calls(), 0, "no first call");
}

/// `scripted:PATH` and weights by path are files on this machine.
#[test]
fn only_the_user_may_name_a_file_as_a_model() {
    let names = [
        "scripted:/proc/self/environ",
        "scripted:../home/.env",
        "embedded:../home/.env.gguf",
        "/etc/weights.gguf",
    ];
    each(
        &names,
        |name| (*name).to_owned(),
        |name| {
            let server = Server::start();
            let with = || draft(&server, Protocol::OpenAi);
            for key in ["model", "judge_model"] {
                let project = format!("{key} = '{name}'\n");
                let test = with()
                    .env_remove("REFLECT_MODEL")
                    .env_remove("OPENAI_BASE_URL");
                let test = test
                    .env("OPENAI_API_KEY", KEY)
                    .env("HTTPS_PROXY", "http://127.0.0.1:1");
                refused(
                    &server,
                    test.file(".reflect.toml", &project),
                    &[".reflect.toml:1", name],
                );
                // Permission to choose models does not include reading files.
                let test = with().env_remove("REFLECT_MODEL").arg("--allow-models");
                refused(
                    &server,
                    test.file(".reflect.toml", &project),
                    &[".reflect.toml:1"],
                );
            }
            let test = with().file("criteria.toml", judged_by(name));
            refused(&server, test, &["criteria.toml:1", name]);
            for keys in [
                json!({ "prompt": "x", "model": name }),
                json!({ "prompt": "x", "provider": "scripted", "model": "../home/.env" }),
                json!({ "prompt": "x", "provider": "scripted:../home/.env" }),
            ] {
                let test = with_server(&server, Protocol::OpenAi)
                    .env_remove("REFLECT_MODEL")
                    .env_remove("OPENAI_BASE_URL")
                    .file("w.yaml", workflow(&keys))
                    .args(["run", "w.yaml", "--allow-exec"]);
                refused(&server, test, &["w.yaml"]);
            }
        },
    );
}

/// Dry runs and `doctor` open no file, either.
#[test]
fn dry_runs_and_doctor_open_no_file() {
    let server = Server::start();
    let project = "model = 'scripted:../home/.env'\n";
    let test = || {
        Test::new()
            .file("criteria.toml", CRITERIA)
            .file(".reflect.toml", project)
    };
    refused(
        &server,
        test().args(["draft", "Write.", "-c", "criteria.toml", "--dry-run"]),
        &["scripted:../home/.env"],
    );
    let ran = test()
        .file("../home/.env", SECRET)
        .args(["doctor"])
        .code(2)
        .reports()
        .run();
    assert!(
        !ran.stdout.contains("this-is-not-for-you"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains(".reflect.toml:1"), "{}", ran.stdout);
}

/// The user's own file may do all of that, including through an alias that a project uses.
#[test]
fn an_alias_counts_as_named_by_the_user() {
    Test::new()
        .file(
            "criteria.toml",
            "[[criteria]]\nname = 'l'\nevaluator = 'length'\nmin = 1\n",
        )
        .file("../home/s.toml", "[[reply]]\ntext = 'From the script.'\n")
        .file(USER, "[aliases]\nfast = 'scripted:../home/s.toml'\n")
        .file(".reflect.toml", "model = 'fast'\n")
        .args(["draft", "Write.", "-c", "criteria.toml"])
        .stdout("From the script.\n")
        .run();
}

#[test]
fn criteria_of_a_project_stay_in_its_folder() {
    let server = Server::start();
    let home = |test: &Test| {
        let home = test.path("../home").canonicalize().expect("a folder");
        home.join(".env").display().to_string()
    };
    let with = || {
        with_server(&server, Protocol::OpenAi)
            .file("../home/.env", SECRET)
            .args(["draft", "Write."])
    };
    for spec in [
        "../home/.env",
        "sub/../../home/.env",
        "linked.toml",
        "linked",
    ] {
        let test = with().file(".reflect.toml", format!("criteria = '{spec}'\n"));
        link(&test, "../home/.env", "linked.toml");
        link(&test, "../home/.env", "linked");
        refused(
            &server,
            test,
            &[spec.trim_start_matches("sub/../"), "outside"],
        );
    }
    let test = with();
    let path = home(&test);
    let test = test.file(".reflect.toml", format!("criteria = '{path}'\n"));
    refused(&server, test, &["outside", "--criteria"]);
    // Files that the user names are read anywhere.
    with_server(&server, Protocol::OpenAi)
        .file("../home/c.toml", CRITERIA)
        .args(["draft", "Write.", "-c", "../home/c.toml", "--dry-run"])
        .run();
}

#[cfg(unix)]
fn link(test: &Test, target: &str, name: &str) {
    std::os::unix::fs::symlink(target, test.path(name)).expect("a link");
}

#[cfg(not(unix))]
fn link(test: &Test, target: &str, name: &str) {
    std::fs::copy(test.path(target), test.path(name)).expect("a copy");
}

#[cfg(unix)]
#[test]
fn a_project_file_linked_to_another_folder_is_not_read() {
    let server = usual_server();
    let test = draft(&server, Protocol::OpenAi).file("../home/.env", SECRET);
    link(&test, "../home/.env", ".reflect.toml");
    test.stdout("The second draft.\n")
        .stderr_has(".reflect.toml: it is a symbolic link")
        .stderr_lacks("AWS_SECRET")
        .run();
}

/// Like `git` with its `safe.directory`.
#[cfg(unix)]
#[test]
fn a_project_file_of_another_user_is_not_read() {
    use std::os::unix::fs::MetadataExt as _;
    let server = usual_server();
    let test = draft(&server, Protocol::OpenAi)
        .file(".reflect.toml", "this is not read at all")
        .ordinary_user();
    if std::fs::metadata(test.path("")).expect("a folder").uid() != 0 {
        // Only root can run the program as another user.
        return;
    }
    test.stdout("The second draft.\n")
        .stderr_has(".reflect.toml: it belongs to another user")
        .run();
}

#[test]
fn criteria_of_a_row_stay_in_the_folder_of_the_tasks() {
    let server = answering([Reply::text("A line."), Reply::text(&verdict(5).to_string())]);
    let rows = |criteria: &[&str]| {
        criteria
            .iter()
            .map(|name| json!({"prompt": "Write.", "criteria": name}).to_string() + "\n")
            .collect::<String>()
    };
    let test = with_server(&server, Protocol::OpenAi)
        .file("../home/.env", SECRET)
        .file("tasks/fine.toml", CRITERIA)
        .file(
            "tasks/tasks.jsonl",
            rows(&[
                "../home/.env",
                "tasks/linked.toml",
                "criteria.toml",
                "tasks/fine.toml",
            ]),
        );
    link(&test, "../../home/.env", "tasks/linked.toml");
    let ran = test
        .args(["batch", "tasks/tasks.jsonl", "-j", "1"])
        .code(2)
        .reports()
        .stderr_lacks("this-is-not-for-you")
        .stderr_has("outside the folder of the tasks")
        .run();
    assert!(
        !ran.stdout.contains("this-is-not-for-you"),
        "{}",
        ran.stdout
    );
    let rows = ran.lines();
    let errors = rows.iter().filter(|row| !row["error"].is_null()).count();
    assert_eq!((rows.len(), errors), (4, 3), "{}", ran.stdout);
}

#[test]
fn a_workflow_may_name_criteria_in_its_folder_or_built_in_ones() {
    let server = Server::start();
    let file = json!({ "nodes": [{ "name": "n", "uses": "reflection.evaluate", "with": {
        "data": "x", "evaluator": { "type": "criteria", "criteria": "credentials" } } }] });
    let test = with_server(&server, Protocol::OpenAi)
        .file("credentials", SECRET)
        .file("sub/w.yaml", file.to_string())
        .args(["run", "sub/w.yaml"]);
    refused(&server, test, &["no built-in criteria have this name"]);
}

/// A model of a provider that the user has not chosen needs permission.
#[test]
fn another_provider_needs_permission() {
    let server = Server::start();
    let user = |test: Test| {
        test.env("GROQ_API_KEY", KEY)
            .env("HTTPS_PROXY", "http://127.0.0.1:1")
    };
    let criterion =
        || user(draft(&server, Protocol::OpenAi)).file("criteria.toml", judged_by("groq:x"));
    refused(
        &server,
        criterion(),
        &[
            "criteria.toml:1",
            "groq:x",
            "https://api.groq.com",
            "--allow-models",
        ],
    );
    let evaluate = with_server(&server, Protocol::OpenAi)
        .file("criteria.toml", judged_by("groq:x"))
        .args(["evaluate", "text.md", "-c", "criteria.toml"])
        .file("text.md", "A text.");
    refused(&server, user(evaluate), &["groq:x"]);
    for key in ["model", "judge_model"] {
        let test = user(draft(&server, Protocol::OpenAi))
            .env_remove("REFLECT_MODEL")
            .env_remove("OPENAI_BASE_URL")
            .file(".reflect.toml", format!("{key} = 'groq:x'\n"));
        refused(&server, test, &[".reflect.toml:1", "groq:x", "[trust]"]);
    }
    let keys = json!({ "prompt": "x", "provider": "groq", "model": "y" });
    let test = with_server(&server, Protocol::OpenAi)
        .env_remove("REFLECT_MODEL")
        .file("w.yaml", workflow(&keys))
        .args(["run", "w.yaml", "--allow-exec"]);
    refused(&server, user(test), &["w.yaml", "groq:y"]);
    // With permission, the request is sent (and refused by the proxy of this test).
    criterion()
        .arg("--allow-models")
        .args(["--retries", "0"])
        .code(4)
        .stderr_has("judge of `clear`: groq:x; your prompt leaves this machine")
        .run();
    for list in ["models = ['[DIR]']", "models = ['[DIR]/criteria.toml']"] {
        let test = criterion();
        let folder = test.path("").canonicalize().expect("a folder");
        let trust = list.replace("[DIR]", &folder.display().to_string());
        test.file(USER, format!("[trust]\n{trust}\n"))
            .args(["--retries", "0"])
            .code(4)
            .stderr_has("judge of `clear`: groq:x")
            .run();
    }
}

/// Another model of the same provider, or a local one, sends the prompt nowhere new.
#[test]
fn the_users_provider_and_this_machine_need_no_permission() {
    let other = answering([Reply::text(&verdict(5).to_string())]);
    other.models(&[("judge", 8192)]);
    let server = answering([Reply::text("A line.")]);
    draft(&server, Protocol::OpenAi)
        .env("OLLAMA_HOST", other.url())
        .file("criteria.toml", judged_by("ollama:judge"))
        .stdout("A line.\n")
        .run();
    let server = answering([Reply::text("A line."), Reply::text(&verdict(5).to_string())]);
    draft(&server, Protocol::OpenAi)
        .file("criteria.toml", judged_by("another"))
        .stdout("A line.\n")
        .run();
    assert_eq!(server.chats()[1].body["model"], "another");
}

#[cfg(feature = "embedded")]
#[test]
fn a_download_needs_permission() {
    let hub = Server::start();
    let server = Server::start();
    let weights = "hf:someone/something/weights.gguf";
    let with = |test: Test| test.env("HF_ENDPOINT", hub.url());
    let test = draft(&server, Protocol::OpenAi).file("criteria.toml", judged_by(weights));
    refused(
        &server,
        with(test),
        &["criteria.toml:1", weights, "reflect models pull"],
    );
    let test = draft(&server, Protocol::OpenAi)
        .env_remove("REFLECT_MODEL")
        .file(".reflect.toml", format!("model = '{weights}'\n"));
    refused(&server, with(test), &[".reflect.toml:1", weights]);
    assert!(hub.requests().is_empty(), "nothing is requested");
}

/// Only the user decides where prompts and keys are sent.
#[test]
fn a_workflow_sets_no_server_on_its_own() {
    let server = Server::start();
    let keys = json!({ "prompt": "x", "model": "test", "api_base": server.openai_url() });
    let with = |args: &[&str]| {
        Test::new()
            .env("REFLECT_API_KEY", KEY)
            .env("OPENAI_API_KEY", KEY)
            .env("HTTPS_PROXY", "http://127.0.0.1:1")
            .file("w.yaml", workflow(&keys))
            .args(["run", "w.yaml"])
            .args(args)
    };
    let said = ["api_base", "[trust]", "endpoints = ["];
    for args in [&[][..], &["--allow-exec"], &["--allow-models"]] {
        refused(&server, with(args), &said);
    }
    assert!(server.requests().is_empty());
    // With trust, the server is called, but receives no key.
    server.reply_text("Fine.");
    let test = with(&[]);
    let folder = test.path("").canonicalize().expect("a folder");
    test.file(
        USER,
        format!("[trust]\nendpoints = ['{}']\n", folder.display()),
    )
    .stdout("Fine.\n")
    .run();
    for request in server.requests() {
        assert_eq!(request.header("authorization"), None, "{}", request.path);
    }
}

/// The address of the user's provider is not another address, so its key is sent.
#[test]
fn a_workflow_may_name_the_server_in_use() {
    let server = answering([Reply::text("Fine.")]);
    let keys = json!({ "prompt": "x", "provider": "openai", "model": "test", "api_base": server.openai_url() });
    with_server(&server, Protocol::OpenAi)
        .env_remove("REFLECT_MODEL")
        .file("w.yaml", workflow(&keys))
        .args(["run", "w.yaml"])
        .stdout("Fine.\n")
        .run();
    assert_eq!(
        server.chats()[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    // A model that the user names for this run uses the user's address, whatever the file says.
    let server = answering([Reply::text("Fine.")]);
    let keys = json!({ "prompt": "x", "model": "test", "api_base": "http://127.0.0.1:9/v1" });
    with_server(&server, Protocol::OpenAi)
        .file("w.yaml", workflow(&keys))
        .args(["run", "w.yaml"])
        .stdout("Fine.\n")
        .run();
}

/// Errors in a configuration must not show possible secrets.
#[test]
fn an_error_in_the_configuration_shows_no_secret() {
    let configs = [
        format!("apikey = '{KEY}'\n"),
        format!("[providers.x]\napikey = '{KEY}'\n"),
        format!("[providers.x]\nkey = '{KEY}'\n"),
        format!("[providers.x]\nheaders = '{KEY}'\n"),
        format!("[providers.x]\nkind = ['{KEY}'\n"),
        format!("base_url = 'http://me:{KEY}@127.0.0.1/v1'\n"),
        format!("[providers.x]\nbase_url = 'http://me:{KEY}@127.0.0.1/v1'\n"),
        format!("[providers.x]\nbase_url = ['http://127.0.0.1/v1?key={KEY}']\n"),
        format!("providers = {{ x = {{ apikey = '{KEY}' }} }}\n"),
        format!("password = [\n  '{KEY}',\n  {KEY}\n]\n"),
    ];
    each(&configs, Clone::clone, |config| {
        // The harness searches the output for the key.
        Test::new()
            .file(USER, config)
            .args(["config", "show"])
            .code(2)
            .stderr_has("config.toml:")
            .run();
        Test::new()
            .file("criteria.toml", CRITERIA)
            .file(".reflect.toml", config)
            .args(["draft", "Write.", "-c", "criteria.toml"])
            .code(2)
            .run();
    });
    for url in [
        format!("http://me:{KEY}@127.0.0.1/v1"),
        format!("me:{KEY}@127.0.0.1"),
        format!("ftp://127.0.0.1/v1?key={KEY}"),
        format!("http://127.0.0.1:x/v1?key={KEY}"),
    ] {
        for test in [
            Test::new().args(["--base-url", url.as_str()]),
            Test::new().env("REFLECT_BASE_URL", &url),
            Test::new().env("OPENAI_BASE_URL", &url),
        ] {
            // The harness searches the output for the key.
            test.file("criteria.toml", CRITERIA)
                .args(["draft", "Write.", "-c", "criteria.toml", "-m", "openai:x"])
                .code(2)
                .run();
        }
    }
}

/// A key in the query of an address is sent only to the server.
#[test]
fn a_key_in_an_address_is_sent_but_not_shown() {
    let server = usual_server();
    let url = format!("{}?api-version=3&key={KEY}", server.openai_url());
    let ran = Test::new()
        .file("criteria.toml", CRITERIA)
        .args([
            "draft",
            "Write a line.",
            "-c",
            "criteria.toml",
            "-m",
            "test",
            "-vv",
        ])
        .args(["--base-url", &url, "--max-iterations", "1"])
        .code(3)
        .stderr_has("api-version=3&key=***")
        .run();
    let query = format!("api-version=3&key={KEY}");
    for chat in server.chats() {
        assert_eq!(chat.query.as_deref(), Some(query.as_str()));
    }
    // The harness has searched the run log. The part left out of the address is required again when resuming.
    ran.then(["history", "resume", "last", "-n", "2"])
        .code(2)
        .stderr_has("REFLECT_BASE_URL")
        .run();
    ran.then(["history", "resume", "last", "-n", "2"])
        .env("REFLECT_BASE_URL", &url)
        .stdout("The second draft.\n")
        .run();
    ran.then(["config", "show"])
        .env("REFLECT_BASE_URL", &url)
        .run();
}
