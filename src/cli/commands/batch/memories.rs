//! Memory in a batch: what its tasks receive, whether that helps, and what the batch adds.

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

/// The maximum number of entries reported one by one.
const MAX_REPORTED: usize = 12;

/// The maximum number of runs that an insight cites.
const MAX_EVIDENCE: usize = 20;

/// Memory for the tasks of a batch.
pub(super) struct Memories {
    /// The store with the run log; `None` if runs of this machine are not logged, and thus not measured.
    log: Option<SharedStore>,
    /// The store that memory is read from; `None` if there is none yet.
    memory: Option<SharedStore>,
    summary: Mutex<Summary>,
}

/// The entries that the tasks received so far, and their effect.
#[derive(Debug, Default)]
struct Summary {
    /// The number of tasks for which memory was searched.
    tasks: u64,
    /// The number of tasks that received an entry.
    served: u64,
    /// The number of entries in memory at the last search.
    known: usize,
    /// Entries by id.
    entries: BTreeMap<u64, Entry>,
    /// The first error from reading or changing memory.
    problem: Option<String>,
}

/// How the batch used an entry of memory.
#[derive(Debug, Default)]
struct Entry {
    /// The number of tasks that received it.
    tasks: u64,
    /// Its figure before the first measured run and after the last.
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
    /// Opens memory, which is in the same file as the run log.
    ///
    /// # Errors
    /// If the file exists and cannot be opened.
    pub(super) fn open(log: Option<SharedStore>) -> Result<Self, CliError> {
        let memory = match &log {
            Some(log) => Some(log.clone()),
            None => SharedStore::open_existing()?,
        };
        Ok(Self {
            log,
            memory,
            summary: Mutex::default(),
        })
    }

    fn summary(&self) -> MutexGuard<'_, Summary> {
        self.summary.lock()
    }

    /// Returns the entries for a task with these criteria and this writer (`provider:model`). If memory
    /// cannot be read, the task runs without it.
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
        let mut summary = self.summary();
        summary.tasks += 1;
        match recalled {
            Ok((known, recollection)) => {
                summary.known = known;
                summary.served += u64::from(!recollection.is_empty());
                for id in &recollection.remembered {
                    summary.entries.entry(*id).or_default().tasks += 1;
                }
                recollection
            }
            Err(problem) => {
                summary.problem.get_or_insert(problem);
                RecalledMemory::default()
            }
        }
    }

    /// Records whether memory helped a run of this machine.
    pub(super) fn measure(&self, run_id: Uuid) {
        if let Some(store) = &self.log {
            self.note(recall::measured(&mut store.lock(), run_id));
        }
    }

    /// Records whether memory helped a run of another machine.
    #[cfg(feature = "restate")]
    pub(super) fn measure_remote(&self, run: &Comparison) {
        if let Some(store) = &self.memory {
            self.note(recall::taken_in(&mut store.lock(), run));
        }
    }

    fn note(&self, figures: Result<Figures, StoreError>) {
        match figures {
            Ok(figures) => self.summary().take(figures),
            Err(error) => {
                self.summary().problem.get_or_insert(error.to_string());
            }
        }
    }

    /// Reports how memory was used and stores insights from the batch.
    pub(super) fn conclude(
        &self,
        batch: &BatchHistory,
        criteria: &ReflectionCriteria,
        writer: &str,
        quiet: bool,
    ) {
        let summary = std::mem::take(&mut *self.summary());
        if let Some(problem) = &summary.problem {
            printer::say(&format!("warning: memory could not be used: {problem}"));
        }
        if !quiet && summary.tasks > 0 {
            print_summary(&summary);
        }
        if batch.seen() == 0 {
            return;
        }
        match self.learned(batch, criteria, writer) {
            Ok(line) if !quiet => printer::say(&line),
            Ok(_) => {}
            Err(error) => printer::say(&format!(
                "warning: cannot store insights from the batch: {error}"
            )),
        }
    }

    /// Stores insights from the batch's failures and runs. Returns a line that counts them.
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
            return Ok("memory: no insight recurs often enough".to_owned());
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

/// Reports which entries the tasks received.
fn print_summary(summary: &Summary) {
    if summary.known == 0 && summary.served == 0 {
        printer::say("memory: empty");
        return;
    }
    let used = summary.entries.values().filter(|entry| entry.tasks > 0);
    printer::say(&format!(
        "memory: {} of {} used, in {} of {} {}",
        used.count(),
        summary.known,
        report::thousands(summary.served),
        report::thousands(summary.tasks),
        plural(summary.tasks, "task", "tasks")
    ));
    let moved = summary
        .entries
        .iter()
        .filter_map(|(id, entry)| Some((id, entry.tasks, entry.figures?)));
    for (id, tasks, (before, after)) in moved.take(MAX_REPORTED) {
        printer::say(&format!(
            "memory: {id} {} ({} {})",
            recall::moves(before, after),
            report::thousands(tasks),
            plural(tasks, "task", "tasks")
        ));
    }
}

/// Turns an insight of the reflector into advice for the writer; `None` if the writer cannot act on it.
fn lesson(insight: &Insight, mut runs: Vec<Uuid>, writer: &str) -> Option<KnownInsight> {
    let is_mode = insight.category == InsightCategory::FailureMode;
    if !is_mode || insight.evidence.len() < MIN_RUNS {
        return None;
    }
    let advice = advice(insight.cause?)?;
    runs.truncate(MAX_EVIDENCE);
    // Drop the digits: the next batch has the same failure with other counts.
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
    fn keeps_only_insights_that_a_writer_can_act_on() {
        let timeout = insight(Some(ErrorCategory::Timeout), "3 attempts failed by timeout");
        let runs: Vec<Uuid> = (0..30).map(Uuid::from_u128).collect();
        let kept = lesson(&timeout, runs, "openai:test").unwrap();
        assert_eq!(kept.subject, " attempts failed by timeout");
        assert_eq!(kept.evidence.len(), MAX_EVIDENCE);
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
    fn skips_runs_that_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("runs.db")).unwrap();
        let memories = Memories {
            log: Some(SharedStore::new(store)),
            memory: None,
            summary: Mutex::default(),
        };
        let mut batch = BatchHistory::new("tasks.jsonl", None);
        let row = Row {
            // Removed by another process in the meantime.
            run_id: Some(Uuid::from_u128(1)),
            ..Row::invalid(1, None, "it failed".to_owned())
        };
        batch.add(&row, Timestamp::UNIX_EPOCH);
        let learned = memories.learned(&batch, &ReflectionCriteria::default(), "openai:test");
        let line = learned.expect("a summary line");
        assert!(line.contains("no insight"), "{line}");
    }

    /// The run is not in this machine's log.
    #[cfg(feature = "restate")]
    #[test]
    fn records_comparisons_from_other_machines() {
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
            summary: Mutex::default(),
        };
        let recalled = memories.recall(&Task::new("Write."), &criteria, "a:b");
        assert_eq!(recalled.insights[0].content, "Write less.");
        let id = recalled.remembered[0];
        memories.measure_remote(&Comparison {
            success: Some(true),
            shares: vec![(id, Some(1.0))],
        });
        let figures = memories.summary().entries[&id].figures;
        assert!(
            figures.is_some_and(|(before, after)| before < Some(after)),
            "{figures:?}"
        );
        let known = memories.memory.as_ref().unwrap().lock().memories().unwrap();
        let Knowledge::Insight(now) = &known[0].what else {
            panic!("expected an insight: {known:?}");
        };
        assert_eq!((now.uses, now.compared), (1, 1));
    }

    #[test]
    fn figures_range_from_the_first_value_to_the_last() {
        let mut summary = Summary::default();
        summary.take(vec![(7, Some(0.5), Some(0.6))]);
        summary.take(vec![(7, Some(0.6), Some(0.4)), (8, None, Some(1.0))]);
        assert_eq!(summary.entries[&7].figures, Some((Some(0.5), 0.4)));
        assert_eq!(summary.entries[&8].figures, Some((None, 1.0)));
    }
}
