use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::price::Prices;

/// What it takes to go on with a run later, besides its task, criteria, settings and models. Never holds a key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Setup {
    /// The folder that the run was started in: relative paths begin there.
    pub directory: PathBuf,
    /// How models are reached and asked, as the configuration's settings. The loop passes it on unread.
    pub settings: Value,
    /// Which prompts we use (`prompt::PROMPT_VERSION`): with others, replies to these are of no use.
    pub prompts: u32,
    /// What the user's own templates say: a hash; `None` where prompts are as built in. Their folder is one of the
    /// settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates_hash: Option<String>,
    /// The programs whose output the writer is shown, as they were typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What the models cost.
    #[serde(default, skip_serializing_if = "Prices::is_empty")]
    pub prices: Prices,
    /// The files and folders that evidence is looked for in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<PathBuf>,
    /// What these held: a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_hash: Option<String>,
}
