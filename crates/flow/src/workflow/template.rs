//! Templates with `{{ names }}` of the state, which are rendered when their value is needed.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use minijinja::machinery::Token;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Object, Serde, Value as TemplateValue, ValueKind};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::defined::{self, Marked};
use super::limits;
use super::part::Part;
use super::state::State;
use crate::source::{self, Source, SourceError};

/// The maximum work of one template, in instructions of the engine: enough for a loop over a
/// thousand versions, and takes at most a second.
const FUEL: u64 = 1_000_000;

/// The names that a template sees.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// The state: available under `state`, and each of its names directly.
    pub(super) state: State,
    /// Further names, which take precedence over those of the state.
    pub(super) more: State,
}

impl Names {
    /// Sets a draft under all names that templates use for it.
    pub(super) fn show_draft(&mut self, draft: &Value) {
        self.state.set("reflection_output", draft.clone());
        for name in ["output", "output_to_evaluate", "draft"] {
            self.more.set(name, draft.clone());
        }
    }
}

impl Object for Names {
    fn get_value(self: &Arc<Self>, key: &TemplateValue) -> Option<TemplateValue> {
        let name = key.as_str()?;
        if name == "state" {
            return Some(TemplateValue::from_object(self.state.clone()));
        }
        self.more.shown(name).or_else(|| self.state.shown(name))
    }
}

/// Has no other templates, so that a template can show only its names.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = crate::template::environment();
    // Undefined names are empty in conditions and loops. Printed names are marked and must be
    // defined.
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_formatter(|out, _, value| {
        // With all printed names marked, only the missing branch of `{{ a if b }}` is still
        // undefined here.
        if value.is_undefined() {
            return Ok(());
        }
        out.write_str(&shown(value)?).map_err(Error::from)
    });
    environment.set_syntax(
        SyntaxConfig::builder()
            .keep_trailing_newline(true)
            .build()
            .expect("the usual delimiters are valid"),
    );
    environment.set_fuel(Some(FUEL));
    environment.set_debug(true);
    limits::bound(&mut environment);
    defined::add_filter(&mut environment);
    for name in ["length", "count"] {
        environment.add_filter(name, length);
    }
    environment.add_filter("tojson", to_json);
    environment.add_filter("json", to_json);
    environment.add_filter("fromjson", |text: TemplateValue| match text.as_str() {
        // A string that is not JSON stays a string.
        Some(json) => match serde_json::from_str::<Value>(json) {
            Ok(value) => TemplateValue::from(Serde(value)),
            Err(_) => text,
        },
        None => text,
    });
    environment.add_filter("sha256", |value: TemplateValue| {
        if value.is_undefined() {
            return Err(undefined());
        }
        Ok(source::hex(&Sha256::digest(shown(&value)?)))
    });
    environment
});

/// Returns the length of a value, 0 if it is undefined.
fn length(value: &TemplateValue) -> Result<usize, Error> {
    if value.is_undefined() {
        return Ok(0);
    }
    minijinja::filters::length(value)
}

fn undefined() -> Error {
    Error::new(ErrorKind::UndefinedError, "the state has no such name")
}

/// Converts a value to text: a string as is, anything else as JSON.
fn shown(value: &TemplateValue) -> Result<String, Error> {
    Ok(match (value.kind(), value.as_str()) {
        (_, Some(text)) => text.to_owned(),
        (ValueKind::Bool, _) => value.is_true().to_string(),
        (ValueKind::Map | ValueKind::Seq | ValueKind::Iterable | ValueKind::None, _) => {
            limits::json(value, false)?
        }
        _ => value.to_string(),
    })
}

fn json_of(value: &TemplateValue) -> Result<Value, Error> {
    if f64::try_from(value.clone()).is_ok_and(|number| !number.is_finite()) {
        let why = "no JSON number is infinite, or not a number";
        return Err(Error::new(ErrorKind::InvalidOperation, why));
    }
    serde_json::from_str(&limits::json(value, false)?).map_err(|error| {
        let said = error.to_string();
        if said.starts_with("recursion limit") {
            return Error::new(ErrorKind::InvalidOperation, "it is nested too deeply");
        }
        Error::new(ErrorKind::BadSerialization, said)
    })
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "the engine hands arguments over"
)]
fn to_json(value: &TemplateValue, kwargs: Kwargs) -> Result<TemplateValue, Error> {
    if value.is_undefined() {
        return Err(undefined());
    }
    let indent: Option<u8> = kwargs.get("indent")?;
    // Accepted for compatibility with Python and ignored.
    let _: (Option<bool>, Option<bool>) = (kwargs.get("ensure_ascii")?, kwargs.get("sort_keys")?);
    kwargs.assert_all_used()?;
    limits::json(value, indent.is_some()).map(TemplateValue::from)
}

/// Returns whether a text contains template syntax.
pub(super) fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// Returns the range of the expression if the text consists of nothing else: `{{ it }}`.
fn lone(text: &str) -> Option<Range<usize>> {
    let mut tokens = limits::tokens(text, false);
    let (_, open) = tokens.find(|(token, _)| matches!(token, Token::VariableStart))?;
    let (_, close) = tokens.find(|(token, _)| matches!(token, Token::VariableEnd))?;
    let begin = text.len() - text.trim_start().len();
    let is_all = open.start == begin && close.end == text.trim_end().len();
    is_all.then_some(open.end..close.start)
}

/// An error in a template, with its position.
#[derive(Debug)]
pub(super) struct TemplateError {
    message: String,
    hint: Option<String>,
    span: Option<Range<usize>>,
}

impl From<limits::LimitViolation> for TemplateError {
    fn from(growth: limits::LimitViolation) -> Self {
        Self {
            message: growth.message,
            hint: Some(growth.hint.to_owned()),
            span: Some(growth.span),
        }
    }
}

impl TemplateError {
    fn of(error: &Error, text: &str, marked: &Marked) -> Self {
        if let Some(name) = marked.missing(error) {
            return Self::missing(text, name);
        }
        let span = error
            .range()
            .map(|range| marked.place(range.start)..marked.place(range.end))
            .filter(|range| text.get(range.clone()).is_some());
        if let Some(span) = span.clone()
            && error.kind() == ErrorKind::UndefinedError
        {
            return Self::missing(text, span);
        }
        let kind = error.kind().to_string();
        let said = match error.detail() {
            Some(detail) => format!("{kind}: {detail}"),
            None => kind,
        };
        Self {
            message: said.split_whitespace().collect::<Vec<_>>().join(" "),
            hint: None,
            span,
        }
    }

    /// Returns the error that the expression at this range is undefined.
    fn missing(text: &str, span: Range<usize>) -> Self {
        let is_edge = |c: char| "{}-".contains(c) || c.is_whitespace();
        let begin = span.end - text[span.clone()].trim_start_matches(is_edge).len();
        let what = text[span].trim_matches(is_edge);
        Self {
            message: format!("`{what}` is undefined: nothing has set it yet"),
            hint: Some("set it with `--input`, or append `| default('')`".to_owned()),
            span: Some(begin..begin + what.len()),
        }
    }

    /// Returns the error at its position in the file.
    pub(super) fn at(&self, part: &Part, template: &str) -> SourceError {
        let span = match &self.span {
            Some(span) => place(part.source(), &part.span(), template, span),
            None => part.span(),
        };
        part.source()
            .error(span, &self.message)
            .help_if(self.hint.clone())
    }
}

/// Returns the position of a fragment of a template in the file. Searches line by line, because
/// YAML removes indentation.
fn place(
    source: &Source,
    span: &Range<usize>,
    template: &str,
    piece: &Range<usize>,
) -> Range<usize> {
    let line_start = template[..piece.start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = template[piece.start..]
        .find('\n')
        .map_or(template.len(), |at| piece.start + at);
    let line = template[line_start..line_end].trim();
    let lead = template[line_start..].len() - template[line_start..].trim_start().len();
    let rest = source.text().get(span.start..).unwrap_or_default();
    match rest.find(line) {
        Some(at) if !line.is_empty() => {
            let column = piece.start.saturating_sub(line_start + lead);
            let begin = span.start + at + column;
            let length = piece.end.min(line_end).saturating_sub(piece.start).max(1);
            begin..begin + length
        }
        _ => span.clone(),
    }
}

/// Checks a template before anything runs.
pub(super) fn check(part: &Part) -> Result<(), SourceError> {
    match part.value() {
        Value::String(text) if is_template(text) => {
            limits::check_template(text)
                .map_err(|growth| TemplateError::from(growth).at(part, text))?;
            let marked = Marked::template(text);
            match ENVIRONMENT.template_from_str(marked.text()) {
                Ok(_) => Ok(()),
                Err(error) => Err(TemplateError::of(&error, text, &marked).at(part, text)),
            }
        }
        Value::Array(_) => part.items().iter().try_for_each(check),
        Value::Object(_) => part.fields().values().try_for_each(check),
        _ => Ok(()),
    }
}

/// Renders a text. A text that consists of a single expression yields the value of that expression.
pub(super) fn fill(text: &str, names: &Names) -> Result<Value, TemplateError> {
    if !is_template(text) {
        return Ok(Value::String(text.to_owned()));
    }
    let Some(code) = lone(text) else {
        return render(text, names).map(Value::String);
    };
    limits::check_template(text)?;
    let marked = Marked::expression(text, code);
    let value = evaluate(text, &marked, names)?;
    if value.is_undefined() {
        return Ok(Value::String(String::new()));
    }
    json_of(&value).map_err(|error| TemplateError::of(&error, text, &marked))
}

fn evaluate(text: &str, marked: &Marked, names: &Names) -> Result<TemplateValue, TemplateError> {
    ENVIRONMENT
        .compile_expression(marked.text())
        .and_then(|compiled| compiled.eval(TemplateValue::from_object(names.clone())))
        .map_err(|error| TemplateError::of(&error, text, marked))
}

/// Renders a text to a string.
fn render(text: &str, names: &Names) -> Result<String, TemplateError> {
    limits::check_template(text)?;
    let marked = Marked::template(text);
    ENVIRONMENT
        .template_from_str(marked.text())
        .and_then(|template| limits::render(&template, TemplateValue::from_object(names.clone())))
        .map_err(|error| TemplateError::of(&error, text, &marked))
}

/// Returns whether a condition holds: an expression, with or without braces.
pub(super) fn holds(text: &str, names: &Names) -> Result<bool, TemplateError> {
    let code = match lone(text) {
        Some(code) => {
            limits::check_template(text)?;
            code
        }
        None if is_template(text) => {
            let said = render(text, names)?;
            let word = said.trim().to_lowercase();
            return Ok(!matches!(
                word.as_str(),
                "" | "false" | "none" | "null" | "0"
            ));
        }
        None => {
            limits::check_expression(text)?;
            0..text.len()
        }
    };
    let value = evaluate(text, &Marked::condition(text, code), names)?;
    Ok(value.is_true())
}

/// Checks a condition before anything runs.
pub(super) fn check_condition(part: &Part) -> Result<(), SourceError> {
    let text = part.text()?;
    if is_template(text) {
        return check(part);
    }
    limits::check_expression(text).map_err(|growth| TemplateError::from(growth).at(part, text))?;
    match ENVIRONMENT.compile_expression(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            let condition = Marked::condition(text, 0..text.len());
            Err(TemplateError::of(&error, text, &condition).at(part, text))
        }
    }
}

/// Renders all strings in a part of the file.
pub(super) fn fill_part(part: &Part, names: &Names) -> Result<Value, SourceError> {
    Ok(match part.value() {
        Value::String(text) => {
            fill(text, names).map_err(|template_error| template_error.at(part, text))?
        }
        Value::Array(_) => {
            let items = part.items();
            let filled = items.iter().map(|item| fill_part(item, names));
            Value::Array(filled.collect::<Result<_, _>>()?)
        }
        Value::Object(_) => {
            let mut object = Map::new();
            for (key, part) in part.fields() {
                object.insert(key, fill_part(&part, names)?);
            }
            Value::Object(object)
        }
        plain => plain.clone(),
    })
}

/// Renders a string to a string.
pub(super) fn fill_text(part: &Part, names: &Names) -> Result<String, SourceError> {
    let text = part.text()?;
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    render(text, names).map_err(|template_error| template_error.at(part, text))
}

/// Converts a value to text: a string as is, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
