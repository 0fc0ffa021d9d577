use jiff::Timestamp;
use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::types::{ConvergenceReason, Event, ExitCode, ModelId, Stamped};

/// The maximum length of a title, in characters.
const TITLE_LENGTH: usize = 200;

/// Computes the totals of the run with this id.
const TOTALS: &str = concat!(include_str!("totals.sql"), " WHERE id = ?1");

/// The summary of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSummary {
    /// The run's id.
    pub run_id: Uuid,
    /// The start time.
    pub started: Timestamp,
    /// The end time; `None` while the run is in progress or if its process died.
    pub ended: Option<Timestamp>,
    /// The command: `draft`, `revise` or `evaluate`.
    pub command: String,
    /// The first line of the prompt; if there is none, the name of the file.
    pub title: String,
    /// The name of the criteria.
    pub criteria: String,
    /// The writer, as `provider:model`; empty if nothing is written.
    pub writer: String,
    /// The judge, as `provider:model`; empty if no model judges.
    pub judge: String,
    /// The number of drafts so far.
    pub iterations: u32,
    /// Why it stopped.
    pub convergence_reason: Option<ConvergenceReason>,
    /// Whether the criteria are met, or the user accepted a draft.
    pub success: Option<bool>,
    /// The command's exit code, before `--exit-zero`.
    pub exit_code: Option<ExitCode>,
    /// The selected version.
    pub selected: Option<u32>,
    /// The selected version's overall score.
    pub overall_score: Option<f64>,
    /// The first version's overall score, once the run has ended.
    pub first_score: Option<f64>,
    /// The tokens of all calls, once the run has ended; `None` if the server does not report counts.
    pub tokens: Option<u64>,
    /// The cost of all calls, once the run has ended; `None` if the cost of a call is unknown.
    pub cost: Option<f64>,
}

/// Which runs to list. Default: all.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunFilter {
    /// The maximum number of runs.
    pub limit: Option<u32>,
    /// Only runs of this command.
    pub command: Option<String>,
    /// Only runs whose prompt, file name or drafts contain all of these: prefixes of words, and phrases in double
    /// quotes. Case and accents are ignored.
    pub words: Option<String>,
    /// Only runs that started at this time or later.
    pub since: Option<Timestamp>,
    /// Only runs that started before this time.
    pub before: Option<Timestamp>,
    /// Only runs with a model whose `provider:model` contains this, ignoring ASCII case.
    pub model: Option<String>,
    /// Only runs with criteria of this name.
    pub criteria: Option<String>,
    /// Only runs that ended with success, or only those that ended without.
    pub success: Option<bool>,
}

/// The end of a run's id, which distinguishes runs better than the beginning, a time.
pub fn short_id(run_id: Uuid) -> String {
    let text = run_id.simple().to_string();
    text[text.len() - 8..].to_owned()
}

/// Inserts the row of a run.
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

/// Whether an event inserts or changes the row of its run.
pub(super) fn is_changed_by(event: &Event) -> bool {
    matches!(
        event,
        Event::RunStart { .. } | Event::Draft { .. } | Event::RunEnd { .. }
    )
}

/// Updates the row of the run with this id for an event that is already stored.
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
                convergence_reason.and_then(json_name),
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
    fts_query: Option<&str>,
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
                fts_query,
                filter.since.map(Timestamp::as_millisecond),
                filter.before.map(Timestamp::as_millisecond),
                filter.model,
                filter.criteria,
                filter.success,
                // A negative limit means no limit.
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
        convergence_reason: reason.and_then(from_json_name),
        success: row.get("success")?,
        exit_code: exit_code.and_then(|code| ExitCode::try_from(code).ok()),
        selected: row.get("selected")?,
        overall_score: row.get("score")?,
        first_score: row.get("first_score")?,
        tokens: row
            .get::<_, Option<i64>>("tokens")?
            .and_then(|tokens| u64::try_from(tokens).ok()),
        cost: row.get("cost")?,
    })
}

/// The JSON name of a unit variant, without quotes.
fn json_name<T: Serialize>(value: T) -> Option<String> {
    Some(serde_json::to_value(value).ok()?.as_str()?.to_owned())
}

pub(super) fn from_json_name<T: DeserializeOwned>(text: String) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(text)).ok()
}
