//! Limits a rate per minute, evenly. Unlike existing crates, it can return excess estimates.

/// A limit per minute: the generic cell rate algorithm (GCRA) of ATM networks. Times are in seconds on any
/// monotonic clock.
#[derive(Debug)]
pub(in crate::batch) struct Rate {
    per_second: f64,
    /// The time at which everything admitted so far is paid for.
    paid: f64,
}

/// How many seconds' worth may start at once, so that a burst after a quiet period is not delayed.
const BURST: f64 = 1.0;

impl Rate {
    pub(in crate::batch) fn per_minute(amount: u32) -> Self {
        Self {
            per_second: f64::from(amount) / 60.0,
            paid: 0.0,
        }
    }

    /// Restores a limit from an earlier [`Rate::paid`].
    #[cfg(feature = "restate")]
    pub(in crate::batch) fn since(amount: u32, paid: f64) -> Self {
        Self {
            paid,
            ..Self::per_minute(amount)
        }
    }

    /// Returns the time at which everything admitted so far is paid for.
    #[cfg(feature = "restate")]
    pub(in crate::batch) fn paid(&self) -> f64 {
        self.paid
    }

    /// Takes this amount. Returns the seconds until it may start. Later calls queue behind it.
    pub(in crate::batch) fn take(&mut self, amount: f64, now: f64) -> f64 {
        let wait = (self.paid - BURST - now).max(0.0);
        self.add(amount, now);
        wait
    }

    /// Adds an amount that has already been used; a negative amount returns an excess estimate.
    pub(in crate::batch) fn add(&mut self, amount: f64, now: f64) {
        self.paid = self.paid.max(now) + amount / self.per_second;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn calls_are_spread_evenly() {
        let mut rate = Rate::per_minute(30);
        let waits: Vec<f64> = (0..4).map(|_| rate.take(1.0, 100.0)).collect();
        assert_eq!(waits, [0.0, 1.0, 3.0, 5.0]);
        // A quiet period saves up only one second's worth.
        let waits: Vec<f64> = (0..2).map(|_| rate.take(1.0, 500.0)).collect();
        assert_eq!(waits, [0.0, 1.0]);
    }

    #[test]
    fn an_estimate_is_corrected() {
        let mut rate = Rate::per_minute(6000);
        assert!(rate.take(1000.0, 0.0) < 1e-9);
        rate.add(-900.0, 0.0);
        assert!(rate.take(1.0, 0.0) < 1e-9);
        rate.add(500.0, 0.0);
        assert!(rate.take(1.0, 0.0) > 4.0);
    }

    proptest! {
        #[test]
        fn no_minute_has_more_than_allowed(per_minute in 1..600_u32, gaps in proptest::collection::vec(0.0..3.0_f64, 1..200)) {
            let mut rate = Rate::per_minute(per_minute);
            let (mut now, mut begun) = (0.0, Vec::new());
            for gap in gaps {
                now += gap;
                begun.push(now + rate.take(1.0, now));
            }
            // One second's worth and the current call may start at once.
            let most = f64::from(per_minute) * 61.0 / 60.0 + 1.0;
            for first in &begun {
                let number = begun.iter().filter(|time| (*first..*first + 60.0).contains(*time)).count();
                prop_assert!(f64::from(u32::try_from(number).unwrap()) <= most + 1e-6, "{number} of {most}");
            }
        }
    }
}
