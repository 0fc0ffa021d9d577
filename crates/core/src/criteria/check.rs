use std::{borrow::Cow, collections::HashMap, ops::Range};

use regex_automata::meta::Regex;

use crate::{
    source::{Source, SourceError},
    types::{Criteria, Criterion, Evaluator},
};

/// Returns warnings about criteria that are valid but probably a mistake, one sentence each.
pub fn warnings(criteria: &Criteria) -> Vec<String> {
    let mut found = Vec::new();
    for criterion in &criteria.criteria {
        let name = &criterion.name;
        if let Evaluator::Llm(config) = &criterion.evaluator
            && criterion.description.is_empty()
            && config.checks.is_empty()
            && config.anchors.is_none()
            && config.prompt.is_none()
        {
            found.push(format!(
                "the criterion `{name}` has no description: the judge sees only its name"
            ));
        }
        if matches!(criterion.evaluator, Evaluator::Script(_)) && criterion.description.is_empty() {
            found.push(format!(
                "the criterion `{name}` has no description: the writer sees only the script's errors"
            ));
        }
        if let Evaluator::Regex(config) = &criterion.evaluator
            && config.message.is_none()
            && criterion.description.is_empty()
        {
            found.push(format!(
                "the criterion `{name}` has neither a description nor a `message`: the writer sees only the pattern"
            ));
        }
    }
    if criteria.threshold <= 0.0 {
        found.push("the threshold is 0: every draft reaches it".to_owned());
    }
    found
}

/// The maximum memory for all patterns of a file together, in bytes. Criteria files are untrusted,
/// and thousands of small patterns would otherwise take gigabytes.
pub(super) const PATTERNS_SIZE_LIMIT: usize = 128 << 20;

/// Files with at most this many patterns skip the combined check: the size limit of each single
/// pattern already keeps their sum below [`PATTERNS_SIZE_LIMIT`].
const FEW_PATTERNS: usize = 32;

/// The size assumed for a pattern that the regex crate cannot compile, in bytes. JSON Schemas may
/// use look-around.
const UNKNOWN_SIZE: usize = 2 << 20;

/// Checks the combined memory of the patterns of all `regex`, `contains` and `schema` criteria.
/// Each criterion comes with the span of its name.
pub(super) fn patterns(
    source: &Source,
    criteria: &[(Criterion, Range<usize>)],
    limit: usize,
) -> Result<(), SourceError> {
    let mut patterns: Vec<(Cow<'_, str>, &Range<usize>)> = Vec::new();
    for (criterion, place) in criteria {
        match &criterion.evaluator {
            Evaluator::Regex(config) => patterns.push((Cow::from(&config.pattern), place)),
            Evaluator::Contains(config) => {
                let texts = [&config.all, &config.any, &config.none];
                let texts = texts.into_iter().flatten();
                patterns.extend(texts.map(|text| (config.pattern(text).into(), place)));
            }
            Evaluator::Schema(config) => {
                patterns.extend(config.patterns().into_iter().map(|it| (it.into(), place)));
            }
            _ => {}
        }
    }
    let texts: Vec<&str> = patterns.iter().map(|(pattern, _)| &**pattern).collect();
    match first_beyond(&texts, limit) {
        None => Ok(()),
        Some(index) => {
            let message = format!("with this criterion, {}", too_much_memory(limit));
            Err(source
                .error(patterns[index].1.clone(), &message)
                .help(FEWER_PATTERNS))
        }
    }
}

/// The hint for patterns that take too much memory.
pub(super) const FEWER_PATTERNS: &str =
    "use fewer or simpler patterns: `\\w` and repetitions such as `{1,50}` take the most";

/// Returns the error message for patterns that take more than `limit` bytes.
pub(super) fn too_much_memory(limit: usize) -> String {
    format!("the patterns take more than {} MB of memory", limit >> 20)
}

/// Returns the index of the pattern at which the combined size exceeds `limit` bytes.
pub(super) fn first_beyond(patterns: &[&str], limit: usize) -> Option<usize> {
    if patterns.len() <= FEW_PATTERNS {
        return None;
    }
    let mut size = 0;
    patterns.iter().position(|pattern| {
        size += Regex::new(pattern).map_or(UNKNOWN_SIZE, |regex| regex.memory_usage());
        size > limit
    })
}

/// The maximum weight. Sums of larger weights lose precision.
const MAX_WEIGHT: f64 = 1e6;

/// Checks that a weight is above 0 and at most [`MAX_WEIGHT`].
pub(super) fn weight(source: &Source, span: Range<usize>, weight: f64) -> Result<(), SourceError> {
    if weight > 0.0 && weight <= MAX_WEIGHT {
        return Ok(());
    }
    let must = if weight > MAX_WEIGHT {
        format!("at most {MAX_WEIGHT}")
    } else {
        "above 0".to_owned()
    };
    let error = source.error(span, &format!("`weight` must be {must}, not {weight}"));
    Err(if weight == 0.0 {
        error.help("remove the criterion if it should not count")
    } else {
        error
    })
}

/// Checks that a threshold is a number from 0 to 1.
pub(super) fn threshold(
    source: &Source,
    span: Range<usize>,
    threshold: f64,
) -> Result<(), SourceError> {
    if (0.0..=1.0).contains(&threshold) {
        return Ok(());
    }
    let error = source.error(
        span,
        &format!("`threshold` must be from 0 to 1, not {threshold}"),
    );
    Err(if threshold > 1.0 && threshold <= 100.0 {
        error.help(format!("did you mean {}?", threshold / 100.0))
    } else {
        error
    })
}

/// Checks that names are non-empty, fit on one line, and are unique ignoring case: the judge's
/// reply is matched by name.
pub(super) fn names(
    source: &Source,
    criteria: &[(Criterion, Range<usize>)],
) -> Result<(), SourceError> {
    let mut seen: HashMap<String, Range<usize>> = HashMap::new();
    for (criterion, span) in criteria {
        let name = &criterion.name;
        if name.trim().is_empty() {
            return Err(source.error(span.clone(), "the name is empty"));
        }
        if name.trim() != name || name.chars().any(char::is_control) {
            return Err(source.error(
                span.clone(),
                "a name must be one line without leading or trailing white space",
            ));
        }
        if let Some(first) = seen.insert(name.to_lowercase(), span.clone()) {
            let (line, _) = source.position(first.start);
            return Err(source
                .error(
                    span.clone(),
                    &format!("the name `{name}` is used twice, first in line {line}"),
                )
                .label("used again here")
                .also(first, "first used here")
                .help("names must be unique, ignoring case"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria;

    #[test]
    fn many_patterns_together_have_a_limit() {
        let of = |pattern: &str| {
            let criterion = |n| {
                format!(
                    "[[criteria]]\nname = 'c{n}'\nevaluator = 'regex'\npattern = '{pattern}{n}'\n"
                )
            };
            let text: String = (0..100).map(criterion).collect();
            // The default limit is far above what this file needs.
            let criteria = criteria::parse(&text, "c.toml").unwrap().criteria;
            let criteria: Vec<_> = criteria.into_iter().map(|it| (it, 0..1)).collect();
            patterns(&Source::new("c.toml", &text), &criteria, 4 << 20)
        };
        assert_eq!(of("word ").err().map(|error| error.to_string()), None);
        let error = of("[a-z]{1000}").unwrap_err().to_string();
        assert!(error.contains("more than 4 MB of memory"), "{error}");
    }
}
