use std::path::PathBuf;
use std::time::Duration;

use reflect::sandbox::{Language, Limits, ScriptErrorKind, ScriptPool};
use serde_json::json;

use crate::support::{limits, lua, pool, request, with};

/// Counts the worker processes among our children.
fn workers() -> usize {
    let own = std::process::id().to_string();
    let output = std::process::Command::new("ps")
        .args(["--ppid", &own, "-o", "stat="])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout)
        .lines()
        // `ps` itself is in the list, in state R.
        .filter(|l| !l.starts_with('Z') && !l.starts_with('R'))
        .count()
}

#[tokio::test]
async fn one_worker_runs_many_scripts_and_the_number_of_workers_is_bounded() {
    let pool = ScriptPool::with_size(PathBuf::from(env!("CARGO_BIN_EXE_reflect")), 3);
    let evaluations = (0..60).map(|i| {
        let pool = &pool;
        async move {
            let request = request(&format!("return {i}"), json!(""));
            let outcome = pool
                .evaluate(Language::Lua, &request, &limits())
                .await
                .unwrap();
            assert_eq!(outcome.value, json!(i));
        }
    });
    futures_util::future::join_all(evaluations).await;
    assert!((1..=3).contains(&pool.idle()), "{}", pool.idle());
}

#[tokio::test]
async fn python_starts_once_for_many_evaluations() {
    let Some(python) = with(Language::Python, "python3") else {
        return;
    };
    let parent = python.value("import os\nresult = os.getppid()").await;
    for _ in 0..20 {
        assert_eq!(
            python.value("import os\nresult = os.getppid()").await,
            parent
        );
    }
}

#[tokio::test]
async fn other_limits_need_another_worker() {
    let pool = pool();
    let hungry = request("return #string.rep('x', 50000000)", json!(""));
    let outcome = pool
        .evaluate(Language::Lua, &hungry, &Limits::SCRIPT)
        .await
        .unwrap();
    assert_eq!(outcome.value, json!(50_000_000));
    let small = Limits {
        memory: 16 * 1024 * 1024,
        ..Limits::SCRIPT
    };
    let error = pool
        .evaluate(Language::Lua, &hungry, &small)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ScriptErrorKind::Memory);
    assert!(pool.idle() <= 2);
}

#[tokio::test]
async fn a_cancelled_evaluation_does_not_poison_the_next() {
    let lua = lua();
    for _ in 0..3 {
        let endless = lua.run("while true do end");
        assert!(
            tokio::time::timeout(Duration::from_millis(100), endless)
                .await
                .is_err()
        );
        assert_eq!(lua.value("return 7").await, json!(7));
    }
}

#[tokio::test]
async fn a_missing_worker_is_an_error() {
    let pool = ScriptPool::new(PathBuf::from("/no/such/binary"));
    let request = request("return 1", json!(""));
    let error = pool
        .evaluate(Language::Lua, &request, &limits())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ScriptErrorKind::Protocol);
    let pool = ScriptPool::new(PathBuf::from("/bin/false"));
    let error = pool
        .evaluate(Language::Lua, &request, &limits())
        .await
        .unwrap_err();
    assert_eq!(error.kind, ScriptErrorKind::MissingInterpreter);
}

/// Must run alone in its process, because it counts children: use `--ignored`.
#[tokio::test]
#[ignore = "counts the processes of the whole test program, so that it must run alone"]
async fn dropping_the_pool_ends_its_workers() {
    let lua = lua();
    lua.value("return 1").await;
    assert_eq!(workers(), 1);
    drop(lua);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(workers(), 0);
}

/// A benchmark: `cargo test --release --test sandbox -- --ignored thousand --nocapture`.
#[tokio::test]
#[ignore = "a measurement"]
async fn a_thousand_evaluations() {
    for (language, program, code) in [
        (Language::Lua, "true", "return #output > 3"),
        (Language::Python, "python3", "return len(output) > 3"),
        (
            Language::Prolog,
            "swipl",
            "state(output, O), string_length(O, L), L > 3.",
        ),
    ] {
        let Some(bench) = with(language, program) else {
            continue;
        };
        let start = std::time::Instant::now();
        assert_eq!(bench.value(code).await, json!(true));
        let first = start.elapsed();
        let start = std::time::Instant::now();
        for _ in 0..1000 {
            assert_eq!(bench.value(code).await, json!(true));
        }
        println!(
            "{language}: first {first:?}, then 1,000 in {:?}",
            start.elapsed()
        );
    }
}
