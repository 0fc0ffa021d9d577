//! How long a reply may become before it is stopped.

use std::sync::OnceLock;

use regex::Regex;

use crate::types::{Criteria, Evaluator, LengthUnit};

/// A reply may be this many times as long as requested: a text that is too long can be cut.
const TIMES: usize = 3;
/// A reply is never stopped below this length in bytes: a short text may have remarks around it.
const LEAST: usize = 1_000;
/// The same if only the task gives a length, because it may mean a part of the text.
const LEAST_OF_TASK: usize = 4_000;
/// The limit if no length is given: about 15,000 words.
const DEFAULT: usize = 100_000;
/// A longer task contains material, which may have figures of its own.
const LONGEST_TASK: usize = 600;
/// Words of tasks in which a length is that of a part.
const PARTS: &[&str] = &["each", "every", " per ", "section", "chapter", "part"];

/// The longest text that `length` criteria allow, in bytes.
pub(super) fn of_criteria(criteria: &Criteria) -> Option<usize> {
    let of = |evaluator: &Evaluator| match evaluator {
        Evaluator::Length(config) => Some(bytes(config.max?, config.unit)),
        _ => None,
    };
    criteria
        .criteria
        .iter()
        .filter_map(|it| of(&it.evaluator))
        .min()
}

/// The longest reply that is not stopped, in bytes.
pub(super) fn longest(allowed: Option<usize>, task: &str, base: Option<&str>) -> usize {
    let bound = match (allowed, of_task(task)) {
        (Some(allowed), _) => allowed.saturating_mul(TIMES).max(LEAST),
        (None, Some(requested)) => requested.saturating_mul(TIMES).max(LEAST_OF_TASK),
        (None, None) => DEFAULT,
    };
    bound.max(TIMES * base.map_or(0, str::len))
}

/// The length that a task requests, in bytes: "in two sentences", "a text of 300 words".
fn of_task(task: &str) -> Option<usize> {
    static LENGTH: OnceLock<Regex> = OnceLock::new();
    let lower = task.to_lowercase();
    if task.len() > LONGEST_TASK || PARTS.iter().any(|part| lower.contains(part)) {
        return None;
    }
    let length = LENGTH.get_or_init(|| {
        Regex::new(r"\b(\d{1,5}|one|two|three|four|five|six|seven|eight|nine|ten)[- ](word|sentence|line|paragraph|character)")
            .expect("the pattern is a constant")
    });
    let requested = length.captures_iter(&lower).map(|found| {
        let names = [
            "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        ];
        let word = (1..).zip(names).find(|(_, name)| *name == &found[1]);
        let number = word.map_or_else(|| found[1].parse().unwrap_or(0), |(number, _)| number);
        let unit = match &found[2] {
            "word" => LengthUnit::Words,
            "sentence" => LengthUnit::Sentences,
            "line" => LengthUnit::Lines,
            "paragraph" => LengthUnit::Paragraphs,
            _ => LengthUnit::Characters,
        };
        bytes(number, unit)
    });
    requested.max()
}

/// About how many bytes a text of this length has, generously.
fn bytes(number: u64, unit: LengthUnit) -> usize {
    let each = match unit {
        LengthUnit::Characters => 3,
        LengthUnit::Words => 10,
        LengthUnit::Lines => 120,
        LengthUnit::Sentences => 200,
        LengthUnit::Paragraphs => 1_000,
    };
    usize::try_from(number)
        .unwrap_or(usize::MAX)
        .saturating_mul(each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_follows_the_criteria_then_the_task_then_the_text_that_is_revised() {
        assert_eq!(
            longest(Some(3_000), "Tell of the storm in two sentences.", None),
            9_000
        );
        assert_eq!(longest(Some(100), "Tell of the storm.", None), LEAST);
        for (task, bound) in [
            ("Write two sentences about frogs.", LEAST_OF_TASK),
            ("Write a text of 300 words.", 9_000),
            ("A 500-word post, in three paragraphs.", 15_000),
            ("Write a text of 300 words in each section.", DEFAULT),
            ("Write a novel.", DEFAULT),
        ] {
            assert_eq!(longest(None, task, None), bound, "{task}");
        }
        let base = "x".repeat(50_000);
        assert_eq!(longest(Some(100), "Write.", Some(&base)), 150_000);
        let material = format!("Summarise this: {} 12 words", "word ".repeat(200));
        assert_eq!(longest(None, &material, None), DEFAULT);
    }
}
