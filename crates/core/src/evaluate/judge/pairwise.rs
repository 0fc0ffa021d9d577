//! Which of two texts is better.

use std::sync::Arc;

use futures_util::future::try_join;
use serde_json::{Map, Value};

use super::ask::{Inquiry, Said};
use super::question::{closed, object, one_of, text};
use super::reply::{any, objects, the_one};
use super::{JudgeModel, bench};
use crate::model::{CallObserver, ModelError, ResponseSchema};
use crate::prompt::Prompts;

/// Which of two texts meets the criteria better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    /// The first.
    First,
    /// The second.
    Second,
    /// Neither, or the judge does not know: asked in the other order, it says something else.
    Tie,
}

/// Two texts to choose between.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// One.
    pub first: &'a str,
    /// The other.
    pub second: &'a str,
    /// The name of the one criterion that decides; `None` if all do.
    pub criterion: Option<&'a str>,
    /// How often it was asked before without a readable answer, so that a repeatable judge does not
    /// repeat itself.
    pub attempt: u32,
}

/// A judge's choice between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Which it prefers.
    pub preference: Preference,
    /// Why, in its words: as asked with the first text in front, then with the second.
    pub reasons: [String; 2],
    /// Whether both answers were remembered.
    pub cached: bool,
}

/// Why there is no choice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComparisonError {
    /// The model failed for good.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What it said could not be read. That is no tie.
    #[error("{0}")]
    Unparsed(String),
}

/// The JSON Schema of a choice; its keys stand in alphabetical order, as those of a verdict do.
pub(super) fn schema() -> Value {
    closed(object([
        ("analysis", text(400)),
        ("better", one_of(&["A", "B", "tie"])),
    ]))
}

/// Asks a judge which of two texts meets the criteria, or one of them, better, in both orders at the same time: many judges
/// prefer the text that stands first (`reflection-anchors.md` §0.6), and a choice that depends on the order is a
/// tie. The task and the criteria are in the server's prompt cache already if the judge has judged before.
///
/// # Errors
/// If the model fails, or its answer cannot be read in one of the orders.
pub async fn prefer(
    judge: &JudgeModel,
    prompts: &Prompts,
    pair: &Pair<'_>,
    observer: &CallObserver<'_>,
) -> Result<Comparison, ComparisonError> {
    let asker = judge.asker(None);
    let schema = Arc::new(ResponseSchema::new("preference", schema()));
    let ask = async |a: &str, b: &str| {
        let enforced = asker.enforces();
        let inquiry = Inquiry {
            messages: prompts.compare(a, b, pair.criterion, enforced),
            schema: Arc::clone(&schema),
            enforced,
            cap: bench::cap(1),
            alternatives: None,
            names: Vec::new(),
            sample: 0,
            sampled: false,
        };
        match asker.recall(&inquiry, read) {
            Some(choice) => Ok((Ok(choice), true)),
            None => asker
                .ask(&inquiry, pair.attempt, read, observer)
                .await
                .map(|choice| (choice, false)),
        }
    };
    let ((forth, forth_cached), (back, back_cached)) =
        try_join(ask(pair.first, pair.second), ask(pair.second, pair.first)).await?;
    let forth = forth.map_err(ComparisonError::Unparsed)?;
    let back = back.map_err(ComparisonError::Unparsed)?;
    let preference = match (forth.better, back.better) {
        (Better::A, Better::B) => Preference::First,
        (Better::B, Better::A) => Preference::Second,
        _ => Preference::Tie,
    };
    Ok(Comparison {
        preference,
        reasons: [forth.reason, back.reason],
        cached: forth_cached && back_cached,
    })
}

/// Which of two texts stands better, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Better {
    A,
    B,
    Neither,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    better: Better,
    reason: String,
}

/// Reads a choice: the one object that has one.
fn read(said: &Said) -> Result<Choice, String> {
    const KEYS: [&str; 5] = ["better", "winner", "preference", "preferred", "choice"];
    let found = objects(&said.text)?;
    let chooses = |object: &&Map<String, Value>| KEYS.iter().any(|key| object.contains_key(*key));
    let object = the_one(found.iter().filter(chooses))?
        .ok_or("it holds no JSON object with the key `better`")?;
    let written = any(object, &KEYS)?
        .and_then(Value::as_str)
        .unwrap_or_default();
    let plain = written.trim().to_lowercase();
    let letter = ["draft-", "draft ", "text "]
        .iter()
        .find_map(|before| plain.strip_prefix(before))
        .unwrap_or(&plain);
    let better = match letter {
        "a" => Better::A,
        "b" => Better::B,
        "tie" | "neither" | "both" | "equal" | "none" => Better::Neither,
        _ => {
            return Err(format!(
                "`better` is `{written}`, but only `A`, `B` and `tie` are answers"
            ));
        }
    };
    let reason = ["analysis", "reason", "explanation", "feedback"]
        .iter()
        .find_map(|key| object.get(*key)?.as_str());
    Ok(Choice {
        better,
        reason: reason.unwrap_or_default().trim().to_owned(),
    })
}
