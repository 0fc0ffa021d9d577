//! What the run log costs when it is long: `cargo bench --bench history --no-default-features`.
//!
//! 10,000 runs of four drafts each: how long a run's events take to be kept, and how long it takes to list runs,
//! to show the last one, to search, and to start the program. `-- 500` makes 500 runs instead.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints, and ends where something is wrong"
)]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use reflect::store::{RunFilter, Store};
use reflect::types::{
    ConvergenceReason, Evaluation, Event, ExitCode, LoopSettings, ModelId, Models, Phase,
    SCHEMA_VERSION, Stamped, Task, TokenUsage,
};
use uuid::Uuid;

const DRAFTS: u32 = 4;
/// Words of a draft.
const LENGTH: usize = 200;
const ROUNDS: usize = 7;

fn main() {
    let wanted = std::env::args().skip(1).find_map(|arg| arg.parse().ok());
    let runs: usize = wanted.unwrap_or(10_000);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("reflect.db");
    let mut store = Store::open(&file).unwrap();
    let mut words = Words(7);
    let (mut whole, mut end) = (Vec::new(), Vec::new());
    for number in 0..runs {
        let id = Uuid::now_v7();
        let events = run(id, number, &mut words);
        let begin = Instant::now();
        for (seq, event) in (0..).zip(&events) {
            let begin = Instant::now();
            store.append(id, seq, event).unwrap();
            if matches!(event.event, Event::RunEnd { .. }) {
                end.push(begin.elapsed());
            }
        }
        whole.push(begin.elapsed());
    }
    let size = std::fs::metadata(&file).unwrap().len() >> 20;
    println!("{runs} runs of {DRAFTS} drafts, {size} MiB");
    report("keep a run's events", whole);
    report("  of them the last, with the index", end);
    drop(store);

    measure("open", || drop(Store::open(&file).unwrap()));
    let store = Store::open(&file).unwrap();
    let list = |filter: &RunFilter| store.runs(filter).unwrap().len();
    let twenty = RunFilter {
        limit: Some(20),
        ..RunFilter::default()
    };
    measure("list 20", || assert_eq!(list(&twenty), 20.min(runs)));
    measure("list all", || assert_eq!(list(&RunFilter::default()), runs));
    measure("show last", || {
        let events = store.events(store.find("last").unwrap()).unwrap();
        assert!(!events.is_empty());
    });
    for (name, words) in [
        ("search a word of one run", format!("number{}", runs / 2)),
        ("search a word of all runs", "topic".to_owned()),
        ("search a rare beginning", "wab".to_owned()),
        ("search a phrase", "\"some text about\"".to_owned()),
        ("search what is not there", "giraffe".to_owned()),
    ] {
        let filter = RunFilter {
            words: Some(words),
            ..twenty.clone()
        };
        measure(name, || drop(store.runs(&filter).unwrap()));
    }
    drop(store);
    let program = |args: &[&str]| {
        let status = Command::new(env!("CARGO_BIN_EXE_reflect"))
            .args(args)
            .env("REFLECT_STATE_DIR", state_of(&file))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
    };
    measure("the program: history list", || {
        program(&["history", "list"]);
    });
    measure("the program: history show last", || {
        program(&["history", "show", "last"]);
    });
    measure("the program: history list topic", || {
        program(&["history", "list", "topic"]);
    });
}

fn state_of(file: &Path) -> &Path {
    file.parent().unwrap()
}

fn measure(name: &str, mut work: impl FnMut()) {
    let times = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed()
        })
        .collect();
    report(name, times);
}

fn report(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let (least, median) = (times[0], times[times.len() / 2]);
    let most = times[times.len() - 1];
    println!("{name:36} least {least:>10.2?}  median {median:>10.2?}  most {most:>10.2?}");
}

/// Words as they may come: some often, most seldom. The same in every run of the benchmark.
struct Words(u64);

impl Words {
    fn text(&mut self, count: usize) -> String {
        let mut text = String::from("Some text about a topic: ");
        for _ in 0..count {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let bits = self.0 >> 33;
            // Up to 20,000 words, the first ones far more often.
            let among = [20, 200, 2000, 20_000][usize::try_from(bits % 4).unwrap()];
            let mut number = (bits / 4) % among;
            text.push('w');
            while number > 0 {
                text.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
                number /= 26;
            }
            text.push(' ');
        }
        text
    }
}

fn run(id: Uuid, number: usize, words: &mut Words) -> Vec<Stamped> {
    let model = || ModelId {
        provider: "ollama".into(),
        model: "qwen3:8b".into(),
    };
    let mut events = vec![Event::RunStart {
        schema_version: SCHEMA_VERSION,
        run_id: id,
        setup: None,
        command: "draft".into(),
        file: None,
        task: Box::new(Task::new(format!("number{number} {}", words.text(20)))),
        criteria: Box::new(reflect::criteria::builtin("writing").unwrap()),
        settings: LoopSettings::default(),
        models: Models {
            writer: Some(model()),
            judge: Some(model()),
        },
    }];
    for iteration in 1..=DRAFTS {
        let call = |phase| Event::Call {
            phase,
            iteration,
            model: model(),
            usage: TokenUsage::new(Some(900), Some(300), None),
            duration_ms: 5000,
            cost: None,
            attempts: 1,
            error: None,
        };
        let phase = |phase| Event::Phase { phase, iteration };
        events.extend([
            phase(Phase::Revise),
            call(Phase::Revise),
            Event::Draft {
                iteration,
                output: words.text(LENGTH),
                based_on: (iteration > 1).then(|| iteration - 1),
                strategy: None,
                edits: None,
            },
            phase(Phase::Evaluate),
            call(Phase::Evaluate),
            Event::Evaluation {
                iteration,
                evaluation: Evaluation {
                    overall_score: Some(0.5),
                    ..Evaluation::default()
                },
            },
        ]);
    }
    events.push(Event::RunEnd {
        schema_version: SCHEMA_VERSION,
        run_id: Some(id),
        convergence_reason: Some(ConvergenceReason::MaxIterations),
        success: false,
        selected: Some(DRAFTS),
        exit_code: ExitCode::NotMet,
        error: None,
    });
    events
        .into_iter()
        .map(|event| Stamped {
            time: Timestamp::now(),
            event,
        })
        .collect()
}
