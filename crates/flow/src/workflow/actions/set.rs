//! `state.set`: sets names of the state to the values of its parameters.

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{Action, ActionCall, ActionKind};
use crate::source::SourceError;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::template;
use crate::workflow::world::ActionContext;

pub(super) const KIND: ActionKind = ActionKind {
    name: "state.set",
    aliases: &[],
    // Accepts any name.
    keys: &[],
    read: |call| Ok(Box::new(SetState::read(call)?)),
};

struct SetState(IndexMap<String, Part>);

impl SetState {
    fn read(call: &ActionCall) -> Result<Self, SourceError> {
        if call.params.is_empty() {
            return Err(call
                .owner
                .error("`state.set` has no names to set")
                .help("for example: with: {title: \"{{ state.topic | upper }}\"}"));
        }
        call.params.values().try_for_each(template::check)?;
        Ok(Self(call.params.clone()))
    }
}

#[async_trait(?Send)]
impl Action for SetState {
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure> {
        let mut set = Map::new();
        for (key, part) in &self.0 {
            set.insert(key.clone(), template::fill_part(part, context.names)?);
        }
        Ok(Value::Object(set))
    }

    fn answer<'r>(&self, result: &'r Value) -> &'r Value {
        let mut keys = self.0.keys();
        match (keys.next(), keys.next()) {
            (Some(only), None) => &result[only.as_str()],
            _ => result,
        }
    }
}
