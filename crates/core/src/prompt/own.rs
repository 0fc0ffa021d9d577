//! A criterion's own prompt: a template that a user, or somebody whose file he uses, has written.

use std::ops::Range;
use std::sync::LazyLock;

use minijinja::{Environment, Error, Value, context};
use regex::Regex;

use super::block::block;
use crate::template;
use crate::text::one_line;

/// What a prompt of one's own may use. `output_to_evaluate` and `state` are the draft under the names of seed
/// 001.
const VARIABLES: [&str; 5] = [
    "criterion",
    "description",
    "draft",
    "output_to_evaluate",
    "state",
];

/// How much work a template may make, in instructions of its engine: a thousand times that of any real prompt,
/// and done in a moment.
const FUEL: u64 = 100_000;

/// Without other templates: what a template shows is what it is given.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = template::environment();
    environment.set_fuel(Some(FUEL));
    environment.set_debug(true);
    environment
});

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// What, in one line.
    pub message: String,
    /// Where in the template, in bytes, if that is known.
    pub span: Option<Range<usize>>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Says what is wrong with a prompt of one's own: it must be a template that can be filled in.
pub fn check(template: &str) -> Result<(), TemplateFault> {
    let compiled = ENVIRONMENT
        .template_from_str(template)
        .map_err(|error| fault(&error, template))?;
    let mut unknown: Vec<String> = compiled
        .undeclared_variables(false)
        .into_iter()
        .filter(|name| !VARIABLES.contains(&name.as_str()) && !is_builtin(name))
        .collect();
    unknown.sort();
    if let Some(name) = unknown.first() {
        return Err(TemplateFault {
            message: format!("there is no variable `{name}`"),
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
        .map_err(|error| fault(&error, template))
}

/// Whether the engine itself brings a name along, as `range`.
fn is_builtin(name: &str) -> bool {
    ENVIRONMENT.globals().any(|(known, _)| known == name)
}

/// Whether a template says in what JSON the judge is to answer: it shows an object with a key of a verdict, or asks
/// for JSON and names such a key in quotes.
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

/// Whether a filled-in template shows the draft: all of it, and delimited.
pub(super) fn shows(filled: &str, draft: &str) -> bool {
    filled.contains(&block(draft, "draft", None))
}

/// Fills a template in. Wherever it shows the draft, that is delimited.
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

fn fault(error: &Error, template: &str) -> TemplateFault {
    TemplateFault {
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
            ("{{ drft }}", "there is no variable `drft`", Some("drft")),
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
            let fault = check(template).expect_err(template);
            assert!(fault.message.contains(message), "{template}: {fault:?}");
            if let Some(shown) = shown {
                assert_eq!(&template[fault.span.unwrap()], shown);
            }
        }
        assert_eq!(check("Is {{ criterion }} met?"), Ok(()));
    }

    proptest! {
        #[test]
        fn no_template_makes_it_panic(template in "(\\{\\{|\\}\\}|\\{%|%\\}|draft|if|for|[a-z |.'(*9]|é)*") {
            if let Err(fault) = check(&template)
                && let Some(span) = fault.span
            {
                prop_assert!(span.end <= template.len());
            }
        }
    }
}
