use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::gate::Gate;
use crate::model::{ChatModel, ChatRequest, ChatStream, Middleware};

/// A model whose calls go through a gate.
pub struct Paced {
    model: Arc<dyn ChatModel>,
    gate: Arc<Gate>,
}

impl Paced {
    /// Wraps this model with this gate.
    pub fn new(model: Arc<dyn ChatModel>, gate: Arc<Gate>) -> Self {
        if model.is_local() {
            gate.is_local();
        }
        Self { model, gate }
    }
}

impl Middleware for Paced {
    fn inner(&self) -> &dyn ChatModel {
        &*self.model
    }

    fn call(&self, request: ChatRequest) -> ChatStream<'_> {
        let characters = request.characters();
        // The call starts after the wait, so that the wait does not count towards its timeouts.
        stream::once(async move {
            let mut pass = self.gate.enter(characters).await;
            self.model
                .chat(request)
                .inspect(move |event| pass.see(event))
        })
        .flatten()
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;
    use crate::batch::pace::{Concurrency, Pace};
    use crate::model::{Message, Purpose, Role, ScriptedModel, complete};

    fn paced(script: &str, pace: Pace) -> (Paced, Arc<Gate>) {
        let model = ScriptedModel::parse(Path::new("script.toml"), script).unwrap();
        let gate = Gate::new(pace);
        (Paced::new(Arc::new(model), Arc::clone(&gate)), gate)
    }

    fn question() -> ChatRequest {
        ChatRequest::new(Purpose::Write, vec![Message::new(Role::User, "Hello?")])
    }

    const PACE: Pace = Pace {
        concurrency: Concurrency::Fixed(2),
        requests_per_minute: None,
        tokens_per_minute: None,
    };

    #[tokio::test]
    async fn requests_are_spread_over_the_minute() {
        let pace = Pace {
            requests_per_minute: Some(600),
            ..PACE
        };
        let (model, _) = paced("[[reply]]\ntimes = 0\ntext = 'again'\n", pace);
        let begun = Instant::now();
        // One second's worth of calls and the current one start immediately; the others follow at ten per
        // second.
        for _ in 0..16 {
            let (reply, outcome) = complete(&model, question(), |_| ()).await;
            assert_eq!((reply.text.as_str(), outcome), ("again", Ok(())));
        }
        let took = begun.elapsed();
        assert!((400..=5000).contains(&took.as_millis()), "{took:?}");
    }

    #[tokio::test]
    async fn a_slot_is_released_however_the_call_ends() {
        let pace = Pace {
            concurrency: Concurrency::Fixed(1),
            ..PACE
        };
        let (model, gate) = paced("[[reply]]\ntext = 'one'\n", pace);
        {
            let mut given_up = model.chat(question());
            let _ = given_up.next().await;
            // There is one slot.
            let second = tokio::time::timeout(Duration::from_millis(50), gate.enter(0)).await;
            assert!(second.is_err());
        }
        let second = tokio::time::timeout(Duration::from_secs(5), gate.enter(0)).await;
        assert!(second.is_ok());
    }

    #[tokio::test]
    async fn a_failure_that_affects_all_calls_is_reported() {
        let (model, gate) = paced(
            "[[reply]]\nerror = { class = 'auth', message = 'no key' }\n",
            PACE,
        );
        let (_, outcome) = complete(&model, question(), |_| ()).await;
        assert!(outcome.is_err());
        gate.hopeless().await;
        assert!(gate.failure().is_some());
    }
}
