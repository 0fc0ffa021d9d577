//! What keeps a template small, since its engine counts steps and not memory: a text that is doubled forty times fills
//! any memory in a hundred steps.
//!
//! A template shows what is there, and keeps nothing: without `set` and its like, nothing that was made can be made
//! larger again. What one expression makes is bounded here.

use std::fmt::Write as _;
use std::io;
use std::ops::Range;

use minijinja::value::{Kwargs, Value, from_args};
use minijinja::{Environment, Error, ErrorKind, State};

/// The most bytes that a template may come to.
pub(super) const MOST: usize = 16 << 20;
/// The largest number that something may be multiplied by, since a text can be, too.
const LARGEST_FACTOR: f64 = 1000.0;
/// The most multiplications in one template: the engine makes no text of more than 100 MB of one.
const MOST_FACTORS: usize = 8;
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
    let mut at = 0;
    let (mut factors, mut loops) = (0, 0_usize);
    while let Some(found) = text[at..].find('{') {
        let begin = at + found;
        let (close, statement) = match text.as_bytes().get(begin + 1) {
            Some(b'{') => ("}}", false),
            Some(b'%') => ("%}", true),
            Some(b'#') => {
                at = text[begin..]
                    .find("#}")
                    .map_or(text.len(), |end| begin + end);
                continue;
            }
            _ => {
                at = begin + 1;
                continue;
            }
        };
        let inner = begin + 2;
        let end = end_of(text, inner, close);
        let code = inner..end;
        let mut in_header = false;
        if statement {
            let plain = text[code.clone()]
                .trim_start_matches(['-', '+'])
                .trim_start();
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
        check_code(text, code, in_header, &mut factors)?;
        at = end.max(begin + 1);
    }
    Ok(())
}

/// Looks for it in an expression.
pub(super) fn check_expression(text: &str) -> Result<(), Growth> {
    check_code(text, 0..text.len(), false, &mut 0)
}

/// Where a piece of code ends that begins here.
fn end_of(text: &str, begin: usize, close: &str) -> usize {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text[begin..].char_indices() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if text[begin + at..].starts_with(close) => return begin + at,
            _ => {}
        }
    }
    text.len()
}

/// `in_header`: what the code makes gets a name, for loops that stand in the one that begins here.
fn check_code(
    text: &str,
    code: Range<usize>,
    in_header: bool,
    factors: &mut usize,
) -> Result<(), Growth> {
    let mut quote = None;
    let mut escaped = false;
    for (offset, c) in text[code.clone()].char_indices() {
        let at = code.start + offset;
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == '*' => {
                *factors += 1;
                let beside = is_small(last_word(&text[code.start..at]))
                    || is_small(first_word(&text[at + 1..code.end]));
                if !beside || in_header || *factors > MOST_FACTORS {
                    return Err(Growth {
                        message: format!(
                            "`*` multiplies texts as well: it may only stand beside a number of at most \
                             {LARGEST_FACTOR}, and {MOST_FACTORS} times"
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
            _ => {}
        }
    }
    Ok(())
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

fn is_small(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
        && word
            .parse::<f64>()
            .is_ok_and(|number| number <= LARGEST_FACTOR)
}

/// Under this name the engine keeps for us what a template has come to so far.
const WRITTEN: &str = "written";

/// Takes in that a template grows by so many bytes.
pub(super) fn grow(state: &mut State<'_, '_>, bytes: usize) -> Result<(), Error> {
    let before = state.get_temp(WRITTEN);
    let before = before.and_then(|before| usize::try_from(before).ok());
    let now = before.unwrap_or_default().saturating_add(bytes);
    within(now)?;
    state.set_temp(WRITTEN, Value::from(now));
    Ok(())
}

/// That it is no more than a template may come to.
fn within(bytes: usize) -> Result<(), Error> {
    if bytes <= MOST {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidOperation,
        format!("it comes to more than {} MiB", MOST >> 20),
    ))
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
    String::from_utf8(text.0)
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

struct Bounded(Vec<u8>);

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
            Some(path) => path
                .split('.')
                .try_fold(item, |item, name| item.get_attr(name))?,
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
