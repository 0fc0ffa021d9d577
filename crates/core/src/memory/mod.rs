//! Memory for later runs: facts, procedures, and insights learned from earlier runs. Pure rules,
//! without models, files or clocks: which memories suit a task, what runs teach, whether the
//! memories offered to a run helped, and when they decay. The store saves the results.
//!
//! The figures and their sources:
//!
//! - An insight is learned with the confidence [`wilson_lower`]: the lower bound of the share of
//!   runs that show it. 2 of 2 runs therefore count less than 20 of 20.
//! - Each use is compared with the runs of the same criteria, model and command that did not use
//!   the insight ([`measure()`]). A share of one half is chance level and counts as no improvement;
//!   see [`confidence()`].
//! - An insight that is neither used nor found again loses half of its strength every
//!   [`HALF_LIFE_DAYS`] days ([`strength`]). Below [`FLOOR`] it is no longer offered, but it is
//!   kept until it is removed.

mod confidence;
mod learn;
mod lines;
mod measure;
mod merge;
mod recall;
mod run_summary;
mod wording;

pub use confidence::{
    FLOOR, HALF_LIFE_DAYS, confidence, is_faded, strength, success_rate, wilson_lower,
};
pub use learn::{MIN_RUNS, learn};
pub use lines::{MAX_LENGTH, line, parse};
pub use measure::{BASELINE, MIN_BASELINE, MemoryUpdate, compare, measure};
pub use merge::merge;
pub use recall::{Recalled, TOKENS, matching, recall};
pub use run_summary::{FirstCheck, RunIssue, RunSummary};
pub use wording::{apply_wording, wording_schema};

/// Returns the similarity of two short texts, 0 to 1: Dice's coefficient of their sets of words.
fn similarity(a: &str, b: &str) -> f64 {
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
        assert!(similarity("The title is missing.", "the title, is MISSING") > 0.99);
        assert!(similarity("The title is missing.", "Nothing backs the figures.") < 0.3);
        assert!(similarity("", "") > 0.99 && similarity("a", "") < 0.01);
    }
}
