//! The strategy `incremental`: rewrites the sections with issues one by one, and adds missing
//! content as a new section.

use std::collections::BTreeSet;

use super::choose::touched_sections;
use super::edits::{Haystack, apply, has_blocks, parse};
use super::scope::{Scope, scope};
use super::sections::{TextSection, sections};
use crate::model::{EndReason, Reply};
use crate::prompt::Revise;
use crate::types::{Issue, Severity};

/// The maximum number of sections per revision, most severe first. The rest waits for the next
/// evaluation.
const MAX_SECTIONS: usize = 4;

/// The minimum size in bytes of another section's text in a reply that shows that the reply
/// contains more than the requested section.
const FOREIGN: usize = 40;

/// A revision by sections in progress.
#[derive(Debug, Clone)]
pub(super) struct SectionRevision {
    sections: Vec<TextSection>,
    names: Vec<String>,
    /// The remaining targets, the next one last.
    targets: Vec<SectionTarget>,
    /// The rewritten sections: index and new text.
    rewritten: Vec<(usize, String)>,
    /// The added section: after how many sections, and its text.
    added: Option<(usize, String)>,
    /// The number of unusable replies.
    failed: usize,
}

#[derive(Debug, Clone)]
enum SectionTarget {
    Section(usize, Vec<Issue>),
    Addition(Vec<Issue>),
}

impl SectionRevision {
    /// Plans which sections to request.
    ///
    /// # Errors
    /// Why the issues cannot be assigned to sections.
    pub(super) fn plan(draft: &str, issues: &[Issue]) -> Result<Self, String> {
        let parts = sections(draft);
        if issues.is_empty() {
            return Err("no single fault is named".to_owned());
        }
        let mut by_section: Vec<(usize, Vec<Issue>)> = Vec::new();
        let (mut missing, mut whole) = (Vec::new(), Vec::new());
        let haystack = Haystack::new(draft);
        for issue in issues {
            match scope(issue, &haystack, &parts) {
                Scope::Passage(range) => {
                    let at = touched_sections(&parts, &range)
                        .first()
                        .copied()
                        .unwrap_or(0);
                    match by_section.iter_mut().find(|(section, _)| *section == at) {
                        Some((_, own)) => own.push(issue.clone()),
                        None => by_section.push((at, vec![issue.clone()])),
                    }
                }
                Scope::Missing => missing.push(issue.clone()),
                Scope::Whole => whole.push(issue.clone()),
            }
        }
        if by_section.is_empty() && missing.is_empty() {
            return Err("the issues have no place in the draft".to_owned());
        }
        if parts.len() < 2 && missing.is_empty() {
            return Err("the draft is one section".to_owned());
        }
        by_section.sort_by_key(|(at, own)| (std::cmp::Reverse(total_severity(own)), *at));
        by_section.truncate(MAX_SECTIONS);
        // Issues about the whole draft go with every section.
        let mut targets: Vec<SectionTarget> = by_section
            .into_iter()
            .map(|(at, mut own)| {
                own.extend(whole.iter().cloned());
                SectionTarget::Section(at, own)
            })
            .collect();
        if !missing.is_empty() {
            targets.push(SectionTarget::Addition(missing));
        }
        targets.reverse();
        Ok(Self {
            names: parts.iter().map(|part| part.name(draft)).collect(),
            sections: parts,
            targets,
            rewritten: Vec::new(),
            added: None,
            failed: 0,
        })
    }

    /// Returns the next request, or `None` when all are done.
    pub(super) fn ask<'a>(&'a self, draft: &'a str) -> Option<Revise<'a>> {
        let headed = self
            .sections
            .iter()
            .any(|section| section.heading.is_some());
        Some(match self.targets.last()? {
            SectionTarget::Section(at, issues) => {
                let section = self.sections.get(*at)?;
                Revise::Section {
                    text: &draft[section.body(draft)],
                    headed: section.heading.is_some(),
                    issues,
                }
            }
            SectionTarget::Addition(issues) => Revise::Addition {
                sections: &self.names,
                headed,
                issues,
            },
        })
    }

    /// Handles the reply to the last request.
    pub(super) fn answer(&mut self, draft: &str, reply: &Reply) {
        let usable = reply.end == Some(EndReason::Stop) && !reply.text.trim().is_empty();
        let taken = match self.targets.pop() {
            Some(SectionTarget::Section(at, _)) if usable => self.rewrite(draft, at, &reply.text),
            Some(SectionTarget::Addition(_)) if usable => self.add(draft, &reply.text),
            _ => false,
        };
        self.failed += usize::from(!taken);
    }

    /// Returns the text with its new sections and whether every reply was usable, or `None` if
    /// nothing changed.
    pub(super) fn finish(&self, draft: &str) -> Option<(String, bool)> {
        let newline = if draft.contains("\r\n") { "\r\n" } else { "\n" };
        let gap = newline.repeat(2);
        let lines = |text: &str| text.replace("\r\n", "\n").replace('\n', newline);
        let mut out = String::with_capacity(draft.len());
        let add = |out: &mut String, behind: usize| {
            if let Some((_, text)) = self.added.as_ref().filter(|(at, _)| *at == behind) {
                if behind > 0 {
                    let kept = out.trim_end().len();
                    out.truncate(kept);
                    out.push_str(&gap);
                }
                out.push_str(&lines(text));
                if behind < self.sections.len() {
                    out.push_str(&gap);
                } else if draft.ends_with('\n') {
                    out.push_str(newline);
                }
            }
        };
        add(&mut out, 0);
        for (at, section) in self.sections.iter().enumerate() {
            match self.rewritten.iter().find(|(number, _)| *number == at) {
                Some((_, text)) => {
                    let body = section.body(draft);
                    out.push_str(&draft[section.range.start..body.start]);
                    out.push_str(&lines(text));
                    out.push_str(&draft[body.end..section.range.end]);
                }
                None => out.push_str(&draft[section.range.clone()]),
            }
            add(&mut out, at + 1);
        }
        (out != draft).then_some((out, self.failed == 0))
    }

    fn rewrite(&mut self, draft: &str, at: usize, reply: &str) -> bool {
        let Some(section) = self.sections.get(at) else {
            return false;
        };
        let old = &draft[section.body(draft)];
        let mut new = unfenced(reply, old);
        if has_blocks(&new) && !has_blocks(old) {
            // The model answered with edits of the section instead of its text.
            let applied = apply(old, &parse(reply));
            if !applied.failed.is_empty() {
                return false;
            }
            new = applied.text;
        }
        let parts = sections(&new);
        if let Some(heading) = &section.heading {
            let others = |part: &&TextSection| {
                part.heading.as_ref().is_some_and(|other| {
                    other != heading
                        && self
                            .sections
                            .iter()
                            .any(|known| known.heading.as_ref() == Some(other))
                })
            };
            if parts.iter().any(|part| others(&part)) {
                // The reply has more sections than requested: take the requested one.
                let Some(own) = parts
                    .iter()
                    .find(|part| part.heading.as_ref() == Some(heading))
                else {
                    return false;
                };
                let body = own.body(&new);
                new = new.drain(body).collect();
            } else if !starts_with_heading(&new) {
                // A reply without the section's heading: keep the existing one.
                let title = heading_lines(old);
                let rest = old[title.len()..].trim_start_matches(['\r', '\n']);
                let gap = &old[title.len()..old.len() - rest.len()];
                let gap = if gap.is_empty() { "\n" } else { gap };
                new = format!("{title}{gap}{}", new.trim_start_matches(['\r', '\n']));
            }
        }
        let foreign = self.sections.iter().enumerate().any(|(other, section)| {
            let body = draft[section.body(draft)].trim();
            other != at && body.len() >= FOREIGN && new.contains(body)
        });
        if foreign || new.trim().is_empty() {
            return false;
        }
        if new != old {
            self.rewritten.push((at, new));
        }
        true
    }

    fn add(&mut self, draft: &str, reply: &str) -> bool {
        let reply = unfenced(reply, "");
        let (behind, text) = match after(&reply) {
            Some((number, rest)) => (number.min(self.sections.len()), rest),
            None => (self.sections.len(), reply.as_str()),
        };
        let text = unfenced(text, "");
        if text.trim().is_empty() || has_blocks(&text) {
            return false;
        }
        // The reply extends an existing section.
        let heading = sections(&format!("{text}\n\n# x\n"))
            .into_iter()
            .next()
            .and_then(|first| first.heading);
        let same = heading.and_then(|heading| {
            self.sections
                .iter()
                .position(|section| section.heading.as_ref() == Some(&heading))
        });
        if let Some(at) = same {
            self.rewritten.retain(|(number, _)| *number != at);
            return self.rewrite(draft, at, &text);
        }
        if draft.contains(text.trim()) || holds_most(&text, draft) {
            return false;
        }
        self.added = Some((behind, text));
        true
    }
}

/// Returns whether a text contains at least half of the lines of a draft, so that it is the draft
/// rather than an addition.
fn holds_most(text: &str, draft: &str) -> bool {
    let lines = |text: &'_ str| -> BTreeSet<String> {
        let lines = text.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let (text, draft) = (lines(text), lines(draft));
    !draft.is_empty() && draft.intersection(&text).count() * 2 >= draft.len()
}

fn total_severity(issues: &[Issue]) -> u32 {
    issues
        .iter()
        .map(|issue| match issue.severity {
            Severity::Minor => 1,
            Severity::Major => 4,
            Severity::Critical => 16,
        })
        .sum()
}

fn starts_with_heading(text: &str) -> bool {
    !heading_lines(text.trim_start()).is_empty()
}

/// Returns the heading lines at the start of a section; empty if it has none.
fn heading_lines(section: &str) -> &str {
    let mut lines = section.split_inclusive('\n');
    let Some(first) = lines.next() else { return "" };
    if first.starts_with('#') {
        return first.trim_end();
    }
    let second = lines.next().unwrap_or_default();
    let under = second.trim();
    let underlined =
        under.len() >= 3 && (under.chars().all(|c| c == '=') || under.chars().all(|c| c == '-'));
    if underlined {
        section[..first.len() + second.len()].trim_end()
    } else {
        ""
    }
}

/// Removes a fence around the whole reply, unless the section has one itself.
fn unfenced(reply: &str, old: &str) -> String {
    let text = reply.trim_matches(['\n', '\r']).trim_end();
    let fence = |line: &str| line.trim().starts_with("```") || line.trim().starts_with("~~~");
    let lines: Vec<&str> = text.lines().collect();
    let fences = lines.iter().filter(|line| fence(line)).count();
    match lines.as_slice() {
        [first, inside @ .., last]
            if fence(first) && fence(last) && fences % 2 == 0 && !fence(old.trim()) =>
        {
            inside.join("\n")
        }
        _ => text.to_owned(),
    }
}

/// Returns the section number in the first line, and the rest.
fn after(reply: &str) -> Option<(usize, &str)> {
    let reply = reply.trim_start();
    let (line, rest) = reply.split_once('\n')?;
    let mut words = line
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    if !words.next()?.eq_ignore_ascii_case("after") {
        return None;
    }
    let number = words.find(|word| !word.eq_ignore_ascii_case("section"))?;
    let number = number.parse().ok()?;
    words
        .next()
        .is_none()
        .then(|| (number, rest.trim_start_matches(['\n', '\r'])))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{IssueType, Place};

    const DRAFT: &str =
        "# Setup\n\nInstall it.\n\n# Use\n\nRun it twice.\n\n# End\n\nThat is all.\n";

    fn issue(kind: IssueType, severity: Severity, line: Option<u64>) -> Issue {
        Issue {
            kind,
            severity,
            description: "Bad.".to_owned(),
            suggested_fix: None,
            criterion: None,
            place: Place {
                line,
                ..Place::default()
            },
        }
    }

    fn reply(text: &str) -> Reply {
        Reply {
            text: text.to_owned(),
            end: Some(EndReason::Stop),
            ..Reply::default()
        }
    }

    fn run(issues: &[Issue], replies: &[&str]) -> Option<(String, bool)> {
        let mut increments = SectionRevision::plan(DRAFT, issues).unwrap();
        for text in replies {
            assert!(
                increments.ask(DRAFT).is_some(),
                "more replies than questions"
            );
            increments.answer(DRAFT, &reply(text));
        }
        assert!(
            increments.ask(DRAFT).is_none(),
            "more questions than replies"
        );
        increments.finish(DRAFT)
    }

    fn wrong(line: u64) -> Issue {
        issue(IssueType::Incorrect, Severity::Major, Some(line))
    }

    #[test]
    fn a_whole_text_is_no_addition() {
        let whole = DRAFT.replace("Run it twice.", "Run it once.") + "\n# Licence\n\nIt is free.\n";
        let missing = issue(IssueType::Missing, Severity::Major, None);
        let mut increments = SectionRevision::plan(DRAFT, &[missing]).unwrap();
        assert!(matches!(
            increments.ask(DRAFT),
            Some(Revise::Addition { .. })
        ));
        let text = whole.replacen("# Setup", "# Before\n\nRead this.\n\n# Setup", 1);
        let end = Some(EndReason::Stop);
        increments.answer(
            DRAFT,
            &Reply {
                text,
                end,
                ..Reply::default()
            },
        );
        assert_eq!(increments.finish(DRAFT), None, "the draft is not doubled");
    }

    #[test]
    fn a_section_is_replaced_and_the_others_stay_as_they_are() {
        let wanted = DRAFT.replace("Run it twice.", "Run it once.");
        for text in [
            "# Use\n\nRun it once.",
            "\n# Use\n\nRun it once.\n\n",
            "```markdown\n# Use\n\nRun it once.\n```",
            // Without its heading.
            "Run it once.",
            // With all other sections.
            "# Setup\n\nInstall it well.\n\n# Use\n\nRun it once.\n\n# End\n\nThat is all.",
        ] {
            assert_eq!(
                run(&[wrong(7)], &[text]),
                Some((wanted.clone(), true)),
                "{text}"
            );
        }
        assert_eq!(
            run(&[wrong(7)], &["# Use\n\nRun it twice."]),
            None,
            "nothing changed"
        );
        assert_eq!(run(&[wrong(7)], &[" "]), None);
    }

    #[test]
    fn edits_of_a_section_are_applied_and_never_its_text() {
        let edit =
            |old: &str| format!("<<<<<<< SEARCH\n{old}\n=======\nRun it once.\n>>>>>>> REPLACE");
        let wanted = DRAFT.replace("Run it twice.", "Run it once.");
        let fenced = format!("```\n{}\n```", edit("Run it twice."));
        for text in [edit("Run it twice."), fenced] {
            assert_eq!(
                run(&[wrong(7)], &[&text]),
                Some((wanted.clone(), true)),
                "{text}"
            );
        }
        assert_eq!(run(&[wrong(7)], &[&edit("Nothing like it at all.")]), None);
        let missing = [issue(IssueType::Missing, Severity::Major, None)];
        assert_eq!(run(&missing, &[&edit("Run it twice.")]), None);
    }

    #[test]
    fn the_most_severe_issue_is_first_and_each_section_is_requested_once() {
        let mut issues = vec![wrong(3), wrong(7), wrong(7)];
        issues.push(issue(IssueType::Incorrect, Severity::Minor, None));
        let increments = SectionRevision::plan(DRAFT, &issues).unwrap();
        let Some(Revise::Section {
            text,
            issues,
            headed,
        }) = increments.ask(DRAFT)
        else {
            panic!("a section");
        };
        assert_eq!(
            (text, issues.len(), headed),
            ("# Use\n\nRun it twice.", 3, true)
        );
    }

    #[test]
    fn what_is_missing_is_added_where_the_model_says() {
        let missing = [issue(IssueType::Missing, Severity::Major, None)];
        let new = "# Licence\n\nMIT.";
        let after_two = DRAFT.replace("# End", "# Licence\n\nMIT.\n\n# End");
        assert_eq!(
            run(&missing, &["AFTER 2\n# Licence\n\nMIT."]).unwrap().0,
            after_two
        );
        assert_eq!(
            run(&missing, &["**After section 2:**\n\n# Licence\n\nMIT."])
                .unwrap()
                .0,
            after_two
        );
        assert_eq!(
            run(&missing, &["AFTER 0\n# Licence\n\nMIT."]).unwrap().0,
            format!("{new}\n\n{DRAFT}")
        );
        let end = format!("{}\n\n{new}\n", DRAFT.trim_end());
        assert_eq!(run(&missing, &[new]).unwrap().0, end);
        assert_eq!(
            run(&missing, &["AFTER 99\n# Licence\n\nMIT."]).unwrap().0,
            end
        );
        // An existing section is extended.
        let extended = DRAFT.replace("That is all.", "That is all.\nMIT.");
        assert_eq!(
            run(&missing, &["AFTER 3\n# End\n\nThat is all.\nMIT."])
                .unwrap()
                .0,
            extended
        );
        assert_eq!(run(&missing, &["# Use\n\nRun it twice."]), None);
    }

    #[test]
    fn a_reply_that_cannot_be_used_leaves_its_section_and_is_told() {
        let (text, all) = run(&[wrong(3), wrong(7)], &["# Setup\n\nInstall it now.", ""]).unwrap();
        assert_eq!(text, DRAFT.replace("Install it.", "Install it now."));
        assert!(!all);
    }

    #[test]
    fn issues_without_a_place_cannot_be_mended_by_sections() {
        let whole = issue(IssueType::Incorrect, Severity::Major, None);
        assert!(SectionRevision::plan(DRAFT, &[whole]).is_err());
        assert!(SectionRevision::plan(DRAFT, &[]).is_err());
        assert!(SectionRevision::plan("One line.", &[wrong(1)]).is_err());
    }

    proptest! {
        #[test]
        fn whatever_the_reply_the_other_sections_stay(text in "(# (Setup|Use|End|New)|[a-z ]{0,9}|```|AFTER [0-9]|\n){0,12}") {
            let mut increments = SectionRevision::plan(DRAFT, &[wrong(7)]).unwrap();
            increments.answer(DRAFT, &reply(&text));
            if let Some((out, _)) = increments.finish(DRAFT) {
                prop_assert!(out.starts_with("# Setup\n\nInstall it.\n\n"), "{out}");
                prop_assert!(out.ends_with("\n\n# End\n\nThat is all.\n"), "{out}");
            }
        }
    }
}
