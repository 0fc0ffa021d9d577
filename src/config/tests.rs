use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsString,
    path::{Path, PathBuf},
};

use proptest::prelude::*;
use secrecy::ExposeSecret as _;

use super::*;
use crate::{
    criteria,
    source::{self, SourceError},
    types::LoopSettings,
};

/// A home directory with a user file and a project, and an isolated environment.
struct World {
    dir: tempfile::TempDir,
    env: HashMap<String, OsString>,
}

impl World {
    fn new(user: &str, project: &str, env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let world = Self {
            env: env
                .iter()
                .map(|(k, v)| ((*k).to_owned(), OsString::from(v)))
                .chain([("HOME".to_owned(), dir.path().into())])
                .chain([("USERPROFILE".to_owned(), dir.path().into())])
                .chain([("XDG_CONFIG_HOME".to_owned(), dir.path().join("cfg").into())])
                .collect(),
            dir,
        };
        std::fs::create_dir_all(world.user().parent().unwrap()).unwrap();
        std::fs::create_dir_all(world.cwd()).unwrap();
        if !user.is_empty() {
            std::fs::write(world.user(), user).unwrap();
        }
        if !project.is_empty() {
            std::fs::write(world.dir.path().join("project/.reflect.toml"), project).unwrap();
        }
        world
    }

    fn user(&self) -> PathBuf {
        self.dir.path().join("cfg/reflect/config.toml")
    }

    fn cwd(&self) -> PathBuf {
        self.dir.path().join("project/deep/inside")
    }

    fn load(&self) -> Result<Config, SourceError> {
        Config::load(&|name| self.env.get(name).cloned(), &self.cwd())
    }

    fn resolve(&self, flags: &Settings) -> Result<Resolved, SourceError> {
        self.load()?.resolve(flags, None)
    }
}

fn model(name: &str) -> Settings {
    Settings {
        model: Some(name.into()),
        ..Settings::default()
    }
}

#[test]
fn higher_layers_override_lower_ones() {
    let user = "model = 'user'\nretries = 1\n[profiles.p]\nmodel = 'profile'\n";
    let project = "model = 'project'\n";
    let origin = |world: &World, flags: &Settings| {
        let resolved = world.resolve(flags).unwrap();
        let origin = resolved.origin("model").unwrap().to_string();
        (resolved.settings.model.unwrap(), origin)
    };
    let none = Settings::default();
    let world = World::new("", "", &[]);
    assert_eq!(world.resolve(&none).unwrap().settings, Settings::defaults());
    let world = World::new(user, "", &[]);
    let file = world.user().display().to_string();
    assert_eq!(origin(&world, &none), ("user".into(), format!("{file}:1")));
    let world = World::new(user, project, &[]);
    let (value, from) = origin(&world, &none);
    assert_eq!(value, "project");
    assert!(from.ends_with(".reflect.toml:1"), "{from}");
    let world = World::new(user, project, &[("REFLECT_PROFILE", "p")]);
    let (value, from) = origin(&world, &none);
    assert_eq!(value, "profile");
    assert!(from.ends_with("config.toml:4 (profile `p`)"), "{from}");
    let world = World::new(
        user,
        project,
        &[("REFLECT_PROFILE", "p"), ("REFLECT_MODEL", "env")],
    );
    assert_eq!(
        origin(&world, &none),
        ("env".into(), "REFLECT_MODEL".into())
    );
    assert_eq!(
        origin(&world, &model("flag")),
        ("flag".into(), "--model".into())
    );
    let resolved = world.resolve(&none).unwrap();
    assert_eq!(resolved.settings.retries, Some(1));
    assert_eq!(resolved.origin("offline"), Some(&Origin::BuiltIn));
    assert_eq!(resolved.origin("seed"), None);
}

#[test]
fn merges_tables_key_by_key() {
    let world = World::new(
        "[loop]\nmax_iterations = 5\nplateau_iterations = 4\n[timeouts]\nidle = '1h 30m'\n",
        "loop.max_iterations = 6",
        &[("REFLECT_MAX_ITERATIONS", "")],
    );
    let config = world.load().unwrap();
    let mut criteria = criteria::builtin("code").unwrap();
    criteria.loop_settings.max_iterations = Some(7);
    let flags = Settings::default();
    let resolved = config.resolve(&flags, None).unwrap();
    assert_eq!(resolved.settings.loop_settings.max_iterations, Some(6));
    assert_eq!(resolved.settings.loop_settings.plateau_iterations, Some(4));
    assert_eq!(resolved.settings.loop_settings.threshold, None);
    assert_eq!(
        resolved.settings.timeouts.idle.unwrap().get().as_secs(),
        5400
    );
    assert_eq!(
        resolved.settings.timeouts.connect,
        Some(HumanDuration::from_secs(10))
    );
    let resolved = config.resolve(&flags, Some(&criteria)).unwrap();
    assert_eq!(resolved.settings.loop_settings.max_iterations, Some(7));
    assert_eq!(
        resolved.settings.loop_settings.threshold,
        Some(criteria.threshold)
    );
    assert_eq!(
        resolved.origin("loop.max_iterations").unwrap().to_string(),
        "criteria `code`"
    );
    let flags = Settings {
        loop_settings: LoopSettings {
            max_iterations: Some(8),
            threshold: Some(0.5),
            ..LoopSettings::default()
        },
        ..Settings::default()
    };
    let resolved = config.resolve(&flags, Some(&criteria)).unwrap();
    assert_eq!(resolved.settings.loop_settings.max_iterations, Some(8));
    assert_eq!(resolved.settings.loop_settings.threshold, Some(0.5));
    let origin = resolved.origin("loop.max_iterations").unwrap();
    assert_eq!(origin.to_string(), "--max-iterations");
}

#[test]
fn resolves_aliases_of_models() {
    let world = World::new(
        "[aliases]\nfast = 'ollama:qwen3:4b'\n",
        "judge_model = 'fast'",
        &[],
    );
    let resolved = world.resolve(&model("fast")).unwrap();
    assert_eq!(resolved.settings.model.as_deref(), Some("ollama:qwen3:4b"));
    assert_eq!(
        resolved.settings.judge_model.as_deref(),
        Some("ollama:qwen3:4b")
    );
    assert_eq!(resolved.origin("model").unwrap().to_string(), "--model");
}

#[test]
fn parses_environment_variables_by_type() {
    let paths = std::env::join_paths(["/a", "/b"]).unwrap();
    let world = World::new(
        "",
        "",
        &[
            ("REFLECT_CRITERIA_PATH", paths.to_str().unwrap()),
            ("REFLECT_OFFLINE", "Yes"),
            ("REFLECT_SEED", "18446744073709551615"),
            ("REFLECT_TEMPERATURE", "1"),
            ("REFLECT_MODEL", ""),
        ],
    );
    let settings = world.resolve(&Settings::default()).unwrap().settings;
    assert_eq!(settings.criteria_path, Some(vec!["/a".into(), "/b".into()]));
    assert_eq!(settings.offline, Some(true));
    assert_eq!(settings.seed, Some(u64::MAX));
    assert_eq!(settings.temperature, Some(1.0));
    assert_eq!(settings.model, None);
    let wrong = [
        (
            "REFLECT_OFFLINE",
            "maybe",
            "expected `1` or `0`, not `maybe`",
        ),
        (
            "REFLECT_RETRIES",
            "-1",
            "expected a non-negative integer, not `-1`",
        ),
        ("REFLECT_RETRIES", "101", "`retries` must be at most 100"),
        (
            "REFLECT_MAX_ITERATIONS",
            "0",
            "`max_iterations` must be at least 1",
        ),
        (
            "REFLECT_THRESHOLD",
            "1.5",
            "`threshold` must be a number from 0 to 1",
        ),
        ("REFLECT_TEMPERATURE", "nan", "expected a number, not `nan`"),
        ("REFLECT_BASE_URL", "http://", "`base_url` must be a URL"),
    ];
    for (name, value, message) in wrong {
        let error = World::new("", "", &[(name, value)]).load().unwrap_err();
        let start = format!("the environment variable {name}: {message}");
        assert!(error.to_string().starts_with(&start), "{error}");
    }
    let error = World::new("", "", &[("REFLECT_MAX_ITERATIONS", "99999999999")]).load();
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("REFLECT_MAX_ITERATIONS")
    );
}

#[test]
fn unset_timeouts_use_the_defaults() {
    let some = TimeoutSettings {
        idle: Some(HumanDuration::from_secs(7)),
        ..TimeoutSettings::default()
    };
    assert_eq!(
        some.get(),
        crate::model::Timeouts {
            idle: std::time::Duration::from_secs(7),
            ..crate::model::Timeouts::default()
        }
    );
}

#[test]
fn every_variable_sets_a_known_key() {
    let keys: BTreeSet<String> = layer::keys().into_iter().collect();
    for variable in VARIABLES {
        if let Some(key) = variable.key {
            assert!(keys.contains(key), "{}", variable.name);
        }
    }
}

#[test]
fn errors_in_the_user_file_have_positions() {
    let cases = [
        (
            "modle = 'x'",
            ":1:1: unknown key `modle` (did you mean `model`?)",
        ),
        (
            "[provider.x]\nkind = 'openai'",
            ":1:2: `provider` is a name under `providers`, not a table (write `[providers.NAME]`",
        ),
        (
            "[providers.x]\nkind = 'opnai'",
            ":2:8: `providers.x.kind`: unknown value `opnai` (did you mean `openai`?)",
        ),
        ("[providers.x]\nurl = 'x'", ":2:1: unknown key `url`"),
        (
            "[providers.x]\nbase_url = 'http://me:secret@h/v1'",
            ":2:12: `base_url` must be without a user or password",
        ),
        (
            "[providers.x]\napi_key_cmd = []",
            ":2:15: `api_key_cmd` is empty",
        ),
        (
            "[providers.'a:b']\nkind = 'openai'",
            ":1:1: a provider's name must not be empty or contain `:`",
        ),
        (
            "[profiles.p]\nmodell = 'x'",
            ":2:1: unknown key `modell` (did you mean `model`?)",
        ),
        (
            "[profiles.p]\nprofile = 'q'",
            ":2:11: a profile cannot name another profile",
        ),
        ("profiles = 1", ":1:12: `profiles` must be tables"),
        (
            "[loop]\nthreshold = 0.9",
            ":2:13: `loop.threshold` has no effect here",
        ),
        (
            "[loop]\nmax_time = -1",
            ":2:12: `max_time` must be above 0 (seconds)",
        ),
        (
            "[timeouts]\nidle = '10'",
            ":2:8: `timeouts.idle`: invalid duration `10`; write `10s`",
        ),
        (
            "timeouts.idle = '0s'",
            ":1:17: `timeouts.idle`: invalid duration `0s`",
        ),
        (
            "timeouts.idle = '-5s'",
            ":1:17: `timeouts.idle`: invalid duration `-5s`",
        ),
        (
            "temperature = 3",
            ":1:15: `temperature` must be a number from 0 to 2",
        ),
        ("top_p = nan", ":1:9: `top_p` must be a number above 0"),
        ("think = 'hard'", ":1:9: `think`: unknown value `hard`"),
        ("model = ''", ":1:9: `model` must be a non-empty string"),
        (
            "[aliases]\n'a:b' = 'x'",
            ":2:9: the alias `a:b` is not a short name",
        ),
        (
            "model = 'a'\nmodel = 'b'",
            ":2:1: the key `model` is set twice",
        ),
    ];
    for (text, message) in cases {
        let world = World::new(text, "", &[]);
        let error = world.load().unwrap_err().to_string();
        let start = format!("{}{message}", world.user().display());
        assert!(error.starts_with(&start), "{text:?}\n  {error}");
    }
}

#[test]
fn project_files_may_not_set_servers_or_keys() {
    for text in [
        "base_url = 'http://evil'",
        "[providers.openai]\nbase_url = 'http://evil'",
        "criteria_path = ['/']",
        "offline = false",
        "profile = 'x'",
        "api_key = 'x'",
        "[headers]\nx = 'y'",
        "[aliases]\nx = 'y'",
        "[profiles.x]\nmodel = 'y'",
    ] {
        let error = World::new("", text, &[]).load().unwrap_err();
        assert!(
            error.message().starts_with("a project file may not set `"),
            "{text}: {error}"
        );
        assert_eq!(
            error.position(),
            Some((1, if text.starts_with('[') { 2 } else { 1 }))
        );
    }
    let error = World::new("", "modle = 'x'", &[]).load().unwrap_err();
    assert!(error.hints()[0].contains("`model`"), "{error}");
    let world = World::new(
        "",
        "model = 'm'\njudge_model = 'j'\ncriteria = 'c/x.toml'\n[loop]\nmax_iterations = 2\n",
        &[],
    );
    let settings = world.resolve(&Settings::default()).unwrap().settings;
    // Paths are relative to the file, not to the current directory.
    assert_eq!(
        settings.criteria.map(PathBuf::from),
        Some(world.dir.path().join("project/c/x.toml"))
    );
    assert_eq!(settings.loop_settings.max_iterations, Some(2));
}

#[test]
fn resolves_paths_relative_to_the_user_file_or_home() {
    let world = World::new(
        "criteria_path = ['~/c', 'd', '/e']\ncriteria = 'blog'",
        "",
        &[],
    );
    let settings = world.resolve(&Settings::default()).unwrap().settings;
    let config_dir = world.user().parent().unwrap().to_owned();
    assert_eq!(
        settings.criteria_path,
        Some(vec![
            world.dir.path().join("c"),
            config_dir.join("d"),
            PathBuf::from("/e")
        ])
    );
    assert_eq!(settings.criteria.as_deref(), Some("blog"));
}

#[test]
fn errors_about_unknown_profiles_name_their_origin() {
    let world = World::new("[profiles.thorough]\n[profiles.quick]\n", "", &[]);
    let flags = Settings {
        profile: Some("quik".into()),
        ..Settings::default()
    };
    let error = world.resolve(&flags).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--profile: no profile named `quik` (did you mean `quick`?) (known profiles: `thorough` and `quick`)"
    );
    let error = World::new("profile = 'x'", "", &[]).resolve(&Settings::default());
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("config.toml:1: no profile named `x`")
    );
}

#[test]
fn a_missing_file_is_an_error_only_if_named() {
    let world = World::new("", "", &[("REFLECT_CONFIG", "/nowhere/c.toml")]);
    let error = world.load().unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/c.toml: no such file"),
        "{error}"
    );
    assert!(World::new("", "", &[]).load().is_ok());
    assert!(World::new("# nothing\n", "# nothing\n", &[]).load().is_ok());
}

#[test]
fn finds_files_in_standard_directories() {
    let at = |vars: &[(&str, &str)], f: fn(Env<'_>) -> Option<PathBuf>| {
        let vars: HashMap<String, OsString> =
            vars.iter().map(|(k, v)| ((*k).into(), v.into())).collect();
        f(&|name| vars.get(name).cloned())
    };
    #[cfg(unix)]
    {
        let home = ("HOME", "/h");
        let path = |p: &str| Some(PathBuf::from(p));
        assert_eq!(
            at(&[home], user_file),
            path("/h/.config/reflect/config.toml")
        );
        assert_eq!(
            at(&[home, ("XDG_CONFIG_HOME", "/x")], user_file),
            path("/x/reflect/config.toml")
        );
        assert_eq!(
            at(&[home, ("XDG_CONFIG_HOME", "rel")], user_file),
            path("/h/.config/reflect/config.toml")
        );
        assert_eq!(
            at(&[home, ("REFLECT_CONFIG", "c.toml")], user_file),
            path("c.toml")
        );
        assert_eq!(
            at(&[home], store_file),
            path("/h/.local/state/reflect/reflect.db")
        );
        assert_eq!(
            at(&[home, ("XDG_STATE_HOME", "/x")], store_file),
            path("/x/reflect/reflect.db")
        );
        assert_eq!(
            at(&[home, ("REFLECT_STATE_DIR", "/s")], store_file),
            path("/s/reflect.db")
        );
        assert_eq!(
            at(&[home, ("REFLECT_STATE_DIR", "")], store_file),
            path("/h/.local/state/reflect/reflect.db")
        );
    }
    assert!(at(&[("REFLECT_CONFIG", "c")], user_file).is_some());
}

#[cfg(unix)]
#[test]
fn rejects_keys_in_files_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new("[providers.x]\nkind = 'openai'\napi_key = 'sk-1'", "", &[]);
    let mode = |mode| {
        std::fs::set_permissions(world.user(), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(0o644);
    let error = world.load().unwrap_err().to_string();
    assert!(
        error.contains("other users can read") && error.contains("chmod 600"),
        "{error}"
    );
    assert!(!error.contains("sk-1"));
    mode(0o600);
    let config = world.load().unwrap();
    let key = api_key("x", config.provider("x"), None, &|_| None)
        .unwrap()
        .unwrap();
    assert_eq!(key.secret.expose_secret(), "sk-1");
    let shown = format!("{config:?} {key:?}");
    assert!(!shown.contains("sk-1"), "{shown}");
}

#[test]
fn errors_never_show_keys() {
    for text in [
        "[providers.x]\napi_key = sk-1",
        "[providers.x]\napi_key = \"sk-1",
        "[providers.x]\napi_keys = 'sk-1'",
        "[providers.x]\nkind = 'openai'\napi_key = ['sk-1']",
        "[providers.x]\nheaders = { a = ['sk-1'] }",
        "[providers.x.headers]\na = 'b'\nX-Own = sk-1",
        "providers.x.api_key = \"\"\"\nsk-1 \\q\n\"\"\"",
    ] {
        let error = World::new(text, "", &[]).load().unwrap_err();
        let shown = format!(
            "{error} {error:?} {} {}",
            error.render(false),
            error.render(true)
        );
        assert!(!shown.contains("sk-1"), "{text}\n{shown}");
        assert!(error.render(false).contains("config.toml:"), "{shown}");
    }
    let error = World::new("modle = 'x'", "", &[]).load().unwrap_err();
    assert!(error.render(false).contains("modle = ***"));
    let error = World::new("retries = 'x'", "", &[]).load().unwrap_err();
    assert!(error.render(false).contains("retries = 'x'"));
}

#[cfg(unix)]
#[test]
fn looks_up_keys_in_order_and_never_shows_them() {
    let world = World::new(
        "[providers.x]\napi_key_env = 'X_KEY'\napi_key_cmd = 'echo from-cmd; echo more'\n\
         [providers.y]\napi_key_cmd = ['printf', ' from-words ']\nheaders = { Authorization = 'hidden' }\n\
         [providers.bad]\napi_key_cmd = 'echo secret; exit 3'\n\
         [providers.none]\napi_key_cmd = ['/no/such/program']\n\
         [providers.empty]\napi_key_cmd = 'true'\n\
         [providers.spaced]\napi_key_cmd = 'echo a b'\n",
        "",
        &[],
    );
    let config = world.load().unwrap();
    assert!(!format!("{config:?}").contains("hidden"));
    let find = |name: &str, env: Env<'_>| api_key(name, config.provider(name), Some("D_KEY"), env);
    let text = |key: Option<FoundKey>| key.map(|k| (k.secret.expose_secret().to_owned(), k.origin));
    let x_set = |name: &str| (name == "X_KEY").then(|| "from-env".into());
    let d_set = |name: &str| (name == "D_KEY").then(|| "by-custom".into());
    assert_eq!(
        text(find("x", &x_set).unwrap()),
        Some(("from-env".into(), "the environment variable X_KEY".into()))
    );
    // A provider with its own variable ignores the default one.
    assert_eq!(
        text(find("x", &d_set).unwrap()),
        Some(("from-cmd".into(), "`api_key_cmd` of provider `x`".into()))
    );
    assert_eq!(text(find("y", &|_| None).unwrap()).unwrap().0, "from-words");
    assert_eq!(
        text(find("nobody", &d_set).unwrap()).unwrap().0,
        "by-custom"
    );
    assert!(find("nobody", &|_| None).unwrap().is_none());
    for (name, message) in [
        ("bad", "the command failed"),
        ("none", "cannot start the command"),
        ("empty", "it contains no key"),
        ("spaced", "invalid characters"),
    ] {
        let error = find(name, &|_| None).unwrap_err().to_string();
        assert!(error.contains(message), "{name}: {error}");
        assert!(
            !error.contains("secret") && !error.contains("a b"),
            "{error}"
        );
    }
}

/// The example with every key set: removes the `#` before keys and tables.
fn example_with_all() -> String {
    EXAMPLE
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest,
            _ => line,
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn read_user(text: &str) -> Result<file::UserFile, SourceError> {
    file::user(
        &source::Source::new("example", text),
        Path::new("example"),
        None,
    )
}

#[test]
fn the_example_has_every_key_and_default() {
    let as_it_is = read_user(EXAMPLE).unwrap_or_else(|e| panic!("{}", e.render(false)));
    assert_eq!(
        as_it_is.layer,
        layer::Layer::default(),
        "everything is commented out"
    );
    let all = read_user(&example_with_all()).unwrap_or_else(|e| panic!("{}", e.render(false)));
    let resolved = all.layer.clone().resolved().unwrap();
    for entry in resolved.entries() {
        // Only criteria set it.
        if entry.key != "loop.threshold" {
            assert!(
                entry.value.is_some(),
                "`{}` is not in the example",
                entry.key
            );
        }
    }
    // The example shows every default.
    let defaults = layer::Layer::new(&Settings::defaults(), |_| Origin::BuiltIn);
    for entry in defaults.resolved().unwrap().entries() {
        if let Some((value, _)) = entry.value {
            let shown = resolved.entries().into_iter().find(|e| e.key == entry.key);
            assert_eq!(shown.unwrap().value.unwrap().0, value, "{}", entry.key);
        }
    }
    assert!(all.profiles.contains_key("thorough") && all.aliases.contains_key("fast"));
    let table: toml::Table = example_with_all().parse().unwrap();
    for key in source::fields::<file::Tables>() {
        assert!(table.contains_key(*key), "`{key}` is not in the example");
    }
    for key in source::fields::<Provider>() {
        assert!(
            table["providers"]["work"].get(key).is_some(),
            "`providers.*.{key}` is not in the example"
        );
    }
}

#[test]
fn the_schema_accepts_the_example() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let valid = |text: &str| {
        let value: toml::Value = toml::from_str(text).unwrap();
        validator.is_valid(&serde_json::to_value(value).unwrap())
    };
    assert!(valid(EXAMPLE));
    assert!(valid(&example_with_all()));
    assert!(!valid("modle = 'x'"));
    assert!(!valid("[providers.x]\nkind = 'y'"));
    assert!(!valid("[profiles.x]\nmodle = 'y'"));
}

proptest! {
    #[test]
    fn durations_round_trip(seconds in 1_u64..10_000_000) {
        let duration = HumanDuration::from_secs(seconds);
        prop_assert_eq!(duration.to_string().parse::<HumanDuration>().unwrap(), duration);
    }

    #[test]
    fn the_parser_never_panics(
        text in "\\PC{0,40}|(\\[providers\\.|\\[profiles\\.|x\\]\n|model|loop|timeouts|idle|\\.| = |'1s'|1|nan|\n|\\[aliases\\]|'|\\{|\\}){0,20}"
    ) {
        let _ = read_user(&text).map_err(|e| e.render(false));
        let source = source::Source::new("p", &text);
        let _ = file::project(&source, Path::new("p")).map_err(|e| e.render(false));
    }
}
