//! The observers of a run apart from the progress display: the run log and the event stream.

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::error::CliError;
use super::kept;
use super::printer::{self, Reader};
use super::store::SharedStore;
use crate::engine::Observer;
use crate::model::{CallReport, Exchange};
use crate::store::{Claim, StoreError, Transcript};
use crate::types::{Event, ExitCode, SCHEMA_VERSION, Stamped};

/// Forwards every event to several observers, in order.
pub(super) struct Tee<'a>(pub(super) Vec<&'a mut dyn Observer>);

impl Observer for Tee<'_> {
    fn on_event(&mut self, event: &Stamped) {
        for observer in &mut self.0 {
            observer.on_event(event);
        }
    }

    fn on_call(&mut self, event: &Stamped, call: &CallReport<'_>) {
        for observer in &mut self.0 {
            observer.on_call(event, call);
        }
    }

    fn on_replayed(&mut self, event: &Stamped) {
        for observer in &mut self.0 {
            observer.on_replayed(event);
        }
    }

    fn on_void(&mut self, places: &[usize]) {
        for observer in &mut self.0 {
            observer.on_void(places);
        }
    }
}

/// Collects the recorded events of a run, for a report.
#[derive(Default)]
pub(super) struct Kept(pub(super) Vec<Stamped>);

impl Observer for Kept {
    fn on_event(&mut self, event: &Stamped) {
        if event.event.is_recorded() {
            self.0.push(event.clone());
        }
    }

    fn on_replayed(&mut self, event: &Stamped) {
        self.on_event(event);
    }
}

/// Prints events on stdout as JSON Lines.
pub(super) struct Lines {
    deltas: bool,
    cancel: CancellationToken,
    /// Whether stdout has a reader, or why writing failed.
    state: Result<Reader, CliError>,
}

impl Lines {
    /// `deltas`: print events that are not recorded, too. `cancel` ends the run when the reader is gone.
    pub(super) fn new(deltas: bool, cancel: CancellationToken) -> Self {
        Self {
            deltas,
            cancel,
            state: Ok(Reader::There),
        }
    }

    /// Prints a line unless an earlier one failed. Ends the run if it fails.
    pub(super) fn print(&mut self, line: &str) {
        if matches!(self.state, Ok(Reader::There)) {
            self.state = printer::print(line);
            if !matches!(self.state, Ok(Reader::There)) {
                self.cancel.cancel();
            }
        }
    }

    /// Returns whether the reader stayed until the end.
    ///
    /// # Errors
    /// If writing a line failed.
    pub(super) fn end(self) -> Result<Reader, CliError> {
        self.state
    }

    /// Returns the final event of a command that failed before its run started.
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
        if event.event.is_recorded() || self.deltas {
            self.print(&line(event));
        }
    }
}

fn line(event: &Stamped) -> String {
    let mut line = serde_json::to_string(event)
        .unwrap_or_else(|error| format!("{{\"event\":\"error\",\"error\":\"{error}\"}}"));
    line.push('\n');
    line
}

/// Writes every event to the store before the run continues, and each call with its messages and reply.
pub(super) struct RunLog {
    store: SharedStore,
    run_id: Option<Uuid>,
    seq: u64,
    /// The messages of the run so far.
    transcript: Transcript,
    /// The numbers of the events that were recorded before the run was resumed.
    recorded: Vec<u64>,
    /// A claim that keeps other processes from resuming the run.
    claim: Option<Claim>,
    /// Why the log is incomplete. The run continues without it, because its results are worth more.
    pub(super) failure: Option<String>,
}

impl RunLog {
    /// Creates a log that writes to this store.
    pub(super) fn new(store: SharedStore) -> Self {
        Self {
            store,
            run_id: None,
            seq: 0,
            transcript: Transcript::default(),
            recorded: Vec::new(),
            claim: None,
            failure: None,
        }
    }

    /// Creates the log of a resumed run, with the numbers of its events and the messages of its calls.
    pub(super) fn resumed(
        store: SharedStore,
        run_id: Uuid,
        claim: Option<Claim>,
        recorded: Vec<u64>,
        transcript: Transcript,
    ) -> Self {
        Self {
            run_id: Some(run_id),
            seq: recorded.last().map_or(0, |last| last + 1),
            transcript,
            recorded,
            claim,
            ..Self::new(store)
        }
    }

    /// Renders the report on the run as an HTML page; `None` if the log is incomplete.
    pub(super) fn page(&self) -> Option<String> {
        let run_id = self.run_id.filter(|_| self.failure.is_none())?;
        kept::page(&self.store.lock(), run_id).ok()
    }

    fn keep(&mut self, stamped: &Stamped, call: Option<&CallReport<'_>>) {
        if let Event::RunStart { run_id, setup, .. } = &stamped.event {
            self.run_id = Some(*run_id);
            self.seq = 0;
            self.transcript = Transcript::default();
            // No other process knows the id yet. If the file system has no locks, the run continues without a
            // claim.
            let resumable = setup.is_some();
            self.claim = resumable
                .then(|| self.store.lock().claim(*run_id).ok().flatten())
                .flatten();
        }
        let Some(run_id) = self.run_id else {
            return;
        };
        if self.failure.is_some() || !stamped.event.is_recorded() {
            return;
        }
        let (store, seq) = (&self.store, self.seq);
        let answered = call.and_then(|call| Exchange::of(call, call.request.messages.clone()));
        let kept = match answered {
            Some(call) => {
                let transcript = &mut self.transcript;
                store
                    .lock()
                    .append_call(run_id, seq, stamped, call, transcript)
            }
            None => store.lock().append(run_id, seq, stamped),
        };
        self.seq += 1;
        self.check(kept);
        if let Event::RunEnd { .. } = &stamped.event {
            self.claim = None;
        }
    }

    fn check(&mut self, kept: Result<(), StoreError>) {
        if let Err(error) = kept {
            printer::say(&format!(
                "warning: the run continues without a record: {error}"
            ));
            self.failure = Some(error.to_string());
        }
    }
}

impl Observer for RunLog {
    fn on_event(&mut self, stamped: &Stamped) {
        self.keep(stamped, None);
    }

    fn on_call(&mut self, stamped: &Stamped, call: &CallReport<'_>) {
        self.keep(stamped, Some(call));
    }

    fn on_void(&mut self, places: &[usize]) {
        let Some(run_id) = self.run_id.filter(|_| self.failure.is_none()) else {
            return;
        };
        let void: Vec<u64> = places
            .iter()
            .filter_map(|place| self.recorded.get(*place).copied())
            .collect();
        let kept = self.store.lock().reopen(run_id, &void);
        self.check(kept);
    }
}
