use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{model_id::ModelId, usage::TokenUsage};

/// Prices are per so many tokens.
const PER: f64 = 1e6;

/// What a model's tokens cost, in units of whatever currency the user thinks in, per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// A million tokens of prompts. At least 0.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// A million tokens that the model writes, reasoning included. At least 0.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// A million tokens of prompts that the server takes from its cache. At least 0; default: as `input`.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cached_input: Option<f64>,
}

impl Price {
    /// Says which key is wrong, and a sentence about it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let prices = [
            ("input", Some(self.input)),
            ("output", Some(self.output)),
            ("cached_input", self.cached_input),
        ];
        for (key, price) in prices {
            // Written so that NaN is wrong, too.
            if price.is_some_and(|price| !(price >= 0.0 && price.is_finite())) {
                return Err((key, format!("`{key}` must be a number, at least 0")));
            }
        }
        Ok(())
    }

    /// What a call cost; `None` where the server did not count its tokens. Where it says nothing of its cache, it
    /// took nothing from it.
    pub fn cost(&self, usage: &TokenUsage) -> Option<f64> {
        let (prompt, completion) = (usage.prompt?, usage.completion?);
        let cached = usage.cached.unwrap_or(0).min(prompt);
        let cached_input = self.cached_input.unwrap_or(self.input);
        let sum = amount(prompt - cached) * self.input
            + amount(cached) * cached_input
            + amount(completion) * self.output;
        Some(sum / PER)
    }

    /// What so many tokens cost at the most, whoever wrote them.
    pub fn at_most(&self, tokens: u64) -> f64 {
        amount(tokens) * self.input.max(self.output) / PER
    }
}

#[expect(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
fn amount(tokens: u64) -> f64 {
    tokens as f64
}

/// The prices that the user knows, by model: `provider:model`, or just `model` whoever provides it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Prices(pub BTreeMap<String, Price>);

impl Prices {
    /// Whether no price is known.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The price of a model. One for this provider goes before one for the model of any provider; a `/` after the
    /// provider does as well as a `:`.
    pub fn of(&self, model: &ModelId) -> Option<Price> {
        let ModelId { provider, model } = model;
        [
            format!("{provider}:{model}"),
            format!("{provider}/{model}"),
            model.clone(),
        ]
        .iter()
        .find_map(|name| self.0.get(name).copied())
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
    fn a_call_costs_what_its_tokens_cost() {
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
        // A server that counts more cached tokens than there are is not owed money.
        assert_eq!(cost(PRICE, half, Some(0), million), Some(0.25));
        assert_eq!(cost(PRICE, million, None, None), None);
        assert_eq!(cost(PRICE, None, million, None), None);
        assert!((PRICE.at_most(250_000) - 2.0).abs() < 1e-12);
    }

    #[test]
    fn a_name_with_its_provider_goes_before_one_without() {
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
    }

    #[test]
    fn a_price_is_a_number_that_is_not_negative() {
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
