//! The full-text index of passages: an in-memory `SQLite` database with FTS5. It ranks by BM25 and
//! stems English words.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, params};

use super::passages::{self, Passage};
use super::tokenize::{terms, words};
use super::walk::Document;
use crate::types::EvidenceSource;

/// The maximum number of words of a question that are considered.
const MAX_TERMS: usize = 256;

/// The maximum number of words in a search. The rarest are used, because common ones distinguish
/// passages the least.
const MAX_SOUGHT: usize = 48;

/// The weight of a word in a path or heading, relative to the text.
const PLACE_WEIGHT: f64 = 2.0;

/// An index of passages by word.
#[derive(Debug)]
pub(super) struct Index {
    connection: Mutex<Connection>,
    entries: Vec<IndexedPassage>,
}

/// A passage of one of the documents.
#[derive(Debug)]
pub(super) struct IndexedPassage {
    pub(super) path: String,
    pub(super) source: EvidenceSource,
    pub(super) passage: Passage,
}

/// A search result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hit {
    /// The index of its entry.
    pub(super) entry: usize,
    /// The BM25 score as a share of the best passage's, times the share of the question that the
    /// best passage covers. From 0 to 1, in descending order.
    pub(super) relevance: f64,
}

impl Index {
    /// Indexes documents.
    pub(super) fn new(documents: Vec<Document>) -> rusqlite::Result<Self> {
        let passages = documents.into_iter().flat_map(|document| {
            let Document { path, source, text } = document;
            let split = passages::split(&text, source).into_iter();
            split.map(move |passage| IndexedPassage {
                path: path.clone(),
                source,
                passage,
            })
        });
        Self::of(passages.collect())
    }

    /// Indexes passages.
    fn of(entries: Vec<IndexedPassage>) -> rusqlite::Result<Self> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE VIRTUAL TABLE passage USING fts5(place, body, content = '',
                 tokenize = \"porter unicode61 remove_diacritics 2 categories 'L* N* M* Co'\")",
        )?;
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction
                .prepare("INSERT INTO passage (rowid, place, body) VALUES (?1, ?2, ?3)")?;
            for (number, entry) in entries.iter().enumerate() {
                let place = words(&format!("{} {}", entry.path, entry.passage.heading));
                let body = words(&entry.passage.text);
                insert.execute(params![row(number), place.join(" "), body.join(" ")])?;
            }
        }
        transaction.commit()?;
        Ok(Self {
            connection: Mutex::new(connection),
            entries,
        })
    }

    /// Returns the passages.
    pub(super) fn entries(&self) -> &[IndexedPassage] {
        &self.entries
    }

    /// Returns the passages most relevant to a question, best first.
    pub(super) fn search(&self, question: &str, limit: usize) -> rusqlite::Result<Vec<Hit>> {
        let question = TermQuery::new(&self.lock(), question, self.entries.len())?;
        let Some(sought) = question.sought() else {
            return Ok(Vec::new());
        };
        let ranked: Vec<(usize, f64)> = {
            let connection = self.lock();
            let mut statement = connection.prepare_cached(
                "SELECT rowid, -bm25(passage, ?2, 1.0) AS score FROM passage WHERE passage MATCH ?1
                 ORDER BY score DESC, rowid LIMIT ?3",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![sought, PLACE_WEIGHT, limit], |found| {
                Ok((entry(found.get(0)?), found.get(1)?))
            })?;
            rows.collect::<Result<_, _>>()?
        };
        let Some(&(first, best)) = ranked.first() else {
            return Ok(Vec::new());
        };
        let covered = question.covered(&self.lock(), &[first])?[0];
        let share = |score: f64| {
            if best > 0.0 {
                (score / best).clamp(0.0, 1.0)
            } else {
                1.0
            }
        };
        Ok(ranked
            .into_iter()
            .map(|(entry, score)| Hit {
                entry,
                relevance: covered * share(score),
            })
            .collect())
    }

    /// Returns the weighted share of a text's terms that each of these passages contains. Rare
    /// words weigh more.
    pub(super) fn coverage(&self, text: &str, entries: &[usize]) -> rusqlite::Result<Vec<f64>> {
        let connection = self.lock();
        TermQuery::new(&connection, text, self.entries.len())?.covered(&connection, entries)
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock()
    }
}

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The search for evidence failed.
    #[error("cannot search for evidence: {0}")]
    Evidence(#[source] rusqlite::Error),
    /// The search for memories failed.
    #[error("cannot search the memory: {0}")]
    Memory(#[source] rusqlite::Error),
}

/// Returns for each question the indexes of the texts that contain its terms, best first, each with
/// the weighted share of the question's terms that it contains (0 to 1, rare words weigh more).
/// BM25 only breaks ties: among a few texts, it ignores words that half of them contain.
///
/// # Errors
/// If the index fails.
pub(crate) fn texts_like(
    texts: &[String],
    questions: &[&str],
) -> Result<Vec<Vec<(usize, f64)>>, SearchError> {
    let entries = texts.iter().map(|text| IndexedPassage {
        path: String::new(),
        source: EvidenceSource::Memory,
        passage: Passage {
            first: 1,
            last: 1,
            heading: String::new(),
            text: text.clone(),
        },
    });
    let index = Index::of(entries.collect()).map_err(SearchError::Memory)?;
    let found = questions.iter().map(|question| {
        let hits = index.search(question, texts.len())?;
        let entries: Vec<usize> = hits.iter().map(|hit| hit.entry).collect();
        let covered = index.coverage(question, &entries)?;
        let mut found: Vec<(usize, f64)> = entries.into_iter().zip(covered).collect();
        found.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        Ok(found)
    });
    found.collect::<Result<_, _>>().map_err(SearchError::Memory)
}

/// The words of a question, rarest first, each with the number of passages that contain it.
struct TermQuery {
    terms: Vec<(String, usize)>,
    passages: usize,
}

impl TermQuery {
    fn new(connection: &Connection, text: &str, passages: usize) -> rusqlite::Result<Self> {
        let mut count =
            connection.prepare_cached("SELECT count(*) FROM passage WHERE passage MATCH ?1")?;
        let mut found = Vec::new();
        for term in terms(text).into_iter().take(MAX_TERMS) {
            let number: i64 = count.query_row([quoted(&term)], |row| row.get(0))?;
            found.push((term, usize::try_from(number).unwrap_or(0)));
        }
        found.sort_by_key(|(_, number)| *number);
        Ok(Self {
            terms: found,
            passages,
        })
    }

    /// Returns the query in FTS5 syntax, or `None` if no word occurs in the index.
    fn sought(&self) -> Option<String> {
        let sought: Vec<String> = self
            .terms
            .iter()
            .filter(|(_, number)| *number > 0)
            .take(MAX_SOUGHT)
            .map(|(term, _)| quoted(term))
            .collect();
        (!sought.is_empty()).then(|| sought.join(" OR "))
    }

    /// See [`Index::coverage`].
    fn covered(&self, connection: &Connection, entries: &[usize]) -> rusqlite::Result<Vec<f64>> {
        let places: HashMap<usize, usize> = entries
            .iter()
            .enumerate()
            .map(|(place, entry)| (*entry, place))
            .collect();
        let mut rows =
            connection.prepare_cached("SELECT rowid FROM passage WHERE passage MATCH ?1")?;
        let mut covered = vec![0.0; entries.len()];
        let mut whole = 0.0;
        for (term, number) in &self.terms {
            let weight = rarity(*number, self.passages);
            whole += weight;
            if *number == 0 {
                continue;
            }
            for found in rows.query_map([quoted(term)], |row| row.get(0))? {
                if let Some(place) = places.get(&entry(found?)) {
                    covered[*place] += weight;
                }
            }
        }
        if whole > 0.0 {
            for share in &mut covered {
                *share /= whole;
            }
        }
        Ok(covered)
    }
}

/// Returns the weight of a word that occurs in `number` of `passages` passages: the inverse
/// document frequency of BM25, in the form that is never negative.
fn rarity(number: usize, passages: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "fewer than 2^52 passages")]
    let (number, passages) = (number as f64, passages as f64);
    (1.0 + (passages - number + 0.5) / (number + 0.5)).ln()
}

/// Quotes a word for an FTS5 query. Words consist of letters and digits only, so nothing needs
/// escaping.
fn quoted(term: &str) -> String {
    format!("\"{term}\"")
}

fn row(entry: usize) -> i64 {
    i64::try_from(entry).unwrap_or(i64::MAX)
}

fn entry(row: i64) -> usize {
    usize::try_from(row).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn index(texts: &[&str]) -> Index {
        let documents = texts
            .iter()
            .enumerate()
            .map(|(n, text)| Document {
                path: format!("f{n}.md"),
                source: EvidenceSource::Documentation,
                text: (*text).to_owned(),
            })
            .collect();
        Index::new(documents).unwrap()
    }

    #[test]
    fn stems_identifiers_and_accents_are_found() {
        let index = index(&[
            "Database migrations are generated.",
            "`maxRetries` says how often.",
            "Das Café öffnet.",
            "漢字を検索する。",
            "Something else.",
        ]);
        for (question, wanted) in [
            ("How do I migrate a database?", 0),
            ("max_retries", 1),
            ("retry", 1),
            ("cafe", 2),
            ("検索", 3),
        ] {
            let hits = index.search(question, 3).unwrap();
            assert_eq!(
                hits.first().map(|hit| hit.entry),
                Some(wanted),
                "{question}"
            );
        }
        assert!(index.search("zebra", 3).unwrap().is_empty());
        assert!(index.search("\" OR passage NEAR( *", 3).unwrap().is_empty());
        assert!(index.search("", 3).unwrap().is_empty());
    }

    #[test]
    fn relevance_is_the_share_that_is_covered_and_falls() {
        let index = index(&["alpha beta gamma", "alpha beta", "alpha", "delta"]);
        let hits = index.search("alpha beta gamma", 9).unwrap();
        let order: Vec<_> = hits.iter().map(|hit| hit.entry).collect();
        assert_eq!(order, [0, 1, 2]);
        assert!((hits[0].relevance - 1.0).abs() < 1e-9, "{hits:?}");
        assert!(
            hits.windows(2)
                .all(|pair| pair[0].relevance >= pair[1].relevance)
        );
        let hits = index.search("alpha beta zebra", 9).unwrap();
        assert!(hits[0].relevance < 0.7, "{hits:?}");
        let shares = index.coverage("gamma", &[0, 1]).unwrap();
        assert_eq!(shares, [1.0, 0.0]);
    }

    #[test]
    fn one_passage_is_found_too() {
        let hits = index(&["alpha beta"]).search("beta", 5).unwrap();
        assert_eq!(hits.len(), 1);
        assert!((hits[0].relevance - 1.0).abs() < 1e-9);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Wherever a sentence of rare words is planted among a hundred texts of common ones, a
        /// question with some of its words ranks it first.
        #[test]
        fn the_planted_passage_is_found(
            place in 0usize..100,
            common in prop::collection::vec("[a-e]{3}( [a-e]{3}){20,60}", 100),
        ) {
            let mut texts = common;
            texts[place].push_str(" The quokka naps under eucalyptus.");
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let hits = index(&texts).search("Where do quokkas nap? abc bcd cde", 5).unwrap();
            prop_assert_eq!(hits[0].entry, place);
            prop_assert!(hits.iter().all(|hit| (0.0..=1.0).contains(&hit.relevance)));
        }

        #[test]
        fn any_question_can_be_asked(question in "\\PC*") {
            index(&["alpha", "beta"]).search(&question, 5).unwrap();
        }
    }
}
