//! Chooses the strategy of a revision: the decision of `hybrid`.

use std::ops::Range;

use super::edits::Haystack;
use super::scope::{Scope, scope};
use super::sections::{TextSection, sections};
use crate::text::{counted, plural};
use crate::types::{Issue, Strategy};

/// The length below which a draft is rewritten as a whole, in characters: about 150 tokens, which
/// edits would cost as well.
const SHORT: usize = 600;

/// The same for JSON, whose lines are short, and for drafts that a rewrite has made worse.
const SHORT_WITH_EDITS: usize = 250;

/// The cost of an edit's markers, in characters.
const PER_EDIT: usize = 60;

/// The cost of one more call per section, in characters, in addition to reading the draft.
const PER_SECTION: usize = 200;

/// Reading the draft costs this fraction (1/20) of writing it, because it is mostly in the prompt
/// cache.
const READING: usize = 20;

/// The maximum cost of another strategy relative to a rewrite, if it is certain to work. Costing
/// more is acceptable, because it leaves correct text alone, which a rewrite may break.
const WORTH: f64 = 1.5;

/// The same after a rewrite has made the draft worse.
const WORTH_CAREFUL: f64 = 3.0;

/// The prior probability that a strategy works. It weighs as much as one attempt.
const PRIOR: f64 = 0.8;

/// What has worked in this run, by kind of strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StrategyHistory {
    edits: StrategyAttempts,
    sections: StrategyAttempts,
    /// Whether a rewrite has made the draft worse.
    careful: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct StrategyAttempts {
    made: u32,
    failed: u32,
}

impl StrategyAttempts {
    /// Returns the probability that the next attempt works.
    fn chance(self) -> f64 {
        (PRIOR + f64::from(self.made - self.failed)) / (1.0 + f64::from(self.made))
    }

    fn and(self, other: Self, before: Self) -> Self {
        let sum = |a: u32, b: u32, from: u32| a.saturating_add(b.saturating_sub(from));
        Self {
            made: sum(self.made, other.made, before.made),
            failed: sum(self.failed, other.failed, before.failed),
        }
    }
}

impl StrategyHistory {
    /// Merges what another history has learned since both were `before`, for revisions that were
    /// made concurrently.
    #[must_use]
    pub fn and(self, other: Self, before: Self) -> Self {
        Self {
            edits: self.edits.and(other.edits, before.edits),
            sections: self.sections.and(other.sections, before.sections),
            careful: self.careful || other.careful,
        }
    }

    /// Returns the history after a rewrite that made the draft worse.
    #[must_use]
    pub fn careful(self) -> Self {
        Self {
            careful: true,
            ..self
        }
    }

    /// Adds an attempt of a strategy. `worked` says whether the reply could be applied; a rewrite
    /// always can.
    #[must_use]
    pub fn with(mut self, strategy: Strategy, worked: bool) -> Self {
        let tries = match strategy {
            Strategy::TargetedEdit => &mut self.edits,
            Strategy::Incremental => &mut self.sections,
            Strategy::FullRewrite | Strategy::Hybrid => return self,
        };
        tries.made = tries.made.saturating_add(1);
        tries.failed = tries.failed.saturating_add(u32::from(!worked));
        self
    }
}

/// Returns the strategy with the lowest expected cost, and the reason. A failed attempt costs
/// itself and the rewrite that follows.
///
/// Edits cost twice the text they touch, because both the passage and its replacement are written.
/// `incremental` costs the sections with issues, plus one section if something is missing. A
/// rewrite costs the draft. Strategies that failed in this run are less likely to work.
pub fn choose(history: &StrategyHistory, draft: &str, issues: &[Issue]) -> (Strategy, String) {
    let rewrite = |reason: String| (Strategy::FullRewrite, reason);
    let size = draft.chars().count();
    let is_data = draft.trim_start().starts_with(['{', '[']);
    let short = if is_data || history.careful {
        SHORT_WITH_EDITS
    } else {
        SHORT
    };
    if size < short {
        let length = counted(draft.split_whitespace().count(), "word");
        return rewrite(format!("the draft is short ({length})"));
    }
    if issues.is_empty() {
        return rewrite("no single fault is named".to_owned());
    }
    let reach = IssueExtent::of(draft, issues);
    if reach.whole * 2 > issues.len() {
        return rewrite(format!(
            "{} of {} {} no place in the draft",
            reach.whole,
            counted(issues.len(), "issue"),
            plural(reach.whole, "has", "have")
        ));
    }
    let whole = as_f64(size);
    let edits = as_f64(2 * reach.touched + PER_EDIT * issues.len())
        + (1.0 - history.edits.chance()) * whole;
    let sections = as_f64(reach.sections) + (1.0 - history.sections.chance()) * whole;
    let worth = if history.careful {
        WORTH_CAREFUL
    } else {
        WORTH
    };
    let limit = |tries: StrategyAttempts| whole * worth * tries.chance();
    let divided = reach.parts >= 2;
    if divided && sections <= limit(history.sections) && sections < edits {
        return (
            Strategy::Incremental,
            format!(
                "{} in {} of {}, about {} of the draft",
                counted(issues.len(), "issue"),
                if reach.added > 0 {
                    reach.concerned + 1
                } else {
                    reach.concerned
                },
                counted(reach.parts, "section"),
                percent(reach.written, size)
            ),
        );
    }
    if edits <= limit(history.edits) {
        return (
            Strategy::TargetedEdit,
            format!(
                "{} {} about {} of the draft",
                counted(issues.len(), "issue"),
                plural(issues.len(), "touches", "touch"),
                percent(reach.touched, size)
            ),
        );
    }
    let failed = history.edits.failed + history.sections.failed;
    if failed > 0 {
        let made = history.edits.made + history.sections.made;
        return rewrite(format!(
            "{failed} of {made} smaller revisions did not apply in this run"
        ));
    }
    rewrite(format!(
        "the issues concern about {} of the draft",
        percent(reach.touched, size)
    ))
}

/// Returns whether the change is so small that a rewrite will mostly repeat the draft.
pub(super) fn is_small(draft: &str, issues: &[Issue]) -> bool {
    let reach = IssueExtent::of(draft, issues);
    !issues.is_empty() && reach.whole == 0 && reach.touched * 4 <= draft.chars().count()
}

/// How much of a draft its issues affect, in characters.
struct IssueExtent {
    /// The size of the lines with issues, each once, and of the additions.
    touched: usize,
    /// The cost of rewriting the sections with issues, each once, and of the additions.
    sections: usize,
    /// The size of these sections.
    written: usize,
    /// The number of sections with issues.
    concerned: usize,
    /// The number of sections in the draft.
    parts: usize,
    /// The number of issues about missing content.
    added: usize,
    /// The number of issues about the whole draft.
    whole: usize,
}

impl IssueExtent {
    fn of(draft: &str, issues: &[Issue]) -> Self {
        let parts = sections(draft);
        let size = draft.chars().count();
        let mean = size / parts.len().max(1);
        let mut lines: Vec<Range<usize>> = Vec::new();
        let mut concerned: Vec<usize> = Vec::new();
        let (mut added, mut whole) = (0, 0);
        let haystack = Haystack::new(draft);
        for issue in issues {
            match scope(issue, &haystack, &parts) {
                Scope::Passage(range) => {
                    let start = draft[..range.start].rfind('\n').map_or(0, |at| at + 1);
                    let end = draft[range.end..]
                        .find('\n')
                        .map_or(draft.len(), |at| range.end + at);
                    lines.push(start..end);
                    concerned.extend(touched_sections(&parts, &range));
                }
                Scope::Missing => added += 1,
                Scope::Whole => whole += 1,
            }
        }
        lines.sort_by_key(|line| line.start);
        let (mut touched, mut reached) = (0, 0);
        for line in lines {
            let start = line.start.max(reached);
            if start < line.end {
                touched += draft[start..line.end].chars().count();
                reached = line.end;
            }
        }
        concerned.sort_unstable();
        concerned.dedup();
        let inside: usize = concerned
            .iter()
            .map(|&at| draft[parts[at].range.clone()].chars().count())
            .sum();
        Self {
            // An issue without a place may be anywhere: estimate a quarter of the draft each.
            touched: touched + added * mean.min(size / 8) + whole * (size / 4),
            sections: inside
                + usize::from(added > 0) * mean
                + (concerned.len() + usize::from(added > 0)) * (PER_SECTION + size / READING)
                + whole * (size / 2),
            written: inside + usize::from(added > 0) * mean,
            concerned: concerned.len(),
            parts: parts.len(),
            added,
            whole,
        }
    }
}

/// Returns the indexes of the sections that a passage overlaps.
pub(super) fn touched_sections(parts: &[TextSection], range: &Range<usize>) -> Vec<usize> {
    parts
        .iter()
        .enumerate()
        .filter(|(_, part)| part.range.start < range.end && range.start < part.range.end)
        .map(|(at, _)| at)
        .collect()
}

fn percent(part: usize, whole: usize) -> String {
    format!("{} %", (part.min(whole) * 100).div_ceil(whole.max(1)))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "lengths of texts need no 53 bits"
)]
fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop, prop_assert, prop_assert_ne, proptest};

    use super::*;
    use crate::types::{IssueType, Place, Severity};

    fn issue(kind: IssueType, line: Option<u64>) -> Issue {
        Issue {
            kind,
            severity: Severity::Major,
            description: "Bad.".to_owned(),
            suggested_fix: None,
            criterion: None,
            place: Place {
                line,
                ..Place::default()
            },
        }
    }

    /// Returns a text with sections of about 500 characters, each with a heading and six lines.
    fn report(count: usize) -> String {
        let line =
            "Some words stand in every line of it, and they are about as long as that, no more.\n";
        let sections: Vec<String> = (0..count)
            .map(|number| format!("# Part {number}\n{}\n", line.repeat(6)))
            .collect();
        sections.concat()
    }

    fn chosen(history: StrategyHistory, draft: &str, issues: &[Issue]) -> Strategy {
        choose(&history, draft, issues).0
    }

    #[test]
    fn what_was_learned_at_the_same_time_adds_up() {
        use Strategy::{Incremental, TargetedEdit};
        let before = StrategyHistory::default().with(TargetedEdit, true);
        let one = before.with(TargetedEdit, false);
        let other = before.with(TargetedEdit, true).with(Incremental, true);
        let all = before.and(one, before).and(other, before);
        let expected = one.with(TargetedEdit, true).with(Incremental, true);
        assert_eq!(all, expected);
        assert_eq!(before.and(before, before), before);
    }

    #[test]
    fn it_depends_on_size_and_scope() {
        let wrong = |line| issue(IssueType::Incorrect, line);
        let none = StrategyHistory::default();
        assert_eq!(
            choose(&none, "Short it is.", &[wrong(Some(1))]),
            (
                Strategy::FullRewrite,
                "the draft is short (3 words)".to_owned()
            )
        );
        let long = report(8);
        assert_eq!(choose(&none, &long, &[]).1, "no single fault is named");
        let (strategy, reason) = choose(&none, &long, &[wrong(Some(3)), wrong(Some(12))]);
        assert_eq!(strategy, Strategy::TargetedEdit);
        assert_eq!(reason, "2 issues touch about 5 % of the draft");
        assert_eq!(chosen(none, &long, &[wrong(None)]), Strategy::FullRewrite);
        let (strategy, reason) = choose(&none, &long, &[issue(IssueType::Missing, None)]);
        assert_eq!(strategy, Strategy::Incremental);
        assert!(reason.starts_with("1 issue in 1 of 8 sections"), "{reason}");
        // Many issues in one section: rewriting it is cheaper than so many edits.
        let many: Vec<Issue> = (2..8).map(|line| wrong(Some(line))).collect();
        assert_eq!(chosen(none, &long, &many), Strategy::Incremental);
        // Issues in every section.
        let many: Vec<Issue> = (0..8)
            .flat_map(|n| [2, 4, 6].map(|line| wrong(Some(n * 8 + line))))
            .collect();
        assert_eq!(chosen(none, &long, &many), Strategy::FullRewrite);
    }

    #[test]
    fn json_is_edited_from_a_smaller_size_and_careful_revisions_are_edits() {
        let object = format!(
            "{{\n  \"name\": \"x\",\n{}  \"last\": 1\n}}",
            "  \"some_key_of_it\": \"some value\",\n".repeat(8)
        );
        assert!((SHORT_WITH_EDITS..SHORT).contains(&object.chars().count()));
        let issues = [issue(IssueType::Incorrect, Some(3))];
        let none = StrategyHistory::default();
        assert_eq!(chosen(none, &object, &issues), Strategy::TargetedEdit);
        let prose = object.replace(['{', '}'], "");
        assert_eq!(chosen(none, &prose, &issues), Strategy::FullRewrite);
        assert_eq!(
            chosen(none.careful(), &prose, &issues),
            Strategy::TargetedEdit
        );
        // A third of the text in many places: edits are chosen only once the history is careful.
        let long = report(3).replace("# ", "");
        let many: Vec<Issue> = (0..3)
            .flat_map(|n| [2, 3, 5].map(|line| issue(IssueType::Incorrect, Some(n * 8 + line))))
            .collect();
        assert_eq!(chosen(none, &long, &many), Strategy::FullRewrite);
        assert_ne!(chosen(none.careful(), &long, &many), Strategy::FullRewrite);
    }

    #[test]
    fn what_fails_is_chosen_less() {
        let long = report(3).replace("# ", "");
        let issues = [
            issue(IssueType::Incorrect, Some(3)),
            issue(IssueType::Incorrect, Some(9)),
        ];
        let mut history = StrategyHistory::default();
        assert_eq!(chosen(history, &long, &issues), Strategy::TargetedEdit);
        history = history.with(Strategy::TargetedEdit, false);
        assert_ne!(chosen(history, &long, &issues), Strategy::TargetedEdit);
        history = history.with(Strategy::Incremental, false);
        let (strategy, reason) = choose(&history, &long, &issues);
        assert_eq!(strategy, Strategy::FullRewrite);
        assert_eq!(reason, "2 of 2 smaller revisions did not apply in this run");
        let good = (0..4).fold(history, |history, _| {
            history.with(Strategy::TargetedEdit, true)
        });
        assert_eq!(chosen(good, &long, &issues), Strategy::TargetedEdit);
    }

    proptest! {
        #[test]
        fn a_failure_never_makes_a_strategy_more_likely(
            made in prop::collection::vec(any::<bool>(), 0..6),
            line in 1u64..60,
        ) {
            let draft = report(6);
            let history = made.into_iter().fold(StrategyHistory::default(), |h, worked| h.with(Strategy::TargetedEdit, worked));
            let issues = [issue(IssueType::Incorrect, Some(line))];
            let worse = history.with(Strategy::TargetedEdit, false);
            let chance = |h: &StrategyHistory| h.edits.chance();
            prop_assert!(chance(&worse) < chance(&history));
            prop_assert!((0.0..=1.0).contains(&chance(&worse)));
            if chosen(history, &draft, &issues) != Strategy::TargetedEdit {
                prop_assert_ne!(chosen(worse, &draft, &issues), Strategy::TargetedEdit);
            }
        }
    }
}
