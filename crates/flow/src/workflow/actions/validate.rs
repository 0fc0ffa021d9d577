//! `validate.schema`: checks data against a JSON Schema.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::evaluate::data_of;
use super::{Action, ActionCall, ActionKind};
use crate::source::SourceError;
use crate::workflow::evaluator::Evaluator;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::template;
use crate::workflow::world::ActionContext;

pub(super) const KIND: ActionKind = ActionKind {
    name: "validate.schema",
    aliases: &["validation.schema"],
    keys: &["data", "schema", "coerce", "formats"],
    read: |call| Ok(Box::new(Validate::read(call)?)),
};

struct Validate {
    data: Option<Part>,
    evaluator: Evaluator,
}

impl Validate {
    fn read(call: &ActionCall) -> Result<Self, SourceError> {
        if call.get("schema").is_none() {
            let hint = "add the JSON Schema, or the path of its file";
            return Err(call.missing(KIND.name, "schema", hint));
        }
        let data = call.get("data").cloned();
        data.as_ref().map_or(Ok(()), template::check)?;
        Ok(Self {
            data,
            evaluator: Evaluator::read(&call.body, &["action", "uses", "data"])?,
        })
    }
}

#[async_trait(?Send)]
impl Action for Validate {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        let data = data_of(self.data.as_ref(), context)?;
        let judged = self.evaluator.judge(&data, context, 0).await?;
        Ok(json!({
            "valid": judged.valid,
            "errors": judged.errors,
            "suggestions": judged.suggestions,
            "data": judged.value.unwrap_or(data),
        }))
    }
}
