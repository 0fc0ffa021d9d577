use ::regex::Regex;

use super::{Fault, Finding, HardCheck};
use crate::types::{Expect, IssueType, RegexConfig, Status};

/// The `regex` evaluator: a pattern must be present or absent. The score is 1 or 0.
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

impl HardCheck for RegexCheck {
    fn check(&self, draft: &str) -> Finding {
        let pattern = &self.config.pattern;
        let found = self.regex.find(draft);
        let place = found.map(|found| {
            let line = draft[..found.start()].matches('\n').count() + 1;
            format!("`{}` in line {line}", clip(found.as_str()))
        });
        let (ok, evidence, fault) = match (self.config.expect, place) {
            (Expect::Present, Some(place)) => (true, format!("found {place}"), None),
            (Expect::Absent, None) => (true, "not found".to_owned(), None),
            (Expect::Present, None) => {
                let fault = self.fault(
                    IssueType::Missing,
                    format!("nothing in the text matches `{pattern}`"),
                    format!("add a passage that matches `{pattern}`"),
                );
                (false, "not found".to_owned(), Some(fault))
            }
            (Expect::Absent, Some(place)) => {
                let fault = self.fault(
                    IssueType::Incorrect,
                    format!("{place} matches `{pattern}`, which must not occur"),
                    format!("remove or reword every passage that matches `{pattern}`"),
                );
                (false, format!("found {place}"), Some(fault))
            }
        };
        Finding {
            score: Some(if ok { 1.0 } else { 0.0 }),
            status: Status::Ok,
            evidence,
            fault,
        }
    }
}

impl RegexCheck {
    fn fault(&self, kind: IssueType, description: String, suggested_fix: String) -> Fault {
        let description = match &self.config.message {
            Some(message) => format!("{message} ({description})"),
            None => description,
        };
        Fault {
            kind,
            description,
            suggested_fix,
        }
    }
}

/// Enough of a match to know it again.
fn clip(text: &str) -> String {
    const CHARS: usize = 60;
    let line: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    match line.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, expect: Expect, draft: &str) -> Finding {
        RegexCheck::new(&RegexConfig {
            pattern: pattern.to_owned(),
            expect,
            message: None,
        })
        .unwrap()
        .check(draft)
    }

    #[test]
    fn presence_and_absence() {
        assert_eq!(check("b+", Expect::Present, "abbc").score, Some(1.0));
        assert_eq!(check("b+", Expect::Present, "xyz").score, Some(0.0));
        assert_eq!(check("b+", Expect::Absent, "xyz").score, Some(1.0));
        assert_eq!(check("b+", Expect::Absent, "abbc").score, Some(0.0));
    }

    #[test]
    fn a_fault_names_the_place_and_the_value_seen() {
        let fault = check("(?i)todo", Expect::Absent, "one\ntwo TODO\n")
            .fault
            .unwrap();
        assert_eq!(
            fault.description,
            "`TODO` in line 2 matches `(?i)todo`, which must not occur"
        );
        assert_eq!(fault.kind, IssueType::Incorrect);
    }

    #[test]
    fn the_message_goes_first() {
        let check = RegexCheck::new(&RegexConfig {
            pattern: "^x".to_owned(),
            expect: Expect::Present,
            message: Some("Start with x.".to_owned()),
        })
        .unwrap();
        let fault = check.check("y").fault.unwrap();
        assert!(
            fault.description.starts_with("Start with x. ("),
            "{fault:?}"
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
}
