use std::collections::{BTreeMap, BTreeSet};

use crate::types::{Evaluation, Rank, Status};

/// What the loop decides by: all that it needs to know about a version that was judged.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// How good it is.
    pub(super) rank: Rank,
    /// Per criterion that has a verdict, whether it is met. What was not asked is not in it.
    pub(super) met: BTreeMap<String, bool>,
    /// The ids of the issues that it has, from the ledger.
    pub(super) open: BTreeSet<u32>,
    /// How alike its text is to the version that it revises, 0 to 1; `None` for a draft of its own.
    pub(super) similarity: Option<f64>,
}

impl Verdict {
    /// The verdict in an evaluation; `None` if there is none on all of the draft.
    pub(super) fn new(
        evaluation: &Evaluation,
        open: BTreeSet<u32>,
        similarity: Option<f64>,
    ) -> Option<Self> {
        Some(Self {
            rank: evaluation.rank()?,
            met: evaluation
                .criteria
                .iter()
                .filter(|result| result.status == Status::Ok)
                .map(|result| (result.name.clone(), result.passed))
                .collect(),
            open,
            similarity,
        })
    }

    /// The criteria that are met in `best` and are not met here.
    pub(super) fn newly_failing<'a>(&'a self, best: &Self) -> Vec<&'a str> {
        self.met
            .iter()
            .filter(|(name, met)| !**met && best.met.get(*name) == Some(&true))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// What no score outweighs: whether it is free of flaws, good enough, and has all that is required.
    pub(super) fn class(&self) -> (bool, bool, bool) {
        self.rank.class()
    }
}

#[cfg(test)]
impl Verdict {
    /// A verdict that is a score.
    pub(super) fn scored(score: f64, satisfactory: bool) -> Self {
        Self {
            rank: Rank {
                clean: true,
                satisfactory,
                required_met: true,
                score,
            },
            met: BTreeMap::new(),
            open: BTreeSet::new(),
            similarity: None,
        }
    }

    pub(super) fn meeting(mut self, met: &[(&str, bool)]) -> Self {
        self.met = met
            .iter()
            .map(|(name, met)| ((*name).to_owned(), *met))
            .collect();
        self
    }

    pub(super) fn with_open(mut self, open: &[u32]) -> Self {
        self.open = open.iter().copied().collect();
        self
    }

    pub(super) fn alike(mut self, similarity: f64) -> Self {
        self.similarity = Some(similarity);
        self
    }
}
