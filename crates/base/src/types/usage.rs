use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Characters per token: the usual estimate for servers that do not report token counts.
pub const CHARACTERS_PER_TOKEN: usize = 4;

/// Token counts, as reported by the server. A count that the server did not report is `None`, never 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Prompt tokens, including those read from a cache.
    pub prompt: Option<u64>,
    /// Generated tokens, including reasoning.
    pub completion: Option<u64>,
    /// Prompt and completion together.
    pub total: Option<u64>,
    /// Prompt tokens that the server read from its cache.
    pub cached: Option<u64>,
    /// How many tokens of the total are estimated: a reply that is stopped early ends before the server reports
    /// counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<u64>,
}

impl TokenUsage {
    /// The usage of one call. The total is the sum if the server reported both parts.
    pub fn new(prompt: Option<u64>, completion: Option<u64>, cached: Option<u64>) -> Self {
        Self {
            prompt,
            completion,
            total: prompt.zip(completion).map(|(p, c)| p + c),
            cached,
            estimated: None,
        }
    }

    /// Estimates the missing counts of a call from the characters sent, and the characters and pieces received. A
    /// piece has at least one token.
    pub fn estimate(&mut self, sent: usize, received: usize, pieces: usize) {
        if self.total.is_some() {
            return;
        }
        let mut estimated = 0;
        let mut fill = |tokens: usize| {
            estimated += tokens as u64;
            tokens as u64
        };
        let prompt = *(self.prompt).get_or_insert_with(|| fill(sent / CHARACTERS_PER_TOKEN));
        let completion = *(self.completion)
            .get_or_insert_with(|| fill(pieces.max(received / CHARACTERS_PER_TOKEN)));
        self.total = Some(prompt + completion);
        self.estimated = Some(estimated);
    }
}

impl AddAssign for TokenUsage {
    /// Adds count by count; a sum is known as soon as one of its parts is.
    fn add_assign(&mut self, other: Self) {
        fn add(a: Option<u64>, b: Option<u64>) -> Option<u64> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.saturating_add(b)),
                (a, b) => a.or(b),
            }
        }
        self.prompt = add(self.prompt, other.prompt);
        self.completion = add(self.completion, other.completion);
        self.total = add(self.total, other.total);
        self.cached = add(self.cached, other.cached);
        self.estimated = add(self.estimated, other.estimated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_counts_stay_unknown_and_known_counts_add_up() {
        let mut sum = TokenUsage::default();
        sum += TokenUsage::default();
        assert_eq!(sum, TokenUsage::default());
        sum += TokenUsage::new(Some(10), Some(5), None);
        sum += TokenUsage::new(Some(1), None, Some(4));
        assert_eq!(sum.prompt, Some(11));
        assert_eq!(sum.completion, Some(5));
        assert_eq!(sum.total, Some(15));
        assert_eq!(sum.cached, Some(4));
    }

    #[test]
    fn missing_counts_are_estimated_and_marked() {
        let mut usage = TokenUsage::default();
        usage.estimate(400, 20, 9);
        let figures = (usage.prompt, usage.completion, usage.total);
        assert_eq!(figures, (Some(100), Some(9), Some(109)));
        assert_eq!(usage.estimated, Some(109));
        let mut usage = TokenUsage::new(Some(120), None, None);
        usage.estimate(400, 80, 9);
        assert_eq!((usage.total, usage.estimated), (Some(140), Some(20)));
        usage.estimate(4000, 800, 90);
        assert_eq!((usage.total, usage.estimated), (Some(140), Some(20)));
    }
}
