//! Texts with `{{ names }}` of the state in them, filled in when they are wanted and not before.

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

/// How much work one template may make, in instructions of its engine: loops over a thousand versions, and done
/// in a second.
const FUEL: u64 = 1_000_000;

/// What a template sees.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// The state: under `state`, and each of its names by itself.
    pub(super) state: State,
    /// Other names, which go before those of the state.
    pub(super) more: State,
}

impl Names {
    /// Shows a draft, under all names that it goes by.
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

/// Without other templates: what a template shows is what it is given.
static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = crate::template::environment();
    // A name that is not defined is empty in a condition and in a loop; printed names are marked, and must be defined.
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment.set_formatter(|out, _, value| {
        // With all printed names marked, only what `{{ a if b }}` leaves out is still undefined here.
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
        // As the reference does: what is no JSON stays what it is.
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

/// How much there is: of what is not there, nothing.
fn length(value: &TemplateValue) -> Result<usize, Error> {
    if value.is_undefined() {
        return Ok(0);
    }
    minijinja::filters::length(value)
}

fn undefined() -> Error {
    Error::new(ErrorKind::UndefinedError, "it is not in the state")
}

/// A value as text: a text as it is, anything else as JSON.
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
    // Known to Python's users; without a meaning here.
    let _: (Option<bool>, Option<bool>) = (kwargs.get("ensure_ascii")?, kwargs.get("sort_keys")?);
    kwargs.assert_all_used()?;
    limits::json(value, indent.is_some()).map(TemplateValue::from)
}

/// Whether anything is to be filled in.
pub(super) fn is_template(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| text.contains(mark))
}

/// Where the expression stands, if the text is nothing else: `{{ it }}`.
fn lone(text: &str) -> Option<Range<usize>> {
    let mut tokens = limits::tokens(text, false);
    let (_, open) = tokens.find(|(token, _)| matches!(token, Token::VariableStart))?;
    let (_, close) = tokens.find(|(token, _)| matches!(token, Token::VariableEnd))?;
    let begin = text.len() - text.trim_start().len();
    let is_all = open.start == begin && close.end == text.trim_end().len();
    is_all.then_some(open.end..close.start)
}

/// What is wrong with a template, and where in it.
#[derive(Debug)]
pub(super) struct Fault {
    message: String,
    hint: Option<String>,
    span: Option<Range<usize>>,
}

impl From<limits::Growth> for Fault {
    fn from(growth: limits::Growth) -> Self {
        Self {
            message: growth.message,
            hint: Some(growth.hint.to_owned()),
            span: Some(growth.span),
        }
    }
}

impl Fault {
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

    /// That what stands here is not there.
    fn missing(text: &str, span: Range<usize>) -> Self {
        let is_edge = |c: char| "{}-".contains(c) || c.is_whitespace();
        let begin = span.end - text[span.clone()].trim_start_matches(is_edge).len();
        let what = text[span].trim_matches(is_edge);
        Self {
            message: format!("`{what}` is not there: nothing has set it so far"),
            hint: Some("give it with `--input`, or write `| default('')` behind it".to_owned()),
            span: Some(begin..begin + what.len()),
        }
    }

    /// The error at the place in the file.
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

/// Where a piece of a template stands in the file. YAML takes indentation away, so that it is looked for line by
/// line.
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

/// Says what is wrong with a template before anything runs.
pub(super) fn check(part: &Part) -> Result<(), SourceError> {
    match part.value() {
        Value::String(text) if is_template(text) => {
            limits::check_template(text).map_err(|growth| Fault::from(growth).at(part, text))?;
            let marked = Marked::template(text);
            match ENVIRONMENT.template_from_str(marked.text()) {
                Ok(_) => Ok(()),
                Err(error) => Err(Fault::of(&error, text, &marked).at(part, text)),
            }
        }
        Value::Array(_) => part.items().iter().try_for_each(check),
        Value::Object(_) => part.fields().values().try_for_each(check),
        _ => Ok(()),
    }
}

/// Fills a text in. One that is nothing but an expression becomes the value of that expression.
pub(super) fn fill(text: &str, names: &Names) -> Result<Value, Fault> {
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
    json_of(&value).map_err(|error| Fault::of(&error, text, &marked))
}

fn evaluate(text: &str, marked: &Marked, names: &Names) -> Result<TemplateValue, Fault> {
    ENVIRONMENT
        .compile_expression(marked.text())
        .and_then(|compiled| compiled.eval(TemplateValue::from_object(names.clone())))
        .map_err(|error| Fault::of(&error, text, marked))
}

/// Fills a text in, whatever it is.
fn render(text: &str, names: &Names) -> Result<String, Fault> {
    limits::check_template(text)?;
    let marked = Marked::template(text);
    ENVIRONMENT
        .template_from_str(marked.text())
        .and_then(|template| limits::render(&template, TemplateValue::from_object(names.clone())))
        .map_err(|error| Fault::of(&error, text, &marked))
}

/// Whether a condition holds: an expression, with or without braces.
pub(super) fn holds(text: &str, names: &Names) -> Result<bool, Fault> {
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

/// Says what is wrong with a condition before anything runs.
pub(super) fn check_condition(part: &Part) -> Result<(), SourceError> {
    let text = part.text()?;
    if is_template(text) {
        return check(part);
    }
    limits::check_expression(text).map_err(|growth| Fault::from(growth).at(part, text))?;
    match ENVIRONMENT.compile_expression(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            let condition = Marked::condition(text, 0..text.len());
            Err(Fault::of(&error, text, &condition).at(part, text))
        }
    }
}

/// Fills in all texts of a part of the file.
pub(super) fn fill_part(part: &Part, names: &Names) -> Result<Value, SourceError> {
    Ok(match part.value() {
        Value::String(text) => fill(text, names).map_err(|fault| fault.at(part, text))?,
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

/// Fills in a text that stays a text.
pub(super) fn fill_text(part: &Part, names: &Names) -> Result<String, SourceError> {
    let text = part.text()?;
    if !is_template(text) {
        return Ok(text.to_owned());
    }
    render(text, names).map_err(|fault| fault.at(part, text))
}

/// A value as text: a text as it is, anything else as JSON.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
