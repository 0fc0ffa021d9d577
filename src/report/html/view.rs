//! What a page shows: a fold over the events of runs, with everything already in words.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use serde::Serialize;

use super::chart::Chart;
use crate::report::diff::{Block, Change, diff};
use crate::report::text::{
    asides, doubt, duration, evaluation_line, mark, revised, summary, thousands, tokens, value,
};
use crate::types::{
    Candidate, Choice, ConvergenceReason, Criteria, CriterionResult, Event, ExitCode, Issue,
    IssueStatus, LoopSettings, Models, Phase, Reflection, RunRecord, Severity, Stamped, Status,
    Task, TokenUsage, TrackedIssue, Trigger, Version,
};

/// Lines of a draft that are shown around each place that differs.
const AROUND: usize = 2;

/// The longest heading that is taken from a prompt, in characters.
const HEADING: usize = 120;

/// The page.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    title: String,
    /// Whether the page is about one run, which then is all of it.
    single: bool,
    runs: Vec<Run>,
}

impl Page {
    pub(super) fn of(runs: &[&[Stamped]]) -> Self {
        let single = runs.len() == 1;
        let runs: Vec<Run> = runs
            .iter()
            .enumerate()
            .map(|(place, events)| {
                // Names of places in the page must be unique.
                let id = if single {
                    String::new()
                } else {
                    format!("run-{}-", place + 1)
                };
                Run::of(events, id, if single { 1 } else { 2 }, BTreeMap::new())
            })
            .collect();
        Self::new(single, runs)
    }

    pub(super) fn with_talks(run: &[Stamped], talks: BTreeMap<usize, Talk>) -> Self {
        Self::new(true, vec![Run::of(run, String::new(), 1, talks)])
    }

    pub(super) fn title(&self) -> &str {
        &self.title
    }

    fn new(single: bool, runs: Vec<Run>) -> Self {
        let title = match runs.as_slice() {
            [only] => only.heading.clone(),
            all => format!("{} texts", all.len()),
        };
        Self {
            title,
            single,
            runs,
        }
    }
}

/// A run.
#[derive(Debug, Serialize)]
struct Run {
    /// What the names of its places begin with.
    id: String,
    /// The level of its own heading.
    level: u8,
    command: String,
    heading: String,
    outcome: Mark,
    summary: String,
    figures: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    error: Option<String>,
    answer: Option<Answer>,
    chart: Option<Chart>,
    threshold: String,
    /// Whether there are drafts that the answer does not go back to.
    branches: bool,
    drafts: Vec<Draft>,
    criteria: Vec<CriterionRow>,
    issues: Vec<IssueRow>,
    evidence: Vec<Piece>,
    given: Vec<Given>,
    calls: Vec<Call>,
    total: Option<Call>,
    /// Whether it is known of a call what it cost, or what was said in it.
    costs: bool,
    talks: bool,
    retries: Vec<String>,
}

/// A state, as a sign, a word, and a class for its colour. The word says all.
#[derive(Debug, Clone, Copy, Serialize)]
struct Mark {
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

    fn of_result(result: &CriterionResult) -> Self {
        match mark(result) {
            '✓' => Self::good("met"),
            '✗' => Self::bad("not met"),
            _ => Self::open("?", "no verdict"),
        }
    }
}

/// The selected draft.
#[derive(Debug, Serialize)]
struct Answer {
    /// What it is to the reader.
    name: &'static str,
    number: u32,
    text: String,
}

/// A version, or what came of one that never was.
#[derive(Debug, Serialize)]
struct Draft {
    number: u32,
    selected: bool,
    /// Of the overall score.
    verdict: Option<Mark>,
    score: Option<String>,
    /// Against the draft that it revises.
    change: Option<String>,
    /// In one line.
    line: String,
    from: Option<String>,
    written: String,
    notes: Vec<Note>,
    decisions: Vec<Note>,
    results: Vec<ResultRow>,
    issues: Vec<Weakness>,
    resolved: Vec<String>,
    /// The draft that it revises, and what differs.
    parent: Option<u32>,
    hunks: Vec<HunkView>,
    text: Option<String>,
}

/// Something that happened on the way.
#[derive(Debug, Serialize)]
struct Note {
    what: String,
    why: String,
    /// A text that belongs to it.
    text: Option<String>,
}

#[derive(Debug, Serialize)]
struct ResultRow {
    name: String,
    mark: Mark,
    value: String,
    floor: String,
    reason: Option<String>,
    asides: Option<String>,
}

#[derive(Debug, Serialize)]
struct Weakness {
    grave: bool,
    severity: &'static str,
    kind: &'static str,
    description: String,
    criterion: Option<String>,
    doubt: Option<&'static str>,
    line: Option<u64>,
    quote: Option<String>,
    claim: Option<String>,
    fix: Option<String>,
}

impl Weakness {
    fn of(issue: &Issue) -> Self {
        Self {
            grave: issue.severity >= Severity::Major,
            severity: issue.severity.as_str(),
            kind: issue.kind.as_str(),
            description: issue.description.clone(),
            criterion: issue.criterion.clone(),
            doubt: doubt(issue),
            line: issue.place.line,
            quote: issue.place.quote.clone(),
            claim: issue.place.claim.clone(),
            fix: issue.suggested_fix.clone(),
        }
    }
}

#[derive(Debug, Serialize)]
struct HunkView {
    /// Where it is, in words.
    place: String,
    blocks: Vec<BlockView>,
}

#[derive(Debug, Serialize)]
struct BlockView {
    kind: &'static str,
    pieces: Vec<(&'static str, String)>,
}

/// A criterion through the drafts.
#[derive(Debug, Serialize)]
struct CriterionRow {
    name: String,
    description: String,
    evaluator: &'static str,
    weight: String,
    floor: String,
    required: bool,
    /// For each draft; `None` where it was not judged by it.
    cells: Vec<Option<(Mark, String)>>,
}

/// An issue through the drafts.
#[derive(Debug, Serialize)]
struct IssueRow {
    id: u32,
    issue: Weakness,
    since: u32,
    cells: Vec<Option<Mark>>,
}

/// Something that drafts were checked against.
#[derive(Debug, Serialize)]
struct Piece {
    source: &'static str,
    place: Option<String>,
    relevance: Option<String>,
    claim: Option<String>,
    text: String,
}

/// A text that the models were given.
#[derive(Debug, Serialize)]
struct Given {
    what: String,
    text: String,
}

/// A call of a model.
#[derive(Debug, Default, Serialize)]
struct Call {
    step: &'static str,
    draft: u32,
    model: String,
    prompt: Option<String>,
    completion: Option<String>,
    cached: Option<String>,
    time: String,
    requests: u32,
    cost: Option<String>,
    error: Option<String>,
    talk: Option<Talk>,
}

/// What was asked and answered in a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Talk {
    /// What the model was asked, in order.
    pub asked: Vec<Said>,
    /// What it reasoned, as far as its server told; may be empty.
    pub reasoning: String,
    /// What it answered.
    pub answer: String,
}

/// A message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// Who speaks: `system`, `user` or `assistant`.
    pub role: String,
    /// What is said.
    pub text: String,
}

impl Run {
    fn of(events: &[Stamped], id: String, level: u8, mut talks: BTreeMap<usize, Talk>) -> Self {
        let record = RunRecord::from_events(events);
        let mut start = None;
        for stamped in events {
            if let Event::RunStart {
                command,
                file,
                task,
                criteria,
                settings,
                ..
            } = &stamped.event
            {
                start = Some((
                    command,
                    file.as_deref(),
                    task.as_ref(),
                    criteria.as_ref(),
                    settings,
                ));
            }
        }
        let (criteria, settings) = (start.map(|it| it.3), start.map(|it| it.4));
        let threshold = criteria.map_or(0.0, |criteria| {
            settings
                .and_then(|settings| settings.threshold)
                .unwrap_or(criteria.threshold)
        });
        let way = way(&record);
        let story = Story::of(events, &record);
        let calls: Vec<Call> = events
            .iter()
            .enumerate()
            .filter_map(|(place, stamped)| {
                let talk = talks.remove(&place);
                Some(Call {
                    talk,
                    ..call(stamped)?
                })
            })
            .collect();
        Self {
            level,
            command: start.map_or_else(String::new, |it| it.0.clone()),
            heading: heading(start.map(|it| it.2), start.and_then(|it| it.1)),
            outcome: Mark::of_run(&record),
            summary: match record.exit_code {
                Some(_) => summary(&record),
                None => "the run goes on, or its process ended".to_owned(),
            },
            figures: figures(&record, criteria, start.and_then(|it| it.1)),
            warnings: record.warnings.clone(),
            error: record.error.clone(),
            answer: record.selected().map(|selected| Answer {
                name: match start.map(|it| it.0.as_str()) {
                    Some("evaluate") => "Text",
                    _ => "Answer",
                },
                number: selected.iteration,
                text: selected.output.clone(),
            }),
            chart: Chart::of(&record.versions, threshold, record.selected, &way),
            threshold: format!("{threshold:.2}"),
            branches: record
                .versions
                .iter()
                .any(|version| !way.contains(&version.iteration)),
            drafts: drafts(&record, story),
            criteria: criterion_rows(&record, criteria),
            issues: issue_rows(events, &record),
            evidence: evidence(&record),
            given: start
                .map(|(_, _, task, _, settings)| given(task, settings))
                .unwrap_or_default(),
            total: (calls.len() > 1).then(|| total(&record, events)),
            costs: calls.iter().any(|call| call.cost.is_some()),
            talks: calls.iter().any(|call| call.talk.is_some()),
            calls,
            retries: events.iter().filter_map(retry).collect(),
            id,
        }
    }
}

/// The drafts that the selected one, else the best one, goes back to, itself included.
fn way(record: &RunRecord) -> Vec<u32> {
    let mut way = Vec::new();
    let mut next = record.selected().or_else(|| record.best());
    while let Some(version) = next {
        way.push(version.iteration);
        // A base is always an earlier version, so this ends.
        next = version
            .based_on
            .filter(|base| *base < version.iteration)
            .and_then(|base| record.version(base));
    }
    way
}

fn heading(task: Option<&Task>, file: Option<&str>) -> String {
    let prompt = task.and_then(|task| {
        let mut lines = task.prompt.lines().map(str::trim);
        lines.find(|line| !line.is_empty())
    });
    let Some(line) = prompt.or(file) else {
        return "A text".to_owned();
    };
    let mut heading: String = line.chars().take(HEADING).collect();
    if heading.len() < line.len() {
        heading.push('…');
    }
    heading
}

/// What is known of the run as a whole, in a word each.
fn figures(
    record: &RunRecord,
    criteria: Option<&Criteria>,
    file: Option<&str>,
) -> Vec<(&'static str, String)> {
    let mut figures = Vec::new();
    let (first, chosen) = (record.versions.first(), record.selected());
    if let Some(now) = chosen.or(first).and_then(Version::score) {
        let before = first.and_then(Version::score).filter(|_| {
            chosen.is_some_and(|chosen| first.is_some_and(|it| it.iteration != chosen.iteration))
        });
        figures.push((
            "Score",
            match before {
                Some(before) => format!("{now:.2} (first draft {before:.2})"),
                None => format!("{now:.2}"),
            },
        ));
    }
    if let Some(selected) = record.selected {
        let all = record.iterations().max(selected);
        figures.push(("Selected", format!("draft {selected} of {all}")));
    }
    if let Some(issues) = record.issues() {
        figures.push((
            "Issues",
            format!("{} of {} resolved", issues.resolved, issues.found),
        ));
    }
    figures.push(("Calls", record.total_llm_calls.to_string()));
    figures.extend(tokens(&record.token_usage).map(|it| ("Tokens", it)));
    figures.extend(record.cost().map(|it| ("Cost", money(it))));
    figures.extend(record.execution_time().map(|it| ("Time", duration(it))));
    if let Some(Models { writer, judge }) = &record.models {
        figures.extend(writer.as_ref().map(|it| ("Writer", it.to_string())));
        figures.extend(judge.as_ref().map(|it| ("Judge", it.to_string())));
    }
    figures.extend(criteria.map(|it| ("Criteria", it.name.clone())));
    figures.extend(file.map(|it| ("File", it.to_owned())));
    figures.extend(record.started.map(|it| {
        let local = it.to_zoned(TimeZone::system());
        (
            "Started",
            local.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        )
    }));
    figures.extend(record.run_id.map(|it| ("Run", it.to_string())));
    figures
}

/// What was said of each version beside its verdict.
#[derive(Default)]
struct Story {
    notes: BTreeMap<u32, Vec<Note>>,
    decisions: BTreeMap<u32, Vec<Note>>,
    /// Issues that a version has without a verdict: those that are to be corrected.
    named: BTreeMap<u32, Vec<TrackedIssue>>,
}

impl Story {
    fn of(events: &[Stamped], record: &RunRecord) -> Self {
        let mut story = Self::default();
        for stamped in events {
            story.take(&stamped.event);
        }
        for candidate in &record.candidates {
            let notes = story.notes.entry(candidate.iteration).or_default();
            notes.push(of_candidate(candidate));
        }
        story
    }

    fn take(&mut self, event: &Event) {
        let (iteration, what, why, text) = match event {
            Event::Strategy {
                iteration,
                strategy,
                reason,
            } => (iteration, strategy.as_str(), reason, None),
            Event::Cleaned {
                iteration,
                what,
                removed,
            } => (iteration, "taken away", what, Some(removed)),
            Event::Rejected {
                iteration,
                reason,
                text,
                stopped_early,
            } => {
                let what = if *stopped_early {
                    "a reply that was stopped early"
                } else {
                    "a rejected reply"
                };
                (iteration, what, reason, Some(text))
            }
            Event::Decision {
                iteration,
                choice,
                reason,
                ..
            } => {
                self.decisions.entry(*iteration).or_default().push(Note {
                    what: choice_words(*choice).to_owned(),
                    why: reason.clone(),
                    text: None,
                });
                return;
            }
            Event::UserDecision {
                iteration,
                decision,
            } => {
                self.decisions.entry(*iteration).or_default().push(Note {
                    what: "the user decided".to_owned(),
                    why: decision.describe(),
                    text: None,
                });
                return;
            }
            Event::ToolResult {
                iteration,
                tool,
                end,
                output,
                ..
            } => {
                let what = format!("the tool `{tool}`");
                self.note(*iteration, what, end, Some(output));
                return;
            }
            Event::Reflection(Reflection {
                iteration,
                trigger,
                text,
            }) => {
                let why = trigger_words(*trigger).to_owned();
                self.note(*iteration, "reflection".to_owned(), &why, Some(text));
                return;
            }
            Event::Issues {
                iteration, open, ..
            } => {
                self.named.insert(*iteration, open.clone());
                return;
            }
            _ => return,
        };
        self.note(*iteration, what.to_owned(), why, text);
    }

    fn note(&mut self, iteration: u32, what: String, why: &str, text: Option<&String>) {
        self.notes.entry(iteration).or_default().push(Note {
            what,
            why: why.to_owned(),
            text: text.filter(|text| !text.trim().is_empty()).cloned(),
        });
    }
}

/// What became of a candidate. The one that was chosen is the draft itself.
fn of_candidate(candidate: &Candidate) -> Note {
    let evaluation = candidate.evaluation.as_ref();
    let score = evaluation.and_then(|it| it.overall_score);
    let why = [
        Some(candidate.difference.clone()),
        score.map(|score| format!("score {score:.2}")),
        candidate.lost.clone(),
        candidate.chosen.then(|| "it became the draft".to_owned()),
    ];
    Note {
        what: format!("candidate {}", candidate.candidate),
        why: why.into_iter().flatten().collect::<Vec<_>>().join("; "),
        text: candidate.output.clone().filter(|_| !candidate.chosen),
    }
}

fn trigger_words(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::QualityDrop => "the last draft was worse",
        Trigger::ToolResult => "on what the tool said",
        Trigger::StepInterval => "on the sections so far",
        Trigger::Error => "on what went wrong",
    }
}

/// An amount, in the unit of the user's prices.
fn money(amount: f64) -> String {
    format!("{amount:.4}")
}

fn choice_words(choice: Choice) -> &'static str {
    match choice {
        Choice::Accept => "the best so far",
        Choice::KeepIncumbent => "not taken",
        Choice::Compare => "compared",
        Choice::ChangeApproach => "another way is tried",
        Choice::Reflect => "reflected on",
        Choice::Stop => "stopped",
    }
}

/// The versions, and the numbers for which no reply became one.
fn drafts(record: &RunRecord, mut story: Story) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = record
        .versions
        .iter()
        .map(|version| draft(record, version, &mut story))
        .collect();
    let mut left: Vec<u32> = story.notes.keys().copied().collect();
    left.extend(story.decisions.keys());
    left.sort_unstable();
    left.dedup();
    for number in left {
        drafts.push(Draft {
            number,
            selected: false,
            verdict: None,
            score: None,
            change: None,
            line: "the reply was rejected".to_owned(),
            from: None,
            written: String::new(),
            notes: story.notes.remove(&number).unwrap_or_default(),
            decisions: story.decisions.remove(&number).unwrap_or_default(),
            results: Vec::new(),
            issues: Vec::new(),
            resolved: Vec::new(),
            parent: None,
            hunks: Vec::new(),
            text: None,
        });
    }
    drafts.sort_by_key(|draft| draft.number);
    drafts
}

fn draft(record: &RunRecord, version: &Version, story: &mut Story) -> Draft {
    let number = version.iteration;
    let base = version.based_on.and_then(|base| record.version(base));
    let before = base.and_then(Version::score);
    let evaluation = version.evaluation.as_ref();
    let issues: Vec<Weakness> = match evaluation {
        Some(evaluation) => evaluation.issues.iter().map(Weakness::of).collect(),
        None => story
            .named
            .remove(&number)
            .unwrap_or_default()
            .iter()
            .map(|tracked| Weakness::of(&tracked.issue))
            .collect(),
    };
    Draft {
        number,
        selected: record.selected == Some(number),
        verdict: evaluation.map(|evaluation| {
            if evaluation.satisfactory {
                Mark::good("criteria met")
            } else if evaluation.status == Status::Ok {
                Mark::bad("criteria not met")
            } else {
                Mark::open("?", "could not be judged")
            }
        }),
        score: version.score().map(|score| format!("{score:.2}")),
        change: version
            .score()
            .zip(before)
            .map(|(now, before)| format!("{:+.2}", now - before)),
        line: match evaluation {
            Some(_) => evaluation_line(version, before),
            None => "not judged".to_owned(),
        },
        from: revised(version),
        written: [
            tokens(&version.token_usage),
            Some(milliseconds(version.duration_ms)),
        ]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" · "),
        notes: story.notes.remove(&number).unwrap_or_default(),
        decisions: story.decisions.remove(&number).unwrap_or_default(),
        results: evaluation
            .map(|evaluation| evaluation.criteria.iter().map(result_row).collect())
            .unwrap_or_default(),
        issues,
        resolved: version.improvements_applied.clone(),
        parent: base.map(|base| base.iteration),
        hunks: base.map_or_else(Vec::new, |base| hunks(&base.output, &version.output)),
        text: Some(version.output.clone()),
    }
}

fn result_row(result: &CriterionResult) -> ResultRow {
    ResultRow {
        name: result.name.clone(),
        mark: Mark::of_result(result),
        value: value(result),
        floor: format!("{:.2}", result.threshold),
        reason: result.evidence.clone(),
        asides: asides(result),
    }
}

fn hunks(old: &str, new: &str) -> Vec<HunkView> {
    diff(old, new, AROUND)
        .hunks
        .into_iter()
        .map(|hunk| HunkView {
            place: format!(
                "line {}",
                if hunk.new.is_empty() {
                    hunk.new.start
                } else {
                    hunk.new.start + 1
                }
            ),
            blocks: hunk.blocks.iter().map(block).collect(),
        })
        .collect()
}

fn block(block: &Block<'_>) -> BlockView {
    let (kind, pieces) = match block {
        Block::Same(text) => ("same", vec![("same", (*text).to_owned())]),
        Block::Removed(text) => ("removed", vec![("same", (*text).to_owned())]),
        Block::Added(text) => ("added", vec![("same", (*text).to_owned())]),
        Block::Alike(pieces) => (
            "changed",
            pieces
                .iter()
                .map(|piece| {
                    let kind = match piece.change {
                        Change::Same => "same",
                        Change::Removed => "removed",
                        Change::Added => "added",
                    };
                    (kind, piece.text.to_owned())
                })
                .collect(),
        ),
    };
    BlockView { kind, pieces }
}

/// The criteria, in their own order, through all drafts.
fn criterion_rows(record: &RunRecord, criteria: Option<&Criteria>) -> Vec<CriterionRow> {
    let cells = |name: &str| -> Vec<Option<(Mark, String)>> {
        record
            .versions
            .iter()
            .map(|version| {
                let results = &version.evaluation.as_ref()?.criteria;
                let result = results.iter().find(|result| result.name == name)?;
                Some((Mark::of_result(result), value(result)))
            })
            .collect()
    };
    criteria
        .map(|criteria| criteria.criteria.as_slice())
        .unwrap_or_default()
        .iter()
        .map(|criterion| CriterionRow {
            name: criterion.name.clone(),
            description: [
                Some(criterion.description.clone()),
                criterion.evaluator.describe(),
            ]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join(" "),
            evaluator: criterion.evaluator.kind(),
            weight: format!("{}", criterion.weight),
            floor: format!("{:.2}", criterion.threshold),
            required: criterion.required,
            cells: cells(&criterion.name),
        })
        .collect()
}

/// The issues of all versions, in the order in which they were found.
fn issue_rows(events: &[Stamped], record: &RunRecord) -> Vec<IssueRow> {
    let place: BTreeMap<u32, usize> = record
        .versions
        .iter()
        .enumerate()
        .map(|(place, version)| (version.iteration, place))
        .collect();
    let mut rows: BTreeMap<u32, IssueRow> = BTreeMap::new();
    for stamped in events {
        let Event::Issues {
            iteration,
            open,
            resolved,
        } = &stamped.event
        else {
            continue;
        };
        let Some(&place_of_version) = place.get(iteration) else {
            continue;
        };
        for tracked in open.iter().chain(resolved) {
            let row = rows.entry(tracked.id).or_insert_with(|| IssueRow {
                id: tracked.id,
                issue: Weakness::of(&tracked.issue),
                since: tracked.since,
                cells: vec![None; record.versions.len()],
            });
            row.cells[place_of_version] = Some(match tracked.status {
                IssueStatus::Open => Mark {
                    sign: "●",
                    word: "open",
                    class: "bad",
                },
                IssueStatus::CameBack => Mark {
                    sign: "↺",
                    word: "came back",
                    class: "bad",
                },
                IssueStatus::Resolved => Mark::good("resolved"),
            });
        }
    }
    rows.into_values().collect()
}

fn evidence(record: &RunRecord) -> Vec<Piece> {
    record
        .evidence
        .iter()
        .map(|gathered| {
            let piece = &gathered.evidence;
            Piece {
                source: piece.source.as_str(),
                place: piece.location.clone(),
                relevance: piece.relevance.map(|it| format!("{it:.2}")),
                claim: piece.supports_claim.clone(),
                text: piece.content.clone(),
            }
        })
        .collect()
}

/// What the models were given, beside the drafts and what was said of them.
fn given(task: &Task, settings: &LoopSettings) -> Vec<Given> {
    let mut given = Vec::new();
    let mut push = |what: String, text: &str| {
        if !text.trim().is_empty() {
            given.push(Given {
                what,
                text: text.to_owned(),
            });
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
        push("Settings of the loop".to_owned(), &settings);
    }
    given
}

fn call(stamped: &Stamped) -> Option<Call> {
    let Event::Call {
        phase,
        iteration,
        model,
        usage,
        cost,
        duration_ms,
        attempts,
        error,
    } = &stamped.event
    else {
        return None;
    };
    Some(Call {
        step: match phase {
            Phase::Draft => "draft",
            Phase::Evaluate => "evaluate",
            Phase::Revise => "revise",
            Phase::Outline => "outline",
            Phase::Reflect => "reflect",
            Phase::Tool => "tool",
        },
        draft: *iteration,
        model: model.to_string(),
        time: milliseconds(*duration_ms),
        requests: *attempts,
        cost: cost.map(money),
        error: error.clone(),
        ..Call::with_usage(usage)
    })
}

impl Call {
    fn with_usage(usage: &TokenUsage) -> Self {
        Self {
            prompt: usage.prompt.map(thousands),
            completion: usage.completion.map(thousands),
            cached: usage.cached.map(thousands),
            ..Self::default()
        }
    }
}

/// All calls together.
fn total(record: &RunRecord, events: &[Stamped]) -> Call {
    let time = events
        .iter()
        .fold(0_u64, |sum, stamped| match &stamped.event {
            Event::Call { duration_ms, .. } => sum.saturating_add(*duration_ms),
            _ => sum,
        });
    Call {
        time: milliseconds(time),
        requests: record.total_llm_calls,
        cost: record.cost().map(money),
        ..Call::with_usage(&record.token_usage)
    }
}

fn retry(stamped: &Stamped) -> Option<String> {
    match &stamped.event {
        Event::Retry {
            iteration,
            message,
            wait_ms,
            ..
        } => Some(format!(
            "draft {iteration}: {message}; tried again after {}",
            milliseconds(*wait_ms)
        )),
        _ => None,
    }
}

#[expect(clippy::cast_precision_loss, reason = "times that people wait")]
fn milliseconds(time: u64) -> String {
    duration(time as f64 / 1000.0)
}
