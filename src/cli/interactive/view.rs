//! What an interactive run shows while the user decides.

use crate::cli::{columns, printer};
use crate::report;
use crate::text::one_line;
use crate::types::{RunRecord, Version};

/// How many issues the menu shows.
pub(super) const ISSUES: usize = 3;

/// Renders a draft in indented rows of at most `width` columns. After `most` rows, shows how many are left.
pub(super) fn draft(text: &str, width: usize, most: usize) -> String {
    let text = printer::without_controls(text);
    let mut rows: Vec<String> = Vec::new();
    for line in text.trim_end().split('\n') {
        // Tabs have no fixed width.
        let line = line.replace('\t', "    ");
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        let before = rows.len();
        let space = width.saturating_sub(2 + indent.len());
        for row in columns::rows(line.trim_start(), space) {
            rows.push(format!("  {indent}{row}"));
        }
        if rows.len() == before {
            rows.push(String::new());
        }
    }
    let left = rows.len().saturating_sub(most);
    // A row saying that one row is omitted would save nothing.
    if left > 1 {
        rows.truncate(most);
        let left = rows_in_words(left);
        let more = columns::rows(&left, width.saturating_sub(2)).join("\n  ");
        rows.push(format!("  {more}"));
    }
    rows.join("\n")
}

fn rows_in_words(rows: usize) -> String {
    format!("… {rows} more rows; show them with [s]")
}

/// Describes the version, its score and its standing. `rejected` is a revision that produced no draft.
pub(super) fn title(record: &RunRecord, at: &Version, best: u32, rejected: Option<u32>) -> String {
    let mut parts = vec![format!("draft {}", at.iteration), report::score(at.score())];
    if let Some(rejected) = rejected {
        parts.push(format!("revision {rejected} was rejected"));
    }
    if record.versions.len() > 1 {
        parts.push(if at.iteration == best {
            "the best so far".to_owned()
        } else {
            format!("draft {best} is the best so far")
        });
    }
    parts.join(" · ")
}

/// Returns the most severe issues of a version, one per line.
pub(super) fn issues(version: &Version) -> Vec<String> {
    let evaluation = version.evaluation.iter();
    let worst = evaluation.flat_map(|evaluation| report::worst_issues(evaluation, ISSUES));
    worst
        .map(|issue| {
            let text = one_line(&issue.description);
            let line = format!("  - {}: {text}", issue.severity.as_str());
            printer::without_controls(&line).into_owned()
        })
        .collect()
}

/// Returns the versions to compare a version with: its base and the best one.
pub(super) fn others<'r>(record: &'r RunRecord, at: &Version, best: u32) -> Vec<&'r Version> {
    let mut numbers = vec![best];
    numbers.extend(at.based_on);
    numbers.sort_unstable();
    numbers.dedup();
    numbers
        .into_iter()
        .filter(|number| *number != at.iteration)
        .filter_map(|number| record.version(number))
        .collect()
}

/// Renders the critique of a version.
pub(super) fn critique(record: &RunRecord, at: &Version) -> String {
    let before = at.based_on.and_then(|base| record.version(base));
    let line = report::evaluation_line(at, before.and_then(Version::score));
    let mut out = format!("draft {}: {line}", at.iteration);
    if let Some(evaluation) = &at.evaluation {
        out = out + "\n" + report::critique(evaluation).trim_end();
    }
    out
}

/// Formats a version as a list item of at most `width` columns. ASCII only, because the list counts bytes.
pub(super) fn item(version: &Version, best: u32, width: usize) -> String {
    let score = report::score(version.score());
    let mut item = format!("draft {}, {score}", version.iteration);
    if version.iteration == best {
        item.push_str(", the best so far");
    }
    item.truncate(width.max(1));
    item
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_drafts_are_cut_to_the_screen() {
        let text = "fn main() {\n    let x = 1;\n\tlet long = words that do not fit here;\n}\n\n";
        assert_eq!(
            draft(text, 30, 10),
            "  fn main() {\n      let x = 1;\n      let long = words that do\n      not fit here;\n  }"
        );
        assert_eq!(
            draft("1\n\n3\n4\n5\n6", 40, 3),
            "  1\n\n  3\n  … 3 more rows; show them with [s]"
        );
        assert_eq!(draft("1\n2\n3", 40, 2), "  1\n  2\n  3");
        assert_eq!(draft("a\u{1b}[31mb", 40, 2), "  a^[[31mb");
    }
}
