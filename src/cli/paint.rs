//! Colors for messages and reports: one rule for all, applied just before printing.
//!
//! Green and red for passed and failed, yellow for warnings, bold for names.

use console::Style;

/// A function that sets the color of a style.
type Color = fn(Style) -> Style;

/// Phrases with their own color, anywhere in a line.
const PHRASES: [(&str, Color); 9] = [
    ("✓", Style::green),
    ("✗", Style::red),
    ("does not meet the criteria", Style::red),
    ("meets the criteria", Style::green),
    ("criteria not met", Style::red),
    ("criteria met", Style::green),
    ("could not be judged", Style::yellow),
    (" rejected: ", Style::yellow),
    ("reply rejected: ", Style::yellow),
];

/// Labels at the start of a line, with their colors.
const LABELS: [(&str, Color); 3] = [
    ("error:", Style::red),
    ("warning:", Style::yellow),
    ("hint:", Style::cyan),
];

/// Adds colors to a text. It must not contain control characters.
pub(super) fn paint(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(line).collect();
    lines.join("\n")
}

fn line(text: &str) -> String {
    let style = Style::new().force_styling(true);
    for (label, color) in LABELS {
        if let Some(rest) = text.strip_prefix(label) {
            let label = color(style.clone()).bold().apply_to(label);
            return format!("{label}{}", names(rest));
        }
    }
    // A warning of `doctor`.
    if let Some(rest) = text.strip_prefix("  ! ") {
        return format!("  {} {}", style.yellow().apply_to("!"), names(rest));
    }
    let mut out = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let found = PHRASES
            .iter()
            .filter_map(|(phrase, color)| Some((rest.find(phrase)?, *phrase, color)))
            .min_by_key(|(place, phrase, _)| (*place, usize::MAX - phrase.len()));
        let Some((place, phrase, color)) = found else {
            break;
        };
        let (before, after) = rest.split_at(place);
        out.push_str(&names(before));
        let colored = color(style.clone()).apply_to(phrase).to_string();
        out.push_str(&colored);
        rest = &after[phrase.len()..];
    }
    out + &names(rest)
}

/// Makes names in backticks bold, including the backticks.
fn names(text: &str) -> String {
    let bold = Style::new().force_styling(true).bold();
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, name, after)) = split_name(rest) {
        out.push_str(before);
        out.push_str(&bold.apply_to(name).to_string());
        rest = after;
    }
    out + rest
}

/// Splits at the first name: the text before it, the name with its backticks, and the rest.
fn split_name(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find('`')?;
    let length = text[start + 1..].find('`')? + 2;
    Some((
        &text[..start],
        &text[start..start + length],
        &text[start + length..],
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn painting_keeps_the_text() {
        for text in [
            "",
            "error: no `x` here\nhint: try `y`",
            "draft 2: score 0.50 · ✗ length 0.20 · meets the criteria",
            "an odd ` backtick ✓",
            "  ✓ `a` `b\n",
        ] {
            let painted = paint(text);
            assert_eq!(console::strip_ansi_codes(&painted), text);
        }
    }

    #[test]
    fn each_kind_has_its_color() {
        let red = |text: &str| format!("\u{1b}[31m{text}\u{1b}[0m");
        assert_eq!(paint("✗ a"), format!("{} a", red("✗")));
        assert_eq!(
            paint("x does not meet the criteria"),
            format!("x {}", red("does not meet the criteria"))
        );
        assert!(
            paint("warning: x").starts_with("\u{1b}[33m"),
            "{}",
            paint("warning: x")
        );
        assert_eq!(paint("a `b` c"), "a \u{1b}[1m`b`\u{1b}[0m c");
    }
}
