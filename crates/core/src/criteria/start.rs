use super::{
    builtin::{self, TASK_TYPES},
    resolve::AvailableCriteria,
};
use crate::source::{self, SourceError};

/// The template to fill in, with explanations in comments.
const TEMPLATE: &str = include_str!("start.toml");

/// Returns the text of a new criteria file: the criteria of the built-in set of a task type, and an
/// example of every other evaluator in comments. Returns `None` if there is no such task type.
pub fn starting_file(name: &str, task_type: &str) -> Option<String> {
    let text = builtin::text(task_type).filter(|_| TASK_TYPES.contains(&task_type))?;
    let criteria = &text[text.find("[[criteria]]")?..];
    let quoted = toml::Value::String(name.to_owned()).to_string();
    Some(
        TEMPLATE
            .replace("\"NAME\"", &quoted)
            .replace("#CRITERIA\n", criteria),
    )
}

/// Returns a copy of a set's text for a new criteria file: comments are kept, the set is called
/// `name`, and commands in comments use `-c FILE` instead of the original. Returns `None` for a
/// built-in set that does not exist.
///
/// # Errors
/// If the set's file cannot be read.
pub fn copy_of(
    set: &AvailableCriteria,
    name: &str,
    file: &str,
) -> Result<Option<String>, SourceError> {
    let text = match &set.path {
        Some(path) => source::read(path)?.text().to_owned(),
        None => match builtin::text(&set.name) {
            Some(text) => text.to_owned(),
            None => return Ok(None),
        },
    };
    let mut lines: Vec<String> = Vec::new();
    let (mut in_head, mut named) = (true, false);
    for line in text.lines() {
        in_head &= !line.trim_start().starts_with('[');
        if line.starts_with('#') {
            lines.push(with_file(line, &set.name, file));
        } else if in_head
            && line
                .split('=')
                .next()
                .is_some_and(|key| key.trim() == "name")
        {
            named = true;
            lines.push(name_line(name));
        } else {
            lines.push(line.to_owned());
        }
    }
    let head = if named {
        String::new()
    } else {
        name_line(name) + "\n"
    };
    Ok(Some(head + &lines.join("\n") + "\n"))
}

fn name_line(name: &str) -> String {
    format!("name = {}", toml::Value::String(name.to_owned()))
}

/// Replaces `-c NAME` with `-c FILE` in a comment.
fn with_file(comment: &str, name: &str, file: &str) -> String {
    let option = format!(" -c {name}");
    let is_whole =
        |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "-_./".contains(c));
    match comment.split_once(&option) {
        Some((before, rest)) if is_whole(rest) => format!("{before} -c {file}{rest}"),
        _ => comment.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::{BUILTIN_NAMES, TASK_TYPES, builtin, parse, warnings};
    use crate::types::Evaluator;

    #[test]
    fn it_holds_the_built_in_set() {
        for name in TASK_TYPES {
            let criteria = parse(&starting_file("my \"own\"", name).unwrap(), "x").unwrap();
            let set = builtin(name).unwrap();
            assert_eq!(criteria.name, "my \"own\"");
            assert_eq!(criteria.criteria, set.criteria);
            assert_eq!(warnings(&criteria), Vec::<String>::new());
        }
        assert_eq!(starting_file("x", "nothing"), None);
        assert_eq!(starting_file("x", "commit"), None);
    }

    #[test]
    fn a_copy_is_the_set_under_another_name() {
        for name in BUILTIN_NAMES {
            let set = AvailableCriteria {
                name: (*name).to_owned(),
                path: None,
            };
            let text = copy_of(&set, "mine", "mine.toml").unwrap().unwrap();
            let copy = parse(&text, "x").unwrap();
            let original = builtin(name).unwrap();
            assert_eq!(copy.name, "mine");
            assert_eq!(copy.criteria, original.criteria);
            assert_eq!(copy.probe, original.probe);
            assert!(!text.contains(&format!(" -c {name}")), "{text}");
            assert_eq!(text.matches("name = \"mine\"").count(), 1);
        }
    }

    #[test]
    fn a_copy_of_a_file_gets_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("house.toml");
        let own = "# Try it: reflect draft x -c house\n[[criteria]]\nname = \"a\"\nmax = 1\n";
        std::fs::write(&path, own).unwrap();
        let set = AvailableCriteria {
            name: "house".to_owned(),
            path: Some(path),
        };
        let text = copy_of(&set, "b", "b.toml").unwrap().unwrap();
        assert_eq!(
            text,
            "name = \"b\"\n# Try it: reflect draft x -c b.toml\n[[criteria]]\nname = \"a\"\nmax = 1\n"
        );
    }

    /// The commented examples must be valid once the leading `#` is removed.
    #[test]
    fn its_examples_can_be_used() {
        let text = starting_file("x", "code").unwrap();
        let used: Vec<&str> = text
            .lines()
            .map(|line| match line.strip_prefix('#') {
                Some(rest) if !rest.starts_with(' ') => rest,
                _ => line,
            })
            .collect();
        let criteria = parse(&used.join("\n"), "x").unwrap();
        assert_eq!(criteria.loop_settings.max_iterations, Some(3));
        let shown = |kind: &str| criteria.criteria.iter().any(|c| c.evaluator.kind() == kind);
        for kind in Evaluator::KINDS {
            assert!(shown(kind), "{kind}");
        }
        assert_eq!(warnings(&criteria), Vec::<String>::new());
    }
}
