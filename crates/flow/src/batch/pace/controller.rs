//! How many tasks are under way at once: a pure rule, in the manner of TCP's congestion control. It grows step by
//! step as long as answers keep coming as fast as before, and falls by a part where the server pushes back. Unlike
//! TCP, it does not take a single refusal for congestion: servers refuse a call now and then at any load, and say
//! how long that call has to wait.

use std::str::FromStr;

/// The most tasks at once that somebody may ask for.
pub const MAX_CONCURRENCY: usize = 1024;

/// The most tasks at once that are found out without anybody asking for it.
const AUTO_MOST: f64 = 128.0;

/// Where finding out begins.
const AUTO_FIRST: f64 = 4.0;

/// Where it begins at a server on this machine, which often answers one call at a time: the time without a queue is
/// the one to compare with.
const AUTO_FIRST_LOCAL: f64 = 1.0;

/// How much the latest outcome of a call says about the share of refusals.
const REFUSAL_WEIGHT: f64 = 1.0 / 16.0;

/// Up to this share of refusals the limit still grows. This and the next two figures come from the simulation: with
/// them a batch keeps its pace under 10 % of refusals, and uses nine tenths of a server that refuses what is too much.
const CALM: f64 = 0.15;

/// Up to this share refusals are isolated: each concerns its own call only. Six in a row are more.
const ISOLATED: f64 = 0.3;

/// What is left after a server said that it is too much.
const AFTER_REFUSAL: f64 = 0.75;

/// What is left where answers only have become slow.
const AFTER_SLOWNESS: f64 = 0.8;

/// The fewest answers that say something about the time that answers take.
const ROUND: u32 = 8;

/// Slow is what takes more than twice as long as at the best of times, and is felt.
const SLOW: (f64, f64) = (2.0, 0.1);

/// After so many rounds one is made with a quarter of the calls, and its time is the best from then on: a server may
/// become slower for good, and a queue that has built up slowly would not be noticed otherwise. A quarter, since with a
/// half a queue of any length would look like twice the best time, and no more.
const LOOK: u32 = 64;
const LOOK_WITH: f64 = 0.25;

/// How many tasks are under way at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concurrency {
    /// As many as the server takes without refusing or becoming slow.
    Auto,
    /// So many, 1 to [`MAX_CONCURRENCY`].
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
    /// Whether the limit still doubles, since no bound was met yet.
    doubles: bool,
    /// Counts the times that the limit went down, or came back. What becomes of a call that was begun before the last
    /// one says nothing new.
    epoch: u32,
    /// The epoch that refusals ended.
    refused_in: Option<u32>,
    /// The share of the latest calls that were refused.
    refusals: f64,
    round: Round,
    rounds: u32,
    /// The mean time of the best round.
    best: Option<f64>,
    /// The limit to come back to, in a round with few calls.
    back_to: Option<f64>,
}

/// Answers since the limit changed last.
#[derive(Debug, Default)]
struct Round {
    answers: u32,
    seconds: f64,
    /// The most calls at once.
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

    /// How many may be under way; at least 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 to 1024"
    )]
    pub(super) fn limit(&self) -> usize {
        self.limit as usize
    }

    /// To be kept with a call that begins now.
    pub(super) fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The server is on this machine. Without effect once answers have come: then more is known.
    pub(super) fn is_local(&mut self) {
        let begins = self.epoch == 0 && self.rounds == 0 && self.round.answers == 0;
        if begins && !self.fixed {
            self.limit = AUTO_FIRST_LOCAL;
        }
    }

    /// A call that was begun in this epoch was refused because there are too many. Says whether other calls should
    /// wait as well: an isolated refusal says nothing about them.
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

    /// A call that was begun in this epoch was answered, when so many calls were under way. `seconds` is how long it
    /// took until the answer began to come; `None` if that says nothing, since it was asked for more than once.
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
            // A limit that is not reached says nothing about what lies beyond it.
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

    /// Rounds with as many calls at once as allowed, against a server whose answers take so long with so many.
    fn rounds(controller: &mut Controller, number: usize, seconds: impl Fn(usize) -> f64) {
        for _ in 0..number {
            let (calls, epoch) = (controller.limit(), controller.epoch());
            for _ in 0..calls.max(ROUND as usize) {
                controller.answered(Some(seconds(calls)), calls, epoch);
            }
        }
    }

    #[test]
    fn a_fast_server_gets_all() {
        let mut controller = Controller::new(Concurrency::Auto);
        assert_eq!(controller.limit(), 4);
        rounds(&mut controller, 4, |_| 0.5);
        assert_eq!(controller.limit(), 64);
        rounds(&mut controller, 9, |_| 0.5);
        assert_eq!(controller.limit(), 128);
    }

    #[test]
    fn a_server_with_four_places_is_not_flooded() {
        let mut controller = Controller::new(Concurrency::Auto);
        // What finds no place waits its turn.
        let queueing = |calls: usize| f64::from(u32::try_from(calls.div_ceil(4)).unwrap());
        for _ in 0..2000 {
            rounds(&mut controller, 1, queueing);
            assert!(controller.limit() <= 16, "{}", controller.limit());
        }
        // Just after a round with few calls it is at its usual height again.
        rounds(&mut controller, 2, queueing);
        assert!(
            (4..=16).contains(&controller.limit()),
            "{}",
            controller.limit()
        );
    }

    #[test]
    fn a_storm_of_refusals_counts_once_and_calm_brings_it_back_slowly() {
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
    fn isolated_refusals_change_nothing_and_hold_nobody_back() {
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
        // A number that somebody asked for stays in a storm, and its calls wait.
        let mut controller = Controller::new(Concurrency::Fixed(4));
        let held: Vec<bool> = (0..7).map(|_| controller.refused(0)).collect();
        assert_eq!(held, [false, false, false, false, false, true, true]);
    }

    #[test]
    fn a_limit_that_is_not_used_does_not_grow() {
        let mut controller = Controller::new(Concurrency::Auto);
        for _ in 0..100 {
            controller.answered(Some(0.5), 2, controller.epoch());
        }
        assert_eq!(controller.limit(), 4);
    }

    #[test]
    fn a_server_that_became_slow_for_good_is_believed_in_the_end() {
        let mut controller = Controller::new(Concurrency::Auto);
        rounds(&mut controller, 6, |_| 0.5);
        rounds(&mut controller, 50, |_| 3.0);
        assert!(controller.limit() < 10, "{}", controller.limit());
        rounds(&mut controller, 300, |_| 3.0);
        assert!(controller.limit() > 60, "{}", controller.limit());
    }

    #[test]
    fn a_number_stays() {
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
        fn it_is_always_possible_to_go_on(what in proptest::collection::vec((any::<bool>(), 0.0..100.0_f64, 0..200_usize), 0..400)) {
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
