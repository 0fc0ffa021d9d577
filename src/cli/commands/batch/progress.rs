//! What people see while a batch goes on: a bar on a terminal, now and then a line elsewhere.

use std::fmt::{self, Write as _};
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use crate::batch::{Now, Row};
use crate::cli::{printer, terminal};
use crate::report;

/// How often a line is written where there is no terminal.
const PAUSE: Duration = Duration::from_secs(10);

/// How many failures are told one by one; all of them are in the rows.
const TOLD: u64 = 20;

pub(in crate::cli::commands) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    /// How many tasks there are, if that is known.
    total: Option<u64>,
    done: u64,
    failed: u64,
    /// How long the tasks took that tell it, in seconds, and how many these are.
    took: (f64, u32),
    stopping: bool,
    begun: Instant,
    said: Instant,
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
            begun: Instant::now(),
            said: Instant::now(),
        }
    }

    /// Does what writes to the terminal, with nothing drawn there meanwhile.
    pub(super) fn beside<T>(&self, write: impl FnOnce() -> T) -> T {
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
            self.tell(row);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.done);
        } else if self.said.elapsed() >= PAUSE {
            self.said = Instant::now();
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
                "no more tasks are begun; finishing {} under way (Ctrl-C again ends them at once)",
                now.under_way
            ));
        }
        self.stopping = now.stopping;
    }

    /// Removes what is drawn.
    pub(in crate::cli::commands) fn end(self) {
        if let Some(bar) = self.bar {
            bar.finish_and_clear();
        }
    }

    fn tell(&self, row: &Row) {
        let Some(error) = row.error.as_deref().filter(|_| self.failed <= TOLD) else {
            return;
        };
        let name = match &row.id {
            Some(id) => format!("task `{id}`"),
            None => format!("line {}", row.line),
        };
        self.say(&format!("{name} {}: {error}", row.status.describe()));
        if self.failed == TOLD {
            self.say("further failures are only in the rows");
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
        let rate = self.done as f64 / self.begun.elapsed().as_secs_f64().max(1e-3);
        let _ = write!(line, " · {}, {} at once", a_second(rate), now.under_way);
        if let Some(left) = self.left(now) {
            let _ = write!(line, " · {left} left");
        }
        line
    }

    /// How long it takes to the end, by how long a task takes and how many are under way: those that began together end
    /// together, so how many have ended says little.
    fn left(&self, now: Now) -> Option<String> {
        let (took, tasks) = self.took;
        let left = self.total?.saturating_sub(self.done);
        if tasks == 0 {
            return None;
        }
        #[expect(
            clippy::cast_precision_loss,
            reason = "there are fewer than 2^53 tasks"
        )]
        let rounds = left as f64 / now.under_way.max(1) as f64;
        let seconds = rounds.max(f64::from(u8::from(left > 0))) * took / f64::from(tasks);
        Some(format!("about {}", report::duration(seconds)))
    }

    fn say(&self, line: &str) {
        if !self.quiet {
            self.beside(|| printer::say(line));
        }
    }
}

fn style(bounded: bool) -> ProgressStyle {
    let template = if bounded {
        "{bar:24} {human_pos}/{human_len} · {rate} · {wide_msg}"
    } else {
        "{spinner} {human_pos} tasks · {rate} · {wide_msg}"
    };
    // A template that cannot be read is a mistake of ours; the bar then looks otherwise.
    let style = ProgressStyle::with_template(template);
    style
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
            // What it is written to is the bar's own.
            let _ = out.write_str(&a_second(state.per_sec()));
        })
}

/// How fast it goes, in tasks a second.
fn a_second(rate: f64) -> String {
    format!("{rate:.1} a second")
}
