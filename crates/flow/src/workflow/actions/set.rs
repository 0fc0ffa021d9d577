//! `state.set`: sets names of the state to what its parameters say.

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::{Action, Call, Kind};
use crate::source::SourceError;
use crate::workflow::failure::Failure;
use crate::workflow::part::Part;
use crate::workflow::template;
use crate::workflow::world::Scene;

pub(super) const KIND: Kind = Kind {
    name: "state.set",
    aliases: &[],
    // Whatever names the user likes.
    keys: &[],
    read: |call| Ok(Box::new(Set::read(call)?)),
};

struct Set(IndexMap<String, Part>);

impl Set {
    fn read(call: &Call) -> Result<Self, SourceError> {
        if call.params.is_empty() {
            return Err(call
                .owner
                .error("`state.set` sets nothing")
                .help("for example: with: {title: \"{{ state.topic | upper }}\"}"));
        }
        call.params.values().try_for_each(template::check)?;
        Ok(Self(call.params.clone()))
    }
}

#[async_trait(?Send)]
impl Action for Set {
    async fn run(&self, scene: &Scene<'_>) -> Result<Value, Failure> {
        let mut set = Map::new();
        for (key, part) in &self.0 {
            set.insert(key.clone(), template::fill_part(part, scene.names)?);
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
