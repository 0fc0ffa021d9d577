use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What it takes to go on with a run later, besides its task, criteria, settings and models. Never holds a key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Setup {
    /// The folder that the run was started in: relative paths begin there.
    pub directory: PathBuf,
    /// How models are reached and asked, as the configuration's settings. The loop passes it on unread.
    pub settings: Value,
    /// Which prompts we use (`prompt::PROMPT_VERSION`): with others, replies to these are of no use.
    pub prompts: u32,
    /// The files and folders that evidence is looked for in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<PathBuf>,
    /// What these held: a hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence_hash: Option<String>,
}
