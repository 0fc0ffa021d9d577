//! Details of each call, for `-v`, `-vv` and `--show-reasoning`.

use std::fmt::Write as _;

use super::args::GlobalArgs;
use super::columns::set_apart;
use super::printer;
use crate::model::{CallEvent, CallReport, EndReason, Purpose};
use crate::report;

/// Which details to show.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verbosity {
    /// Time and tokens of each call.
    figures: bool,
    /// Messages and replies.
    words: bool,
    reasoning: bool,
}

impl Verbosity {
    /// Returns the verbosity that the user chose.
    pub(super) fn of(global: &GlobalArgs) -> Self {
        Self {
            figures: global.verbose > 0,
            words: global.verbose > 1,
            reasoning: global.show_reasoning,
        }
    }

    /// Formats the details of a call of `place`; `None` if there are none. Messages, replies and addresses
    /// contain no keys.
    pub(super) fn tell(self, place: &str, call: &CallReport<'_>) -> Option<String> {
        let mut out = String::new();
        if self.words {
            let _ = writeln!(out, "{place}: {}", asked(call));
            for message in &call.request.messages {
                let _ = writeln!(out, "[{}]", message.role.as_str());
                let _ = writeln!(out, "{}", set_apart(&message.content, "> "));
            }
        }
        if (self.reasoning || self.words) && !call.reply.reasoning.trim().is_empty() {
            let _ = writeln!(out, "[reasoning]");
            let _ = writeln!(out, "{}", set_apart(&call.reply.reasoning, "~ "));
        }
        if self.words {
            let _ = writeln!(out, "[{}]", ended(call));
            let _ = writeln!(out, "{}", set_apart(&call.reply.text, "< "));
        }
        if self.figures {
            let _ = writeln!(out, "{place}: {}", figures(call));
        }
        let told = out.trim_end();
        (!told.is_empty()).then(|| told.to_owned())
    }

    /// Returns an observer that prints the details of calls, if nothing is drawn.
    pub(super) fn observer(self, place: &str) -> impl Fn(CallEvent<'_>) + Send + Sync {
        move |event| {
            if let CallEvent::End(call) = event {
                self.say(place, &call);
            }
        }
    }

    /// Prints the details of a call, if nothing is drawn.
    pub(super) fn say(self, place: &str, call: &CallReport<'_>) {
        if let Some(told) = self.tell(place, call) {
            printer::say(&told);
        }
    }
}

/// Describes the request.
fn asked(call: &CallReport<'_>) -> String {
    let request = call.request;
    let what = match request.purpose {
        Purpose::Write => "to write",
        Purpose::Judge => "to judge",
    };
    let mut out = format!("request to {} {what}", call.model);
    if let Some(address) = &call.address {
        let _ = write!(out, " at {address}");
    }
    let sampling = &request.sampling;
    let settings = [
        sampling.temperature.map(|it| format!("temperature {it}")),
        sampling.top_p.map(|it| format!("top_p {it}")),
        sampling.seed.map(|it| format!("seed {it}")),
        sampling.max_tokens.map(|it| format!("max_tokens {it}")),
        request
            .schema
            .as_ref()
            .map(|it| format!("as JSON (`{}`)", it.name())),
    ];
    for setting in settings.into_iter().flatten() {
        let _ = write!(out, ", {setting}");
    }
    out
}

fn ended(call: &CallReport<'_>) -> String {
    match (call.error, &call.reply.end) {
        (Some(error), _) => format!("failed: {error}"),
        (None, Some(EndReason::Length)) => "reply, truncated".to_owned(),
        (None, Some(EndReason::Repetition)) => {
            "reply, stopped because it repeats itself".to_owned()
        }
        (None, Some(EndReason::Unwanted)) => "reply, stopped early".to_owned(),
        (None, Some(EndReason::Refused(why))) => format!("refused: {why}"),
        (None, Some(EndReason::Stop) | None) => "answer".to_owned(),
    }
}

/// Formats the cost of a call: `ollama:qwen3 took 3.1 s, 120 tokens (100 of them the prompt, 80 of these
/// cached)`.
fn figures(call: &CallReport<'_>) -> String {
    let took = report::duration(call.duration.as_secs_f64());
    let mut out = format!("{} took {took}", call.model);
    if call.reply.attempts > 1 {
        let _ = write!(out, " and {} tries", call.reply.attempts);
    }
    match call.reply.usage.total {
        Some(total) => {
            let _ = write!(out, ", {} tokens", report::thousands(total));
            if let Some(estimated) = call.reply.usage.estimated {
                let _ = write!(out, " ({} estimated)", report::thousands(estimated));
            }
        }
        None => out.push_str(", tokens not reported by the server"),
    }
    if let Some(prompt) = call.reply.usage.prompt {
        let _ = write!(out, " ({} of them the prompt", report::thousands(prompt));
        if let Some(cached) = call.reply.usage.cached {
            let _ = write!(out, ", {} of these cached", report::thousands(cached));
        }
        out.push(')');
    }
    out
}
