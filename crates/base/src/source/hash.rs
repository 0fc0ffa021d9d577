use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Bytes as hexadecimal digits, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A hash (SHA-256) of a list of parts, as hexadecimal digits. Stored runs refer to such: it stays as it is.
pub fn hash_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // With its length, so that no two lists of parts are the same bytes.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_and_hashes_stay_what_they_are() {
        assert_ne!(hash_of(["ab", "c"]), hash_of(["a", "bc"]));
        assert_eq!(
            hash_of(["a", "b"]),
            "cf6ab613e3942391f88ed698557e1680f160bd10e88c6b668c50360c10930e2b"
        );
        assert_eq!(hex(&[0, 171]), "00ab");
    }
}
