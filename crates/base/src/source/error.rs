use std::{fmt, ops::Range};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};

use super::{Source, redact};

/// An error in a file that a person wrote, with its position.
///
/// `Display` prints one line, `file:3:9: message (hint)`. [`SourceError::render`] also shows the affected line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    name: String,
    message: String,
    location: Option<Location>,
    help: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Location {
    source: Source,
    span: Range<usize>,
    label: Option<String>,
    /// A second position that belongs to the error, with its label.
    secondary: Option<(Range<usize>, String)>,
}

impl SourceError {
    /// An error about a whole or missing file.
    pub fn for_file(name: &str, message: &str) -> Self {
        Self(Box::new(Inner {
            name: printable(name, false),
            message: printable(&redact(message), false),
            location: None,
            help: Vec::new(),
        }))
    }

    /// An error at a position. The span is clamped to the text.
    pub(super) fn at(source: &Source, span: Range<usize>, message: &str) -> Self {
        let span = clamp_span(source.text(), span);
        let mut error = Self::for_file(source.name(), message);
        error.0.location = Some(Location {
            source: source.clone(),
            span,
            label: None,
            secondary: None,
        });
        error
    }

    /// Adds a hint: what to do about it. It may have several lines.
    #[must_use]
    pub fn help(mut self, text: impl Into<String>) -> Self {
        self.0.help.push(printable(&text.into(), true));
        self
    }

    /// Adds a hint if there is one.
    #[must_use]
    pub fn help_if(self, text: Option<String>) -> Self {
        match text {
            Some(text) => self.help(text),
            None => self,
        }
    }

    /// Adds a label next to the caret.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        if let Some(location) = &mut self.0.location {
            location.label = Some(printable(&text.into(), false));
        }
        self
    }

    /// Adds a second position in the same text, with its label.
    #[must_use]
    pub fn also(mut self, span: Range<usize>, text: impl Into<String>) -> Self {
        if let Some(location) = &mut self.0.location {
            let span = clamp_span(location.source.text(), span);
            location.secondary = Some((span, printable(&text.into(), false)));
        }
        self
    }

    /// Displays `text`, a masked copy of the source with the same length, instead of the source. The parts that
    /// differ are secrets; they are removed from the message, hints and labels as well.
    #[must_use]
    pub fn masked_as(mut self, text: &str) -> Self {
        let Some(location) = &mut self.0.location else {
            return self;
        };
        let secret = secrets(location.source.text(), text, location.span.start);
        location.source.text = text.into();
        let conceal = |text: &str| {
            let hide = |text: String, secret: &String| text.replace(secret, "…");
            secret.iter().fold(text.to_owned(), hide)
        };
        location.label = location.label.as_deref().map(conceal);
        self.0.message = conceal(&self.0.message);
        self.0.help = self.0.help.iter().map(|help| conceal(help)).collect();
        self
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The message: one line, without the position.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The hints: what to do about it.
    pub fn hints(&self) -> &[String] {
        &self.0.help
    }

    /// The line and column, both counted from 1.
    pub fn position(&self) -> Option<(usize, usize)> {
        let location = self.0.location.as_ref()?;
        Some(location.source.position(location.span.start))
    }

    /// Renders the message, the affected line with a caret, and the hints. The result begins with `error: ` and has
    /// no final newline.
    pub fn render(&self, color: bool) -> String {
        let inner = &*self.0;
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let shown = inner.location.as_ref();
        let title = match (shown, self.position()) {
            (Some(_), _) => inner.message.clone(),
            (None, Some((line, column))) => {
                format!("{}:{line}:{column}: {}", inner.name, inner.message)
            }
            (None, None) => format!("{}: {}", inner.name, inner.message),
        };
        let title = Level::ERROR.primary_title(title.as_str());
        let mut group = match shown {
            None => Group::with_title(title),
            Some(location) => {
                let mut mark = AnnotationKind::Primary.span(location.span.clone());
                if let Some(label) = &location.label {
                    mark = mark.label(label.as_str());
                }
                let mut snippet = Snippet::source(redact(location.source.text()))
                    .path(inner.name.as_str())
                    .annotation(mark);
                if let Some((span, label)) = &location.secondary {
                    snippet = snippet.annotation(
                        AnnotationKind::Context
                            .span(span.clone())
                            .label(label.as_str()),
                    );
                }
                title.element(snippet)
            }
        };
        // All error messages of the program say `hint` where this crate says `help`.
        let hint = Level::HELP.with_name("hint");
        for help in &inner.help {
            group = group.element(hint.clone().message(help.as_str()));
        }
        renderer
            .decor_style(DecorStyle::Ascii)
            .render(&[group])
            .trim_end()
            .to_owned()
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)?;
        if let Some((line, column)) = self.position() {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}", self.0.message)?;
        for help in &self.0.help {
            write!(f, " ({})", help.replace('\n', " "))?;
        }
        Ok(())
    }
}

impl std::error::Error for SourceError {}

/// Escapes control characters: files are untrusted, and messages quote their keys.
fn printable(text: &str, newlines: bool) -> String {
    text.chars().fold(String::new(), |mut out, c| {
        if c.is_control() && !(newlines && c == '\n') {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        out
    })
}

/// The parts of `text` that `masked` (a copy of the same length) hides on the line at `at` and on the lines that
/// continue its value. Parts shorter than four bytes are ignored.
fn secrets(text: &str, masked: &str, at: usize) -> Vec<String> {
    const BETWEEN: &[u8] = b"'\"[]{}(),= \t\r\n";
    const SHORTEST: usize = 4;
    let from = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let rest = masked.get(from..).unwrap_or_default();
    let mut to = from;
    for (number, line) in rest.split_inclusive('\n').enumerate() {
        if number > 0 && line.contains('=') {
            break;
        }
        to += line.len();
    }
    let hidden = |at: &usize| {
        let byte = text.as_bytes().get(*at);
        byte != masked.as_bytes().get(*at) && byte.is_some_and(|byte| !BETWEEN.contains(byte))
    };
    let places: Vec<usize> = (from..to).filter(hidden).collect();
    let parts = places.chunk_by(|before, after| before + 1 == *after);
    parts
        .filter(|part| part.len() >= SHORTEST)
        .filter_map(|part| text.get(*part.first()?..=*part.last()?))
        .map(str::to_owned)
        .collect()
}

/// Clamps a span to the text and to character boundaries, and makes it non-empty where possible.
fn clamp_span(text: &str, span: Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    // A range of several lines, such as a table, is represented by its first line.
    if let Some(newline) = text[start..end].find('\n')
        && newline > 0
    {
        end = start + newline;
    }
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_and_render_shows_the_place() {
        let source = Source::new("a.toml", "x = 1\nwieght = 2\n");
        let error = source
            .error(6..12, "unknown key `wieght`")
            .help("did you mean `weight`?");
        assert_eq!(
            error.to_string(),
            "a.toml:2:1: unknown key `wieght` (did you mean `weight`?)"
        );
        insta::assert_snapshot!(error.render(false), @r"
        error: unknown key `wieght`
         --> a.toml:2:1
          |
        2 | wieght = 2
          | ^^^^^^
          |
          = hint: did you mean `weight`?
        ");
        assert!(error.render(true).contains("\u{1b}["));
    }

    #[test]
    fn control_characters_never_reach_a_terminal() {
        let source = Source::new("a\u{1b}.toml", "\u{1b}[31m = 1");
        let error = source
            .error(0..3, "bad \u{1b}[2J\nkey")
            .label("\u{7}")
            .help("a\nb\u{8}");
        // Strip our own colours first.
        let coloured = console::strip_ansi_codes(&error.render(true)).into_owned();
        assert_eq!(coloured, error.render(false));
        for text in [coloured, error.to_string()] {
            assert!(
                text.chars().all(|c| c == '\n' || !c.is_control()),
                "{text:?}"
            );
        }
        assert!(!error.to_string().contains('\n'));
    }

    #[test]
    fn any_span_can_be_rendered() {
        let text = "añb\n\nc\u{1F600}";
        let source = Source::new("x", text);
        for start in 0..text.len() + 3 {
            for end in 0..text.len() + 3 {
                let _ = source
                    .error(start..end, "m")
                    .also(end..start, "o")
                    .render(false);
            }
        }
    }
}
