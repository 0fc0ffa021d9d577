//! `reflection.evaluate`: evaluates data once.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::{Action, ActionCall, ActionKind};
use crate::source::SourceError;
use crate::workflow::evaluator::Evaluator;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::program::Program;
use crate::workflow::template::{self, Names};
use crate::workflow::world::ActionContext;

pub(super) const KIND: ActionKind = ActionKind {
    name: "reflection.evaluate",
    aliases: &["actions.reflection_evaluate"],
    keys: &[
        "data",
        "evaluator",
        "evaluator_type",
        "type",
        "schema",
        "coerce",
        "formats",
        "prompt",
        "model",
        "provider",
        "api_base",
        "examples",
        "run",
        "code",
        "language",
        "command",
        "extension",
        "criteria",
        "score_threshold",
        "threshold",
    ],
    read: |call| Ok(Box::new(Evaluate::read(call)?)),
};

struct Evaluate {
    data: Option<Part>,
    evaluator: Evaluator,
}

impl Evaluate {
    fn read(call: &ActionCall) -> Result<Self, SourceError> {
        let data = call.get("data").cloned();
        data.as_ref().map_or(Ok(()), template::check)?;
        let evaluator = match call.get("evaluator") {
            Some(part) => Evaluator::read(part, &[])?,
            None => Evaluator::read(&call.body, &["action", "uses", "data"])?,
        };
        Ok(Self {
            data,
            evaluator: evaluator.with_settings(&call.settings),
        })
    }
}

/// Returns the data of an action: its own `data`, or else the last draft of a loop.
pub(super) fn data_of(part: Option<&Part>, context: &ActionContext<'_>) -> Result<Value, Failure> {
    if let Some(part) = part {
        return Ok(template::fill_part(part, context.names)?);
    }
    let state = &context.names.state;
    let found = state
        .get("reflection_output")
        .or_else(|| state.get("output"));
    Ok(found.cloned().unwrap_or(Value::Null))
}

#[async_trait(?Send)]
impl Action for Evaluate {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        let data = data_of(self.data.as_ref(), context)?;
        let mut names: Names = context.names.clone();
        names.show_draft(&data);
        let context = ActionContext {
            names: &names,
            ..*context
        };
        let judged = self.evaluator.judge(&data, &context, 0).await?;
        let problem = judged.evaluation.failure().or_else(|| {
            let problem = judged.evaluation.problem();
            problem.map(str::to_owned)
        });
        Ok(json!({
            // Whether there is a verdict, pass or fail.
            "success": problem.is_none(),
            "valid": judged.valid,
            "score": judged.score,
            "errors": judged.errors,
            "suggestions": judged.suggestions,
            "evaluation": judged.to_value(),
            "error": problem,
        }))
    }

    fn programs(&self, list: &mut Vec<Program>) {
        self.evaluator.programs(list);
    }
}
