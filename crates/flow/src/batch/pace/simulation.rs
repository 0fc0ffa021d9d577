//! Simulates batches against different kinds of servers, with a simulated clock.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::controller::{Concurrency, Controller};

/// The server's time to the first token and to the end of the reply.
const FIRST: f64 = 0.2;
const WHOLE: f64 = 2.0;

/// The wait that the server requests after a refusal.
const RETRY_AFTER: f64 = 1.0;

/// A simulated server. Times are in seconds.
#[derive(Clone, Copy)]
struct Server {
    /// The number of calls it handles concurrently. Other calls wait in the queue.
    places: usize,
    /// The maximum length of the queue; excess calls are refused.
    queue: usize,
    /// The share of calls that it refuses at any load.
    refuses: f64,
}

#[derive(Clone, Copy)]
struct Call {
    begun: f64,
    epoch: u32,
    again: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Begin,
    First,
    End,
}

struct Batch {
    server: Server,
    controller: Controller,
    calls: Vec<Call>,
    /// The upcoming events: time, call, kind.
    events: BinaryHeap<Reverse<(Duration, usize, What)>>,
    waiting: VecDeque<usize>,
    busy: usize,
    under_way: usize,
    most: usize,
    not_before: f64,
    done: usize,
    random: fastrand::Rng,
    longest: f64,
}

/// The result of a batch of a given duration.
struct Outcome {
    done: usize,
    /// The maximum number of concurrent calls.
    most: usize,
    /// The longest time to a first token.
    longest: f64,
}

fn batch(concurrency: Concurrency, is_local: bool, server: Server, seconds: f64) -> Outcome {
    let mut controller = Controller::new(concurrency);
    if is_local {
        controller.is_local();
    }
    let mut batch = Batch {
        server,
        controller,
        calls: Vec::new(),
        events: BinaryHeap::new(),
        waiting: VecDeque::new(),
        busy: 0,
        under_way: 0,
        most: 0,
        not_before: 0.0,
        done: 0,
        random: fastrand::Rng::with_seed(7),
        longest: 0.0,
    };
    batch.fill(0.0);
    while let Some(Reverse((at, call, what))) = batch.events.pop() {
        let now = at.as_secs_f64();
        if now > seconds {
            break;
        }
        match what {
            What::Begin => batch.begin(call, now),
            What::First => {
                let wait = now - batch.calls[call].begun;
                batch.longest = batch.longest.max(wait);
            }
            What::End => batch.end(call, now),
        }
        batch.fill(now);
    }
    Outcome {
        done: batch.done,
        most: batch.most,
        longest: batch.longest,
    }
}

impl Batch {
    fn at(&mut self, time: f64, call: usize, what: What) {
        self.events
            .push(Reverse((Duration::from_secs_f64(time), call, what)));
    }

    /// Starts as many calls as the limit allows.
    fn fill(&mut self, now: f64) {
        while self.under_way < self.controller.limit() {
            self.under_way += 1;
            self.most = self.most.max(self.under_way);
            let begun = now.max(self.not_before);
            self.calls.push(Call {
                begun,
                epoch: self.controller.epoch(),
                again: false,
            });
            self.at(begun, self.calls.len() - 1, What::Begin);
        }
    }

    fn begin(&mut self, call: usize, now: f64) {
        let full = self.busy == self.server.places && self.waiting.len() >= self.server.queue;
        if full || self.random.f64() < self.server.refuses {
            if self.controller.refused(self.calls[call].epoch) {
                self.not_before = self.not_before.max(now + RETRY_AFTER);
            }
            self.calls[call].epoch = self.controller.epoch();
            self.calls[call].again = true;
            self.at(now + RETRY_AFTER, call, What::Begin);
        } else if self.busy == self.server.places {
            self.waiting.push_back(call);
        } else {
            self.answer(call, now);
        }
    }

    fn answer(&mut self, call: usize, now: f64) {
        self.busy += 1;
        self.at(now + FIRST, call, What::First);
        self.at(now + WHOLE, call, What::End);
    }

    fn end(&mut self, call: usize, now: f64) {
        let Call {
            begun,
            epoch,
            again,
        } = self.calls[call];
        let first = now - WHOLE + FIRST - begun;
        self.controller
            .answered((!again).then_some(first), self.under_way, epoch);
        self.busy -= 1;
        self.under_way -= 1;
        self.done += 1;
        if let Some(next) = self.waiting.pop_front() {
            self.answer(next, now);
        }
    }
}

const HOUR: f64 = 3600.0;

/// Refusals of 5 % or 10 % of calls at any load must not slow a batch down.
#[test]
fn occasional_refusals_do_not_slow_a_batch_down() {
    for refuses in [0.05, 0.1] {
        let server = Server {
            places: 16,
            queue: 1000,
            refuses,
        };
        let fixed = batch(Concurrency::Fixed(16), false, server, HOUR).done;
        let auto = batch(Concurrency::Auto, false, server, HOUR).done;
        assert!(auto * 100 > fixed * 95, "{refuses}: {auto} of {fixed}");
        // Nearly as many as without refusals.
        assert!(fixed * 10 > 16 * 1800 * 9, "{refuses}: {fixed}");
    }
}

/// A server without a queue refuses calls beyond its slots. The limit must find the number of slots.
#[test]
fn a_server_that_refuses_excess_calls_is_fully_used() {
    for places in [2, 16, 64] {
        let server = Server {
            places,
            queue: 0,
            refuses: 0.0,
        };
        let auto = batch(Concurrency::Auto, false, server, HOUR);
        let all = places * 1800;
        assert!(
            auto.done * 20 > all * 17,
            "{places}: {} of {all}",
            auto.done
        );
    }
}

/// A local server that handles one call at a time must stay busy without a queue.
#[test]
fn a_local_server_with_one_slot_has_no_queue() {
    let server = Server {
        places: 1,
        queue: 1000,
        refuses: 0.0,
    };
    let auto = batch(Concurrency::Auto, true, server, HOUR);
    assert!(auto.most <= 2, "{}", auto.most);
    assert!(auto.longest < 2.0 * WHOLE, "{}", auto.longest);
    assert!(auto.done >= 1798, "{}", auto.done);
}

#[test]
fn a_local_server_with_more_slots_is_fully_used() {
    for places in [4, 16] {
        let server = Server {
            places,
            queue: 1000,
            refuses: 0.0,
        };
        let auto = batch(Concurrency::Auto, true, server, HOUR);
        let all = places * 1800;
        assert!(auto.done * 10 > all * 9, "{places}: {} of {all}", auto.done);
        assert!(auto.most <= 2 * places, "{places}: {}", auto.most);
    }
}
