use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{model_id::ModelId, usage::TokenUsage};

/// Prices are per this many tokens.
const PER: f64 = 1e6;

/// The price of a model's tokens, in a currency of the user's choice, per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// One million prompt tokens. At least 0.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// One million generated tokens, including reasoning. At least 0.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// One million prompt tokens that the server reads from its cache. At least 0; default: `input`.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cached_input: Option<f64>,
}

impl Price {
    /// Checks the values.
    ///
    /// # Errors
    /// The key of the first invalid value, and a message.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let prices = [
            ("input", Some(self.input)),
            ("output", Some(self.output)),
            ("cached_input", self.cached_input),
        ];
        for (key, price) in prices {
            // Written so that NaN fails.
            if price.is_some_and(|price| !(price >= 0.0 && price.is_finite())) {
                return Err((key, format!("`{key}` must be a number of at least 0")));
            }
        }
        Ok(())
    }

    /// The cost of a call; `None` if the server did not report its tokens. Missing cache figures count as 0 cached
    /// tokens.
    pub fn cost(&self, usage: &TokenUsage) -> Option<f64> {
        let (prompt, completion) = (usage.prompt?, usage.completion?);
        let cached = usage.cached.unwrap_or(0).min(prompt);
        let cached_input = self.cached_input.unwrap_or(self.input);
        let sum = amount(prompt - cached) * self.input
            + amount(cached) * cached_input
            + amount(completion) * self.output;
        Some(sum / PER)
    }

    /// The highest possible cost of this many tokens, prompt or generated.
    pub fn at_most(&self, tokens: u64) -> f64 {
        amount(tokens) * self.input.max(self.output) / PER
    }
}

#[expect(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
fn amount(tokens: u64) -> f64 {
    tokens as f64
}

/// Built-in prices in US dollars per million tokens: provider, model, input, cached input, output. Compared with
/// published price lists on 2026-11-23, a date that `config.example.toml` names as well. Models whose price
/// depends on the length of the prompt are missing: a single number would be wrong.
const KNOWN: [(&str, &str, f64, f64, f64); 27] = [
    ("openai", "gpt-4o", 2.5, 1.25, 10.0),
    ("openai", "gpt-4o-mini", 0.15, 0.075, 0.6),
    ("openai", "gpt-4.1", 2.0, 0.5, 8.0),
    ("openai", "gpt-4.1-mini", 0.4, 0.1, 1.6),
    ("openai", "gpt-4.1-nano", 0.1, 0.025, 0.4),
    ("openai", "gpt-5", 1.25, 0.125, 10.0),
    ("openai", "gpt-5-mini", 0.25, 0.025, 2.0),
    ("openai", "gpt-5-nano", 0.05, 0.005, 0.4),
    ("openai", "gpt-5.1", 1.25, 0.125, 10.0),
    ("openai", "gpt-5.2", 1.75, 0.175, 14.0),
    ("openai", "gpt-5.4-mini", 0.75, 0.075, 4.5),
    ("openai", "gpt-5.4-nano", 0.2, 0.02, 1.25),
    ("openai", "o4-mini", 1.1, 0.275, 4.4),
    ("anthropic", "claude-opus-5-5", 4.0, 0.2, 20.0),
    ("anthropic", "claude-opus-5", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-8", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-7", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-6", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-5", 5.0, 0.5, 25.0),
    ("anthropic", "claude-opus-4-1", 15.0, 1.5, 75.0),
    ("anthropic", "claude-sonnet-5-5", 2.0, 0.1, 10.0),
    ("anthropic", "claude-sonnet-5", 2.0, 0.2, 10.0),
    ("anthropic", "claude-sonnet-4-6", 3.0, 0.3, 15.0),
    ("anthropic", "claude-sonnet-4-5", 3.0, 0.3, 15.0),
    ("anthropic", "claude-sonnet-4", 3.0, 0.3, 15.0),
    ("anthropic", "claude-haiku-4-5", 1.0, 0.1, 5.0),
    ("anthropic", "claude-3-5-haiku", 0.8, 0.08, 4.0),
];

/// The built-in price of a model. A date behind its name is that of a snapshot, which costs the same.
fn known(provider: &str, model: &str) -> Option<Price> {
    KNOWN
        .iter()
        .find(|(by, name, ..)| *by == provider && is_snapshot(name, model))
        .map(|&(_, _, input, cached_input, output)| Price {
            input,
            output,
            cached_input: Some(cached_input),
        })
}

/// Whether `model` is `name`, or `name` with a date: `-20251001` or `-2025-08-07`.
fn is_snapshot(name: &str, model: &str) -> bool {
    match model.strip_prefix(name) {
        Some("") => true,
        Some(rest) => {
            let digits = rest.chars().filter(char::is_ascii_digit).count();
            rest.starts_with('-')
                && digits == 8
                && rest.chars().all(|c| c.is_ascii_digit() || c == '-')
        }
        None => false,
    }
}

/// The prices that the user sets, by model: `provider:model`, or just `model` for any provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// Whether no price is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The price of a model: for this provider, else for the model of any provider, else the built-in one. The provider
    /// ends in `:` or `/`.
    pub fn of(&self, model: &ModelId) -> Option<Price> {
        let ModelId { provider, model } = model;
        [
            format!("{provider}:{model}"),
            format!("{provider}/{model}"),
            model.clone(),
        ]
        .iter()
        .find_map(|name| self.0.get(name).copied())
        .or_else(|| known(provider, model))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        input: 2.0,
        output: 8.0,
        cached_input: Some(0.5),
    };

    #[test]
    fn the_cost_is_computed_from_the_tokens() {
        let cost = |price: Price, prompt, completion, cached| {
            price.cost(&TokenUsage::new(prompt, completion, cached))
        };
        let million = Some(1_000_000);
        assert_eq!(cost(PRICE, million, Some(500_000), None), Some(6.0));
        let half = Some(500_000);
        assert_eq!(cost(PRICE, million, Some(0), half), Some(1.25));
        let no_cache = Price {
            cached_input: None,
            ..PRICE
        };
        assert_eq!(cost(no_cache, million, Some(0), half), Some(2.0));
        // The cost stays at least 0 if a server reports more cached tokens than prompt tokens.
        assert_eq!(cost(PRICE, half, Some(0), million), Some(0.25));
        assert_eq!(cost(PRICE, million, None, None), None);
        assert_eq!(cost(PRICE, None, million, None), None);
        assert!((PRICE.at_most(250_000) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_price_with_a_provider_overrides_one_without() {
        let price = |input| Price { input, ..PRICE };
        let prices = Prices(
            [
                ("gpt-5", price(1.0)),
                ("openai:gpt-5", price(2.0)),
                ("groq/llama", price(3.0)),
            ]
            .map(|(name, price)| (name.to_owned(), price))
            .into(),
        );
        let of = |provider: &str, model: &str| {
            let id = ModelId {
                provider: provider.to_owned(),
                model: model.to_owned(),
            };
            prices.of(&id).map(|price| price.input)
        };
        assert_eq!(of("openai", "gpt-5"), Some(2.0));
        assert_eq!(of("work", "gpt-5"), Some(1.0));
        assert_eq!(of("groq", "llama"), Some(3.0));
        assert_eq!(of("work", "llama"), None);
        // Built in, unless the user sets one.
        assert_eq!(of("openai", "gpt-5-mini-2025-08-07"), Some(0.25));
        assert_eq!(of("openai", "gpt-5-mini-preview"), None);
        assert_eq!(of("anthropic", "claude-haiku-4-5-20251001"), Some(1.0));
        assert_eq!(of("work", "gpt-5-mini"), None);
    }

    #[test]
    fn prices_are_finite_and_not_negative() {
        assert_eq!(PRICE.check(), Ok(()));
        for bad in [-0.1, f64::NAN, f64::INFINITY] {
            let key = |price: Price| price.check().map_err(|(key, _)| key);
            assert_eq!(
                key(Price {
                    input: bad,
                    ..PRICE
                }),
                Err("input")
            );
            assert_eq!(
                key(Price {
                    output: bad,
                    ..PRICE
                }),
                Err("output")
            );
            let cached_input = Some(bad);
            assert_eq!(
                key(Price {
                    cached_input,
                    ..PRICE
                }),
                Err("cached_input")
            );
        }
    }
}
