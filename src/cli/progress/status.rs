//! The status line: the current step, its duration, what has arrived so far, and how fast.

use std::time::{Duration, Instant};

use super::incoming::Incoming;
use super::tail::Tail;
use crate::cli::{columns, printer};
use crate::text::counted;

/// After this time without a token, the status mentions that the model may be loading.
const LOADING: Duration = Duration::from_secs(4);

/// Below this duration, the speed is not measurable.
const MEASURABLE: Duration = Duration::from_secs(1);

/// The usual estimate of about four characters per token.
const CHARACTERS_PER_TOKEN: f64 = 4.0;

/// What a step waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// The writer.
    Writer,
    /// The judge. Its verdict is JSON, so the text is not shown.
    Judge,
    /// No model.
    Nobody,
}

/// The current step.
#[derive(Debug)]
pub(super) struct Status {
    what: String,
    began: Instant,
    waiting: Waiting,
    /// Whether a model has replied in this run.
    answered: bool,
    /// When the reply started, and its characters so far.
    answer: Option<(Instant, usize)>,
    reasoning: bool,
    tail: Tail,
    verdict: Incoming,
}

impl Status {
    /// Starts a step. `criteria` are those that the judge scores.
    pub(super) fn new(
        what: String,
        waiting: Waiting,
        answered: bool,
        criteria: Vec<String>,
    ) -> Self {
        // Names of files and criteria may contain control characters.
        let clean = |name: String| printer::without_controls(&name).into_owned();
        let criteria = criteria.into_iter().map(clean).collect();
        Self {
            what: clean(what),
            began: Instant::now(),
            waiting,
            answered,
            answer: None,
            reasoning: false,
            tail: Tail::default(),
            verdict: Incoming::on(criteria),
        }
    }

    /// Appends to the description of the step.
    pub(super) fn add(&mut self, more: &str) {
        self.what.push_str(more);
    }

    /// Adds a piece of a reply.
    pub(super) fn piece(&mut self, text: &str, reasoning: bool) {
        self.answered = true;
        if self.reasoning != reasoning {
            // The preview shows only the draft, not the end of the reasoning.
            self.tail = Tail::default();
        }
        self.reasoning = reasoning;
        let (_, characters) = self.answer.get_or_insert((Instant::now(), 0));
        *characters += text.chars().count();
        self.tail.push(text);
        if self.waiting == Waiting::Judge && !reasoning {
            self.verdict.push(text);
        }
    }

    /// Ends a reply. The judge may be called again.
    pub(super) fn call_ended(&mut self) {
        self.void();
        if self.waiting == Waiting::Writer {
            self.waiting = Waiting::Nobody;
        }
    }

    /// Discards the reply so far.
    pub(super) fn void(&mut self) {
        self.answer = None;
        self.tail = Tail::default();
        self.verdict.clear();
    }

    /// Renders the status line and the end of the text, in rows of at most `width` columns.
    pub(super) fn rows(&self, width: usize, now: Instant) -> (Vec<String>, Vec<&str>) {
        let mut parts = vec![self.what.clone(), whole_seconds(now - self.began)];
        let Some((first, characters)) = self.answer else {
            parts.extend(self.waits(now));
            return (
                columns::flow(parts.iter().map(String::as_str), width),
                Vec::new(),
            );
        };
        // A word count of JSON is meaningless.
        if self.waiting != Waiting::Judge || self.reasoning {
            let reasoning = if self.reasoning { "reasoning, " } else { "" };
            parts.push(format!("{reasoning}{}", counted(self.tail.words(), "word")));
        }
        let took = now - first;
        if took >= MEASURABLE {
            #[expect(clippy::cast_precision_loss, reason = "an answer is not that long")]
            let rate = characters as f64 / CHARACTERS_PER_TOKEN / took.as_secs_f64();
            parts.push(format!("~{rate:.0} tokens/s"));
        }
        if self.waiting == Waiting::Judge {
            for (name, score) in self.verdict.scores() {
                parts.push(match score {
                    Some(score) => format!("{name} {score}"),
                    None => format!("{name} …"),
                });
            }
            return (
                columns::flow(parts.iter().map(String::as_str), width),
                Vec::new(),
            );
        }
        let tail = if self.reasoning {
            Vec::new()
        } else {
            self.tail.rows(width)
        };
        (columns::flow(parts.iter().map(String::as_str), width), tail)
    }

    /// Describes what the step waits for, before the first token.
    fn waits(&self, now: Instant) -> Option<String> {
        let whom = match self.waiting {
            Waiting::Writer => "waiting for the first token",
            Waiting::Judge => "waiting for the judge",
            Waiting::Nobody => return None,
        };
        let long = !self.answered && now - self.began >= LOADING;
        let why = if long {
            "; the model may be loading"
        } else {
            ""
        };
        Some(format!("{whom}{why}…"))
    }
}

/// Formats a time in whole seconds, to avoid flicker.
fn whole_seconds(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use console::measure_text_width;

    use super::*;

    fn status(waiting: Waiting) -> Status {
        let criteria = vec!["clear".to_owned(), "漢字".to_owned()];
        let what = "draft 2: revising draft 1".to_owned();
        Status::new(what, waiting, false, criteria)
    }

    /// Renders the status this many seconds after its start.
    fn shown(status: &Status, width: usize, seconds: u64) -> String {
        let (line, tail) = status.rows(width, status.began + Duration::from_secs(seconds));
        for row in line.iter().map(String::as_str).chain(tail.iter().copied()) {
            assert!(measure_text_width(row) <= width, "{row}");
        }
        line.join("\n") + "\n" + &tail.join("\n")
    }

    #[test]
    fn the_status_names_what_it_waits_for() {
        let mut status = status(Waiting::Writer);
        assert_eq!(
            shown(&status, 78, 3),
            "draft 2: revising draft 1 · 3 s · waiting for the first token…\n"
        );
        assert_eq!(
            shown(&status, 40, 65),
            "draft 2: revising draft 1 · 1 min 05 s\nwaiting for the first token; the model\nmay be loading…\n"
        );
        status.answered = true;
        assert!(!shown(&status, 78, 65).contains("loading"));
        assert_eq!(
            shown(&self::status(Waiting::Nobody), 78, 0),
            "draft 2: revising draft 1 · 0 s\n"
        );
    }

    #[test]
    fn a_draft_is_shown_while_it_arrives() {
        let mut status = status(Waiting::Writer);
        status.piece("Hm.", true);
        assert_eq!(
            shown(&status, 78, 0),
            "draft 2: revising draft 1 · 0 s · reasoning, 1 word\n"
        );
        status.piece("Once upon a time", false);
        assert_eq!(
            shown(&status, 78, 0),
            "draft 2: revising draft 1 · 0 s · 4 words\nOnce upon a time"
        );
        status.void();
        assert!(shown(&status, 78, 0).contains("waiting"));
        status.piece(&"漢字 word ".repeat(20), false);
        let seen = shown(&status, 40, 10);
        assert!(
            seen.starts_with("draft 2: revising draft 1 · 10 s\n40 words · ~4"),
            "{seen}"
        );
        assert_eq!(seen.lines().count(), 6, "{seen}");
        status.call_ended();
        assert_eq!(shown(&status, 78, 0), "draft 2: revising draft 1 · 0 s\n");
    }

    #[test]
    fn criteria_are_shown_as_they_arrive() {
        let mut status = status(Waiting::Judge);
        assert!(shown(&status, 78, 1).ends_with("waiting for the judge…\n"));
        status.piece(
            "{\"scores\": {\"clear\": {\"score\": 4}, \"漢字\": {\"rea",
            false,
        );
        let seen = shown(&status, 78, 0);
        assert!(seen.contains("clear 4 · 漢字 …"), "{seen}");
        shown(&status, 20, 0);
        status.call_ended();
        assert!(shown(&status, 78, 1).ends_with("waiting for the judge…\n"));
    }
}
