//! Removes useless issues: copies of the judge's own instructions, and the same issue in other
//! words.

use std::collections::HashSet;

use crate::evidence::words;
use crate::prompt::PromptRuns;
use crate::types::Issue;

/// A text of which more than this share is copied from the instructions is a copy of them.
const COPIED: f64 = 0.5;
/// The minimum number of distinct words for descriptions to be alike.
const FEWEST_WORDS: usize = 8;
/// The minimum share of distinct words that alike descriptions have in common, as a fraction.
const ALIKE: (usize, usize) = (4, 5);

/// The instructions of a verdict's prompt, without the task, the criteria, the scales and the draft.
#[derive(Debug)]
pub(super) struct Instructions(PromptRuns);

impl Instructions {
    pub(super) fn new(text: &str) -> Self {
        Self(PromptRuns::new(text.lines().map(words)))
    }

    /// Removes issues whose description copies the instructions, and fixes that do. Small models
    /// copy them, and the writer cannot act on them.
    pub(super) fn strip(&self, issues: &mut Vec<Issue>) {
        issues.retain(|issue| !self.is_copied(&issue.description));
        for issue in issues {
            issue.suggested_fix.take_if(|fix| self.is_copied(fix));
        }
    }

    fn is_copied(&self, text: &str) -> bool {
        self.0.share_of(&words(text)) > COPIED
    }
}

/// Removes issues that nearly repeat an earlier one on the same criterion and passage. The earlier
/// one keeps the higher severity.
pub(super) fn merge_alike(issues: &mut Vec<Issue>) {
    let mut kept: Vec<(Issue, HashSet<String>)> = Vec::new();
    for issue in issues.drain(..) {
        let said: HashSet<String> = words(&issue.description).into_iter().collect();
        let same = kept.iter_mut().find(|(known, before)| {
            known.criterion == issue.criterion
                && known.place.quote == issue.place.quote
                && are_alike(&said, before)
        });
        match same {
            Some((known, _)) => known.severity = known.severity.max(issue.severity),
            None => kept.push((issue, said)),
        }
    }
    issues.extend(kept.into_iter().map(|(issue, _)| issue));
}

/// Returns whether two descriptions share most of their distinct words. Short descriptions are never
/// alike, because they may differ in the one word that matters.
fn are_alike(one: &HashSet<String>, other: &HashSet<String>) -> bool {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    one.len().min(other.len()) >= FEWEST_WORDS && ALIKE.1 * common >= ALIKE.0 * all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria;
    use crate::prompt::Rubric;
    use crate::types::{IssueType, Place, Severity};

    fn issue(description: &str, fix: Option<&str>) -> Issue {
        Issue {
            kind: IssueType::Missing,
            severity: Severity::Major,
            description: description.to_owned(),
            suggested_fix: fix.map(str::to_owned),
            criterion: None,
            place: Place::default(),
        }
    }

    #[test]
    fn issues_made_of_the_judges_instructions_are_dropped() {
        let file = "[[criteria]]\nname = \"reader\"\n\
                    description = \"The text says who benefits and why it matters.\"\nevaluator = \"llm\"\n";
        let criteria = criteria::parse(file, "criteria.toml").unwrap();
        let rubric = Rubric::new(&[&criteria.criteria[0]]);
        let instructions = Instructions::new(&rubric.instructions());
        let copied = [
            "Judge the draft on this criterion and no other: `reader`.",
            "You are a strict, fair reviewer.",
            "List at most 3 issues to fix, most severe first.",
            "a description that names the place, a quote (exact words of the draft, at most a sentence)",
        ];
        let sound = [
            "The second sentence repeats the first.",
            "The text says who benefits and why it matters.",
            "partly met, with a clear weakness",
            "Judge Miller is never named.",
            "Too long.",
        ];
        let mut issues: Vec<Issue> = copied
            .iter()
            .chain(&sound)
            .map(|text| issue(text, None))
            .collect();
        instructions.strip(&mut issues);
        let kept: Vec<&str> = issues.iter().map(|issue| &*issue.description).collect();
        assert_eq!(kept, sound);
        let mut issues = vec![
            issue("The opening is vague.", Some("says what to write instead")),
            issue(
                "The opening is vague.",
                Some("Name the printer in the first sentence."),
            ),
        ];
        instructions.strip(&mut issues);
        let fixes: Vec<bool> = issues
            .iter()
            .map(|issue| issue.suggested_fix.is_some())
            .collect();
        assert_eq!(fixes, [false, true]);
    }

    #[test]
    fn the_same_issue_in_nearly_the_same_words_is_one() {
        let said = "The text is not written in a clear way, and the sentence is hard to understand. This is the first \
                    time we met this problem.";
        let mut issues = vec![
            issue(said, None),
            issue(&said.replace("is the first", "is not the first"), None),
            issue(
                "The text does not name the customer who has to send the number.",
                None,
            ),
            issue(
                "The text does not name the printer whose number has to be sent.",
                None,
            ),
        ];
        issues[1].severity = Severity::Critical;
        merge_alike(&mut issues);
        assert_eq!(issues.len(), 3);
        assert_eq!(issues[0].severity, Severity::Critical);
        let mut quoted = vec![issue(said, None), issue(said, None)];
        quoted[1].place.quote = Some("a place".to_owned());
        merge_alike(&mut quoted);
        assert_eq!(quoted.len(), 2);
    }
}
