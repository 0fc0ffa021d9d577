//! JSON Pointers (RFC 6901).

/// The unescaped segments of a JSON Pointer.
pub fn steps(pointer: &str) -> impl Iterator<Item = String> {
    pointer
        .split('/')
        .skip(1)
        .map(|step| step.replace("~1", "/").replace("~0", "~"))
}

/// Appends a segment to a JSON Pointer.
pub fn join(pointer: &str, step: &str) -> String {
    format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"))
}

/// The pointer without its last segment; `None` for the root.
pub(crate) fn parent(pointer: &str) -> Option<&str> {
    pointer.rsplit_once('/').map(|(parent, _)| parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_escaped_and_unescaped() {
        let pointer = join(&join("", "a/b"), "~1");
        assert_eq!(pointer, "/a~1b/~01");
        assert_eq!(steps(&pointer).collect::<Vec<_>>(), ["a/b", "~1"]);
        assert_eq!(steps("").count(), 0);
        assert_eq!(parent(&pointer), Some("/a~1b"));
        assert_eq!(parent(""), None);
    }
}
