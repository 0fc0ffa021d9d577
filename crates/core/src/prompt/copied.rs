//! How much of a text is copied from a prompt.

use std::collections::HashSet;

/// The number of consecutive words that are compared.
const RUN: usize = 4;

/// The runs of consecutive words in a part of a prompt.
#[derive(Debug)]
pub(crate) struct PromptRuns(HashSet<Vec<String>>);

impl PromptRuns {
    /// Takes the words of each passage of the prompt; no run spans two passages.
    pub(crate) fn new(passages: impl IntoIterator<Item = Vec<String>>) -> Self {
        let runs = passages.into_iter().flat_map(|words| {
            let runs: Vec<Vec<String>> = words.windows(RUN).map(<[String]>::to_vec).collect();
            runs
        });
        Self(runs.collect())
    }

    /// The share of a text's runs that occur in the prompt, 0 to 1; 0 for a text without runs.
    pub(crate) fn share_of(&self, words: &[String]) -> f64 {
        let runs = words.windows(RUN);
        let all = runs.len().max(1);
        let copied = runs.filter(|run| self.0.contains(*run)).count();
        #[expect(clippy::cast_precision_loss, reason = "texts have fewer words")]
        let share = copied as f64 / all as f64;
        share
    }
}
