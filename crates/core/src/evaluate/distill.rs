//! Shortens the output of compilers and test runners for a prompt.

use std::fmt::{self, Write as _};
use std::sync::LazyLock;

use ::regex::{Captures, Regex};
use indexmap::IndexMap;

/// The maximum length of the result in characters, about 600 tokens.
const BUDGET: usize = 2400;
/// Output up to this length is kept unchanged, in characters.
const SHORT: usize = 400;
/// The maximum number of detail lines kept for a panic, such as the compared values.
const DETAILS: usize = 4;

/// The maximum number of errors that become issues of their own.
const MOST_ISSUES: usize = 8;

/// A message and how often it occurred.
struct Diagnostic {
    is_error: bool,
    text: String,
    place: Option<Location>,
    count: usize,
}

/// The first place of a message.
struct Location {
    /// `None` stands for the draft's own file.
    file: Option<String>,
    line: u64,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file} line {}", self.line),
            None => write!(f, "line {}", self.line),
        }
    }
}

impl Diagnostic {
    /// The line of the draft that the message is about, if it is about one.
    fn line(&self) -> Option<u64> {
        self.place
            .as_ref()
            .filter(|place| place.file.is_none())
            .map(|place| place.line)
    }

    fn describe(&self) -> String {
        let place = self.place.as_ref().map(|place| format!(", {place}"));
        self.with_count(&place.unwrap_or_default())
    }

    fn with_count(&self, place: &str) -> String {
        let more = (self.count > 1).then(|| format!(", and {} more", self.count - 1));
        format!("{}{place}{}", self.text, more.unwrap_or_default())
    }
}

/// Patterns for the first line of a message, by program. Groups: `level`, `text`, `file`, `line`.
static FORMS: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        // rustc, cargo: error[E0308]: mismatched types
        r"^(?P<level>error|warning)(?:\[[\w:-]+\])?: (?P<text>.+)$",
        // gcc, clang, tsc, go, mypy, flake8: draft.c:3:13: error: expected ';'
        r"^\s*(?:vet: )?(?P<file>[^\s:()]+\.\w+)[:(](?P<line>\d+)(?:[:,]\d+)?\)?(?::| -) *(?:(?:fatal )?(?P<level>error|warning|note|info)(?: (?:TS)?\d+)?: ?)?(?P<text>\S.*)$",
        // eslint: 3:15  error  'a' is not defined  no-undef
        r"^\s+(?P<line>\d+):\d+\s+(?P<level>error|warning)\s+(?P<text>.+?)(?:\s{2,}\S+)?$",
        // pytest: FAILED test_draft.py::test_add - assert -1 == 3
        r"^(?:FAILED|ERROR) (?P<text>.+)$",
        // Python: SyntaxError: invalid syntax
        r"^(?:E\s+)?(?P<text>(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit)(?:: .*)?)$",
        // go test: --- FAIL: TestAdd (0.00s)
        r"^\s*--- (?P<text>FAIL: \w+)",
        // cargo test: thread 'tests::adds' panicked at src/lib.rs:5:25:
        r"^thread '(?P<text>[^']+)' (?:\(\d+\) )?panicked at (?P<file>[^:]+):(?P<line>\d+):\d+:$",
    ]
    .iter()
    .map(|form| Regex::new(form).expect("a test takes real output apart with it"))
    .collect()
});

/// Patterns for the place of a message: rustc's arrow and Python's stack frames.
static PLACE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"^(?:\s*--> (?P<file>.+?):(?P<line>\d+):\d+|(?:E\s+)?\s*File "(?P<frame>[^"]+)", line (?P<at>\d+).*)$"#,
    )
    .expect("a test takes real output apart with it")
});

/// Matches a source line with its gutter, or the underline below one with its label.
static GUTTER: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\s*(?:\d+\s*[|+~-]|[|=:]|\.\.\.|[\^~]+\s*$)(?:[^\^]*\^+ (?P<label>\S.*))?")
        .expect("a test takes real output apart with it")
});

/// Lines that only summarize other messages.
const SUMS: [&str; 3] = [
    "aborting due to",
    "could not compile",
    "test failed, to rerun",
];

/// Returns the distinct messages in a program's output, errors first, each once with its first
/// place and a count, without source lines and suggestions. Output in an unknown format is cut.
pub(super) fn distill(output: &str, cut: impl Fn(&str, usize) -> String) -> String {
    if output.chars().count() <= SHORT {
        return output.to_owned();
    }
    let mut messages = messages(output);
    if messages.is_empty() {
        return cut(&without_repeats(output), BUDGET);
    }
    messages.sort_by_key(|message| !message.is_error);
    let mut shown = String::new();
    for (number, message) in messages.iter().enumerate() {
        let line = message.describe();
        if number > 0 && shown.chars().count() + line.chars().count() > BUDGET {
            let _ = write!(shown, "\nand {} other messages", messages.len() - number);
            break;
        }
        if number > 0 {
            shown.push('\n');
        }
        shown.push_str(&cut(&line, BUDGET));
    }
    shown
}

/// Returns the distinct errors in a program's output, each with its line in the draft, most important first. Empty
/// unless all errors have a line in the draft. `offset` is the number of lines of the draft before those that the
/// program read.
pub(super) fn placed(output: &str, offset: u64) -> Vec<(String, u64)> {
    let mut messages = messages(output);
    if messages.iter().any(|message| message.is_error) {
        messages.retain(|message| message.is_error);
    }
    let left_out = messages.len().saturating_sub(MOST_ISSUES);
    let placed = messages.iter().map(|message| {
        let line = offset + message.line()?;
        Some((message.with_count(&format!(" in line {line}")), line))
    });
    let mut placed = placed.collect::<Option<Vec<_>>>().unwrap_or_default();
    placed.truncate(MOST_ISSUES);
    if let Some((last, _)) = placed.last_mut().filter(|_| left_out > 0) {
        let _ = write!(last, "; {left_out} other errors follow");
    }
    placed
}

/// Returns the messages in the order of their first occurrence.
fn messages(output: &str) -> Vec<Diagnostic> {
    let mut all: Vec<Diagnostic> = Vec::new();
    // Python prints the place before the message.
    let mut frame: Option<Location> = None;
    let mut lines = output.lines().peekable();
    // Whether a place and a label may still follow for the last message.
    let mut open = false;
    while let Some(line) = lines.next() {
        if let Some(found) = PLACE.captures(line) {
            let place = place(&found, "file", "line").or_else(|| place(&found, "frame", "at"));
            match all.last_mut().filter(|last| open && last.place.is_none()) {
                Some(last) => last.place = place,
                None => frame = place,
            }
            continue;
        }
        if let Some(found) = FORMS.iter().find_map(|form| form.captures(line)) {
            let mut text = found["text"].trim().to_owned();
            if SUMS.iter().any(|sum| text.starts_with(sum)) {
                continue;
            }
            if line.starts_with("thread '") {
                for _ in 0..DETAILS {
                    let detail = lines.next_if(|line| {
                        !line.trim().is_empty() && !line.starts_with("stack backtrace")
                    });
                    let Some(detail) = detail else { break };
                    text.push_str(": ");
                    text.push_str(detail.trim());
                }
            }
            let level = found.name("level").map_or("error", |level| level.as_str());
            open = !matches!(level, "note" | "info");
            if open {
                all.push(Diagnostic {
                    is_error: level == "error",
                    text,
                    place: place(&found, "file", "line").or_else(|| frame.take()),
                    count: 1,
                });
            }
            continue;
        }
        match GUTTER.captures(line).and_then(|found| found.name("label")) {
            Some(label) if open => {
                if let Some(last) = all.last_mut() {
                    let _ = write!(last.text, " ({})", label.as_str().trim());
                }
                // Further underlines belong to other lines.
                open = false;
            }
            _ => open = open && !line.trim().is_empty(),
        }
    }
    merged(all)
}

/// Merges equal texts at their first place.
fn merged(all: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut distinct: IndexMap<String, Diagnostic> = IndexMap::new();
    for message in all {
        match distinct.get_mut(&message.text) {
            Some(first) => first.count += 1,
            None => drop(distinct.insert(message.text.clone(), message)),
        }
    }
    distinct.into_values().collect()
}

fn place(found: &Captures<'_>, file: &str, line: &str) -> Option<Location> {
    let line = found.name(line)?.as_str().parse().ok()?;
    let file = found.name(file).map_or("", |file| file.as_str());
    let name = file.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_draft = name.is_empty() || name.starts_with("draft.");
    let file = (!is_draft).then(|| file.trim_start_matches("./").to_owned());
    Some(Location { file, line })
}

/// Returns the distinct lines of a text, with a count for repeated ones.
fn without_repeats(text: &str) -> String {
    let mut counts: IndexMap<&str, usize> = IndexMap::new();
    for line in text.lines() {
        *counts.entry(line.trim_end()).or_default() += 1;
    }
    let lines: Vec<String> = counts
        .into_iter()
        .map(|(line, count)| match count {
            1 => line.to_owned(),
            _ if line.is_empty() => String::new(),
            count => format!("{line} ({count} times)"),
        })
        .collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(output: &str) -> String {
        distill(output, |text, chars| text.chars().take(chars).collect())
    }

    macro_rules! output {
        ($name:literal) => {
            include_str!(concat!("../../../../tests/data/commands/", $name, ".txt"))
        };
    }

    #[test]
    fn errors_have_the_lines_of_the_draft_that_they_are_about() {
        assert_eq!(
            placed(output!("gcc"), 0)[1..3],
            [
                (
                    "‘y’ undeclared (first use in this function) in line 4".to_owned(),
                    4
                ),
                (
                    "‘y2’ undeclared (first use in this function) in line 5".to_owned(),
                    5
                ),
            ]
        );
        // Places in another file are not lines of the draft.
        assert_eq!(placed(output!("pytest"), 0), []);
        assert_eq!(placed("all is well", 0), []);
        let lines: Vec<String> = (1..=20)
            .map(|n| format!("draft.c:{n}:1: error: fault {n}\n"))
            .collect();
        let many = lines.concat();
        let first = placed(&many, 2);
        assert_eq!(first.len(), MOST_ISSUES);
        assert_eq!(
            first[7],
            ("fault 8 in line 10; 12 other errors follow".to_owned(), 10)
        );
    }

    #[test]
    fn each_program_s_messages_are_told_once_with_their_places() {
        for (output, expected) in [
            (
                output!("rustc-tokens"),
                "unknown start of token: \\u{201c}, line 8, and 1 more\n\
                 unknown start of token: \\u{201d}, line 8, and 1 more\n\
                 cannot find value `hello` in this scope (not found in this scope), line 8\n\
                 cannot find value `world` in this scope (not found in this scope), line 9\n\
                 cannot find value `z` in this scope (not found in this scope), line 10\n\
                 mismatched types (expected `&str`, found integer), line 3, and 1 more\n\
                 cannot find function `undefined_name` in this scope (not found in this scope), line 5",
            ),
            (
                output!("gcc"),
                "initialization of ‘int’ from ‘char *’ makes integer from pointer without a cast [-Werror=int-conversion], line 3\n\
                 ‘y’ undeclared (first use in this function), line 4\n\
                 ‘y2’ undeclared (first use in this function), line 5\n\
                 expected ‘;’ before ‘return’, line 5\n\
                 unused variable ‘x’ [-Werror=unused-variable], line 3",
            ),
            (
                output!("tsc-pretty"),
                "Type 'string' is not assignable to type 'number'., line 1, and 1 more\n\
                 Cannot find name 'undefinedName'. Did you mean 'undefined'?, line 3",
            ),
            (
                output!("eslint"),
                "Unexpected var, use let or const instead, line 1\n\
                 'console' is not defined, line 3\n\
                 'c' is not defined, line 3\n\
                 'f' is defined but never used, line 4\n\
                 'd' is not defined, line 4\n\
                 Expected '===' and instead saw '==', line 3",
            ),
            (
                output!("pytest"),
                "AssertionError, test_draft.py line 5, and 1 more\n\
                 test_draft.py::test_add - assert -1 == 3\n\
                 test_draft.py::test_neg - assert 0 == -2",
            ),
            (
                output!("traceback"),
                "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1), \
                 /usr/lib/python3.11/json/decoder.py line 353",
            ),
            (
                output!("cargotest"),
                "tests::adds_negative: assertion `left == right` failed: negative numbers: left: 1: right: -3, src/lib.rs line 6\n\
                 tests::adds: assertion `left == right` failed: left: -1: right: 3, src/lib.rs line 5\n\
                 tests::panics: index out of bounds: the len is 0 but the index is 0, src/lib.rs line 8",
            ),
        ] {
            assert_eq!(shown(output), expected);
        }
    }

    #[test]
    fn the_same_error_thirty_times_is_one_line() {
        let error = "error: unknown start of token: `\n --> draft.rs:4:1\n  |\n4 | ```\n  | ^\n  |\nhelp: a long suggestion\n\n";
        let output = format!(
            "{}error: aborting due to 39 previous errors\n",
            error.repeat(39)
        );
        assert_eq!(
            shown(&output),
            "unknown start of token: `, line 4, and 38 more"
        );
    }

    #[test]
    fn short_output_is_shown_as_it_is_and_output_of_no_known_form_once() {
        assert_eq!(
            shown("draft.txt:2: two is wrong\nsummed up"),
            "draft.txt:2: two is wrong\nsummed up"
        );
        let output = format!("{}the end", "a line\n".repeat(100));
        assert_eq!(shown(&output), "a line (100 times)\nthe end");
    }

    #[test]
    fn of_very_many_the_rest_is_counted() {
        let lines: Vec<String> = (0..500)
            .map(|n| format!("draft.c:{n}:1: error: name{n} is undeclared\n"))
            .collect();
        let output = lines.concat();
        let shown = shown(&output);
        assert!(shown.chars().count() < BUDGET + 60, "{shown}");
        assert!(
            shown.starts_with("name0 is undeclared, line 0\nname1"),
            "{shown}"
        );
        assert!(shown.ends_with(" other messages"), "{shown}");
    }

    proptest! {
        #[test]
        fn any_output_is_short_and_never_empty(lines in prop::collection::vec("\\PC{0,80}|error: x|  \\| \\^ y|a.c:1:2: z", 1..80)) {
            let output = lines.join("\n");
            let shown = shown(&output);
            prop_assert!(shown.chars().count() <= BUDGET + 60);
            prop_assert!(output.trim().is_empty() || !shown.trim().is_empty());
        }
    }
}
