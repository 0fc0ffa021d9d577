use std::ops::Range;

/// A text in which look-alike characters are equal: each run of white space is one blank, curly
/// quotes are straight, every dash is a hyphen, full-width characters are narrow, and zero-width
/// characters are removed. Used only to find passages: each byte knows its place in the original,
/// and edits change the original.
#[derive(Debug, Clone)]
pub(super) struct FoldedText {
    /// The folded text, without leading and trailing white space.
    pub(super) text: String,
    /// For each byte of `text`, the range of its character in the original.
    from: Vec<(usize, usize)>,
}

impl FoldedText {
    pub(super) fn new(original: &str) -> Self {
        let mut folded = Self {
            text: String::with_capacity(original.len()),
            from: Vec::with_capacity(original.len()),
        };
        let mut blank: Option<(usize, usize)> = None;
        for (start, c) in original.char_indices() {
            let place = (start, start + c.len_utf8());
            if c.is_whitespace() {
                blank = Some((blank.map_or(start, |(start, _)| start), place.1));
                continue;
            }
            let plain = look_alike(c);
            if plain.as_str().is_empty() {
                continue;
            }
            if let Some(blank) = blank.take()
                && !folded.text.is_empty()
            {
                folded.push(" ", blank);
            }
            // Two hyphens stand for a dash.
            if plain.as_str() == "-" && folded.text.ends_with('-') {
                if let Some(last) = folded.from.last_mut() {
                    last.1 = place.1;
                }
                continue;
            }
            folded.push(plain.as_str(), place);
        }
        folded
    }

    fn push(&mut self, text: &str, place: (usize, usize)) {
        self.text.push_str(text);
        self.from.extend(std::iter::repeat_n(place, text.len()));
    }

    /// Returns the ranges in the original that match `needle`, which is folded already. Returns
    /// none for an empty needle.
    pub(super) fn find(&self, needle: &str) -> Vec<Range<usize>> {
        if needle.is_empty() {
            return Vec::new();
        }
        self.text
            .match_indices(needle)
            .filter_map(|(start, found)| {
                let first = self.from.get(start)?;
                let last = self.from.get(start + found.len() - 1)?;
                Some(first.0..last.1)
            })
            .collect()
    }
}

/// Folds a text without keeping the places.
pub(super) fn fold(text: &str) -> String {
    FoldedText::new(text).text
}

/// The folded form of a character: nothing, itself, or up to three plain characters.
enum FoldedChar {
    Char([u8; 4], usize),
    Fixed(&'static str),
}

impl FoldedChar {
    fn as_str(&self) -> &str {
        match self {
            Self::Char(bytes, length) => std::str::from_utf8(&bytes[..*length]).unwrap_or_default(),
            Self::Fixed(text) => text,
        }
    }
}

fn look_alike(c: char) -> FoldedChar {
    FoldedChar::Fixed(match c {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' | '\u{2032}' | '\u{02bc}'
        | '\u{00b4}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{2033}' | '\u{00ab}'
        | '\u{00bb}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => "-",
        '\u{2026}' => "...",
        '\u{3002}' => ".",
        '\u{3001}' => ",",
        // Soft hyphen, zero-width spaces and joiners, byte order mark, and the emoji variation
        // selector.
        '\u{00ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe0f}' => "",
        _ => {
            let plain = match c {
                '\u{ff01}'..='\u{ff5e}' => {
                    char::from_u32(u32::from(c) - 0xff01 + u32::from('!')).unwrap_or(c)
                }
                _ => c,
            };
            let mut bytes = [0; 4];
            let length = plain.encode_utf8(&mut bytes).len();
            return FoldedChar::Char(bytes, length);
        }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_looks_alike_is_alike() {
        for (one, other) in [
            ("“Don’t,” she said", "\"Don't,\" she said"),
            ("a – b — c", "a - b -- c"),
            ("10\u{a0}km", "10 km"),
            ("wait…", "wait..."),
            ("a\r\n\tb", "a b"),
            ("co\u{ad}operate\u{200b}", "cooperate"),
            ("你好，世界！", "你好,世界!"),
            ("« oui »", "\" oui \""),
        ] {
            assert_eq!(fold(one), fold(other), "{one}");
        }
        assert_ne!(fold("a b"), fold("ab"));
        assert_ne!(fold("Cat"), fold("cat"));
    }

    #[test]
    fn a_passage_is_found_where_it_stands_in_the_original() {
        let original = "He said: “It’s 10\u{a0}km –\n  maybe.” Then he left.";
        let found = FoldedText::new(original).find(&fold("\"It's 10 km - maybe.\""));
        assert_eq!(found.len(), 1);
        assert_eq!(&original[found[0].clone()], "“It’s 10\u{a0}km –\n  maybe.”");
    }

    proptest! {
        #[test]
        fn every_passage_is_at_character_boundaries(text in "[ab \n\u{a0}“”–—…-]{0,40}", needle in "[ab \"-]{1,3}") {
            let folded = FoldedText::new(&text);
            for range in folded.find(&fold(&needle)) {
                prop_assert!(text.get(range).is_some());
            }
        }
    }
}
