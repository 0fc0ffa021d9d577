use ::regex::{Captures, Regex};

use crate::text::counted;
use crate::types::{CommandConfig, compile};

/// The maximum score of a program that fails.
const NOT_PASSED: f64 = 0.99;

/// Grades how close a failed program was to passing, from its output.
pub(super) struct Grade {
    errors: Option<Regex>,
    tests: Option<Regex>,
}

/// A score and its basis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Graded {
    /// From 0 to below 1.
    pub(super) score: f64,
    /// A description of the counts; empty if nothing was counted.
    pub(super) counted: String,
}

impl Grade {
    pub(super) fn new(config: &CommandConfig) -> Result<Self, String> {
        let compiled = |pattern: Option<&String>| {
            let pattern = pattern.map(|pattern| compile(pattern)).transpose();
            pattern.map_err(|error| error.to_string())
        };
        Ok(Self {
            errors: compiled(config.errors.as_ref())?,
            tests: compiled(config.tests.as_ref())?,
        })
    }

    /// Grades the output of a failed program. Test results count if there are any; otherwise errors
    /// count, because tests do not run if nothing compiles.
    pub(super) fn of(&self, text: &str) -> Graded {
        let tests = self.tests.as_ref().map(|tests| results(tests, text));
        match tests {
            Some((passed, failed)) if passed + failed > 0.0 => {
                let share = passed / (passed + failed);
                let score = if self.errors.is_some() {
                    f64::midpoint(1.0, share)
                } else {
                    share
                };
                Graded {
                    score: score.min(NOT_PASSED),
                    counted: format!("{passed} of {} tests passed", passed + failed),
                }
            }
            _ => self.errors(text),
        }
    }

    fn errors(&self, text: &str) -> Graded {
        let count = (self.errors.as_ref()).map_or(0, |errors| errors.find_iter(text).count());
        if count == 0 {
            return Graded {
                score: 0.0,
                counted: String::new(),
            };
        }
        let best = if self.tests.is_some() { 0.5 } else { 1.0 };
        Graded {
            score: best / (1.0 + number(count)),
            counted: counted(count, "error"),
        }
    }
}

/// Returns how many tests passed and failed, summed over all matches.
fn results(tests: &Regex, text: &str) -> (f64, f64) {
    let group = |found: &Captures<'_>, name: &str| {
        found.name(name).map_or(0.0, |group| {
            group.as_str().parse::<u32>().map_or(1.0, f64::from)
        })
    };
    tests
        .captures_iter(text)
        .fold((0.0, 0.0), |(passed, failed), found| {
            (
                passed + group(&found, "passed"),
                failed + group(&found, "failed"),
            )
        })
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "scores are exact fractions")]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::Evaluator;

    fn grade(errors: Option<&str>, tests: Option<&str>) -> Grade {
        let config = CommandConfig {
            errors: errors.map(str::to_owned),
            tests: tests.map(str::to_owned),
            ..CommandConfig::parse("prog").unwrap()
        };
        Grade::new(&config).unwrap()
    }

    const TESTS: &str = r"(?P<passed>\d+) passed|(?P<failed>\d+) failed";

    #[test]
    fn fewer_errors_score_more_and_none_that_is_known_scores_nothing() {
        let by_errors = grade(Some("(?m)^error"), None);
        for (count, score) in [(0, 0.0), (1, 0.5), (3, 0.25), (9, 0.1)] {
            assert_eq!(
                by_errors.of(&"error: x\n".repeat(count)).score,
                score,
                "{count}"
            );
        }
        assert_eq!(by_errors.of("error\n").counted, "1 error");
        assert_eq!(grade(None, None).of("error").score, 0.0);
    }

    #[test]
    fn tests_count_by_number_or_one_by_one() {
        let numbers = grade(None, Some(TESTS));
        let graded = numbers.of("1 passed; 3 failed\n2 passed; 2 failed");
        assert_eq!(
            (graded.score, &*graded.counted),
            (0.375, "3 of 8 tests passed")
        );
        assert_eq!(numbers.of("killed").score, 0.0);
        assert_eq!(numbers.of("5 passed, 0 failed").score, NOT_PASSED);
        let names = grade(None, Some("--- (?:(?P<passed>PASS)|(?P<failed>FAIL)): "));
        assert_eq!(
            names.of("--- PASS: a\n--- FAIL: b\n--- PASS: c").score,
            2.0 / 3.0
        );
    }

    #[test]
    fn what_compiles_and_fails_its_tests_is_better_than_what_does_not_compile() {
        let both = grade(Some("error"), Some(TESTS));
        let not_compiled = both.of("error").score;
        let none_passed = both.of("4 failed").score;
        assert!(not_compiled < none_passed, "{not_compiled} {none_passed}");
        assert!(none_passed < both.of("error 1 passed 3 failed").score);
    }

    /// Applies the patterns of `docs/commands.md` to real program output.
    #[test]
    fn the_documented_patterns_grade_what_the_programs_write() {
        let docs = include_str!("../../../../docs/commands.md");
        let pattern = |program: &str| {
            let (_, rest) = docs.split_once(&format!("\n## {program}\n")).unwrap();
            let (_, rest) = rest.split_once("```toml\n").unwrap();
            let (criterion, _) = rest.split_once("```").unwrap();
            let criteria = crate::criteria::parse(criterion, "commands.md").unwrap();
            match &criteria.criteria[0].evaluator {
                Evaluator::Command(config) => Grade::new(config).unwrap(),
                other => panic!("{program}: {other:?}"),
            }
        };
        macro_rules! cases {
            ($($program:literal, $output:literal, $counted:literal;)*) => {
                $(
                    let output = include_str!(concat!("../../../../tests/data/commands/", $output, ".txt"));
                    assert_eq!(pattern($program).of(output).counted, $counted, $output);
                )*
            };
        }
        cases! {
            "rustc", "rustc-tokens", "10 errors";
            "rustc", "rustc-types", "4 errors";
            "cargo test", "cargotest", "1 of 4 tests passed";
            "cargo test", "rustc-types", "4 errors";
            "tsc", "tsc", "3 errors";
            "tsc", "tsc-pretty", "3 errors";
            "eslint", "eslint", "5 errors";
            "pytest", "pytest", "1 of 3 tests passed";
            "pytest", "pytest-quiet", "1 of 3 tests passed";
            "pytest", "pytest-error", "0 of 2 tests passed";
            "go vet", "govet", "2 errors";
            "go vet", "govet-bad", "1 error";
            "go vet", "gobuild", "2 errors";
            "go test", "gotest", "1 of 2 tests passed";
            "go test", "gobuild", "2 errors";
            "gcc", "gcc", "5 errors";
        }
    }

    proptest! {
        #[test]
        fn a_repair_never_lowers_the_score(errors in 1_usize..60, passed in 0_u32..50, failed in 1_u32..50) {
            let by_errors = grade(Some("error"), None);
            let score = |count| by_errors.of(&"error ".repeat(count)).score;
            prop_assert!(score(errors) > score(errors + 1));
            let by_tests = grade(None, Some(TESTS));
            let score = |passed, failed| by_tests.of(&format!("{passed} passed {failed} failed")).score;
            prop_assert!(score(passed + 1, failed - 1) > score(passed, failed));
            prop_assert!(score(passed, failed) < 1.0);
        }
    }
}
