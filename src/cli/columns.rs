//! Text layout in terminal columns. Some characters take two columns and some take none.

use console::{measure_text_width, truncate_str};

/// The minimum layout width in columns. Narrower text is unreadable.
const FEWEST: usize = 10;

/// Wraps a line at spaces into rows of at most `width` columns. Only a word longer than a row is split.
/// Returns no rows for a blank line.
pub(super) fn rows(line: &str, width: usize) -> Vec<&str> {
    let width = width.max(FEWEST);
    let mut rows = Vec::new();
    let mut rest = line.trim_end();
    while measure_text_width(rest) > width {
        let row = truncate_str(rest, width, "").len();
        let end = match (rest[row..].starts_with(' '), rest[..row].rfind(' ')) {
            (false, Some(blank)) if blank > 0 => blank,
            _ => row,
        };
        rows.push(rest[..end].trim_end());
        rest = rest[end..].trim_start();
    }
    if !rest.is_empty() {
        rows.push(rest);
    }
    rows
}

/// The separator between the parts of a line.
pub(super) const BETWEEN: &str = " · ";

/// Lays out parts one after the other in rows of at most `width` columns. Only a part longer than a row is
/// split.
pub(super) fn flow<'p>(parts: impl IntoIterator<Item = &'p str>, width: usize) -> Vec<String> {
    let mut flowing: Vec<String> = Vec::new();
    for part in parts {
        let wanted = measure_text_width(BETWEEN) + measure_text_width(part);
        let fits = |row: &&mut String| measure_text_width(row) + wanted <= width;
        match flowing.last_mut().filter(fits) {
            Some(row) => {
                row.push_str(BETWEEN);
                row.push_str(part);
            }
            None => flowing.extend(rows(part, width).into_iter().map(str::to_owned)),
        }
    }
    flowing
}

/// Prefixes each line of a text with a mark.
pub(super) fn set_apart(text: &str, mark: &str) -> String {
    let lines = text.trim_end().lines();
    let marked: Vec<String> = lines
        .map(|line| format!("{mark}{line}").trim_end().to_owned())
        .collect();
    marked.join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lines_wrap_at_spaces() {
        assert_eq!(
            rows("three is a longer line than fits", 20),
            ["three is a longer", "line than fits"]
        );
        assert_eq!(
            rows("exactly ten and aworldlongerthanarow 0123456789", 10),
            [
                "exactly",
                "ten and",
                "aworldlong",
                "erthanarow",
                "0123456789"
            ]
        );
        assert_eq!(rows("   ", 20), [""; 0]);
        assert_eq!(rows("漢字漢字漢字漢字", 11), ["漢字漢字漢", "字漢字"]);
    }

    #[test]
    fn parts_share_a_row_if_they_fit() {
        let parts = ["score 0.86", "meets the criteria", "0.3 s"];
        assert_eq!(
            flow(parts, 31),
            ["score 0.86 · meets the criteria", "0.3 s"]
        );
        assert_eq!(
            flow(parts, 30),
            ["score 0.86", "meets the criteria · 0.3 s"]
        );
        assert_eq!(
            flow(parts, 12),
            ["score 0.86", "meets the", "criteria", "0.3 s"]
        );
    }

    proptest! {
        #[test]
        fn every_row_fits_and_no_text_is_lost(
            line in "([a-z漢🦀é]{0,14}[ ]{0,2}){0,8}", width in 0_usize..40
        ) {
            let rows = rows(&line, width);
            for row in &rows {
                prop_assert!(measure_text_width(row) <= width.max(FEWEST), "{:?}", row);
            }
            let bare = |text: &str| text.replace(' ', "");
            prop_assert_eq!(bare(&rows.concat()), bare(&line));
        }
    }
}
