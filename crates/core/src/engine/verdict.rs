use std::collections::{BTreeMap, BTreeSet};

use crate::types::{Evaluation, Issue, Rank, Status};

/// What the loop needs to know about a judged version.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    /// How good it is.
    pub(super) rank: Rank,
    /// For each criterion that was evaluated, whether it is met.
    pub(super) met: BTreeMap<String, bool>,
    /// The ids of the issues that it has, from the ledger.
    pub(super) open: BTreeSet<u32>,
    /// How similar its text is to the version that it revises, 0 to 1; `None` for a fresh draft.
    pub(super) similarity: Option<f64>,
    /// Whether each of its issues names a place in the draft, so that edits can fix them there.
    pub(super) placed: bool,
}

impl Verdict {
    /// The verdict in an evaluation; `None` if the evaluation has no overall result.
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
            placed: !evaluation.issues.is_empty() && evaluation.issues.iter().all(is_placed),
        })
    }

    /// Whether no evaluated criterion leaves anything to improve. True if none was evaluated.
    pub(super) fn passes_all_checks(&self, threshold: f64) -> bool {
        let met = self.met.values().all(|met| *met);
        let reached = self.met.is_empty() || self.rank.score >= threshold;
        self.rank.clean && self.open.is_empty() && met && reached
    }

    /// The criteria that `best` meets and this version does not.
    pub(super) fn newly_failing<'a>(&'a self, best: &Self) -> Vec<&'a str> {
        self.met
            .iter()
            .filter(|(name, met)| !**met && best.met.get(*name) == Some(&true))
            .map(|(name, _)| name.as_str())
            .collect()
    }

    /// The properties that no score outweighs: free of flaws, satisfactory, all required criteria met.
    pub(super) fn class(&self) -> (bool, bool, bool) {
        self.rank.class()
    }
}

fn is_placed(issue: &Issue) -> bool {
    let place = &issue.place;
    place.line.is_some() || place.path.is_some() || place.verified == Some(true)
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
            placed: false,
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
