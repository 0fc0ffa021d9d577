//! `reflect memory list`: prints one line per entry.

use console::truncate_str;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::args::{MemoryKind, MemoryListArgs};
use crate::cli::error::CliError;
use crate::cli::printer;
use crate::memory::{is_faded, line, matching, strength};
use crate::types::{Knowledge, Memory};

/// Formats the matching entries.
pub(super) fn list(args: &MemoryListArgs, known: &[Memory]) -> Result<String, CliError> {
    let now = Timestamp::now();
    let mut shown: Vec<&Memory> = if args.words.is_empty() {
        known.iter().collect()
    } else {
        matching(known, &args.words.join(" "))
            .map_err(|error| CliError::failure(error.to_string()))?
    };
    shown.retain(|memory| {
        args.kind.is_none_or(|kind| is_of(kind, &memory.what))
            && (args.criteria.is_none() || criteria(&memory.what) == args.criteria.as_deref())
            && (!args.faded || is_faded(memory, now))
    });
    if args.json {
        let all: Vec<Value> = shown.iter().map(|memory| object(memory, now)).collect();
        return printer::json(&all);
    }
    if shown.is_empty() {
        printer::say(if known.is_empty() {
            "memory is empty"
        } else {
            "no matching entries in memory"
        });
    }
    Ok(table(shown, now))
}

/// Formats one line per entry: its id, kind, strength and text. Truncates lines to the width of a terminal.
pub(super) fn table<'a>(memories: impl IntoIterator<Item = &'a Memory>, now: Timestamp) -> String {
    let width = console::Term::stdout()
        .size_checked()
        .map_or(usize::MAX, |size| usize::from(size.1));
    let mut out = String::new();
    for memory in memories {
        let line = format!(
            "{:>4}  {:<9}  {:.2} {:<5}  {}",
            memory.id,
            memory.what.kind(),
            strength(memory, now),
            if is_faded(memory, now) { "faded" } else { "" },
            memory.what.text().replace('\n', " ")
        );
        out.push_str(truncate_str(&printer::without_controls(&line), width, "…").trim_end());
        out.push('\n');
    }
    out
}

fn is_of(kind: MemoryKind, what: &Knowledge) -> bool {
    matches!(
        (kind, what),
        (MemoryKind::Fact, Knowledge::Fact(_))
            | (MemoryKind::Procedure, Knowledge::Procedure(_))
            | (MemoryKind::Insight, Knowledge::Insight(_))
    )
}

fn criteria(what: &Knowledge) -> Option<&str> {
    match what {
        Knowledge::Insight(insight) => insight.criteria.as_deref(),
        Knowledge::Fact(_) | Knowledge::Procedure(_) => None,
    }
}

/// Returns an entry as JSON: its exported form, with its id, dates, strength and uses.
fn object(memory: &Memory, now: Timestamp) -> Value {
    let mut all = json!({
        "id": memory.id,
        "added": memory.added,
        "touched": memory.touched,
        "strength": strength(memory, now),
        "faded": is_faded(memory, now),
        "uses": memory.what.uses(),
    });
    if let (Some(all), Value::Object(line)) = (all.as_object_mut(), line(&memory.what)) {
        all.extend(line);
    }
    all
}
