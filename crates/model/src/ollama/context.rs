//! The context window of a run on Ollama.

use std::sync::{Arc, OnceLock};

/// The context window of all calls of a run, in tokens. It is set only once, because Ollama reloads the model
/// whenever it changes. Clones share the value: pass one to the writer and one to the judge.
///
/// Until it is set, Ollama's default applies.
#[derive(Debug, Clone, Default)]
pub struct NumCtx(Arc<OnceLock<u64>>);

impl NumCtx {
    /// A window chosen by the user.
    pub fn fixed(tokens: u64) -> Self {
        let this = Self::default();
        this.decide(tokens);
        this
    }

    /// Sets the window if it is not set yet; returns the effective value.
    pub fn decide(&self, tokens: u64) -> u64 {
        *self.0.get_or_init(|| tokens)
    }

    /// The window, if it is set.
    pub fn get(&self) -> Option<u64> {
        self.0.get().copied()
    }
}

/// The smallest window to request: Ollama's default on small machines.
const SMALLEST: u64 = 4096;

/// The window for this many tokens: rounded up to a power of two or 1.5 times one, so that similar tasks share a
/// loaded model; at most the model's maximum.
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

/// A conservative estimate of the number of tokens in a text: one per three bytes of ASCII, one per other character.
/// Common tokenizers need a quarter fewer for English.
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
    fn windows_are_rounded_up() {
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
    fn the_window_is_set_once() {
        let window = NumCtx::default();
        let other = window.clone();
        assert_eq!(other.get(), None);
        assert_eq!(window.decide(8192), 8192);
        assert_eq!(other.decide(4096), 8192);
        assert_eq!(NumCtx::fixed(1).get(), Some(1));
    }

    #[test]
    fn estimates_are_conservative() {
        assert_eq!(estimate_tokens("abcdef"), 2);
        assert_eq!(estimate_tokens("日本語"), 3);
        assert_eq!(estimate_tokens(""), 0);
    }

    proptest! {
        #[test]
        fn a_window_fits_its_tokens(tokens in any::<u64>()) {
            let window = num_ctx_for(tokens, None);
            prop_assert!(window >= tokens.min(1 << 62));
            prop_assert!(tokens > 1 << 61 || window <= SMALLEST.max(tokens * 2));
        }
    }
}
