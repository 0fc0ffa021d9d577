use super::builtin;

/// The template to fill in, with explanations in comments.
const TEMPLATE: &str = include_str!("start.toml");

/// Returns the text of a new criteria file: the criteria of a built-in set, and an example of every
/// other evaluator in comments. Returns `None` if no built-in set has that name.
pub fn starting_file(name: &str, task_type: &str) -> Option<String> {
    let text = builtin::text(task_type)?;
    let criteria = &text[text.find("[[criteria]]")?..];
    let quoted = toml::Value::String(name.to_owned()).to_string();
    Some(
        TEMPLATE
            .replace("\"NAME\"", &quoted)
            .replace("#CRITERIA\n", criteria),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criteria::{BUILTIN_NAMES, builtin, parse, warnings};
    use crate::types::Evaluator;

    #[test]
    fn it_holds_the_built_in_set() {
        for name in BUILTIN_NAMES {
            let criteria = parse(&starting_file("my \"own\"", name).unwrap(), "x").unwrap();
            let set = builtin(name).unwrap();
            assert_eq!(criteria.name, "my \"own\"");
            assert_eq!(criteria.criteria, set.criteria);
            assert_eq!(warnings(&criteria), Vec::<String>::new());
        }
        assert_eq!(starting_file("x", "nothing"), None);
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
