use crate::types::Strategy;

/// How the next draft is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Approach {
    /// The best version is revised by the strategy that was asked for.
    #[default]
    Usual,
    /// The best version is revised in another way than the one whose result was worse: edits become a rewrite; a
    /// rewrite is told what the last one lost.
    Differently,
    /// The best version is written again as a whole.
    Rewrite,
    /// A draft of its own, which owes nothing to the earlier ones but their faults.
    Fresh,
    /// The best version is written again as a whole by a stronger model.
    Stronger,
}

impl Approach {
    /// What is tried, to follow "trying ".
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Usual => "the usual way",
            Self::Differently => "another way of revising",
            Self::Rewrite => "a rewrite of the whole",
            Self::Fresh => "a fresh draft",
            Self::Stronger => "a stronger model",
        }
    }

    /// How the drafts after one that helped are made: as that one, but it is now what is revised.
    pub(super) fn after_a_gain(self) -> Self {
        match self {
            Self::Rewrite | Self::Stronger => self,
            Self::Usual | Self::Differently | Self::Fresh => Self::Usual,
        }
    }

    /// The strategy of the next revision, where `usual` was asked for.
    pub(super) fn strategy(self, usual: Strategy) -> Strategy {
        match self {
            Self::Usual => usual,
            Self::Differently | Self::Rewrite | Self::Fresh | Self::Stronger => {
                Strategy::FullRewrite
            }
        }
    }
}

/// What is tried, step by step, before a run without progress is given up; each step once in a run. Where
/// nothing was edited, all was rewritten already.
pub(super) fn ladder(edited: bool, stronger: bool) -> Vec<Approach> {
    let steps = [
        (edited, Approach::Rewrite),
        (true, Approach::Fresh),
        (stronger, Approach::Stronger),
    ];
    let possible = steps.into_iter().filter(|(possible, _)| *possible);
    possible.map(|(_, step)| step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_ends_with_a_stronger_model_if_there_is_one() {
        assert_eq!(ladder(false, false), [Approach::Fresh]);
        assert_eq!(ladder(false, true), [Approach::Fresh, Approach::Stronger]);
        assert_eq!(ladder(true, false), [Approach::Rewrite, Approach::Fresh]);
    }

    #[test]
    fn what_made_things_worse_is_not_done_again_at_once() {
        for usual in [Strategy::Hybrid, Strategy::TargetedEdit] {
            assert_eq!(Approach::Usual.strategy(usual), usual);
            assert_eq!(Approach::Differently.strategy(usual), Strategy::FullRewrite);
        }
    }

    #[test]
    fn what_has_helped_is_kept_except_starting_afresh() {
        assert_eq!(Approach::Rewrite.after_a_gain(), Approach::Rewrite);
        assert_eq!(Approach::Fresh.after_a_gain(), Approach::Usual);
    }
}
