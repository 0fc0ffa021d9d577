//! So much a minute, evenly. Twenty lines, and other than the crates for it they take back what was estimated too
//! high.

/// A limit per minute: the generic cell rate algorithm of ATM networks. Times are seconds on any clock that does not
/// go back.
#[derive(Debug)]
pub(in crate::batch) struct Rate {
    per_second: f64,
    /// When all that was let through is paid for.
    paid: f64,
}

/// How many seconds' worth may come at once, so that a busy moment after a quiet one is not held back.
const BURST: f64 = 1.0;

impl Rate {
    pub(in crate::batch) fn per_minute(amount: u32) -> Self {
        Self {
            per_second: f64::from(amount) / 60.0,
            paid: 0.0,
        }
    }

    /// A limit that was in force before: see [`Rate::paid`].
    #[cfg(feature = "restate")]
    pub(in crate::batch) fn since(amount: u32, paid: f64) -> Self {
        Self {
            paid,
            ..Self::per_minute(amount)
        }
    }

    /// When all that was let through is paid for.
    #[cfg(feature = "restate")]
    pub(in crate::batch) fn paid(&self) -> f64 {
        self.paid
    }

    /// Takes so much; how many seconds from now it may begin. What comes later is behind it.
    pub(in crate::batch) fn take(&mut self, amount: f64, now: f64) -> f64 {
        let wait = (self.paid - BURST - now).max(0.0);
        self.add(amount, now);
        wait
    }

    /// Counts what has happened already; where it is negative, what has not happened after all.
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
        // Nothing is saved up over a quiet time but one second's worth.
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
            // What a second is worth may come at once, and the one that is under way.
            let most = f64::from(per_minute) * 61.0 / 60.0 + 1.0;
            for first in &begun {
                let number = begun.iter().filter(|time| (*first..*first + 60.0).contains(*time)).count();
                prop_assert!(f64::from(u32::try_from(number).unwrap()) <= most + 1e-6, "{number} of {most}");
            }
        }
    }
}
