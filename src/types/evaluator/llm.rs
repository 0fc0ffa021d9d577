use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of the `llm` evaluator.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmConfig {}
