use std::collections::VecDeque;

use llguidance::toktrie::SimpleVob;

use reflect_model::{Sampling, TokenLogprob};

use super::vocabulary::Vocabulary;

/// The default temperature. The model card of `SmolLM2` recommends 0.2, but at that value the default model gets
/// stuck in a loop in half of all drafts.
pub const DEFAULT_TEMPERATURE: f64 = 0.5;

/// The penalty on recently generated tokens, for calls without a temperature and without a schema: that of CTRL
/// (Keskar et al. 2019, §4.1), with the value from the paper.
const REPETITION_PENALTY: f64 = 1.2;

/// How many tokens back the penalty reaches.
const REPETITION_WINDOW: usize = 64;

/// The default `top_p`, recommended by the model card of `SmolLM2`.
pub const DEFAULT_TOP_P: f64 = 0.9;

/// How many of the most likely tokens to consider before sorting all.
const HEAD: usize = 256;

/// Samples tokens.
pub(super) struct Sampler {
    /// The temperature; 0 selects the most likely token.
    temperature: f64,
    top_p: f64,
    rng: fastrand::Rng,
    candidates: Vec<(u32, f64)>,
    /// The most recent tokens; `None` if repetition is not penalized.
    recent: Option<VecDeque<u32>>,
}

impl Sampler {
    pub(super) fn new(sampling: &Sampling) -> Self {
        Self {
            temperature: sampling.temperature.unwrap_or(DEFAULT_TEMPERATURE),
            top_p: sampling.top_p.unwrap_or(DEFAULT_TOP_P),
            rng: sampling
                .seed
                .map_or_else(fastrand::Rng::new, fastrand::Rng::with_seed),
            candidates: Vec::new(),
            recent: sampling.temperature.is_none().then(VecDeque::new),
        }
    }

    /// Samples one of the allowed tokens; `None` if none is allowed.
    pub(super) fn choose(&mut self, logits: &[f32], allowed: Option<&SimpleVob>) -> Option<u32> {
        let ids = 0u32..;
        let candidates = ids
            .zip(logits)
            .filter(|(id, logit)| !logit.is_nan() && allowed.is_none_or(|set| set.is_allowed(*id)))
            .map(|(id, &logit)| (id, f64::from(logit)));
        if self.temperature <= 0.0 {
            let likelier = |a: (u32, f64), b: (u32, f64)| if b.1 > a.1 { b } else { a };
            return candidates.reduce(likelier).map(|(id, _)| id);
        }
        self.candidates.clear();
        self.candidates.extend(candidates);
        if let Some(recent) = self.recent.as_ref().filter(|_| allowed.is_none()) {
            for (_, logit) in self
                .candidates
                .iter_mut()
                .filter(|(id, _)| recent.contains(id))
            {
                *logit = if *logit > 0.0 {
                    *logit / REPETITION_PENALTY
                } else {
                    *logit * REPETITION_PENALTY
                };
            }
        }
        let greatest = self
            .candidates
            .iter()
            .map(|c| c.1)
            .fold(f64::NEG_INFINITY, f64::max);
        let mut total = 0.0;
        for (_, weight) in &mut self.candidates {
            *weight = ((*weight - greatest) / self.temperature).exp();
            total += *weight;
        }
        let kept = nucleus(&mut self.candidates, self.top_p, total);
        let sum: f64 = kept.iter().map(|c| c.1).sum();
        let mut left = self.rng.f64() * sum;
        let chosen = kept
            .iter()
            .find(|(_, weight)| {
                left -= weight;
                left < 0.0
            })
            .or(kept.last())
            .map(|(id, _)| *id);
        if let (Some(recent), Some(id)) = (&mut self.recent, chosen) {
            recent.push_back(id);
            if recent.len() > REPETITION_WINDOW {
                recent.pop_front();
            }
        }
        chosen
    }
}

/// The most likely candidates whose probabilities add up to `top_p` of `total`; at least one.
fn nucleus(candidates: &mut [(u32, f64)], top_p: f64, total: f64) -> &[(u32, f64)] {
    if top_p >= 1.0 || candidates.is_empty() {
        return candidates;
    }
    // Equally likely tokens are ordered by number, so that the order does not depend on the sorting algorithm.
    let likelier = |a: &(u32, f64), b: &(u32, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    let mut sorted = candidates.len();
    if sorted > HEAD {
        candidates.select_nth_unstable_by(HEAD - 1, likelier);
        let head: f64 = candidates[..HEAD].iter().map(|c| c.1).sum();
        if head >= top_p * total {
            sorted = HEAD;
        }
    }
    let candidates = &mut candidates[..sorted];
    candidates.sort_unstable_by(likelier);
    let mut sum = 0.0;
    let reached = candidates.iter().position(|(_, weight)| {
        sum += weight;
        sum >= top_p * total
    });
    &candidates[..reached.map_or(sorted, |last| last + 1)]
}

/// The model's log-probabilities of a token and of the `top` most likely ones, before temperature, `top_p` and any
/// schema.
pub(super) fn logprobs(
    logits: &[f32],
    chosen: u32,
    top: usize,
    vocabulary: &Vocabulary,
) -> TokenLogprob {
    let greatest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f64 = logits
        .iter()
        .map(|logit| f64::from(logit - greatest).exp())
        .sum();
    let logprob = |logit: f32| f64::from(logit - greatest) - total.ln();
    let mut ids: Vec<(u32, f32)> = (0u32..).zip(logits.iter().copied()).collect();
    let likelier = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if top < ids.len() {
        ids.select_nth_unstable_by(top, likelier);
        ids.truncate(top);
    }
    ids.sort_unstable_by(likelier);
    let own = logits.get(chosen as usize).copied();
    let own = own.unwrap_or(f32::NEG_INFINITY);
    if top > 0 && !ids.iter().any(|(id, _)| *id == chosen) {
        ids.push((chosen, own));
    }
    TokenLogprob {
        token: vocabulary.name(chosen),
        logprob: logprob(own),
        top: ids
            .into_iter()
            .map(|(id, logit)| (vocabulary.name(id), logprob(logit)))
            .collect(),
    }
}
