//! One context window for all calls of a run.

use crate::cli::settings::Plan;
use crate::config::Settings;
use crate::engine::{PRIOR_CHARACTERS, PRIOR_DRAFTS};
use crate::evaluate;
use crate::evidence::DEFAULT_TOKENS;
use crate::memory;
use crate::model::ollama::{NumCtx, estimate_tokens, num_ctx_for};
use crate::model::{ModelInfo, Reasoning, Sampling, Think};
use crate::prompt::Prompts;
use crate::types::{CompareConfig, CompareTarget, Evaluator, LengthUnit, Strategy, Task};

/// The assumed draft length in tokens if nothing sets it.
const DRAFT: u64 = 1024;

/// The maximum tokens of a tool's result (cut to 4,000 characters) and of what is learned from it.
const TOOL_RESULT: u64 = 2000;

/// The context window to request from Ollama. The writer and the judge share one, because Ollama reloads a
/// model whenever the window changes.
pub(super) struct RunWindow {
    pub(super) num_ctx: NumCtx,
    /// The tokens of the longest call of the run.
    need: u64,
    /// The tokens of the longest draft that the criteria allow, if they set a limit.
    longest_draft: Option<u64>,
    /// Whether models may reason.
    may_reason: bool,
}

/// Tokens reserved for reasoning in one call.
const REASONING: u64 = 4096;

/// The limits for `max_tokens` of the embedded model. It is slow, and its longer texts are useless.
const EMBEDDED_DRAFT: std::ops::RangeInclusive<u64> = 512..=1024;

impl RunWindow {
    /// Sizes the window of a run that writes drafts. The first draft may be `given`.
    pub(super) fn of_run(plan: &Plan, task: &Task, given: Option<&str>) -> Self {
        let longest_draft = longest_draft(plan);
        let draft = plan
            .settings()
            .max_tokens
            .map_or_else(|| longest_draft.unwrap_or(DRAFT).max(DRAFT), u64::from)
            .max(given.map_or(0, estimate_tokens));
        // The longest calls are a revision (prompt, draft, feedback, new draft) and a verdict (prompt, draft,
        // instructions, verdict). Feedback and instructions are shorter than a verdict's limit. Retried edits
        // are in the conversation twice, and are usually at most half as long as a draft.
        let drafts = match plan.settings().loop_settings.strategy() {
            Strategy::FullRewrite => 2,
            Strategy::TargetedEdit | Strategy::Incremental | Strategy::Hybrid => 3,
        };
        // The prompt may include this many earlier drafts.
        let loops = &plan.settings().loop_settings;
        let earlier = if loops.include_prior_versions() {
            // Assumes three characters per token.
            (PRIOR_DRAFTS as u64 * draft).min(PRIOR_CHARACTERS as u64 / 3)
        } else {
            0
        };
        Self::new(plan, task, drafts * draft + earlier, longest_draft)
    }

    /// Sizes the window of a judge for texts up to this length.
    pub(super) fn of_text(plan: &Plan, task: &Task, longest: &str) -> Self {
        Self::new(plan, task, estimate_tokens(longest), None)
    }

    fn new(plan: &Plan, task: &Task, drafts: u64, longest_draft: Option<u64>) -> Self {
        let num_ctx = plan
            .settings()
            .num_ctx
            .map_or_else(NumCtx::default, NumCtx::fixed);
        let prompt: u64 = Prompts::new(task, &plan.criteria)
            .draft(None)
            .iter()
            .map(|message| estimate_tokens(&message.content))
            .sum();
        let verdict = u64::from(evaluate::verdict_tokens(&plan.criteria));
        // Evidence for the task and for the current version.
        let tokens = plan.settings().evidence_tokens.unwrap_or(DEFAULT_TOKENS);
        let evidence = if plan.evidence {
            2 * u64::from(tokens)
        } else {
            0
        };
        let memory = if plan.settings().memory == Some(true) {
            u64::from(memory::TOKENS)
        } else {
            0
        };
        // The writer sees tool results and what was learned from them.
        let tools = plan.tools as u64 * TOOL_RESULT;
        // Anchors, questions and examples, which only the judge sees. Assumes three characters per token.
        let instructions: usize = plan
            .criteria
            .criteria
            .iter()
            .filter_map(|criterion| match &criterion.evaluator {
                Evaluator::Llm(config) => Some(config.characters() / 3),
                _ => None,
            })
            .sum();
        // The longest reference text that a judge compares with. An earlier version is one of the drafts.
        let reference = plan
            .criteria
            .criteria
            .iter()
            .filter_map(|criterion| match &criterion.evaluator {
                Evaluator::Compare(CompareConfig::Pairwise {
                    to: CompareTarget::Reference(text),
                }) => Some(estimate_tokens(text)),
                _ => None,
            })
            .max()
            .unwrap_or_default();
        Self {
            num_ctx,
            need: prompt
                + evidence
                + memory
                + tools
                + drafts
                + reference
                + verdict
                + instructions as u64,
            longest_draft,
            may_reason: plan.settings().think != Some(Think::Off)
                || plan.criteria.judge_settings.think().is_requested(),
        }
    }

    /// Returns the sampling settings of a writer. Limits the output of the embedded model unless the user
    /// does.
    pub(super) fn writer_sampling(&self, settings: &Settings, provider: &str) -> Sampling {
        let mut sampling = settings.sampling();
        if provider == "embedded" && sampling.max_tokens.is_none() {
            sampling.max_tokens = Some(self.embedded_draft());
        }
        sampling
    }

    /// Returns the output limit of the embedded model: 1.5 times what the criteria allow.
    fn embedded_draft(&self) -> u32 {
        let (least, most) = EMBEDDED_DRAFT.into_inner();
        let tokens = self
            .longest_draft
            .map_or(most, |tokens| tokens + tokens / 2);
        u32::try_from(tokens.clamp(least, most)).unwrap_or(u32::MAX)
    }

    /// Decides the window for this model. Ollama reloads a model for any other window, even a smaller one, so
    /// a model loaded with a large enough window is used unchanged.
    pub(super) fn decide(&self, model: &ModelInfo) -> u64 {
        let reasons =
            self.may_reason && matches!(model.reasoning, Reasoning::Optional | Reasoning::Always);
        let need = self.need + if reasons { REASONING } else { 0 };
        let enough = num_ctx_for(need, model.context_window);
        let need = need.min(enough);
        let window = match model.loaded_window {
            Some(loaded) if loaded >= need => loaded,
            _ => enough.max(model.set_window.unwrap_or_default()),
        };
        self.num_ctx.decide(window)
    }
}

/// Estimates the tokens of a draft: as many as the criteria or the user allow, or about half a page.
pub(in crate::cli) fn likely_draft(plan: &Plan) -> u64 {
    let most = plan.settings().max_tokens.map(u64::from);
    let likely = longest_draft(plan).unwrap_or(DRAFT / 2);
    likely.min(most.unwrap_or(u64::MAX))
}

/// Returns the tokens of the longest draft that the criteria allow; `None` if they set no limit.
fn longest_draft(plan: &Plan) -> Option<u64> {
    plan.criteria
        .criteria
        .iter()
        .filter_map(|criterion| match &criterion.evaluator {
            Evaluator::Length(length) => {
                let most = length.max.or(length.min.map(|min| min.saturating_mul(2)))?;
                Some(match length.unit {
                    // Two tokens per word: better too many than too few.
                    LengthUnit::Words => most.saturating_mul(2),
                    LengthUnit::Characters => most / 3,
                    LengthUnit::Sentences => most.saturating_mul(50),
                    LengthUnit::Lines => most.saturating_mul(30),
                    LengthUnit::Paragraphs => most.saturating_mul(200),
                })
            }
            _ => None,
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_embedded_model_has_an_output_limit() {
        let most = |longest_draft, max_tokens, provider: &str| {
            let window = RunWindow {
                num_ctx: NumCtx::default(),
                need: 0,
                longest_draft,
                may_reason: true,
            };
            let settings = Settings {
                max_tokens,
                ..Settings::default()
            };
            window.writer_sampling(&settings, provider).max_tokens
        };
        assert_eq!(most(None, None, "openai"), None);
        assert_eq!(most(None, None, "embedded"), Some(1024));
        assert_eq!(most(Some(400), None, "embedded"), Some(600));
        assert_eq!(most(Some(400), Some(20), "embedded"), Some(20));
    }

    #[test]
    fn a_loaded_window_is_kept_if_it_is_large_enough() {
        let of = |reasoning, need, context_window, loaded_window, set_window| {
            let window = RunWindow {
                num_ctx: NumCtx::default(),
                need,
                longest_draft: None,
                may_reason: true,
            };
            window.decide(&ModelInfo {
                context_window,
                loaded_window,
                set_window,
                reasoning,
                ..ModelInfo::default()
            })
        };
        let decide = |need, context, loaded, set| of(Reasoning::Never, need, context, loaded, set);
        assert_eq!(decide(5000, Some(32_768), None, None), 6144);
        // Loaded with a large enough window, even if it is odd or much larger.
        assert_eq!(decide(5000, Some(32_768), Some(5001), None), 5001);
        assert_eq!(decide(5000, Some(32_768), Some(32_768), None), 32_768);
        assert_eq!(decide(5000, Some(32_768), Some(4096), None), 6144);
        // The model's maximum is enough.
        assert_eq!(decide(50_000, Some(8192), Some(8192), None), 8192);
        // Never less than the model's own parameters set.
        assert_eq!(decide(5000, Some(32_768), Some(4096), Some(16_384)), 16_384);
        // Reasoning needs extra tokens.
        assert_eq!(
            of(Reasoning::Optional, 5000, Some(32_768), Some(6144), None),
            12_288
        );
    }
}
