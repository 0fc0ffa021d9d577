//! What people see while a run goes on: a view of its events on standard error.

use std::collections::VecDeque;
use std::time::Duration;

use console::{Term, measure_text_width, truncate_str};
use indicatif::{ProgressBar, ProgressStyle};

use super::args::GlobalArgs;
use super::verbose::Verbosity;
use super::{printer, terminal};
use crate::engine::Observer;
use crate::model::CallReport;
use crate::report;
use crate::store::short_id;
use crate::types::{CandidateStep, Choice, DeltaKind, Event, Phase, RunRecord, Stamped, Strategy};

/// How many lines of a draft are shown while it is written.
const TAIL_LINES: usize = 4;

/// The progress of a run. On a terminal a status line with the end of what is being written, replaced by
/// one line for each draft; elsewhere plain lines, one for each step.
pub(super) struct Progress {
    record: RunRecord,
    /// What is judged, if it is not a draft of ours.
    text: Option<String>,
    live: Option<Live>,
    quiet: bool,
    verbosity: Verbosity,
}

/// What is drawn on a terminal.
struct Live {
    bar: ProgressBar,
    /// What the model has written in this step.
    tail: Tail,
    /// Whether the model is reasoning rather than writing.
    reasoning: bool,
}

impl Live {
    /// Something else is being done.
    fn begin(&mut self, what: String) {
        self.tail = Tail::default();
        self.reasoning = false;
        self.bar.reset_elapsed();
        self.bar.set_prefix(what);
        self.bar.set_message(String::new());
    }
}

impl Progress {
    /// A view that draws only where standard error is a terminal, and says as much as the user wants.
    pub(super) fn new(global: &GlobalArgs) -> Self {
        let quiet = global.quiet;
        let live = (Term::stderr().is_term() && !quiet && !is_dumb()).then(|| {
            let bar = ProgressBar::with_draw_target(None, terminal::draw_target(15));
            bar.set_style(style());
            bar.enable_steady_tick(Duration::from_millis(120));
            Live {
                bar,
                tail: Tail::default(),
                reasoning: false,
            }
        });
        Self {
            record: RunRecord::default(),
            text: None,
            live,
            quiet,
            verbosity: Verbosity::of(global),
        }
    }

    /// The same for a text that is only judged; the verdict is the answer and is not said twice.
    pub(super) fn of_text(name: &str, global: &GlobalArgs) -> Self {
        Self {
            text: Some(name.to_owned()),
            ..Self::new(global)
        }
    }

    /// Removes what is drawn, so that something else can be printed.
    pub(super) fn clear(&mut self) {
        if let Some(live) = self.live.take() {
            live.bar.finish_and_clear();
        }
    }

    /// A line that stays.
    pub(super) fn line(&self, line: &str) {
        if self.quiet {
            return;
        }
        if let Some(shown) = &self.live {
            shown.bar.suspend(|| printer::say(line));
        } else {
            printer::say(line);
        }
    }

    fn begin(&mut self, phase: Phase, iteration: u32) {
        let what = match phase {
            Phase::Outline => format!("draft {iteration}: making an outline"),
            Phase::Draft => format!("draft {iteration}: writing"),
            Phase::Evaluate => match &self.text {
                Some(name) => format!("{name}: judging"),
                None => format!("draft {iteration}: judging"),
            },
            Phase::Revise => {
                let base = self.record.best().map_or(1, |best| best.iteration);
                format!("draft {iteration}: revising draft {base}")
            }
            Phase::Tool => format!("draft {iteration}: running a tool"),
            Phase::Reflect => format!("draft {iteration}: reflecting"),
        };
        if let Some(live) = &mut self.live {
            live.begin(what);
        } else {
            self.line(&what);
        }
    }

    /// What is seen of the candidates for a draft: what the first one writes, and what becomes of each.
    fn candidate(&mut self, iteration: u32, candidate: u32, step: &CandidateStep) {
        match step {
            CandidateStep::Begun { of, difference } => {
                if let Some(live) = self.live.as_ref().filter(|_| candidate == 1) {
                    let prefix = live.bar.prefix();
                    live.bar.set_prefix(format!("{prefix} ({of} candidates)"));
                }
                self.line(&format!(
                    "draft {iteration}: candidate {candidate} of {of}: {difference}"
                ));
            }
            CandidateStep::Lost { reason, .. } => self.line(&format!(
                "draft {iteration}: candidate {candidate} came to nothing: {reason}"
            )),
            CandidateStep::Chosen { reason } => self.line(&format!("draft {iteration}: {reason}")),
            CandidateStep::Written { .. } | CandidateStep::Judged { .. } => {}
        }
    }

    /// A part of a phase begins.
    fn step(&mut self, what: String) {
        match &mut self.live {
            Some(live) => live.begin(what),
            None => self.line(&what),
        }
    }

    fn retry(&mut self, message: &str, wait_ms: u64) {
        self.line(&trying_again(message, wait_ms));
        if let Some(live) = &mut self.live {
            live.tail = Tail::default();
            live.bar.set_message(String::new());
        }
    }

    fn piece(&mut self, phase: Phase, kind: DeltaKind, text: &str) {
        let Some(live) = &mut self.live else {
            return;
        };
        live.reasoning = kind == DeltaKind::Reasoning;
        live.tail.push(text);
        let width = usize::from(Term::stderr().size().1).max(20);
        let counted = if live.reasoning { "reasoning, " } else { "" };
        let mut message = format!(" · {counted}{} words", live.tail.words);
        // A verdict is JSON, which says nothing to people while it comes in.
        if phase != Phase::Evaluate && !live.reasoning {
            for line in live.tail.last_lines(width) {
                message.push_str("\n  ");
                message.push_str(&console::style(line).for_stderr().dim().to_string());
            }
        }
        live.bar.set_message(message);
    }
}

impl Progress {
    fn judged(&self, iteration: u32) {
        let Some(version) = self.record.version(iteration) else {
            return;
        };
        let before = version
            .based_on
            .and_then(|base| self.record.version(base))
            .and_then(crate::types::Version::score);
        let line = report::evaluation_line(version, before);
        self.line(&format!("draft {iteration}: {line}"));
    }
}

impl Observer for Progress {
    fn on_replayed(&mut self, stamped: &Stamped) {
        self.record.apply(stamped);
    }

    fn on_call(&mut self, stamped: &Stamped, call: &CallReport<'_>) {
        self.on_event(stamped);
        if let Some(told) = self.verbosity.tell(&stamped.event, call) {
            self.line(&told);
        }
    }

    fn on_event(&mut self, stamped: &Stamped) {
        self.record.apply(stamped);
        match &stamped.event {
            Event::Resumed {
                run_id, iteration, ..
            } => self.line(&format!(
                "resuming run {} at draft {iteration}",
                short_id(*run_id)
            )),
            Event::Phase { phase, iteration } => self.begin(*phase, *iteration),
            Event::Delta {
                phase, kind, text, ..
            } => self.piece(*phase, *kind, text),
            Event::Retry {
                message, wait_ms, ..
            } => self.retry(message, *wait_ms),
            Event::Strategy {
                iteration,
                strategy,
                reason,
            } => self.line(&format!(
                "draft {iteration}: {}: {reason}",
                strategy.as_str()
            )),
            Event::ToolResult {
                iteration,
                tool,
                end,
                ..
            } => self.line(&format!("draft {iteration}: the tool `{tool}` {end}")),
            Event::Step {
                iteration,
                step,
                of,
                title,
            } => self.step(format!(
                "draft {iteration}: section {step} of {of}: {title}"
            )),
            Event::Draft {
                iteration,
                strategy: Some(Strategy::TargetedEdit),
                edits: Some(edits),
                ..
            } => self.line(&format!("draft {iteration}: {}", edits.describe())),
            Event::Rejected {
                iteration, reason, ..
            } => self.line(&format!("draft {iteration}: not a draft: {reason}")),
            Event::Evaluation { iteration, .. } if self.text.is_none() => {
                self.judged(*iteration);
            }
            Event::Decision {
                choice: Choice::KeepIncumbent,
                incumbent,
                reason,
                ..
            } => self.line(&format!("keeping draft {incumbent}: {reason}")),
            Event::Decision {
                choice: Choice::ChangeApproach | Choice::Reflect,
                reason,
                ..
            } => self.line(reason),
            Event::Decision {
                choice: Choice::Compare,
                iteration,
                reason,
                ..
            } => self.line(&format!("draft {iteration}: {reason}")),
            Event::Cleaned {
                iteration, what, ..
            } => self.line(&format!("draft {iteration}: {what} was taken away")),
            Event::Evidence { evidence, .. } => {
                let pieces = match evidence.len() {
                    1 => "1 piece".to_owned(),
                    pieces => format!("{pieces} pieces"),
                };
                self.line(&format!("evidence: {pieces} found"));
            }
            Event::UserDecision { decision, .. } => self.line(&decision.describe()),
            Event::Warning { message } => self.line(&format!("warning: {message}")),
            Event::RunEnd { success, .. } => {
                self.clear();
                if !self.quiet && self.record.run_id.is_some() && self.text.is_none() {
                    let how = if *success { "done" } else { "stopped" };
                    printer::say(&format!("{how}: {}", report::summary(&self.record)));
                }
            }
            Event::Candidate {
                iteration,
                candidate,
                step,
            } => self.candidate(*iteration, *candidate, step),
            Event::RunStart { .. }
            | Event::Evaluation { .. }
            | Event::Call { .. }
            | Event::Draft { .. }
            | Event::Issues { .. }
            | Event::Outline { .. }
            | Event::Reflection(_)
            | Event::Decision { .. } => {}
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {prefix} · {elapsed}{msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
        .tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ ")
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// The end of a text that is being written, however long the text gets.
#[derive(Default)]
struct Tail {
    lines: VecDeque<String>,
    words: usize,
    in_word: bool,
}

/// The most that is kept of a line: a draft may be one line of a megabyte.
const KEPT_CHARS: usize = 600;

impl Tail {
    fn push(&mut self, text: &str) {
        if self.lines.is_empty() {
            self.lines.push_back(String::new());
        }
        for character in text.chars() {
            let space = character.is_whitespace();
            self.words += usize::from(!space && !self.in_word);
            self.in_word = !space;
            if character == '\n' {
                self.lines.push_back(String::new());
                if self.lines.len() > TAIL_LINES + 1 {
                    self.lines.pop_front();
                }
            } else if let Some(line) = self.lines.back_mut()
                && !character.is_control()
            {
                line.push(character);
                if line.len() > 2 * KEPT_CHARS {
                    *line = line.chars().skip(KEPT_CHARS / 2).collect();
                }
            }
        }
    }

    /// The last lines, wrapped to the width of the terminal.
    fn last_lines(&self, width: usize) -> Vec<String> {
        let width = width.saturating_sub(4).max(10);
        let mut rows = Vec::new();
        for line in self.lines.iter().filter(|line| !line.trim().is_empty()) {
            let mut rest = line.as_str();
            while measure_text_width(rest) > width {
                let row = truncate_str(rest, width, "");
                // At a blank if there is one: only a word that is longer than a row is cut.
                let end = match (rest[row.len()..].starts_with(' '), row.rfind(' ')) {
                    (false, Some(blank)) if blank > 0 => blank,
                    _ => row.len(),
                };
                rows.push(rest[..end].to_owned());
                rest = rest[end..].trim_start();
            }
            if !rest.is_empty() {
                rows.push(rest.to_owned());
            }
        }
        let skip = rows.len().saturating_sub(TAIL_LINES);
        rows.split_off(skip)
    }
}

/// That a call failed and is made again.
pub(super) fn trying_again(message: &str, wait_ms: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a wait is at most a minute")]
    let wait = report::duration(wait_ms as f64 / 1000.0);
    format!("{message}; trying again in {wait}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_shows_the_last_lines_wrapped() {
        let mut tail = Tail::default();
        tail.push("one\ntwo\n\nthree is a longer li");
        tail.push("ne than fits");
        assert_eq!(
            tail.last_lines(24),
            ["one", "two", "three is a longer", "line than fits"]
        );
        assert_eq!(tail.words, 9);
        let mut tail = Tail::default();
        tail.push("exactly ten and aworldlongerthanarow 0123456789");
        assert_eq!(
            tail.last_lines(14),
            ["ten and", "aworldlong", "erthanarow", "0123456789"]
        );
    }

    #[test]
    fn the_tail_stays_small_and_takes_wide_characters() {
        let mut tail = Tail::default();
        for _ in 0..10_000 {
            tail.push("漢字 \u{1b}[31m");
        }
        assert!(tail.lines.iter().map(String::len).sum::<usize>() < 10 * KEPT_CHARS);
        for row in tail.last_lines(30) {
            assert!(measure_text_width(&row) <= 30, "{row}");
            assert!(!row.contains('\u{1b}'));
        }
    }
}
