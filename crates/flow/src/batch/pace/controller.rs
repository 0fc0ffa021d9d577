//! Controls how many tasks are in progress, by a pure rule similar to TCP's congestion control. The limit
//! grows step by step while replies stay as fast as before, and shrinks by a factor when the server pushes
//! back. Unlike TCP, a single refusal does not count as congestion: servers refuse calls occasionally at any
//! load, and say how long that call has to wait.

use std::str::FromStr;

/// The maximum concurrency that a user may request.
pub const MAX_CONCURRENCY: usize = 1024;

/// The maximum concurrency in automatic mode.
const AUTO_MOST: f64 = 128.0;

/// The initial limit in automatic mode.
const AUTO_FIRST: f64 = 4.0;

/// The initial limit for a server on this machine. It often handles one call at a time, so the time without a
/// queue is the one to compare with.
const AUTO_FIRST_LOCAL: f64 = 1.0;

/// The weight of the latest call in the share of refusals.
const REFUSAL_WEIGHT: f64 = 1.0 / 16.0;

/// The limit grows up to this share of refusals. This and the next two values come from the simulation: with
/// them, a batch keeps its pace under 10 % of refusals, and uses 90 % of a server that refuses excess calls.
const CALM: f64 = 0.15;

/// Up to this share, refusals are isolated: each affects only its own call. Six in a row exceed it.
const ISOLATED: f64 = 0.3;

/// The factor of the limit after refusals.
const AFTER_REFUSAL: f64 = 0.75;

/// The factor of the limit after slow replies.
const AFTER_SLOWNESS: f64 = 0.8;

/// The minimum number of replies for a meaningful mean time.
const ROUND: u32 = 8;

/// Replies count as slow above this factor of the best time plus these seconds.
const SLOW: (f64, f64) = (2.0, 0.1);

/// After this many rounds, one round uses a quarter of the calls, and its time becomes the new best time. A
/// server may become slower permanently, and a slowly growing queue would otherwise go unnoticed. With half
/// of the calls, a queue of any length would look like just twice the best time.
const LOOK: u32 = 64;
const LOOK_WITH: f64 = 0.25;

/// The number of concurrent tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// As many as the server handles without refusals or slowdown.
    Auto,
    /// This many, from 1 to [`MAX_CONCURRENCY`].
    Fixed(usize),
}

impl FromStr for Concurrency {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(Self::Auto);
        }
        text.parse()
            .ok()
            .filter(|number| (1..=MAX_CONCURRENCY).contains(number))
            .map(Self::Fixed)
            .ok_or_else(|| format!("it must be `auto` or a number from 1 to {MAX_CONCURRENCY}"))
    }
}

/// The rule. Times are in seconds.
#[derive(Debug)]
pub(super) struct Controller {
    fixed: bool,
    limit: f64,
    /// Whether the limit still doubles, because no bound was hit yet.
    doubles: bool,
    /// Counts the changes of the limit downwards or back. Results of calls that started in an earlier epoch
    /// are ignored.
    epoch: u32,
    /// The last epoch that refusals ended.
    refused_in: Option<u32>,
    /// The recent share of refused calls.
    refusals: f64,
    round: Round,
    rounds: u32,
    /// The mean time of the best round.
    best: Option<f64>,
    /// The limit to restore after a round with few calls.
    back_to: Option<f64>,
}

/// The replies since the limit last changed.
#[derive(Debug, Default)]
struct Round {
    answers: u32,
    seconds: f64,
    /// The maximum number of concurrent calls.
    peak: usize,
}

impl Controller {
    pub(super) fn new(concurrency: Concurrency) -> Self {
        let (fixed, limit) = match concurrency {
            Concurrency::Auto => (false, AUTO_FIRST),
            #[expect(clippy::cast_precision_loss, reason = "at most 1024")]
            Concurrency::Fixed(number) => (true, number as f64),
        };
        Self {
            fixed,
            limit,
            doubles: true,
            epoch: 0,
            refused_in: None,
            refusals: 0.0,
            round: Round::default(),
            rounds: 0,
            best: None,
            back_to: None,
        }
    }

    /// Returns the current limit; at least 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 to 1024"
    )]
    pub(super) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// Returns the current epoch, to be stored with a call that starts now.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Lowers the initial limit for a server on this machine. Has no effect after the first reply.
    pub(super) fn is_local(&mut self) {
        let begins = self.epoch == 0 && self.rounds == 0 && self.round.answers == 0;
        if begins && !self.fixed {
            self.limit = AUTO_FIRST_LOCAL;
        }
    }

    /// Records that a call of this epoch was refused because of the load. Returns whether other calls should
    /// wait too; an isolated refusal does not affect them.
    pub(super) fn refused(&mut self, epoch: u32) -> bool {
        if epoch != self.epoch {
            return self.refused_in == Some(epoch);
        }
        self.refusals += REFUSAL_WEIGHT * (1.0 - self.refusals);
        if self.refusals <= ISOLATED {
            return false;
        }
        if !self.fixed {
            self.refused_in = Some(epoch);
            self.refusals = 0.0;
            self.fall(AFTER_REFUSAL);
        }
        true
    }

    /// Records that a call of this epoch was answered with `calls` in progress. `seconds` is the time to the
    /// first token; `None` if the call was retried, which makes its time meaningless.
    pub(super) fn answered(&mut self, seconds: Option<f64>, calls: usize, epoch: u32) {
        self.refusals *= 1.0 - REFUSAL_WEIGHT;
        let Some(seconds) = seconds else {
            return;
        };
        if self.fixed || epoch != self.epoch {
            return;
        }
        self.round.answers += 1;
        self.round.seconds += seconds;
        self.round.peak = self.round.peak.max(calls);
        if self.round.answers < ROUND || f64::from(self.round.answers) < self.limit {
            return;
        }
        let round = std::mem::take(&mut self.round);
        let mean = round.seconds / f64::from(round.answers);
        if let Some(limit) = self.back_to.take() {
            self.best = Some(mean);
            self.limit = limit;
            self.epoch += 1;
            return;
        }
        let best = self.best.map_or(mean, |best| mean.min(best));
        self.best = Some(best);
        if mean > best * SLOW.0 + SLOW.1 {
            self.fall(AFTER_SLOWNESS);
        } else if round.peak >= self.limit() && self.refusals <= CALM {
            // A limit that is not reached says nothing about higher ones.
            let step = if self.doubles { self.limit } else { 1.0 };
            self.limit = (self.limit + step).min(AUTO_MOST);
        }
        self.rounds += 1;
        if self.rounds.is_multiple_of(LOOK) {
            self.back_to = Some(self.limit);
            self.limit = (self.limit * LOOK_WITH).max(1.0);
            self.epoch += 1;
        }
    }

    fn fall(&mut self, factor: f64) {
        if self.fixed {
            return;
        }
        let limit = self.back_to.take().unwrap_or(self.limit);
        self.limit = (limit * factor).max(1.0);
        self.doubles = false;
        self.epoch += 1;
        self.round = Round::default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Simulates rounds at the current limit. `seconds` is the reply time for a number of concurrent calls.
    fn rounds(controller: &mut Controller, number: usize, seconds: impl Fn(usize) -> f64) {
        for _ in 0..number {
            let (calls, epoch) = (controller.limit(), controller.epoch());
            for _ in 0..calls.max(ROUND as usize) {
                controller.answered(Some(seconds(calls)), calls, epoch);
            }
        }
    }

    #[test]
    fn the_limit_grows_to_the_maximum_for_a_fast_server() {
        let mut controller = Controller::new(Concurrency::Auto);
        assert_eq!(controller.limit(), 4);
        rounds(&mut controller, 4, |_| 0.5);
        assert_eq!(controller.limit(), 64);
        rounds(&mut controller, 9, |_| 0.5);
        assert_eq!(controller.limit(), 128);
    }

    #[test]
    fn a_server_with_four_slots_is_not_flooded() {
        let mut controller = Controller::new(Concurrency::Auto);
        // Calls without a slot wait.
        let queueing = |calls: usize| f64::from(u32::try_from(calls.div_ceil(4)).unwrap());
        for _ in 0..2000 {
            rounds(&mut controller, 1, queueing);
            assert!(controller.limit() <= 16, "{}", controller.limit());
        }
        // After a round with few calls, the limit recovers.
        rounds(&mut controller, 2, queueing);
        assert!(
            (4..=16).contains(&controller.limit()),
            "{}",
            controller.limit()
        );
    }

    #[test]
    fn a_burst_of_refusals_counts_once_and_the_limit_recovers_slowly() {
        let mut controller = Controller::new(Concurrency::Auto);
        rounds(&mut controller, 3, |_| 0.5);
        let epoch = controller.epoch();
        for _ in 0..32 {
            controller.refused(epoch);
        }
        assert_eq!(controller.limit(), 24);
        rounds(&mut controller, 1, |_| 0.5);
        assert_eq!(controller.limit(), 25);
        for _ in 0..100 {
            controller.refused(controller.epoch());
        }
        assert_eq!(controller.limit(), 1);
    }

    #[test]
    fn isolated_refusals_neither_lower_the_limit_nor_delay_other_calls() {
        for concurrency in [Concurrency::Auto, Concurrency::Fixed(4)] {
            let mut controller = Controller::new(concurrency);
            for _ in 0..100 {
                let epoch = controller.epoch();
                assert!(!controller.refused(epoch));
                for _ in 0..19 {
                    controller.answered(None, 1, epoch);
                }
            }
            assert_eq!(controller.limit(), 4);
        }
        // A fixed limit stays during a burst of refusals, but calls wait.
        let mut controller = Controller::new(Concurrency::Fixed(4));
        let held: Vec<bool> = (0..7).map(|_| controller.refused(0)).collect();
        assert_eq!(held, [false, false, false, false, false, true, true]);
    }

    #[test]
    fn an_unused_limit_does_not_grow() {
        let mut controller = Controller::new(Concurrency::Auto);
        for _ in 0..100 {
            controller.answered(Some(0.5), 2, controller.epoch());
        }
        assert_eq!(controller.limit(), 4);
    }

    #[test]
    fn the_limit_recovers_when_a_server_stays_slow() {
        let mut controller = Controller::new(Concurrency::Auto);
        rounds(&mut controller, 6, |_| 0.5);
        rounds(&mut controller, 50, |_| 3.0);
        assert!(controller.limit() < 10, "{}", controller.limit());
        rounds(&mut controller, 300, |_| 3.0);
        assert!(controller.limit() > 60, "{}", controller.limit());
    }

    #[test]
    fn a_fixed_limit_does_not_change() {
        let mut controller = Controller::new(Concurrency::Fixed(7));
        rounds(&mut controller, 9, |_| 0.1);
        controller.refused(controller.epoch());
        assert_eq!(controller.limit(), 7);
        for bad in ["0", "1025", "many", ""] {
            assert!(bad.parse::<Concurrency>().is_err(), "{bad}");
        }
        assert_eq!("auto".parse(), Ok(Concurrency::Auto));
        assert_eq!("12".parse(), Ok(Concurrency::Fixed(12)));
    }

    proptest! {
        #[test]
        fn the_limit_stays_between_1_and_128(what in proptest::collection::vec((any::<bool>(), 0.0..100.0_f64, 0..200_usize), 0..400)) {
            let mut controller = Controller::new(Concurrency::Auto);
            for (refused, seconds, calls) in what {
                if refused {
                    controller.refused(controller.epoch());
                } else {
                    controller.answered(Some(seconds), calls, controller.epoch());
                }
                prop_assert!((1..=128).contains(&controller.limit()));
            }
        }
    }
}
