//! Pairwise comparison of two texts.

use std::sync::Arc;

use futures_util::future::try_join;
use serde_json::{Map, Value};

use super::ask::{JudgeRequest, StoredReply};
use super::question::{closed, object, one_of, text};
use super::reply::{any, objects, the_one};
use super::{JudgeModel, runner};
use crate::model::{CallObserver, ModelError, ResponseSchema};
use crate::prompt::Prompts;

/// The text that meets the criteria better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    /// The first text.
    First,
    /// The second text.
    Second,
    /// Neither, or the answer depends on the order of the texts.
    Tie,
}

/// Two texts to choose between.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// The first text.
    pub first: &'a str,
    /// The second text.
    pub second: &'a str,
    /// The name of the criterion that decides, or `None` for all.
    pub criterion: Option<&'a str>,
    /// How often the pair was compared before without a parseable answer. Varies the seed, so that
    /// a deterministic judge does not repeat its reply.
    pub attempt: u32,
}

/// A judge's choice between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The preferred text.
    pub preference: Preference,
    /// The judge's reasons: first with the first text in front, then with the second.
    pub reasons: [String; 2],
    /// Whether both answers came from the cache.
    pub cached: bool,
}

/// Why there is no choice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ComparisonError {
    /// The model failed permanently.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The reply could not be parsed. This does not count as a tie.
    #[error("{0}")]
    Unparsed(String),
}

/// Returns the JSON Schema of a choice. The keys are in alphabetical order, as in a verdict.
pub(super) fn schema() -> Value {
    closed(object([
        ("analysis", text(400)),
        ("better", one_of(&["A", "B", "tie"])),
    ]))
}

/// Asks a judge which of two texts better meets the criteria, or one of them. Asks in both orders
/// concurrently, because many judges prefer the text that comes first; a choice that depends on the
/// order is a tie. If the judge has scored a draft before, the task and the criteria are already in
/// the server's prompt cache.
///
/// # Errors
/// If the model fails, or its answer in one of the orders cannot be parsed.
pub async fn prefer(
    judge: &JudgeModel,
    prompts: &Prompts,
    pair: &Pair<'_>,
    observer: &dyn CallObserver,
) -> Result<Comparison, ComparisonError> {
    let asker = judge.asker(None);
    let schema = Arc::new(ResponseSchema::new("preference", schema()));
    let ask = async |a: &str, b: &str| {
        let enforced = asker.enforces();
        let inquiry = JudgeRequest {
            messages: prompts.compare(a, b, pair.criterion, enforced),
            schema: Arc::clone(&schema),
            enforced,
            cap: runner::cap(1),
            alternatives: None,
            names: Vec::new(),
            sample: 0,
            sampled: false,
        };
        match asker.recall(&inquiry, read, observer) {
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
        (Preferred::A, Preferred::B) => Preference::First,
        (Preferred::B, Preferred::A) => Preference::Second,
        _ => Preference::Tie,
    };
    Ok(Comparison {
        preference,
        reasons: [forth.reason, back.reason],
        cached: forth_cached && back_cached,
    })
}

/// The position of the preferred text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preferred {
    A,
    B,
    Neither,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PairChoice {
    better: Preferred,
    reason: String,
}

/// Parses a choice: the only object in the reply that contains one.
fn read(stored: &StoredReply) -> Result<PairChoice, String> {
    const KEYS: [&str; 5] = ["better", "winner", "preference", "preferred", "choice"];
    let found = objects(&stored.text)?;
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
        "a" => Preferred::A,
        "b" => Preferred::B,
        "tie" | "neither" | "both" | "equal" | "none" => Preferred::Neither,
        _ => {
            return Err(format!(
                "`better` is `{written}`, but only `A`, `B` and `tie` are answers"
            ));
        }
    };
    let reason = ["analysis", "reason", "explanation", "feedback"]
        .iter()
        .find_map(|key| object.get(*key)?.as_str());
    Ok(PairChoice {
        better,
        reason: reason.unwrap_or_default().trim().to_owned(),
    })
}
