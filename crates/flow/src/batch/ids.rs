use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

/// The set of ids seen so far. Stores a 16-byte hash of each, so a million ids need about 35 MB regardless of
/// their length. Collisions are negligible.
#[derive(Debug, Clone, Default)]
pub struct Seen(HashSet<u128>);

impl Seen {
    /// Adds an id and returns whether it is new. Without an id, the line identifies the task.
    pub fn insert(&mut self, id: Option<&str>, line: u64) -> bool {
        self.0.insert(fingerprint(id, line))
    }

    /// Whether the id was added.
    pub fn contains(&self, id: Option<&str>, line: u64) -> bool {
        !self.0.is_empty() && self.0.contains(&fingerprint(id, line))
    }

    /// Returns the number of ids.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it is empty.
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
    fn an_id_is_new_once_and_differs_from_a_line_number() {
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
