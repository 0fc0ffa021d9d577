//! What servers say about the models they have.

/// A model that a server offers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListedModel {
    /// The name to ask for it by.
    pub name: String,
    /// Tokens of prompt and answer together, if the server tells.
    pub context_window: Option<u64>,
    /// Bytes on disk, if the server tells.
    pub size: Option<u64>,
    /// The host that runs it, if that is another one than the server: a cloud model of Ollama.
    pub remote: Option<String>,
    /// How many parameters it has, if the server tells.
    pub parameters: Option<u64>,
    /// Whether it writes text, and not only vectors or pictures, if the server tells.
    pub writes: Option<bool>,
    /// Parameters and quantization, such as `8.0B Q4_K_M`, if the server tells.
    pub details: Option<String>,
}

/// The names that are most like a wanted one, the best first; at most `limit`.
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
            // `llama3` is meant by whoever has `llama3:8b-instruct`.
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
    fn near_names_come_first_and_far_ones_not_at_all() {
        let names = ["qwen3:8b", "llama3.2:3b", "llama3.1:8b", "mistral"];
        assert_eq!(nearest("lama3.2", names, 1), ["llama3.2:3b"]);
        assert_eq!(nearest("qwen3", names, 3), ["qwen3:8b"]);
        assert!(nearest("zzzz", names, 3).is_empty());
    }
}
