use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

/// Which ids there were. Keeps 16 bytes of a hash for each, so that a million of them take some 35 MB however long
/// they are; that two ids have the same 16 bytes does not happen.
#[derive(Debug, Clone, Default)]
pub struct Seen(HashSet<u128>);

impl Seen {
    /// Takes an id in; whether it is new. What has no id is known by its line.
    pub fn insert(&mut self, id: Option<&str>, line: u64) -> bool {
        self.0.insert(fingerprint(id, line))
    }

    /// Whether it was taken in.
    pub fn contains(&self, id: Option<&str>, line: u64) -> bool {
        !self.0.is_empty() && self.0.contains(&fingerprint(id, line))
    }

    /// How many there were.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there were none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn fingerprint(id: Option<&str>, line: u64) -> u128 {
    let mut hash = Sha256::new();
    if let Some(id) = id {
        hash.update(b"id");
        hash.update(id.as_bytes());
    } else {
        hash.update(b"line");
        hash.update(line.to_le_bytes());
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    u128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_new_once_and_a_line_is_no_id() {
        let mut seen = Seen::default();
        assert!(!seen.contains(Some("a"), 1));
        assert!(seen.insert(Some("a"), 1));
        assert!(!seen.insert(Some("a"), 2));
        assert!(seen.insert(None, 7));
        assert!(seen.insert(Some("7"), 7));
        assert!(seen.contains(None, 7) && !seen.contains(None, 8));
        assert_eq!(seen.len(), 3);
    }
}
