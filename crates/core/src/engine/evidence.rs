//! Searches for evidence, records it as an event, and adds it to the prompts.

use super::log::Log;
use crate::evidence::{Gatherer, SearchError, memory};
use crate::prompt::Prompts;
use crate::types::{Criteria, Event, Evidence, Issue, Task};

/// The version that the task's own evidence is recorded for.
const FIRST: u32 = 1;

/// Evidence from memory and a search for the task or the given text. It stays in the prompts for the whole run.
pub(super) fn for_run(
    gatherer: Option<&Gatherer>,
    task: &Task,
    given: Option<&str>,
    criteria: &Criteria,
    prompts: &mut Prompts,
    log: &Log<'_>,
) {
    let known = memory(task);
    let found = if let Some(recorded) = log.recorded_evidence(FIRST) {
        recorded.into_iter().skip(known.len()).collect()
    } else {
        warn(gatherer, log);
        let found = gatherer.map(|gatherer| match given {
            Some(text) => gatherer.for_text(task, text),
            None => gatherer.for_task(task, criteria),
        });
        found_or_warning(found, log)
    };
    prompts.show_evidence(&found);
    emit(FIRST, known, found, log);
}

/// Evidence for the issues to fix. It stays in the prompts until the next revision.
pub(super) fn for_revision(
    gatherer: Option<&Gatherer>,
    issues: &[Issue],
    iteration: u32,
    prompts: &mut Prompts,
    log: &Log<'_>,
) {
    let Some(gatherer) = gatherer else { return };
    let known: Vec<Evidence> = log.with(|record| {
        let of_task = record.evidence.iter().filter(|e| e.iteration == FIRST);
        of_task.map(|gathered| gathered.evidence.clone()).collect()
    });
    let found = log
        .recorded_evidence(iteration)
        .unwrap_or_else(|| found_or_warning(Some(gatherer.for_issues(issues, &known)), log));
    prompts.show_fresh_evidence(&found);
    emit(iteration, Vec::new(), found, log);
}

/// Evidence from memory and a search for a text that is evaluated once.
pub(super) fn for_text(
    gatherer: Option<&Gatherer>,
    task: &Task,
    text: &str,
    prompts: &mut Prompts,
    log: &Log<'_>,
) {
    warn(gatherer, log);
    let found = gatherer.map(|gatherer| gatherer.for_text(task, text));
    let found = found_or_warning(found, log);
    // After the text, so that the evaluations of several texts start with the same bytes.
    prompts.show_fresh_evidence(&found);
    emit(FIRST, memory(task), found, log);
}

fn warn(gatherer: Option<&Gatherer>, log: &Log<'_>) {
    for message in gatherer.map(Gatherer::warnings).unwrap_or_default() {
        log.emit(Event::Warning {
            message: message.clone(),
        });
    }
}

/// A failed search is a warning: a draft without evidence is better than none.
fn found_or_warning(
    found: Option<Result<Vec<Evidence>, SearchError>>,
    log: &Log<'_>,
) -> Vec<Evidence> {
    match found {
        Some(Ok(found)) => found,
        Some(Err(error)) => {
            log.emit(Event::Warning {
                message: error.to_string(),
            });
            Vec::new()
        }
        None => Vec::new(),
    }
}

fn emit(iteration: u32, known: Vec<Evidence>, found: Vec<Evidence>, log: &Log<'_>) {
    let evidence: Vec<Evidence> = known.into_iter().chain(found).collect();
    if !evidence.is_empty() {
        log.emit(Event::Evidence {
            iteration,
            evidence,
        });
    }
}
