use std::path::Path;

use jiff::Timestamp;
use rusqlite::Connection;
use uuid::Uuid;

use super::*;
use reflect_core::criteria;

use crate::{
    model::{Message, Role},
    types::{
        Choice, ConvergenceReason, DeltaKind, Evaluation, Event, Evidence, EvidenceSource,
        ExitCode, Knowledge, KnownInsight, LoopSettings, MemoryChange, ModelId, Models, Phase,
        Reflection, SCHEMA_VERSION, Stamped, Task, TokenUsage, Trigger,
    },
};

fn at(ms: i64, event: Event) -> Stamped {
    Stamped {
        time: Timestamp::from_millisecond(1_700_000_000_000 + ms).unwrap(),
        event,
    }
}

fn evidence() -> Event {
    Event::Evidence {
        iteration: 1,
        evidence: vec![Evidence {
            source: EvidenceSource::Codebase,
            content: "fn f() {}".into(),
            relevance: Some(0.5),
            supports_claim: None,
            location: Some("a.rs:1-1".into()),
        }],
    }
}

/// The events of a run with tools, sections and reflections.
fn tool_and_reflection_events() -> [Event; 4] {
    [
        Event::ToolResult {
            iteration: 2,
            tool: "wc".into(),
            end: "ended with exit code 0".into(),
            exit_code: Some(0),
            output: "3\n".into(),
        },
        Event::Outline {
            iteration: 2,
            sections: vec!["a".into(), "b".into()],
        },
        Event::Step {
            iteration: 2,
            step: 1,
            of: 2,
            title: "a".into(),
        },
        Event::Reflection(Reflection {
            iteration: 2,
            trigger: Trigger::QualityDrop,
            text: "keep it".into(),
        }),
    ]
}

/// A complete run of two drafts, with every kind of event.
fn run(run_id: Uuid, started: i64, command: &str, prompt: &str) -> Vec<Stamped> {
    let model = |name: &str| ModelId {
        provider: "scripted".into(),
        model: name.into(),
    };
    let evaluation = |score| Evaluation {
        overall_score: Some(score),
        criteria_scores: [("a".to_owned(), Some(score)), ("b".to_owned(), None)]
            .into_iter()
            .collect(),
        ..Evaluation::default()
    };
    let draft = |iteration: u32, output: &str| Event::Draft {
        iteration,
        output: output.into(),
        based_on: (iteration > 1).then(|| iteration - 1),
        strategy: None,
        edits: None,
    };
    let mut events = vec![
        Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id,
            command: command.into(),
            file: None,
            task: Box::new(Task::new(prompt)),
            criteria: Box::new(criteria::builtin("writing").unwrap()),
            settings: LoopSettings::default(),
            models: Models {
                writer: Some(model("w")),
                judge: Some(model("j")),
            },
            setup: None,
        },
        Event::Phase {
            phase: Phase::Draft,
            iteration: 1,
        },
        Event::Delta {
            phase: Phase::Draft,
            iteration: 1,
            kind: DeltaKind::Text,
            text: "on".into(),
        },
        Event::Retry {
            phase: Phase::Draft,
            iteration: 1,
            message: "busy".into(),
            wait_ms: 5,
        },
        Event::Call {
            phase: Phase::Draft,
            iteration: 1,
            model: model("w"),
            usage: TokenUsage::new(Some(3), None, None),
            cost: None,
            duration_ms: 7,
            attempts: 2,
            error: None,
        },
        Event::Rejected {
            iteration: 1,
            reason: "empty".into(),
            text: String::new(),
            stopped_early: true,
        },
        draft(1, "one \u{1F600}\r\n\u{0}"),
        Event::Evaluation {
            iteration: 1,
            evaluation: evaluation(0.75),
        },
        Event::Decision {
            iteration: 1,
            choice: Choice::Accept,
            incumbent: 1,
            reason: "first".into(),
        },
        draft(2, "two"),
        Event::Evaluation {
            iteration: 2,
            evaluation: evaluation(0.5),
        },
        Event::Warning {
            message: "w".into(),
        },
        evidence(),
    ];
    events.extend(tool_and_reflection_events());
    events.push(Event::RunEnd {
        schema_version: SCHEMA_VERSION,
        run_id: Some(run_id),
        convergence_reason: Some(ConvergenceReason::MaxIterations),
        success: false,
        selected: Some(1),
        exit_code: ExitCode::NotMet,
        error: None,
    });
    (started..)
        .zip(events)
        .map(|(ms, event)| at(ms, event))
        .collect()
}

fn append_all(store: &mut Store, run_id: Uuid, events: &[Stamped]) {
    for (seq, event) in (0..).zip(events) {
        store.append(run_id, seq, event).unwrap();
    }
}

fn file(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("state/reflect/reflect.db")
}

#[test]
fn stored_events_are_read_by_another_connection() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let id = Uuid::now_v7();
    let events = run(id, 0, "draft", "\n  Write a poem. \nsecond line");
    append_all(&mut store, id, &events);

    let other = Store::open_existing(&file(&dir)).unwrap().unwrap();
    let lasting: Vec<Stamped> = events
        .iter()
        .filter(|e| e.event.is_recorded())
        .cloned()
        .collect();
    assert_eq!(lasting.len(), events.len() - 1);
    assert_eq!(other.events(id).unwrap(), lasting);
    assert_eq!(
        other.runs(&RunFilter::default()).unwrap(),
        [RunSummary {
            run_id: id,
            started: events[0].time,
            ended: Some(events.last().unwrap().time),
            command: "draft".into(),
            title: "Write a poem.".into(),
            criteria: "writing".into(),
            writer: "scripted:w".into(),
            judge: "scripted:j".into(),
            iterations: 2,
            convergence_reason: Some(ConvergenceReason::MaxIterations),
            success: Some(false),
            exit_code: Some(ExitCode::NotMet),
            selected: Some(1),
            overall_score: Some(0.75),
            first_score: Some(0.75),
            // The server reports no totals, and the model has no price.
            tokens: None,
            cost: None,
        }]
    );
}

#[test]
fn a_crashed_run_is_listed_with_its_progress() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let id = Uuid::now_v7();
    append_all(&mut store, id, &run(id, 0, "draft", "p")[..7]);
    // Keep the store open, as after a crash.
    std::mem::forget(store);
    let store = Store::open(&file(&dir)).unwrap();
    let listed = store.runs(&RunFilter::default()).unwrap();
    assert_eq!((listed[0].ended, listed[0].iterations), (None, 1));
    assert_eq!(listed[0].convergence_reason, None);
    assert_eq!(store.events(id).unwrap().len(), 6);
}

#[test]
fn events_need_a_run_and_a_unique_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let id = Uuid::now_v7();
    let events = run(id, 0, "draft", "p");
    let error = store.append(id, 1, &events[1]).unwrap_err();
    assert!(matches!(error, StoreError::NoSuchRun { .. }), "{error}");
    store.append(id, 0, &events[0]).unwrap();
    assert!(store.append(id, 0, &events[1]).is_err());
    assert!(store.append(id, 1, &events[0]).is_err(), "started twice");
    assert_eq!(store.events(id).unwrap().len(), 1);
    assert!(matches!(
        store.events(Uuid::nil()),
        Err(StoreError::NoSuchRun { .. })
    ));
}

#[test]
fn runs_are_filtered_and_the_latest_comes_first() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let ids: Vec<Uuid> = (0..4).map(|_| Uuid::now_v7()).collect();
    for (i, id) in (0_i64..).zip(&ids) {
        let command = if i % 2 == 0 { "draft" } else { "evaluate" };
        append_all(
            &mut store,
            *id,
            &run(*id, i * 1000, command, &format!("Poem {i}")),
        );
    }
    let list = |filter: RunFilter| -> Vec<Uuid> {
        let runs = store.runs(&filter).unwrap();
        runs.into_iter().map(|r| r.run_id).collect()
    };
    let all = RunFilter::default();
    assert_eq!(list(all.clone()), [ids[3], ids[2], ids[1], ids[0]]);
    let some = RunFilter {
        limit: Some(2),
        ..all.clone()
    };
    assert_eq!(list(some), [ids[3], ids[2]]);
    let evaluate = RunFilter {
        command: Some("evaluate".into()),
        ..all.clone()
    };
    assert_eq!(list(evaluate), [ids[3], ids[1]]);
    let titled = RunFilter {
        words: Some("POEM 2".into()),
        ..all.clone()
    };
    assert_eq!(list(titled), [ids[2]]);
    let moment = |ms: i64| Timestamp::from_millisecond(1_700_000_000_000 + ms).unwrap();
    let between = RunFilter {
        since: Some(moment(1000)),
        before: Some(moment(3000)),
        ..all.clone()
    };
    assert_eq!(list(between), [ids[2], ids[1]]);
    for (model, criteria, count) in [
        (Some("SCRIPTED:J"), None, 4),
        (Some("scripted:x"), None, 0),
        (None, Some("writing"), 4),
        (None, Some("writ"), 0),
    ] {
        let filter = RunFilter {
            model: model.map(str::to_owned),
            criteria: criteria.map(str::to_owned),
            ..all.clone()
        };
        assert_eq!(list(filter).len(), count, "{model:?} {criteria:?}");
    }
    for (success, count) in [(true, 0), (false, 4)] {
        let filter = RunFilter {
            success: Some(success),
            ..all.clone()
        };
        assert_eq!(list(filter).len(), count);
    }
}

#[test]
fn runs_are_found_by_either_end_of_the_id() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    assert!(matches!(
        store.find("last"),
        Err(StoreError::NoSuchRun { .. })
    ));
    let id = |text: &str| Uuid::parse_str(text).unwrap();
    let a = id("01890000-0000-7000-8000-0000aaaa0001");
    let b = id("01890000-0001-7000-8000-0000aaaa0002");
    append_all(&mut store, a, &run(a, 5, "draft", "p"));
    append_all(&mut store, b, &run(b, 9, "draft", "p"));
    assert_eq!(store.find("last").unwrap(), b);
    assert_eq!(store.find("01890000-0000").unwrap(), a);
    assert_eq!(store.find(&short_id(a)).unwrap(), a);
    assert_eq!(store.find("AAAA0002").unwrap(), b);
    assert_eq!(store.find(&b.to_string()).unwrap(), b);
    let error = store.find("0189").unwrap_err();
    assert!(
        matches!(&error, StoreError::Ambiguous { candidates, .. } if candidates.len() == 2),
        "{error}"
    );
    for nobody in ["ffff", "*", "", "last one", "[a]"] {
        let error = store.find(nobody).unwrap_err();
        assert!(matches!(error, StoreError::NoSuchRun { .. }), "{error}");
    }
}

#[test]
fn concurrent_writers_do_not_interfere() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    let ids: Vec<Uuid> = (0..8).map(|_| Uuid::now_v7()).collect();
    std::thread::scope(|scope| {
        for id in &ids {
            let path = &path;
            scope.spawn(move || {
                // All of them create the file at the same time.
                let mut store = Store::open(path).unwrap();
                let events = run(*id, 0, "draft", "p");
                append_all(&mut store, *id, &events);
                assert_eq!(store.events(*id).unwrap().len(), events.len() - 1);
            });
        }
    });
    let store = Store::open(&path).unwrap();
    assert_eq!(store.runs(&RunFilter::default()).unwrap().len(), ids.len());
    for id in ids {
        assert_eq!(store.events(id).unwrap().len(), 17);
    }
}

#[test]
fn a_reopened_run_has_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let (id, other) = (Uuid::now_v7(), Uuid::now_v7());
    let events = run(id, 0, "draft", "p");
    append_all(&mut store, id, &events);
    append_all(&mut store, other, &run(other, 9, "draft", "p"));
    let numbered = store.numbered_events(id).unwrap();
    let last: Vec<u64> = numbered.iter().rev().take(2).map(|(seq, _)| *seq).collect();
    store.reopen(id, &last).unwrap();
    assert_eq!(store.events(id).unwrap().len(), numbered.len() - 2);
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs[0].exit_code, Some(ExitCode::NotMet), "the other one");
    let reopened = &runs[1];
    assert_eq!((reopened.ended, reopened.exit_code), (None, None));
    assert_eq!((reopened.overall_score, reopened.iterations), (None, 2));
    assert!(store.reopen(Uuid::nil(), &[]).is_err());
}

#[cfg(unix)]
#[test]
fn only_the_user_can_read_the_log() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let id = Uuid::now_v7();
    append_all(&mut store, id, &run(id, 0, "draft", "p"));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let parent = file(&dir).parent().unwrap().to_owned();
    assert_eq!(mode(&parent), 0o700);
    let entries: Vec<PathBuf> = std::fs::read_dir(parent)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    assert!(entries.len() >= 2, "the log and its WAL: {entries:?}");
    for path in entries {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn reading_creates_nothing() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Store::open_existing(&file(&dir)).unwrap().is_none());
    assert!(!file(&dir).exists());
}

#[test]
fn foreign_files_are_rejected_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let text = dir.path().join("text.db");
    std::fs::write(
        &text,
        "not a database, and long enough to be looked at ".repeat(50),
    )
    .unwrap();
    let before = std::fs::read(&text).unwrap();
    let error = Store::open(&text).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
    assert!(error.to_string().contains("text.db"));
    assert!(error.to_string().contains("--no-log"));
    assert_eq!(std::fs::read(&text).unwrap(), before);

    let foreign = dir.path().join("foreign.db");
    Connection::open(&foreign)
        .unwrap()
        .execute_batch("CREATE TABLE songs (title)")
        .unwrap();
    let before = std::fs::read(&foreign).unwrap();
    let error = Store::open(&foreign).unwrap_err();
    assert!(matches!(error, StoreError::Foreign { .. }), "{error:?}");
    assert_eq!(std::fs::read(&foreign).unwrap(), before);
}

#[test]
fn a_log_of_a_newer_version_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    drop(Store::open(&file(&dir)).unwrap());
    Connection::open(file(&dir))
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let error = Store::open(&file(&dir)).unwrap_err();
    assert!(
        matches!(error, StoreError::Newer { found: 99, .. }),
        "{error:?}"
    );
}

#[test]
fn a_damaged_log_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    let mut store = Store::open(&path).unwrap();
    for _ in 0..50 {
        let id = Uuid::now_v7();
        append_all(&mut store, id, &run(id, 0, "draft", &"p".repeat(500)));
    }
    drop(store);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = bytes.len();
    // Keep the first page, which identifies the file, and corrupt the rest.
    bytes[4096..end].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let result = Store::open(&path).and_then(|store| store.runs(&RunFilter::default()));
    let error = result.unwrap_err();
    assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
}

#[test]
fn an_unwritable_path_gets_a_hint() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("file");
    std::fs::write(&blocked, "").unwrap();
    let error = Store::open(&blocked.join("reflect.db")).unwrap_err();
    assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
    let error = Store::open(dir.path()).unwrap_err();
    assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
    assert!(error.to_string().contains("--no-log"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_file_system_is_reported_even_to_root() {
    // A file system that does not allow new files.
    let error = Store::open(Path::new("/proc/reflect-test/reflect.db")).unwrap_err();
    assert!(matches!(error, StoreError::NotWritable { .. }), "{error:?}");
}

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let id = Uuid::now_v7();
    let events = run(id, 0, "draft", "p");
    append_all(&mut store, id, &events[..2]);
    // SQLite's own limit on the file size causes the same error as a full disk.
    let pages: i64 = store
        .connection
        .pragma_query_value(None, "page_count", |row| row.get(0))
        .unwrap();
    store
        .connection
        .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
        .unwrap();
    let large = at(
        50,
        Event::Warning {
            message: "x".repeat(100_000),
        },
    );
    let error = store.append(id, 2, &large).unwrap_err();
    assert!(matches!(error, StoreError::Full { .. }), "{error:?}");
    assert_eq!(store.events(id).unwrap(), events[..2]);
}

/// A safeguard, not a measurement: with thousands of runs the list still reads no events.
#[test]
fn the_list_is_fast_for_thousands_of_runs() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&file(&dir)).unwrap();
    store
        .connection
        .execute_batch(
            "WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 20000)
             INSERT INTO run (id, started, command, title, criteria, writer, judge)
             SELECT printf('%08x-0000-7000-8000-%012x', i, i), i, 'draft', 't', 'c', 'w', 'j' FROM c;",
        )
        .unwrap();
    let begin = std::time::Instant::now();
    let filter = RunFilter {
        limit: Some(20),
        ..RunFilter::default()
    };
    assert_eq!(store.runs(&filter).unwrap().len(), 20);
    let list = begin.elapsed();
    store.find("000000004e20").unwrap();
    println!(
        "list {list:?}, find {:?}",
        begin.elapsed().saturating_sub(list)
    );
    assert!(begin.elapsed() < std::time::Duration::from_millis(500));
}

/// Run by hand: `cargo test --release store::tests::cost -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn cost_of_an_event() {
    let dir = tempfile::tempdir().unwrap();
    for mode in ["normal", "full"] {
        let mut store = Store::open(&dir.path().join(format!("{mode}.db"))).unwrap();
        store
            .connection
            .pragma_update(None, "synchronous", mode)
            .unwrap();
        let begin = std::time::Instant::now();
        let mut events = 0_u32;
        for _ in 0..100 {
            let id = Uuid::now_v7();
            let run = run(id, 0, "draft", "p");
            append_all(&mut store, id, &run);
            events += 12;
        }
        println!("{mode}: {:?} per event", begin.elapsed() / events);
    }
}

/// The prompts of the runs that match these words.
fn found(store: &Store, words: &str) -> Vec<String> {
    let filter = RunFilter {
        words: Some(words.into()),
        ..RunFilter::default()
    };
    let runs = store.runs(&filter).unwrap();
    runs.into_iter().map(|run| run.title).collect()
}

#[test]
fn runs_are_found_by_words_in_prompts_and_drafts() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    for prompt in [
        "Über die Größe",
        "it can’t fail, snake_case",
        "世界平和",
        "plain",
    ] {
        let id = Uuid::now_v7();
        let mut events = run(id, 0, "draft", prompt);
        if prompt == "plain" {
            events[6] = at(
                60,
                Event::Draft {
                    iteration: 1,
                    output: "A zebra crosses the quiet street.".into(),
                    based_on: None,
                    strategy: None,
                    edits: None,
                },
            );
        }
        append_all(&mut store, id, &events);
    }
    for (words, prompt) in [
        ("uber", "Über die Größe"),
        ("GRÖSSE", ""),
        ("größ", "Über die Größe"),
        ("die über", "Über die Größe"),
        ("\"die über\"", ""),
        ("\"über die\"", "Über die Größe"),
        ("can't", "it can’t fail, snake_case"),
        ("snake_c", "it can’t fail, snake_case"),
        ("界平", "世界平和"),
        ("zebra", "plain"),
        ("\"quiet street\" zeb", "plain"),
        ("zebra über", ""),
    ] {
        let expected: Vec<&str> = Some(prompt)
            .filter(|it| !it.is_empty())
            .into_iter()
            .collect();
        assert_eq!(found(&store, words), expected, "{words}");
    }
    for hostile in [
        "\"", "*", "NEAR(", "a AND", "text : x", "-", "^", "()", "\"a",
    ] {
        let filter = RunFilter {
            words: Some(hostile.into()),
            ..RunFilter::default()
        };
        match store.runs(&filter) {
            Ok(_) | Err(StoreError::NoWords { .. }) => {}
            Err(error) => panic!("{hostile}: {error}"),
        }
    }
}

#[test]
fn unfinished_runs_are_searchable() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let id = Uuid::now_v7();
    let events = run(id, 0, "draft", "unfinished business");
    append_all(&mut store, id, &events[..1]);
    assert_eq!(found(&store, "business").len(), 1);
    assert_eq!(found(&store, "one").len(), 0);
    for (seq, event) in (1..).zip(&events[1..7]) {
        store.append(id, seq, event).unwrap();
    }
    assert_eq!(found(&store, "one").len(), 1);
}

#[test]
fn a_log_of_an_older_version_can_be_searched() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let id = Uuid::now_v7();
    append_all(&mut store, id, &run(id, 0, "draft", "from before"));
    // As in format 2.
    store
        .connection
        .execute_batch(
            "DROP TABLE words; DROP TABLE upkeep; ALTER TABLE run DROP COLUMN indexed;
             ALTER TABLE run DROP COLUMN first_score; ALTER TABLE run DROP COLUMN tokens;
             ALTER TABLE run DROP COLUMN cost;
             DROP TABLE memory; DROP TABLE call; DROP TABLE message; PRAGMA user_version = 2;",
        )
        .unwrap();
    drop(store);
    let store = Store::open(&file(&dir)).unwrap();
    assert_eq!(found(&store, "before"), ["from before"]);
    let listed = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(listed[0].first_score, Some(0.75));
}

#[test]
fn removed_runs_leave_no_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = file(&dir);
    let mut store = Store::open(&path).unwrap();
    let ids: Vec<Uuid> = (0..20).map(|_| Uuid::now_v7()).collect();
    for (number, id) in ids.iter().enumerate() {
        let word = if number == 7 { "xylophone" } else { "piano" };
        append_all(
            &mut store,
            *id,
            &run(*id, 0, "draft", &format!("A {word} solo")),
        );
    }
    store.cache_verdict("key", "quotes the xylophone").unwrap();
    // The recorded calls are removed too.
    let mut transcript = Transcript::default();
    for (id, word) in [(ids[7], "glockenspiel"), (ids[8], "accordion")] {
        let said = Message::new(Role::User, format!("A {word} solo"));
        let call = call::exchange("key", vec![said], &format!("{word}s"));
        let event = &run(id, 0, "draft", "")[1];
        store
            .append_call(id, 100, event, call, &mut transcript)
            .unwrap();
    }
    let holds = |word: &str| -> bool {
        let folder = path.parent().unwrap();
        std::fs::read_dir(folder).unwrap().any(|entry| {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            bytes
                .windows(word.len())
                .any(|part| part == word.as_bytes())
        })
    };
    assert!(holds("xylophone") && holds("glockenspiel"));
    assert_eq!(store.remove(&[ids[7], Uuid::nil()]).unwrap(), 1);
    store.clear_verdicts().unwrap();
    assert!(!holds("xylophone") && holds("piano"));
    assert!(!holds("glockenspiel") && holds("accordion"));
    assert!(store.events(ids[7]).is_err());
    assert_eq!(found(&store, "xylophone").len(), 0);
    assert_eq!(found(&store, "piano").len(), 19);
    // A later run finds nothing of the removed ones.
    assert_eq!(store.remove(&ids).unwrap(), 19);
    let id = Uuid::now_v7();
    append_all(&mut store, id, &run(id, 0, "draft", "organ"));
    assert_eq!(found(&store, "solo").len(), 0);
    assert_eq!(found(&store, "organ").len(), 1);
}

#[test]
fn retention_keeps_recent_runs() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let day = 86_400_000_i64;
    let now = Timestamp::from_millisecond(1_700_000_000_000 + 10 * day).unwrap();
    let fill = |store: &mut Store| {
        for age in [0_i64, 1, 4, 9] {
            let id = Uuid::now_v7();
            append_all(store, id, &run(id, (10 - age) * day - 5000, "draft", "p"));
        }
        // A run in progress, and one whose process died long ago.
        for age in [0_i64, 8] {
            let id = Uuid::now_v7();
            let events = run(id, (10 - age) * day - 5000, "draft", "open");
            append_all(store, id, &events[..3]);
        }
    };
    fill(&mut store);
    let none = Retention::default();
    assert_eq!(store.apply_retention_at(now, none).unwrap(), 0);
    let week = Retention {
        days: Some(7),
        runs: None,
    };
    assert_eq!(store.apply_retention_at(now, week).unwrap(), 2);
    // Not twice on the same day.
    let one = Retention {
        days: None,
        runs: Some(1),
    };
    let later = |hours| now + jiff::SignedDuration::from_hours(hours);
    assert_eq!(store.apply_retention_at(later(23), one).unwrap(), 0);
    // The latest run is the one in progress.
    assert_eq!(store.apply_retention_at(later(-1000), one).unwrap(), 3);
    let left = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(
        left.iter()
            .map(|run| run.title.as_str())
            .collect::<Vec<_>>(),
        ["open"]
    );
}

#[test]
fn insights_that_quote_an_expired_run_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let day = 86_400_000_i64;
    let now = Timestamp::from_millisecond(1_700_000_000_000 + 10 * day).unwrap();
    let [old, new] = [1, 9].map(|started| {
        let id = Uuid::now_v7();
        append_all(&mut store, id, &run(id, started * day, "draft", "p"));
        id
    });
    let insight = |evidence: [Uuid; 2]| {
        MemoryChange::Add(Knowledge::Insight(KnownInsight {
            evidence: evidence.to_vec(),
            ..KnownInsight::new("general", "x", 0.5)
        }))
    };
    let both = vec![insight([old, new]), insight([new, old])];
    let added = store.change_memories(now, |_| both).unwrap().added;
    let week = Retention {
        days: Some(7),
        runs: None,
    };
    assert_eq!(store.apply_retention_at(now, week).unwrap(), 1);
    let known = store.memories().unwrap();
    assert_eq!((known.len(), known[0].id), (1, added[1]));
    let Knowledge::Insight(left) = &known[0].what else {
        panic!("{known:?}");
    };
    assert_eq!(left.evidence, [new]);
}

#[test]
fn outcomes_are_those_of_finished_runs_of_the_same_kind() {
    let dir = tempfile::tempdir().unwrap();
    let mut store = Store::open(&file(&dir)).unwrap();
    let mut add = |started: i64, command: &str, whole: bool, remembered: &[u64]| {
        let id = Uuid::now_v7();
        let mut events = run(id, started, command, "p");
        if let Event::RunStart { task, .. } = &mut events[0].event {
            task.remembered = remembered.to_vec();
        }
        let end = if whole { events.len() } else { 7 };
        append_all(&mut store, id, &events[..end]);
        id
    };
    let first = add(0, "draft", true, &[]);
    let second = add(1000, "draft", true, &[3, 1]);
    let revised = add(2000, "revise", true, &[]);
    add(3000, "draft", false, &[]);
    let outcomes = store.comparable_outcomes(first, 9).unwrap();
    let ids: Vec<Uuid> = outcomes.iter().map(|outcome| outcome.run_id).collect();
    assert_eq!(ids, [second, first], "the latest first");
    assert_eq!(outcomes[0].remembered, [3, 1]);
    assert_eq!(outcomes[1].remembered, [0_u64; 0]);
    assert_eq!(outcomes[0].first_score, Some(0.75));
    assert_eq!((outcomes[0].iterations, outcomes[0].success), (2, false));
    assert_eq!(outcomes[0].reason, Some(ConvergenceReason::MaxIterations));
    assert_eq!(store.comparable_outcomes(first, 1).unwrap().len(), 1);
    // The initial text of a revision is not the run's own.
    let outcomes = store.comparable_outcomes(revised, 9).unwrap();
    assert_eq!((outcomes.len(), outcomes[0].first_score), (1, None));
    assert!(
        store
            .comparable_outcomes(Uuid::nil(), 9)
            .unwrap()
            .is_empty()
    );
}
