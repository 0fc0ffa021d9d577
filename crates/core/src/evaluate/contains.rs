use ::regex::Regex;

use super::blocking::Measure;
use super::passage::{MAX_ISSUES, bounded, excerpt, line_of, place_of, ratio};
use super::{CheckIssue, Finding};
use crate::source;
use crate::text::counted;
use crate::types::{ContainsConfig, IssueType};

/// The `contains` evaluator: required and forbidden texts. The score is the share of rules that
/// hold: each text of `all` and of `none` is a rule, and `any` as a whole is one.
pub(super) struct ContainsCheck {
    all: Vec<TextMatcher>,
    any: Vec<TextMatcher>,
    none: Vec<TextMatcher>,
}

/// A text and its matcher.
struct TextMatcher {
    text: String,
    finder: Regex,
}

impl ContainsCheck {
    pub(super) fn new(config: &ContainsConfig) -> Result<Self, String> {
        let wanted = |texts: &[String]| {
            texts
                .iter()
                .map(|text| {
                    let finder = config.finder(text).map_err(|error| error.to_string())?;
                    let text = text.clone();
                    Ok(TextMatcher { text, finder })
                })
                .collect::<Result<Vec<_>, String>>()
        };
        Ok(Self {
            all: wanted(&config.all)?,
            any: wanted(&config.any)?,
            none: wanted(&config.none)?,
        })
    }
}

impl Measure for ContainsCheck {
    fn measure(&self, draft: &str, _: Option<&str>) -> Finding {
        let is_there = |wanted: &&TextMatcher| wanted.finder.is_match(draft);
        let missing: Vec<&TextMatcher> = self.all.iter().filter(|text| !is_there(text)).collect();
        let banned: Vec<&TextMatcher> = self.none.iter().filter(is_there).collect();
        let any_missing = !self.any.is_empty() && !self.any.iter().any(|text| is_there(&text));

        let rules = self.all.len() + self.none.len() + usize::from(!self.any.is_empty());
        let broken = missing.len() + banned.len() + usize::from(any_missing);
        let issues = missing
            .iter()
            .map(|wanted| missing_text(&wanted.text))
            .chain(any_missing.then(|| self.missing_any()))
            .chain(banned.iter().map(|wanted| forbidden_text(wanted, draft)));
        let issues = bounded(issues, broken, |rest| {
            CheckIssue::new(
                IssueType::Incorrect,
                format!("and {rest} more of this kind"),
            )
        });
        // The criteria parser guarantees at least one rule.
        let score = ratio((rules - broken) as u64, rules.max(1) as u64);
        Finding::graded(score, self.evidence(&missing, any_missing, &banned)).with_issues(issues)
    }
}

impl ContainsCheck {
    fn evidence(
        &self,
        missing: &[&TextMatcher],
        any_missing: bool,
        banned: &[&TextMatcher],
    ) -> String {
        let mut parts = Vec::new();
        if !self.all.is_empty() {
            let found = self.all.len() - missing.len();
            parts.push(format!("{found} of {} there", self.all.len()));
        }
        if !self.any.is_empty() {
            let which = if any_missing { "none" } else { "one" };
            parts.push(format!("{which} of {} to choose from", self.any.len()));
        }
        if !self.none.is_empty() {
            parts.push(format!(
                "{} of {} not allowed",
                banned.len(),
                self.none.len()
            ));
        }
        parts.join(", ")
    }

    fn missing_any(&self) -> CheckIssue {
        let texts: Vec<String> = self
            .any
            .iter()
            .map(|wanted| excerpt(&wanted.text))
            .collect();
        let shown = source::list(texts.iter().take(MAX_ISSUES).map(String::as_str));
        let more = match texts.len().saturating_sub(MAX_ISSUES) {
            0 => String::new(),
            more => format!(", or {more} others"),
        };
        CheckIssue::new(
            IssueType::Missing,
            format!("the text contains none of {shown}{more}, one of which is required"),
        )
        .fix(format!("use one of {shown}{more}"))
    }
}

fn missing_text(text: &str) -> CheckIssue {
    let shown = excerpt(text);
    CheckIssue::new(
        IssueType::Missing,
        format!("the text does not contain `{shown}`"),
    )
    .fix(format!("add `{shown}`"))
}

/// Returns the issue for a forbidden text, at its first occurrence.
fn forbidden_text(wanted: &TextMatcher, draft: &str) -> CheckIssue {
    let mut places = wanted.finder.find_iter(draft);
    let first = places.next().map(|found| found.range()).unwrap_or_default();
    let shown = excerpt(&draft[first.clone()]);
    let line = line_of(draft, first.start);
    let more = match places.count() as u64 {
        0 => String::new(),
        more => format!(", {} in all", counted(more + 1, "time")),
    };
    CheckIssue::new(
        IssueType::Incorrect,
        format!("the text contains `{shown}` in line {line}{more}, which is not allowed"),
    )
    .fix(format!("remove or reword `{shown}`"))
    .at(place_of(draft, first))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn measure(config: &ContainsConfig, draft: &str) -> Finding {
        ContainsCheck::new(config).unwrap().measure(draft, None)
    }

    fn descriptions(finding: &Finding) -> Vec<&str> {
        let issues = finding.issues.iter();
        issues.map(|issue| issue.description.as_str()).collect()
    }

    #[test]
    fn the_score_is_the_share_of_the_rules_that_are_kept() {
        let config = ContainsConfig {
            all: texts(&["one", "two"]),
            any: texts(&["red", "blue"]),
            none: texts(&["bad"]),
            ..ContainsConfig::default()
        };
        let finding = measure(&config, "one two blue");
        assert_eq!(finding.score, Some(1.0));
        assert_eq!(finding.issues, []);
        assert_eq!(
            finding.evidence,
            "2 of 2 there, one of 2 to choose from, 0 of 1 not allowed"
        );
        let finding = measure(&config, "one\na bad\nbad line");
        assert_eq!(finding.score, Some(0.25));
        assert_eq!(
            descriptions(&finding),
            [
                "the text does not contain `two`",
                "the text contains none of `red` and `blue`, one of which is required",
                "the text contains `bad` in line 2, 2 times in all, which is not allowed",
            ]
        );
        assert_eq!(finding.issues[2].place.line, Some(2));
        assert_eq!(finding.issues[2].place.quote.as_deref(), Some("bad"));
        assert_eq!(finding.issues[0].kind, IssueType::Missing);
    }

    #[test]
    fn case_and_whole_words() {
        let config = |words, ignore_case| ContainsConfig {
            all: texts(&["Art", "C++"]),
            words,
            ignore_case,
            ..ContainsConfig::default()
        };
        let score = |words, ignore_case, draft| measure(&config(words, ignore_case), draft).score;
        assert_eq!(score(false, false, "start c++"), Some(0.0));
        assert_eq!(score(false, true, "start c++"), Some(1.0));
        assert_eq!(score(true, true, "start c++"), Some(0.5));
        assert_eq!(score(true, true, "ART, C++!"), Some(1.0));
    }

    #[test]
    fn signs_are_signs_and_no_pattern() {
        let config = ContainsConfig {
            none: texts(&["a.c", "[x]"]),
            ..ContainsConfig::default()
        };
        assert_eq!(measure(&config, "abc x").score, Some(1.0));
        assert_eq!(measure(&config, "a.c [x]").score, Some(0.0));
    }

    #[test]
    fn of_many_faults_the_rest_is_counted() {
        let many: Vec<String> = (0..30).map(|n| format!("t{n:02}")).collect();
        let config = ContainsConfig {
            all: many,
            ..ContainsConfig::default()
        };
        let finding = measure(&config, "t00");
        assert_eq!(finding.issues.len(), MAX_ISSUES + 1);
        assert_eq!(
            descriptions(&finding)[MAX_ISSUES],
            "and 19 more of this kind"
        );
    }

    proptest::proptest! {
        /// Adding a missing text or removing a forbidden one never lowers the score.
        #[test]
        fn a_repair_never_lowers_the_score(
            forbidden_text in proptest::collection::vec(proptest::bool::ANY, 4),
            banned in proptest::collection::vec(proptest::bool::ANY, 3),
        ) {
            let names = |prefix: &str, count: usize| -> Vec<String> {
                (0..count).map(|n| format!("{prefix}{n}")).collect()
            };
            let config = ContainsConfig {
                all: names("good", 4),
                none: names("bad", 3),
                ..ContainsConfig::default()
            };
            let score = |forbidden_text: &[bool], banned: &[bool]| {
                let good = (0..).zip(forbidden_text).filter(|(_, it)| **it).map(|(n, _)| format!("good{n}"));
                let bad = (0..).zip(banned).filter(|(_, it)| **it).map(|(n, _)| format!("bad{n}"));
                let draft: Vec<String> = good.chain(bad).collect();
                measure(&config, &draft.join(" ")).score.unwrap()
            };
            let now = score(&forbidden_text, &banned);
            for at in 0..forbidden_text.len() {
                let mut more = forbidden_text.clone();
                more[at] = true;
                proptest::prop_assert!(score(&more, &banned) >= now);
            }
            for at in 0..banned.len() {
                let mut fewer = banned.clone();
                fewer[at] = false;
                proptest::prop_assert!(score(&forbidden_text, &fewer) >= now);
            }
        }
    }
}
