//! The progress display of a run: a view of its events on stderr.

mod incoming;
mod status;
mod tail;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use parking_lot::Mutex;

use self::status::{Status, Waiting};
use super::args::GlobalArgs;
use super::verbose::Verbosity;
use super::{columns, diff, printer, terminal};
use crate::engine::Observer;
use crate::model::CallReport;
use crate::report;
use crate::store::short_id;
use crate::text::counted;
use crate::types::{
    CandidateStep, Choice, Criteria, DeltaKind, Event, Phase, RunRecord, Stamped, Strategy, Version,
};

/// How often the status line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// The progress of a run. On a terminal, a status line with the end of the text being written, replaced by
/// one line per draft. Elsewhere, one line per step.
pub(super) struct Progress {
    record: RunRecord,
    /// The name of the evaluated text, if it is not a draft.
    text: Option<String>,
    live: Option<Live>,
    /// Whether to show the changes of each draft against its base.
    differences: bool,
    /// Whether the caller prints the outcome, below the draft.
    ends_elsewhere: bool,
    /// Who receives the lines instead of stderr.
    receiver: Option<Receiver>,
    quiet: bool,
    verbosity: Verbosity,
}

/// Receives a line, with the run so far.
pub(super) type Receiver = Box<dyn Fn(&RunRecord, &str) + Send>;

/// The terminal drawing, erased when dropped.
#[derive(Default)]
struct Live {
    /// The status line and its content; present only during a step.
    bar: Option<(ProgressBar, Arc<Mutex<Status>>)>,
    /// The criteria that the judge scores.
    judged: Vec<String>,
    /// Whether a model has replied in this run.
    answered: bool,
}

impl Live {
    /// Starts a step.
    fn begin(&mut self, what: String, waiting: Waiting) {
        self.rest();
        let status = Status::new(what, waiting, self.answered, self.judged.clone());
        let status = Arc::new(Mutex::new(status));
        let bar = ProgressBar::with_draw_target(None, terminal::draw_target(15));
        bar.set_style(style(Arc::clone(&status)));
        bar.enable_steady_tick(TICK);
        self.bar = Some((bar, status));
    }

    /// Erases the status line until the next step.
    fn rest(&mut self) {
        if let Some((bar, _)) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Prints something above the status line.
    fn aside(&self, print: impl FnOnce()) {
        match &self.bar {
            Some((bar, _)) => bar.suspend(print),
            None => print(),
        }
    }

    fn change(&self, change: impl FnOnce(&mut Status)) {
        if let Some((_, status)) = &self.bar {
            change(&mut status.lock());
        }
    }

    /// Updates the status line for an event, apart from printing it.
    fn follow(&mut self, event: &Event) {
        match event {
            Event::RunStart { criteria, .. } => self.knows(criteria),
            Event::Call { .. } => self.change(Status::call_ended),
            Event::Retry { .. } => self.change(Status::void),
            // The next event may be a question to the user.
            Event::Evaluation { .. } | Event::Rejected { .. } | Event::Decision { .. } => {
                self.rest();
            }
            _ => {}
        }
    }

    fn knows(&mut self, criteria: &Criteria) {
        let judged = criteria.criteria.iter();
        self.judged = judged
            .filter(|criterion| !criterion.evaluator.is_hard())
            .map(|criterion| criterion.name.clone())
            .collect();
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.rest();
    }
}

impl Progress {
    /// Creates the display: live only if stderr is a terminal, with the verbosity that the user chose.
    pub(super) fn new(global: &GlobalArgs) -> Self {
        let quiet = global.quiet;
        let draws = Term::stderr().is_term() && !quiet && !terminal::is_dumb();
        let live = draws.then(Live::default);
        Self {
            record: RunRecord::default(),
            text: None,
            live,
            differences: false,
            ends_elsewhere: false,
            receiver: None,
            quiet,
            verbosity: Verbosity::of(global),
        }
    }

    /// Sends the lines to this receiver instead of stderr.
    pub(super) fn received_by(self, receiver: Option<Receiver>) -> Self {
        Self {
            live: None,
            quiet: receiver.is_none(),
            receiver,
            ..self
        }
    }

    /// Leaves the outcome to the caller, which prints it below the draft.
    pub(super) fn without_outcome(mut self, wanted: bool) -> Self {
        self.ends_elsewhere = wanted;
        self
    }

    /// Shows the changes of each draft against its base, if wanted.
    pub(super) fn with_differences(mut self, wanted: bool) -> Self {
        self.differences = wanted;
        self
    }

    /// Creates the display for evaluating a text. The verdict is the command's output, so it is not repeated
    /// here.
    pub(super) fn of_text(name: &str, global: &GlobalArgs) -> Self {
        Self {
            text: Some(name.to_owned()),
            ..Self::new(global)
        }
    }

    /// Prints a line that stays. On a terminal it wraps between its parts, or at spaces.
    pub(super) fn line(&self, line: &str) {
        if self.quiet {
            return;
        }
        if let Some(receive) = &self.receiver {
            receive(&self.record, line);
            return;
        }
        let Some(drawn) = &self.live else {
            printer::say(line);
            return;
        };
        let width = usize::from(Term::stderr().size().1).saturating_sub(3);
        let rows: Vec<String> = line
            .split('\n')
            .flat_map(|it| columns::flow(it.split(columns::BETWEEN), width))
            .collect();
        drawn.aside(|| printer::say(&rows.join("\n  ")));
    }

    /// Prints the line for an event.
    fn tell(&self, event: &Event) {
        if let Some(line) = line_of(event) {
            self.line(&line);
        }
    }

    /// Prints something above the status line.
    fn aside(&self, print: impl FnOnce()) {
        match &self.live {
            Some(live) => live.aside(print),
            None => print(),
        }
    }

    /// Prints the changes of a draft against its base.
    fn difference(&self, iteration: u32) {
        let version = self.record.version(iteration);
        let base = version.and_then(|version| self.record.version(version.based_on?));
        if let (Some(base), Some(version), true) = (base, version, self.differences && !self.quiet)
        {
            let text = diff::of_versions(base, version);
            self.aside(|| printer::draw(&text));
        }
    }

    fn begin(&mut self, phase: Phase, iteration: u32) {
        let what = match phase {
            Phase::Outline => format!("draft {iteration}: writing an outline"),
            Phase::Draft => format!("draft {iteration}: writing"),
            Phase::Evaluate => match &self.text {
                Some(name) => format!("{name}: evaluating"),
                None => format!("draft {iteration}: evaluating"),
            },
            Phase::Revise => {
                let base = self.record.best().map_or(1, |best| best.iteration);
                format!("draft {iteration}: revising draft {base}")
            }
            Phase::Tool => format!("draft {iteration}: running a tool"),
            Phase::Reflect => format!("draft {iteration}: reflecting"),
        };
        let waiting = match phase {
            Phase::Tool => Waiting::Nobody,
            Phase::Evaluate => match &self.live {
                Some(live) if live.judged.is_empty() => Waiting::Nobody,
                _ => Waiting::Judge,
            },
            _ => Waiting::Writer,
        };
        self.step(what, waiting);
    }

    /// Shows a candidate for a draft: the start of the first one, and the outcome of each.
    fn candidate(&mut self, iteration: u32, candidate: u32, step: &CandidateStep) {
        match step {
            CandidateStep::Begun { of, difference } => {
                if let Some(live) = self.live.as_ref().filter(|_| candidate == 1) {
                    live.change(|status| status.add(&format!(" ({of} candidates)")));
                }
                self.line(&format!(
                    "draft {iteration}: candidate {candidate} of {of}: {difference}"
                ));
            }
            CandidateStep::Lost { reason, .. } => self.line(&format!(
                "draft {iteration}: candidate {candidate} rejected: {reason}"
            )),
            CandidateStep::Chosen { reason } => self.line(&format!("draft {iteration}: {reason}")),
            CandidateStep::Written { .. } | CandidateStep::Judged { .. } => {}
        }
    }

    /// Prints the result line of an evaluated draft.
    fn judged(&self, iteration: u32) {
        if let Some(version) = self.record.version(iteration) {
            let before = version.based_on.and_then(|base| self.record.version(base));
            let line = report::evaluation_line(version, before.and_then(Version::score));
            self.line(&format!("draft {iteration}: {line}"));
        }
    }

    /// Prints why a draft did not become the best one.
    fn rejected(&self, iteration: u32, incumbent: u32, reason: &str) {
        let name = |number| {
            let score = self.record.version(number).and_then(Version::score);
            let score = score.map_or_else(String::new, |score| format!(" ({score:.2})"));
            format!("draft {number}{score}")
        };
        let (rejected, kept) = (name(iteration), name(incumbent));
        self.line(&format!("{rejected} rejected: {reason}; keeping {kept}"));
    }

    /// Starts a step.
    fn step(&mut self, what: String, waiting: Waiting) {
        match &mut self.live {
            Some(live) => live.begin(what, waiting),
            None => self.line(&what),
        }
    }

    fn retry(&self, message: &str, wait_ms: u64) {
        self.line(&trying_again(message, wait_ms));
    }

    fn piece(&mut self, kind: DeltaKind, text: &str) {
        if let Some(live) = &mut self.live {
            live.answered = true;
            live.change(|status| status.piece(text, kind == DeltaKind::Reasoning));
        }
    }
}

impl Observer for Progress {
    fn on_replayed(&mut self, stamped: &Stamped) {
        self.record.apply(stamped);
        let Some(live) = &mut self.live else { return };
        match &stamped.event {
            Event::RunStart {
                criteria, run_id, ..
            } => {
                live.knows(criteria);
                let what = format!("resuming run {}: replaying its log", short_id(*run_id));
                live.begin(what, Waiting::Nobody);
            }
            Event::Draft { iteration, .. } => live.begin(
                format!("resuming: replaying draft {iteration}"),
                Waiting::Nobody,
            ),
            // The next event may be a question to the user.
            Event::Evaluation { .. } | Event::Decision { .. } | Event::UserDecision { .. } => {
                live.rest();
            }
            _ => {}
        }
    }

    fn on_call(&mut self, stamped: &Stamped, call: &CallReport<'_>) {
        self.on_event(stamped);
        let Event::Call { iteration, .. } = stamped.event else {
            return;
        };
        if let Some(told) = self.verbosity.tell(&format!("draft {iteration}"), call) {
            self.aside(|| printer::say(&told));
        }
    }

    fn on_event(&mut self, stamped: &Stamped) {
        self.record.apply(stamped);
        if let Some(live) = &mut self.live {
            live.follow(&stamped.event);
        }
        match &stamped.event {
            Event::Phase { phase, iteration } => self.begin(*phase, *iteration),
            Event::Delta { kind, text, .. } => self.piece(*kind, text),
            Event::Retry {
                message, wait_ms, ..
            } => self.retry(message, *wait_ms),
            Event::Step {
                iteration,
                step,
                of,
                title,
            } => self.step(
                format!("draft {iteration}: section {step} of {of}: {title}"),
                Waiting::Writer,
            ),
            Event::Draft { iteration, .. } => {
                self.tell(&stamped.event);
                self.difference(*iteration);
            }
            Event::Evaluation { iteration, .. } if self.text.is_none() => self.judged(*iteration),
            Event::Candidate {
                iteration,
                candidate,
                step,
            } => self.candidate(*iteration, *candidate, step),
            Event::RunEnd { .. } => {
                if let Some(live) = &mut self.live {
                    live.rest();
                }
                let is_run = self.record.run_id.is_some() && self.text.is_none();
                if is_run && !self.ends_elsewhere {
                    self.line(&report::summary(&self.record));
                }
            }
            Event::Decision {
                choice: Choice::KeepIncumbent,
                iteration,
                incumbent,
                reason,
                ..
            } => self.rejected(*iteration, *incumbent, reason),
            event => self.tell(event),
        }
    }
}

/// Formats an event that needs just one line; `None` if it is not shown.
fn line_of(event: &Event) -> Option<String> {
    let line = match event {
        Event::Resumed {
            run_id, iteration, ..
        } => format!("resuming run {} at draft {iteration}", short_id(*run_id)),
        Event::Strategy {
            iteration,
            strategy,
            reason,
        } => format!("draft {iteration}: {}: {reason}", strategy.as_str()),
        Event::ToolResult {
            iteration,
            tool,
            end,
            ..
        } => format!("draft {iteration}: the tool `{tool}` {end}"),
        Event::Draft {
            iteration,
            strategy: Some(Strategy::TargetedEdit),
            edits: Some(edits),
            ..
        } => format!("draft {iteration}: {}", edits.describe()),
        Event::Rejected {
            iteration, reason, ..
        } => format!("draft {iteration}: reply rejected: {reason}"),
        Event::Decision {
            choice: Choice::ChangeApproach | Choice::Reflect,
            reason,
            ..
        } => reason.clone(),
        Event::Decision {
            choice: Choice::Compare,
            iteration,
            reason,
            ..
        } => format!("draft {iteration}: {reason}"),
        Event::Cleaned {
            iteration, what, ..
        } => format!("draft {iteration}: removed {what}"),
        Event::Evidence { evidence, .. } => {
            format!("evidence: {} found", counted(evidence.len(), "piece"))
        }
        Event::UserDecision { decision, .. } => decision.describe(),
        Event::Warning { message } => format!("warning: {message}"),
        _ => return None,
    };
    Some(line)
}

/// Creates the style of the status line, which adapts to the terminal width at each tick.
fn style(status: Arc<Mutex<Status>>) -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {status}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ")
        .with_key(
            "status",
            move |_: &ProgressState, out: &mut dyn fmt::Write| {
                let status = status.lock();
                // Minus the spinner, a space, and the last column, which stays free.
                let width = usize::from(Term::stderr().size().1).saturating_sub(3);
                let (line, tail) = status.rows(width, Instant::now());
                let dim = |row| console::style(row).for_stderr().dim().to_string();
                let rows = line.into_iter().chain(tail.into_iter().map(dim));
                // A failed write cannot be reported.
                let _ = out.write_str(&rows.collect::<Vec<_>>().join("\n  "));
            },
        )
}

/// Describes a failed call that is retried.
pub(super) fn trying_again(message: &str, wait_ms: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a wait is at most a minute")]
    let wait = report::duration(wait_ms as f64 / 1000.0);
    format!("{message}; retrying in {wait}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_line_is_erased_after_a_rejected_reply() {
        let mut live = Live::default();
        live.begin("draft 2: revising draft 1".to_owned(), Waiting::Writer);
        live.follow(&Event::Rejected {
            iteration: 2,
            reason: "the model refused".to_owned(),
            text: String::new(),
            stopped_early: false,
        });
        assert!(live.bar.is_none());
    }
}
