//! A criterion's custom prompt: an untrusted template from a criteria file.

use std::ops::Range;
use std::sync::LazyLock;

use minijinja::{Environment, Error, Value, context};
use regex::Regex;

use super::block::block;
use crate::template;
use crate::text::one_line;

/// The variables of a custom prompt. `output_to_evaluate` and `state` are alternative names of the
/// draft, for existing templates.
const VARIABLES: [&str; 5] = [
    "criterion",
    "description",
    "draft",
    "output_to_evaluate",
    "state",
];

/// The maximum work per rendering, in instructions of the template engine: a thousand times the
/// cost of any real prompt, and still fast.
const FUEL: u64 = 100_000;

/// Has no other templates, so that a template can show only its variables.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = template::environment();
    environment.set_fuel(Some(FUEL));
    environment.set_debug(true);
    environment
});

/// An error in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    /// The message, on one line.
    pub message: String,
    /// The position in the template in bytes, if known.
    pub span: Option<Range<usize>>,
    /// How to fix it.
    pub hint: Option<String>,
}

/// Checks that a custom prompt is a template that renders.
pub fn check(template: &str) -> Result<(), TemplateError> {
    let compiled = ENVIRONMENT
        .template_from_str(template)
        .map_err(|error| template_error(&error, template))?;
    let mut unknown: Vec<String> = compiled
        .undeclared_variables(false)
        .into_iter()
        .filter(|name| !VARIABLES.contains(&name.as_str()) && !is_builtin(name))
        .collect();
    unknown.sort();
    if let Some(name) = unknown.first() {
        return Err(TemplateError {
            message: format!("unknown variable `{name}`"),
            span: template
                .find(name.as_str())
                .map(|begin| begin..begin + name.len()),
            hint: Some(format!(
                "known variables: {}",
                VARIABLES.map(|name| format!("`{name}`")).join(", ")
            )),
        });
    }
    fill(template, "a criterion", "Its description.", "A draft.")
        .map(|_| ())
        .map_err(|error| template_error(&error, template))
}

/// Returns whether the template engine itself defines a name, such as `range`.
fn is_builtin(name: &str) -> bool {
    ENVIRONMENT.globals().any(|(known, _)| known == name)
}

/// Returns whether a template describes the JSON of the reply: it contains an object with a verdict
/// key, or mentions JSON and a verdict key in quotes.
pub fn states_form(template: &str) -> bool {
    static KEY: LazyLock<Regex> = LazyLock::new(|| {
        let keys = "valid|pass|passes|passed|satisfactory|score|overall_score|quality_score|rating";
        let object = format!(r#"\{{[^{{}}]*["'](?:{keys})["']\s*:"#);
        let key = format!("[\"'`](?:{keys})[\"'`]");
        let named = format!(r"\bjson\b.*{key}|{key}.*\bjson\b");
        Regex::new(&format!("(?is){object}|{named}")).expect("a valid pattern")
    });
    KEY.is_match(template)
}

/// Returns whether a rendered template shows the whole draft, delimited.
pub(super) fn shows(filled: &str, draft: &str) -> bool {
    filled.contains(&block(draft, "draft", None))
}

/// Renders a template. The draft is delimited wherever it appears.
pub(super) fn render(
    template: &str,
    criterion: &str,
    description: &str,
    draft: &str,
) -> Result<String, String> {
    fill(template, criterion, description, draft).map_err(|error| message_of(&error))
}

fn fill(template: &str, criterion: &str, description: &str, draft: &str) -> Result<String, Error> {
    let draft = Value::from(block(draft, "draft", None));
    ENVIRONMENT.render_str(
        template,
        context! {
            criterion,
            description,
            draft => draft.clone(),
            output_to_evaluate => draft.clone(),
            state => context! { output_to_evaluate => draft },
        },
    )
}

fn template_error(error: &Error, template: &str) -> TemplateError {
    TemplateError {
        message: message_of(error),
        span: error.range().filter(|range| range.end <= template.len()),
        hint: None,
    }
}

pub(super) fn message_of(error: &Error) -> String {
    let kind = error.kind().to_string();
    let text = match error.detail() {
        Some(detail) => format!("{kind}: {detail}"),
        None => kind,
    };
    one_line(&text)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_draft_is_delimited_wherever_it_is_shown() {
        let fill = |template| render(template, "c", "d", "x</draft>").unwrap();
        let shown = "<draft-2>\nx</draft>\n</draft-2>";
        assert_eq!(fill("Rate {{ draft }}."), format!("Rate {shown}."));
        assert_eq!(
            fill("{{ output_to_evaluate }}/{{ state.output_to_evaluate }}"),
            format!("{shown}/{shown}")
        );
        assert_eq!(fill("`{{ criterion }}`: {{ description }}"), "`c`: d");
        for (template, expected) in [
            ("{{ draft }}", true),
            ("{{ state.output_to_evaluate }}", true),
            ("Is it good? draft", false),
            ("{% if criterion == 'x' %}{{ draft }}{% endif %}", false),
            ("{{ draft | upper }}", false),
        ] {
            let filled = fill(template);
            assert_eq!(shows(&filled, "x</draft>"), expected, "{template}");
        }
    }

    #[test]
    fn a_form_of_its_own_is_seen() {
        for (template, states) in [
            (
                "Answer with JSON: {\"valid\": true or false, \"score\": 0.0 to 1.0}",
                true,
            ),
            (
                "{{ draft }}\nReturn { 'reason': '...', 'pass': false }",
                true,
            ),
            ("Reply in JSON with the keys `score` and `reason`.", true),
            ("Give `score` and `reason`, as JSON.", true),
            (
                "Is this JSON a valid profile? {{ state.output_to_evaluate | tojson }}",
                false,
            ),
            (
                "{% if criterion == \"score\" %}Is it good?{% endif %}",
                false,
            ),
            (
                "A profile looks like {\"name\": \"Ada\"}. Is it one?",
                false,
            ),
            ("Would {{ criterion }} please a poet?", false),
        ] {
            assert_eq!(states_form(template), states, "{template}");
        }
    }

    #[test]
    fn mistakes_are_found_before_anybody_is_asked() {
        for (template, message, shown) in [
            ("{{ drft }}", "unknown variable `drft`", Some("drft")),
            ("a {{ draft", "syntax error", None),
            ("{% if x", "syntax error", None),
            ("{{ draft | shout }}", "unknown filter", None),
            ("{{ state.nothing }}", "undefined value", None),
            (
                "{% for i in range(99999) %}{% for j in range(99999) %}x{% endfor %}{% endfor %}",
                "fuel",
                None,
            ),
        ] {
            let template_error = check(template).expect_err(template);
            assert!(
                template_error.message.contains(message),
                "{template}: {template_error:?}"
            );
            if let Some(shown) = shown {
                assert_eq!(&template[template_error.span.unwrap()], shown);
            }
        }
        assert_eq!(check("Is {{ criterion }} met?"), Ok(()));
    }

    proptest! {
        #[test]
        fn no_template_makes_it_panic(template in "(\\{\\{|\\}\\}|\\{%|%\\}|draft|if|for|[a-z |.'(*9]|é)*") {
            if let Err(template_error) = check(&template)
                && let Some(span) = template_error.span
            {
                prop_assert!(span.end <= template.len());
            }
        }
    }
}
