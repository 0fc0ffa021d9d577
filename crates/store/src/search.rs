//! Finding runs by the words of their prompts and drafts: FTS5, without a copy of the texts.

use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use unicode_segmentation::UnicodeSegmentation as _;

/// The most of a run's text that is indexed, in bytes.
const MOST: usize = 1 << 20;

/// Takes the words of a run into the index, in place of those that it had there.
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
        if text.len() > MOST {
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

/// Takes in what is not in the index yet: runs that did not end, and those of versions that had no index.
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

/// What is looked for, in the language of the index: every word as the beginning of one, what stands in double
/// quotes as it is. `None` if there is no word in it.
pub(super) fn sought(wanted: &str) -> Option<String> {
    let mut terms = Vec::new();
    for (place, part) in wanted.split('"').enumerate() {
        // Every second part stands in quotes.
        if place % 2 == 1 {
            terms.extend(phrase(part));
        } else {
            let words = part.split_whitespace().filter_map(phrase);
            terms.extend(words.map(|word| word + "*"));
        }
    }
    (!terms.is_empty()).then(|| terms.join(" "))
}

/// Words that follow each other. They hold no quotes: those are no part of a word.
fn phrase(text: &str) -> Option<String> {
    let mut words = String::new();
    separate(text, &mut words);
    let words = words.trim_end();
    (!words.is_empty()).then(|| format!("\"{words}\""))
}

/// The words of a text, one space after each. The index would take a whole sentence of Chinese or Japanese for one
/// word.
fn separate(text: &str, into: &mut String) {
    for word in text.unicode_words() {
        // Within a word, an apostrophe may be written in several ways.
        into.extend(
            word.chars()
                .filter(|c| *c != '"')
                .map(|c| if c == '’' { '\'' } else { c }),
        );
        into.push(' ');
    }
}
