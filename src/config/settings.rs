use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    evidence,
    model::{RetryPolicy, Sampling, Think, Timeouts, ollama, openai::StructuredOutput},
    types::{HumanDuration, JudgeSettings, LoopSettings, ReflectorSettings},
};

/// What can be set by file, profile, environment or flag. Every field is optional, since each of these
/// sets only some; tables (`loop`, `judge`, `reflector`, `timeouts`) are laid over each other key by key.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The profile to use: a name under `[profiles]`. Default: none.
    pub profile: Option<String>,
    /// Writes and revises: `provider:model`, just `model`, or an alias. Default: what is found.
    pub model: Option<String>,
    /// Judges; as `model`. Default: the model that writes.
    pub judge_model: Option<String>,
    /// Takes over from the model that writes where the run makes no progress any more; as `model`. Default:
    /// none.
    pub stronger_model: Option<String>,
    /// The provider of a model that names none: `ollama`, `openai`, `embedded`, a preset, or a name
    /// under `[providers]`.
    pub provider: Option<String>,
    /// The server's address, instead of the provider's own.
    pub base_url: Option<String>,
    /// The criteria where none are asked for: a path or a name.
    pub criteria: Option<String>,
    /// Directories in which criteria are looked up by name. Default: none.
    pub criteria_path: Option<Vec<PathBuf>>,
    /// The folder of the user's own prompt templates. Default: the built-in ones.
    pub prompt_dir: Option<PathBuf>,
    /// How many of the last messages of a context file are used. Default: 3.
    pub context_messages: Option<u32>,
    /// The most tokens of evidence that one search adds to a prompt, at an estimated four characters a
    /// token. At least 100; default 2000.
    #[schemars(range(min = 100))]
    pub evidence_tokens: Option<u32>,
    /// Whether runs are told what is known from earlier ones, which is measured. Default: false.
    pub memory: Option<bool>,
    /// Make no request except to this machine. Default: false.
    pub offline: Option<bool>,
    /// Whether files that may be somebody else's (criteria, workflows, a project's configuration) choose models of
    /// other providers and have weights downloaded. Default: false.
    pub allow_models: Option<bool>,
    /// How many times a failed call is made again. 0 to 100; default 3.
    #[schemars(range(max = 100))]
    pub retries: Option<u32>,
    /// Ollama's context window in tokens. At least 256; default: as large as the run needs.
    #[schemars(range(min = 256))]
    pub num_ctx: Option<u64>,
    /// How long Ollama keeps the model loaded after a call: `15m`, or seconds. Default: 15m.
    pub keep_alive: Option<String>,
    /// How much the model reasons before it answers. Default: auto.
    pub think: Option<Think>,
    /// 0 for the most likely token, up to 2. Default: the server's.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Nucleus sampling, above 0 to 1. Default: the server's.
    #[schemars(range(max = 1))]
    pub top_p: Option<f64>,
    /// Makes sampling repeatable where the server can. Default: none.
    pub seed: Option<u64>,
    /// The most tokens of an answer, reasoning included. Default: the server's.
    #[schemars(range(min = 1))]
    pub max_tokens: Option<u32>,
    /// How verdicts are demanded as JSON. Default: auto.
    pub structured_output: Option<StructuredOutputMode>,
    /// How the loop behaves.
    #[serde(rename = "loop")]
    pub loop_settings: LoopSettings,
    /// How the judge is asked.
    pub judge: JudgeSettings,
    /// When the outcome of tasks and plans is a success.
    pub reflector: ReflectorSettings,
    /// How long is waited for a server.
    pub timeouts: TimeoutSettings,
    /// Which runs the run log keeps.
    pub history: HistorySettings,
}

/// Which runs the run log keeps. Others are taken out at the start of a run, at most once a day, with the insights of
/// memory that are in their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct HistorySettings {
    /// Those of so many days. At least 1; default: all.
    #[schemars(range(min = 1))]
    pub keep_days: Option<u32>,
    /// The latest, so many. At least 1; default: all.
    #[schemars(range(min = 1))]
    pub keep_runs: Option<u32>,
}

/// How long is waited for a server: durations such as `10s`, `2m` or `1h 30m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TimeoutSettings {
    /// Until the connection stands. Default: 10s.
    pub connect: Option<HumanDuration>,
    /// From the request to the first piece of the answer. Default: 10m.
    pub first_token: Option<HumanDuration>,
    /// Between two pieces of the answer. Default: 2m.
    pub idle: Option<HumanDuration>,
    /// A whole call with its retries. Default: 30m.
    pub total: Option<HumanDuration>,
}

/// How a server is asked for JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutputMode {
    /// As strongly as the server can, which is found out.
    #[default]
    Auto,
    /// It enforces the schema.
    JsonSchema,
    /// It enforces some JSON object.
    JsonObject,
    /// It enforces nothing; the prompt describes the schema.
    Prompt,
}

impl TimeoutSettings {
    /// The waiting times, with the built-in ones where nothing is set.
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
    /// The way that was asked for; `None` for as strongly as the server can.
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
    /// What a task may bring to another machine: how models are asked and how the loop goes. Addresses, files and
    /// trust are those of the machine.
    #[must_use]
    pub fn of_task(self) -> Self {
        Self {
            profile: None,
            provider: None,
            base_url: None,
            criteria: None,
            criteria_path: None,
            prompt_dir: None,
            memory: None,
            reflector: ReflectorSettings::default(),
            history: HistorySettings::default(),
            ..self
        }
    }

    /// The built-in defaults: what holds where nobody says anything.
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

    /// How tokens are chosen.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            seed: self.seed,
            max_tokens: self.max_tokens,
        }
    }

    /// Says which value is outside of its range: the keys that lead to it, and a sentence.
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
        // Written so that NaN is wrong, too.
        if self.temperature.is_some_and(|t| !(0.0..=2.0).contains(&t)) {
            return wrong("temperature", "a number from 0 to 2");
        }
        if self.top_p.is_some_and(|p| !(p > 0.0 && p <= 1.0)) {
            return wrong("top_p", "a number above 0, up to 1");
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
                return wrong(key, "a text that is not empty");
            }
        }
        Ok(())
    }
}

/// A server's address in any form that the model room reads, but without a user or password: it is shown
/// in many places.
pub(super) fn check_url(url: &str) -> Result<(), &'static str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.trim().is_empty() {
        return Err("an address, such as `http://localhost:8000`");
    }
    if host.contains('@') {
        return Err("without a user or password; use `api_key_env` or `headers` for them");
    }
    Ok(())
}
