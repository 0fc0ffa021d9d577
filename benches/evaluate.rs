//! What a thousand evaluations cost, for each kind of evaluator: `cargo bench --bench evaluate`; `-- regex`
//! measures only that.
//!
//! Every kind is measured in a process of its own, through the library as `reflect evaluate` uses it, one
//! evaluation after the other: time of each, the peak memory of that process, and of the largest process that
//! it started (interpreters, programs). A kind whose interpreter is not on this machine is left out, aloud.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where something is wrong"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use reflect::engine::{EvaluateOnce, Text};
use reflect::evaluate::{ExecPermission, JudgeModel, Tools};
use reflect::model::{Sampling, ScriptedModel, Think};
use reflect::types::{Stamped, Task};
use tokio_util::sync::CancellationToken;

const TIMES: u32 = 1000;

/// The variable that tells a process of this benchmark which kind it measures.
const KIND: &str = "REFLECT_BENCH_KIND";

/// A kind, the interpreter that it needs, and a criterion of it without its head.
const KINDS: [(&str, Option<&str>, &str); 10] = [
    ("regex", None, "evaluator = 'regex'\npattern = 'fox(es)?'"),
    (
        "contains",
        None,
        "evaluator = 'contains'\nall = ['fox', 'dog']",
    ),
    ("length", None, "evaluator = 'length'\nmax = 1000"),
    (
        "schema",
        None,
        "evaluator = 'schema'\n[criteria.schema]\ntype = 'object'\nrequired = ['name', 'age']\n\
         [criteria.schema.properties]\nname = { type = 'string' }\nage = { type = 'integer' }\n\
         tags = { type = 'array', items = { type = 'string' } }",
    ),
    (
        "compare",
        None,
        "evaluator = 'compare'\nreference = 'A quick fox, brown, jumps over a dog.'\nmin = 0.1",
    ),
    (
        "script, Lua",
        None,
        "evaluator = 'script'\ncode = 'return #output > 10'",
    ),
    (
        "script, Python",
        Some("python3"),
        "evaluator = 'script'\nlanguage = 'python'\ncode = 'return len(output) > 10'",
    ),
    (
        "script, Prolog",
        Some("swipl"),
        "evaluator = 'script'\nlanguage = 'prolog'\ncode = 'output(D), string_length(D, L), L > 10.'",
    ),
    ("command", None, "evaluator = 'command'\ncommand = ['true']"),
    (
        "llm, a judge that costs nothing",
        None,
        "evaluator = 'llm'\ndescription = 'It is clear.'",
    ),
];

fn main() {
    if let Ok(kind) = std::env::var(KIND) {
        return measure(&kind);
    }
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    println!(
        "{TIMES} evaluations of {} words\n{:34}{:>12}{:>14}{:>16}",
        draft("regex").split_whitespace().count(),
        "kind",
        "time each",
        "peak memory",
        "its children's"
    );
    for (kind, program, _) in KINDS {
        if !wanted.is_empty() && !wanted.iter().any(|word| kind.contains(word.as_str())) {
            continue;
        }
        if program.is_some_and(|program| which::which(program).is_err()) {
            println!(
                "{kind:34}  left out: `{}` is not here",
                program.unwrap_or_default()
            );
            continue;
        }
        let status = Command::new(std::env::current_exe().unwrap())
            .env(KIND, kind)
            .status();
        assert!(status.unwrap().success(), "{kind} failed");
    }
}

/// About 220 words; for a schema, JSON behind a sentence of talk.
fn draft(kind: &str) -> String {
    if kind == "schema" {
        let tags: Vec<String> = (0..200).map(|number| format!("\"tag {number}\"")).collect();
        return format!(
            "Here it is:\n```json\n{{\"name\": \"Ada\", \"age\": \"36\", \"tags\": [{}]}}\n```\n",
            tags.join(", ")
        );
    }
    "The quick brown fox jumps over the lazy dog, and then it does so again.\n".repeat(15)
}

fn measure(kind: &str) {
    let (_, _, own) = KINDS.iter().find(|(name, _, _)| *name == kind).unwrap();
    let text = format!(
        "name = 'bench'\nthreshold = 0.1\n[[criteria]]\nname = 'it'\nthreshold = 0.1\n{own}\n"
    );
    let criteria = Arc::new(reflect::criteria::parse(&text, "bench.toml").unwrap());
    let verdict =
        r#"{"scores": {"it": {"reason": "It is.", "score": 5}}, "issues": [], "confidence": 1}"#;
    let script = format!("[[reply]]\ntext = '''{verdict}'''\ntimes = 0\n");
    let model = ScriptedModel::parse(Path::new("judge.toml"), &script).unwrap();
    let judge = kind
        .starts_with("llm")
        .then(|| JudgeModel::new(Arc::new(model), Sampling::default(), Think::Auto));
    let tools = Tools::with_worker(PathBuf::from(env!("CARGO_BIN_EXE_reflect")))
        .allow(ExecPermission::given_by_user());
    let critique = EvaluateOnce::new(criteria, judge, &tools).unwrap();
    let draft = draft(kind);
    let task = Task::new("Write about foxes.");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let once = || {
        let text = Text {
            content: draft.clone(),
            file: None,
        };
        let record = runtime.block_on(critique.run(
            &task,
            text,
            &mut |_: &Stamped| {},
            &CancellationToken::new(),
        ));
        assert!(record.success, "{kind}: {:?}", record.versions);
    };
    let begun = Instant::now();
    for _ in 0..TIMES {
        once();
    }
    let each = begun.elapsed() / TIMES;
    // The workers end with the critique, and are counted then.
    drop(critique);
    drop(tools);
    drop(runtime);
    let peak = |who| {
        let kilobytes = u32::try_from(getrusage(who).unwrap().max_rss()).unwrap_or(u32::MAX);
        f64::from(kilobytes) / 1024.0
    };
    println!(
        "{kind:34}{:>9.3} ms{:>11.1} MB{:>13.1} MB",
        each.as_secs_f64() * 1000.0,
        peak(UsageWho::RUSAGE_SELF),
        peak(UsageWho::RUSAGE_CHILDREN),
    );
}
