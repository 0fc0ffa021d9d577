//! The same for runs with candidates, with somebody who decides, with reflections, and with a tool.

use super::*;
use crate::engine::{Decider, Moment};
use crate::types::{Candidates, UserDecision};

/// What becomes of a run that stops after each of its events.
struct Kind<'a> {
    /// What the model answers; each reply with `times = 1` is given once.
    script: String,
    settings: LoopSettings,
    /// What else the loop is made of.
    made: &'a (dyn Fn(&mut Loop) + Sync),
    /// Decides after each version.
    decide: Option<fn(u32) -> UserDecision>,
}

fn write(contains: &str, times: u32, text: &str) -> String {
    format!(
        "[[reply]]\npurpose = 'write'\ncontains = '{contains}'\ntimes = {times}\ntext = '{text}'\n"
    )
}

fn nothing_else(_: &mut Loop) {}

impl Kind<'_> {
    fn model(&self) -> Arc<ScriptedModel> {
        Arc::new(ScriptedModel::parse(Path::new("s.toml"), &self.script).unwrap())
    }

    /// Goes on with what is kept; says after which versions somebody was asked.
    async fn go_on(&self, before: &Kept) -> (RunRecord, Kept, Vec<u32>) {
        let (task, journal) = (Task::new("Write a line."), before.journal());
        let model = self.model();
        model.skip(&journal.calls);
        let mut plan = Loop {
            settings: self.settings.clone(),
            ..Loop::new(model, criteria())
        };
        (self.made)(&mut plan);
        let (mut now, mut asked) = (Kept::default(), Vec::new());
        let nobody = CancellationToken::new();
        let seen = &mut asked;
        let mut decider = self.decide.map(|decide| {
            move |moment: Moment<'_>| {
                seen.push(moment.iteration);
                decide(moment.iteration)
            }
        });
        let decider = decider.as_mut().map(|decider| decider as &mut dyn Decider);
        let record = plan
            .run_over(&task, journal, &mut now, decider, &nobody)
            .await;
        (record, now, asked)
    }

    /// Stops the run after each of its events, and goes on with it. Gives the whole run.
    async fn stopped_anywhere(&self) -> (RunRecord, Kept) {
        let (record, kept, _) = self.go_on(&Kept::default()).await;
        assert_eq!(kept.calls.len(), kept.made, "every call is answered");
        for end in 1..kept.events.len() {
            let before = kept.until(end);
            let (resumed, now, asked) = self.go_on(&before).await;
            assert_eq!(essence(&resumed), essence(&record), "after {end} events");
            assert_eq!(resumed.convergence_reason, record.convergence_reason);
            assert_eq!(resumed.candidates, record.candidates, "after {end}");
            assert_eq!(resumed.reflections, record.reflections, "after {end}");
            assert_eq!(resumed.token_usage, record.token_usage, "after {end}");
            assert_eq!(
                now.made,
                kept.made - before.calls.len(),
                "after {end} events: {:?}",
                before.events.last()
            );
            // What is on disk then tells the same.
            let place_is_void = |place: &usize| now.void.contains(place);
            let all: Vec<Stamped> = (0..)
                .zip(before.events.clone())
                .filter(|(place, _)| !place_is_void(place))
                .map(|(_, event)| event)
                .chain(now.events.clone())
                .collect();
            let told = RunRecord::from_events(&all);
            assert_eq!(essence(&told), essence(&record), "after {end}");
            assert_eq!(told.candidates, record.candidates, "after {end}");
            for stamped in &before.events {
                if let Event::UserDecision { iteration, .. } = &stamped.event {
                    assert!(!asked.contains(iteration), "asked again after {end}");
                }
            }
        }
        (record, kept)
    }
}

fn many() -> LoopSettings {
    LoopSettings {
        candidates: Some(Candidates::Number(2)),
        ..settings()
    }
}

/// The first version is followed by the better one of two candidates, and by one of two that are the same.
fn of_candidates() -> String {
    [
        judge("gamma draft", 5),
        judge("second beta draft", 3),
        judge("first beta draft", 2),
        judge("alpha draft", 1),
        write("second beta draft", 0, "The gamma draft, at last."),
        write("alpha draft", 1, "The first beta draft."),
        write("alpha draft", 1, "The second beta draft."),
        write("Write a line.", 0, "The alpha draft."),
    ]
    .concat()
}

#[tokio::test]
async fn so_does_one_with_candidates() {
    let kind = Kind {
        script: of_candidates(),
        settings: many(),
        made: &nothing_else,
        decide: None,
    };
    let (record, kept) = kind.stopped_anywhere().await;
    assert_eq!(
        record.convergence_reason,
        Some(ConvergenceReason::QualityMet)
    );
    let outputs: Vec<_> = record.versions.iter().map(|v| v.output.as_str()).collect();
    assert_eq!(
        outputs,
        [
            "The alpha draft.",
            "The second beta draft.",
            "The gamma draft, at last."
        ]
    );
    assert_eq!(record.candidates.len(), 4);
    assert!(record.candidates[3].lost.is_some(), "the same text");
    assert_eq!(kept.made, 2 + 4 + 3);
}

/// Candidates ask in turns, so that their seeds are the same whichever of them is further. One of them tries edits
/// first, and asks twice.
#[tokio::test]
async fn so_does_one_with_candidates_and_seeds() {
    let seeded = |plan: &mut Loop| plan.writer_sampling.seed = Some(7);
    let kind = Kind {
        script: [
            judge("gamma draft", 5),
            judge("beta draft", 3),
            judge("alpha draft", 1),
            write("beta draft", 0, "The gamma draft, at last."),
            write("alpha draft", 0, "The beta draft."),
            write("Write a line.", 0, "The alpha draft."),
        ]
        .concat(),
        settings: LoopSettings {
            strategy: Some(crate::types::Strategy::Hybrid),
            ..many()
        },
        made: &seeded,
        decide: None,
    };
    let (record, _) = kind.stopped_anywhere().await;
    assert_eq!(record.versions.len(), 3);
}

#[tokio::test]
async fn so_does_one_in_which_somebody_decides() {
    let kind = Kind {
        script: [
            judge("gamma draft", 5),
            judge("edited draft", 2),
            judge("beta draft", 3),
            judge("alpha draft", 2),
            write("edited draft", 0, "The gamma draft, at last."),
            write("alpha draft", 0, "The beta draft."),
            write("Write a line.", 0, "The alpha draft."),
        ]
        .concat(),
        settings: settings(),
        made: &nothing_else,
        decide: Some(|version| match version {
            1 => UserDecision::Guide("Be bold.".to_owned()),
            // Of the version that is not the last one.
            2 => UserDecision::Edit {
                of: 1,
                text: "The edited draft.".to_owned(),
            },
            _ => UserDecision::Auto,
        }),
    };
    let (record, _) = kind.stopped_anywhere().await;
    assert_eq!(record.versions.len(), 4);
    assert_eq!(record.versions[2].output, "The edited draft.");
    assert_eq!(record.versions[2].based_on, Some(1));
    assert_eq!(
        record.convergence_reason,
        Some(ConvergenceReason::QualityMet)
    );
}

#[tokio::test]
async fn so_does_one_that_is_ahead_of_who_decides() {
    let ahead = |plan: &mut Loop| plan.prefetch = true;
    let kind = Kind {
        script: [
            judge("gamma draft", 5),
            judge("beta draft", 3),
            judge("alpha draft", 2),
            write("beta draft", 0, "The gamma draft, at last."),
            write("alpha draft", 0, "The beta draft."),
            write("Write a line.", 0, "The alpha draft."),
        ]
        .concat(),
        settings: settings(),
        made: &ahead,
        decide: Some(|version| match version {
            1 => UserDecision::Continue,
            _ => UserDecision::Auto,
        }),
    };
    let (record, _) = kind.stopped_anywhere().await;
    assert_eq!(record.versions.len(), 3);
    assert_eq!(
        record.convergence_reason,
        Some(ConvergenceReason::QualityMet)
    );
}

#[tokio::test]
async fn who_ended_a_run_is_asked_again_when_it_goes_on() {
    let ends = Kind {
        script: of_candidates(),
        settings: settings(),
        made: &nothing_else,
        decide: Some(|version| match version {
            1 => UserDecision::Continue,
            _ => UserDecision::Stop,
        }),
    };
    let (stopped, kept, _) = ends.go_on(&Kept::default()).await;
    assert_eq!(
        stopped.convergence_reason,
        Some(ConvergenceReason::UserQuit)
    );
    let goes_on = Kind {
        decide: Some(|_| UserDecision::Accept(1)),
        ..ends
    };
    let (resumed, now, asked) = goes_on.go_on(&kept).await;
    assert_eq!(
        (asked, now.made),
        (vec![2], 0),
        "not of the first version, and no model"
    );
    assert_eq!(resumed.selected, Some(1));
    let void = |event: &&usize| {
        matches!(
            kept.events[**event].event,
            Event::UserDecision { .. } | Event::RunEnd { .. }
        )
    };
    assert_eq!(now.void.iter().filter(void).count(), 2, "{:?}", now.void);
    // Where nobody decides any more, the loop does.
    let alone = Kind {
        decide: None,
        ..goes_on
    };
    let (resumed, now, _) = alone.go_on(&kept).await;
    assert!(resumed.versions.len() > stopped.versions.len());
    assert!(now.made > 0);
}

#[tokio::test]
async fn so_does_one_that_reflects() {
    let kind = Kind {
        script: [
            judge("gamma draft", 5),
            judge("beta draft", 1),
            judge("alpha draft", 3),
            write("It is discarded, and the next", 0, "It lost the point."),
            write("It lost the point", 0, "The gamma draft, at last."),
            write("alpha draft", 0, "The beta draft."),
            write("Write a line.", 0, "The alpha draft."),
        ]
        .concat(),
        settings: LoopSettings {
            quality_drop_threshold: Some(0.1),
            ..settings()
        },
        made: &nothing_else,
        decide: None,
    };
    let (record, _) = kind.stopped_anywhere().await;
    assert_eq!(record.reflections.len(), 1);
    assert_eq!(
        record.convergence_reason,
        Some(ConvergenceReason::QualityMet)
    );
}

/// The tool says how often it was run: if it were run again for what is recorded, the models would be asked something
/// else, and the calls would not match.
#[cfg(unix)]
#[tokio::test]
async fn so_does_one_with_a_tool() {
    use crate::engine::WriterTool;
    use crate::evaluate::ExecPermission;
    use crate::types::CommandConfig;

    let dir = tempfile::tempdir().unwrap();
    let counts = std::sync::atomic::AtomicUsize::new(0);
    let with_tools = |plan: &mut Loop| {
        let tool = |command: &str| {
            let config = CommandConfig::parse(command).unwrap();
            WriterTool::new(config, ExecPermission::given_by_user())
        };
        // Each process begins to count where the last one's record ends: whatever it says, it says it once.
        let run = counts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let file = dir.path().join(run.to_string());
        let counted = format!(
            "sh -c 'echo x >> {file}; wc -l < {file}'",
            file = file.display()
        );
        plan.writer_tools = vec![tool(&counted), tool("there-is-no-such-program")];
    };
    let kind = Kind {
        script: [
            judge("beta draft", 5),
            judge("alpha draft", 2),
            write("matters for the", 0, "Mind the count."),
            write("alpha draft", 0, "The beta draft."),
            write("Write a line.", 0, "The alpha draft."),
        ]
        .concat(),
        settings: LoopSettings {
            reflect_on_tools: Some(Vec::new()),
            ..settings()
        },
        made: &with_tools,
        decide: None,
    };
    let (record, kept, _) = kind.go_on(&Kept::default()).await;
    assert_eq!(record.versions.len(), 2);
    let results = |kept: &Kept| {
        let result = |it: &&Stamped| matches!(it.event, Event::ToolResult { .. });
        kept.events.iter().filter(result).count()
    };
    assert_eq!(results(&kept), 2);
    for end in 1..kept.events.len() {
        let before = kept.until(end);
        let run = counts.load(std::sync::atomic::Ordering::Relaxed);
        let (resumed, now, _) = kind.go_on(&before).await;
        assert_eq!(resumed.versions.len(), 2, "after {end}");
        assert_eq!(now.made, kept.made - before.calls.len(), "after {end}");
        let ran = std::fs::read_to_string(dir.path().join(run.to_string())).unwrap_or_default();
        assert_eq!(ran.lines().count(), 2 - results(&before), "after {end}");
        assert!(now.void.is_empty(), "after {end}: {:?}", now.void);
    }
}
