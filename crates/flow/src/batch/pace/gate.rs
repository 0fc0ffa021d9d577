//! What all calls of a batch go through.

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

/// Tokens that an answer is taken to have before the first has come.
const FIRST_ANSWER: f64 = 256.0;

/// How much the latest answer says about the next.
const WEIGHT: f64 = 0.1;

/// How fast a batch may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many tasks, and how many calls, at once.
    pub concurrency: Concurrency,
    /// The most requests that are begun in a minute, spread evenly. At least 1.
    pub requests_per_minute: Option<u32>,
    /// The most tokens a minute, prompts and answers together. At least 1. Before a call they are estimated, and
    /// after it the estimate is corrected.
    pub tokens_per_minute: Option<u32>,
}

/// One for all models of a batch: holds calls back until there is room for them, and learns from what becomes of
/// them.
#[derive(Debug)]
pub struct Gate {
    inner: Mutex<Inner>,
    /// A call ended, or the limit changed.
    moved: Notify,
    /// There is room for another task.
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
    /// Tokens that an answer has, by the latest ones.
    answer: f64,
    /// The server asked not to be asked before.
    not_before: Instant,
    failure: Option<ModelError>,
}

impl Gate {
    /// A gate for a batch that begins now.
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

    /// How many tasks may be under way; at least 1.
    pub fn limit(&self) -> usize {
        self.inner().controller.limit()
    }

    /// Lets so many tasks be under way, as somebody else has found out.
    #[cfg(feature = "restate")]
    pub fn set_limit(&self, limit: usize) {
        self.inner().controller = Controller::new(Concurrency::Fixed(limit));
        self.room.notify_one();
    }

    /// Waits until the limit may have risen.
    pub async fn room(&self) {
        self.room.notified().await;
    }

    /// Waits until a call has failed in a way in which all others would fail as well.
    pub async fn hopeless(&self) {
        self.hopeless.cancelled().await;
    }

    /// That failure, if there was one.
    pub fn failure(&self) -> Option<ModelError> {
        self.inner().failure.clone()
    }

    /// A call has failed in such a way.
    pub fn give_up(&self, error: &ModelError) {
        self.inner().failure.get_or_insert_with(|| error.clone());
        self.hopeless.cancel();
    }

    /// Waits for its turn. `characters` are sent.
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
        // From here on the place is given back, whatever happens.
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

    /// A model of this batch is served on this machine.
    pub(super) fn is_local(&self) {
        self.inner().controller.is_local();
    }

    /// A request failed, and may be made again.
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

/// The longest that all calls are held back because one was told to wait: as long as the call itself waits.
const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// A call under way. Its place is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Pass {
    gate: Arc<Gate>,
    begun: Instant,
    epoch: u32,
    /// Tokens that were taken for it.
    estimate: f64,
    usage: TokenUsage,
    /// When the answer began to come.
    first: Option<Duration>,
    /// Whether it was made more than once.
    again: bool,
    good: bool,
}

impl Pass {
    /// Learns from what comes.
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
                // The next try is made without asking here; it counts all the same.
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
            // What had to be asked for twice says nothing about how long an answer takes.
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
