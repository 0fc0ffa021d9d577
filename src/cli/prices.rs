//! Checks that a cost limit can be enforced: every model that may be called needs a price.

use super::error::CliError;
use super::printer;
use super::settings::Plan;
use crate::config::Origin;
use crate::types::{ModelId, Prices};

/// Returns the cost limit of a run that may call these models, at these prices.
///
/// Without prices, a limit set by the user is an error. A limit set by criteria or a project file is ignored
/// with a warning, because its author does not know the user's prices.
///
/// # Errors
/// If the user's limit cannot be enforced.
pub(super) fn limit<'a>(
    plan: &Plan,
    prices: &Prices,
    models: impl Iterator<Item = &'a ModelId>,
    quiet: bool,
) -> Result<Option<f64>, CliError> {
    let Some(limit) = plan.settings().loop_settings.max_cost else {
        return Ok(None);
    };
    let Some((names, hint)) = without_price(prices, models) else {
        return Ok(Some(limit));
    };
    let origin = plan.resolved.origin("loop.max_cost");
    let foreign = match origin {
        Some(Origin::Criteria(_)) => true,
        Some(Origin::File { path, .. }) => plan.config.project_path() == Some(path),
        _ => false,
    };
    if foreign {
        if !quiet {
            let origin = origin.map(ToString::to_string).unwrap_or_default();
            printer::say(&format!(
                "warning: `max_cost` from {origin} has no effect: no price set for {names}\nhint: {hint}"
            ));
        }
        return Ok(None);
    }
    let said_by = origin.map_or_else(|| "--max-cost".to_owned(), ToString::to_string);
    Err(CliError::usage(format!(
        "cannot limit the cost ({said_by}): no price set for {names}"
    ))
    .hint(hint))
}

/// Checks that a cost limit on many runs together can be enforced.
///
/// # Errors
/// If a model that may be called has no price.
pub(super) fn check<'a>(
    plan: &Plan,
    models: impl Iterator<Item = &'a ModelId>,
) -> Result<(), CliError> {
    match without_price(plan.config.prices(), models) {
        None => Ok(()),
        Some((names, hint)) => Err(CliError::usage(format!(
            "cannot limit the cost (--max-cost): no price set for {names}"
        ))
        .hint(hint)),
    }
}

/// Returns the models without a price, and a hint; `None` if all have one.
fn without_price<'a>(
    prices: &Prices,
    models: impl Iterator<Item = &'a ModelId>,
) -> Option<(String, String)> {
    let mut unknown: Vec<String> = models
        .filter(|model| prices.of(model).is_none())
        .map(ToString::to_string)
        .collect();
    unknown.sort();
    unknown.dedup();
    let first = unknown.first()?;
    let hint = format!(
        "add `[prices.\"{first}\"]` with `input` and `output` per million tokens to your configuration file \
         (`reflect config path`)"
    );
    let names: Vec<String> = unknown.iter().map(|name| format!("`{name}`")).collect();
    Some((names.join(" and "), hint))
}
