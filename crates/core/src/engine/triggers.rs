//! What is reflected on before the next draft: one function for each trigger. `completion` needs none: every
//! version is judged.

use super::gate;
use crate::model::{EndReason, ErrorClass, Reply};
use crate::types::{LoopSettings, Trigger};

/// Scores are rounded to a millionth; a smaller difference does not count.
const SAME: f64 = 1e-9;
/// The most characters of a reflection that the writer receives: a few sentences were requested.
const MAX_TEXT: usize = 2000;
/// The characters after which a reflection is stopped. Small models do not end; those that loop are detected earlier.
const MAX_SAID: usize = 2 * MAX_TEXT;
/// Replies that say that there is nothing to note.
const NOTHING: [&str; 5] = [
    "nothing",
    "none",
    "there is nothing",
    "nothing to mend",
    "n/a",
];

/// Something that went wrong, and is reflected on before the next text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Setback {
    /// A version's score fell well below that of the best one.
    Drop { best: u32, worse: u32 },
    /// Replies were rejected.
    Failure,
}

impl Setback {
    /// Its trigger.
    pub(super) fn trigger(self) -> Trigger {
        match self {
            Self::Drop { .. } => Trigger::QualityDrop,
            Self::Failure => Trigger::Error,
        }
    }
}

/// `quality_drop`: the score of a version that did not win is more than `threshold` below the best one's; 0 disables
/// it.
pub(super) fn quality_drop(best: f64, score: f64, threshold: f64) -> bool {
    threshold > 0.0 && best - score > threshold + SAME
}

/// `error`: a rejected reply is reflected on once for each version, after as many tries as there are without
/// reflection: the first rejection is reported to the writer without a call.
pub(super) fn error(on: bool, rejections: u32, without: u32, reflected: bool) -> bool {
    on && !reflected && rejections >= without
}

/// `tool_result`, or `error` for a tool that failed: whether a tool's result is reflected on, and why.
pub(super) fn tool_result(tool: &str, failed: bool, settings: &LoopSettings) -> Option<Trigger> {
    if failed && settings.reflect_on_error() {
        return Some(Trigger::Error);
    }
    let named = settings.reflect_on_tools.as_ref();
    let is_named = named.is_none_or(|names| names.iter().any(|name| name == tool));
    is_named.then_some(Trigger::ToolResult)
}

/// Whether a reflection is longer than what will be used.
pub(super) fn is_enough(text: &str) -> bool {
    text.chars().nth(MAX_SAID).is_some()
}

/// What the writer receives of a reflection; nothing if it says that there is nothing to note.
///
/// # Errors
/// Why it is unusable: it is empty, truncated by the token limit, endless, or a refusal.
pub(super) fn usable(reply: &Reply) -> Result<Option<String>, String> {
    // Stopped by us, with enough text.
    if reply.end != Some(EndReason::Unwanted) {
        gate::check_reply(reply).map_err(|why| why.reason)?;
    }
    let text = reply.text.trim();
    let plain = text.trim_matches(|c: char| !c.is_alphanumeric());
    if plain.is_empty() || NOTHING.iter().any(|word| plain.eq_ignore_ascii_case(word)) {
        return Ok(None);
    }
    Ok(Some(shortened(text, MAX_TEXT)))
}

/// Whether a call failed because of its content, so that other calls of the run may succeed. Without a model to ask
/// there is no reflection either.
pub(super) fn is_about_the_prompt(class: ErrorClass) -> bool {
    match class {
        ErrorClass::ContextTooLong
        | ErrorClass::Rejected
        | ErrorClass::CutOff
        | ErrorClass::Protocol => true,
        ErrorClass::Auth
        | ErrorClass::Quota
        | ErrorClass::Rate
        | ErrorClass::NotFound
        | ErrorClass::Unable
        | ErrorClass::Unreachable
        | ErrorClass::Transient => false,
    }
}

/// The beginning of a text, to the end of a word.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else {
        return text.to_owned();
    };
    let head = &text[..end];
    let head = head
        .rfind(char::is_whitespace)
        .map_or(head, |at| &head[..at]);
    format!("{} …", head.trim_end())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    fn reply(text: &str, end: EndReason) -> Reply {
        Reply {
            text: text.to_owned(),
            end: Some(end),
            ..Reply::default()
        }
    }

    #[test]
    fn a_drop_is_a_fall_by_more_than_the_threshold() {
        assert!(quality_drop(0.85, 0.6, 0.1));
        assert!(!quality_drop(0.7, 0.6, 0.1), "by just as much");
        assert!(!quality_drop(0.6, 0.85, 0.1));
        assert!(!quality_drop(1.0, 0.0, 0.0), "off");
        assert!(
            !quality_drop(1.0, 0.0, 1.0),
            "by more than all is impossible"
        );
    }

    #[test]
    fn an_error_is_reflected_on_once_and_only_where_that_is_wanted() {
        assert!(error(true, 2, 2, false));
        assert!(!error(true, 1, 2, false), "the note comes first");
        assert!(!error(true, 3, 2, true), "once");
        assert!(!error(false, 2, 2, false), "off");
    }

    #[test]
    fn a_tool_is_reflected_on_where_it_is_named_or_failed() {
        let settings = |names: Option<&[&str]>, on_error| LoopSettings {
            reflect_on_tools: names.map(|names| names.iter().map(|&it| it.to_owned()).collect()),
            reflect_on_error: Some(on_error),
            ..LoopSettings::default()
        };
        let (named, error) = (Some(Trigger::ToolResult), Some(Trigger::Error));
        for (names, on_error, failed, expected) in [
            (None, false, false, named),
            (None, false, true, named),
            (None, true, true, error),
            (Some(&["wc"][..]), false, false, named),
            (Some(&["cat"]), false, true, None),
            (Some(&[]), false, false, None),
            (Some(&[]), true, true, error),
            (Some(&[]), true, false, None),
        ] {
            let settings = settings(names, on_error);
            assert_eq!(
                tool_result("wc", failed, &settings),
                expected,
                "{settings:?}"
            );
        }
    }

    #[test]
    fn what_is_of_no_use_is_not_used() {
        for text in ["Nothing.", "**None**", "…"] {
            assert_eq!(usable(&reply(text, EndReason::Stop)), Ok(None), "{text:?}");
        }
        for text in ["", " \n"] {
            assert!(usable(&reply(text, EndReason::Stop)).is_err(), "{text:?}");
        }
        for end in [
            EndReason::Length,
            EndReason::Refused("no".to_owned()),
            EndReason::Repetition,
        ] {
            assert!(usable(&reply("Keep the roof.", end)).is_err());
        }
        let kept = usable(&reply(" Nothing was kept.\n", EndReason::Stop));
        assert_eq!(kept, Ok(Some("Nothing was kept.".to_owned())));
    }

    #[test]
    fn a_reflection_without_end_is_read_as_far_as_it_is_used() {
        let long = "Keep the roof, and fix the door. ".repeat(200);
        assert!(is_enough(&long) && !is_enough(&long[..MAX_TEXT]));
        assert!(!is_enough(&"漢".repeat(MAX_TEXT)), "characters, not bytes");
        let kept = usable(&reply(&long, EndReason::Unwanted)).unwrap().unwrap();
        assert!(kept.starts_with("Keep the roof") && kept.len() <= MAX_TEXT + 4);
    }

    #[test]
    fn nobody_reflects_where_nobody_answers() {
        for class in [ErrorClass::Auth, ErrorClass::Quota, ErrorClass::Unreachable] {
            assert!(!is_about_the_prompt(class));
        }
        assert!(is_about_the_prompt(ErrorClass::ContextTooLong));
    }

    proptest! {
        #[test]
        fn a_shortened_text_is_a_beginning(text in "(?s).{0,80}", most in 1_usize..60) {
            let short = shortened(&text, most);
            if text.chars().count() <= most {
                prop_assert_eq!(short, text);
            } else {
                prop_assert!(short.chars().count() <= most + 2);
                prop_assert!(text.starts_with(short.trim_end_matches(" …")));
            }
        }
    }
}
