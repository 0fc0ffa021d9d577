use super::{DraftContext, NotADraft, Removed, raw_words, words};
use crate::engine::similarity::similarity;
use crate::model::{Message, Role};
use crate::prompt::PromptRuns;

/// A prompt of fewer words may well be the text it asks for.
const FEWEST_WORDS: usize = 5;
/// A text that is so alike to the prompt is the prompt.
const SAME: f64 = 0.95;
/// So many words at either end must be the prompt's own: a task with a text to be corrected has the text, too.
const ENDS: usize = 3;
/// A text of which so much is the critique's words is the critique.
const CRITIQUE: f64 = 0.6;

/// The tags that our own prompts put around material.
const TAGS: &[&str] = &["draft", "revised_draft", "revised_text", "revision"];
/// Those that no draft has a reason to have.
const OURS: &[&str] = &[
    "<task>",
    "<criteria>",
    "<feedback>",
    "<context>",
    "<evidence>",
];
/// The line over the task in our prompts, and the form in which small models repeat it.
const LABELS: &[&str] = &["the task was:", "the task is:"];
/// How the last instruction of every prompt for a text begins.
const LAST_INSTRUCTION: &str = "reply with only the";
/// Blocks of our prompts that are about the text; all others are material, which a text may quote.
const FRAME: &[&str] = &["<criteria", "<feedback"];
/// A text of which so much is the frame's is made of it.
const OF_FRAME: f64 = 0.6;

/// Removes a tag around everything, as in our prompts.
pub(super) fn unwrap_tag<'a>(text: &'a str, removed: &mut Vec<Removed>) -> &'a str {
    for tag in TAGS {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        let inner = text
            .strip_prefix(&open)
            .and_then(|rest| rest.strip_suffix(&close))
            .filter(|inner| !inner.contains(&open) && !inner.trim().is_empty());
        if let Some(inner) = inner {
            removed.push(Removed {
                what: "a tag around the whole",
                text: open,
            });
            return inner.trim();
        }
    }
    text
}

/// Removes our last instruction where the reply begins or ends with it.
pub(super) fn without_instruction<'a>(
    text: &'a str,
    context: &DraftContext<'_>,
    removed: &mut Vec<Removed>,
) -> &'a str {
    if context.prompt_has(&[LAST_INSTRUCTION]) {
        return text;
    }
    let mut rest = text;
    loop {
        let (first, after) = rest.split_once('\n').unwrap_or(("", rest));
        let (before, last) = rest.rsplit_once('\n').unwrap_or((rest, ""));
        let (line, left) = if is_instruction(first) {
            (first, after)
        } else if is_instruction(last) {
            (last, before)
        } else {
            return rest;
        };
        removed.push(Removed {
            what: "an instruction of the prompt",
            text: line.trim().to_owned(),
        });
        rest = left.trim();
    }
}

fn is_instruction(line: &str) -> bool {
    let line = line.trim_start_matches(|c: char| !c.is_alphanumeric());
    line.get(..LAST_INSTRUCTION.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(LAST_INSTRUCTION))
}

/// Whether a text begins with a tag that may stand around everything.
pub(super) fn begins_with_tag(text: &str) -> bool {
    let rest = text.strip_prefix('<').unwrap_or_default();
    TAGS.iter().any(|tag| {
        rest.strip_prefix(tag)
            .is_some_and(|rest| rest.starts_with('>'))
    })
}

/// Whether the reply is made of the frame around the task: our instructions, the criteria, the feedback.
pub(in crate::engine) fn check_frame(
    reply: &str,
    asked: &[Message],
    context: &DraftContext<'_>,
) -> Result<(), NotADraft> {
    let sent = asked.iter().filter(|it| it.role != Role::Assistant);
    let frame = sent.map(|it| frame_of(&it.content.replace(context.prompt, " ")));
    let frame: Vec<String> = frame.flat_map(|text| words(&text)).collect();
    if PromptRuns::new([frame]).share_of(&words(reply)) < OF_FRAME {
        return Ok(());
    }
    Err(NotADraft::new(
        "the reply repeats the instructions instead of following them",
        "The last reply repeated the instructions. Write the text that the task asks for.",
    ))
}

/// A prompt without the material in it.
fn frame_of(prompt: &str) -> String {
    let mut frame = String::new();
    let mut inside: Option<&str> = None;
    for line in prompt.lines() {
        let name = line.split(['>', ' ']).next().unwrap_or_default();
        match inside {
            Some(name)
                if line
                    .strip_prefix("</")
                    .is_some_and(|it| it.starts_with(&name[1..])) =>
            {
                inside = None;
            }
            Some(_) => {}
            None if name.len() > 1
                && name.starts_with('<')
                && !name.starts_with("</")
                && !FRAME.iter().any(|kept| name.starts_with(kept)) =>
            {
                inside = Some(name).filter(|name| prompt.contains(&format!("\n</{}", &name[1..])));
            }
            None => {
                frame.push_str(line);
                frame.push('\n');
            }
        }
    }
    frame
}

/// Whether the text repeats the model's input: the prompt, the layout of our prompts, or the critique.
pub(super) fn check(text: &str, context: &DraftContext<'_>) -> Result<(), NotADraft> {
    let ours = OURS.iter().find(|tag| {
        text.lines()
            .any(|line| line.trim_start().starts_with(**tag))
            && !context.prompt.contains(**tag)
            && !context.base_has(tag)
    });
    if let Some(tag) = ours {
        return Err(NotADraft::new(
            format!("the reply repeats what the model was told, with the tag {tag}"),
            "The last reply repeated the material. Write the text itself.",
        ));
    }
    if text.lines().any(is_instruction)
        && !context.prompt_has(&[LAST_INSTRUCTION])
        && !context
            .base
            .is_some_and(|base| base.lines().any(is_instruction))
    {
        return Err(NotADraft::new(
            "the reply repeats the instructions instead of following them",
            "The last reply repeated the instructions. Write the text that the task asks for.",
        ));
    }
    let label = LABELS.iter().find(|label| {
        text.lines()
            .any(|line| line.trim().eq_ignore_ascii_case(label))
            && ![Some(context.prompt), context.base]
                .into_iter()
                .flatten()
                .any(|known| known.to_lowercase().contains(**label))
    });
    if label.is_some() || is_prompt(text, context.prompt) {
        return Err(NotADraft::new(
            "the reply is the prompt again",
            "The last reply repeated the task. Write the text that the task asks for.",
        ));
    }
    if is_critique(text, context) {
        return Err(NotADraft::new(
            "the reply is the critique again",
            "The last reply repeated the feedback. Write the revised text itself.",
        ));
    }
    Ok(())
}

fn is_prompt(text: &str, prompt: &str) -> bool {
    let prompt_words = words(prompt);
    let told = prompt_words.len();
    // Nearly every draft differs in its first words, and there is nothing more to do.
    let begins = raw_words(text)
        .map(str::to_lowercase)
        .take(ENDS)
        .eq(prompt_words.iter().take(ENDS).cloned());
    if told < FEWEST_WORDS || !begins {
        return false;
    }
    let text_words = words(text);
    let written = text_words.len();
    text_words[..ENDS] == prompt_words[..ENDS]
        && text_words[written - ENDS..] == prompt_words[told - ENDS..]
        && (text_words == prompt_words || similarity(text, prompt) >= SAME)
}

/// The words of a text in lower case, with one blank between them, and how many they are.
fn only_words(text: &str) -> (String, usize) {
    let lower = text.to_lowercase();
    let mut only = String::with_capacity(lower.len());
    let mut count = 0;
    for word in raw_words(&lower) {
        if count > 0 {
            only.push(' ');
        }
        only.push_str(word);
        count += 1;
    }
    (only, count)
}

/// Whether the text is a verdict in JSON, or most of its words are those of the issues.
fn is_critique(text: &str, context: &DraftContext<'_>) -> bool {
    if text.starts_with('{')
        && !context.prompt_has(&["json", "review", "critique"])
        && let Ok(serde_json::Value::Object(object)) = serde_json::from_str(text)
        && object.contains_key("scores")
        && (object.contains_key("to_fix") || object.contains_key("issues"))
    {
        return true;
    }
    // A fix may be the very words to write, so a short one says nothing.
    let parts: Vec<(String, usize)> = context
        .issues
        .iter()
        .flat_map(|issue| [Some(&issue.description), issue.suggested_fix.as_ref()])
        .flatten()
        .map(|part| only_words(part))
        .filter(|(_, count)| *count >= FEWEST_WORDS)
        .collect();
    if parts.is_empty() {
        return false;
    }
    let (mut rest, all) = only_words(text);
    let mut told = 0;
    for (part, count) in parts {
        if let Some(at) = rest.find(&part) {
            told += count;
            rest.replace_range(at..at + part.len(), "");
        }
    }
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
    let share = told as f64 / all.max(1) as f64;
    let said_before = context
        .issues
        .iter()
        .any(|issue| context.base_has(&issue.description));
    share >= CRITIQUE && !said_before
}
