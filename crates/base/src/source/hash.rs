use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// The SHA-256 hash of a list of strings, as hexadecimal digits. Stored runs contain such hashes, so the algorithm
/// must not change.
pub fn hash_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        // The length prefix keeps `["ab", "c"]` and `["a", "bc"]` apart.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_distinguish_parts_and_are_stable() {
        assert_ne!(hash_of(["ab", "c"]), hash_of(["a", "bc"]));
        assert_eq!(
            hash_of(["a", "b"]),
            "cf6ab613e3942391f88ed698557e1680f160bd10e88c6b668c50360c10930e2b"
        );
        assert_eq!(hex(&[0, 171]), "00ab");
    }
}
