use std::{borrow::Cow, collections::HashMap, ops::Range};

use regex_automata::meta::Regex;

use crate::{
    source::{Source, SourceError},
    types::{Criteria, Criterion, Evaluator},
};

/// Things about valid criteria that are probably not meant, one sentence each.
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
                "the criterion `{name}` has no description: the judge sees nothing but its name"
            ));
        }
        if matches!(criterion.evaluator, Evaluator::Script(_)) && criterion.description.is_empty() {
            found.push(format!(
                "the criterion `{name}` has no description: the writer learns what is required only from the script's errors"
            ));
        }
        if let Evaluator::Regex(config) = &criterion.evaluator
            && config.message.is_none()
            && criterion.description.is_empty()
        {
            found.push(format!(
                "the criterion `{name}` has neither a description nor a `message`: a reviser learns nothing but the pattern"
            ));
        }
    }
    if criteria.threshold <= 0.0 {
        found.push("the threshold is 0: any mean reaches it".to_owned());
    }
    found
}

/// The most memory that the patterns of a file may take together, in bytes. Criteria files are untrusted, and
/// thousands of patterns that are small enough each would take gigabytes.
pub(super) const PATTERNS_SIZE_LIMIT: usize = 128 << 20;

/// So few patterns stay below that limit, since each of them has one of its own.
const FEW_PATTERNS: usize = 32;

/// What a pattern counts that the regex crate cannot compile, in bytes: JSON Schemas may use look-around.
const UNKNOWN_SIZE: usize = 2 << 20;

/// Checks that the patterns of `regex`, `contains` and `schema` do not take too much memory together. Criteria come
/// with the places of their names.
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

/// What to do about patterns that take too much memory.
pub(super) const FEWER_PATTERNS: &str =
    "use fewer or simpler patterns: `\\w` and repetitions such as `{1,50}` take the most";

/// Says that patterns take more than `limit` bytes.
pub(super) fn too_much_memory(limit: usize) -> String {
    format!("the patterns take more than {} MB of memory", limit >> 20)
}

/// The index of the first pattern with which they take more than `limit` bytes together.
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

/// The largest weight: sums of larger ones would lose their digits.
const MAX_WEIGHT: f64 = 1e6;

/// A weight must be a number above 0, and not beyond all measure.
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
        error.help("leave the criterion out if it is not to count")
    } else {
        error
    })
}

/// A threshold must be a number from 0 to 1.
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

/// Names must be there, fit on a line, and be unique without regard to case: a judge's reply is matched
/// by them.
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
                "a name must be one line without white space around it",
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
                .help("names must be unique, upper and lower case being the same"));
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
            // The usual limit is far away.
            let criteria = criteria::parse(&text, "c.toml").unwrap().criteria;
            let criteria: Vec<_> = criteria.into_iter().map(|it| (it, 0..1)).collect();
            patterns(&Source::new("c.toml", &text), &criteria, 4 << 20)
        };
        assert_eq!(of("word ").err().map(|error| error.to_string()), None);
        let error = of("[a-z]{1000}").unwrap_err().to_string();
        assert!(error.contains("more than 4 MB of memory"), "{error}");
    }
}
