//! Rate limits shared by all workers. The server has an object for each model, which schedules the calls.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use restate_sdk::prelude::{
    ContextReadState as _, ContextWriteState as _, HandlerResult, Json, ObjectContext,
};
use serde::{Deserialize, Serialize};

use super::client::RETRY_PAUSE;
use super::ingress::Ingress;
use super::job::Rates;
use crate::batch::pace::Rate;
use crate::model::{ChatEvent, ChatModel, ChatRequest, ChatStream, Middleware};
use crate::types::CHARACTERS_PER_TOKEN;

/// The estimated tokens of a reply before the call.
const ANSWER: usize = 256;

/// A request to the object of a model.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Turn {
    rates: Rates,
    /// The time on the server's clock in seconds, because machine clocks differ.
    now: f64,
    /// The number of calls about to be made.
    requests: f64,
    /// The tokens of these calls; negative to correct an estimate that was too high.
    tokens: f64,
}

/// The rate limit objects, one per model, with its name as the key.
pub(super) struct Limits;

#[restate_sdk::object(name = "ReflectLimit", journal_retention = "0s")]
impl Limits {
    /// Returns the milliseconds until the call may begin. Later calls queue behind it.
    #[handler]
    async fn enter(&self, ctx: ObjectContext<'_>, turn: Json<Turn>) -> HandlerResult<u64> {
        let turn = turn.into_inner();
        let mut wait: f64 = 0.0;
        let limits = [
            ("requests", turn.rates.requests_per_minute, turn.requests),
            ("tokens", turn.rates.tokens_per_minute, turn.tokens),
        ];
        for (key, limit, amount) in limits {
            let Some(limit) = limit else { continue };
            let paid: Option<f64> = ctx.get(key).await?;
            let mut rate = Rate::since(limit, paid.unwrap_or_default());
            if amount > 0.0 {
                wait = wait.max(rate.take(amount, turn.now));
            } else {
                rate.add(amount, turn.now);
            }
            ctx.set(key, rate.paid());
        }
        let wait = Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX);
        Ok(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A model whose calls respect the shared limits.
pub(super) struct Limited {
    model: Arc<dyn ChatModel>,
    ingress: Arc<Ingress>,
    rates: Rates,
}

impl Limited {
    pub(super) fn new(model: Arc<dyn ChatModel>, ingress: Arc<Ingress>, rates: Rates) -> Self {
        Self {
            model,
            ingress,
            rates,
        }
    }

    /// Requests a turn until the server responds. Without a response, no call is allowed.
    async fn enter(&self, requests: f64, tokens: f64) -> Duration {
        loop {
            let asked = self.ingress.enter(self.model.id(), |now| Turn {
                rates: self.rates,
                now,
                requests,
                tokens,
            });
            match asked.await {
                Ok(wait) => return wait,
                Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
            }
        }
    }
}

impl Middleware for Limited {
    fn inner(&self) -> &dyn ChatModel {
        &*self.model
    }

    fn call(&self, request: ChatRequest) -> ChatStream<'_> {
        #[expect(clippy::cast_precision_loss, reason = "no prompt has 2^53 tokens")]
        let estimate = (request.characters() / CHARACTERS_PER_TOKEN + ANSWER) as f64;
        stream::once(async move {
            let wait = self.enter(1.0, estimate).await;
            tokio::time::sleep(wait).await;
            let mut used = None;
            self.model.chat(request).then(move |event| {
                match &event {
                    Ok(ChatEvent::Usage(usage)) => used = usage.total,
                    Ok(ChatEvent::Retry { .. }) => used = None,
                    _ => {}
                }
                let is_over = matches!(&event, Ok(ChatEvent::End(_)) | Err(_));
                // A retry within the call also counts as a request.
                let is_again = matches!(&event, Ok(ChatEvent::Retry { .. }));
                async move {
                    #[expect(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
                    let correction = used
                        .filter(|_| is_over && self.rates.tokens_per_minute.is_some())
                        .map(|used| used as f64 - estimate);
                    if is_again || correction.is_some() {
                        let again = f64::from(u8::from(is_again));
                        self.enter(again, correction.unwrap_or_default()).await;
                    }
                    event
                }
            })
        })
        .flatten()
        .boxed()
    }
}
