/// The known name that is most similar to `name`, if it is similar enough to be a typo.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = name.to_lowercase();
    known
        .into_iter()
        .map(|k| {
            let k_lower = k.to_lowercase();
            // A prefix (`desc`) matches at any edit distance.
            let begun = lower.len() >= 3 && k_lower.starts_with(&lower);
            let score = strsim::damerau_levenshtein(&lower, &k_lower);
            (k, if begun { 0 } else { score })
        })
        // Allow one wrong letter in three.
        .filter(|(k, distance)| *distance <= k.chars().count().max(3) / 3)
        .min_by_key(|(_, distance)| *distance)
        .map(|(k, _)| k)
}

/// A list of names in backticks: `` `a`, `b` and `c` ``.
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(|n| format!("`{n}`")).collect();
    match names.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_only_similar_names() {
        let known = ["name", "description", "weight", "threshold"];
        assert_eq!(similar("wieght", known), Some("weight"));
        assert_eq!(similar("desc", known), Some("description"));
        assert_eq!(similar("Threshhold", known), Some("threshold"));
        assert_eq!(similar("colour", known), None);
        assert_eq!(similar("", known), None);
        assert_eq!(similar("x", ["y"]), Some("y"));
    }

    #[test]
    fn lists_read_as_a_sentence() {
        assert_eq!(list([]), "none");
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
    }
}
