use std::ops::Range;

use toml::{Spanned, de::DeTable};

use super::{EvaluatorKind, origin, place_of};
use crate::prompt;
use crate::source::{self, Source, SourceError};
use crate::types::{Evaluator, LlmConfig};

pub(super) const KIND: EvaluatorKind = EvaluatorKind {
    name: "llm",
    keys: source::fields::<LlmConfig>,
    schema: source::schema_of::<LlmConfig>,
    read,
};

/// The maximum number of questions per criterion. A judge that answers more loses count.
const MAX_CHECKS: usize = 20;

fn read(source: &Source, table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let outline = table.clone();
    let at = |key: &str| place_of(&outline, key);
    let whole = table.span();
    let mut config: LlmConfig = source::table_into(source, table)?;
    config.origin = origin(source, &whole);
    if outline.get_ref().get("checks").is_some() && config.checks.is_empty() {
        return Err(source.error(at("checks"), "`checks` is empty: add at least one question"));
    }
    check(source, &at, &config)?;
    Ok(Evaluator::Llm(config))
}

/// Checks the configuration of a judge. `places` holds the spans of its keys.
pub(in crate::criteria) fn check(
    source: &Source,
    at: &dyn Fn(&str) -> Range<usize>,
    config: &LlmConfig,
) -> Result<(), SourceError> {
    let scales: Vec<&str> = [
        ("anchors", config.anchors.is_some()),
        ("checks", !config.checks.is_empty()),
        ("scale", config.scale.is_some()),
    ]
    .into_iter()
    .filter_map(|(key, set)| set.then_some(key))
    .collect();
    if let [first, second, ..] = scales[..] {
        return Err(source
            .error(
                at(second),
                &format!("`{first}` and `{second}` are different ways to give a score"),
            )
            .also(at(first), format!("`{first}` is here"))
            .help("keep one of them, or split the criterion in two"));
    }
    if config.checks.len() > MAX_CHECKS {
        return Err(source
            .error(
                at("checks"),
                &format!("more than {MAX_CHECKS} questions in one criterion"),
            )
            .help("split it into several criteria"));
    }
    if config.checks.iter().any(|check| check.trim().is_empty()) {
        return Err(source.error(at("checks"), "a question is empty"));
    }
    if config.model.as_ref().is_some_and(|m| m.trim().is_empty()) {
        return Err(source.error(at("model"), "`model` is empty"));
    }
    if let Some(template) = &config.prompt {
        check_prompt(source, at("prompt"), template)?;
    }
    for (number, example) in (1..).zip(&config.examples) {
        if let Some(problem) = example_problem(config, example) {
            return Err(source.error(at("examples"), &format!("example {number} {problem}")));
        }
    }
    Ok(())
}

/// Describes what is wrong with an example, in words that continue "example 1 …".
fn example_problem(config: &LlmConfig, example: &crate::types::JudgeExample) -> Option<String> {
    if example.draft.trim().is_empty() {
        return Some("has an empty `draft`".to_owned());
    }
    match (example.score, example.verdict) {
        (None, None) => Some("has neither a `score` nor a `verdict`".to_owned()),
        (Some(_), _) if !config.checks.is_empty() => Some(
            "has a `score`, but the criterion is judged by `checks`: give a `verdict`".to_owned(),
        ),
        (Some(score), _) => {
            let (low, high) = config
                .scale
                .map_or((1.0, 5.0), |scale| (scale.low(), scale.high()));
            (!(low..=high).contains(&score))
                .then(|| format!("has the score {score}, but scores go from {low} to {high}"))
        }
        (None, Some(_)) => None,
    }
}

/// Checks that a custom prompt is a template that renders. The error points into the file if the
/// quoted text there equals the template character by character.
fn check_prompt(source: &Source, span: Range<usize>, template: &str) -> Result<(), SourceError> {
    if template.trim().is_empty() {
        return Err(source.error(span, "`prompt` is empty"));
    }
    prompt::check_own(template).map_err(|template_error| {
        let written = source.text().get(span.clone()).unwrap_or_default();
        let place = written.find(template).zip(template_error.span).map_or(
            span.clone(),
            |(begin, within)| {
                let begin = span.start + begin;
                begin + within.start..begin + within.end
            },
        );
        source
            .error(place, &format!("`prompt`: {}", template_error.message))
            .help_if(template_error.hint)
    })
}
