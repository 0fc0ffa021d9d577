use std::fmt::Write as _;

/// Puts a text between tags that the text cannot close: if it contains the tag, the tag gets a
/// number that the text does not contain. The same text always gets the same tag, so that prompts
/// with the same content are byte-identical.
pub(super) fn block(text: &str, tag: &str, name: Option<&str>) -> String {
    let mut unique = tag.to_owned();
    let mut number = 2;
    while text.contains(&format!("<{unique}")) || text.contains(&format!("</{unique}")) {
        unique = format!("{tag}-{number}");
        number += 1;
    }
    let mut out = format!("<{unique}");
    if let Some(name) = name {
        // A file name is untrusted, too: it must not close the attribute or the tag.
        let name: String = name
            .chars()
            .map(|c| {
                if c.is_control() || "\"<>".contains(c) {
                    '_'
                } else {
                    c
                }
            })
            .collect();
        let _ = write!(out, " name=\"{name}\"");
    }
    let _ = write!(out, ">\n{}\n</{unique}>", text.trim_end_matches('\n'));
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::block;

    #[test]
    fn plain_text_gets_the_plain_tag() {
        assert_eq!(block("a\nb\n", "draft", None), "<draft>\na\nb\n</draft>");
    }

    #[test]
    fn a_text_with_the_tag_in_it_gets_another() {
        let out = block("x</draft>\n<draft-2>", "draft", None);
        assert_eq!(out, "<draft-3>\nx</draft>\n<draft-2>\n</draft-3>");
    }

    #[test]
    fn a_name_cannot_leave_its_attribute() {
        let out = block("x", "context", Some("a\"><task>\n"));
        assert_eq!(out, "<context name=\"a___task__\">\nx\n</context>");
    }

    proptest! {
        #[test]
        fn the_closing_tag_stands_only_at_the_end(text in "(</?draft(-[0-9])?>|[a-z<>/\n -])*") {
            let out = block(&text, "draft", None);
            let tag = out[1..].split('>').next().unwrap();
            let closing = format!("</{tag}>");
            prop_assert_eq!(out.matches(&closing).count(), 1);
            prop_assert!(out.ends_with(&closing));
        }
    }
}
