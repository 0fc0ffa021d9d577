//! The names that a template shows. Each must be there, though in conditions and loops one that is not there is empty:
//! the engine has one rule for all of them. So what is shown is marked before the engine reads the template: of
//! `{{ name ~ "!" }}` it reads `{{ (name|__there(0)) ~ "!" }}`, and that filter fails where there is nothing.
//!
//! Not shown, but looked at, is what stands before `or` and `and`, behind `not` and `if`, beside a comparison, and
//! before a test. What `default` stands behind need not be there either.

use std::ops::Range;

use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind};

use super::bounds;

/// The filter that fails where there is nothing; it is told the number of the name.
const FILTER: &str = "__there";

/// Words that are values of their own.
const CONSTANTS: [&str; 6] = ["true", "True", "false", "False", "none", "None"];
/// The longer ones first.
const COMPARISONS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];
const OPERATORS: [&str; 8] = ["~", "+", "-", "**", "*", "//", "/", "%"];

/// Makes the marks known to the engine.
pub(super) fn add_filter(environment: &mut Environment<'_>) {
    environment.add_filter(FILTER, |value: Value, number: usize| {
        if value.is_undefined() {
            return Err(Error::new(ErrorKind::UndefinedError, number.to_string()));
        }
        Ok(value)
    });
}

/// A template, or an expression, as the engine reads it.
pub(super) struct Marked {
    text: String,
    /// Where in the file's text it begins.
    begin: usize,
    /// What is shown, by its number.
    shown: Vec<Shown>,
    /// Where marks stand in the marked text, in order, and how long they are.
    marks: Vec<(usize, usize)>,
}

/// What is shown.
struct Shown {
    /// Where it stands in the file's text.
    place: Range<usize>,
    /// Whether it is what a filter made: another filter may follow as it is.
    is_filtered: bool,
}

impl Marked {
    /// A template.
    pub(super) fn template(text: &str) -> Self {
        let expressions = bounds::pieces(text).filter(|piece| !piece.is_statement);
        let shown = expressions.flat_map(|piece| shown_in(text, piece.code));
        Self::new(text, 0..text.len(), shown.collect())
    }

    /// The expression that stands here in a text.
    pub(super) fn expression(text: &str, code: Range<usize>) -> Self {
        Self::new(text, code.clone(), shown_in(text, code))
    }

    /// A condition that stands here in a text: nothing of it is shown.
    pub(super) fn nothing(text: &str, code: Range<usize>) -> Self {
        Self::new(text, code, Vec::new())
    }

    fn new(text: &str, whole: Range<usize>, shown: Vec<Shown>) -> Self {
        let ends = shown.iter().enumerate().flat_map(|(number, it)| {
            let (open, close) = if it.is_filtered { ("", "") } else { ("(", ")") };
            [
                (it.place.start, open.to_owned()),
                (it.place.end, format!("|{FILTER}({number}){close}")),
            ]
        });
        let mut ends: Vec<(usize, String)> = ends.collect();
        ends.sort_by_key(|(place, _)| *place);
        let (mut marked, mut marks) = (String::with_capacity(text.len()), Vec::new());
        let mut at = whole.start;
        for (place, mark) in ends {
            marked.push_str(&text[at..place]);
            marks.push((marked.len(), mark.len()));
            marked.push_str(&mark);
            at = place;
        }
        marked.push_str(&text[at..whole.end]);
        Self {
            text: marked,
            begin: whole.start,
            shown,
            marks,
        }
    }

    /// What the engine reads.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Where a place of the marked text is in the file's text.
    pub(super) fn place(&self, at: usize) -> usize {
        let before = self.marks.iter().take_while(|(begin, _)| *begin < at);
        let marks: usize = before
            .map(|(begin, length)| *length.min(&(at - begin)))
            .sum();
        self.begin + at - marks
    }

    /// What is shown and is not there, if that is the error: its place in the file's text.
    pub(super) fn missing(&self, error: &Error) -> Option<Range<usize>> {
        let number = error
            .detail()
            .filter(|_| error.kind() == ErrorKind::UndefinedError)?;
        let shown = self.shown.get(number.parse::<usize>().ok()?)?;
        Some(shown.place.clone())
    }
}

/// What of an expression is shown: its names, with all that is looked up in them, and what filters make of them.
/// Nothing of one that cannot be read: the engine says why.
fn shown_in(text: &str, code: Range<usize>) -> Vec<Shown> {
    let mut reader = Reader {
        text: &text[..code.end],
        at: code.start,
        shown: Vec::new(),
    };
    let read = reader.list();
    if read.is_some() && reader.rest().trim_start().is_empty() {
        reader.shown
    } else {
        Vec::new()
    }
}

/// Reads an expression as the engine does, as far as it matters what is shown. Each step is `None` where it is no
/// expression.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    shown: Vec<Shown>,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// The word that comes next; an empty one if none does.
    fn next_word(&self) -> &'t str {
        let rest = self.rest().trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        &rest[..rest.len() - rest.trim_start_matches(is_part).len()]
    }

    /// Goes on behind what comes next, if it is this.
    fn sign(&mut self, sign: &str) -> bool {
        let behind = self.rest().trim_start().strip_prefix(sign);
        if let Some(behind) = behind {
            self.at = self.text.len() - behind.len();
        }
        behind.is_some()
    }

    /// The same for a word.
    fn word(&mut self, word: &str) -> bool {
        self.next_word() == word && self.sign(word)
    }

    fn any_word(&mut self) -> Option<&'t str> {
        let word = self.next_word();
        (!word.is_empty() && self.sign(word)).then_some(word)
    }

    /// What is read by a step is not shown, but looked at.
    fn looked_at(&mut self, step: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        let before = self.shown.len();
        step(self)?;
        self.shown.truncate(before);
        Some(())
    }

    fn found(&mut self, place: Range<usize>) {
        self.shown.push(Shown {
            place,
            is_filtered: false,
        });
    }

    fn list(&mut self) -> Option<()> {
        self.expression()?;
        while self.sign(",") {
            self.expression()?;
        }
        Some(())
    }

    fn expression(&mut self) -> Option<()> {
        self.alternatives()?;
        while self.word("if") {
            self.looked_at(Self::alternatives)?;
            if self.word("else") {
                return self.expression();
            }
        }
        Some(())
    }

    fn alternatives(&mut self) -> Option<()> {
        loop {
            let before = self.shown.len();
            self.comparison()?;
            if !(self.word("or") || self.word("and")) {
                return Some(());
            }
            self.shown.truncate(before);
        }
    }

    fn comparison(&mut self) -> Option<()> {
        let before = self.shown.len();
        let mut is_looked_at = false;
        while self.word("not") {
            is_looked_at = true;
        }
        self.sum()?;
        while COMPARISONS.iter().any(|sign| self.sign(sign))
            || self.word("in")
            || (self.word("not") && self.word("in"))
        {
            is_looked_at = true;
            self.sum()?;
        }
        if is_looked_at {
            self.shown.truncate(before);
        }
        Some(())
    }

    fn sum(&mut self) -> Option<()> {
        self.operand()?;
        while OPERATORS.iter().any(|sign| self.sign(sign)) {
            self.operand()?;
        }
        Some(())
    }

    /// A value with its filters and tests.
    fn operand(&mut self) -> Option<()> {
        let begin = self.text.len() - self.rest().trim_start().len();
        let before = self.shown.len();
        self.value()?;
        loop {
            if self.sign("|") {
                let name = self.dotted()?;
                let may_miss = matches!(name, "default" | "d");
                if may_miss {
                    self.shown.truncate(before);
                }
                let mut end = self.at;
                if self.sign("(") {
                    self.items(")")?;
                    end = self.at;
                }
                if !may_miss {
                    self.shown.push(Shown {
                        place: begin..end,
                        is_filtered: true,
                    });
                }
            } else if self.word("is") {
                self.word("not");
                self.dotted()?;
                if self.sign("(") {
                    self.items(")")?;
                } else if self.begins_argument() {
                    self.value()?;
                }
                self.shown.truncate(before);
            } else {
                return Some(());
            }
        }
    }

    /// The name of a filter or of a test; its last part, if there are dots in it.
    fn dotted(&mut self) -> Option<&'t str> {
        let mut name = self.any_word()?;
        while self.sign(".") {
            name = self.any_word()?;
        }
        Some(name)
    }

    /// Whether what comes next is what a test without brackets compares with.
    fn begins_argument(&self) -> bool {
        match self.next_word() {
            "" => self
                .rest()
                .trim_start()
                .starts_with(['\'', '"', '-', '[', '{']),
            word => !["and", "or", "else", "is"].contains(&word),
        }
    }

    /// A value, with all that is looked up in it.
    fn value(&mut self) -> Option<()> {
        while self.sign("-") {}
        let rest = self.rest().trim_start();
        let begin = self.text.len() - rest.len();
        let mut may_miss = false;
        match rest.chars().next()? {
            '(' | '[' | '{' => self.group()?,
            '\'' | '"' => self.texts()?,
            c if c.is_ascii_digit() => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
                self.at = self.text.len() - rest.trim_start_matches(is_part).len();
            }
            _ => may_miss = !CONSTANTS.contains(&self.any_word()?),
        }
        loop {
            let (end, might_miss) = (self.at, may_miss);
            if self.sign(".") {
                self.any_word()?;
                may_miss = true;
                if self.sign("(") {
                    if might_miss {
                        self.found(begin..end);
                    }
                    self.items(")")?;
                    may_miss = false;
                }
            } else if self.sign("[") {
                self.items("]")?;
                may_miss = true;
            } else if self.sign("(") {
                self.items(")")?;
                may_miss = false;
            } else {
                if may_miss {
                    self.found(begin..end);
                }
                return Some(());
            }
        }
    }

    fn group(&mut self) -> Option<()> {
        let pairs = [("(", ")"), ("[", "]"), ("{", "}")];
        let (_, close) = pairs.into_iter().find(|(open, _)| self.sign(open))?;
        self.items(close)
    }

    /// What stands between brackets, up to the one that closes: values, pairs, slices, arguments.
    fn items(&mut self, close: &str) -> Option<()> {
        while !self.sign(close) {
            if self.sign(",") || self.sign(":") {
                continue;
            }
            if !self.sign("**") {
                self.sign("*");
            }
            // The name of an argument.
            let begin = self.at;
            let is_named = self.any_word().is_some() && self.sign("=");
            if !is_named || self.rest().starts_with('=') {
                self.at = begin;
            }
            self.expression()?;
            // Without a sign between them the engine reads no values: a mark's bracket would make them a call.
            let mut ends = [",", ":", close].into_iter();
            if !ends.any(|sign| self.rest().trim_start().starts_with(sign)) {
                return None;
            }
        }
        Some(())
    }

    /// Texts that stand beside each other are one.
    fn texts(&mut self) -> Option<()> {
        while let Some(quote) = ["'", "\""].into_iter().find(|quote| self.sign(quote)) {
            let mut escaped = false;
            let end = self.rest().char_indices().find(|(_, c)| {
                let ends = !escaped && quote.starts_with(*c);
                escaped = !escaped && *c == '\\';
                ends
            });
            self.at += end?.0 + 1;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::workflow::bounds;

    /// Expressions of which all names are there, as the engine knows them.
    fn expression() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "a",
            "a.b",
            "l[0]",
            "l[1:]",
            "a['b']",
            "'t'",
            "\"it's\" 'x'",
            "7",
            "1.5",
            "true",
            "none",
            "a.b.upper()",
            "l | first",
            "loop_",
            "-1",
            "l[-1]",
            "{}",
            "[]",
        ])
        .prop_map(str::to_owned);
        leaf.prop_recursive(4, 24, 3, |inner| {
            let two = (inner.clone(), inner.clone());
            prop_oneof![
                (
                    two.clone(),
                    prop::sample::select(vec!["~", "or", "and", "==", "in", "not in"])
                )
                    .prop_map(|((a, b), sign)| format!("{a} {sign} {b}")),
                (
                    inner.clone(),
                    prop::sample::select(vec![
                        "upper",
                        "string",
                        "default('d')",
                        "d(a)",
                        "tojson",
                        "list",
                        "join(', ')",
                    ])
                )
                    .prop_map(|(a, filter)| format!("({a})|{filter}")),
                (
                    inner.clone(),
                    prop::sample::select(vec![
                        "is defined",
                        "is not string",
                        "is eq 1",
                        "is in [1]",
                        "is sameas(a)",
                    ])
                )
                    .prop_map(|(a, test)| format!("{a} {test}")),
                two.clone().prop_map(|(a, b)| format!("[{a}, {b}]")),
                two.clone()
                    .prop_map(|(a, b)| format!("{{'k': {a}, 'j': [{b}]}}")),
                two.clone()
                    .prop_map(|(a, b)| format!("dict(k={a}, j=({b}))")),
                two.clone()
                    .prop_map(|(a, b)| format!("({a} if not {b} else {b})")),
                two.prop_map(|(a, b)| format!("({a} if {b})")),
            ]
        })
    }

    /// What the engine makes of it; nothing where that is an error.
    fn made(environment: &Environment<'_>, expression: &str) -> Option<String> {
        let names = minijinja::context! {
            a => minijinja::context! { b => "B" }, l => vec![1, 2], loop_ => "",
        };
        let compiled = environment.compile_expression(expression).ok()?;
        Some(compiled.eval(names).ok()?.to_string())
    }

    #[test]
    fn what_the_engine_cannot_read_is_left_as_it_is() {
        for expression in [
            "(a or a is defined if a)",
            "[a a]",
            "{'k': a a}",
            "f(a a)",
            "l[a a]",
            "a a",
        ] {
            let marked = Marked::expression(expression, 0..expression.len());
            assert_eq!(marked.text(), expression);
        }
    }

    proptest! {
        #[test]
        fn marks_change_nothing_where_all_is_there(expression in expression()) {
            let mut environment = Environment::new();
            environment.set_unknown_method_callback(
                minijinja_contrib::pycompat::unknown_method_callback,
            );
            add_filter(&mut environment);
            let marked = Marked::expression(&expression, 0..expression.len());
            let (plain, with_marks) = (made(&environment, &expression), made(&environment, marked.text()));
            prop_assert_eq!(plain, with_marks, "{} became {}", expression, marked.text());
        }

        #[test]
        fn any_text_is_read_and_places_stay_within(text in r#"([-a.|~(){}\[\]%#'",:+* \\é]|if |else |or |not |is |in |default|raw|endraw|\{\{|\}\}|\{%|%\}){0,40}"#) {
            let marked = Marked::template(&text);
            prop_assert_eq!(marked.place(marked.text().len()), text.len());
            let mut last = 0;
            for at in 0..marked.text().len() {
                let place = marked.place(at);
                prop_assert!(place >= last && place <= text.len());
                last = place;
            }
            for piece in bounds::pieces(&text) {
                prop_assert!(text.get(piece.whole).is_some() && text.get(piece.code).is_some());
            }
        }
    }
}
