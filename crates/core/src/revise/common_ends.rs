/// Returns the length of the common prefix of two sequences, and of the common suffix of what
/// remains.
pub(crate) fn common_ends<T: PartialEq>(left: &[T], right: &[T]) -> (usize, usize) {
    let same = |(one, other): &(&T, &T)| one == other;
    let begin = left.iter().zip(right).take_while(same).count();
    let rest = left[begin..].iter().rev().zip(right[begin..].iter().rev());
    (begin, rest.take_while(same).count())
}

#[cfg(test)]
mod tests {
    use super::common_ends;

    #[test]
    fn an_element_is_counted_once() {
        assert_eq!(common_ends(b"abcd", b"abxd"), (2, 1));
        assert_eq!(common_ends(b"aaa", b"aa"), (2, 0));
        assert_eq!(common_ends(b"ab", b"xaab"), (0, 2));
        assert_eq!(common_ends(b"", b"a"), (0, 0));
        assert_eq!(common_ends(b"same", b"same"), (4, 0));
    }
}
