//! What the tasks of a batch are told from memory, whether it helped, and what the batch teaches.

use std::collections::BTreeMap;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use uuid::Uuid;

use crate::batch::{BatchHistory, advice};
use crate::cli::error::CliError;
use crate::cli::recall::{self, Figures};
use crate::cli::store::SharedStore;
use crate::cli::{learning, paths, printer};
use crate::memory::{self, MIN_RUNS};
use crate::reflector::{Insight, InsightCategory};
use crate::report;
use crate::store::{Store, StoreError};
use crate::text::plural;
#[cfg(feature = "restate")]
use crate::types::Comparison;
use crate::types::{
    Criteria, Knowledge, KnownInsight, Memory, RecalledMemory, ReflectionCriteria, Task,
};

/// The most entries of which it is said one by one what became of them.
const TOLD: usize = 12;

/// The most runs that an insight names.
const EVIDENCE: usize = 20;

/// Memory, as the tasks of a batch use it.
pub(super) struct Memories {
    /// The store with the run log; `None` if no runs are kept. Then nothing can be measured.
    log: Option<SharedStore>,
    /// Where memory is read from; `None` if there is nothing yet.
    memory: Option<SharedStore>,
    told: Mutex<Summary>,
}

/// What the tasks were told so far, and what it came to.
#[derive(Debug, Default)]
struct Summary {
    /// Tasks that were to be told something.
    tasks: u64,
    /// Those of them that something served.
    served: u64,
    /// Entries of memory, when the last task looked.
    known: usize,
    /// By the number of the entry.
    entries: BTreeMap<u64, Entry>,
    /// Why memory could not be read or changed, the first time.
    problem: Option<String>,
}

/// What became of an entry of memory.
#[derive(Debug, Default)]
struct Entry {
    /// How many tasks were told.
    tasks: u64,
    /// Its figure before the first run that was measured, and after the last.
    figures: Option<(Option<f64>, f64)>,
}

impl Summary {
    fn take(&mut self, figures: Figures) {
        for (id, before, after) in figures {
            let entry = self.entries.entry(id).or_default();
            let first = entry.figures.map_or(before, |(first, _)| first);
            entry.figures = Some((first, after.unwrap_or_default()));
        }
    }
}

impl Memories {
    /// Memory, in the same file as the run log.
    ///
    /// # Errors
    /// If that is there and cannot be opened.
    pub(super) fn open(log: Option<SharedStore>) -> Result<Self, CliError> {
        let memory = match &log {
            Some(log) => Some(log.clone()),
            None => SharedStore::open_existing()?,
        };
        Ok(Self {
            log,
            memory,
            told: Mutex::default(),
        })
    }

    fn told(&self) -> MutexGuard<'_, Summary> {
        self.told.lock()
    }

    /// What serves a task with these criteria, written by this model (`provider:model`). That memory cannot be read is
    /// no failure of the task.
    pub(super) fn recall(&self, task: &Task, criteria: &Criteria, writer: &str) -> RecalledMemory {
        let known = match self.memory.as_ref().map(|store| store.lock().memories()) {
            None => Ok(Vec::new()),
            Some(known) => known.map_err(|error| error.to_string()),
        };
        let recalled = known.and_then(|known| {
            let now = Timestamp::now();
            let recalled = memory::recall(&known, task, criteria, writer, now)
                .map_err(|error| error.to_string())?;
            Ok((known.len(), recalled.into_recollection()))
        });
        let mut told = self.told();
        told.tasks += 1;
        match recalled {
            Ok((known, recollection)) => {
                told.known = known;
                told.served += u64::from(!recollection.is_empty());
                for id in &recollection.remembered {
                    told.entries.entry(*id).or_default().tasks += 1;
                }
                recollection
            }
            Err(problem) => {
                told.problem.get_or_insert(problem);
                RecalledMemory::default()
            }
        }
    }

    /// Takes in whether a run of this machine was better for what it was told.
    pub(super) fn measure(&self, run_id: Uuid) {
        if let Some(store) = &self.log {
            self.note(recall::measured(&mut store.lock(), run_id));
        }
    }

    /// Takes in whether a run of another machine was better for what it was told.
    #[cfg(feature = "restate")]
    pub(super) fn take_in(&self, run: &Comparison) {
        if let Some(store) = &self.memory {
            self.note(recall::taken_in(&mut store.lock(), run));
        }
    }

    fn note(&self, figures: Result<Figures, StoreError>) {
        match figures {
            Ok(figures) => self.told().take(figures),
            Err(error) => {
                self.told().problem.get_or_insert(error.to_string());
            }
        }
    }

    /// Says what memory did for the tasks, and keeps what the batch teaches.
    pub(super) fn conclude(
        &self,
        batch: &BatchHistory,
        criteria: &ReflectionCriteria,
        writer: &str,
        quiet: bool,
    ) {
        let told = std::mem::take(&mut *self.told());
        if let Some(problem) = &told.problem {
            printer::say(&format!("warning: memory could not be used: {problem}"));
        }
        if !quiet && told.tasks > 0 {
            summary(&told);
        }
        if batch.seen() == 0 {
            return;
        }
        match self.learned(batch, criteria, writer) {
            Ok(line) if !quiet => printer::say(&line),
            Ok(_) => {}
            Err(error) => printer::say(&format!(
                "warning: what the batch teaches is not kept: {error}"
            )),
        }
    }

    /// Keeps what failures of the batch and its runs teach. Says how much that is.
    fn learned(
        &self,
        batch: &BatchHistory,
        criteria: &ReflectionCriteria,
        writer: &str,
    ) -> Result<String, CliError> {
        let mut lessons: Vec<KnownInsight> = batch
            .insights(criteria)
            .into_iter()
            .filter_map(|(insight, runs)| {
                let runs = if self.log.is_some() { runs } else { Vec::new() };
                lesson(&insight, runs, writer)
            })
            .collect();
        if let Some(log) = &self.log {
            let runs = batch.runs().take(learning::RUNS as usize);
            let episodes = learning::episodes(&log.lock(), runs);
            lessons.extend(memory::learn(&episodes));
        }
        let found = lessons.len();
        if found == 0 {
            return Ok(
                "memory: the batch teaches nothing that enough of its tasks show".to_owned(),
            );
        }
        let all = lessons.into_iter().map(Knowledge::Insight);
        let change = |known: &[Memory]| memory::merge(known, all);
        let changed = match &self.log {
            Some(log) => log.lock().change_memories(Timestamp::now(), change)?,
            None => Store::open(&paths::store()?)?.change_memories(Timestamp::now(), change)?,
        };
        Ok(format!(
            "memory: learned from the batch: {}",
            learning::changes(found, &changed)
        ))
    }
}

/// Says what the tasks were told.
fn summary(told: &Summary) {
    if told.known == 0 && told.served == 0 {
        printer::say("memory: there was nothing in it yet");
        return;
    }
    let used = told.entries.values().filter(|entry| entry.tasks > 0);
    printer::say(&format!(
        "memory: {} of {} used, in {} of {} {}",
        used.count(),
        told.known,
        report::thousands(told.served),
        report::thousands(told.tasks),
        plural(told.tasks, "task", "tasks")
    ));
    let moved = told
        .entries
        .iter()
        .filter_map(|(id, entry)| Some((id, entry.tasks, entry.figures?)));
    for (id, tasks, (before, after)) in moved.take(TOLD) {
        printer::say(&format!(
            "memory: {id} {} ({} {})",
            recall::moves(before, after),
            report::thousands(tasks),
            plural(tasks, "task", "tasks")
        ));
    }
}

/// What the reflector learned, as advice for those who write; `None` where they can do nothing about it.
fn lesson(insight: &Insight, mut runs: Vec<Uuid>, writer: &str) -> Option<KnownInsight> {
    let is_mode = insight.category == InsightCategory::FailureMode;
    if !is_mode || insight.evidence.len() < MIN_RUNS {
        return None;
    }
    let advice = advice(insight.cause?)?;
    runs.truncate(EVIDENCE);
    // The next batch has other numbers of the same thing.
    let subject = insight.text.replace(|c: char| c.is_ascii_digit(), "");
    let content = format!("In a batch, {}. {advice}", insight.text);
    Some(KnownInsight {
        subject,
        model: Some(writer.to_owned()),
        evidence: runs,
        ..KnownInsight::new(insight.category.as_str(), content, insight.confidence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Row;
    use crate::reflector::ErrorCategory;
    #[cfg(feature = "restate")]
    use crate::types::MemoryChange;

    fn insight(cause: Option<ErrorCategory>, text: &str) -> Insight {
        Insight {
            category: InsightCategory::FailureMode,
            cause,
            text: text.to_owned(),
            confidence: 0.75,
            plan_id: "tasks.jsonl".to_owned(),
            evidence: vec!["a".to_owned(), "b".to_owned()],
        }
    }

    #[test]
    fn only_what_a_writer_can_do_something_about_is_kept() {
        let timeout = insight(Some(ErrorCategory::Timeout), "3 attempts failed by timeout");
        let runs: Vec<Uuid> = (0..30).map(Uuid::from_u128).collect();
        let kept = lesson(&timeout, runs, "openai:test").unwrap();
        assert_eq!(kept.subject, " attempts failed by timeout");
        assert_eq!(kept.evidence.len(), EVIDENCE);
        assert_eq!(kept.model.as_deref(), Some("openai:test"));
        assert!(
            kept.content.contains("Write no more than"),
            "{}",
            kept.content
        );
        let refused = insight(Some(ErrorCategory::Permission), "2 attempts failed");
        assert_eq!(lesson(&refused, Vec::new(), "m"), None);
        let once = Insight {
            evidence: vec!["a".to_owned()],
            ..insight(Some(ErrorCategory::Timeout), "an attempt failed by timeout")
        };
        assert_eq!(lesson(&once, Vec::new(), "m"), None);
        let tool = Insight {
            category: InsightCategory::ToolEffectiveness,
            ..insight(None, "the tool `m` did all 3 of its tasks")
        };
        assert_eq!(lesson(&tool, Vec::new(), "m"), None);
    }

    #[test]
    fn a_run_that_cannot_be_read_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("runs.db")).unwrap();
        let memories = Memories {
            log: Some(SharedStore::new(store)),
            memory: None,
            told: Mutex::default(),
        };
        let mut batch = BatchHistory::new("tasks.jsonl", None);
        let row = Row {
            // Another process has removed it meanwhile.
            run_id: Some(Uuid::from_u128(1)),
            ..Row::invalid(1, None, "it failed".to_owned())
        };
        batch.add(&row, Timestamp::UNIX_EPOCH);
        let learned = memories.learned(&batch, &ReflectionCriteria::default(), "openai:test");
        let line = learned.expect("what the others teach");
        assert!(line.contains("teaches nothing"), "{line}");
    }

    /// The run is in no log of this machine.
    #[cfg(feature = "restate")]
    #[test]
    fn what_another_machine_says_of_a_run_is_taken_in() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::open(&folder.path().join("runs.db")).unwrap();
        let criteria = "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nmax = 9";
        let criteria = crate::criteria::parse(criteria, "c.toml").unwrap();
        let known = KnownInsight {
            criteria: Some("c".to_owned()),
            ..KnownInsight::new("general", "Write less.", 0.6)
        };
        let add = MemoryChange::Add(Knowledge::Insight(known));
        store
            .change_memories(Timestamp::now(), |_| vec![add])
            .unwrap();
        let memories = Memories {
            log: None,
            memory: Some(SharedStore::new(store)),
            told: Mutex::default(),
        };
        let told = memories.recall(&Task::new("Write."), &criteria, "a:b");
        assert_eq!(told.insights[0].content, "Write less.");
        let id = told.remembered[0];
        memories.take_in(&Comparison {
            success: Some(true),
            shares: vec![(id, Some(1.0))],
        });
        let figures = memories.told().entries[&id].figures;
        assert!(
            figures.is_some_and(|(before, after)| before < Some(after)),
            "{figures:?}"
        );
        let known = memories.memory.as_ref().unwrap().lock().memories().unwrap();
        let Knowledge::Insight(now) = &known[0].what else {
            panic!("it is one: {known:?}");
        };
        assert_eq!((now.uses, now.compared), (1, 1));
    }

    #[test]
    fn a_figure_is_told_from_its_first_value_to_its_last() {
        let mut told = Summary::default();
        told.take(vec![(7, Some(0.5), Some(0.6))]);
        told.take(vec![(7, Some(0.6), Some(0.4)), (8, None, Some(1.0))]);
        assert_eq!(told.entries[&7].figures, Some((Some(0.5), 0.4)));
        assert_eq!(told.entries[&8].figures, Some((None, 1.0)));
    }
}
