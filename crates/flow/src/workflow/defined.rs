//! Checks that the names that a template prints are defined. Names that it only tests may be
//! undefined.
//!
//! The template engine has one setting for both. So each printed expression is marked before the
//! engine compiles the template: `{{ name ~ "!" }}` becomes `{{ (name|__defined(0)) ~ "!" }}`, and
//! that filter fails if the name is undefined.
//!
//! The following are tested and not printed: the left operand of `or` and `and`, a condition, the
//! operands of a comparison, and the value before a test or before the filter `default`. The
//! engine's parser distinguishes these cases.

use std::ops::Range;

use minijinja::machinery::ast::{BinOpKind, Call, CallArg, Expr, Stmt, UnaryOpKind};
use minijinja::machinery::{parse, parse_expr};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind};

/// The filter that fails on an undefined value. Its argument is the number of the mark.
const FILTER: &str = "__defined";

/// Registers the filter that the marks call.
pub(super) fn add_filter(environment: &mut Environment<'_>) {
    environment.add_filter(FILTER, |value: Value, number: usize| {
        if value.is_undefined() {
            return Err(Error::new(ErrorKind::UndefinedError, number.to_string()));
        }
        Ok(value)
    });
}

/// A template or an expression with marks, ready for the engine to compile.
pub(super) struct Marked {
    text: String,
    /// The offset of its start in the file's text.
    begin: usize,
    /// The printed expressions, by the number of their mark.
    printed: Vec<Printed>,
    /// The offset and length of each insertion in the marked text, in order.
    insertions: Vec<(usize, usize)>,
}

/// A printed expression.
struct Printed {
    /// Its range in the template or expression.
    place: Range<usize>,
    /// Whether it is the result of a filter, so that another filter may follow without parentheses.
    is_filtered: bool,
}

impl Marked {
    /// Marks a template.
    pub(super) fn template(text: &str) -> Self {
        let mut found = PrintedExpressions::default();
        // The engine reports syntax errors itself.
        if let Ok(tree) = parse(text, "", SyntaxConfig::default()) {
            found.statement(&tree);
        }
        Self::new(text, 0, found.0)
    }

    /// Marks the expression at this range of a text.
    pub(super) fn expression(text: &str, code: Range<usize>) -> Self {
        let mut found = PrintedExpressions::default();
        if let Ok(tree) = parse_expr(&text[code.clone()]) {
            found.expression(&tree);
        }
        Self::new(&text[code.clone()], code.start, found.0)
    }

    /// Takes the condition at this range of a text without marks, because it prints nothing.
    pub(super) fn condition(text: &str, code: Range<usize>) -> Self {
        Self::new(&text[code.clone()], code.start, Vec::new())
    }

    fn new(code: &str, begin: usize, printed: Vec<Printed>) -> Self {
        let ends = printed.iter().enumerate().flat_map(|(number, it)| {
            let (open, close) = if it.is_filtered { ("", "") } else { ("(", ")") };
            [
                (it.place.start, open.to_owned()),
                (it.place.end, format!("|{FILTER}({number}){close}")),
            ]
        });
        let mut ends: Vec<(usize, String)> = ends.collect();
        ends.sort_by_key(|(place, _)| *place);
        let (mut text, mut insertions) = (String::with_capacity(code.len()), Vec::new());
        let mut at = 0;
        for (place, mark) in ends {
            text.push_str(&code[at..place]);
            insertions.push((text.len(), mark.len()));
            text.push_str(&mark);
            at = place;
        }
        text.push_str(&code[at..]);
        Self {
            text,
            begin,
            printed,
            insertions,
        }
    }

    /// Returns the text for the engine.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Converts an offset in the marked text to one in the file's text.
    pub(super) fn place(&self, at: usize) -> usize {
        let before = self.insertions.iter().take_while(|(begin, _)| *begin < at);
        let inserted: usize = before
            .map(|(begin, length)| *length.min(&(at - begin)))
            .sum();
        self.begin + at - inserted
    }

    /// Returns the range in the file's text of the undefined expression, if that is the error.
    pub(super) fn missing(&self, error: &Error) -> Option<Range<usize>> {
        let number = error
            .detail()
            .filter(|_| error.kind() == ErrorKind::UndefinedError)?;
        let printed = self.printed.get(number.parse::<usize>().ok()?)?;
        let Range { start, end } = printed.place;
        Some(self.begin + start..self.begin + end)
    }
}

/// The expressions that a template prints: names with their lookups, and results of filters.
#[derive(Default)]
struct PrintedExpressions(Vec<Printed>);

impl PrintedExpressions {
    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(it) => self.statements(&it.children),
            Stmt::EmitExpr(it) => self.expression(&it.expr),
            Stmt::ForLoop(it) => {
                self.statements(&it.body);
                self.statements(&it.else_body);
            }
            Stmt::IfCond(it) => {
                self.statements(&it.true_body);
                self.statements(&it.false_body);
            }
            // Other expressions print no value, or `limits` rejects them.
            _ => {}
        }
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn expression(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) => {
                self.lookup(expression);
                self.push(expression, false);
            }
            Expr::Filter(it) => {
                let may_be_undefined = matches!(it.name, "default" | "d");
                if !may_be_undefined {
                    self.all(&it.expr);
                }
                self.arguments(&it.args);
                if !may_be_undefined {
                    self.push(expression, true);
                }
            }
            Expr::BinOp(it) => match it.op {
                BinOpKind::ScAnd | BinOpKind::ScOr => self.expression(&it.right),
                BinOpKind::Eq
                | BinOpKind::Ne
                | BinOpKind::Lt
                | BinOpKind::Lte
                | BinOpKind::Gt
                | BinOpKind::Gte
                | BinOpKind::In => {}
                _ => {
                    self.expression(&it.left);
                    self.expression(&it.right);
                }
            },
            Expr::UnaryOp(it) => match it.op {
                UnaryOpKind::Neg => self.expression(&it.expr),
                UnaryOpKind::Not => {}
            },
            Expr::IfExpr(it) => {
                self.expression(&it.true_expr);
                self.all(&it.false_expr);
            }
            Expr::Call(it) => self.call(it),
            Expr::List(it) => self.all(&it.items),
            Expr::Tuple(it) => self.all(&it.items),
            Expr::Map(it) => {
                self.all(&it.keys);
                self.all(&it.values);
            }
            Expr::Const(_) | Expr::Test(_) | Expr::Compare(_) => {}
        }
    }

    fn all<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expr<'e>>) {
        for expression in expressions {
            self.expression(expression);
        }
    }

    /// Visits a lookup: an undefined name at its root makes the whole lookup undefined.
    fn lookup(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::Var(_) => {}
            Expr::GetAttr(it) => self.lookup(&it.expr),
            Expr::GetItem(it) => {
                self.lookup(&it.expr);
                self.expression(&it.subscript_expr);
            }
            Expr::Slice(it) => {
                self.lookup(&it.expr);
                for bound in [&it.start, &it.stop, &it.step] {
                    self.all(bound);
                }
            }
            other => self.expression(other),
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        match &call.expr {
            // A method call needs its object.
            Expr::GetAttr(method) => self.expression(&method.expr),
            callee => self.lookup(callee),
        }
        self.arguments(&call.args);
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        self.all(arguments.iter().map(|argument| match argument {
            CallArg::Pos(it)
            | CallArg::Kwarg(_, it)
            | CallArg::PosSplat(it)
            | CallArg::KwargSplat(it) => it,
        }));
    }

    fn push(&mut self, expression: &Expr<'_>, is_filtered: bool) {
        let end = expression.span().end_offset as usize;
        self.0.push(Printed {
            place: start(expression)..end,
            is_filtered,
        });
    }
}

/// Returns the start of an expression. The parser's span of a filter begins at the filter's name,
/// and the span of a nested lookup at the inner operator.
fn start(expression: &Expr<'_>) -> usize {
    let inner = match expression {
        Expr::GetAttr(it) => lookup_start(&it.expr),
        Expr::GetItem(it) => lookup_start(&it.expr),
        Expr::Slice(it) => lookup_start(&it.expr),
        Expr::Call(it) => lookup_start(&it.expr),
        Expr::Filter(it) => it.expr.as_ref().map(start),
        _ => None,
    };
    let own = expression.span().start_offset as usize;
    inner.map_or(own, |inner| inner.min(own))
}

/// Returns the start of an expression within a lookup, or `None` if the lookup's own span includes
/// the start, with parentheses.
fn lookup_start(expression: &Expr<'_>) -> Option<usize> {
    matches!(
        expression,
        Expr::GetAttr(_) | Expr::GetItem(_) | Expr::Slice(_) | Expr::Call(_)
    )
    .then(|| start(expression))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Expressions in the engine's syntax, with all names defined.
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

    /// Returns what the engine renders, or `None` on an error.
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
        }
    }
}
