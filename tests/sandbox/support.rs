use std::path::PathBuf;
use std::time::Duration;

use reflect::sandbox::{
    Language, Limits, ScriptError, ScriptErrorKind, ScriptOutcome, ScriptPool, ScriptRequest,
};
use serde_json::{Map, Value, json};

pub(crate) fn pool() -> ScriptPool {
    ScriptPool::with_size(PathBuf::from(env!("CARGO_BIN_EXE_reflect")), 2)
}

pub(crate) fn request(code: &str, output: Value) -> ScriptRequest {
    ScriptRequest {
        code: code.to_owned(),
        output,
        bare_names: false,
        state: Map::from_iter([
            ("reflection_iteration".to_owned(), json!(3)),
            ("name".to_owned(), json!("Ada")),
            ("nothing".to_owned(), Value::Null),
            ("tags".to_owned(), json!(["a", "b"])),
            ("empty".to_owned(), json!([])),
            ("user".to_owned(), json!({"age": 36, "big": 1e300})),
        ]),
    }
}

/// Short limits, so that the attacks do not take long.
pub(crate) fn limits() -> Limits {
    Limits {
        time: Duration::from_millis(1500),
        memory: 64 * 1024 * 1024,
        ..Limits::SCRIPT
    }
}

/// A long time limit for tests of other limits on a busy machine.
pub(crate) fn patient() -> Limits {
    Limits {
        time: Duration::from_secs(30),
        ..limits()
    }
}

/// Runs scripts of one language on the same pool.
pub(crate) struct Bench {
    pub(crate) pool: ScriptPool,
    pub(crate) language: Language,
}

impl Bench {
    pub(crate) async fn run(&self, code: &str) -> Result<ScriptOutcome, ScriptError> {
        let request = request(code, json!("the draft"));
        let result = self.pool.evaluate(self.language, &request, &limits()).await;
        if let Err(error) = &result {
            println!("{error}");
        }
        result
    }

    pub(crate) async fn value(&self, code: &str) -> Value {
        match self.run(code).await {
            Ok(outcome) => outcome.value,
            Err(error) => panic!("{error}\n{code}"),
        }
    }

    pub(crate) async fn error(&self, code: &str) -> ScriptError {
        match self.run(code).await {
            Ok(outcome) => panic!("it returned {}\n{code}", outcome.value),
            Err(error) => error,
        }
    }

    /// Returns the kind of its error. The pool must still work afterwards.
    pub(crate) async fn attack(&self, code: &str, after: &str) -> ScriptErrorKind {
        let error = self.error(code).await;
        assert_eq!(self.value(after).await, json!(7), "after {code}");
        error.kind
    }
}

pub(crate) fn lua() -> Bench {
    Bench {
        pool: pool(),
        language: Language::Lua,
    }
}

/// Returns `None`, with a message on stderr, if the interpreter is missing; fails if all tests are required.
pub(crate) fn with(language: Language, program: &str) -> Option<Bench> {
    let there = std::process::Command::new(program)
        .arg("--version")
        .output()
        .is_ok_and(|o| o.status.success());
    let required = std::env::var_os("REFLECT_TEST_REQUIRE_ALL").is_some_and(|v| v == "1");
    assert!(there || !required, "`{program}` is required and missing");
    if !there {
        println!("SKIPPED: `{program}` is not installed");
        return None;
    }
    Some(Bench {
        pool: pool(),
        language,
    })
}
