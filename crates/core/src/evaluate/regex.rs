use ::regex::{Captures, Regex};

use super::blocking::Measure;
use super::passage::{bounded, excerpt, line_of, place_of, ratio};
use super::{CheckIssue, Finding};
use crate::text::plural;
use crate::types::{IssueType, Piece, RegexConfig, WHOLE_MATCH};

/// The `regex` evaluator: a pattern must match a number of times, or not at all. With too few
/// matches, the score is the share of the required ones: three of four score 0.75. Each excess
/// match lowers the score: if none is allowed, one match scores 1/2 and three score 1/4.
pub(super) struct RegexCheck {
    regex: Regex,
    config: RegexConfig,
}

impl RegexCheck {
    pub(super) fn new(config: &RegexConfig) -> Result<Self, String> {
        let regex = config.compile().map_err(|error| error.to_string())?;
        Ok(Self {
            regex,
            config: config.clone(),
        })
    }
}

impl Measure for RegexCheck {
    fn measure(&self, draft: &str, _: Option<&str>) -> Finding {
        let wanted = self.config.counts();
        // If one match suffices, stop the search there.
        let enough = if self.one_is_enough() { 1 } else { usize::MAX };
        let count = self.regex.find_iter(draft).take(enough).count() as u64;
        let evidence = self.evidence(draft, count);
        if count < *wanted.start() {
            let issue = self.too_few(count);
            Finding::graded(ratio(count, *wanted.start()), evidence).with_issues([issue])
        } else if count > *wanted.end() {
            let score = ratio(wanted.end() + 1, count + 1);
            Finding::graded(score, evidence).with_issues(self.too_many(draft, count, *wanted.end()))
        } else {
            Finding::graded(1.0, evidence)
        }
    }
}

impl RegexCheck {
    fn one_is_enough(&self) -> bool {
        self.config.counts() == (1..=u64::MAX)
    }

    /// Returns the first match, and the number of matches where it matters.
    fn evidence(&self, draft: &str, count: u64) -> String {
        let Some(first) = self.regex.find(draft).filter(|_| count > 0) else {
            return "not found".to_owned();
        };
        let shown = excerpt(first.as_str());
        let line = line_of(draft, first.start());
        let place = format!("`{shown}` in line {line}");
        if self.one_is_enough() || count == 1 {
            format!("found {place}")
        } else {
            format!("{}, the first {place}", matches(count))
        }
    }

    fn too_few(&self, count: u64) -> CheckIssue {
        let pattern = &self.config.pattern;
        let missing = self.config.counts().start() - count;
        let (seen, fix) = if count == 0 && missing == 1 {
            (
                format!("nothing in the text matches `{pattern}`"),
                format!("add a passage that matches `{pattern}`"),
            )
        } else {
            (
                format!(
                    "{} of `{pattern}`, {} required",
                    matches(count),
                    is_or_are(&self.config.allowed())
                ),
                format!("add {} of `{pattern}`", matches(missing)),
            )
        };
        // A message that refers to a match cannot describe a missing match.
        let names_a_match = |piece: &Piece<'_>| matches!(piece, Piece::Value(_));
        match self.config.message() {
            // The message is for writers. They would copy a pattern shown after it.
            Some(pieces) if !pieces.iter().any(names_a_match) => {
                let message = self.config.describe();
                if *self.config.counts().start() == 1 {
                    CheckIssue::new(IssueType::Missing, message)
                } else {
                    let allowed = self.config.allowed();
                    let seen = format!("{message} ({count} found, {allowed} required)");
                    CheckIssue::new(IssueType::Missing, seen).fix(format!("add {missing} more"))
                }
            }
            _ => CheckIssue::new(IssueType::Missing, seen).fix(fix),
        }
    }

    /// Returns an issue for each excess match: all matches, or those beyond the maximum.
    fn too_many(&self, draft: &str, count: u64, most: u64) -> Vec<CheckIssue> {
        let pattern = &self.config.pattern;
        let rule = if most == 0 {
            "which must not occur".to_owned()
        } else {
            let most = matches(most);
            format!("and {most} at most may be there, not {count}")
        };
        let skip = usize::try_from(most).unwrap_or(usize::MAX);
        let surplus = usize::try_from(count - most).unwrap_or(usize::MAX);
        let issues = self.regex.captures_iter(draft).skip(skip).map(|captures| {
            let found = captures.get_match();
            let shown = excerpt(found.as_str());
            let line = line_of(draft, found.start());
            let description = match self.message(&captures) {
                // The place of the match is with the issue; the message is for writers as it is.
                Some(message) => message,
                None => format!("`{shown}` in line {line} matches `{pattern}`, {rule}"),
            };
            CheckIssue::new(IssueType::Incorrect, description)
                .fix(format!("remove or reword `{shown}` in line {line}"))
                .at(place_of(draft, found.range()))
        });
        bounded(issues, surplus, |rest| {
            CheckIssue::new(
                IssueType::Incorrect,
                format!("and {rest} more of `{pattern}`, {rule}"),
            )
            .fix(format!(
                "remove or reword every passage that matches `{pattern}`"
            ))
        })
    }

    /// Renders the criteria file's message about a match.
    fn message(&self, captures: &Captures<'_>) -> Option<String> {
        self.config.say(|name| {
            let group = match name.parse() {
                _ if name == WHOLE_MATCH => captures.get(0),
                Ok(number) => captures.get(number),
                Err(_) => captures.name(name),
            };
            group
                .map(|group| excerpt(group.as_str()))
                .unwrap_or_default()
        })
    }
}

fn matches(count: u64) -> String {
    format!("{count} {}", plural(count, "match", "matches"))
}

fn is_or_are(allowed: &str) -> String {
    let verb = if allowed.ends_with(" 1") { "is" } else { "are" };
    format!("{allowed} {verb}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::passage::MAX_ISSUES;
    use crate::types::Expect;

    fn config(pattern: &str, expect: Expect) -> RegexConfig {
        RegexConfig {
            pattern: pattern.to_owned(),
            expect,
            min_count: None,
            max_count: None,
            message: None,
        }
    }

    fn measure(config: &RegexConfig, draft: &str) -> Finding {
        RegexCheck::new(config).unwrap().measure(draft, None)
    }

    fn check(pattern: &str, expect: Expect, draft: &str) -> Finding {
        measure(&config(pattern, expect), draft)
    }

    #[test]
    fn presence_and_absence() {
        assert_eq!(check("b+", Expect::Present, "abbc").score, Some(1.0));
        assert_eq!(check("b+", Expect::Present, "xyz").score, Some(0.0));
        assert_eq!(check("b+", Expect::Absent, "xyz").score, Some(1.0));
        assert_eq!(check("b+", Expect::Absent, "abbc").score, Some(0.5));
        assert_eq!(check("b", Expect::Absent, "abbbc").score, Some(0.25));
    }

    #[test]
    fn a_count_outside_of_its_range_scores_by_how_far_it_is_off() {
        let ranged = RegexConfig {
            min_count: Some(2),
            max_count: Some(3),
            ..config("x", Expect::Present)
        };
        let score = |count: usize| measure(&ranged, &"x ".repeat(count)).score;
        let scores: Vec<_> = (0..=7).map(score).collect();
        let expected = [0.0, 0.5, 1.0, 1.0, 4.0 / 5.0, 4.0 / 6.0, 4.0 / 7.0, 0.5];
        assert_eq!(scores, expected.map(Some));
        assert_eq!(
            ranged.describe(),
            "the text must match the regular expression `x`; matches required: 2 to 3"
        );
        let few = measure(&ranged, "x").issues.remove(0);
        assert_eq!(few.kind, IssueType::Missing);
        assert_eq!(few.description, "1 match of `x`, 2 to 3 are required");
        assert_eq!(few.suggested_fix.as_deref(), Some("add 1 match of `x`"));
        let many = measure(&ranged, "x x\nx x x").issues;
        let descriptions: Vec<_> = many
            .iter()
            .map(|issue| issue.description.as_str())
            .collect();
        assert_eq!(
            descriptions,
            ["`x` in line 2 matches `x`, and 3 matches at most may be there, not 5"; 2]
        );
    }

    #[test]
    fn a_bound_above_may_go_without_one_below() {
        let capped = RegexConfig {
            min_count: Some(0),
            max_count: Some(1),
            ..config("x", Expect::Present)
        };
        assert_eq!(measure(&capped, "").score, Some(1.0));
        assert_eq!(measure(&capped, "x").score, Some(1.0));
        assert_eq!(measure(&capped, "xx").score, Some(2.0 / 3.0));
        let one = RegexConfig {
            min_count: None,
            ..capped
        };
        assert_eq!(measure(&one, "").score, Some(0.0));
    }

    #[test]
    fn each_bad_match_is_a_fault_with_its_place_and_its_words() {
        let issues = check("(?i)todo", Expect::Absent, "one todo\ntwo TODO\n").issues;
        let descriptions: Vec<_> = issues
            .iter()
            .map(|issue| issue.description.as_str())
            .collect();
        assert_eq!(
            descriptions,
            [
                "`todo` in line 1 matches `(?i)todo`, which must not occur",
                "`TODO` in line 2 matches `(?i)todo`, which must not occur"
            ]
        );
        assert_eq!(issues[1].kind, IssueType::Incorrect);
        assert_eq!(issues[1].place.line, Some(2));
        assert_eq!(issues[1].place.quote.as_deref(), Some("TODO"));
        assert_eq!(
            issues[1].suggested_fix.as_deref(),
            Some("remove or reword `TODO` in line 2")
        );
    }

    #[test]
    fn of_very_many_the_rest_is_counted() {
        let finding = check("x", Expect::Absent, &"x\n".repeat(1_000));
        assert_eq!(finding.issues.len(), MAX_ISSUES + 1);
        assert_eq!(
            finding.issues[MAX_ISSUES].description,
            "and 990 more of `x`, which must not occur"
        );
        assert_eq!(finding.evidence, "1000 matches, the first `x` in line 1");
    }

    #[test]
    fn a_message_stands_for_the_pattern() {
        let config = RegexConfig {
            message: Some("Start with x.".to_owned()),
            ..config("^x", Expect::Present)
        };
        let issue = measure(&config, "y").issues.remove(0);
        assert_eq!(issue.description, "Start with x.");
        assert_eq!(issue.suggested_fix, None);
        let three = RegexConfig {
            pattern: "x".to_owned(),
            min_count: Some(3),
            message: Some("Write `x` three times.".to_owned()),
            ..config
        };
        let issue = measure(&three, "x").issues.remove(0);
        assert_eq!(
            issue.description,
            "Write `x` three times. (1 found, at least 3 required)"
        );
        assert_eq!(issue.suggested_fix.as_deref(), Some("add 2 more"));
    }

    #[test]
    fn a_message_says_what_was_matched() {
        let config = RegexConfig {
            message: Some("Write `{to}`, not `{match}` ({2}{3}).".to_owned()),
            ..config(r"(?P<to>\w+)-(is)(h)?", Expect::Absent)
        };
        let issue = measure(&config, "\ngreen-is").issues.remove(0);
        assert_eq!(issue.description, "Write `green`, not `green-is` (is).");
        // The rule itself refers to no match.
        assert!(
            config
                .describe()
                .starts_with("nothing in the text may match")
        );
    }

    #[test]
    fn long_and_multi_line_matches_are_clipped() {
        let finding = check(
            "(?s)a.*",
            Expect::Present,
            &format!("a\n{}", "b".repeat(500)),
        );
        assert!(
            finding.evidence.chars().count() < 90,
            "{}",
            finding.evidence
        );
        assert!(!finding.evidence.contains('\n'));
    }

    #[test]
    fn matches_of_nothing_are_counted_like_others() {
        let finding = check("(?m)^$", Expect::Absent, "a\n\nb\n\nc");
        assert_eq!(finding.score, Some(1.0 / 3.0));
        assert_eq!(finding.issues[1].place.line, Some(4));
        assert_eq!(finding.issues[1].place.quote, None);
    }

    proptest::proptest! {
        /// One more match below the range, or one fewer above it, never lowers the score.
        #[test]
        fn a_repair_never_lowers_the_score(count in 0usize..12, min in 0u64..8, more in 0u64..4) {
            let ranged = RegexConfig {
                min_count: Some(min),
                max_count: Some(min + more),
                ..config("x", Expect::Present)
            };
            let score = |count: usize| measure(&ranged, &"x ".repeat(count)).score.unwrap();
            let (now, found) = (score(count), count as u64);
            if found < min {
                proptest::prop_assert!(score(count + 1) > now);
            } else if found > min + more {
                proptest::prop_assert!(score(count - 1) > now);
            } else {
                proptest::prop_assert!(now >= 1.0);
            }
        }
    }
}
