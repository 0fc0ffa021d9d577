use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::price::Prices;

/// What is needed to resume a run, in addition to its task, criteria, settings and models. Never contains a key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Setup {
    /// The working directory of the run, for relative paths.
    pub directory: PathBuf,
    /// How to reach and query the models, in the form of configuration settings. The loop does not interpret it.
    pub settings: Value,
    /// The version of the built-in prompts (`prompt::PROMPT_VERSION`). Recorded replies are useless with another
    /// version.
    pub prompts: u32,
    /// The hash of the user's prompt templates; `None` for the built-in ones. `settings` names their folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates_hash: Option<String>,
    /// The tool commands whose output the writer sees, as entered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The prices of the models.
    #[serde(default, skip_serializing_if = "Prices::is_empty")]
    pub prices: Prices,
    /// The files and folders that are searched for evidence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<PathBuf>,
    /// The hash of their content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_hash: Option<String>,
}
