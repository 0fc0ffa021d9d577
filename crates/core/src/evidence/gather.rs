//! Selects the evidence for a prompt: the best passages for each question, as many as fit.

use std::path::PathBuf;

use super::index::{Hit, Index, SearchError};
use super::passages;
use super::walk::{self, Limits};
use crate::source::{self, SourceError};
use crate::types::{CHARACTERS_PER_TOKEN, Criteria, Evidence, EvidenceSource, Issue, Task};

/// The default number of tokens of evidence in a prompt.
pub const DEFAULT_TOKENS: u32 = 2000;

/// The cost of a passage in addition to its text, in characters: the surrounding tags with its
/// place.
const FRAME: usize = 80;

/// The maximum number of passages per question. Further passages are noise.
const PER_QUESTION: usize = 12;

/// The minimum score of a passage as a share of the best one's. Passages below share only a common
/// word or two.
const LEAST_SHARE: f64 = 0.25;

/// The minimum relevance of a passage for the criteria. Criteria use general words, so a passage
/// needs this share of them to be evidence.
const LEAST_FOR_CRITERIA: f64 = 0.2;

/// The minimum weighted share of a claim's words that a passage must contain to be about the claim.
/// Rare words weigh more.
const BEARS_ON: f64 = 0.8;

/// The maximum number of parts of a text that are searched individually.
const MAX_PARTS: usize = 24;

/// Finds evidence in code and documents.
///
/// The relevance of a passage is its BM25 score as a share of the best passage's, times the
/// weighted share of the question's terms in the best passage, where rare words weigh more.
/// Relevance decreases down the list, is 1 only for a passage with all terms of the question, and
/// is low throughout if no passage is related.
#[derive(Debug)]
pub struct Gatherer {
    index: Index,
    /// The maximum number of characters of evidence from one search.
    budget: usize,
    files: usize,
    warnings: Vec<String>,
}

/// A search question.
struct EvidenceQuery {
    text: String,
    /// The claim that it is about.
    claim: Option<String>,
    /// The minimum relevance of a result.
    least: f64,
}

impl EvidenceQuery {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            claim: None,
            least: 0.0,
        }
    }
}

impl Gatherer {
    /// Reads and indexes files and folders. `tokens` limits the result of one search, at an
    /// estimated four characters per token.
    ///
    /// Skips hidden, ignored and binary files in folders, and reads at most 5,000 files or 32 MB.
    ///
    /// # Errors
    /// If a path does not exist, a named file is binary or larger than 1 MB, or a folder contains
    /// no text.
    pub fn open(paths: &[PathBuf], tokens: u32) -> Result<Self, SourceError> {
        let reading = walk::read(paths, &Limits::default())?;
        let files = reading.documents.len();
        let index = Index::new(reading.documents).map_err(|error| {
            SourceError::for_file("evidence", &format!("cannot index the texts: {error}"))
        })?;
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        Ok(Self {
            index,
            budget: tokens.saturating_mul(CHARACTERS_PER_TOKEN),
            files,
            warnings: reading.warnings,
        })
    }

    /// Returns the number of indexed files.
    pub fn files(&self) -> usize {
        self.files
    }

    /// Returns the number of indexed passages.
    pub fn passages(&self) -> usize {
        self.index.entries().len()
    }

    /// Returns a hash of the texts and their paths, which changes whenever one of them does.
    pub fn hash(&self) -> String {
        let entries = self.index.entries().iter();
        source::hash_of(entries.flat_map(|entry| [&*entry.path, &*entry.passage.text]))
    }

    /// Returns warnings about skipped files.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns evidence for a task: for its prompt first, then for the criteria that a judge
    /// decides.
    ///
    /// # Errors
    /// If the index fails.
    pub fn for_task(&self, task: &Task, criteria: &Criteria) -> Result<Vec<Evidence>, SearchError> {
        let prompt = self.find(&[EvidenceQuery::new(task.prompt.as_str())], &[])?;
        let judged: Vec<EvidenceQuery> = criteria
            .criteria
            .iter()
            .filter(|criterion| !criterion.evaluator.is_hard() && !criterion.description.is_empty())
            .map(|criterion| EvidenceQuery {
                least: LEAST_FOR_CRITERIA,
                ..EvidenceQuery::new(criterion.description.as_str())
            })
            .collect();
        let rest = self.find(&judged, &prompt)?;
        Ok(self.within_budget(prompt.into_iter().chain(rest)))
    }

    /// Returns evidence for an existing text: for each of its parts, and for its task.
    ///
    /// # Errors
    /// If the index fails.
    pub fn for_text(&self, task: &Task, text: &str) -> Result<Vec<Evidence>, SearchError> {
        let parts = passages::split(text, EvidenceSource::Documentation);
        let questions: Vec<EvidenceQuery> = std::iter::once(task.prompt.clone())
            .chain(parts.into_iter().take(MAX_PARTS).map(|part| part.text))
            .map(EvidenceQuery::new)
            .collect();
        self.find(&questions, &[])
    }

    /// Returns evidence for each issue of a draft, without the evidence that is already `known`. A
    /// passage that contains the words of an issue's claim names the claim.
    ///
    /// # Errors
    /// If the index fails.
    pub fn for_issues(
        &self,
        issues: &[Issue],
        known: &[Evidence],
    ) -> Result<Vec<Evidence>, SearchError> {
        let questions: Vec<EvidenceQuery> = issues
            .iter()
            .map(|issue| {
                let parts = [
                    Some(issue.description.as_str()),
                    issue.place.claim.as_deref(),
                    issue.place.quote.as_deref(),
                    issue.suggested_fix.as_deref(),
                ];
                EvidenceQuery {
                    claim: issue.place.claim.clone(),
                    ..EvidenceQuery::new(parts.into_iter().flatten().collect::<Vec<_>>().join("\n"))
                }
            })
            .collect();
        self.find(&questions, known)
    }

    /// Returns the best passages for each question in turn, as many as fit, most relevant first.
    fn find(
        &self,
        questions: &[EvidenceQuery],
        known: &[Evidence],
    ) -> Result<Vec<Evidence>, SearchError> {
        let mut answers = Vec::new();
        for question in questions {
            let mut hits = self
                .index
                .search(&question.text, PER_QUESTION)
                .map_err(SearchError::Evidence)?;
            let best = hits.first().map_or(0.0, |hit| hit.relevance);
            hits.retain(|hit| hit.relevance >= (LEAST_SHARE * best).max(question.least));
            let entries: Vec<usize> = hits.iter().map(|hit| hit.entry).collect();
            let bears_on = match &question.claim {
                Some(claim) => self
                    .index
                    .coverage(claim, &entries)
                    .map_err(SearchError::Evidence)?,
                None => vec![0.0; entries.len()],
            };
            let claims = bears_on
                .into_iter()
                .map(|share| question.claim.as_ref().filter(|_| share >= BEARS_ON));
            answers.push(hits.into_iter().zip(claims).collect::<Vec<_>>());
        }
        let mut found: Vec<Evidence> = Vec::new();
        for rank in 0..PER_QUESTION {
            for (hit, claim) in answers.iter().filter_map(|answers| answers.get(rank)) {
                let new = self.evidence(*hit, claim.cloned());
                if let Some(old) = found.iter_mut().find(|old| is_same(old, &new)) {
                    if new.relevance > old.relevance {
                        old.relevance = new.relevance;
                    }
                    old.supports_claim = old.supports_claim.take().or(new.supports_claim);
                } else if !known.iter().any(|old| is_same(old, &new)) {
                    found.push(new);
                }
            }
        }
        let mut found = self.within_budget(found);
        found.sort_by(|a, b| {
            b.relevance
                .unwrap_or(0.0)
                .total_cmp(&a.relevance.unwrap_or(0.0))
        });
        Ok(found)
    }

    fn evidence(&self, hit: Hit, supports_claim: Option<String>) -> Evidence {
        let entry = &self.index.entries()[hit.entry];
        let passage = &entry.passage;
        Evidence {
            source: entry.source,
            content: passage.text.clone(),
            relevance: Some(hit.relevance),
            supports_claim,
            location: Some(format!("{}:{}-{}", entry.path, passage.first, passage.last)),
        }
    }

    /// Returns the leading pieces that fit the budget together.
    fn within_budget(&self, evidence: impl IntoIterator<Item = Evidence>) -> Vec<Evidence> {
        let mut left = self.budget;
        evidence
            .into_iter()
            .filter(|evidence| {
                let cost = evidence.content.chars().count() + FRAME;
                let fits = cost <= left;
                if fits {
                    left -= cost;
                }
                fits
            })
            .collect()
    }
}

/// Returns whether two pieces are the same passage, or copies of it in different files.
fn is_same(a: &Evidence, b: &Evidence) -> bool {
    a.content == b.content
}

/// Returns the facts and procedures of a task as evidence. Their relevance is the confidence or
/// success rate.
pub fn memory(task: &Task) -> Vec<Evidence> {
    let facts = task.facts.iter().map(|fact| Evidence {
        source: EvidenceSource::Memory,
        content: fact.content.clone(),
        relevance: fact.confidence,
        supports_claim: fact.supports_claim.clone(),
        location: None,
    });
    let procedures = task.procedures.iter().map(|procedure| Evidence {
        source: EvidenceSource::Memory,
        content: match &procedure.name {
            Some(name) => format!("{name}: {}", procedure.content),
            None => procedure.content.clone(),
        },
        relevance: procedure.success_rate,
        supports_claim: None,
        location: None,
    });
    facts.chain(procedures).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::types::{Fact, IssueType, Place, Procedure, Severity};

    fn gatherer(files: &[(&str, &str)], tokens: u32) -> (tempfile::TempDir, Gatherer) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let gatherer = Gatherer::open(&[folder.path().to_owned()], tokens).unwrap();
        (folder, gatherer)
    }

    fn issue(description: &str, claim: Option<&str>) -> Issue {
        Issue {
            kind: IssueType::Unsupported,
            severity: Severity::Major,
            description: description.to_owned(),
            suggested_fix: None,
            criterion: None,
            place: Place {
                claim: claim.map(str::to_owned),
                ..Place::default()
            },
        }
    }

    const FILES: &[(&str, &str)] = &[
        (
            "retry.rs",
            "/// Waits between two tries.\nfn backoff(attempt: u32) -> u32 {\n    2 << attempt\n}\n",
        ),
        (
            "queue.md",
            "# The queue\n\nJobs wait in a queue of at most 100 entries.\n",
        ),
        ("colour.md", "# Colours\n\nThe sky is blue.\n"),
        ("copy.md", "# Colours\n\nThe sky is blue.\n"),
        ("sea.md", "# The sea\n\nWaves are wet.\n"),
    ];

    #[test]
    fn a_task_gets_the_passages_that_have_to_do_with_it() {
        let (_folder, gatherer) = gatherer(FILES, 500);
        assert_eq!((gatherer.files(), gatherer.passages()), (5, 5));
        let task = Task::new("Explain the backoff between attempts.");
        let criteria = crate::criteria::parse(
            "name = 'c'\n[[criteria]]\nname = 'a'\ndescription = 'It says how long the queue is.'",
            "c.toml",
        )
        .unwrap();
        let found = gatherer.for_task(&task, &criteria).unwrap();
        let places: Vec<_> = found.iter().map(|e| e.location.clone().unwrap()).collect();
        assert!(places[0].ends_with("retry.rs:1-4"), "{places:?}");
        assert!(places[1].ends_with("queue.md:1-3"), "{places:?}");
        assert_eq!(places.len(), 2);
        assert_eq!(found[0].source, EvidenceSource::Codebase);
        assert_eq!(found[1].source, EvidenceSource::Documentation);
        assert_eq!(found[0].supports_claim, None);
    }

    #[test]
    fn each_issue_gets_its_evidence_and_the_claim_only_where_the_passage_bears_on_it() {
        let (_folder, gatherer) = gatherer(FILES, 500);
        let issues = [
            issue("The colour is made up.", Some("The sky is blue")),
            issue(
                "Nothing backs the size of the queue.",
                Some("The queue has 7 million entries in Paris"),
            ),
        ];
        let found = gatherer.for_issues(&issues, &[]).unwrap();
        let of = |name: &str| found.iter().find(|e| e.content.contains(name)).unwrap();
        assert_eq!(
            of("blue").supports_claim.as_deref(),
            Some("The sky is blue")
        );
        assert_eq!(of("100 entries").supports_claim, None);
        let copies = found.iter().filter(|e| e.content.contains("blue")).count();
        assert_eq!(copies, 1, "the same text is shown once");
        assert!(
            found
                .windows(2)
                .all(|pair| pair[0].relevance >= pair[1].relevance)
        );
        // Known evidence is not returned again.
        let known = vec![of("blue").clone()];
        let again = gatherer.for_issues(&issues, &known).unwrap();
        assert!(again.iter().all(|e| !e.content.contains("blue")));
    }

    #[test]
    fn the_budget_holds() {
        let text = "The sky is blue and so on. ".repeat(20);
        let files: Vec<(String, String)> = (0..20)
            .map(|n| (format!("{n}.md"), format!("{n} {text}")))
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(n, t)| (n.as_str(), t.as_str()))
            .collect();
        let (_folder, gatherer) = gatherer(&files, 400);
        let found = gatherer
            .for_text(&Task::default(), "The blue sky.")
            .unwrap();
        let characters: usize = found.iter().map(|e| e.content.chars().count()).sum();
        assert_eq!(found.len(), 2);
        assert!(characters <= 1600);
    }

    #[test]
    fn memory_is_evidence_with_its_confidence() {
        let task = Task {
            facts: vec![Fact {
                content: "User prefers dark mode".to_owned(),
                confidence: Some(0.9),
                supports_claim: None,
            }],
            procedures: vec![Procedure {
                name: Some("Deploy".to_owned()),
                content: "Push to main.".to_owned(),
                success_rate: None,
            }],
            ..Task::new("x")
        };
        let found = memory(&task);
        assert_eq!(found[0].relevance, Some(0.9));
        assert_eq!(found[0].content, "User prefers dark mode");
        assert_eq!(
            (found[1].content.as_str(), found[1].relevance),
            ("Deploy: Push to main.", None)
        );
        assert!(found.iter().all(|e| e.source == EvidenceSource::Memory));
        assert!(memory(&Task::new("x")).is_empty());
    }
}
