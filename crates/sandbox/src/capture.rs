use std::collections::VecDeque;
use std::fmt;

use crate::secrets;

/// The captured head and tail of a byte stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
}

impl Captured {
    /// The total number of bytes, including dropped ones, after redaction of secrets.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of bytes dropped between head and tail.
    pub fn cut(&self) -> u64 {
        let kept = u64::try_from(self.head.len() + self.tail.len()).unwrap_or(u64::MAX);
        self.total.saturating_sub(kept)
    }

    /// The text, with a note where bytes were dropped. Invalid UTF-8 becomes U+FFFD.
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// All bytes; `None` if some were dropped. For output that a program parses.
    pub fn complete(&self) -> Option<Vec<u8>> {
        (self.cut() == 0).then(|| [self.head.as_slice(), self.tail.as_slice()].concat())
    }
}

impl fmt::Display for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(all) = self.complete() {
            return f.write_str(&String::from_utf8_lossy(&all));
        }
        write!(
            f,
            "{}\n[... {} bytes cut ...]\n{}",
            String::from_utf8_lossy(whole_start(&self.head)),
            self.cut(),
            String::from_utf8_lossy(whole_end(&self.tail))
        )
    }
}

/// Removes an incomplete character at the end.
fn whole_start(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => &bytes[..e.valid_up_to()],
        _ => bytes,
    }
}

/// Removes the rest of a split character at the start: at most 3 continuation bytes.
fn whole_end(bytes: &[u8]) -> &[u8] {
    let rest = bytes
        .iter()
        .take(3)
        .take_while(|b| **b & 0b1100_0000 == 0b1000_0000)
        .count();
    &bytes[rest..]
}

/// Keeps the first and the last part of a stream in bounded memory.
#[derive(Debug)]
pub(super) struct Capture {
    half: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
}

impl Capture {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            half: (limit / 2).max(1),
            head: Vec::new(),
            tail: VecDeque::new(),
            total: 0,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.total = self
            .total
            .saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let room = self.half - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.half)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns the kept parts. Redacts known secrets: all output of programs passes through here.
    pub(super) fn finish(self) -> Captured {
        let (mut head, mut tail) = (self.head, Vec::from(self.tail));
        let kept = |head: &[u8], tail: &[u8]| u64::try_from(head.len() + tail.len());
        let cut = self.total - kept(&head, &tail).unwrap_or(self.total);
        if cut == 0 {
            // A secret may span the middle.
            head.append(&mut tail);
        }
        let (head, tail) = (secrets::redact(head), secrets::redact(tail));
        Captured {
            total: cut.saturating_add(kept(&head, &tail).unwrap_or(u64::MAX)),
            head,
            tail,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn head_and_tail_are_kept_and_the_cut_is_marked() {
        let mut capture = Capture::new(8);
        capture.push(b"abcdefgh");
        capture.push(b"ijklmnop");
        let captured = capture.finish();
        assert_eq!(captured.cut(), 8);
        assert_eq!(captured.complete(), None);
        assert_eq!(captured.text(), "abcd\n[... 8 bytes cut ...]\nmnop");
    }

    #[test]
    fn a_cut_never_splits_a_character() {
        let mut capture = Capture::new(8);
        capture.push("abcä€€€ü".as_bytes());
        assert_eq!(capture.finish().text(), "abc\n[... 8 bytes cut ...]\nü");
    }

    proptest! {
        #[test]
        fn short_output_is_kept_whole_and_long_output_is_bounded(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            limit in 2_usize..100,
        ) {
            let mut capture = Capture::new(limit);
            for chunk in &chunks {
                capture.push(chunk);
            }
            let all = chunks.concat();
            let captured = capture.finish();
            prop_assert_eq!(captured.total(), all.len() as u64);
            prop_assert!(captured.head.len() + captured.tail.len() <= limit);
            prop_assert!(all.starts_with(&captured.head) && all.ends_with(&captured.tail));
            if all.len() <= limit / 2 * 2 {
                prop_assert_eq!(captured.complete(), Some(all));
            }
        }
    }
}
