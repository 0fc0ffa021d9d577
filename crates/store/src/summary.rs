use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::types::{ConvergenceReason, Event, ExitCode, ModelId, Stamped};

/// The longest title that is kept, in characters.
const TITLE_LENGTH: usize = 200;

/// Adds up the events of the run with an id.
const TOTALS: &str = concat!(include_str!("totals.sql"), " WHERE id = ?1");

/// A run in one line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run's id.
    pub run_id: Uuid,
    /// When it began.
    pub started: Timestamp,
    /// When it ended; `None` while it goes on, and for good if its process died.
    pub ended: Option<Timestamp>,
    /// `draft`, `revise` or `evaluate`.
    pub command: String,
    /// The first line of the prompt; without one, the name of the file.
    pub title: String,
    /// The name of the criteria.
    pub criteria: String,
    /// Who writes, as `provider:model`; empty where nothing is written.
    pub writer: String,
    /// Who judges, as `provider:model`; empty where no model does.
    pub judge: String,
    /// How many drafts were made so far.
    pub iterations: u32,
    /// Why it stopped.
    pub convergence_reason: Option<ConvergenceReason>,
    /// Whether the criteria are met, or the user accepted.
    pub success: Option<bool>,
    /// The command's exit code, before `--exit-zero`.
    pub exit_code: Option<ExitCode>,
    /// The version that is the run's answer.
    pub selected: Option<u32>,
    /// The selected version's overall score.
    pub score: Option<f64>,
    /// The first version's overall score, once the run has ended.
    pub first_score: Option<f64>,
    /// Tokens of all its calls, once it has ended; `None` where the server does not count.
    pub tokens: Option<u64>,
    /// What its calls cost, once it has ended; `None` where that is not known of each.
    pub cost: Option<f64>,
}

/// Which runs to list. By default all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    /// The most runs to list.
    pub limit: Option<u32>,
    /// Only runs of this command.
    pub command: Option<String>,
    /// Only runs with all of these in their prompt, file name or drafts: words that begin so, and phrases in
    /// double quotes. Case and accents make no difference.
    pub words: Option<String>,
    /// Only runs that began then or later.
    pub since: Option<Timestamp>,
    /// Only runs that began before.
    pub before: Option<Timestamp>,
    /// Only runs with a model whose `provider:model` has this in it, upper and lower case being the same in ASCII.
    pub model: Option<String>,
    /// Only runs with the criteria of this name.
    pub criteria: Option<String>,
    /// Only runs that ended with success, or only those that ended without.
    pub success: Option<bool>,
}

/// The end of a run's id, which is enough to tell runs apart: their beginnings are the time.
pub fn short_id(run_id: Uuid) -> String {
    let text = run_id.simple().to_string();
    text[text.len() - 8..].to_owned()
}

/// Begins the row of a run.
pub(super) fn insert(connection: &Connection, event: &Stamped) -> rusqlite::Result<()> {
    let Event::RunStart {
        run_id,
        command,
        file,
        task,
        criteria,
        models,
        ..
    } = &event.event
    else {
        return Ok(());
    };
    let title: String = task
        .prompt
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .or(file.as_deref())
        .unwrap_or_default()
        .chars()
        .take(TITLE_LENGTH)
        .collect();
    connection
        .prepare_cached(
            "INSERT INTO run (id, started, command, title, criteria, writer, judge)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            run_id.to_string(),
            event.time.as_millisecond(),
            command,
            title,
            criteria.name,
            name_of(models.writer.as_ref()),
            name_of(models.judge.as_ref()),
        ])
        .map(drop)
}

fn name_of(model: Option<&ModelId>) -> String {
    model.map_or_else(String::new, ToString::to_string)
}

/// Whether the row of a run is begun or changed by an event.
pub(super) fn is_changed_by(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStart { .. } | Event::Draft { .. } | Event::RunEnd { .. }
    )
}

/// Brings the row of the run of this id up to date with an event that is stored already.
pub(super) fn update(connection: &Connection, run: &str, event: &Stamped) -> rusqlite::Result<()> {
    match &event.event {
        Event::Draft { iteration, .. } => connection
            .prepare_cached("UPDATE run SET iterations = max(iterations, ?2) WHERE id = ?1")?
            .execute(params![run, iteration])
            .map(drop),
        Event::RunEnd {
            convergence_reason,
            success,
            selected,
            exit_code,
            ..
        } => connection
            .prepare_cached(
                "UPDATE run SET ended = ?2, convergence_reason = ?3, success = ?4, exit_code = ?5,
                     selected = ?6, score = (
                         SELECT json_extract(body, '$.evaluation.overall_score') FROM event
                         WHERE event.run = run.n AND json_extract(body, '$.event') = 'evaluation'
                             AND json_extract(body, '$.iteration') = ?6
                         ORDER BY seq DESC LIMIT 1)
                 WHERE id = ?1",
            )?
            .execute(params![
                run,
                event.time.as_millisecond(),
                convergence_reason.and_then(word),
                success,
                u8::from(*exit_code),
                selected,
            ])
            .and_then(|_| connection.prepare_cached(TOTALS)?.execute(params![run]))
            .map(drop),
        _ => Ok(()),
    }
}

pub(super) fn list(
    connection: &Connection,
    filter: &RunFilter,
    sought: Option<&str>,
) -> rusqlite::Result<Vec<RunSummary>> {
    connection
        .prepare_cached(
            "SELECT id, started, ended, command, title, criteria, writer, judge, iterations,
                 convergence_reason, success, exit_code, selected, score, first_score, tokens, cost
             FROM run
             WHERE (?1 IS NULL OR command = ?1)
                 AND (?2 IS NULL OR n IN (SELECT rowid FROM words WHERE words MATCH ?2))
                 AND (?3 IS NULL OR started >= ?3)
                 AND (?4 IS NULL OR started < ?4)
                 AND (?5 IS NULL OR instr(lower(writer), lower(?5)) > 0
                     OR instr(lower(judge), lower(?5)) > 0)
                 AND (?6 IS NULL OR criteria = ?6)
                 AND (?7 IS NULL OR success = ?7)
             ORDER BY started DESC, n DESC LIMIT ?8",
        )?
        .query_map(
            params![
                filter.command,
                sought,
                filter.since.map(Timestamp::as_millisecond),
                filter.before.map(Timestamp::as_millisecond),
                filter.model,
                filter.criteria,
                filter.success,
                // A negative limit is none.
                filter.limit.map_or(-1, i64::from)
            ],
            read,
        )?
        .collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<RunSummary> {
    let time = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or_default();
    let id: String = row.get("id")?;
    let reason: Option<String> = row.get("convergence_reason")?;
    let exit_code: Option<u8> = row.get("exit_code")?;
    Ok(RunSummary {
        run_id: Uuid::parse_str(&id).unwrap_or_default(),
        started: time(row.get("started")?),
        ended: row.get::<_, Option<i64>>("ended")?.map(time),
        command: row.get("command")?,
        title: row.get("title")?,
        criteria: row.get("criteria")?,
        writer: row.get("writer")?,
        judge: row.get("judge")?,
        iterations: row.get("iterations")?,
        convergence_reason: reason.and_then(from_word),
        success: row.get("success")?,
        exit_code: exit_code.and_then(|code| ExitCode::try_from(code).ok()),
        selected: row.get("selected")?,
        score: row.get("score")?,
        first_score: row.get("first_score")?,
        tokens: row
            .get::<_, Option<i64>>("tokens")?
            .and_then(|tokens| u64::try_from(tokens).ok()),
        cost: row.get("cost")?,
    })
}

/// A unit variant's name in JSON, without quotes.
fn word<T: Serialize>(value: T) -> Option<String> {
    Some(serde_json::to_value(value).ok()?.as_str()?.to_owned())
}

pub(super) fn from_word<T: DeserializeOwned>(text: String) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(text)).ok()
}
