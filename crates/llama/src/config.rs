use super::{EngineError, Gguf};

/// The sizes and habits of a model of the Llama family.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// Layers.
    pub(super) layers: usize,
    /// Width of the stream between the layers.
    pub(super) width: usize,
    /// Width inside the feed-forward part.
    pub(super) inner: usize,
    /// Heads that ask.
    pub(super) heads: usize,
    /// Heads that are asked; several asking heads share one.
    pub(super) kv_heads: usize,
    /// Width of a head.
    pub(super) head: usize,
    /// Keeps a norm of zeros finite.
    pub(super) epsilon: f32,
    /// How positions turn queries and keys.
    pub(super) rope: Rope,
    /// Tokens of the vocabulary.
    pub(super) vocabulary: usize,
    /// Positions that the model was trained on.
    pub(super) trained: usize,
}

/// How positions turn queries and keys.
#[derive(Debug, Clone)]
pub(super) struct Rope {
    /// Elements of a head that are turned, in pairs.
    pub(super) turned: usize,
    /// The longest wavelength is this times 2π.
    pub(super) base: f32,
    /// What positions are divided by (linear scaling).
    pub(super) stretch: f32,
    /// Which elements are a pair.
    pub(super) pairs: Pairs,
}

/// Which elements of a head are turned together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairs {
    /// Neighbours; GGUF files of Llama models are permuted for it.
    Neighbours,
    /// One of the first half and one of the second (GPT-NeoX).
    Halves,
}

impl Config {
    /// Reads what the file says.
    pub(super) fn read(file: &Gguf) -> Result<Self, EngineError> {
        let arch = file
            .text("general.architecture")
            .ok_or_else(|| file.invalid("`general.architecture` is missing"))?;
        let pairs = match arch {
            "llama" => Pairs::Neighbours,
            "qwen2" | "qwen3" => Pairs::Halves,
            other => {
                return Err(file.unsupported(format!(
                    "its architecture is `{other}`; `llama`, `qwen2` and `qwen3` can be run"
                )));
            }
        };
        let key = |name: &str| format!("{arch}.{name}");
        if file.number(&key("expert_count")).is_some_and(|n| n > 0) {
            return Err(file.unsupported("it is a mixture of experts"));
        }
        let width = file.required(&key("embedding_length"))?;
        let heads = file.required(&key("attention.head_count"))?;
        let kv_heads = file
            .number(&key("attention.head_count_kv"))
            .unwrap_or(heads);
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(file.invalid(format!("{heads} heads cannot share {kv_heads}")));
        }
        let head = file
            .number(&key("attention.key_length"))
            .unwrap_or(width / heads);
        let value = file.number(&key("attention.value_length"));
        if value.is_some_and(|value| value != head) {
            return Err(file.unsupported("its keys and values differ in length"));
        }
        let turned = file.number(&key("rope.dimension_count")).unwrap_or(head);
        if head == 0 || turned > head || !turned.is_multiple_of(2) {
            return Err(file.invalid(format!("{turned} of {head} elements of a head are turned")));
        }
        let stretch = match file.text(&key("rope.scaling.type")) {
            None | Some("none") => 1.0,
            Some("linear") => file.float(&key("rope.scaling.factor")).unwrap_or(1.0),
            Some(other) => {
                return Err(file.unsupported(format!("its positions are scaled by `{other}`")));
            }
        };
        let config = Self {
            layers: file.required(&key("block_count"))?,
            width,
            inner: file.required(&key("feed_forward_length"))?,
            heads,
            kv_heads,
            head,
            epsilon: file
                .float(&key("attention.layer_norm_rms_epsilon"))
                .ok_or_else(|| file.invalid("the epsilon of its norms is missing"))?,
            rope: Rope {
                turned,
                base: file.float(&key("rope.freq_base")).unwrap_or(10_000.0),
                stretch,
                pairs,
            },
            vocabulary: file.list("tokenizer.ggml.tokens").map_or(0, <[_]>::len),
            trained: file.required(&key("context_length"))?,
        };
        if config.layers == 0 || config.width == 0 || config.inner == 0 || config.trained == 0 {
            return Err(file.invalid("a size of it is 0"));
        }
        if config.vocabulary == 0 {
            return Err(file.invalid("it has no vocabulary"));
        }
        Ok(config)
    }
}
