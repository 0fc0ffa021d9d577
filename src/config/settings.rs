use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    evidence,
    model::{RetryPolicy, Sampling, Think, Timeouts, ollama, openai::StructuredOutput},
    types::{HumanDuration, JudgeSettings, LoopSettings, ReflectorSettings},
};

/// The settings of a file, a profile, the environment or the flags. Every field is optional, because each source sets
/// only some; tables (`loop`, `judge`, `reflector`, `timeouts`) are merged key by key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The profile to use: a name under `[profiles]`. Default: none.
    pub profile: Option<String>,
    /// The model that writes and revises: `provider:model`, `model`, or an alias. Default: the first one found.
    pub model: Option<String>,
    /// The model that judges, in the form of `model`. Default: the model that writes.
    pub judge_model: Option<String>,
    /// The model that takes over writing once drafts stop improving, in the form of `model`. Default: none.
    pub stronger_model: Option<String>,
    /// The provider of models without one: `ollama`, `openai`, `embedded`, a preset, or a name under `[providers]`.
    pub provider: Option<String>,
    /// The server's address, instead of the provider's own.
    pub base_url: Option<String>,
    /// The criteria if the command names none: a path or a name.
    pub criteria: Option<String>,
    /// Directories in which criteria are looked up by name. Default: none.
    pub criteria_path: Option<Vec<PathBuf>>,
    /// The folder with custom prompt templates. Default: the built-in templates.
    pub prompt_dir: Option<PathBuf>,
    /// The number of messages used from the end of a context file. Default: 3.
    pub context_messages: Option<u32>,
    /// The maximum number of tokens of evidence that one search adds to a prompt, estimated at four characters per
    /// token. At least 100; default 2000.
    #[schemars(range(min = 100))]
    pub evidence_tokens: Option<u32>,
    /// Whether prompts include what earlier runs taught; `reflect` measures whether that helps. Default: false.
    pub memory: Option<bool>,
    /// A PEM file with certificates to trust in addition to the system's. Default: none.
    pub ca_file: Option<PathBuf>,
    /// Make requests to this machine only. Default: false.
    pub offline: Option<bool>,
    /// Whether untrusted files (criteria, workflows, project configuration) may choose models of other providers and
    /// download weights. Default: false.
    pub allow_models: Option<bool>,
    /// How many times a failed call is retried. 0 to 100; default 3.
    #[schemars(range(max = 100))]
    pub retries: Option<u32>,
    /// Ollama's context window in tokens. At least 256; default: as large as the run needs.
    #[schemars(range(min = 256))]
    pub num_ctx: Option<u64>,
    /// How long Ollama keeps the model loaded after a call: `15m`, or a number of seconds. Default: Ollama's own.
    pub keep_alive: Option<String>,
    /// How much the model reasons before it answers. Default: auto.
    pub think: Option<Think>,
    /// The sampling temperature: 0 (always the most likely token) to 2. Default: the server's.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Nucleus sampling, above 0 to 1. Default: the server's.
    #[schemars(range(max = 1))]
    pub top_p: Option<f64>,
    /// The sampling seed, which makes runs repeatable if the server supports it. Default: none.
    pub seed: Option<u64>,
    /// The maximum number of tokens of a reply, including reasoning. Default: the server's.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// How verdicts are requested as JSON. Default: auto.
    pub structured_output: Option<StructuredOutputMode>,
    /// How the loop behaves.
    #[serde(rename = "loop")]
    pub loop_settings: LoopSettings,
    /// How the judge is asked.
    pub judge: JudgeSettings,
    /// When tasks and plans count as successful.
    pub reflector: ReflectorSettings,
    /// How long to wait for a server.
    pub timeouts: TimeoutSettings,
    /// Which runs the run log keeps.
    pub history: HistorySettings,
}

/// Which runs the run log keeps. Others are deleted at the start of a run, at most once a day, together with the
/// insights that quote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HistorySettings {
    /// Runs of the last days, this many. At least 1; default: all.
    #[schemars(range(min = 1))]
    pub keep_days: Option<u32>,
    /// The latest runs, this many. At least 1; default: all.
    #[schemars(range(min = 1))]
    pub keep_runs: Option<u32>,
}

/// How long to wait for a server: durations such as `10s`, `2m` or `1h 30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutSettings {
    /// Until the connection is established. Default: 10s.
    pub connect: Option<HumanDuration>,
    /// From the request to the first part of the reply. Default: 10m.
    pub first_token: Option<HumanDuration>,
    /// Between two parts of the reply. Default: 2m.
    pub idle: Option<HumanDuration>,
    /// For a whole call including retries. Default: 30m.
    pub total: Option<HumanDuration>,
}

/// How a server is asked for JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutputMode {
    /// The strongest form that the server supports; `reflect` finds out.
    #[default]
    Auto,
    /// The server enforces the schema.
    JsonSchema,
    /// The server enforces a JSON object.
    JsonObject,
    /// The server enforces nothing; the prompt describes the schema.
    Prompt,
}

impl TimeoutSettings {
    /// The timeouts, with defaults for those that are not set.
    pub fn get(&self) -> Timeouts {
        let default = Timeouts::default();
        let or = |set: Option<HumanDuration>, default| set.map_or(default, HumanDuration::get);
        Timeouts {
            connect: or(self.connect, default.connect),
            first_token: or(self.first_token, default.first_token),
            idle: or(self.idle, default.idle),
            total: or(self.total, default.total),
        }
    }
}

impl StructuredOutputMode {
    /// The requested form; `None` for the strongest one that the server supports.
    pub fn get(self) -> Option<StructuredOutput> {
        match self {
            Self::Auto => None,
            Self::JsonSchema => Some(StructuredOutput::JsonSchema),
            Self::JsonObject => Some(StructuredOutput::JsonObject),
            Self::Prompt => Some(StructuredOutput::Prompt),
        }
    }
}

impl Settings {
    /// The settings that a task may bring to another machine: sampling and the loop. Addresses, files and
    /// trust stay those of that machine.
    #[must_use]
    pub fn of_task(self) -> Self {
        Self {
            profile: None,
            provider: None,
            base_url: None,
            criteria: None,
            criteria_path: None,
            prompt_dir: None,
            ca_file: None,
            memory: None,
            reflector: ReflectorSettings::default(),
            history: HistorySettings::default(),
            ..self
        }
    }

    /// The built-in defaults.
    pub fn defaults() -> Self {
        let timeouts = Timeouts::default();
        let human = |duration| HumanDuration::new(duration);
        Self {
            context_messages: Some(evidence::DEFAULT_MESSAGES),
            evidence_tokens: Some(evidence::DEFAULT_TOKENS),
            memory: Some(false),
            offline: Some(false),
            allow_models: Some(false),
            retries: Some(RetryPolicy::default().max_retries),
            think: Some(Think::Auto),
            structured_output: Some(StructuredOutputMode::Auto),
            loop_settings: LoopSettings::defaults(),
            judge: JudgeSettings::defaults(),
            reflector: ReflectorSettings::defaults(),
            timeouts: TimeoutSettings {
                connect: human(timeouts.connect),
                first_token: human(timeouts.first_token),
                idle: human(timeouts.idle),
                total: human(timeouts.total),
            },
            ..Self::default()
        }
    }

    /// The sampling parameters.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            seed: self.seed,
            max_tokens: self.max_tokens,
        }
    }

    /// Checks ranges. The error is the path of keys and a message.
    pub fn check(&self) -> Result<(), (Vec<&'static str>, String)> {
        if let Err((key, message)) = self.loop_settings.check() {
            return Err((vec!["loop", key], message));
        }
        if let Err((key, message)) = self.judge.check() {
            return Err((vec!["judge", key], message));
        }
        for (key, value) in [
            ("keep_days", self.history.keep_days),
            ("keep_runs", self.history.keep_runs),
        ] {
            if value == Some(0) {
                let message = format!("`history.{key}` must be at least 1");
                return Err((vec!["history", key], message));
            }
        }
        if let Err((key, message)) = self.reflector.check() {
            return Err((vec!["reflector", key], message));
        }
        let wrong =
            |key: &'static str, must: &str| Err((vec![key], format!("`{key}` must be {must}")));
        // Written so that NaN is invalid too.
        if self.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
            return wrong("temperature", "a number from 0 to 2");
        }
        if self.top_p.is_some_and(|p| !(p > 0.0 && p <= 1.0)) {
            return wrong("top_p", "a number above 0 and at most 1");
        }
        if self.retries.is_some_and(|n| n > 100) {
            return wrong("retries", "at most 100");
        }
        if self.num_ctx.is_some_and(|n| n < 256) {
            return wrong("num_ctx", "at least 256 (tokens)");
        }
        if self.evidence_tokens.is_some_and(|n| n < 100) {
            return wrong("evidence_tokens", "at least 100");
        }
        if self.max_tokens == Some(0) {
            return wrong("max_tokens", "at least 1");
        }
        if self
            .keep_alive
            .as_deref()
            .is_some_and(|time| !ollama::is_keep_alive(time))
        {
            return wrong(
                "keep_alive",
                "a duration such as `30s`, `15m` or `1h30m`, a whole number of seconds, or -1 to keep the model loaded",
            );
        }
        if let Some(Err(message)) = self.base_url.as_deref().map(check_url) {
            return wrong("base_url", message);
        }
        let texts = [
            ("profile", &self.profile),
            ("model", &self.model),
            ("judge_model", &self.judge_model),
            ("stronger_model", &self.stronger_model),
            ("provider", &self.provider),
            ("criteria", &self.criteria),
        ];
        for (key, text) in texts {
            if text.as_ref().is_some_and(|t| t.trim().is_empty()) {
                return wrong(key, "a non-empty string");
            }
        }
        Ok(())
    }
}

/// Checks a server's address, in any form that the model crate reads. It must not contain a user or password,
/// because messages show it.
pub(super) fn check_url(url: &str) -> Result<(), &'static str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.trim().is_empty() {
        return Err("a URL such as `http://localhost:8000`");
    }
    if host.contains('@') {
        return Err("without a user or password; use `api_key_env` or `headers` for them");
    }
    Ok(())
}
