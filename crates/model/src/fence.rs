//! Extracts fenced code blocks from replies.

/// An opening fence.
struct Fence {
    /// The indentation of the fence, which is removed from every line.
    indent: usize,
    sign: char,
    length: usize,
}

impl Fence {
    /// Parses an opening fence by the rules of `CommonMark`: three or more backticks or tildes, indented by at most
    /// three spaces, and no further backtick after a backtick fence.
    fn open(line: &str) -> Option<Self> {
        let text = line.trim_start_matches(' ');
        let indent = line.len() - text.len();
        let sign = text
            .chars()
            .next()
            .filter(|sign| matches!(sign, '`' | '~'))?;
        let length = text.chars().take_while(|c| *c == sign).count();
        let info = &text[length..];
        let opens = indent <= 3 && length >= 3 && !(sign == '`' && info.contains('`'));
        opens.then_some(Self {
            indent,
            sign,
            length,
        })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim_start_matches(' ');
        let length = text.chars().take_while(|c| *c == self.sign).count();
        let rest = &text[length..];
        line.len() - text.len() <= 3 && length >= self.length && rest.trim().is_empty()
    }

    /// A line of the block without the fence's indentation.
    fn inner<'l>(&self, line: &'l str) -> &'l str {
        let blanks = line.chars().take_while(|c| *c == ' ').count();
        &line[blanks.min(self.indent)..]
    }
}

/// The text in the first fenced code block, without the fences. An unclosed block extends to the end.
pub fn first_block(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let fence = lines.find_map(Fence::open)?;
    let block: Vec<&str> = lines
        .take_while(|line| !fence.is_closed_by(line))
        .map(|line| fence.inner(line))
        .collect();
    Some(block.join("\n"))
}

/// The text inside a fence that starts on the first line and ends on the last; `None` if there is no such fence. A
/// nested fence is recognized by its info string. A fence without an info string closes the outer one; if that
/// happens before the end, the text merely starts and ends with separate blocks.
pub fn inside_fence(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    let (mark, _) = fence_marker(first)?;
    let mut open = vec![mark];
    let mut at = first.len() + 1;
    for line in rest.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        let Some((mark, info)) = fence_marker(line.trim_end()) else {
            continue;
        };
        let (outer, length) = open.last().copied()?;
        if mark.0 != outer || (info.is_empty() && mark.1 < length) {
            continue;
        }
        if !info.is_empty() {
            open.push(mark);
            continue;
        }
        open.pop();
        if open.is_empty() {
            let inner = text[first.len() + 1..begin].trim_end_matches(['\n', '\r']);
            return text[at..].trim().is_empty().then_some(inner);
        }
    }
    None
}

/// The fence character, length and info string of a line, if the line is a fence.
pub fn fence_marker(line: &str) -> Option<((char, usize), &str)> {
    let character = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let info = line.trim_start_matches(character);
    let length = line.len() - info.len();
    // A backtick on the same line means inline code.
    (length >= 3 && !info.contains('`')).then_some(((character, length), info.trim()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_block_without_its_fences() {
        for (text, block) in [
            (
                "Here:\n```rust\nfn a() {}\n```\nand\n```\nb\n```\n",
                Some("fn a() {}"),
            ),
            ("~~~\n```\nx\n```\n~~~", Some("```\nx\n```")),
            ("````md\n```\nx\n```\n````", Some("```\nx\n```")),
            ("  ```\n  a\n    b\nc\n  ```", Some("a\n  b\nc")),
            ("```\nnever closed\n", Some("never closed")),
            ("```\n```\n", Some("")),
            ("```\r\na\r\n```\r\n", Some("a")),
            ("no block, but `code` and ```inline``` too", None),
            ("    ```\n    indented code is none\n    ```", None),
            ("``\nx\n``", None),
            ("", None),
        ] {
            assert_eq!(first_block(text).as_deref(), block, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn block_contents_round_trip(
            lines in prop::collection::vec("[a-z` {}()]{0,12}", 0..8),
            before in "[a-z \n]{0,20}",
        ) {
            let code = lines.join("\n");
            let text = format!("{before}\n~~~~ lang\n{code}\n~~~~\nafter\n");
            prop_assert_eq!(first_block(&text), Some(code.clone()));
        }

        #[test]
        fn arbitrary_text_never_panics(text in "(?s).{0,60}") {
            let _ = first_block(&text);
        }
    }
}
