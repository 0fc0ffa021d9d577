//! Limits the memory and stack use of templates. The engine's fuel limits only the time, but a text
//! that is doubled forty times fills any memory in a hundred steps.
//!
//! A template may print values, but not store any: without `set` and similar statements, a result
//! cannot grow further. The size of each expression's result and of the whole output is limited
//! here.

use std::io::{self, Write as _};
use std::ops::Range;

use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Rest, Value, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Template};

/// The maximum size of a template's output, in bytes.
pub(super) const MOST: usize = 16 << 20;
/// The maximum product of all factors in an expression, because `*` also repeats strings.
const LARGEST_FACTOR: f64 = 10_000.0;
/// The maximum number of values that one expression joins with `~` or `+`, not counting literals.
const MOST_JOINED: usize = 16;
/// The maximum number of operators in an expression, and of branches in a template. The engine
/// recurses into each of them, and limits its recursion only for brackets.
const MOST_OPERATORS: usize = 250;
/// The maximum nesting depth of loops.
const MOST_LOOPS: usize = 4;

/// Statements that store something, or that use what is stored.
const KEEPING: [&str; 12] = [
    "set",
    "with",
    "macro",
    "call",
    "filter",
    "do",
    "block",
    "import",
    "from",
    "include",
    "extends",
    "autoescape",
];

/// A part of a template that could grow without bounds, with its position.
pub(super) struct LimitViolation {
    pub(super) message: String,
    pub(super) hint: &'static str,
    pub(super) span: Range<usize>,
}

/// A token of the engine with its range in the text.
pub(super) type Placed<'t> = (Token<'t>, Range<usize>);

/// Tokenizes a template or an expression like the engine, up to the first error, which the engine
/// reports itself.
pub(super) fn tokens(text: &str, in_expression: bool) -> impl Iterator<Item = Placed<'_>> {
    tokenize(text, in_expression, SyntaxConfig::default())
        .map_while(Result::ok)
        .map(|(token, span)| (token, span.start_offset as usize..span.end_offset as usize))
}

/// Checks a template.
pub(super) fn check_template(text: &str) -> Result<(), LimitViolation> {
    let (mut loops, mut branches) = (0_usize, 0_usize);
    let mut tokens = tokens(text, false);
    while let Some((token, open)) = tokens.next() {
        let is_statement = match token {
            Token::BlockStart => true,
            Token::VariableStart => false,
            _ => continue,
        };
        let code: Vec<Placed<'_>> = tokens
            .by_ref()
            .take_while(|(token, _)| !matches!(token, Token::BlockEnd | Token::VariableEnd))
            .collect();
        let span = open.end..code.last().map_or(open.end, |(_, last)| last.end);
        let word = match code.first() {
            Some((Token::Ident(word), _)) if is_statement => *word,
            _ => "",
        };
        if KEEPING.contains(&word) {
            return Err(LimitViolation {
                message: format!("`{word}`: templates can print values, but not store them"),
                hint: "compute it in an earlier node: `uses: state.set`, or `run` with code",
                span,
            });
        }
        branches += usize::from(word == "elif");
        if branches > MOST_OPERATORS {
            return Err(too_involved(span));
        }
        loops = match word {
            "for" => loops + 1,
            "endfor" => loops.saturating_sub(1),
            _ => loops,
        };
        if loops > MOST_LOOPS {
            return Err(LimitViolation {
                message: format!("more than {MOST_LOOPS} nested loops"),
                hint: "compute it in an earlier node: `run` with code",
                span,
            });
        }
        check_code(&code, span, word == "for")?;
    }
    Ok(())
}

/// Checks an expression.
pub(super) fn check_expression(text: &str) -> Result<(), LimitViolation> {
    let code: Vec<Placed<'_>> = tokens(text, true).collect();
    check_code(&code, 0..text.len(), false)
}

/// `in_header` means that the code is the header of a loop, whose items get a name within that
/// loop.
fn check_code(
    code: &[Placed<'_>],
    span: Range<usize>,
    in_header: bool,
) -> Result<(), LimitViolation> {
    if code.iter().filter(|(token, _)| is_operator(token)).count() > MOST_OPERATORS {
        return Err(too_involved(span));
    }
    let (mut factors, mut joined) = (1.0, 0_usize);
    for (at, (token, place)) in code.iter().enumerate() {
        let next = code.get(at + 1).map(|(token, _)| token);
        let before = at.checked_sub(1).map(|at| &code[at].0);
        match token {
            Token::Mul | Token::Pow => {
                let numbers = [before, next].into_iter().flatten().filter_map(number);
                let factor = numbers.reduce(f64::max).unwrap_or(f64::INFINITY).max(1.0);
                factors *= factor.powi(if matches!(token, Token::Pow) { 2 } else { 1 });
                if in_header || factors > LARGEST_FACTOR {
                    return Err(LimitViolation {
                        message: format!(
                            "`*` also repeats strings: one operand must be a number of at most \
                             {LARGEST_FACTOR}"
                        ),
                        hint: "compute it in an earlier node: `run` with code",
                        span: place.clone(),
                    });
                }
            }
            Token::Tilde | Token::Plus if in_header => {
                return Err(LimitViolation {
                    message: format!("{token} is not allowed in the header of a loop"),
                    hint: "compute it in an earlier node: `uses: state.set`, or `run` with code",
                    span: place.clone(),
                });
            }
            Token::Tilde | Token::Plus if !next.is_some_and(is_literal) => {
                joined += 1;
                if joined > MOST_JOINED {
                    return Err(LimitViolation {
                        message: format!("more than {MOST_JOINED} values joined by `~` or `+`"),
                        hint: "print them one after the other: {{ … }}{{ … }}",
                        span: place.clone(),
                    });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn too_involved(span: Range<usize>) -> LimitViolation {
    LimitViolation {
        message: "this expression is too complex for a template".to_owned(),
        hint: "compute it in an earlier node: `run` with code",
        span,
    }
}

/// Returns whether the engine recurses into what a token begins or joins.
fn is_operator(token: &Token<'_>) -> bool {
    match token {
        Token::Ident(word) => {
            matches!(*word, "not" | "and" | "or" | "is" | "in" | "if" | "else")
        }
        Token::Comma
        | Token::Colon
        | Token::BracketClose
        | Token::ParenClose
        | Token::BraceClose => false,
        other => !is_literal(other),
    }
}

fn is_literal(token: &Token<'_>) -> bool {
    matches!(token, Token::Str(_) | Token::String(_)) || number(token).is_some()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a number of that size is far above the limit anyway"
)]
fn number(token: &Token<'_>) -> Option<f64> {
    match token {
        Token::Int(number) => Some(*number as f64),
        Token::Int128(number) => Some(**number as f64),
        Token::Float(number) => Some(*number),
        _ => None,
    }
}

/// Renders a template to at most [`MOST`] bytes.
pub(super) fn render(template: &Template<'_, '_>, names: Value) -> Result<String, Error> {
    let mut text = BoundedBuffer::default();
    match template.render_captured_to(names, &mut text) {
        Ok(_) => text.finish(),
        Err(error) if error.kind() == ErrorKind::WriteFailure => Err(too_long()),
        Err(error) => Err(error),
    }
}

/// Checks that a size is within the limit for templates.
fn within(bytes: usize) -> Result<(), Error> {
    if bytes <= MOST {
        return Ok(());
    }
    Err(too_long())
}

fn too_long() -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("the result is larger than {} MiB", MOST >> 20),
    )
}

/// Converts a value to JSON of limited size.
pub(super) fn json(value: &Value, pretty: bool) -> Result<String, Error> {
    let mut text = BoundedBuffer::default();
    let written = if pretty {
        serde_json::to_writer_pretty(&mut text, value)
    } else {
        serde_json::to_writer(&mut text, value)
    };
    if let Err(error) = written {
        within(if error.is_io() { usize::MAX } else { 0 })?;
        return Err(Error::new(ErrorKind::BadSerialization, error.to_string()));
    }
    text.finish()
}

/// A buffer that accepts at most [`MOST`] bytes.
#[derive(Default)]
struct BoundedBuffer(Vec<u8>);

impl BoundedBuffer {
    fn finish(self) -> Result<String, Error> {
        String::from_utf8(self.0)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
    }
}

impl io::Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MOST {
            return Err(io::Error::other("too long"));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Limits the results of filters and functions, and removes those that store something or cannot be
/// limited.
pub(super) fn bound(environment: &mut Environment<'_>) {
    for name in ["format", "batch", "slice"] {
        environment.remove_filter(name);
    }
    for name in ["namespace", "debug"] {
        environment.remove_global(name);
    }
    environment.add_filter("replace", replace);
    environment.add_filter("indent", indent);
    environment.add_filter("map", map);
    environment.add_filter(
        "join",
        |value: &Value, joiner: Option<&str>, more: Kwargs| {
            let attribute: Option<&str> = more.get("attribute")?;
            let named: Option<&str> = more.get("d")?;
            more.assert_all_used()?;
            join(value, joiner.or(named).unwrap_or_default(), attribute)
        },
    );
    environment.set_unknown_method_callback(|state, value, method, args| {
        match (method, value.as_str()) {
            ("replace", Some(text)) => {
                let (from, to): (&str, &str) = from_args(args)?;
                replace(text, from, to).map(Value::from)
            }
            ("join", Some(joiner)) => {
                let (items,): (&Value,) = from_args(args)?;
                join(items, joiner, None).map(Value::from)
            }
            ("format", _) => Err(Error::from(ErrorKind::UnknownMethod)),
            _ => minijinja_contrib::pycompat::unknown_method_callback(state, value, method, args),
        }
    });
}

fn replace(text: &str, from: &str, to: &str) -> Result<String, Error> {
    let longer = text.matches(from).count().saturating_mul(to.len());
    within(text.len().saturating_add(longer))?;
    Ok(text.replace(from, to))
}

fn join(value: &Value, joiner: &str, attribute: Option<&str>) -> Result<String, Error> {
    let mut all = BoundedBuffer::default();
    if value.is_undefined() {
        return Ok(String::new());
    }
    for (number, item) in value.try_iter()?.enumerate() {
        let item = match attribute {
            Some(path) => at_path(item, path)?,
            None => item,
        };
        let joiner = if number > 0 { joiner } else { "" };
        write!(all, "{joiner}{item}").map_err(|_| too_long())?;
    }
    all.finish()
}

/// Returns an attribute of each item, or the result of a filter for each item.
fn map(
    state: &mut State<'_, '_>,
    value: &Value,
    args: Rest<ValueOrKwargs>,
) -> Result<Vec<Value>, Error> {
    let args = args.into_values();
    let (args, more): (&[Value], Kwargs) = from_args(&args)?;
    let attribute: Option<&str> = more.get("attribute")?;
    let default: Option<Value> = more.get("default")?;
    more.assert_all_used()?;
    let mut all = Vec::new();
    if value.is_undefined() {
        return Ok(all);
    }
    let mut bytes = 0_usize;
    for item in value.try_iter()? {
        let made = match (attribute, args) {
            (Some(path), []) => {
                let found = at_path(item, path);
                match &default {
                    Some(default) => found
                        .ok()
                        .filter(|found| !found.is_undefined())
                        .unwrap_or_else(|| default.clone()),
                    None => found?,
                }
            }
            (None, [filter, rest @ ..]) => {
                let name = filter.as_str().ok_or_else(|| {
                    Error::new(ErrorKind::InvalidOperation, "`map` needs a filter's name")
                })?;
                let args = [&[item], rest].concat();
                state.apply_filter(name, &args)?
            }
            _ => {
                let why = "`map` needs either a filter's name or an `attribute`";
                return Err(Error::new(ErrorKind::InvalidOperation, why));
            }
        };
        // An attribute exists already; a filter's result is new and counts against the limit.
        if attribute.is_none() {
            bytes = bytes.saturating_add(made.len().unwrap_or_default());
            within(bytes)?;
        }
        all.push(made);
    }
    Ok(all)
}

/// Looks up a path of names separated by dots.
fn at_path(item: Value, path: &str) -> Result<Value, Error> {
    path.split('.')
        .try_fold(item, |item, name| item.get_attr(name))
}

/// As in Jinja: by default indents all lines except for the first one and blank ones.
#[expect(
    clippy::needless_pass_by_value,
    reason = "so the engine hands them over"
)]
fn indent(
    text: &str,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    more: Kwargs,
) -> Result<String, Error> {
    let width = width.or(more.get("width")?).unwrap_or(4);
    let first = first.or(more.get("first")?).unwrap_or(false);
    let blank = blank.or(more.get("blank")?).unwrap_or(false);
    more.assert_all_used()?;
    let lines = text.split('\n').count();
    within(lines.saturating_mul(width).saturating_add(text.len()))?;
    let space = " ".repeat(width);
    let lines = text.split('\n').enumerate().map(|(number, line)| {
        let wanted = (number > 0 || first) && (!line.is_empty() || blank);
        format!("{}{line}", if wanted { &space } else { "" })
    });
    Ok(lines.collect::<Vec<_>>().join("\n"))
}
