//! The observers of a run besides the progress: the run log and the event lines.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::CliError;
use super::printer::{self, Reader};
use super::store::SharedStore;
use crate::engine::Observer;
use crate::types::{Event, ExitCode, SCHEMA_VERSION, Stamped};

/// Gives every event to several observers, in order.
pub(super) struct Tee<'a>(pub(super) Vec<&'a mut dyn Observer>);

impl Observer for Tee<'_> {
    fn on_event(&mut self, event: &Stamped) {
        for observer in &mut self.0 {
            observer.on_event(event);
        }
    }
}

/// Keeps the lasting events of a run, for a report that is made of them.
#[derive(Default)]
pub(super) struct Kept(pub(super) Vec<Stamped>);

impl Observer for Kept {
    fn on_event(&mut self, event: &Stamped) {
        if event.event.is_lasting() {
            self.0.push(event.clone());
        }
    }
}

/// Prints events on standard output, one JSON object a line.
pub(super) struct Lines {
    deltas: bool,
    reader: Reader,
    cancel: CancellationToken,
    /// Why lines could not be written.
    pub(super) failure: Option<CliError>,
}

impl Lines {
    /// `cancel` ends the run when nobody reads any more.
    pub(super) fn new(deltas: bool, cancel: CancellationToken) -> Self {
        Self {
            deltas,
            reader: Reader::There,
            cancel,
            failure: None,
        }
    }

    /// Whether the reader has gone away.
    pub(super) fn reader(&self) -> Reader {
        self.reader
    }

    /// The line that ends the events of a command that failed before a run began.
    pub(super) fn end_of_failed(code: ExitCode, error: &str) -> String {
        line(&Stamped {
            time: Timestamp::now(),
            event: Event::RunEnd {
                schema_version: SCHEMA_VERSION,
                run_id: None,
                convergence_reason: None,
                success: false,
                selected: None,
                exit_code: code,
                error: Some(error.to_owned()),
            },
        })
    }
}

impl Observer for Lines {
    fn on_event(&mut self, event: &Stamped) {
        if self.reader == Reader::Gone
            || self.failure.is_some()
            || !(event.event.is_lasting() || self.deltas)
        {
            return;
        }
        match printer::print(&line(event)) {
            Ok(Reader::There) => {}
            Ok(Reader::Gone) => {
                self.reader = Reader::Gone;
                self.cancel.cancel();
            }
            Err(error) => {
                self.failure = Some(error);
                self.cancel.cancel();
            }
        }
    }
}

fn line(event: &Stamped) -> String {
    let mut line = serde_json::to_string(event)
        .unwrap_or_else(|error| format!("{{\"event\":\"error\",\"error\":\"{error}\"}}"));
    line.push('\n');
    line
}

/// Keeps every event in the store, before the run goes on.
pub(super) struct RunLog {
    store: SharedStore,
    run_id: Option<Uuid>,
    seq: u64,
    /// Why the log is incomplete. The run goes on without it: what it has cost so far is worth more.
    pub(super) failure: Option<String>,
}

impl RunLog {
    /// A log that writes to this store.
    pub(super) fn new(store: SharedStore) -> Self {
        Self {
            store,
            run_id: None,
            seq: 0,
            failure: None,
        }
    }
}

impl Observer for RunLog {
    fn on_event(&mut self, stamped: &Stamped) {
        if let Event::RunStart { run_id, .. } = &stamped.event {
            self.run_id = Some(*run_id);
            self.seq = 0;
        }
        let Some(run_id) = self.run_id else {
            return;
        };
        if self.failure.is_some() || !stamped.event.is_lasting() {
            return;
        }
        if let Err(error) = self.store.lock().append(run_id, self.seq, stamped) {
            printer::say(&format!(
                "warning: the run goes on, but is not recorded any more: {error}"
            ));
            self.failure = Some(error.to_string());
        }
        self.seq += 1;
    }
}
