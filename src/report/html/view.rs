//! Computes the template context of a page from the records of its runs.

use std::collections::{BTreeMap, BTreeSet};

use jiff::tz::TimeZone;
use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;

use super::chart::Chart;
use crate::report::diff::diff;
use crate::report::text::{duration, evaluation_line, mark, revised, summary, tokens};
use crate::types::{
    ConvergenceReason, Criteria, Criterion, CriterionResult, Evaluation, Event, ExitCode, Issue,
    IssueStatus, LoopSettings, Reflection, RunRecord, Stamped, Status, Task, Version,
};

/// The number of context lines around each change in a draft.
const AROUND: usize = 2;

/// The maximum length of a heading, in characters.
const HEADING: usize = 120;

/// The prompts and replies of a run's calls, by the index of their events.
pub(super) type Talks = BTreeMap<usize, Talk>;

/// Returns the title and the template context of the page about these runs. `talks` belong to a single run.
pub(super) fn page(runs: &[&[Stamped]], mut talks: Talks) -> (String, Value) {
    let single = runs.len() == 1;
    let title = match runs {
        [only] => heading(only),
        all => format!("{} texts", all.len()),
    };
    let runs = runs.iter().enumerate().map(|(place, events)| {
        // Element ids must be unique in the page.
        let id = if single {
            String::new()
        } else {
            format!("run-{}-", place + 1)
        };
        run(events, &id, if single { 1 } else { 2 }, &mut talks)
    });
    let page = context! { title => title.as_str(), single, runs => runs.collect::<Vec<_>>() };
    (title, page)
}

/// A state as a sign, a word, and a CSS class for its colour. The word is enough without the other two.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Mark {
    sign: &'static str,
    word: &'static str,
    class: &'static str,
}

impl Mark {
    const fn good(word: &'static str) -> Self {
        Self {
            sign: "✓",
            word,
            class: "good",
        }
    }

    const fn bad(word: &'static str) -> Self {
        Self {
            sign: "✗",
            word,
            class: "bad",
        }
    }

    const fn open(sign: &'static str, word: &'static str) -> Self {
        Self {
            sign,
            word,
            class: "open",
        }
    }

    fn of_run(record: &RunRecord) -> Self {
        match (record.exit_code, record.convergence_reason) {
            (None, _) => Self::open("…", "not finished"),
            (_, Some(ConvergenceReason::UserAccepted)) => Self::good("accepted"),
            (_, Some(ConvergenceReason::Corrected)) if record.success => Self::good("corrected"),
            (Some(ExitCode::Success), _) => Self::good("criteria met"),
            (Some(ExitCode::NotMet), _) => Self::bad("criteria not met"),
            (Some(ExitCode::Limit), _) => Self::bad("stopped by a limit"),
            (Some(ExitCode::Provider), _) => Self::bad("the model failed"),
            (Some(ExitCode::JudgeUnusable), _) => Self::bad("could not be judged"),
            (Some(ExitCode::Interrupted), _) => Self::open("…", "interrupted"),
            (Some(ExitCode::Failure | ExitCode::Usage), _) => Self::bad("failed"),
        }
    }

    pub(super) fn of_evaluation(evaluation: &Evaluation) -> Self {
        if evaluation.satisfactory {
            Self::good("criteria met")
        } else if evaluation.status == Status::Ok {
            Self::bad("criteria not met")
        } else {
            Self::open("?", "could not be judged")
        }
    }

    pub(super) fn of_result(result: &CriterionResult) -> Self {
        match mark(result) {
            '✓' => Self::good("met"),
            '✗' => Self::bad("not met"),
            _ => Self::open("?", "no verdict"),
        }
    }
}

/// The prompt and the reply of a model call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Talk {
    /// The messages of the prompt, in order.
    pub asked: Vec<Said>,
    /// The model's reasoning; empty if its server does not report it.
    pub reasoning: String,
    /// The reply.
    pub answer: String,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// The role: `system`, `user` or `assistant`.
    pub role: String,
    /// The content.
    pub text: String,
}

/// The start event of a run.
#[derive(Clone, Copy)]
struct Start<'e> {
    command: &'e str,
    file: Option<&'e str>,
    task: &'e Task,
    criteria: &'e Criteria,
    settings: &'e LoopSettings,
}

impl<'e> Start<'e> {
    fn of(events: &'e [Stamped]) -> Option<Self> {
        events
            .iter()
            .rev()
            .find_map(|stamped| match &stamped.event {
                Event::RunStart {
                    command,
                    file,
                    task,
                    criteria,
                    settings,
                    ..
                } => Some(Self {
                    command,
                    file: file.as_deref(),
                    task,
                    criteria,
                    settings,
                }),
                _ => None,
            })
    }
}

/// Returns the context of a run. `id` is the prefix of its element ids, `level` the level of its heading.
fn run(events: &[Stamped], id: &str, level: u8, talks: &mut Talks) -> Value {
    let record = RunRecord::from_events(events);
    let start = Start::of(events);
    let threshold = start.map_or(0.0, |start| {
        start.settings.threshold.unwrap_or(start.criteria.threshold)
    });
    let lineage = lineage(&record);
    let aside = |version: &Version| !lineage.contains(&version.iteration);
    let (first, chosen) = (record.versions.first(), record.selected());
    let is_later = |first: &&Version| chosen.is_some_and(|it| it.iteration != first.iteration);
    let calls = events.iter().enumerate().filter(|(_, it)| is_call(it));
    let calls: Vec<Value> = calls
        .map(|(place, it)| {
            context! { talk => talks.remove(&place).map(Serde), ..Value::from(Serde(&it.event)) }
        })
        .collect();
    let local = |time: jiff::Timestamp| time.to_zoned(TimeZone::system());
    let started = record.started.map(local);
    context! {
        id, level, threshold,
        command => start.map(|it| it.command),
        file => start.and_then(|it| it.file),
        criteria_name => start.map(|it| &*it.criteria.name),
        heading => heading(events),
        outcome => Serde(Mark::of_run(&record)),
        summary => match record.exit_code {
            Some(_) => summary(&record),
            None => "still running, or its process ended".to_owned(),
        },
        score => chosen.or(first).and_then(Version::score),
        first_score => first.filter(is_later).and_then(Version::score),
        selected => record.selected,
        drafts_in_all => record.selected.map(|selected| record.iterations().max(selected)),
        found => Serde(record.issues()),
        requests => record.total_llm_calls,
        tokens => tokens(&record.token_usage),
        usage => Serde(record.token_usage),
        cost => record.cost(),
        time => record.execution_time().map(duration),
        models => Serde(&record.models),
        started => started.map(|it| it.strftime("%Y-%m-%d %H:%M:%S %Z").to_string()),
        run_id => record.run_id.map(|it| it.to_string()),
        warnings => Serde(&record.warnings),
        error => record.error.as_deref(),
        answer => chosen.map(Serde),
        chart => Chart::of(&record.versions, threshold, record.selected, &lineage).map(Serde),
        branches => record.versions.iter().any(aside),
        drafts => drafts(events, &record),
        criteria => start.map_or_else(Vec::new, |it| criterion_rows(&record, it.criteria)),
        issues => issue_rows(events, &record),
        evidence => Serde(&record.evidence),
        given => Serde(start.map(|it| given(it.task, it.settings)).unwrap_or_default()),
        costs => events.iter().any(|it| matches!(it.event, Event::Call { cost: Some(_), .. })),
        calls,
        calls_ms => events.iter().map(call_ms).fold(0, u64::saturating_add),
        retries => retries(events),
    }
}

fn is_call(stamped: &Stamped) -> bool {
    matches!(stamped.event, Event::Call { .. })
}

fn call_ms(stamped: &Stamped) -> u64 {
    match &stamped.event {
        Event::Call { duration_ms, .. } => *duration_ms,
        _ => 0,
    }
}

fn retries(events: &[Stamped]) -> Vec<Value> {
    let retries = events.iter().map(|stamped| &stamped.event);
    let retries = retries.filter(|event| matches!(event, Event::Retry { .. }));
    retries.map(|event| Value::from(Serde(event))).collect()
}

/// The selected draft, or else the best one, followed by the drafts that it is based on.
fn lineage(record: &RunRecord) -> Vec<u32> {
    let mut lineage = Vec::new();
    let mut next = record.selected().or_else(|| record.best());
    while let Some(version) = next {
        lineage.push(version.iteration);
        // A base is always an earlier version, so this ends.
        next = version
            .based_on
            .filter(|base| *base < version.iteration)
            .and_then(|base| record.version(base));
    }
    lineage
}

fn heading(events: &[Stamped]) -> String {
    let start = Start::of(events);
    let prompt = start.and_then(|start| {
        let mut lines = start.task.prompt.lines().map(str::trim);
        lines.find(|line| !line.is_empty())
    });
    let Some(line) = prompt.or(start.and_then(|start| start.file)) else {
        return "A text".to_owned();
    };
    let mut heading: String = line.chars().take(HEADING).collect();
    if heading.len() < line.len() {
        heading.push('…');
    }
    heading
}

/// The events of each version other than its verdict.
#[derive(Default)]
struct Story<'e> {
    notes: BTreeMap<u32, Vec<Value>>,
    decisions: BTreeMap<u32, Vec<Value>>,
    /// The open issues of each version, for versions without a verdict.
    named: BTreeMap<u32, Vec<&'e Issue>>,
}

impl<'e> Story<'e> {
    fn of(events: &'e [Stamped], record: &RunRecord) -> Self {
        let mut story = Self::default();
        for Stamped { event, .. } in events {
            match event {
                Event::Strategy { iteration, .. }
                | Event::Cleaned { iteration, .. }
                | Event::Rejected { iteration, .. }
                | Event::ToolResult { iteration, .. }
                | Event::Reflection(Reflection { iteration, .. }) => {
                    let notes = story.notes.entry(*iteration).or_default();
                    notes.push(Value::from(Serde(event)));
                }
                Event::Decision { iteration, .. } => {
                    let decisions = story.decisions.entry(*iteration).or_default();
                    decisions.push(Value::from(Serde(event)));
                }
                Event::UserDecision {
                    iteration,
                    decision,
                } => {
                    let decisions = story.decisions.entry(*iteration).or_default();
                    decisions
                        .push(context! { event => "user_decision", reason => decision.describe() });
                }
                Event::Issues {
                    iteration, open, ..
                } => {
                    let issues = open.iter().map(|tracked| &tracked.issue).collect();
                    story.named.insert(*iteration, issues);
                }
                _ => {}
            }
        }
        for candidate in &record.candidates {
            let notes = story.notes.entry(candidate.iteration).or_default();
            notes.push(context! { event => "candidate", ..Value::from(Serde(candidate)) });
        }
        story
    }
}

/// Returns the versions in order, including numbers for which no reply became a version.
fn drafts(events: &[Stamped], record: &RunRecord) -> Vec<Value> {
    let mut story = Story::of(events, record);
    let versions = record.versions.iter().map(|version| version.iteration);
    let numbers: BTreeSet<u32> = versions
        .chain(story.notes.keys().copied())
        .chain(story.decisions.keys().copied())
        .collect();
    let draft = |number: u32| {
        let happened = context! {
            number,
            selected => record.selected == Some(number),
            notes => story.notes.remove(&number).unwrap_or_default(),
            decisions => story.decisions.remove(&number).unwrap_or_default(),
        };
        if let Some(version) = record.version(number) {
            let named = story.named.remove(&number).unwrap_or_default();
            context! { ..happened, ..of_version(record, version, &named) }
        } else {
            context! { version => (), ..happened }
        }
    };
    numbers.into_iter().map(draft).collect()
}

fn of_version(record: &RunRecord, version: &Version, named: &[&Issue]) -> Value {
    let base = version.based_on.and_then(|base| record.version(base));
    let before = base.and_then(Version::score);
    let evaluation = version.evaluation.as_ref();
    let scores = version.score().zip(before);
    context! {
        version => Serde(version),
        verdict => evaluation.map(Mark::of_evaluation).map(Serde),
        score => version.score(),
        change => scores.map(|(now, before)| format!("{:+.2}", now - before)),
        line => evaluation_line(version, before),
        from => revised(version),
        tokens => tokens(&version.token_usage),
        results => Serde(evaluation.map(|it| &it.criteria)),
        issues => match evaluation {
            Some(evaluation) => Value::from(Serde(&evaluation.issues)),
            None => Value::from(Serde(named)),
        },
        parent => base.map(|base| base.iteration),
        hunks => Serde(base.map(|base| diff(&base.output, &version.output, AROUND).hunks)),
    }
}

/// Returns the criteria in order, each with its results in all drafts.
fn criterion_rows(record: &RunRecord, criteria: &Criteria) -> Vec<Value> {
    let cell = |version: &Version, name: &str| -> Option<Serde<CriterionResult>> {
        let results = &version.evaluation.as_ref()?.criteria;
        let result = results.iter().find(|result| result.name == name)?;
        Some(Serde(result.clone()))
    };
    let row = |criterion: &Criterion| {
        let cells = record.versions.iter().map(|it| cell(it, &criterion.name));
        let measured = criterion.evaluator.describe();
        let description = [&criterion.description, &measured.unwrap_or_default()];
        let description = description.into_iter().filter(|part| !part.is_empty());
        context! {
            name => &*criterion.name,
            description => description.map(String::as_str).collect::<Vec<_>>().join(" "),
            evaluator => criterion.evaluator.kind(),
            weight => criterion.weight.to_string(),
            floor => criterion.threshold,
            required => criterion.required,
            cells => cells.collect::<Vec<_>>(),
        }
    };
    criteria.criteria.iter().map(row).collect()
}

/// Returns the issues of all versions, in the order in which they were found.
fn issue_rows(events: &[Stamped], record: &RunRecord) -> Vec<Value> {
    let versions = record.versions.iter().map(|version| version.iteration);
    let place: BTreeMap<u32, usize> = versions.zip(0..).collect();
    let mut rows: BTreeMap<u32, (&Issue, Vec<Option<IssueStatus>>)> = BTreeMap::new();
    for Stamped { event, .. } in events {
        if let Event::Issues {
            iteration,
            open,
            resolved,
        } = event
            && let Some(&place) = place.get(iteration)
        {
            for tracked in open.iter().chain(resolved) {
                let row = rows.entry(tracked.id);
                let (_, cells) = row.or_insert((&tracked.issue, vec![None; record.versions.len()]));
                cells[place] = Some(tracked.status);
            }
        }
    }
    let row = |(issue, cells): (&Issue, Vec<Option<IssueStatus>>)| context! { issue => Serde(issue), cells => Serde(cells) };
    rows.into_values().map(row).collect()
}

/// Returns the models' input other than drafts and evaluations.
fn given(task: &Task, settings: &LoopSettings) -> Vec<(String, String)> {
    let mut given = Vec::new();
    let mut push = |what: String, text: &str| {
        if !text.trim().is_empty() {
            given.push((what, text.to_owned()));
        }
    };
    push("Prompt".to_owned(), &task.prompt);
    push(
        "Instructions".to_owned(),
        task.system.as_deref().unwrap_or_default(),
    );
    for block in &task.context {
        push(format!("Context: {}", block.name), &block.content);
    }
    for message in &task.message_history {
        push(
            format!("Earlier message of {}", message.role),
            &message.content,
        );
    }
    for fact in &task.facts {
        push("Fact".to_owned(), &fact.content);
    }
    for procedure in &task.procedures {
        let name = procedure.name.as_deref();
        push(
            name.map_or("Procedure".to_owned(), |name| format!("Procedure: {name}")),
            &procedure.content,
        );
    }
    for insight in &task.insights {
        push("Insight".to_owned(), &insight.content);
    }
    let settings = serde_json::to_string_pretty(settings).unwrap_or_default();
    if settings != "{}" {
        push("Loop settings".to_owned(), &settings);
    }
    given
}
