//! Choosing what is shown: the best passages for each question, as many as fit.

use std::path::PathBuf;

use super::index::{Hit, Index, SearchError};
use super::passages;
use super::walk::{self, Limits};
use crate::source::{self, SourceError};
use crate::types::{CHARACTERS_PER_TOKEN, Criteria, Evidence, EvidenceSource, Issue, Task};

/// Tokens of evidence in a prompt where nobody says how many.
pub const DEFAULT_TOKENS: u32 = 2000;

/// What a passage costs besides its text: the tags with its place around it, in characters.
const FRAME: usize = 80;

/// The most passages for one question: what comes after these is noise.
const PER_QUESTION: usize = 12;

/// A passage that scores less than this share of the best one is left out: it has a common word or two.
const LEAST_SHARE: f64 = 0.25;

/// Criteria speak of every text of a kind; a passage is evidence for them only if it has this share of
/// their words.
const LEAST_FOR_CRITERIA: f64 = 0.2;

/// A passage bears on a claim if it has this share of its words, rare ones counting more.
const BEARS_ON: f64 = 0.8;

/// The most parts of a text that are looked up one by one.
const MAX_PARTS: usize = 24;

/// Finds evidence in code and documents.
///
/// The relevance of a passage is its BM25 score as a share of the best passage's, times the share of the
/// question's telling words that the best passage has, rare words counting more. So it falls down the list,
/// is 1 only for a passage that has all words of the question, and is small throughout where there is
/// nothing that has to do with it.
#[derive(Debug)]
pub struct Gatherer {
    index: Index,
    /// The most characters of evidence that one prompt gets from one search.
    budget: usize,
    files: usize,
    warnings: Vec<String>,
}

/// Something that evidence is looked for.
struct Question {
    text: String,
    /// The claim that it is about.
    claim: Option<String>,
    /// The least relevance of what is an answer.
    least: f64,
}

impl Question {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            claim: None,
            least: 0.0,
        }
    }
}

impl Gatherer {
    /// Reads and indexes files and folders. `tokens` bounds what one search finds, at an estimated four
    /// characters a token.
    ///
    /// In folders, what is hidden, ignored or no text is left out; of more than 5,000 files or 32 MB, the
    /// rest is, too.
    ///
    /// # Errors
    /// If a path does not exist, a file is no text or larger than 1 MB, or a folder has no text in it.
    pub fn open(paths: &[PathBuf], tokens: u32) -> Result<Self, SourceError> {
        let reading = walk::read(paths, &Limits::default())?;
        let files = reading.documents.len();
        let index = Index::new(reading.documents).map_err(|error| {
            SourceError::whole("evidence", &format!("the texts cannot be indexed: {error}"))
        })?;
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        Ok(Self {
            index,
            budget: tokens.saturating_mul(CHARACTERS_PER_TOKEN),
            files,
            warnings: reading.warnings,
        })
    }

    /// How many files there are to look in.
    pub fn files(&self) -> usize {
        self.files
    }

    /// How many passages these have.
    pub fn passages(&self) -> usize {
        self.index.entries().len()
    }

    /// A hash of the texts and of where they stand: another one says that something has changed.
    pub fn hash(&self) -> String {
        let entries = self.index.entries().iter();
        source::hash_of(entries.flat_map(|entry| [&*entry.path, &*entry.passage.text]))
    }

    /// What people should know: what was left out.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What has to do with a task: with its prompt first, then with the criteria that a judge decides.
    ///
    /// # Errors
    /// If the index fails.
    pub fn for_task(&self, task: &Task, criteria: &Criteria) -> Result<Vec<Evidence>, SearchError> {
        let prompt = self.find(&[Question::new(task.prompt.as_str())], &[])?;
        let judged: Vec<Question> = criteria
            .criteria
            .iter()
            .filter(|criterion| !criterion.evaluator.is_hard() && !criterion.description.is_empty())
            .map(|criterion| Question {
                least: LEAST_FOR_CRITERIA,
                ..Question::new(criterion.description.as_str())
            })
            .collect();
        let rest = self.find(&judged, &prompt)?;
        Ok(self.within_budget(prompt.into_iter().chain(rest)))
    }

    /// What has to do with a text that is there already: with each part of it, and with its task.
    ///
    /// # Errors
    /// If the index fails.
    pub fn for_text(&self, task: &Task, text: &str) -> Result<Vec<Evidence>, SearchError> {
        let parts = passages::split(text, EvidenceSource::Documentation);
        let questions: Vec<Question> = std::iter::once(task.prompt.clone())
            .chain(parts.into_iter().take(MAX_PARTS).map(|part| part.text))
            .map(Question::new)
            .collect();
        self.find(&questions, &[])
    }

    /// What has to do with the weaknesses of a draft, each in turn; nothing of what is `known` already. A
    /// passage that has the words of an issue's claim names the claim.
    ///
    /// # Errors
    /// If the index fails.
    pub fn for_issues(
        &self,
        issues: &[Issue],
        known: &[Evidence],
    ) -> Result<Vec<Evidence>, SearchError> {
        let questions: Vec<Question> = issues
            .iter()
            .map(|issue| {
                let parts = [
                    Some(issue.description.as_str()),
                    issue.place.claim.as_deref(),
                    issue.place.quote.as_deref(),
                    issue.suggested_fix.as_deref(),
                ];
                Question {
                    claim: issue.place.claim.clone(),
                    ..Question::new(parts.into_iter().flatten().collect::<Vec<_>>().join("\n"))
                }
            })
            .collect();
        self.find(&questions, known)
    }

    /// The best passages for each question in turn, as many as fit; the most relevant first.
    fn find(
        &self,
        questions: &[Question],
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

    /// The first of these that fit together.
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

/// Whether two pieces say the same: one passage, or copies of it in different files.
fn is_same(a: &Evidence, b: &Evidence) -> bool {
    a.content == b.content
}

/// What came with a task as evidence: facts, whose relevance is their confidence, and procedures,
/// whose relevance is their success rate.
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
        // What is in the prompt already is not found again.
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
