use std::collections::HashMap;

/// Adapts the indentation of a replacement to its place, by comparing how the model indented the
/// passage with how the draft indents it.
pub(super) fn reindent(replace: &str, search: &str, place: &str) -> String {
    let map = IndentMap::new(search, place);
    if map.is_identity() {
        return replace.to_owned();
    }
    let mut last = String::new();
    let lines: Vec<String> = replace
        .split('\n')
        .map(|line| {
            let content = line.trim_start();
            if content.is_empty() {
                return line.trim().to_owned();
            }
            last = map.indentation(
                &line[..line.len() - content.len()],
                content.trim_end(),
                &last,
            );
            format!("{last}{content}")
        })
        .collect();
    lines.join("\n")
}

/// Maps indentations of the passage to those of the draft.
struct IndentMap<'a> {
    pairs: Vec<(&'a str, &'a str)>,
    /// Maps each line of the passage to its indentation in the draft. Needed only if one
    /// indentation maps to several, as in a passage that lost all indentation.
    lines: HashMap<&'a str, &'a str>,
    /// The number of blanks per level, if the draft is indented with tabs.
    step: Option<usize>,
}

impl<'a> IndentMap<'a> {
    fn new(search: &'a str, place: &'a str) -> Self {
        let full = |text: &'a str| -> Vec<(&'a str, &'a str)> {
            text.lines()
                .filter(|line| !line.trim().is_empty())
                .map(|line| {
                    let content = line.trim_start();
                    (&line[..line.len() - content.len()], content.trim_end())
                })
                .collect()
        };
        let (search, place) = (full(search), full(place));
        // Pair all lines if their number is equal, else only the first ones.
        let count = if search.len() == place.len() {
            search.len()
        } else {
            1
        };
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        let mut lines = HashMap::new();
        let mut flat = false;
        for ((wrote, content), (stands, _)) in search.iter().zip(&place).take(count) {
            lines.insert(*content, *stands);
            match pairs.iter().find(|(other, _)| other == wrote) {
                Some((_, other)) => flat |= other != stands,
                None => pairs.push((wrote, stands)),
            }
        }
        let step = pairs
            .iter()
            .any(|(wrote, stands)| stands.contains('\t') && !wrote.contains('\t'))
            .then(|| {
                let depths = search.iter().map(|(wrote, _)| wrote.len());
                let least = depths.clone().min().unwrap_or(0);
                depths
                    .map(|depth| depth - least)
                    .filter(|&depth| depth > 0)
                    .min()
                    .unwrap_or(4)
            });
        Self {
            pairs,
            lines: if flat { lines } else { HashMap::new() },
            step,
        }
    }

    fn is_identity(&self) -> bool {
        self.lines.is_empty() && self.pairs.iter().all(|(wrote, stands)| wrote == stands)
    }

    fn indentation(&self, wrote: &str, content: &str, last: &str) -> String {
        if !self.lines.is_empty() {
            return self.lines.get(content).copied().unwrap_or(last).to_owned();
        }
        let nearest = self
            .pairs
            .iter()
            .filter(|(other, _)| wrote.starts_with(other))
            .max_by_key(|(other, _)| other.len());
        if let Some((other, stands)) = nearest {
            let rest = &wrote[other.len()..];
            let blanks = rest.chars().all(|c| c == ' ');
            return match self.step {
                Some(step) if blanks => {
                    format!("{stands}{}", "\t".repeat(rest.len().div_ceil(step)))
                }
                _ => format!("{stands}{rest}"),
            };
        }
        // Less indented than every line of the passage: reduce by the same amount in the draft.
        let Some((other, stands)) = self.pairs.iter().min_by_key(|(other, _)| other.len()) else {
            return wrote.to_owned();
        };
        let less = other.len().saturating_sub(wrote.len());
        let less = self.step.map_or(less, |step| less.div_ceil(step));
        let kept = stands.len().saturating_sub(less);
        stands.get(..kept).unwrap_or_default().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::reindent;

    #[test]
    fn the_draft_s_indentation_is_given_back() {
        // All lines lack the same indentation.
        assert_eq!(
            reindent(
                "if a:\n    b()\n    c()",
                "if a:\n    b()",
                "    if a:\n        b()"
            ),
            "    if a:\n        b()\n        c()"
        );
        // Blanks for tabs.
        assert_eq!(
            reindent(
                "if a {\n    b();\n        c();\n}",
                "if a {\n    b();\n}",
                "\tif a {\n\t\tb();\n\t}"
            ),
            "\tif a {\n\t\tb();\n\t\t\tc();\n\t}"
        );
        // Two blanks for four.
        assert_eq!(
            reindent("  x: 2\n    y: 3", "  x: 1\n", "    x: 1"),
            "    x: 2\n      y: 3"
        );
        // All indentation lost: kept lines get theirs back, new lines follow the line before.
        assert_eq!(
            reindent(
                "for a in b:\nc(a)\nd(a)",
                "for a in b:\nc(a)",
                "for a in b:\n    c(a)"
            ),
            "for a in b:\n    c(a)\n    d(a)"
        );
        // Too much indentation.
        assert_eq!(
            reindent("        a\n    b", "        a", "    a"),
            "    a\nb"
        );
        // Correct indentation.
        assert_eq!(reindent("  a\n   b", "  x", "  x"), "  a\n   b");
    }
}
