//! The built-in sets other than the general ones: their checks tell a good text from a bad one.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::evaluate::{EvaluatorSet, Progress, Subject, Tools};
use crate::prompt::Prompts;
use crate::types::{Criteria, Evaluator, Task};

/// The checks that the bad text of each set (`builtin/texts/NAME.bad.txt`) does not pass. The good
/// text passes all of them. Commands do not run here.
const FAILED_BY_THE_BAD_TEXT: &[(&str, &[&str])] = &[
    (
        "commit",
        &[
            "subject-length",
            "subject-form",
            "imperative",
            "blank-second-line",
            "wrapped",
            "no-decoration",
        ],
    ),
    (
        "pull-request",
        &["only-the-text", "filled-in", "no-file-list", "testing"],
    ),
    ("changelog", &["only-items", "no-log", "concrete"]),
    (
        "release-notes",
        &["version", "sections", "no-log", "concrete"],
    ),
    (
        "readme",
        &[
            "title",
            "example",
            "licence",
            "install",
            "finished",
            "plain-words",
            "length",
        ],
    ),
    (
        "docstring",
        &["only-the-comment", "no-code", "direct", "finished"],
    ),
    (
        "unit-test",
        &[
            "only-code",
            "no-empty-assertions",
            "none-skipped",
            "no-waiting",
            "finished",
        ],
    ),
    ("rust", &["only-code", "finished", "no-panics"]),
    (
        "sql",
        &[
            "only-sql",
            "statements",
            "no-destruction",
            "bounded-writes",
            "named-columns",
            "explicit-joins",
            "no-injection",
        ],
    ),
    (
        "bug-report",
        &[
            "title",
            "steps",
            "expected",
            "actual",
            "version",
            "sober",
            "filled-in",
            "length",
        ],
    ),
    (
        "support-reply",
        &[
            "greeting",
            "closing",
            "ready-to-send",
            "no-stock-phrases",
            "no-blame",
            "calm",
            "length",
        ],
    ),
    (
        "email",
        &[
            "subject",
            "greeting",
            "closing",
            "ready-to-send",
            "no-filler",
            "few-questions",
            "length",
        ],
    ),
    (
        "meeting-minutes",
        &[
            "attendees",
            "decisions",
            "action-items",
            "no-transcript",
            "ready-to-send",
        ],
    ),
    (
        "summary",
        &[
            "only-the-summary",
            "direct",
            "no-filler",
            "length",
            "finished",
        ],
    ),
    (
        "translation",
        &["only-the-translation", "no-notes", "complete"],
    ),
    (
        "blog",
        &[
            "title",
            "headings",
            "calm",
            "short-paragraphs",
            "no-cliches",
        ],
    ),
    (
        "product-text",
        &[
            "only-the-text",
            "no-hype",
            "calm",
            "ready-to-print",
            "length",
        ],
    ),
    (
        "paragraph",
        &["short", "one-paragraph", "plain", "finished"],
    ),
    ("haiku", &["three-lines", "short", "only-the-poem"]),
    ("profile", &["form", "only-json", "real-values"]),
];

/// The sets other than the general ones.
fn library() -> Vec<Criteria> {
    let sets: Vec<Criteria> = builtins()
        .into_iter()
        .filter(|set| !TASK_TYPES.contains(&set.name.as_str()))
        .collect();
    let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
    let tested: Vec<&str> = FAILED_BY_THE_BAD_TEXT.iter().map(|it| it.0).collect();
    assert_eq!(
        names, tested,
        "every set has texts, in the order of the sets"
    );
    sets
}

fn text(name: &str, quality: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/criteria/builtin/texts")
        .join(format!("{name}.{quality}.txt"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// The checks of a set, without commands, which need permission.
fn checks(set: &Criteria) -> Criteria {
    let mut checks = set.clone();
    checks
        .criteria
        .retain(|it| it.evaluator.is_hard() && !matches!(it.evaluator, Evaluator::Command(_)));
    checks
}

/// Returns the names of the checks that a text does not pass.
async fn failed(set: &Criteria, text: &str) -> Vec<String> {
    let set = Arc::new(checks(set));
    let task = Task::new("");
    let subject = Subject {
        draft: text,
        prior: None,
        attempt: 0,
        progress: Progress {
            iteration: 1,
            task: &task,
            earlier: &[],
        },
    };
    let evaluators = EvaluatorSet::new(Arc::clone(&set), None, &Tools::none()).unwrap();
    let evaluation = evaluators
        .evaluate(&Prompts::new(&task, &set), &subject, &())
        .await
        .unwrap();
    let verdicts = evaluation.criteria.into_iter();
    verdicts
        .filter(|verdict| !verdict.passed)
        .map(|verdict| verdict.name)
        .collect()
}

#[tokio::test]
async fn checks_tell_a_good_text_from_a_bad_one() {
    let mut wrong = Vec::new();
    for (set, (name, expected)) in library().iter().zip(FAILED_BY_THE_BAD_TEXT) {
        for (quality, expected) in [("good", &[][..]), ("bad", *expected)] {
            let found = failed(set, &text(name, quality)).await;
            if found != expected {
                wrong.push(format!("{name}.{quality}.txt fails {found:?}"));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// A judge is tested with texts like those that it judges later, and those have passed the checks.
#[tokio::test]
async fn the_good_probe_text_passes_the_checks() {
    for set in library() {
        if let Some(good) = &set.probe.good {
            assert_eq!(
                failed(&set, good).await,
                Vec::<String>::new(),
                "{}",
                set.name
            );
        }
    }
}

#[test]
fn every_set_is_complete() {
    for set in library() {
        let name = &set.name;
        assert_eq!(warnings(&set), Vec::<String>::new(), "{name}");
        let description = set.description.as_deref().unwrap_or_default();
        assert!(
            (20..=85).contains(&description.len()),
            "{name}: {description}"
        );
        assert!(!description.contains('\n'), "{name}");
        let hard = |criterion: &crate::types::Criterion| criterion.evaluator.is_hard();
        assert!(
            set.criteria.first().is_some_and(hard),
            "{name} begins with checks"
        );
        assert!(
            set.criteria.is_sorted_by_key(|it| !hard(it)),
            "{name}: checks come first"
        );
        let judged = set.criteria.iter().filter(|it| !hard(it)).count();
        assert!(judged <= 4, "{name}: {judged} criteria for the judge");
        assert_eq!(
            judged > 0,
            !set.probe.is_empty(),
            "{name}: probe texts for the judge"
        );
        for criterion in &set.criteria {
            // The writer reads the description or the rule. A pattern means little to it.
            let rule = criterion.evaluator.describe().unwrap_or_default();
            assert!(
                !criterion.description.is_empty() || !rule.contains("regular expression"),
                "{name}: {}",
                criterion.name
            );
            let runs = matches!(
                criterion.evaluator,
                Evaluator::Command(_) | Evaluator::Script(_)
            );
            assert!(!runs || name == "rust", "{name}: {}", criterion.name);
        }
    }
}

#[test]
fn every_judged_set_has_probe_texts() {
    for set in builtins() {
        for text in [&set.probe.prompt, &set.probe.good, &set.probe.bad] {
            let long = text.as_ref().is_some_and(|text| text.len() > 20);
            assert_eq!(long, set.need_judge(), "{}", set.name);
        }
    }
}

#[test]
fn every_text_belongs_to_a_set() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/criteria/builtin");
    let names = |dir: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "texts")
            .collect();
        names.sort();
        names
    };
    let mut files: Vec<String> = BUILTIN_NAMES
        .iter()
        .map(|it| format!("{it}.toml"))
        .collect();
    files.sort();
    assert_eq!(names(&dir), files);
    let mut texts: Vec<String> = FAILED_BY_THE_BAD_TEXT
        .iter()
        .flat_map(|(name, _)| [format!("{name}.bad.txt"), format!("{name}.good.txt")])
        .collect();
    texts.sort();
    assert_eq!(names(&dir.join("texts")), texts);
}
