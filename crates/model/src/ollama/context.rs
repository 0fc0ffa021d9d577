//! The context window of a run on Ollama.

use std::sync::{Arc, OnceLock};

/// The window of all calls of a run, in tokens; decided once, since Ollama loads the model again
/// whenever it changes. Clones are the same value: give one to the writer and to the judge.
///
/// Until it is decided, Ollama's own default holds.
#[derive(Debug, Clone, Default)]
pub struct NumCtx(Arc<OnceLock<u64>>);

impl NumCtx {
    /// Decided by the user.
    pub fn fixed(tokens: u64) -> Self {
        let this = Self::default();
        this.decide(tokens);
        this
    }

    /// Decides, unless that has happened before; says what holds.
    pub fn decide(&self, tokens: u64) -> u64 {
        *self.0.get_or_init(|| tokens)
    }

    /// What was decided.
    pub fn get(&self) -> Option<u64> {
        self.0.get().copied()
    }
}

/// The smallest window that is asked for. Ollama's own default on small machines, so nothing is lost.
const SMALLEST: u64 = 4096;

/// A window for so many tokens: rounded up to a power of two or the half way to the next one, so that
/// similar tasks share a loaded model; never more than the model can hold.
pub fn num_ctx_for(tokens: u64, context_window: Option<u64>) -> u64 {
    let mut step = SMALLEST;
    while step < tokens {
        let Some(next) = step.checked_mul(2) else {
            break;
        };
        let half_way = step + step / 2;
        if half_way >= tokens {
            step = half_way;
            break;
        }
        step = next;
    }
    match context_window {
        Some(window) if window > 0 => step.min(window),
        _ => step,
    }
}

/// About how many tokens a text has, rather too many than too few: a token for every three bytes of
/// ASCII, one for every other character. Common tokenizers need a quarter fewer for English.
pub fn estimate_tokens(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    u64::try_from(ascii.div_ceil(3) + others).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn windows_come_in_steps() {
        for (tokens, expected) in [
            (0, 4096),
            (4096, 4096),
            (4097, 6144),
            (6145, 8192),
            (8193, 12_288),
            (100_000, 131_072),
        ] {
            assert_eq!(num_ctx_for(tokens, None), expected, "{tokens}");
        }
        assert_eq!(num_ctx_for(100_000, Some(8192)), 8192);
        assert_eq!(num_ctx_for(100, Some(2048)), 2048);
        assert_eq!(num_ctx_for(100, Some(0)), 4096);
    }

    #[test]
    fn a_window_is_decided_once() {
        let window = NumCtx::default();
        let other = window.clone();
        assert_eq!(other.get(), None);
        assert_eq!(window.decide(8192), 8192);
        assert_eq!(other.decide(4096), 8192);
        assert_eq!(NumCtx::fixed(1).get(), Some(1));
    }

    #[test]
    fn estimates_are_on_the_high_side() {
        assert_eq!(estimate_tokens("abcdef"), 2);
        assert_eq!(estimate_tokens("日本語"), 3);
        assert_eq!(estimate_tokens(""), 0);
    }

    proptest! {
        #[test]
        fn a_window_holds_what_it_is_for(tokens in any::<u64>()) {
            let window = num_ctx_for(tokens, None);
            prop_assert!(window >= tokens.min(1 << 62));
            prop_assert!(tokens > 1 << 61 || window <= SMALLEST.max(tokens * 2));
        }
    }
}
