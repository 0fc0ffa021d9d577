//! Full-text search of runs in prompts and drafts: FTS5, without a copy of the texts.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use unicode_segmentation::UnicodeSegmentation as _;

/// The maximum text of a run that is indexed, in bytes.
const MAX_INDEXED_BYTES: usize = 1 << 20;

/// Indexes the words of a run, replacing its earlier entry.
pub(super) fn index(connection: &Connection, run: i64) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "SELECT coalesce(json_extract(body, '$.output'),
                 concat_ws(' ', json_extract(body, '$.task.prompt'), json_extract(body, '$.file')))
             FROM event
             WHERE run = ?1 AND json_extract(body, '$.event') IN ('run_start', 'draft') ORDER BY seq",
    )?;
    let mut texts = statement.query([run])?;
    let mut text = String::new();
    while let Some(row) = texts.next()? {
        separate(&row.get::<_, String>(0)?, &mut text);
        if text.len() > MAX_INDEXED_BYTES {
            break;
        }
    }
    connection
        .prepare_cached("INSERT OR REPLACE INTO words (rowid, text) VALUES (?1, ?2)")?
        .execute(params![run, text])?;
    connection
        .prepare_cached(
            "UPDATE run SET indexed = (SELECT max(seq) FROM event WHERE run = ?1) WHERE n = ?1",
        )?
        .execute([run])
        .map(drop)
}

/// Updates the index: adds the new events of unfinished runs, and runs that were recorded before the index existed.
pub(super) fn catch_up(connection: &Connection) -> rusqlite::Result<()> {
    let missing: Vec<i64> = connection
        .prepare_cached(
            "SELECT n FROM run WHERE indexed IS NULL OR (ended IS NULL
                 AND indexed < (SELECT max(seq) FROM event WHERE run = n))",
        )?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    if missing.is_empty() {
        return Ok(());
    }
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    for run in missing {
        index(&transaction, run)?;
    }
    transaction.commit()
}

/// Converts a search text to FTS5 syntax: a word matches as a prefix, text in double quotes matches as a phrase.
/// `None` if it contains no word.
pub(super) fn fts_query(wanted: &str) -> Option<String> {
    let mut terms = Vec::new();
    for (place, part) in wanted.split('"').enumerate() {
        // Every second part is in quotes.
        if place % 2 == 1 {
            terms.extend(phrase(part));
        } else {
            let words = part.split_whitespace().filter_map(phrase);
            terms.extend(words.map(|word| word + "*"));
        }
    }
    (!terms.is_empty()).then(|| terms.join(" "))
}

/// A quoted phrase. The words contain no quotes, because quotes separate words.
fn phrase(text: &str) -> Option<String> {
    let mut words = String::new();
    separate(text, &mut words);
    let words = words.trim_end();
    (!words.is_empty()).then(|| format!("\"{words}\""))
}

/// Appends the words of a text, each followed by a space. Otherwise the index would treat a Chinese or Japanese
/// sentence as one word.
fn separate(text: &str, into: &mut String) {
    for word in text.unicode_words() {
        // Normalize the variants of an apostrophe inside a word.
        into.extend(
            word.chars()
                .filter(|c| *c != '"')
                .map(|c| if c == '’' { '\'' } else { c }),
        );
        into.push(' ');
    }
}
