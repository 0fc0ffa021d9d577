//! `reflection.correct`: corrects data once.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::evaluate::data_of;
use super::{Action, ActionCall, ActionKind, ReadAction};
use crate::source::SourceError;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::program::Program;
use crate::workflow::template;
use crate::workflow::world::ActionContext;

pub(super) const KIND: ActionKind = ActionKind {
    name: "reflection.correct",
    aliases: &["actions.reflection_correct"],
    keys: &[
        "data",
        "errors",
        "corrector",
        "corrector_action",
        "run",
        "language",
        "timeout",
        "prompt",
        "system",
        "messages",
        "model",
        "provider",
        "api_base",
        "temperature",
        "max_tokens",
    ],
    read: |call| Ok(Box::new(Correct::read(call)?)),
};

struct Correct {
    data: Option<Part>,
    errors: Option<Part>,
    /// `None` if the file names none. The result then says so.
    corrector: Option<ReadAction>,
}

impl Correct {
    fn read(call: &ActionCall) -> Result<Self, SourceError> {
        let own = |key: &str| call.get(key).cloned();
        let (data, errors) = (own("data"), own("errors"));
        for part in [&data, &errors].into_iter().flatten() {
            template::check(part)?;
        }
        let mut params = call.params.clone();
        params.retain(|key, _| !matches!(key.as_str(), "data" | "errors"));
        let corrector = if let Some(part) = params.shift_remove("corrector") {
            Some(call.inner(&part)?)
        } else if let Some(named) = params.shift_remove("corrector_action") {
            params.insert("action".to_owned(), named);
            Some(super::read(&call.owner, params, &call.settings)?)
        } else if params.is_empty() {
            None
        } else {
            Some(super::read(&call.owner, params, &call.settings)?)
        };
        Ok(Self {
            data,
            errors,
            corrector,
        })
    }
}

#[async_trait(?Send)]
impl Action for Correct {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        let data = data_of(self.data.as_ref(), context)?;
        let known = || context.names.state.get("reflection_errors").cloned();
        let errors = match &self.errors {
            Some(part) => template::fill_part(part, context.names)?,
            None => known().unwrap_or_else(|| json!([])),
        };
        let failed =
            |error: String| json!({ "corrected_output": data, "success": false, "error": error });
        let Some(ReadAction { action, .. }) = &self.corrector else {
            return Ok(failed("No corrector specified".to_owned()));
        };
        let mut names = context.names.clone();
        names.show_draft(&data);
        names.state.set("reflection_errors", errors);
        let context = ActionContext {
            names: &names,
            ..*context
        };
        match action.run(&context).await {
            Ok(result) => Ok(json!({ "corrected_output": action.draft(result), "success": true })),
            Err(failure) if failure.is_final() => Err(failure),
            Err(failure) => Ok(failed(failure.message)),
        }
    }

    fn programs(&self, list: &mut Vec<Program>) {
        if let Some(corrector) = &self.corrector {
            corrector.action.programs(list);
        }
    }
}
