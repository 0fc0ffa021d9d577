use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::script_verdict;
use super::{Finding, HardCheck, Subject, Tools};
use crate::sandbox::{Language, Limits, ScriptPool, ScriptRequest};
use crate::text::clip;
use crate::types::{Criteria, ScriptConfig, ScriptLanguage, Status};

/// The maximum number of characters shown of a script's printed output.
const MAX_PRINTS: usize = 500;

/// Returns the interpreter for a language.
pub fn interpreter(language: ScriptLanguage) -> Language {
    match language {
        ScriptLanguage::Lua => Language::Lua,
        ScriptLanguage::Python => Language::Python,
        ScriptLanguage::Prolog => Language::Prolog,
    }
}

/// The `script` evaluator: code in Lua, Python or Prolog returns the verdict.
pub(super) struct ScriptCheck {
    pool: Arc<ScriptPool>,
    language: Language,
    limits: Limits,
    code: String,
    /// The floor of its criterion.
    floor: f64,
    /// The criteria as the script receives them.
    criteria: Value,
}

impl ScriptCheck {
    /// # Errors
    /// If no script worker is available, or the user's permission is required and missing.
    pub(super) fn new(
        config: &ScriptConfig,
        floor: f64,
        criteria: &Criteria,
        tools: &Tools,
    ) -> Result<Self, String> {
        let language = interpreter(config.language);
        if language != Language::Lua {
            tools.exec()?;
        }
        let criteria = criteria.criteria.iter().map(|criterion| {
            json!({
                "name": criterion.name,
                "description": criterion.description,
                "weight": criterion.weight,
                "threshold": criterion.threshold,
                "evaluator": criterion.evaluator.kind(),
            })
        });
        Ok(Self {
            pool: tools.scripts()?,
            language,
            limits: Limits {
                time: config.timeout.get(),
                memory: config.memory.bytes(),
                ..Limits::SCRIPT
            },
            code: config.code.clone(),
            floor,
            criteria: criteria.collect(),
        })
    }

    /// Returns the state that the script receives: the loop's values under plain names, and under
    /// the older names (`reflection_…`) that existing scripts use.
    fn state(&self, subject: &Subject<'_>) -> Map<String, Value> {
        let progress = &subject.progress;
        let data = json_of(subject.draft);
        let history: Vec<Value> = progress
            .earlier
            .iter()
            .map(|earlier| {
                json!({
                    "iteration": earlier.iteration,
                    "output": earlier.output,
                    "score": earlier.score,
                    "valid": earlier.satisfactory,
                    "errors": earlier.errors(),
                })
            })
            .collect();
        let errors = progress
            .earlier
            .last()
            .map_or(json!([]), super::subject::Earlier::errors);
        let mut state = Map::new();
        let mut set = |key: &str, value: Value| state.insert(key.to_owned(), value);
        set("iteration", json!(progress.iteration));
        set("prompt", json!(progress.task.prompt));
        set("criteria", self.criteria.clone());
        set("data", data.clone().unwrap_or(Value::Null));
        set("history", json!(history));
        set("errors", errors.clone());
        set("reflection_iteration", json!(progress.iteration));
        set(
            "reflection_output",
            data.unwrap_or_else(|| json!(subject.draft)),
        );
        set("reflection_errors", errors);
        set("reflection_history", json!(history));
        let mut best: Option<(&str, f64)> = None;
        for earlier in progress.earlier {
            if let Some(score) = earlier.score
                && best.is_none_or(|(_, highest)| score > highest)
            {
                best = Some((&earlier.output, score));
            }
        }
        set("reflection_best", json!(best.map(|(output, _)| output)));
        set("reflection_best_score", json!(best.map(|(_, score)| score)));
        state
    }
}

/// Returns the draft's value if all of it is JSON, bare or within one fence.
fn json_of(draft: &str) -> Option<Value> {
    let text = draft.trim();
    let inner = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .filter(|(language, _)| matches!(language.trim(), "" | "json" | "JSON"))
        .map_or(text, |(_, inner)| inner);
    serde_json::from_str(inner).ok()
}

#[async_trait]
impl HardCheck for ScriptCheck {
    async fn check(&self, subject: &Subject<'_>) -> Finding {
        let request = ScriptRequest {
            code: self.code.clone(),
            output: json!(subject.draft),
            state: self.state(subject),
            bare_names: false,
        };
        let outcome = match self
            .pool
            .evaluate(self.language, &request, &self.limits)
            .await
        {
            Ok(outcome) => outcome,
            Err(error) => {
                let mut reason = error.to_string();
                printed(&mut reason, &error.prints);
                return Finding::none(Status::Failed, reason);
            }
        };
        match script_verdict::read(&outcome.value, self.floor) {
            Ok(mut finding) => {
                printed(&mut finding.evidence, &outcome.prints);
                finding
            }
            Err(problem) => {
                let mut reason = format!("the {} script gave no verdict: {problem}", self.language);
                printed(&mut reason, &outcome.prints);
                Finding::none(Status::Failed, reason)
            }
        }
    }
}

/// Appends what the script printed.
fn printed(evidence: &mut String, prints: &str) {
    let prints = prints.trim();
    if !prints.is_empty() {
        evidence.push_str("; it printed: ");
        evidence.push_str(&clip(prints, MAX_PRINTS));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_json_where_the_whole_of_it_is() {
        assert_eq!(json_of(" {\"a\": 1}\n"), Some(json!({ "a": 1 })));
        assert_eq!(json_of("```json\n[1]\n```\n"), Some(json!([1])));
        assert_eq!(json_of("```\n[1]\n```"), Some(json!([1])));
        assert_eq!(json_of("Here: {\"a\": 1}"), None);
        assert_eq!(json_of("```rust\n1\n```"), None);
        assert_eq!(json_of("```"), None);
        assert_eq!(json_of(""), None);
    }
}
