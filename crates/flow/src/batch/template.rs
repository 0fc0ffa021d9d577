//! The template of prompts.

use std::collections::BTreeSet;

use minijinja::value::Serde;
use minijinja::{Environment, Error, ErrorKind};
use serde_json::{Map, Value};

use crate::template;

/// The maximum work for one prompt, in instructions of the template engine: a thousand times that of any
/// realistic one.
const FUEL: u64 = 100_000;

const NAME: &str = "prompt";

/// A template for prompts, such as `Write about {{ topic }}`. It is rendered with the values of a task's
/// line, which are never treated as templates.
#[derive(Debug)]
pub struct PromptTemplate {
    environment: Environment<'static>,
    names: BTreeSet<String>,
}

/// Why there is no prompt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// The text is not a valid template.
    #[error("{}", message_of(.0))]
    Syntax(#[source] Error),
    /// The template uses a name that the task has no value for.
    #[error("the prompt names `{0}`, but this task has no value for it")]
    Missing(String),
    /// The template cannot be rendered with the task's values.
    #[error("cannot render the prompt: {}", message_of(.0))]
    Render(#[source] Error),
}

impl PromptTemplate {
    /// Parses a template.
    ///
    /// # Errors
    /// If the text is not a valid template.
    pub fn new(text: &str) -> Result<Self, TemplateError> {
        let mut environment = template::environment();
        environment.set_fuel(Some(FUEL));
        environment
            .add_template_owned(NAME, text.to_owned())
            .map_err(TemplateError::Syntax)?;
        let names = environment
            .get_template(NAME)
            .map_err(TemplateError::Syntax)?
            .undeclared_variables(false)
            .into_iter()
            .collect();
        Ok(Self { environment, names })
    }

    /// Renders the prompt of a task with these values.
    ///
    /// # Errors
    /// If a value is missing, or the template cannot be rendered.
    pub fn fill(&self, values: &Map<String, Value>) -> Result<String, TemplateError> {
        let filled = self
            .environment
            .get_template(NAME)
            .and_then(|template| template.render(Serde(values)));
        filled.map_err(|error| {
            let mut missing = self.names.iter().filter(|name| !values.contains_key(*name));
            match missing
                .next()
                .filter(|_| error.kind() == ErrorKind::UndefinedError)
            {
                Some(name) => TemplateError::Missing(name.clone()),
                None => TemplateError::Render(error),
            }
        })
    }
}

fn message_of(error: &Error) -> String {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) if line > 1 => format!("{what} (line {line})"),
        _ => what,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fill(template: &str, values: Value) -> Result<String, TemplateError> {
        let Value::Object(values) = values else {
            panic!("values are an object");
        };
        PromptTemplate::new(template)?.fill(&values)
    }

    #[test]
    fn values_are_not_rendered_as_templates() {
        let filled = fill("About {{ topic }}.", json!({"topic": "{{ 7 * 7 }} <b>"}));
        assert_eq!(filled.unwrap(), "About {{ 7 * 7 }} <b>.");
        let list = fill(
            "{% for x in xs %}{{ x }};{% endfor %}",
            json!({"xs": [1, "a"]}),
        );
        assert_eq!(list.unwrap(), "1;a;");
    }

    #[test]
    fn errors_name_the_missing_value() {
        let error = fill("About {{ topic }} in {{ style }}.", json!({"topic": 1}))
            .unwrap_err()
            .to_string();
        assert!(error.contains("`style`"), "{error}");
        assert!(PromptTemplate::new("{{ topic").is_err());
        let endless =
            "{% for x in range(9999) %}{% for y in range(9999) %}{% endfor %}{% endfor %}";
        assert!(fill(endless, json!({})).is_err());
    }
}
