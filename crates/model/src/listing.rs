//! The models that a server lists.

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedModel {
    /// The name to use in requests.
    pub name: String,
    /// The context window in tokens (prompt and reply), if reported.
    pub context_window: Option<u64>,
    /// The size on disk in bytes, if reported.
    pub size: Option<u64>,
    /// The host that runs the model, if it is not the server itself: an Ollama cloud model.
    pub remote: Option<String>,
    /// The number of parameters, if reported.
    pub parameters: Option<u64>,
    /// Whether it generates text, as opposed to embeddings or images, if reported.
    pub writes: Option<bool>,
    /// The number of parameters and the quantization, such as `8.0B Q4_K_M`, if reported.
    pub details: Option<String>,
}

/// The most similar names, best first; at most `limit`.
pub fn nearest<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    limit: usize,
) -> Vec<&'a str> {
    let wanted = wanted.to_lowercase();
    let stem = |name: &str| name.split([':', '/']).next().unwrap_or_default().to_owned();
    let mut ranked: Vec<(f64, &str)> = names
        .into_iter()
        .map(|name| {
            let lower = name.to_lowercase();
            let whole = strsim::jaro_winkler(&wanted, &lower);
            // `llama3` matches `llama3:8b-instruct`.
            let stems = strsim::jaro_winkler(&stem(&wanted), &stem(&lower));
            (whole.max(stems * 0.98), name)
        })
        .filter(|(rank, _)| *rank >= 0.75)
        .collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    ranked.truncate(limit);
    ranked.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_come_first_and_dissimilar_ones_are_omitted() {
        let names = ["qwen3:8b", "llama3.2:3b", "llama3.1:8b", "mistral"];
        assert_eq!(nearest("lama3.2", names, 1), ["llama3.2:3b"]);
        assert_eq!(nearest("qwen3", names, 3), ["qwen3:8b"]);
        assert!(nearest("zzzz", names, 3).is_empty());
    }
}
