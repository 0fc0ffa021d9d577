//! What is kept for later runs: facts, procedures, and insights that earlier runs have taught. Which of them serve a
//! task, what can be learned from runs, whether what was offered has helped, and when it fades: rules without a
//! model, a file or a clock. The store keeps what they decide.
//!
//! The figures, and where they come from:
//!
//! - An insight is learned with the confidence [`wilson_lower`]: the lower bound of the share of runs that show it, so
//!   that 2 of 2 runs say less than 20 of 20.
//! - Each use is compared with the runs of the same criteria, model and command that did without ([`measure()`]). A share of
//!   one half is what chance gives, and counts as no help at all: see [`confidence()`].
//! - What nobody uses or finds again loses half of its strength every [`HALF_LIFE_DAYS`] days ([`strength`]); what falls
//!   below [`FLOOR`] is not offered any more, and stays until it is removed.

mod confidence;
mod episode;
mod learn;
mod lines;
mod measure;
mod merge;
mod recall;
mod wording;

pub use confidence::{
    FLOOR, HALF_LIFE_DAYS, confidence, is_faded, strength, success_rate, wilson_lower,
};
pub use episode::{Episode, Fault, FirstCheck};
pub use learn::{MIN_RUNS, learn};
pub use lines::{MAX_LENGTH, line, parse};
pub use measure::{BASELINE, MIN_BASELINE, Measured, compare, measure};
pub use merge::merge;
pub use recall::{Recalled, TOKENS, matching, recall};
pub use wording::{apply_wording, wording_schema};

/// How alike two short texts are, 0 to 1: Dice's coefficient of their sets of words.
fn likeness(a: &str, b: &str) -> f64 {
    let set = |text| -> std::collections::HashSet<String> {
        crate::evidence::words(text).into_iter().collect()
    };
    let (a, b) = (set(a), set(b));
    let all = a.len() + b.len();
    if all == 0 {
        return 1.0;
    }
    #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
    let share = 2.0 * a.intersection(&b).count() as f64 / all as f64;
    share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likeness_is_of_words() {
        assert!(likeness("The title is missing.", "the title, is MISSING") > 0.99);
        assert!(likeness("The title is missing.", "Nothing backs the figures.") < 0.3);
        assert!(likeness("", "") > 0.99 && likeness("a", "") < 0.01);
    }
}
