use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::source::FileAccess;
use crate::types::{
    Bounds, CompareConfig, CompareTarget, ContainsConfig, Criteria, Criterion, Evaluator, Expect,
    JudgeMode, JudgeSettings, LengthConfig, LengthUnit, LlmConfig, LoopSettings, MAX_REFERENCE,
    ProbeTexts, RegexConfig, SchemaConfig, Select, TIE_SCORE, Terms,
};

fn error(text: &str) -> String {
    parse(text, "c.toml").unwrap_err().to_string()
}

#[test]
fn the_task_types_have_their_criteria() {
    let general = || {
        let sets = builtins().into_iter();
        sets.filter(|set| TASK_TYPES.contains(&set.name.as_str()))
    };
    let sets: Vec<(String, Vec<String>)> = general()
        .map(|c| (c.name, c.criteria.into_iter().map(|k| k.name).collect()))
        .collect();
    let expected = [
        (
            "code",
            vec!["correctness", "efficiency", "readability", "edge_cases"],
        ),
        (
            "writing",
            vec!["clarity", "coherence", "completeness", "tone"],
        ),
        (
            "analysis",
            vec!["accuracy", "depth", "relevance", "objectivity"],
        ),
        (
            "reasoning",
            vec!["logical_validity", "completeness", "clarity"],
        ),
    ];
    assert_eq!(sets.len(), expected.len());
    for ((name, criteria), (want, want_criteria)) in sets.iter().zip(expected) {
        assert_eq!(name, want);
        assert_eq!(*criteria, want_criteria);
    }
    for set in general() {
        assert_eq!(warnings(&set), Vec::<String>::new(), "{}", set.name);
        assert!((set.threshold - 0.8).abs() < f64::EPSILON, "{}", set.name);
        for criterion in &set.criteria {
            assert!(!criterion.description.contains('\n'), "{}", criterion.name);
            assert!((criterion.threshold - 0.7).abs() < f64::EPSILON);
        }
    }
    assert!(builtin("nothing").is_none());
}

#[test]
fn the_design_s_file_is_read() {
    let criteria = parse(
        r#"
name = "code"
threshold = 0.85
[loop]
max_iterations = 4
select = "highest_score"
[[criteria]]
name = "correctness"
description = "Every function it calls exists."
weight = 2
threshold = 0.9
evaluator = "llm"
[[criteria]]
name = "no-todo"
evaluator = "regex"
pattern = '(?i)\btodo\b'
expect = "absent"
[[criteria]]
name = "length"
evaluator = "length"
max = 400
"#,
        "c.toml",
    )
    .unwrap();
    assert_eq!(
        criteria,
        Criteria {
            name: "code".into(),
            description: None,
            threshold: 0.85,
            loop_settings: LoopSettings {
                max_iterations: Some(4),
                select: Some(Select::HighestScore),
                ..LoopSettings::default()
            },
            judge_settings: JudgeSettings::default(),
            probe: ProbeTexts::default(),
            criteria: vec![
                Criterion {
                    name: "correctness".into(),
                    description: "Every function it calls exists.".into(),
                    weight: 2.0,
                    threshold: 0.9,
                    required: false,
                    evaluator: Evaluator::Llm(LlmConfig::default()),
                },
                Criterion {
                    name: "no-todo".into(),
                    description: String::new(),
                    weight: 1.0,
                    threshold: 1.0,
                    required: false,
                    evaluator: Evaluator::Regex(RegexConfig {
                        pattern: r"(?i)\btodo\b".into(),
                        expect: Expect::Absent,
                        min_count: None,
                        max_count: None,
                        message: None,
                    }),
                },
                Criterion {
                    name: "length".into(),
                    description: String::new(),
                    weight: 1.0,
                    threshold: 1.0,
                    required: false,
                    evaluator: Evaluator::Length(LengthConfig {
                        unit: LengthUnit::Words,
                        min: None,
                        max: Some(400),
                    }),
                },
            ],
        }
    );
}

#[test]
fn a_task_type_alone_is_the_built_in_set_with_what_the_file_changes() {
    let criteria = parse(
        "task_type = 'code'\nthreshold = 0.9\nloop.max_iterations = 7",
        "my.toml",
    )
    .unwrap();
    let code = builtin("code").unwrap();
    assert_eq!(criteria.criteria, code.criteria);
    assert_eq!(criteria.description, code.description);
    assert_eq!(criteria.name, "my");
    assert!((criteria.threshold - 0.9).abs() < f64::EPSILON);
    assert_eq!(criteria.loop_settings.max_iterations, Some(7));
    let plain = parse("task_type = 'code'", "-").unwrap();
    assert_eq!(plain.name, "criteria");
    assert!((plain.threshold - code.threshold).abs() < f64::EPSILON);
    // With its own criteria, the type is only a label.
    let own = parse("task_type = 'code'\n[[criteria]]\nname = 'x'\n", "x").unwrap();
    assert_eq!(own.criteria.len(), 1);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table, a line per mistake")]
fn every_mistake_is_named_with_its_place() {
    let c = |rest: &str| format!("[[criteria]]\nname = 'a'\n{rest}");
    let cases = [
        (String::new(), "c.toml: this criteria file is empty"),
        ("# only words".into(), "c.toml: this criteria file is empty"),
        ("name = 'x'".into(), "c.toml: this file has no criteria"),
        ("criteria = []".into(), "c.toml: this file has no criteria"),
        (
            "criteria = 3".into(),
            "c.toml:1:12: `criteria` must be an array of tables",
        ),
        (
            "[criteria]\nname='a'".into(),
            "c.toml:1:1: `criteria` must be an array of tables (write each criterion under its own `[[criteria]]`",
        ),
        (
            "criteria = ['a']".into(),
            "c.toml:1:13: `criteria` must be an array of tables",
        ),
        (
            "treshold = 1".into(),
            "c.toml:1:1: unknown key `treshold` (did you mean `threshold`?)",
        ),
        (
            "task_type = 'cod'".into(),
            "c.toml:1:13: `task_type`: unknown value `cod` (did you mean `code`?)",
        ),
        (
            "name = ' '\ntask_type = 'code'".into(),
            "c.toml:1:8: the name is empty",
        ),
        (
            "threshold = 80\ntask_type = 'code'".into(),
            "c.toml:1:13: `threshold` must be from 0 to 1, not 80 (did you mean 0.8?)",
        ),
        (
            "threshold = nan".into(),
            "c.toml:1:13: `threshold` must be from 0 to 1, not NaN",
        ),
        (
            "[loop]\nmax_iterations = 0".into(),
            "c.toml:2:18: `max_iterations` must be at least 1",
        ),
        (
            "[loop]\nmax_iteration = 1".into(),
            "c.toml:2:1: unknown key `max_iteration` (did you mean `max_iterations`?)",
        ),
        (
            "[loop]\nthreshold = 1.5".into(),
            "c.toml:2:13: `threshold` must be a number from 0 to 1",
        ),
        (
            "[loop]\nselect = 'last'".into(),
            "c.toml:2:10: `loop.select`: unknown value `last`",
        ),
        (
            "[[criteria]]\nweight = 1".into(),
            "c.toml:1:1: the key `name` is missing",
        ),
        (
            c("wieght = 1"),
            "c.toml:3:1: unknown key `wieght` (did you mean `weight`?)",
        ),
        (
            c("weight = -1"),
            "c.toml:3:10: `weight` must be above 0, not -1",
        ),
        (
            c("weight = 0"),
            "c.toml:3:10: `weight` must be above 0, not 0 (remove the criterion",
        ),
        (
            c("weight = nan"),
            "c.toml:3:10: `weight` must be above 0, not NaN",
        ),
        (
            c("weight = inf"),
            "c.toml:3:10: `weight` must be at most 1000000, not inf",
        ),
        (
            c("weight = 'x'"),
            "c.toml:3:10: `weight`: expected a number",
        ),
        (
            c("threshold = -0.1"),
            "c.toml:3:13: `threshold` must be from 0 to 1, not -0.1",
        ),
        (
            c("[[criteria]]\nname = 'A'"),
            "c.toml:4:8: the name `A` is used twice, first in line 2",
        ),
        (
            "[[criteria]]\nname = ''".into(),
            "c.toml:2:8: the name is empty",
        ),
        (
            "[[criteria]]\nname = 'a '".into(),
            "c.toml:2:8: a name must be one line",
        ),
        (
            c("evaluator = 'regx'"),
            "c.toml:3:13: unknown evaluator `regx` (did you mean `regex`?)",
        ),
        (
            c("evaluator = 1"),
            "c.toml:3:13: `evaluator`: expected a string",
        ),
        (
            c("pattern = 'x'"),
            "c.toml:3:1: the key `pattern` belongs to the evaluator `regex`, but this criterion's evaluator is `llm`",
        ),
        (
            c("evaluator = 'regex'\npattern = 'x'\nmin = 1"),
            "c.toml:5:1: the key `min` belongs to the evaluators `length` and `compare`",
        ),
        (
            c("evaluator = 'regex'"),
            "c.toml:1:1: the key `pattern` is missing",
        ),
        (
            c("evaluator = 'regex'\npattern = ''"),
            "c.toml:4:11: `pattern` is empty",
        ),
        (
            c("evaluator = 'regex'\npattern = '(a'"),
            "c.toml:4:11: `pattern` is not a valid regular expression: unclosed group",
        ),
        (
            c("evaluator = 'regex'\npattern = '(?=a)'"),
            "c.toml:4:11: `pattern` is not a valid regular expression: look-around",
        ),
        (
            c("evaluator = 'regex'\npattern = '(?:a{1000}){1000}{1000}'"),
            "c.toml:4:11: `pattern` is not a valid regular expression: Compiled regex exceeds size limit",
        ),
        (
            c("evaluator = 'regex'\npattern = 'a'\nexpect = 'abscent'"),
            "c.toml:5:10: `expect`: unknown value `abscent` (did you mean `absent`?)",
        ),
        (
            c("evaluator = 'length'"),
            "c.toml:1:1: a length criterion needs `min`, `max` or both",
        ),
        (
            c("evaluator = 'length'\nmin = 5\nmax = 3"),
            "c.toml:4:7: `min` (5) is above `max` (3)",
        ),
        (
            c("evaluator = 'length'\nmax = 0"),
            "c.toml:4:7: `max` must be at least 1",
        ),
        (
            c("evaluator = 'length'\nmax = -3"),
            "c.toml:4:7: `max`: expected an integer, at least 0",
        ),
        (
            c("evaluator = 'length'\nmax = 3\nunit = 'word'"),
            "c.toml:5:8: `unit`: unknown value `word` (did you mean `words`?)",
        ),
    ];
    for (text, start) in cases {
        let shown = error(&text);
        assert!(shown.starts_with(start), "{text:?}\n  {shown}\n  {start}");
    }
}

/// Returns a file with a criterion `a` and these lines, the first of which is line 3 of the file.
fn criterion(lines: &str) -> String {
    format!("[[criteria]]\nname = 'a'\n{lines}")
}

fn check_errors(kind: &str, cases: &[(&str, &str)]) {
    for (lines, start) in cases {
        let text = criterion(&format!("evaluator = '{kind}'\n{lines}"));
        let shown = error(&text);
        assert!(shown.starts_with(start), "{text}\n  {shown}\n  {start}");
    }
}

#[test]
fn mistakes_in_bounds_and_messages_of_a_regex_are_named() {
    check_errors(
        "regex",
        &[
            (
                "pattern = 'a'\nmin_count = 4\nmax_count = 2",
                "c.toml:5:13: `min_count` (4) is above `max_count` (2)",
            ),
            (
                "pattern = 'a'\nexpect = 'absent'\nmin_count = 1",
                "c.toml:6:13: `min_count` contradicts `expect = \"absent\"`",
            ),
            (
                "pattern = 'a'\nexpect = 'absent'\nmax_count = 1",
                "c.toml:6:13: `max_count` contradicts `expect = \"absent\"`",
            ),
            (
                "pattern = 'a'\nmax_count = 0",
                "c.toml:5:13: `max_count` must be at least 1 (write `expect = \"absent\"`",
            ),
            (
                "pattern = 'a'\nmin_count = 0",
                "c.toml:5:13: `min_count` is 0 without a `max_count`",
            ),
            (
                "pattern = 'a'\nmin_count = -1",
                "c.toml:5:13: `min_count`: expected an integer, at least 0",
            ),
            (
                "pattern = 'a'\nexpect = 'absent'\nmessage = 'not {mtach}'",
                "c.toml:6:11: `message`: a match has no part `{mtach}` (did you mean `{match}`?) (known parts: `{match}`; write `{{mtach}}` for the text `{mtach}`)",
            ),
            (
                "pattern = '(a)(?P<end>b)'\nexpect = 'absent'\nmessage = '{3}'",
                "c.toml:6:11: `message`: a match has no part `{3}` (did you mean `{1}`?) (known parts: `{match}`, `{1}` and `{end}`;",
            ),
            (
                "pattern = 'a'\nmessage = 'not {match}'",
                "c.toml:5:11: `message`: `{match}` refers to a match, but this message is for missing matches",
            ),
        ],
    );
    for fine in [
        "pattern = '(a)(?P<end>b)'\nexpect = 'absent'\nmessage = '{match} {1} {end} {2} {{x}} { y }'",
        "pattern = 'a'\nmin_count = 0\nmax_count = 3\nmessage = '{match}'",
        "pattern = 'a'\nmin_count = 2\nmessage = 'Two.'",
    ] {
        parse(&criterion(&format!("evaluator = 'regex'\n{fine}")), "c").unwrap();
    }
}

#[test]
fn mistakes_in_lists_of_texts_are_named() {
    let many = format!("all = [{}]", "'x',".repeat(1_001));
    check_errors(
        "contains",
        &[
            (
                "",
                "c.toml:1:1: a `contains` criterion needs `all`, `any` or `none`",
            ),
            ("words = true", "c.toml:1:1: a `contains` criterion needs"),
            ("all = []", "c.toml:4:7: `all` is empty (remove it"),
            ("all = ['a']\nany = []", "c.toml:5:7: `any` is empty"),
            (
                "none = ['a', '']",
                "c.toml:4:14: `none`: this text is empty",
            ),
            ("all = 'a'", "c.toml:4:7: `all`: expected an array `[...]`"),
            ("all = ['a', 3]", "c.toml:4:13: `all`: expected a string"),
            (
                "any = ['a', 'b', 'a']",
                "c.toml:4:18: `any`: `a` is listed twice",
            ),
            (
                "all = ['start']\nnone = ['art']",
                "c.toml:5:9: `none` forbids `art`, but `start` in `all` contains it",
            ),
            (
                "al = ['a']",
                "c.toml:4:1: unknown key `al` (did you mean `all`?)",
            ),
            (
                &many,
                "c.toml:4:7: `all` has 1001 texts, at most 1000 are allowed",
            ),
        ],
    );
    let apart = "evaluator = 'contains'\nwords = true\nall = ['start']\nnone = ['art']";
    parse(&criterion(apart), "c").unwrap();
}

#[test]
fn mistakes_in_comparisons_are_named() {
    let huge = format!("reference = '{}'\nmin = 0.5", "x".repeat(MAX_REFERENCE + 1));
    check_errors(
        "compare",
        &[
            (
                "min = 0.5",
                "c.toml:1:1: missing text to compare with (add `reference",
            ),
            (
                "reference = 'x'",
                "c.toml:1:1: the method `similarity` needs `min`, `max` or both",
            ),
            (
                "reference = ' '\nmin = 0.5",
                "c.toml:4:13: the reference text is empty",
            ),
            (
                "reference = 'x'\nmin = 60",
                "c.toml:5:7: `min` must be from 0 to 1, not 60 (did you mean 0.6?)",
            ),
            (
                "reference = 'x'\nmax = nan",
                "c.toml:5:7: `max` must be from 0 to 1, not NaN",
            ),
            (
                "reference = 'x'\nmin = 0.6\nmax = 0.5",
                "c.toml:5:7: `min` (0.6) is above `max` (0.5)",
            ),
            (
                "reference = 'x'\nmin = 0",
                "c.toml:1:1: bounds of 0 and 1 allow every text",
            ),
            (
                "reference = 'x'\nwith = 'prior'\nmin = 0.5",
                "c.toml:5:8: a reference text and `with` cannot be combined",
            ),
            (
                "with = 'previous'\nmin = 0.5",
                "c.toml:4:8: `with`: unknown value `previous`",
            ),
            (
                "with = 'prior'\nmethod = 'similar'\nmin = 0.5",
                "c.toml:5:10: `method`: unknown value `similar` (did you mean `similarity`?)",
            ),
            (
                "reference = 'x'\nterms = ['y']\nmin = 0.5",
                "c.toml:5:9: `terms` requires the method `terms` (add `method",
            ),
            (
                "method = 'terms'\nreference = 'x'\nterms = ['y']",
                "c.toml:6:9: `terms` cannot be combined with a reference text",
            ),
            (
                "method = 'terms'\nterms = []",
                "c.toml:5:9: `terms` is empty",
            ),
            (
                "method = 'terms'\nterms = ['a', '->']",
                "c.toml:5:9: the term `->` contains no word (for punctuation, use the evaluator `contains`)",
            ),
            (
                "method = 'terms'\nterms = ['a']\nmax = 0.5",
                "c.toml:6:7: `max` requires the method `similarity`",
            ),
            (
                "method = 'terms'\nterms = ['a']\nmin = 0.0",
                "c.toml:6:7: `min` must be above 0",
            ),
            (
                "method = 'pairwise'\nreference = 'x'\nmax = 0.5",
                "c.toml:6:7: `max` is not allowed with the method `pairwise`",
            ),
            (
                "method = 'pairwise'\nwith = 'prior'\nterms = ['a']",
                "c.toml:6:9: `terms` requires the method `terms`",
            ),
            (
                "method = 'pairwise'",
                "c.toml:1:1: missing text to compare with",
            ),
            (
                &huge,
                "c.toml:4:13: the reference text has 262145 bytes; at most 262144 are allowed",
            ),
        ],
    );
}

#[test]
fn a_pairwise_comparison_needs_a_judge_and_a_floor_that_a_tie_reaches() {
    let of = |lines: &str| {
        let criteria = parse(&criterion(lines), "c").unwrap();
        (criteria.need_judge(), criteria.criteria[0].threshold)
    };
    let (judged, floor) = of("evaluator = 'compare'\nmethod = 'pairwise'\nwith = 'prior'");
    assert!(judged && floor < TIE_SCORE, "{floor}");
    assert_eq!(
        of("evaluator = 'compare'\nwith = 'prior'\nmin = 0.5"),
        (false, 1.0)
    );
}

#[test]
fn a_reference_file_is_read_with_the_criteria_and_lies_beside_them() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("set");
    std::fs::create_dir_all(folder.join("texts")).unwrap();
    std::fs::write(folder.join("texts/good.md"), "A good text.\n").unwrap();
    std::fs::write(folder.join("binary"), b"a\0b").unwrap();
    std::fs::write(folder.join("huge"), "x".repeat(MAX_REFERENCE + 1)).unwrap();
    std::fs::write(folder.join("empty"), "").unwrap();
    std::fs::write(dir.path().join("secret"), "A secret.").unwrap();
    let read = |reference: &str| {
        let file = folder.join("set.toml");
        let lines = format!("evaluator = 'compare'\nmin = 0.5\nreference_file = '{reference}'");
        std::fs::write(&file, criterion(&lines)).unwrap();
        // Even if data may be read from anywhere, reference texts must be next to the criteria
        // file.
        load(&file, &|_| FileAccess::Anywhere)
    };
    let criteria = read("./texts/good.md").unwrap();
    let text = "A good text.\n".to_owned();
    assert_eq!(
        criteria.criteria[0].evaluator,
        Evaluator::Compare(CompareConfig::Similarity {
            to: CompareTarget::Reference(text),
            bounds: Bounds { min: 0.5, max: 1.0 },
        })
    );
    // Criteria restored from a run's record read no file.
    assert_eq!(
        parse(&to_toml(&criteria).unwrap(), "elsewhere").unwrap(),
        criteria
    );

    let absolute = dir.path().join("secret");
    let outside = "is outside the folder of this file";
    let mut cases = vec![
        ("../secret".to_owned(), outside),
        ("texts/../../secret".to_owned(), outside),
        (absolute.display().to_string(), outside),
        (String::new(), "the path is empty"),
        ("texts".to_owned(), "`texts` is not a file"),
        ("texts/godo.md".to_owned(), "no such file: `texts/godo.md`"),
        (
            "binary".to_owned(),
            "`binary`: not a text file: a zero byte",
        ),
        ("huge".to_owned(), "the reference text has 262145 bytes"),
        ("empty".to_owned(), "the reference text is empty"),
    ];
    if cfg!(unix) {
        #[cfg(unix)]
        std::os::unix::fs::symlink("../secret", folder.join("link")).unwrap();
        cases.push(("link".to_owned(), outside));
    }
    for (path, said) in cases {
        let error = read(&path).unwrap_err();
        assert!(error.message().contains(said), "{path}: {error}");
        assert_eq!(error.position(), Some((5, 18)), "{path}");
    }
    let twice =
        criterion("evaluator = 'compare'\nmin = 0.5\nreference = 'x'\nreference_file = 'y'");
    assert!(
        error(&twice).contains("6:18: both `reference` and `reference_file` are set"),
        "{}",
        error(&twice)
    );
}

#[test]
fn the_place_is_shown_with_the_line() {
    let text = "[[criteria]]\nname = \"a\"\nevaluator = \"regex\"\npattern = '(?i)(todo'\n";
    insta::assert_snapshot!(parse(text, "c.toml").unwrap_err().render(false), @r"
    error: `pattern` is not a valid regular expression: unclosed group
     --> c.toml:4:11
      |
    4 | pattern = '(?i)(todo'
      |           ^^^^^^^^^^^
      |
      = hint: regex parse error:
                  (?i)(todo
                      ^
              error: unclosed group
    ");
    let text = "[[criteria]]\nname = \"tone\"\n\n[[criteria]]\nname = \"tone\"\n";
    insta::assert_snapshot!(parse(text, "c.toml").unwrap_err().render(false), @r#"
    error: the name `tone` is used twice, first in line 2
     --> c.toml:5:8
      |
    2 | name = "tone"
      |        ------ first used here
    ...
    5 | name = "tone"
      |        ^^^^^^ used again here
      |
      = hint: names must be unique, ignoring case
    "#);
}

#[test]
fn a_criterion_without_words_is_warned_about() {
    let criteria = parse("threshold = 0\n[[criteria]]\nname = 'a'\n[[criteria]]\nname = 'b'\nevaluator = 'regex'\npattern = 'x'", "c").unwrap();
    assert_eq!(warnings(&criteria).len(), 3);
}

#[test]
fn names_and_paths_are_resolved() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, threshold: f64| {
        let text = format!("task_type = 'code'\nthreshold = {threshold}");
        std::fs::write(dir.path().join(name), text).unwrap();
    };
    write("mine.toml", 0.1);
    write("code.toml", 0.2);
    write("noise.txt", 0.3);
    let search = [dir.path().join("missing"), dir.path().to_owned()];
    let threshold =
        |spec: &str| resolve(spec, &search, &|_| FileAccess::Folder).map(|c| c.threshold);
    assert_eq!(threshold("mine"), Ok(0.1));
    assert_eq!(threshold("code"), Ok(0.2), "a user file goes first");
    assert_eq!(threshold("writing"), Ok(0.8));
    let path = dir.path().join("mine.toml");
    assert_eq!(threshold(path.to_str().unwrap()), Ok(0.1));
    let names: Vec<String> = available(&search).into_iter().map(|a| a.name).collect();
    assert_eq!(names[..4], ["code", "mine", "writing", "analysis"]);
    assert_eq!(names.len(), BUILTIN_NAMES.len() + 1);

    let unknown = resolve("writting", &search, &|_| FileAccess::Folder).unwrap_err();
    assert_eq!(unknown.message(), "no criteria and no file have this name");
    assert_eq!(unknown.hints()[0], "did you mean `writing`?");
    assert!(unknown.hints()[1].contains("`mine`"));
    assert_eq!(
        resolve("no.toml", &search, &|_| FileAccess::Folder)
            .unwrap_err()
            .message(),
        "no such file"
    );
    assert!(resolve("", &search, &|_| FileAccess::Folder).is_err());
}

#[test]
fn the_kinds_are_those_of_the_type() {
    let names: Vec<&str> = kinds::KINDS.iter().map(|k| k.name).collect();
    assert_eq!(names, Evaluator::KINDS);
}

#[test]
fn the_schema_agrees_with_the_reader() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let valid = |text: &str| {
        let value: toml::Value = toml::from_str(text).unwrap();
        validator.is_valid(&serde_json::to_value(value).unwrap())
    };
    for name in BUILTIN_NAMES {
        assert!(valid(builtin::text(name).unwrap()), "{name}");
    }
    let c = |rest: &str| format!("[[criteria]]\nname = 'a'\n{rest}");
    let wrong = [
        "name = 'x'".to_owned(),
        "task_type = 'cod'".to_owned(),
        "task_type = 'commit'".to_owned(),
        "task_type = 'code'\nx = 1".to_owned(),
        "task_type = 'code'\nthreshold = 2".to_owned(),
        "task_type = 'code'\nloop.max_iterations = 0".to_owned(),
        "[[criteria]]\nweight = 1".to_owned(),
        c("wieght = 1"),
        c("weight = 0"),
        c("evaluator = 'regex'"),
        c("pattern = 'x'"),
        c("evaluator = 'command'"),
        c("evaluator = 'length'"),
        c("evaluator = 'length'\nmax = 1\nunit = 'x'"),
        c("evaluator = 'contains'"),
        c("evaluator = 'contains'\nall = []"),
        c("evaluator = 'contains'\nall = ['']"),
        c("evaluator = 'regex'\npattern = 'a'\nmax_count = 0"),
        c("evaluator = 'compare'\nmin = 0.5"),
        c("evaluator = 'compare'\nreference = 'x'\nmin = 2"),
        c("evaluator = 'compare'\nreference = 'x'\nwith = 'prior'\nmin = 0.5"),
        c("evaluator = 'schema'"),
        c("evaluator = 'schema'\nschema = {}\nfile = 'a.json'"),
        c("evaluator = 'schema'\nschema = 'a.json'"),
        c("evaluator = 'schema'\nfile = 1"),
    ];
    for text in wrong {
        assert!(!valid(&text), "{text}");
        assert!(parse(&text, "c").is_err(), "{text}");
    }
}

#[test]
fn the_judge_s_keys_are_read() {
    let criteria = parse(
        "[judge]\nmode = 'separate'\nsamples = 3\nscore = 'expected'\nprobe = true\nalways = true\ncache = false\n\
         [probe]\nprompt = 'A haiku.'\ngood = 'a'\nbad = 'b'\n\
         [[criteria]]\nname = 'a'\nchecks = ['Is it?']\n\
         [[criteria]]\nname = 'b'\nprompt = \"Judge {{ draft }}\"\nscale = [0, 1]\nmodel = 'ollama:x'\n\
         [[criteria.examples]]\ninput = 'x'\nscore = 0.5\n",
        "c.toml",
    )
    .unwrap();
    let settings = &criteria.judge_settings;
    assert_eq!(settings.mode(), JudgeMode::Separate);
    assert_eq!(settings.samples(), 3);
    assert!(settings.probe() && settings.always() && !settings.cache());
    assert_eq!(criteria.probe.bad.as_deref(), Some("b"));
    assert_eq!(warnings(&criteria), Vec::<String>::new());
    let Evaluator::Llm(config) = &criteria.criteria[1].evaluator else {
        panic!("{criteria:?}");
    };
    assert_eq!(config.examples[0].draft, "x");
    // Custom criteria on top of a built-in set keep its probe texts.
    let code = parse("task_type = 'code'\njudge.samples = 2", "c").unwrap();
    assert_eq!(code.probe, builtin("code").unwrap().probe);
    assert_eq!(code.judge_settings.samples(), 2);
}

#[test]
fn mistakes_in_the_judge_s_keys_are_named_with_their_place() {
    let c = |rest: &str| format!("[[criteria]]\nname = 'a'\n{rest}");
    for (text, message) in [
        (
            "[judge]\nsamples = 0\n".to_owned() + &c(""),
            "c.toml:2:11: `samples` must be from 1 to 16",
        ),
        (
            "[judge]\nmode = 'both'\n".to_owned() + &c(""),
            "c.toml:2:8: `judge.mode`: unknown value `both`",
        ),
        (
            "[judge]\nmod = 'joint'\n".to_owned() + &c(""),
            "c.toml:2:1: unknown key `mod` (did you mean `mode`?)",
        ),
        (
            "[probe]\ngood = ' '\n".to_owned() + &c(""),
            "c.toml:2:8: `probe.good` is empty",
        ),
        (
            c("anchors = ['a']"),
            "c.toml:3:11: `anchors`: expected 5 sentences, one for each score, not 1",
        ),
        (
            c("anchors = { 2 = 'a' }"),
            "c.toml:3:11: `anchors`: at least the scores `1` and `5`",
        ),
        (c("checks = []"), "c.toml:3:10: `checks` is empty"),
        (c("checks = ['']"), "c.toml:3:10: a question is empty"),
        (
            c("scale = [1, 0]"),
            "c.toml:3:9: `scale`: expected the lowest and the highest score",
        ),
        (
            c("checks = ['x?']\nscale = [0, 1]"),
            "c.toml:4:9: `checks` and `scale` are different ways to give a score",
        ),
        (c("prompt = ''"), "c.toml:3:10: `prompt` is empty"),
        (
            c("prompt = 'Judge {{ drafft }}'"),
            "c.toml:3:20: `prompt`: unknown variable `drafft`",
        ),
        (
            c("prompt = \"\"\"\nJudge it.\n{% if draft %}\n\"\"\""),
            "c.toml:5:13: `prompt`: syntax error: unexpected end of input",
        ),
        (
            c("examples = [{ draft = 'x' }]"),
            "c.toml:3:12: example 1 has neither a `score` nor a `verdict`",
        ),
        (
            c("examples = [{ draft = 'x', score = 7 }]"),
            "c.toml:3:12: example 1 has the score 7, but scores go from 1 to 5",
        ),
        (
            c("checks = ['x?']\nexamples = [{ draft = 'x', score = 1 }]"),
            "c.toml:4:12: example 1 has a `score`, but the criterion is judged by `checks`",
        ),
        (
            c("evaluator = 'regex'\npattern = 'x'\nchecks = ['x?']"),
            "the key `checks` belongs to the evaluator `llm`",
        ),
    ] {
        let error = error(&text);
        assert!(error.contains(message), "{text}\n  {error}");
    }
}

fn llm() -> impl Strategy<Value = LlmConfig> {
    let score = prop_oneof![
        Just("anchors = ['a', 'b', 'c', 'd', 'e']"),
        Just("anchors = { 1 = 'bad', 3 = 'so-so', 5 = 'good' }"),
        Just("checks = ['Is it so?', 'Is it \\\"not\\\"?']"),
        Just("scale = [0, 10]"),
        Just(""),
    ];
    let rest = prop_oneof![
        Just("prompt = 'Judge {{ draft }}.'\nmodel = 'ollama:x'"),
        Just(
            "examples = [{ draft = 'x', verdict = true }, { input = 'y', verdict = false, reason = 'z' }]"
        ),
        Just(""),
    ];
    (score, rest).prop_map(|(score, rest)| toml::from_str(&format!("{score}\n{rest}")).unwrap())
}

fn evaluator() -> impl Strategy<Value = Evaluator> {
    let unit = prop_oneof![
        Just(LengthUnit::Words),
        Just(LengthUnit::Characters),
        Just(LengthUnit::Lines),
        Just(LengthUnit::Sentences),
        Just(LengthUnit::Paragraphs)
    ];
    prop_oneof![
        Just(Evaluator::Llm(LlmConfig::default())),
        llm().prop_map(Evaluator::Llm),
        (
            "\\PC{1,12}",
            proptest::option::of((0_u64..9, 9_u64..99)),
            proptest::option::of("[^{}\\pC]{0,9}")
        )
            .prop_map(|(text, counts, message)| Evaluator::Regex(RegexConfig {
                pattern: regex::escape(&text),
                expect: if counts.is_none() {
                    Expect::Absent
                } else {
                    Expect::Present
                },
                min_count: counts.map(|(min, _)| min),
                max_count: counts.map(|(_, max)| max),
                message,
            })),
        (
            proptest::collection::hash_set("[a-c '\"\\\\é]{1,5}", 1..4),
            any::<bool>(),
            any::<bool>()
        )
            .prop_map(
                |(texts, words, ignore_case)| Evaluator::Contains(ContainsConfig {
                    all: Vec::new(),
                    any: texts.iter().cloned().collect(),
                    none: texts.into_iter().collect(),
                    ignore_case,
                    words,
                })
            ),
        ("(?s)x.{0,30}", 0.1_f64..0.5, 0.5_f64..=1.0, any::<bool>()).prop_map(
            |(text, min, max, prior)| Evaluator::Compare(CompareConfig::Similarity {
                to: if prior {
                    CompareTarget::Prior
                } else {
                    CompareTarget::Reference(text)
                },
                bounds: Bounds { min, max },
            })
        ),
        (
            proptest::collection::vec("[a-z é]{0,5}x", 1..4),
            0.1_f64..=1.0
        )
            .prop_map(|(terms, min)| Evaluator::Compare(CompareConfig::Terms {
                of: Terms::Listed(terms),
                min,
            })),
        proptest::option::of("(?s)x.{0,30}").prop_map(|text| {
            Evaluator::Compare(CompareConfig::Pairwise {
                to: text.map_or(CompareTarget::Prior, CompareTarget::Reference),
            })
        }),
        (unit, 0_u64..50, proptest::option::of(50_u64..9999)).prop_map(|(unit, min, max)| {
            Evaluator::Length(LengthConfig {
                unit,
                min: Some(min),
                max,
            })
        }),
        (
            "[a-z/]{1,9}",
            "\\PC{0,9}",
            any::<bool>(),
            any::<i64>(),
            0.5_f64..9.0
        )
            .prop_map(
                |(name, text, flag, whole, share)| Evaluator::Schema(SchemaConfig {
                    schema: json!({
                        "$ref": "https://example.com/a.json",
                        "enum": [text, whole, share, flag, [], {}],
                    }),
                    base: flag.then(|| "schemas/own.json".to_owned()),
                    documents: [(
                        "https://example.com/a.json".to_owned(),
                        json!({ "properties": { name: flag } }),
                    )]
                    .into(),
                    coerce: flag,
                    formats: !flag,
                })
            ),
    ]
}

fn valid_criteria() -> impl Strategy<Value = Criteria> {
    let criterion = (
        "[a-z\"\\\\é]{1,8}",
        "(?s).{0,30}",
        0.01_f64..9.0,
        0.0_f64..=1.0,
        evaluator(),
    );
    (
        "[a-z ]{0,5}[a-z]",
        proptest::option::of("\\PC{0,20}"),
        0.0_f64..=1.0,
        proptest::option::of(1_u32..9),
        proptest::collection::vec(criterion, 1..5),
    )
        .prop_map(
            |(name, description, threshold, max_iterations, criteria)| Criteria {
                name,
                description,
                threshold,
                loop_settings: LoopSettings {
                    max_iterations,
                    ..LoopSettings::default()
                },
                judge_settings: JudgeSettings {
                    samples: max_iterations,
                    mode: max_iterations.map(|_| JudgeMode::Separate),
                    ..JudgeSettings::default()
                },
                probe: ProbeTexts {
                    good: max_iterations.map(|_| "Good.".to_owned()),
                    ..ProbeTexts::default()
                },
                criteria: criteria
                    .into_iter()
                    .enumerate()
                    .map(
                        |(i, (name, description, weight, threshold, evaluator))| Criterion {
                            name: format!("{name}{i}"),
                            description,
                            weight,
                            threshold,
                            required: false,
                            evaluator,
                        },
                    )
                    .collect(),
            },
        )
}

proptest! {
    #[test]
    fn what_is_written_reads_back_the_same(criteria in valid_criteria()) {
        let text = to_toml(&criteria).unwrap();
        let back = parse(&text, "c.toml").map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
        prop_assert_eq!(&back, &criteria);
        let json = serde_json::to_string(&criteria).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Criteria>(&json).unwrap(), &criteria);
    }

    #[test]
    fn no_text_makes_the_reader_panic(
        text in "\\PC{0,40}|(\\[\\[criteria\\]\\]\n|name|evaluator|min|pattern|weight| = |'llm'|'length'|'regex'|'compare'|'contains'|reference|terms|all|message|'\\{a\\}'|1|nan|\n|\\[loop\\]|'|\\[|\\{){0,24}"
    ) {
        if let Err(error) = parse(&text, "c") {
            prop_assert!(!error.render(false).is_empty());
        }
    }
}
