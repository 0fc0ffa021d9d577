//! The progress of a batch: a bar on a terminal, otherwise a line every few seconds.

use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::batch::{Now, Row};
use crate::cli::{printer, terminal};
use crate::report;

/// How often to print a line without a terminal.
const PAUSE: Duration = Duration::from_secs(10);

/// The maximum number of failures reported one by one. The rows have all of them.
const MAX_REPORTED: u64 = 20;

/// After this many mean task durations, the estimate uses the rate even if few tasks have ended, because the
/// others are queued.
const EARLY: f64 = 8.0;

pub(in crate::cli::commands) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    /// The number of tasks, if known.
    total: Option<u64>,
    done: u64,
    failed: u64,
    /// The total duration, in seconds, of the tasks that report one, and their number.
    took: (f64, u32),
    stopping: bool,
    started: Instant,
    last_line: Instant,
}

impl Progress {
    pub(in crate::cli::commands) fn new(total: Option<u64>, quiet: bool) -> Self {
        let bar = (Term::stderr().is_term() && !quiet && !terminal::is_dumb()).then(|| {
            let bar = ProgressBar::with_draw_target(total, terminal::draw_target(10));
            bar.set_style(style(total.is_some()));
            bar.enable_steady_tick(Duration::from_millis(250));
            bar
        });
        Self {
            bar,
            quiet,
            total,
            done: 0,
            failed: 0,
            took: (0.0, 0),
            stopping: false,
            started: Instant::now(),
            last_line: Instant::now(),
        }
    }

    /// Runs `write` with the bar hidden.
    pub(super) fn with_bar_hidden<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    pub(in crate::cli::commands) fn row(&mut self, row: &Row, now: Now) {
        self.done += 1;
        if let Some(seconds) = row.execution_time {
            self.took = (self.took.0 + seconds, self.took.1 + 1);
        }
        if row.status.is_failure() {
            self.failed += 1;
            self.report_failure(row);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        } else if self.last_line.elapsed() >= PAUSE {
            self.last_line = Instant::now();
            self.say(&self.line(now));
        }
    }

    pub(in crate::cli::commands) fn changed(&mut self, now: Now) {
        if let Some(bar) = &self.bar {
            let failed = match self.failed {
                0 => String::new(),
                failed => format!("{} failed · ", report::thousands(failed)),
            };
            let left = self.left(now);
            let left = left.map_or_else(String::new, |left| format!("{left} left · "));
            bar.set_message(format!("{left}{failed}{} at once", now.under_way));
        }
        if now.stopping && !self.stopping && now.under_way > 0 {
            self.say(&format!(
                "stopping: finishing {} under way (Ctrl-C again ends them at once)",
                now.under_way
            ));
        }
        self.stopping = now.stopping;
    }

    /// Clears the bar.
    pub(in crate::cli::commands) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn report_failure(&self, row: &Row) {
        let Some(error) = row.error.as_deref().filter(|_| self.failed <= MAX_REPORTED) else {
            return;
        };
        let name = match &row.id {
            Some(id) => format!("task `{id}`"),
            None => format!("line {}", row.line),
        };
        self.say(&format!("{name} {}: {error}", row.status.describe()));
        if self.failed == MAX_REPORTED {
            self.say("further failures are reported in the rows only");
        }
    }

    fn line(&self, now: Now) -> String {
        let done = report::thousands(self.done);
        let mut line = match self.total {
            Some(total) => format!("{done} of {} tasks", report::thousands(total)),
            None => format!("{done} tasks"),
        };
        if self.failed > 0 {
            let _ = write!(line, ", {} failed", report::thousands(self.failed));
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "there are fewer than 2^53 tasks"
        )]
        let rate = self.done as f64 / self.started.elapsed().as_secs_f64().max(1e-3);
        let _ = write!(line, " · {}, {} at once", speed(rate), now.under_way);
        if let Some(left) = self.left(now) {
            let _ = write!(line, " · {left} left");
        }
        line
    }

    /// The estimated time left.
    fn left(&self, now: Now) -> Option<String> {
        let left = self.total?.saturating_sub(self.done);
        let (took, tasks) = self.took;
        let elapsed = self.started.elapsed().as_secs_f64();
        let seconds = seconds_left(left, now.under_way, took, tasks, elapsed)?;
        Some(format!("about {}", report::duration(seconds)))
    }

    fn say(&self, line: &str) {
        if !self.quiet {
            self.with_bar_hidden(|| printer::say(line));
        }
    }
}

/// Estimates the seconds until the `left` remaining tasks end, of which `under_way` are running. So far,
/// `tasks` tasks took `took` seconds in total, within `elapsed` seconds.
fn seconds_left(left: u64, under_way: usize, took: f64, tasks: u32, elapsed: f64) -> Option<f64> {
    #[expect(
        clippy::cast_precision_loss,
        reason = "there are fewer than 2^53 tasks"
    )]
    let (left, under_way) = (left as f64, under_way.max(1) as f64);
    let tasks = f64::from(tasks);
    if tasks < 1.0 {
        return None;
    }
    let mean = took / tasks;
    // Tasks that start together end together, so the number of ended tasks says little at first.
    let is_early = tasks < 2.0 * under_way && elapsed < EARLY * mean;
    Some(if is_early {
        (left / under_way).max(left.min(1.0)) * mean
    } else {
        left * elapsed / tasks
    })
}

fn style(bounded: bool) -> ProgressStyle {
    let template = if bounded {
        "{bar:24} {human_pos}/{human_len} · {rate} · {wide_msg}"
    } else {
        "{spinner} {human_pos} tasks · {rate} · {wide_msg}"
    };
    // An invalid template is a bug: fall back to the default bar.
    let style = ProgressStyle::with_template(template);
    style
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // Writing to the bar's buffer does not fail.
            let _ = out.write_str(&speed(state.per_sec()));
        })
}

/// Formats a rate in tasks per second, or per minute if it is low.
fn speed(rate: f64) -> String {
    if rate < 0.1 {
        return format!("{:.1} a minute", rate * 60.0);
    }
    format!("{rate:.1} a second")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_about(seconds: Option<f64>, expected: f64) {
        let seconds = seconds.expect("an estimate");
        assert!(
            (seconds - expected).abs() < 0.5,
            "{seconds} instead of {expected}"
        );
    }

    #[test]
    fn estimates_time_for_parallel_and_queued_tasks() {
        assert_eq!(seconds_left(300, 300, 0.0, 0, 9.0), None);
        // The first of 300 tasks that started together: the others end soon too.
        assert_about(seconds_left(299, 300, 10.0, 1, 10.0), 10.0);
        // Two rounds of ten seconds each are left.
        assert_about(seconds_left(60, 30, 10.0, 1, 10.0), 20.0);
        assert_about(seconds_left(0, 0, 10.0, 1, 10.0), 0.0);
        // A task takes half a second of a worker's time, but it also waits in the worker's queue.
        assert_about(seconds_left(4900, 160, 50.0, 100, 50.0), 2450.0);
        assert_about(seconds_left(4400, 40, 300.0, 600, 10.0), 73.3);
    }
}
