use super::Kind;
use crate::source;
use crate::types::{Evaluator, LlmConfig};

pub(super) const KIND: Kind = Kind {
    name: "llm",
    keys: source::fields::<LlmConfig>,
    schema: source::schema_of::<LlmConfig>,
    read: |source, table| source::table_into(source, table).map(Evaluator::Llm),
};
