//! The gate that all calls of a batch pass through.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::controller::{Concurrency, Controller};
use super::rate::Rate;
use crate::model::{ChatEvent, ErrorClass, ModelError};
use crate::types::{CHARACTERS_PER_TOKEN, TokenUsage};

/// The estimated tokens of a reply before the first one has arrived.
const FIRST_ANSWER: f64 = 256.0;

/// The weight of the latest reply in the estimate.
const WEIGHT: f64 = 0.1;

/// How fast a batch may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The number of concurrent tasks, and of concurrent calls.
    pub concurrency: Concurrency,
    /// The maximum number of requests started per minute, spread evenly. At least 1.
    pub requests_per_minute: Option<u32>,
    /// The maximum number of tokens per minute, input and output. At least 1. They are estimated before a
    /// call, and the estimate is corrected after it.
    pub tokens_per_minute: Option<u32>,
}

/// The gate for all models of a batch. Delays calls until there is capacity, and learns from their results.
#[derive(Debug)]
pub struct Gate {
    inner: Mutex<Inner>,
    /// Notified when a call ends or the limit changes.
    moved: Notify,
    /// Notified when there is capacity for another task.
    room: Notify,
    hopeless: CancellationToken,
    began: Instant,
}

#[derive(Debug)]
struct Inner {
    controller: Controller,
    calls: usize,
    requests: Option<Rate>,
    tokens: Option<Rate>,
    /// The average tokens of a reply, from the latest ones.
    answer: f64,
    /// No calls before this time, as the server requested.
    not_before: Instant,
    failure: Option<ModelError>,
}

impl Gate {
    /// Creates a gate for a batch that starts now.
    pub fn new(pace: Pace) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            inner: Mutex::new(Inner {
                controller: Controller::new(pace.concurrency),
                calls: 0,
                requests: pace.requests_per_minute.map(Rate::per_minute),
                tokens: pace.tokens_per_minute.map(Rate::per_minute),
                answer: FIRST_ANSWER,
                not_before: now,
                failure: None,
            }),
            moved: Notify::new(),
            room: Notify::new(),
            hopeless: CancellationToken::new(),
            began: now,
        })
    }

    /// Returns the maximum number of concurrent tasks; at least 1.
    pub fn limit(&self) -> usize {
        self.inner().controller.limit()
    }

    /// Sets a fixed limit that was determined elsewhere.
    #[cfg(feature = "restate")]
    pub fn set_limit(&self, limit: usize) {
        self.inner().controller = Controller::new(Concurrency::Fixed(limit));
        self.room.notify_one();
    }

    /// Waits until the limit may have risen.
    pub async fn room(&self) {
        self.room.notified().await;
    }

    /// Waits for a failure that would affect all other calls as well.
    pub async fn hopeless(&self) {
        self.hopeless.cancelled().await;
    }

    /// Returns that failure, if there was one.
    pub fn failure(&self) -> Option<ModelError> {
        self.inner().failure.clone()
    }

    /// Records a failure that would affect all other calls as well.
    pub fn give_up(&self, error: &ModelError) {
        self.inner().failure.get_or_insert_with(|| error.clone());
        self.hopeless.cancel();
    }

    /// Waits for permission to send a call with this many characters.
    pub(super) async fn enter(self: &Arc<Self>, characters: usize) -> Pass {
        loop {
            let moved = self.moved.notified();
            {
                let mut inner = self.inner();
                if inner.calls < inner.controller.limit() {
                    inner.calls += 1;
                    break;
                }
            }
            moved.await;
        }
        // From here on, dropping the pass releases the slot.
        let mut pass = Pass {
            gate: Arc::clone(self),
            begun: Instant::now(),
            epoch: 0,
            estimate: 0.0,
            usage: TokenUsage::default(),
            first: None,
            again: false,
            good: false,
        };
        let wait = {
            let mut inner = self.inner();
            #[expect(clippy::cast_precision_loss, reason = "no prompt has 2^53 tokens")]
            let prompt = (characters / CHARACTERS_PER_TOKEN) as f64;
            pass.estimate = prompt + inner.answer;
            let now = self.now();
            let requests = inner.requests.as_mut().map(|rate| rate.take(1.0, now));
            let tokens = inner
                .tokens
                .as_mut()
                .map(|rate| rate.take(pass.estimate, now));
            requests.unwrap_or(0.0).max(tokens.unwrap_or(0.0))
        };
        let wait = Duration::try_from_secs_f64(wait).unwrap_or(Duration::MAX);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        loop {
            let not_before = self.inner().not_before;
            if Instant::now() >= not_before {
                break;
            }
            tokio::time::sleep_until(not_before).await;
        }
        pass.begun = Instant::now();
        pass.epoch = self.inner().controller.epoch();
        pass
    }

    fn now(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Records that a model of this batch runs on this machine.
    pub(super) fn is_local(&self) {
        self.inner().controller.is_local();
    }

    /// Handles a failed request, which may be retried.
    fn failed(&self, error: &ModelError, epoch: u32) {
        let mut inner = self.inner();
        let refused = error.class == ErrorClass::Rate || matches!(error.status, Some(503 | 529));
        let all_wait = !refused || inner.controller.refused(epoch);
        let wait = error
            .retry_after
            .filter(|_| all_wait && error.class.is_retryable());
        if let Some(wait) = wait {
            inner.not_before = inner
                .not_before
                .max(Instant::now() + wait.min(LONGEST_WAIT));
        }
    }
}

/// The longest delay of all calls after one was told to wait: as long as the call itself waits.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A call in progress. Dropping it releases its slot.
#[derive(Debug)]
pub(super) struct Pass {
    gate: Arc<Gate>,
    begun: Instant,
    epoch: u32,
    /// The estimated tokens that were reserved for it.
    estimate: f64,
    usage: TokenUsage,
    /// The time to the first token.
    first: Option<Duration>,
    /// Whether it was retried.
    again: bool,
    good: bool,
}

impl Pass {
    /// Learns from an event of the reply.
    pub(super) fn see(&mut self, event: &Result<ChatEvent, ModelError>) {
        match event {
            Ok(ChatEvent::Text(_) | ChatEvent::Reasoning(_)) => {
                self.first.get_or_insert_with(|| self.begun.elapsed());
            }
            Ok(ChatEvent::Usage(usage)) => self.usage = *usage,
            Ok(ChatEvent::Retry { error, .. }) => {
                self.again = true;
                self.usage = TokenUsage::default();
                self.gate.failed(error, self.epoch);
                let now = self.gate.now();
                let mut inner = self.gate.inner();
                self.epoch = inner.controller.epoch();
                // The retry does not pass through the gate, but it counts as a request.
                if let Some(rate) = &mut inner.requests {
                    rate.add(1.0, now);
                }
            }
            Ok(ChatEvent::End(_)) => self.good = true,
            Ok(ChatEvent::Logprobs(_) | ChatEvent::Notice(_)) => {}
            Err(error) => {
                self.gate.failed(error, self.epoch);
                if error.class.affects_all_calls() {
                    self.gate.give_up(error);
                }
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let now = self.gate.now();
        let mut inner = self.gate.inner();
        let calls = inner.calls;
        inner.calls -= 1;
        #[expect(clippy::cast_precision_loss, reason = "no call has 2^53 tokens")]
        if let Some(total) = self.usage.total.map(|total| total as f64) {
            let answer = self
                .usage
                .completion
                .map_or(inner.answer, |tokens| tokens as f64);
            inner.answer += WEIGHT * (answer - inner.answer);
            let estimate = self.estimate;
            if let Some(rate) = &mut inner.tokens {
                rate.add(total - estimate, now);
            }
        }
        if self.good {
            // The time of a retried call is meaningless.
            let first = self.first.filter(|_| !self.again);
            inner
                .controller
                .answered(first.map(|it| it.as_secs_f64()), calls, self.epoch);
        }
        drop(inner);
        self.gate.moved.notify_waiters();
        self.gate.room.notify_one();
    }
}
