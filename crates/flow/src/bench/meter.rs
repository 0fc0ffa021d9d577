//! Measures the usage of an arm.

use crate::engine::Observer;
use crate::model::CallReport;
use crate::types::{CHARACTERS_PER_TOKEN, Event, Prices, Stamped, TokenUsage};

/// Adds up the calls of one arm on one task.
#[derive(Debug, Clone, Default)]
pub(super) struct Meter {
    /// The number of requests, including retries.
    pub(super) calls: u32,
    /// The token usage that the server reports.
    pub(super) usage: TokenUsage,
    /// The number of output tokens and evaluated (uncached) prompt tokens, estimated if the server
    /// reports none.
    pub(super) tokens: u64,
    /// The number of all tokens, including cached prompt tokens, estimated if the server reports
    /// none.
    pub(super) total: u64,
    /// The price of all calls, or `None` once a call has no price.
    pub(super) cost: Option<f64>,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self {
            cost: Some(0.0),
            ..Self::default()
        }
    }

    /// Adds a finished call.
    pub(super) fn take(&mut self, call: &CallReport<'_>, prices: &Prices) {
        let usage = call.reply.usage;
        let price = prices.of(call.model);
        self.add(call, price.and_then(|price| price.cost(&usage)));
    }

    fn add(&mut self, call: &CallReport<'_>, cost: Option<f64>) {
        let usage = call.reply.usage;
        let estimate = (call.characters() / CHARACTERS_PER_TOKEN) as u64;
        let total = usage.total.unwrap_or(estimate);
        self.calls += call.reply.attempts;
        self.usage += usage;
        self.total += total;
        self.tokens += total - usage.cached.unwrap_or(0).min(usage.prompt.unwrap_or(0));
        self.cost = self.cost.zip(cost).map(|(sum, cost)| sum + cost);
    }
}

impl Observer for Meter {
    fn on_event(&mut self, _: &Stamped) {}

    fn on_call(&mut self, event: &Stamped, call: &CallReport<'_>) {
        if let Event::Call { cost, .. } = &event.event {
            self.add(call, *cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{ChatRequest, Message, Purpose, Reply, Role};
    use crate::types::ModelId;

    fn call(meter: &mut Meter, usage: TokenUsage) {
        let id = ModelId {
            provider: "p".to_owned(),
            model: "m".to_owned(),
        };
        let prompt = "x".repeat(40);
        let request = ChatRequest::new(Purpose::Write, vec![Message::new(Role::User, prompt)]);
        let reply = Reply {
            text: "y".repeat(20),
            usage,
            attempts: 1,
            ..Reply::default()
        };
        let report = CallReport {
            model: &id,
            address: None,
            request: &request,
            reply: &reply,
            replayed: false,
            duration: Duration::ZERO,
            error: None,
        };
        meter.take(&report, &Prices::default());
    }

    #[test]
    fn cached_prompt_tokens_are_not_evaluated() {
        let mut meter = Meter::new();
        call(&mut meter, TokenUsage::new(Some(100), Some(20), Some(90)));
        assert_eq!((meter.tokens, meter.total, meter.calls), (30, 120, 1));
        assert_eq!(meter.cost, None);
        // Without counts, a token is estimated as four characters.
        call(&mut meter, TokenUsage::default());
        assert_eq!((meter.tokens, meter.total), (45, 135));
    }
}
