//! What keeps a template small, since its engine counts steps and not memory: a text that is doubled forty times fills
//! any memory in a hundred steps.
//!
//! A template shows what is there, and keeps nothing: without `set` and its like, nothing that was made can be made
//! larger again. What one expression makes, and what a template comes to as a whole, is bounded here.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use minijinja::value::{Kwargs, Rest, Value, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Template};

/// The most bytes that a template may come to.
pub(super) const MOST: usize = 16 << 20;
/// The largest number that something may be multiplied by, since a text can be, too: all factors of an expression
/// together.
const LARGEST_FACTOR: f64 = 10_000.0;
/// The most values that one expression joins by `~` or `+`, literals aside.
const MOST_JOINED: usize = 16;
/// The most signs and words that an expression may have between its values, and the most branches of a template: the
/// engine goes into each by recursion, and has no bound of its own for all of them.
const MOST_SIGNS: usize = 250;
/// Words that stand between values.
const SIGNS: [&str; 7] = ["not", "and", "or", "is", "in", "if", "else"];
/// How deep loops may stand in each other.
const MOST_LOOPS: usize = 4;

/// Statements that keep something, or that call for what is kept.
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

/// What of a template may grow without bounds, and where.
pub(super) struct Growth {
    pub(super) message: String,
    pub(super) hint: &'static str,
    pub(super) span: Range<usize>,
}

/// Looks for it in a template.
pub(super) fn check_template(text: &str) -> Result<(), Growth> {
    let (mut loops, mut branches) = (0_usize, 0_usize);
    for Piece {
        code, is_statement, ..
    } in pieces(text)
    {
        let mut in_header = false;
        if is_statement {
            let plain = text[code.clone()].trim_start();
            let word = plain
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .next()
                .unwrap_or_default();
            if KEEPING.contains(&word) {
                return Err(Growth {
                    message: format!("`{word}`: a template shows what is there, and keeps nothing"),
                    hint: "compute it in a node before: `uses: state.set`, or `run` with code",
                    span: code,
                });
            }
            branches += usize::from(word == "elif");
            if branches > MOST_SIGNS {
                return Err(too_involved(code));
            }
            in_header = word == "for";
            loops = match word {
                "for" => loops + 1,
                "endfor" => loops.saturating_sub(1),
                _ => loops,
            };
            if loops > MOST_LOOPS {
                return Err(Growth {
                    message: format!("more than {MOST_LOOPS} loops stand in each other"),
                    hint: "compute it in a node before: `run` with code",
                    span: code,
                });
            }
        }
        check_code(text, code, in_header)?;
    }
    Ok(())
}

/// A piece of a template that is code.
pub(super) struct Piece {
    /// All of it.
    pub(super) whole: Range<usize>,
    /// What stands between its marks.
    pub(super) code: Range<usize>,
    /// Whether it is `{% … %}`, and no expression that is shown.
    pub(super) is_statement: bool,
}

/// The code of a template. The engine must see the same pieces: what is overlooked here is not bounded.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = Piece> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let begin = at + text[at..].find('{')?;
            let inner = begin + 2;
            let (close, is_statement) = match text.as_bytes().get(begin + 1) {
                Some(b'{') => ("}}", false),
                Some(b'%') if is_tag(without_sign(&text[inner..]), "raw") => {
                    at = end_of_raw(text, inner);
                    continue;
                }
                Some(b'%') => ("%}", true),
                Some(b'#') => {
                    at = text[inner..]
                        .find("#}")
                        .map_or(text.len(), |end| inner + end + 2);
                    continue;
                }
                _ => {
                    at = begin + 1;
                    continue;
                }
            };
            let end = end_of(text, inner, close);
            at = text.len().min(end + 2);
            // A sign at its edge is about the blanks around it.
            let piece = &text[inner..end];
            let lead = piece.len() - piece.trim_start_matches(['-', '+']).len();
            let code = inner + lead..inner + piece.trim_end_matches(['-', '+']).len().max(lead);
            return Some(Piece {
                whole: begin..at,
                code,
                is_statement,
            });
        }
    })
}

fn without_sign(code: &str) -> &str {
    code.strip_prefix(['-', '+']).unwrap_or(code)
}

/// Whether a statement is nothing but this word.
fn is_tag(code: &str, word: &str) -> bool {
    let blank = |c: char| c.is_ascii_whitespace();
    let behind = code.trim_start_matches(blank).strip_prefix(word);
    behind.is_some_and(|code| without_sign(code.trim_start_matches(blank)).starts_with("%}"))
}

/// Where the text goes on that is to be read, where one that is not to be read begins here.
fn end_of_raw(text: &str, begin: usize) -> usize {
    let mut marks = text[begin..].match_indices("{%");
    let end = marks.find(|(at, _)| is_tag(without_sign(&text[begin + at + 2..]), "endraw"));
    end.map_or(text.len(), |(at, _)| begin + at + 2)
}

/// Looks for it in an expression.
pub(super) fn check_expression(text: &str) -> Result<(), Growth> {
    check_code(text, 0..text.len(), false)
}

/// Where a piece of code ends that begins here: at the first mark that stands in no text and in no brackets.
fn end_of(text: &str, begin: usize, close: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    let mut brackets = 0_isize;
    for (at, c) in text[begin..].char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if brackets == 0 && text[begin + at..].starts_with(close) => return begin + at,
            None => match c {
                '\'' | '"' => quote = Some(c),
                '(' | '[' | '{' => brackets += 1,
                ')' | ']' | '}' => brackets -= 1,
                _ => {}
            },
        }
    }
    text.len()
}

/// `in_header`: what the code makes gets a name, for loops that stand in the one that begins here.
fn check_code(text: &str, code: Range<usize>, in_header: bool) -> Result<(), Growth> {
    let (mut factors, mut joined) = (1.0, 0_usize);
    let (mut signs, mut in_word) = (0_usize, false);
    let mut quote = None;
    let mut escaped = false;
    for (offset, c) in text[code.clone()].char_indices() {
        let at = code.start + offset;
        if quote.is_none() {
            let begins = is_word(c) && !in_word;
            in_word = is_word(c);
            let sign = c.is_ascii_punctuation() && !",:)]}_'\"".contains(c);
            signs += usize::from(sign);
            signs += usize::from(begins && SIGNS.contains(&first_word(&text[at..code.end])));
            if signs > MOST_SIGNS {
                return Err(too_involved(code));
            }
        }
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '*' => {
                let before = factor(last_word(&text[code.start..at]));
                let beside = before.or_else(|| factor(first_word(&text[at + 1..code.end])));
                factors *= beside.unwrap_or(f64::INFINITY).max(1.0);
                if in_header || factors > LARGEST_FACTOR {
                    return Err(Growth {
                        message: format!(
                            "`*` multiplies texts as well: it may only stand beside a number, and by \
                             {LARGEST_FACTOR} at most"
                        ),
                        hint: "compute it in a node before: `run` with code",
                        span: at..at + 1,
                    });
                }
            }
            None if in_header && matches!(c, '~' | '+') => {
                return Err(Growth {
                    message: format!("`{c}` cannot stand in what a loop goes through"),
                    hint: "compute it in a node before: `uses: state.set`, or `run` with code",
                    span: at..at + 1,
                });
            }
            None if matches!(c, '~' | '+') && !begins_literal(&text[at + 1..code.end]) => {
                joined += 1;
                if joined > MOST_JOINED {
                    return Err(Growth {
                        message: format!("more than {MOST_JOINED} values are joined by `~` or `+`"),
                        hint: "show them one after the other: {{ … }}{{ … }}",
                        span: at..at + 1,
                    });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn too_involved(span: Range<usize>) -> Growth {
    Growth {
        message: "this is too involved for a template".to_owned(),
        hint: "compute it in a node before: `run` with code",
        span,
    }
}

fn begins_literal(text: &str) -> bool {
    text.trim_start()
        .starts_with(|c: char| matches!(c, '\'' | '"') || c.is_ascii_digit())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.')
}

fn last_word(text: &str) -> &str {
    let text = text.trim_end();
    let begin = text.trim_end_matches(is_word).len();
    &text[begin..]
}

fn first_word(text: &str) -> &str {
    let text = text.trim_start();
    let rest = text.trim_start_matches(is_word);
    &text[..text.len() - rest.len()]
}

/// The number that a word is.
fn factor(word: &str) -> Option<f64> {
    let number = word.starts_with(|c: char| c.is_ascii_digit());
    word.parse::<f64>().ok().filter(|_| number)
}

/// Fills in a template, which comes to no more than [`MOST`] bytes, whatever is in it.
pub(super) fn render(template: &Template<'_, '_>, names: Value) -> Result<String, Error> {
    let mut text = Bounded(Vec::new());
    match template.render_captured_to(names, &mut text) {
        Ok(_) => text.finish(),
        Err(error) if error.kind() == ErrorKind::WriteFailure => Err(too_long()),
        Err(error) => Err(error),
    }
}

/// That it is no more than a template may come to.
fn within(bytes: usize) -> Result<(), Error> {
    if bytes <= MOST {
        return Ok(());
    }
    Err(too_long())
}

fn too_long() -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("it comes to more than {} MiB", MOST >> 20),
    )
}

/// A value as JSON, if that is not too long.
pub(super) fn json(value: &Value, pretty: bool) -> Result<String, Error> {
    let mut text = Bounded(Vec::new());
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

/// A text that grows no further than [`MOST`] bytes.
struct Bounded(Vec<u8>);

impl Bounded {
    fn finish(self) -> Result<String, Error> {
        String::from_utf8(self.0)
            .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
    }
}

impl io::Write for Bounded {
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

/// Bounds what filters and functions make, and takes those away that keep something or cannot be bounded.
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
    let mut all = String::new();
    if value.is_undefined() {
        return Ok(all);
    }
    for (number, item) in value.try_iter()?.enumerate() {
        let item = match attribute {
            Some(path) => at_path(item, path)?,
            None => item,
        };
        if number > 0 {
            all.push_str(joiner);
        }
        match item.as_str() {
            Some(text) => all.push_str(text),
            None => {
                let _ = write!(all, "{item}");
            }
        }
        within(all.len())?;
    }
    Ok(all)
}

/// The items' attributes, or what a filter makes of them.
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
                    Error::new(ErrorKind::InvalidOperation, "`map` wants a filter's name")
                })?;
                let args = [&[item], rest].concat();
                state.apply_filter(name, &args)?
            }
            _ => {
                let why = "`map` wants either a filter's name or an `attribute`";
                return Err(Error::new(ErrorKind::InvalidOperation, why));
            }
        };
        // What an attribute is, is there already; what a filter makes is new.
        if attribute.is_none() {
            bytes = bytes.saturating_add(made.len().unwrap_or_default());
            within(bytes)?;
        }
        all.push(made);
    }
    Ok(all)
}

/// What is found by names with dots between them.
fn at_path(item: Value, path: &str) -> Result<Value, Error> {
    path.split('.')
        .try_fold(item, |item, name| item.get_attr(name))
}

/// As in Jinja: all lines but the first and blank ones, unless it is said otherwise.
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
