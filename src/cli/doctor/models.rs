//! Checks of the models that a run would use: whether they are available, and what they can do.

use std::time::{Duration, Instant};

use super::{Area, Check, Level, Report};
use crate::cli::error::CliError;
use crate::cli::models::{Backend, Member, ModelRoles};
use crate::cli::printer;
use crate::cli::settings::Plan;
use crate::model::openai::StructuredOutput;
use crate::model::{
    ChatModel, ErrorClass, JsonAnswer, JsonProbe, ListedModel, ModelError, PromptPrefix,
    SpeedProbe, Think, cost, measure_json, measure_speed, ollama, openai,
};
use crate::text::counted;
use crate::types::JudgeScore;

/// The smallest recommended context window, in tokens. It holds a longer draft, its feedback and the
/// revision.
const WINDOW: u64 = 8_192;

/// Tokens per second below which a model counts as slow.
const SLOW: f64 = 8.0;

/// The longest normal wait for the first token.
const LONG_WAIT: Duration = Duration::from_secs(15);

/// The share of the common prompt prefix below which the cache does not help.
const CACHED_SHARE: f64 = 0.5;

/// Checks every model that a run would use. Unless `no_calls` is set, makes two small calls to each, and
/// reports that before.
pub(in crate::cli) async fn examine(plan: &Plan, no_calls: bool, quiet: bool, report: &mut Report) {
    let team = match ModelRoles::of(plan).await {
        Ok(team) => team,
        Err(error) => return report.failed(area(None), "choice", &error),
    };
    for member in &team.members {
        let examination = Examination {
            plan,
            team: &team,
            member,
            area: area(Some(member)),
            ask: !no_calls,
            quiet,
        };
        if let Err(Fault { check, error }) = examination.run(report).await {
            report.failed(examination.area, check, &error);
        }
    }
}

fn area(member: Option<&Member>) -> Area {
    Area {
        name: "model",
        subject: member.map(|member| format!("{} ({})", member.name, member.role)),
    }
}

/// An error that ends the checks of a model.
struct Fault {
    check: &'static str,
    error: CliError,
}

/// Converts an error into a fault of this check.
fn at<E: Into<CliError>>(check: &'static str) -> impl Fn(E) -> Fault {
    move |error| Fault {
        check,
        error: error.into(),
    }
}

/// The checks of one model.
struct Examination<'a> {
    plan: &'a Plan,
    team: &'a ModelRoles<'a>,
    member: &'a Member,
    area: Area,
    ask: bool,
    quiet: bool,
}

impl Examination<'_> {
    async fn run(&self, report: &mut Report) -> Result<(), Fault> {
        let mut add = |check| report.add(&self.area, check);
        if let Some(why) = &self.member.why {
            add(Check::new("choice", Level::Ok, why.as_str()));
        }
        let backend = self.team.backend(self.member).map_err(at("endpoint"))?;
        let local = match &backend {
            Backend::Ollama(connection) | Backend::OpenAi(connection) => {
                let key = self.team.key_origin(self.member, &backend);
                add(match key.map_err(at("key"))? {
                    Some(origin) => Check::new("key", Level::Ok, format!("from {origin}")),
                    None if connection.has_authorization() => Check::new(
                        "key",
                        Level::Ok,
                        "the header `Authorization` in the configuration",
                    ),
                    None => {
                        let check = Check::new("key", Level::Note, "no key is sent");
                        match connection.missing_key_hint.as_deref() {
                            Some(why) if why.contains("which is not set") => check.advice(why),
                            _ => check,
                        }
                    }
                });
                add(endpoint(&backend).await.map_err(at("endpoint"))?);
                connection.base_url.is_loopback()
            }
            Backend::Embedded | Backend::Scripted => true,
        };
        if let Some(check) = self.not_fetched(&backend) {
            add(check);
            return Ok(());
        }
        let model = self.team.open(self.member).await.map_err(at("model"))?;
        let info = model.info().await.map_err(at("model"))?;
        add(if info.known {
            Check::new("model", Level::Ok, format!("{} is available", model.id()))
        } else {
            let finding = format!("unknown: the server does not list {}", model.id());
            Check::new("model", Level::Note, finding)
        });
        if let Some(host) = &info.remote {
            let finding = format!("{host}: prompts leave the Ollama server");
            let check = Check::new("location", Level::Warning, finding)
                .advice("use a model that Ollama runs locally to keep your prompts there");
            add(check);
        }
        let own = match (info.sets_system, info.sets_messages) {
            (true, true) => {
                Some("reflect replaces its Modelfile's SYSTEM; its MESSAGE entries come first")
            }
            (true, false) => Some("reflect replaces its Modelfile's SYSTEM"),
            (false, true) => Some("its Modelfile's MESSAGE entries come before reflect's prompts"),
            (false, false) => None,
        };
        if let Some(finding) = own {
            add(Check::new("prompts", Level::Note, finding));
        }
        let num_ctx = matches!(backend, Backend::Ollama(_))
            .then(|| self.team.num_ctx())
            .flatten();
        add(window(info.context_window, num_ctx));
        if self.ask {
            let local = local && info.remote.is_none();
            self.measure(&*model, local, report).await
        } else {
            let finding = "speed, JSON, probabilities and prompt cache";
            report.add(
                &self.area,
                Check::new("not measured", Level::Note, finding)
                    .advice("remove `--no-calls` to test it with two small calls"),
            );
            Ok(())
        }
    }

    /// Returns a check if the embedded model is not downloaded. `doctor` does not download it.
    #[cfg(feature = "embedded")]
    fn not_fetched(&self, backend: &Backend) -> Option<Check> {
        use reflect_embedded::weights::{DEFAULT_MODEL, ModelSpec};
        if !matches!(backend, Backend::Embedded) {
            return None;
        }
        let text = self.member.name.model.as_deref().unwrap_or(DEFAULT_MODEL);
        let spec: ModelSpec = text.parse().ok()?;
        if matches!(spec, ModelSpec::Path(_)) {
            return None;
        }
        let local = crate::cli::models::local().ok()?;
        if local.iter().any(|model| model.spec == spec) {
            return None;
        }
        if self.plan.settings().offline == Some(true) {
            let finding =
                "its weights are not on this machine, and --offline prevents the download";
            return Some(
                Check::new("model", Level::Failed(crate::types::ExitCode::Provider), finding).advice(format!(
                    "run `reflect models pull {text}` once without `--offline`, or use a local Ollama, for \
                     example with `ollama pull qwen3:4b`"
                )),
            );
        }
        let finding = match spec.bytes() {
            Some(bytes) => format!(
                "not downloaded: the first run downloads {} MB",
                bytes / 1_000_000
            ),
            None => "not downloaded: the first run downloads it".to_owned(),
        };
        Some(
            Check::new("model", Level::Warning, finding)
                .advice(format!("download it now with `reflect models pull {text}`")),
        )
    }

    #[cfg(not(feature = "embedded"))]
    #[expect(clippy::unused_self, reason = "the same signature as with the feature")]
    fn not_fetched(&self, _: &Backend) -> Option<Check> {
        None
    }

    /// Makes the two calls.
    async fn measure(
        &self,
        model: &dyn ChatModel,
        local: bool,
        report: &mut Report,
    ) -> Result<(), Fault> {
        let beginning = if local {
            PromptPrefix::Short
        } else {
            PromptPrefix::Long
        };
        let (read, written) = cost(beginning);
        if !self.quiet {
            printer::say(&format!(
                "testing {} with two small calls: about {read} tokens of input, at most {written} of output",
                model.id()
            ));
        }
        let settings = self.plan.settings();
        let think = settings.think.unwrap_or_default();
        let writing = measure_speed(model, beginning, think)
            .await
            .map_err(at("answer"))?;
        report.add(&self.area, speed(&writing));
        report.add(&self.area, reasoning(&writing, think));
        let in_json = measure_json(model, beginning, think)
            .await
            .map_err(at("structured output"))?;
        report.add(&self.area, json(&in_json, model.structured_output()));
        report.add(&self.area, probabilities(&in_json, settings.judge.score()));
        report.add(&self.area, cache(&in_json, beginning));
        for notice in in_json.notices {
            report.add(&self.area, Check::new("learned", Level::Note, notice));
        }
        Ok(())
    }
}

/// Checks whether the server responds and how fast, with a request that needs no model.
async fn endpoint(backend: &Backend) -> Result<Check, ModelError> {
    let begun = Instant::now();
    let (connection, listed) = match backend {
        Backend::Ollama(connection) => (connection, ollama::list_installed(connection).await),
        Backend::OpenAi(connection) => (connection, openai::list_models(connection).await),
        Backend::Embedded | Backend::Scripted => {
            return Ok(Check::new("endpoint", Level::Ok, "in this process"));
        }
    };
    let latency = begun.elapsed().as_millis();
    let address = &connection.base_url;
    let encrypted = connection.base_url.is_loopback() || address.url().scheme() == "https";
    let check = match listed {
        Ok(models) => {
            let version = match backend {
                Backend::Ollama(connection) => ollama::version(connection).await,
                _ => None,
            };
            let who = version.map_or_else(
                || address.to_string(),
                |version| format!("Ollama {version} at {address}"),
            );
            said(&models, latency, &who, encrypted)
        }
        // A server that lists no models may still have the model.
        Err(error) if matches!(error.class, ErrorClass::NotFound | ErrorClass::Rejected) => {
            let finding = format!("{address} responds in {latency} ms and lists no models");
            Check::new("endpoint", Level::Note, finding)
        }
        Err(error) => return Err(error),
    };
    Ok(check.figure("latency_ms", u64::try_from(latency).ok()))
}

fn said(models: &[ListedModel], latency: u128, address: &str, encrypted: bool) -> Check {
    let number = counted(models.len(), "model");
    let finding = format!("{address} responds in {latency} ms and has {number}");
    let check = if encrypted {
        Check::new("endpoint", Level::Ok, finding)
    } else {
        Check::new(
            "endpoint",
            Level::Warning,
            format!("{finding}; not encrypted"),
        )
        .advice("use its https address; others on the network can read prompts, drafts and the key")
    };
    check.figure("models", Some(models.len()))
}

fn window(tokens: Option<u64>, num_ctx: Option<u64>) -> Check {
    const NAME: &str = "context window";
    let asked = num_ctx.map_or_else(String::new, |tokens| {
        format!("; reflect requests {tokens} from Ollama, or more if the task needs it")
    });
    let check = match tokens {
        Some(tokens) if tokens < WINDOW => {
            Check::new(NAME, Level::Warning, format!("{tokens} tokens{asked}")).advice(
                "enough for short drafts; for more than a few pages, use a larger context window",
            )
        }
        Some(tokens) => Check::new(NAME, Level::Ok, format!("{tokens} tokens{asked}")),
        None => Check::new(NAME, Level::Note, "unknown: the server does not report it"),
    };
    check
        .figure("context_window", tokens)
        .figure("num_ctx", num_ctx)
}

fn speed(writing: &SpeedProbe) -> Check {
    let first = writing.first_piece;
    let waited = first.map_or_else(
        || "no tokens received".to_owned(),
        |first| format!("first token after {:.1} s", first.as_secs_f64()),
    );
    let finding = match writing.tokens_per_second {
        Some(rate) => format!("{waited}, then {rate:.0} tokens per second"),
        None if first.is_some() => {
            format!("{waited}; the reply was too short to measure the speed")
        }
        None => waited,
    };
    let check = if writing.tokens_per_second.is_some_and(|rate| rate < SLOW) {
        Check::new("speed", Level::Warning, finding).advice(
            "a draft of 500 words takes more than a minute; a smaller model or a stronger quantization is faster",
        )
    } else if first.is_some_and(|first| first > LONG_WAIT) {
        Check::new("speed", Level::Warning, finding).advice(
            "if the model had to be loaded, the next call is faster; for Ollama, a longer `keep_alive` keeps \
             it loaded",
        )
    } else {
        Check::new("speed", Level::Ok, finding)
    };
    let ms = first.and_then(|first| u64::try_from(first.as_millis()).ok());
    let rate = writing.tokens_per_second;
    check.figure("first_piece_ms", ms).figure(
        "tokens_per_second",
        rate.map(|rate| (rate * 10.0).round() / 10.0),
    )
}

fn reasoning(writing: &SpeedProbe, think: Think) -> Check {
    let characters = writing.reasoning;
    let check = match (characters, writing.answered) {
        (0, true) => Check::new("reasoning", Level::Ok, "it replies without reasoning"),
        (0, false) => Check::new("reasoning", Level::Warning, "its reply was empty")
            .advice("if it reasons without showing it, raise `--max-tokens`, or try `--think off`"),
        (characters, answered) => {
            let so = if answered {
                "separate from the reply"
            } else {
                "without a reply within the limit of this test"
            };
            let finding = format!("it reasons first ({characters} characters), {so}");
            let check = Check::new("reasoning", Level::Note, finding);
            if think == Think::Off {
                check.advice("the server ignores `think = off`")
            } else {
                check.advice("`--think off` is faster if the server supports it")
            }
        }
    };
    check.figure("reasoning_characters", Some(characters))
}

fn json(in_json: &JsonProbe, asked: Option<StructuredOutput>) -> Check {
    const NAME: &str = "structured output";
    let asked = match asked {
        Some(StructuredOutput::JsonSchema) => "with the schema enforced",
        Some(StructuredOutput::JsonObject) => "with a JSON object enforced",
        Some(StructuredOutput::Prompt) => "with the prompt alone",
        None => "asked",
    };
    match in_json.answer {
        JsonAnswer::FollowsSchema => {
            let finding = format!("{asked}, the reply matches the schema");
            Check::new(NAME, Level::Ok, finding)
        }
        JsonAnswer::OtherJson => {
            let finding = format!("{asked}, the reply is JSON but does not match the schema");
            Check::new(NAME, Level::Warning, finding).advice(
                "verdicts rely on the prompt; a server that enforces schemas is more reliable",
            )
        }
        JsonAnswer::Text => Check::new(NAME, Level::Warning, format!("{asked}, the reply is not JSON"))
            .advice("verdicts may be unparseable; use another model with `--judge-model`"),
        JsonAnswer::CutOff => Check::new(NAME, Level::Warning, "the reply was not complete within 600 tokens")
            .advice("a judge that reasons at length is slow and expensive; try `--think off`, or another `--judge-model`"),
    }
}

fn probabilities(in_json: &JsonProbe, score: JudgeScore) -> Check {
    const NAME: &str = "log-probabilities";
    if in_json.logprobs {
        return Check::new(
            NAME,
            Level::Ok,
            "available; `--set judge.score=expected` works",
        );
    }
    match score {
        JudgeScore::Expected => Check::new(NAME, Level::Warning, "not available").advice(
            "`judge.score` is `expected`, but the median of several verdicts counts instead",
        ),
        JudgeScore::Verdict => Check::new(NAME, Level::Note, "not available, and not needed"),
    }
}

fn cache(in_json: &JsonProbe, beginning: PromptPrefix) -> Check {
    const NAME: &str = "prompt cache";
    let usage = &in_json.usage;
    let check = match (usage.cached, usage.prompt) {
        (None, _) => Check::new(
            NAME,
            Level::Note,
            "unknown: the server does not report cached tokens",
        ),
        (Some(cached), prompt) => {
            let of = prompt.map_or_else(String::new, |prompt| format!(" of {prompt}"));
            let finding = format!("{cached}{of} tokens of the second call were cached");
            // Token counts are far below the precision limit of `f64`.
            #[expect(clippy::cast_precision_loss, reason = "a few thousand at the most")]
            let share = cached as f64 / f64::from(beginning.tokens());
            if share >= CACHED_SHARE {
                Check::new(NAME, Level::Ok, finding)
            } else {
                Check::new(NAME, Level::Warning, finding).advice(
                    "all calls of a run start with the same text; a prompt cache makes them faster and cheaper \
                     (llama.cpp: `cache_prompt`; vLLM: `--enable-prefix-caching`)",
                )
            }
        }
    };
    check
        .figure("prompt_tokens", usage.prompt)
        .figure("cached_tokens", usage.cached)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::TokenUsage;

    fn in_json(cached: Option<u64>) -> JsonProbe {
        JsonProbe {
            answer: JsonAnswer::FollowsSchema,
            logprobs: false,
            usage: TokenUsage::new(Some(300), Some(20), cached),
            notices: Vec::new(),
        }
    }

    #[test]
    fn cache_hits_misses_and_unknown_usage_have_different_levels() {
        let level = |cached| cache(&in_json(cached), PromptPrefix::Short).level;
        assert_eq!(level(Some(240)), Level::Ok);
        assert_eq!(level(Some(0)), Level::Warning);
        assert_eq!(level(None), Level::Note);
    }

    #[test]
    fn missing_probabilities_warn_only_if_the_score_needs_them() {
        let level = |score| probabilities(&in_json(None), score).level;
        assert_eq!(level(JudgeScore::Verdict), Level::Note);
        assert_eq!(level(JudgeScore::Expected), Level::Warning);
    }

    #[test]
    fn slow_output_and_late_first_tokens_warn() {
        let level = |first, tokens_per_second| {
            speed(&SpeedProbe {
                first_piece: Some(Duration::from_secs(first)),
                tokens_per_second,
                reasoning: 0,
                answered: true,
                usage: TokenUsage::default(),
            })
            .level
        };
        assert_eq!(level(1, Some(40.0)), Level::Ok);
        assert_eq!(level(1, Some(3.0)), Level::Warning);
        assert_eq!(level(60, Some(40.0)), Level::Warning);
        assert_eq!(level(1, None), Level::Ok);
    }
}
