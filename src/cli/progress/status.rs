//! The status line: what is being done, for how long, what has come in so far, and how fast.

use std::time::{Duration, Instant};

use super::incoming::Incoming;
use super::tail::Tail;
use crate::cli::{columns, printer};
use crate::text::counted;

/// After how long without a word it is said that a model may have to be loaded.
const LOADING: Duration = Duration::from_secs(4);

/// Shorter than this, nothing can be said of the speed.
const MEASURABLE: Duration = Duration::from_secs(1);

/// The usual estimate: about four characters make a token.
const CHARACTERS_PER_TOKEN: f64 = 4.0;

/// Who is waited for in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waiting {
    /// A model that writes.
    Writer,
    /// A model that judges: its verdict is JSON, which says nothing to people while it comes in.
    Judge,
    /// No model.
    Nobody,
}

/// What is being done.
#[derive(Debug)]
pub(super) struct Status {
    what: String,
    began: Instant,
    waiting: Waiting,
    /// Whether a model has answered in this run.
    answered: bool,
    /// When the model began to answer, and how many characters have come since.
    answer: Option<(Instant, usize)>,
    reasoning: bool,
    tail: Tail,
    verdict: Incoming,
}

impl Status {
    /// A step begins. `criteria` are those that a judge gives scores.
    pub(super) fn new(
        what: String,
        waiting: Waiting,
        answered: bool,
        criteria: Vec<String>,
    ) -> Self {
        // Names of files and criteria may hold anything.
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

    /// Adds to what is being done.
    pub(super) fn add(&mut self, more: &str) {
        self.what.push_str(more);
    }

    /// A piece of an answer came.
    pub(super) fn piece(&mut self, text: &str, reasoning: bool) {
        self.answered = true;
        if self.reasoning != reasoning {
            // The preview shows the draft, and no end of the reasoning before it.
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

    /// The answer is complete. A judge may be asked something else then.
    pub(super) fn call_ended(&mut self) {
        self.void();
        if self.waiting == Waiting::Writer {
            self.waiting = Waiting::Nobody;
        }
    }

    /// What has come of the answer is void: it begins anew.
    pub(super) fn void(&mut self) {
        self.answer = None;
        self.tail = Tail::default();
        self.verdict.clear();
    }

    /// It as rows of at most so many columns, at a moment: the parts of the line, and the end of what is written.
    pub(super) fn rows(&self, width: usize, now: Instant) -> (Vec<String>, Vec<&str>) {
        let mut parts = vec![self.what.clone(), whole_seconds(now - self.began)];
        let Some((first, characters)) = self.answer else {
            parts.extend(self.waits(now));
            return (
                columns::flow(parts.iter().map(String::as_str), width),
                Vec::new(),
            );
        };
        // Words of JSON say nothing.
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

    /// What is waited for, before anything has come.
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

/// A time in whole seconds, which do not flicker.
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

    /// As it looks so many seconds after its beginning.
    fn shown(status: &Status, width: usize, seconds: u64) -> String {
        let (line, tail) = status.rows(width, status.began + Duration::from_secs(seconds));
        for row in line.iter().map(String::as_str).chain(tail.iter().copied()) {
            assert!(measure_text_width(row) <= width, "{row}");
        }
        line.join("\n") + "\n" + &tail.join("\n")
    }

    #[test]
    fn what_is_waited_for_is_said() {
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
    fn a_draft_is_seen_while_it_comes() {
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
    fn the_criteria_come_in() {
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
