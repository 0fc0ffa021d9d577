//! Reports on runs as one self-contained HTML file without scripts. Text from users, models and files is
//! escaped. The templates render the record; [`view`] computes what is not in the record.

mod bench;
mod chart;
mod view;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value, context, escape_formatter};
use serde::Serialize;

pub use self::bench::bench_html;
use self::view::Mark;
pub use self::view::{Said, Talk};
use crate::report::text::{asides, doubt, duration, thousands, value};
use crate::template;
use crate::types::{CriterionResult, Issue, Stamped};

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = template::environment();
    environment.set_syntax(template::trimmed());
    // Templates may test missing values, but must not print them.
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    // Escape every value as text, whatever the name of its template or its type.
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(|out, state, value| match value.as_str().map(printable) {
        Some(Cow::Owned(text)) => escape_formatter(out, state, &Value::from(text)),
        _ => escape_formatter(out, state, value),
    });
    environment.add_filter("score", |score: f64| format!("{score:.2}"));
    // An amount, in the unit of the user's prices.
    environment.add_filter("money", |amount: Option<f64>| {
        amount
            .map(|amount| format!("{amount:.4}"))
            .unwrap_or_default()
    });
    environment.add_filter("thousands", |number: Option<u64>| {
        number.map(thousands).unwrap_or_default()
    });
    environment.add_filter("milliseconds", |time: u64| milliseconds(time));
    environment.add_filter("mark", |result: Serde<CriterionResult>| {
        Value::from(Serde(Mark::of_result(&result)))
    });
    environment.add_filter("value", |result: Serde<CriterionResult>| value(&result));
    environment.add_filter("asides", |result: Serde<CriterionResult>| asides(&result));
    environment.add_filter("doubt", |issue: Serde<Issue>| doubt(&issue));
    for (name, source) in [
        ("base", include_str!("base.html")),
        ("page", include_str!("page.html")),
        ("bench", include_str!("bench.html")),
        ("words", include_str!("words.html")),
        ("head", include_str!("head.html")),
        ("run", include_str!("run.html")),
        ("chart", include_str!("chart.html")),
        ("grid", include_str!("grid.html")),
        ("version", include_str!("version.html")),
        ("diff", include_str!("diff.html")),
    ] {
        environment
            .add_template(name, source)
            .expect("built-in templates are valid: a test renders them all");
    }
    environment
});

/// Formats a report on these runs, each given by its events in order, as one HTML file. A single run is the
/// whole page; several runs get a section each.
pub fn html(runs: &[&[Stamped]]) -> String {
    let (title, page) = view::page(runs, BTreeMap::new());
    fill("page", &title, &page)
}

/// Like [`html`] for one run, with the prompts and replies of its calls, by the index of their events.
pub fn html_with_talks(run: &[Stamped], talks: BTreeMap<usize, Talk>) -> String {
    let (title, page) = view::page(&[run], talks);
    fill("page", &title, &page)
}

/// Renders a page with this template.
fn fill(template: &str, title: &str, page: &impl Serialize) -> String {
    TEMPLATES
        .get_template(template)
        .and_then(|template| {
            template.render(context! {
                title => title,
                page => Value::from(Serde(page)),
                style => Value::from_safe_string(include_str!("style.css").to_owned()),
                program => env!("CARGO_PKG_VERSION"),
            })
        })
        .expect("built-in templates are valid: a test renders them all")
}

#[expect(clippy::cast_precision_loss, reason = "times that people wait")]
fn milliseconds(time: u64) -> String {
    duration(time as f64 / 1000.0)
}

/// Replaces control characters, which are invalid in HTML or invisible: `\r\n` becomes `\n`, others become
/// U+FFFD.
pub(super) fn printable(text: &str) -> Cow<'_, str> {
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(control) {
        text.replace("\r\n", "\n")
            .replace(control, "\u{fffd}")
            .into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests;
