use ::regex::Regex;
use async_trait::async_trait;

use super::{Fault, Finding, HardCheck, Subject};
use crate::types::{Expect, IssueType, Place, RegexConfig};

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

#[async_trait]
impl HardCheck for RegexCheck {
    async fn check(&self, subject: &Subject<'_>) -> Finding {
        self.measure(subject.draft)
    }
}

impl RegexCheck {
    fn measure(&self, draft: &str) -> Finding {
        let pattern = &self.config.pattern;
        let found = self.regex.find(draft);
        let place = found.map(|found| {
            let line = draft[..found.start()].matches('\n').count() + 1;
            let shown = clip(found.as_str());
            let text = format!("`{shown}` in line {line}");
            (
                text,
                Place {
                    line: Some(line as u64),
                    ..Place::default()
                },
            )
        });
        let (ok, evidence, fault) = match (self.config.expect, place) {
            (Expect::Present, Some((place, _))) => (true, format!("found {place}"), None),
            (Expect::Absent, None) => (true, "not found".to_owned(), None),
            (Expect::Present, None) => {
                let fault = self.fault(
                    IssueType::Missing,
                    format!("nothing in the text matches `{pattern}`"),
                    format!("add a passage that matches `{pattern}`"),
                );
                (false, "not found".to_owned(), Some(fault))
            }
            (Expect::Absent, Some((place, at))) => {
                let fault = self.fault(
                    IssueType::Incorrect,
                    format!("{place} matches `{pattern}`, which must not occur"),
                    format!("remove or reword every passage that matches `{pattern}`"),
                );
                (false, format!("found {place}"), Some(fault.at(at)))
            }
        };
        Finding::graded(if ok { 1.0 } else { 0.0 }, evidence).with_faults(fault)
    }
}

impl RegexCheck {
    fn fault(&self, kind: IssueType, description: String, suggested_fix: String) -> Fault {
        let description = match &self.config.message {
            Some(message) => format!("{message} ({description})"),
            None => description,
        };
        Fault::new(kind, description).fix(suggested_fix)
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
        .measure(draft)
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
            .faults
            .remove(0);
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
        let fault = check.measure("y").faults.remove(0);
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
