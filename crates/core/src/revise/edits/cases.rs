//! Replies with typical mistakes of models, and the expected results: `tests/data/edits/*.toml`.

use std::path::Path;

use serde::Deserialize;

use super::{apply, parse};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    draft: String,
    reply: String,
    /// The expected text. Default: the unchanged draft.
    result: Option<String>,
    /// The expected number of rejected blocks.
    #[serde(default)]
    failed: u32,
    /// The expected grade of every applied block.
    how: Option<String>,
}

impl Case {
    /// Returns how the result differs from the expectation.
    fn problem(&self) -> Option<String> {
        let applied = apply(&self.draft, &parse(&self.reply));
        let counts = applied.counts;
        let wanted = self.result.as_ref().unwrap_or(&self.draft);
        let all = |count| count == counts.applied();
        let grade = match self.how.as_deref() {
            None => true,
            Some("exact") => all(counts.exact),
            Some("tolerant") => all(counts.tolerant),
            Some("fuzzy") => all(counts.fuzzy),
            Some(other) => panic!("{}: `{other}` is no grade", self.name),
        };
        if &applied.text == wanted && counts.failed == self.failed && grade {
            return None;
        }
        let reasons: Vec<&str> = applied
            .failed
            .iter()
            .map(|failed| failed.reason.as_str())
            .collect();
        Some(format!(
            "{}\n  wanted {wanted:?}, {} failed, {:?}\n  got    {:?}, {counts:?} {reasons:?}",
            self.name, self.failed, self.how, applied.text
        ))
    }
}

#[test]
fn every_reply_comes_to_what_is_wanted() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/edits");
    let mut names = Vec::new();
    let mut wrong = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let cases: Cases = toml::from_str(&fs_err::read_to_string(&path).unwrap())
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in cases.case {
            let wants = case.result.is_some() || case.failed > 0;
            assert!(wants, "{}: nothing is wanted", case.name);
            wrong.extend(case.problem());
            names.push(case.name);
        }
    }
    let count = names.len();
    assert!(
        wrong.is_empty(),
        "{} of {count}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(count >= 200, "only {count} cases");
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count, "two cases have one name");
}
