//! The configuration: effective values, their origins, and errors.

#[cfg(unix)]
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::harness::{KEY, Test};
use crate::plan::{CRITERIA, draft, usual_server, with_server};
use crate::support::server::{Protocol, Server};

const USER: &str = "../home/.config/reflect/config.toml";

/// Checks a run that must be rejected before any call.
#[track_caller]
fn refused(prepare: impl FnOnce(Test) -> Test, said: &[&str]) {
    let server = Server::start();
    let mut test = prepare(draft(&server, Protocol::OpenAi))
        .code(2)
        .stdout("")
        .stderr_has("error: ");
    for part in said {
        test = test.stderr_has(part);
    }
    test.run();
    assert!(server.requests().is_empty(), "no request is made");
}

#[test]
fn errors_show_their_position() {
    refused(
        |test| test.file(USER, "# mine\nretris = 3\n"),
        &["config.toml:2:1", "`retris`", "did you mean `retries`?"],
    );
    refused(
        |test| test.file(USER, "[loop]\nmax_iterations = 0\n"),
        &["config.toml:2:18", "max_iterations"],
    );
    refused(
        |test| {
            test.file("x.toml", "temperature = 9\n")
                .args(["--config", "x.toml"])
        },
        &["x.toml:1:15", "from 0 to 2"],
    );
    refused(
        |test| test.args(["--config", "nowhere.toml"]),
        &["nowhere.toml", "no such file"],
    );
    refused(
        |test| {
            test.args(["--profile", "thorogh"])
                .file(USER, "[profiles.thorough]\nretries = 1\n")
        },
        &[
            "--profile",
            "no profile named `thorogh`",
            "did you mean `thorough`?",
        ],
    );
    refused(
        |test| test.env("REFLECT_MAX_ITERATIONS", "some"),
        &["REFLECT_MAX_ITERATIONS", "a non-negative integer", "`some`"],
    );
    refused(
        |test| test.args(["--temperature", "9"]),
        &["--temperature", "from 0 to 2"],
    );
    refused(
        |test| test.args(["--max-time", "soon"]),
        &["--max-time", "soon"],
    );
}

/// Project files are untrusted: they must not redirect prompts or keys.
#[test]
fn a_project_file_may_not_set_servers_keys_or_profiles() {
    for line in [
        "base_url = 'http://127.0.0.1:9'",
        "provider = 'openai'",
        "[providers.x]\nbase_url = 'http://127.0.0.1:9'",
        "[timeouts]\nidle = '1s'",
        "profile = 'x'",
    ] {
        refused(
            |test| test.file(".reflect.toml", line),
            &[".reflect.toml:1:"],
        );
    }
    let server = usual_server();
    draft(&server, Protocol::OpenAi)
        .env_remove("REFLECT_MODEL")
        .file(
            ".reflect.toml",
            "model = 'openai:theirs'\n[loop]\nmax_iterations = 1\n",
        )
        .code(3)
        .stdout("The first draft.\n")
        .stderr_has(".reflect.toml:1")
        .run();
    assert_eq!(server.chats()[0].body["model"], "theirs");
}

#[cfg(unix)]
#[test]
fn a_world_readable_key_is_rejected() {
    let config =
        format!("[providers.work]\nbase_url = 'http://127.0.0.1:9/v1'\napi_key = '{KEY}'\n");
    let with_mode = |test: Test, mode| {
        let test = test.file(USER, &config);
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(test.path(USER), mode).expect("permissions");
        test
    };
    refused(|test| with_mode(test, 0o644), &["config.toml", "chmod 600"]);
    with_mode(Test::new(), 0o600).args(["config", "show"]).run();
}

/// A key in the user file is sent only to its own server, and never shown.
#[cfg(unix)]
#[test]
fn a_custom_provider() {
    let server = usual_server();
    let config = format!(
        "[providers.work]\nbase_url = '{}'\nmodel = 'qwen'\napi_key = '{KEY}'\n\
         headers = {{ X-Team = 'docs' }}\nextra_body = {{ priority = 1 }}\n",
        server.openai_url()
    );
    let test = Test::new()
        .file("criteria.toml", CRITERIA)
        .file(USER, config);
    let private = std::fs::Permissions::from_mode(0o600);
    std::fs::set_permissions(test.path(USER), private).expect("permissions");
    test.args([
        "draft",
        "Write a line.",
        "-c",
        "criteria.toml",
        "-m",
        "work:",
    ])
    .stdout("The second draft.\n")
    .stderr_has("model: work:qwen, from --model")
    .run();
    for chat in server.chats() {
        assert_eq!(
            chat.header("authorization"),
            Some(format!("Bearer {KEY}").as_str())
        );
        assert_eq!(chat.header("x-team"), Some("docs"));
        assert_eq!(chat.body["priority"], 1);
        assert_eq!(chat.body["model"], "qwen");
    }
}

#[test]
fn a_key_comes_from_a_command() {
    let server = usual_server();
    let config = format!(
        "[providers.work]\nbase_url = '{}'\nmodel = 'qwen'\napi_key_cmd = 'cat key.txt'\n",
        server.openai_url()
    );
    let test = || {
        Test::new()
            .file("criteria.toml", CRITERIA)
            .file(USER, &config)
            .args([
                "draft",
                "Write a line.",
                "-c",
                "criteria.toml",
                "-m",
                "work:",
            ])
    };
    test().file("key.txt", format!("{KEY}\n")).run();
    assert_eq!(
        server.chats()[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    test()
        .code(2)
        .stdout("")
        .stderr_has("`api_key_cmd` of provider `work`")
        .run();
}

/// `retries`, from highest to lowest precedence: flag, variable, profile, project, user, default. Also a loop
/// setting, which the criteria file may set, too.
#[test]
fn higher_layers_override_lower_ones() {
    let user = "[loop]\nmax_iterations = 11\n[profiles.p]\nloop.max_iterations = 22\n";
    let project = "[loop]\nmax_iterations = 33\n";
    let criteria = format!(
        "[loop]\nmax_iterations = 44\n{}",
        CRITERIA.replace("\nname = \"house\"\nthreshold = 0.8\n", "")
    );
    let server = Server::start();
    let base = || {
        with_server(&server, Protocol::Ollama).args(["draft", "Write.", "--format", "ndjson", "-q"])
    };
    let plain = |test: Test| test.args(["-c", "criteria.toml"]);
    // The first event contains the effective settings. The server has no reply, which does not matter here.
    let in_force = |test: Test| {
        let lines = test.args(["--retries", "0"]).code(4).run().lines();
        lines[0]["settings"]["max_iterations"].clone()
    };
    assert_eq!(in_force(plain(base())), 5, "the default");
    assert_eq!(in_force(plain(base()).file(USER, user)), 11);
    let all = || base().file(USER, user).file(".reflect.toml", project);
    assert_eq!(in_force(plain(all())), 33);
    assert_eq!(in_force(plain(all()).args(["--profile", "p"])), 22);
    assert_eq!(in_force(plain(all()).env("REFLECT_PROFILE", "p")), 22);
    let all = || plain(all().file("criteria.toml", &criteria)).args(["--profile", "p"]);
    assert_eq!(in_force(all()), 44);
    assert_eq!(in_force(all().env("REFLECT_MAX_ITERATIONS", "55")), 55);
    assert_eq!(
        in_force(all().env("REFLECT_MAX_ITERATIONS", "55").args(["-n", "66"])),
        66
    );
}

#[test]
fn config_show_says_where_values_come_from() {
    let ran = Test::new()
        .file(
            USER,
            "model = 'ollama:a'\nseed = 1\n[profiles.p]\nseed = 2\n",
        )
        .file(".reflect.toml", "[loop]\nmax_iterations = 5\n")
        .env("REFLECT_TEMPERATURE", "0.5")
        .args(["config", "show", "--origin", "--profile", "p"])
        .run();
    insta::assert_snapshot!("config_show_origin", ran.plain(&ran.stdout));
    let ran = Test::new()
        .env("OPENAI_API_KEY", KEY)
        .env("REFLECT_API_KEY", KEY)
        .args(["config", "show"])
        .run();
    assert!(!ran.stdout.contains('#'), "{}", ran.stdout);
}

#[test]
fn config_init_path_and_init_again() {
    let ran = Test::new()
        .args(["config", "path"])
        .stderr_has("the file does not exist yet; create it with `reflect config init`")
        .run();
    let path = ran.stdout.trim_end().to_owned();
    assert!(path.ends_with("config.toml"), "{path}");
    let init = ran
        .then(["config", "init"])
        .stdout("")
        .stderr_has("wrote ")
        .run();
    let written = std::fs::read_to_string(&path).expect("a file");
    let example = include_str!("../../config.example.toml");
    assert_eq!(written, format!("#:schema ./config.schema.json\n{example}"));
    // Editors find the schema at the path named in the file.
    let schema = Path::new(&path).with_file_name("config.schema.json");
    let schema = std::fs::read_to_string(schema).expect("a file");
    init.then(["config", "schema"]).stdout(&schema).run();
    assert!(schema.contains("max_iterations"));
    #[cfg(unix)]
    {
        let metadata = std::fs::metadata(&path).expect("a file");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    init.then(["config", "path"])
        .stderr("")
        .stdout(&format!("{path}\n"))
        .run();
    std::fs::write(&path, "# mine\n").expect("a file");
    init.then(["config", "init"])
        .code(2)
        .stderr_has("the file already exists: ")
        .stderr_has("hint: overwrite it with `--force`")
        .run();
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "# mine\n");
    init.then(["config", "init", "--force"]).run();
    // The written file is valid.
    init.then(["config", "show"]).stderr("").run();
}

#[test]
fn the_environment_sets_the_path_of_the_configuration() {
    let test = Test::new();
    let (xdg, other) = (test.path("xdg"), test.path("other.toml"));
    let ran = test
        .env("XDG_CONFIG_HOME", &xdg)
        .args(["config", "path"])
        .run();
    assert_eq!(
        ran.stdout,
        format!("{}\n", xdg.join("reflect/config.toml").display())
    );
    let ran = ran
        .then(["config", "path"])
        .env("REFLECT_CONFIG", &other)
        .run();
    assert_eq!(ran.stdout, format!("{}\n", other.display()));
    ran.then(["config", "path", "--config", "flag.toml"])
        .stdout("flag.toml\n")
        .run();
}

/// Creates an editor that runs this script and records its arguments.
#[cfg(unix)]
fn editor(test: Test, name: &str, script: &str) -> Test {
    let test = test.file(
        name,
        format!("#!/bin/sh\necho \"$@\" >> called.txt\n{script}\n"),
    );
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(test.path(name), mode).expect("permissions");
    test
}

#[cfg(unix)]
#[test]
fn config_edit_checks_what_was_written() {
    // The last argument is the file.
    let write = |text: &str| format!("for file; do :; done; printf '%s' '{text}' > \"$file\"");
    // Without a file, the editor gets a new one. An empty variable counts as unset.
    let ran = editor(Test::new(), "ed.sh", &write("retries = 1"))
        .args(["config", "edit"])
        .env("VISUAL", "")
        .env("EDITOR", "./ed.sh --wait")
        .stdout("")
        .stderr("")
        .run();
    assert_eq!(ran.read(USER), "retries = 1");
    let called = ran.read("called.txt");
    assert!(
        called.starts_with("--wait /") && called.ends_with("config.toml\n"),
        "{called}"
    );
    assert!(ran.path(USER).with_file_name("config.schema.json").exists());
    // Errors are shown with their position. Without a terminal, there is no question.
    editor(ran.then(["config", "edit"]), "bad.sh", &write("retris = 1"))
        .env("VISUAL", "./bad.sh")
        .env("EDITOR", "./ed.sh")
        .code(2)
        .stdout("")
        .stderr_has("config.toml:1:1")
        .stderr_has("did you mean `retries`?")
        .run();
    assert_eq!(ran.read(USER), "retris = 1");
    // An editor that fails or does not exist.
    editor(ran.then(["config", "edit"]), "fails.sh", "exit 3")
        .env("EDITOR", "./fails.sh")
        .code(1)
        .stderr_has("the editor `./fails.sh` failed (exit status: 3)")
        .run();
    ran.then(["config", "edit"])
        .env("EDITOR", "nowhere-ed")
        .code(1)
        .stderr_has("cannot start the editor `nowhere-ed`")
        .stderr_has("hint: `EDITOR` is `nowhere-ed`")
        .run();
    ran.then(["config", "edit"])
        .env("EDITOR", "'unclosed")
        .code(2)
        .stderr_has("invalid command line of the editor")
        .run();
}

/// The error output of a failing key command is shown; its stdout is not.
#[cfg(unix)]
#[test]
fn a_failing_key_command_shows_its_stderr() {
    let server = Server::start();
    let config = format!(
        "[providers.work]\nbase_url = '{}'\nmodel = 'qwen'\n\
         api_key_cmd = ['sh', '-c', 'echo {KEY}; echo the vault is locked >&2; exit 7']\n",
        server.openai_url()
    );
    Test::new()
        .file("criteria.toml", CRITERIA)
        .file(USER, config)
        .args(["draft", "Write.", "-c", "criteria.toml", "-m", "work:"])
        .code(2)
        .stdout("")
        .stderr_has("the vault is locked")
        .stderr_has("the command failed (exit status: 7)")
        .run();
    assert!(server.requests().is_empty());
}

/// A command that prints the key runs once, however many models need the key.
#[cfg(unix)]
#[test]
fn a_key_command_runs_once() {
    let server = usual_server();
    let config = format!(
        "[providers.work]\nbase_url = '{}'\napi_key_cmd = 'echo run >> run.txt; echo {KEY}'\n",
        server.openai_url()
    );
    let ran = Test::new()
        .file("criteria.toml", CRITERIA)
        .file(USER, config)
        .args(["draft", "Write.", "-c", "criteria.toml"])
        .args(["-m", "work:a", "--judge-model", "work:b"])
        .run();
    assert_eq!(ran.read("run.txt"), "run\n");
}
