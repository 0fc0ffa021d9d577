//! The requirements as the writer receives them: each once, in plain words.

use crate::types::{CommandConfig, Criteria, Criterion, Evaluator};

/// Returns the requirements of a text, one per line; empty without criteria.
pub(super) fn list(criteria: &Criteria) -> String {
    if criteria.criteria.is_empty() {
        return String::new();
    }
    let lines = criteria.criteria.iter().map(requirement);
    let lines: Vec<String> = lines.map(|line| format!("- {line}")).collect();
    format!("Requirements:\n{}", lines.join("\n"))
}

/// Returns what a criterion requires, or its name if nothing else is known.
pub(super) fn requirement(criterion: &Criterion) -> String {
    described(criterion).unwrap_or_else(|| criterion.name.replace(['_', '-'], " "))
}

/// Returns what a criterion requires in words: its description and its rule, unless one of them
/// covers both.
pub(super) fn described(criterion: &Criterion) -> Option<String> {
    let description = Some(criterion.description.trim()).filter(|text| !text.is_empty());
    let rule = match &criterion.evaluator {
        // A writer who has the description gains nothing from a pattern or a command line.
        Evaluator::Regex(_) | Evaluator::Command(_) if description.is_some() => None,
        Evaluator::Command(config) => Some(command(&criterion.name, config)),
        evaluator => evaluator.describe(),
    };
    let description = description.filter(|description| match (&criterion.evaluator, &rule) {
        // A length rule is exact where a description may be vague.
        (Evaluator::Length(_), Some(rule)) => repeats(rule, description),
        _ => true,
    });
    let rule = rule.filter(|rule| !description.is_some_and(|text| repeats(rule, text)));
    match (description, rule) {
        (Some(description), Some(rule)) => Some(format!("{description} {}", sentence(&rule))),
        (Some(text), None) => Some(text.to_owned()),
        (None, Some(rule)) => Some(sentence(&rule)),
        (None, None) => None,
    }
}

/// Describes what a command checks, as far as the criterion's name says.
fn command(name: &str, config: &CommandConfig) -> String {
    let program = config.command.first().map_or("", String::as_str);
    let program = program.rsplit(['/', '\\']).next().unwrap_or(program);
    format!(
        "{}: `{program}` finds no errors",
        name.replace(['_', '-'], " ")
    )
}

/// Returns whether a description contains all numbers and quoted texts of a rule, and there is at
/// least one.
fn repeats(rule: &str, description: &str) -> bool {
    let numbers = rule
        .split(|c: char| !c.is_ascii_digit())
        .filter(|it| !it.is_empty());
    let quoted = rule.split('`').skip(1).step_by(2);
    let mut exact = numbers.chain(quoted).peekable();
    exact.peek().is_some() && exact.all(|text| description.contains(text))
}

/// Capitalizes the first letter and adds a full stop.
fn sentence(text: &str) -> String {
    let mut chars = text.trim().chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    let mut text = first.unwrap_or_default() + chars.as_str();
    if !text.ends_with(['.', '!', '?', '}', ':']) {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(criterion: &str) -> String {
        let text = format!("[[criteria]]\nname = 'compiles'\n{criterion}");
        let criteria = crate::criteria::parse(&text, "c.toml").unwrap();
        requirement(&criteria.criteria[0])
    }

    #[test]
    fn each_requirement_is_said_once_and_in_words() {
        let length = "evaluator = 'length'\nmin = 20\nmax = 60";
        for (criterion, said) in [
            (length.to_owned(), "20 to 60 words."),
            (format!("{length}\ndescription = 'Between 20 and 60 words.'"), "Between 20 and 60 words."),
            (format!("{length}\ndescription = 'Neither short nor long.'"), "20 to 60 words."),
            (
                "evaluator = 'regex'\npattern = 'x'\nexpect = 'absent'\ndescription = 'No x.'\nmessage = 'Drop `{match}`.'".to_owned(),
                "No x.",
            ),
            (
                "evaluator = 'regex'\npattern = 'x'\nexpect = 'absent'\nmessage = 'Drop `{match}`.'".to_owned(),
                "Nothing in the text may match the regular expression `x`.",
            ),
            ("evaluator = 'regex'\npattern = 'x'\nmessage = 'Start with x.'".to_owned(), "Start with x."),
            (
                "evaluator = 'command'\ncommand = ['rustc', '{draft_file}']\ndescription = 'It compiles as Rust 2024.'".to_owned(),
                "It compiles as Rust 2024.",
            ),
            (
                "evaluator = 'command'\ncommand = ['/usr/bin/rustc', '{draft_file}']".to_owned(),
                "Compiles: `rustc` finds no errors.",
            ),
            (
                "evaluator = 'contains'\nnone = ['very']\ndescription = 'No filler.'".to_owned(),
                "No filler. It must not contain `very`.",
            ),
            (
                "evaluator = 'contains'\nall = ['## Use']\ndescription = 'It has a heading `## Use`.'".to_owned(),
                "It has a heading `## Use`.",
            ),
            ("description = 'It has a mood.'".to_owned(), "It has a mood."),
            (String::new(), "compiles"),
        ] {
            assert_eq!(line(&criterion), said, "{criterion}");
        }
    }
}
