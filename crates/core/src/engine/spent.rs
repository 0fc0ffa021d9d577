use crate::types::{ConvergenceReason, LoopSettings};

/// What a run has used so far. Tokens that a server does not count are estimated.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Spent {
    pub(super) tokens: u64,
    /// Tokens that were generated or evaluated: all except those of prompts in a server's cache.
    pub(super) work: u64,
    /// In the unit of the prices; calls of models without a price are not in it.
    pub(super) cost: f64,
}

impl Spent {
    /// The limit that is reached, if one is.
    pub(super) fn limit(self, settings: &LoopSettings) -> Option<ConvergenceReason> {
        let tokens = settings
            .max_total_tokens
            .is_some_and(|limit| self.tokens >= limit);
        let cost = settings.max_cost.is_some_and(|limit| self.cost >= limit);
        if tokens {
            Some(ConvergenceReason::TokenBudget)
        } else {
            cost.then_some(ConvergenceReason::CostLimit)
        }
    }
}

/// This many tokens at an unknown cost.
impl From<u64> for Spent {
    fn from(tokens: u64) -> Self {
        Self {
            tokens,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_reached_when_it_is_used_up() {
        let settings = LoopSettings {
            max_total_tokens: Some(100),
            max_cost: Some(0.5),
            ..LoopSettings::default()
        };
        let limit = |tokens, cost| {
            let spent = Spent {
                tokens,
                cost,
                ..Spent::default()
            };
            spent.limit(&settings)
        };
        assert_eq!(limit(99, 0.49), None);
        assert_eq!(limit(100, 0.0), Some(ConvergenceReason::TokenBudget));
        assert_eq!(limit(0, 0.5), Some(ConvergenceReason::CostLimit));
        let none = LoopSettings::default();
        assert_eq!(
            Spent {
                tokens: u64::MAX,
                cost: 1e9,
                ..Spent::default()
            }
            .limit(&none),
            None
        );
    }
}
