//! What the next draft of a run is: a fresh draft, or a revision of the best version.
//!
//! The choice follows from how likely each is to become the best version, and from what each costs; see
//! `docs/loop.md` for the evidence.

use crate::types::Strategy;

/// What a revision has to go by. Feedback of a judge helps more often than not. What checks say, small models cannot
/// use, so a revision that did not help weighs more there; edits at places that the checks name are cheaper and break
/// less than a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Guidance {
    /// A judge's verdict.
    Judge,
    /// Checks whose issues all name their place in the draft.
    PlacedChecks,
    /// Checks of the whole draft.
    Checks,
}

impl Guidance {
    /// Revisions that a run counts as helpful and as made before its first one.
    fn prior(self) -> (f64, f64) {
        match self {
            Self::Judge => (3.0, 4.0),
            Self::PlacedChecks | Self::Checks => (1.5, 2.0),
        }
    }

    /// How many fresh drafts a revision is expected to cost, with its evaluation, before the run has measured one. A
    /// revision's prompt holds the draft and the feedback, a fresh draft's prompt is in the server's cache: on `IFEval`
    /// prompts 605 tokens against 190 (`docs/loop.md`). A judge's calls weigh more than this difference.
    fn cost(self) -> f64 {
        match self {
            Self::Judge => 1.25,
            Self::PlacedChecks => 2.0,
            Self::Checks => 3.0,
        }
    }
}

/// A measured cost counts at most as this many times the expected one.
const MOST_COST: f64 = 2.0;

/// How a version is revised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Approach {
    /// By the strategy of the settings.
    #[default]
    Usual,
    /// By smaller changes, because a rewrite made the draft worse.
    Careful,
    /// By a rewrite, because edits did not help twice in a row.
    Rewrite,
    /// By a rewrite of a stronger model.
    Stronger,
}

impl Approach {
    /// The strategy of the next revision, where the settings say `usual`.
    pub(super) fn strategy(self, usual: Strategy) -> Strategy {
        match self {
            Self::Usual | Self::Careful => usual,
            Self::Rewrite | Self::Stronger => Strategy::FullRewrite,
        }
    }
}

/// What a run has learned about its writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Odds {
    /// Fresh drafts, rejected replies included.
    pub(super) draws: u32,
    /// Revisions, rejected replies included.
    pub(super) revisions: u32,
    /// Revisions that became the best version.
    pub(super) helped: u32,
    /// What the fresh drafts cost, with their evaluations and rejected replies: tokens that were written or evaluated.
    pub(super) drawn: u64,
    /// What the revisions cost, in the same way.
    pub(super) revised: u64,
}

impl Odds {
    /// The chance that one more fresh draft becomes the best version. The best of `n` drafts of one kind is beaten by
    /// the next one with a chance of 1 in `n + 1`; each revision that helped counts as one more draft that was beaten.
    fn draw(self) -> f64 {
        1.0 / f64::from(self.draws + self.helped + 1)
    }

    /// The chance that one more revision becomes the best version.
    fn revise(self, guidance: Guidance) -> f64 {
        let (helped, made) = guidance.prior();
        (helped + f64::from(self.helped)) / (made + f64::from(self.revisions))
    }

    /// How many fresh drafts a revision costs: the mean of what the run has measured and one revision of the expected
    /// cost.
    #[expect(clippy::cast_precision_loss, reason = "runs use fewer tokens")]
    fn cost(self, guidance: Guidance) -> f64 {
        let expected = guidance.cost();
        if self.drawn == 0 || self.draws == 0 {
            return expected;
        }
        let draw = self.drawn as f64 / f64::from(self.draws);
        let revise = (expected * draw + self.revised as f64) / f64::from(1 + self.revisions);
        // One endless reply says little.
        (revise / draw).min(MOST_COST * expected)
    }

    /// Whether a fresh draft is worth more than a revision for what it costs.
    pub(super) fn draws_again(self, guidance: Guidance) -> bool {
        self.draw() * self.cost(guidance) > self.revise(guidance)
    }

    /// Why a fresh draft is written.
    pub(super) fn why_draw(self) -> String {
        match (self.revisions, self.helped) {
            (0, _) => "writing a fresh draft: it costs less than a revision".to_owned(),
            (made, helped) => format!("writing a fresh draft: {helped} of {made} revisions helped"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn odds(draws: u32, revisions: u32, helped: u32) -> Odds {
        Odds {
            draws,
            revisions,
            helped,
            ..Odds::default()
        }
    }

    #[test]
    fn a_judged_draft_is_revised_first_and_drawn_again_after_a_revision_that_failed() {
        assert!(!odds(1, 0, 0).draws_again(Guidance::Judge));
        assert!(odds(1, 1, 0).draws_again(Guidance::Judge));
        assert!(!odds(2, 1, 0).draws_again(Guidance::Judge));
        assert!(!odds(1, 1, 1).draws_again(Guidance::Judge));
    }

    #[test]
    fn with_exact_checks_three_drafts_are_drawn_before_a_revision() {
        assert!(odds(2, 0, 0).draws_again(Guidance::Checks));
        assert!(!odds(3, 0, 0).draws_again(Guidance::Checks));
        assert!(odds(3, 1, 0).draws_again(Guidance::Checks));
    }

    #[test]
    fn with_placed_issues_two_drafts_are_drawn_before_a_revision() {
        assert!(odds(1, 0, 0).draws_again(Guidance::PlacedChecks));
        assert!(!odds(2, 0, 0).draws_again(Guidance::PlacedChecks));
    }

    #[test]
    fn a_revision_that_cost_more_than_expected_is_repeated_later() {
        let cheap = Odds {
            drawn: 900,
            revised: 200,
            ..odds(3, 1, 0)
        };
        assert!(!cheap.draws_again(Guidance::Checks));
        let dear = Odds {
            revised: 2000,
            ..cheap
        };
        assert!(dear.draws_again(Guidance::Checks));
    }

    #[test]
    fn an_event_says_what_was_learned() {
        assert_eq!(
            odds(2, 9, 1).why_draw(),
            "writing a fresh draft: 1 of 9 revisions helped"
        );
    }

    proptest! {
        #[test]
        fn revisions_that_help_are_gone_on_with(draws in 1..9_u32, made in 0..20_u32) {
            prop_assert!(!odds(draws + 2, made, made).draws_again(Guidance::Judge));
        }

        #[test]
        fn neither_is_given_up_for_good(number in 0..3_usize) {
            let guidance = [Guidance::Judge, Guidance::PlacedChecks, Guidance::Checks][number];
            let mut odds = odds(1, 0, 0);
            let mut drawn = [0, 0];
            for _ in 0..40 {
                let draw = odds.draws_again(guidance);
                drawn[usize::from(draw)] += 1;
                if draw { odds.draws += 1 } else { odds.revisions += 1 }
            }
            prop_assert!(drawn[0] > 10 && drawn[1] > 5, "{drawn:?}");
        }
    }
}
