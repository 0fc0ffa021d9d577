/// A text on one line, cut where it is longer than this many characters.
pub fn one_line(text: &str, most: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(most) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_put_on_one_line() {
        assert_eq!(one_line("a\n b\t c", 9), "a b c");
        assert_eq!(one_line("äöü", 2), "äö…");
    }
}
