use super::{EngineError, Gguf};

/// The hyperparameters of a model of the Llama family.
#[derive(Debug, Clone)]
pub(super) struct Config {
    /// The number of layers.
    pub(super) layers: usize,
    /// The width of the residual stream.
    pub(super) width: usize,
    /// The inner width of the feed-forward layer.
    pub(super) inner: usize,
    /// The number of query heads.
    pub(super) heads: usize,
    /// The number of key and value heads; several query heads share one.
    pub(super) kv_heads: usize,
    /// The width of a head.
    pub(super) head: usize,
    /// Added to the mean square of a norm to avoid division by zero.
    pub(super) epsilon: f32,
    /// The rotary position embedding.
    pub(super) rope: Rope,
    /// The number of tokens in the vocabulary.
    pub(super) vocabulary: usize,
    /// The context length that the model was trained on.
    pub(super) trained: usize,
}

/// The parameters of the rotary position embedding.
#[derive(Debug, Clone)]
pub(super) struct Rope {
    /// How many elements of a head are rotated, in pairs.
    pub(super) rotary_dims: usize,
    /// The base: the longest wavelength is 2π times this.
    pub(super) base: f32,
    /// The divisor of positions (linear scaling).
    pub(super) scale_factor: f32,
    /// Which elements form a pair.
    pub(super) pairs: Pairs,
}

/// Which elements of a head form a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pairs {
    /// Adjacent elements; GGUF files of Llama models are permuted for this.
    Neighbours,
    /// One element of the first half and one of the second (GPT-NeoX).
    Halves,
}

impl Config {
    /// Reads the hyperparameters from the file's metadata.
    pub(super) fn read(file: &Gguf) -> Result<Self, EngineError> {
        let arch = file
            .text("general.architecture")
            .ok_or_else(|| file.invalid("`general.architecture` is missing"))?;
        let pairs = match arch {
            "llama" => Pairs::Neighbours,
            "qwen2" | "qwen3" => Pairs::Halves,
            other => {
                return Err(file.unsupported(format!(
                    "unsupported architecture `{other}`; supported: `llama`, `qwen2` and `qwen3`"
                )));
            }
        };
        let key = |name: &str| format!("{arch}.{name}");
        if file.number(&key("expert_count")).is_some_and(|n| n > 0) {
            return Err(file.unsupported("mixture-of-experts models are not supported"));
        }
        let width = file.required(&key("embedding_length"))?;
        let heads = file.required(&key("attention.head_count"))?;
        let kv_heads = file
            .number(&key("attention.head_count_kv"))
            .unwrap_or(heads);
        if heads == 0 || kv_heads == 0 || !heads.is_multiple_of(kv_heads) {
            return Err(file.invalid(format!(
                "{heads} heads are not a multiple of {kv_heads} key heads"
            )));
        }
        let head = file
            .number(&key("attention.key_length"))
            .unwrap_or(width / heads);
        let value = file.number(&key("attention.value_length"));
        if value.is_some_and(|value| value != head) {
            return Err(file.unsupported("keys and values of different lengths are not supported"));
        }
        let rotary_dims = file.number(&key("rope.dimension_count")).unwrap_or(head);
        if head == 0 || rotary_dims > head || !rotary_dims.is_multiple_of(2) {
            return Err(file.invalid(format!(
                "invalid rope dimension {rotary_dims} for heads of {head} elements"
            )));
        }
        let scale_factor = match file.text(&key("rope.scaling.type")) {
            None | Some("none") => 1.0,
            Some("linear") => file.float(&key("rope.scaling.factor")).unwrap_or(1.0),
            Some(other) => {
                return Err(file.unsupported(format!("unsupported position scaling `{other}`")));
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
                .ok_or_else(|| file.invalid("the epsilon of the norms is missing"))?,
            rope: Rope {
                rotary_dims,
                base: file.float(&key("rope.freq_base")).unwrap_or(10_000.0),
                scale_factor,
                pairs,
            },
            vocabulary: file.list("tokenizer.ggml.tokens").map_or(0, <[_]>::len),
            trained: file.required(&key("context_length"))?,
        };
        if config.layers == 0 || config.width == 0 || config.inner == 0 || config.trained == 0 {
            return Err(file.invalid("a dimension is 0"));
        }
        if config.vocabulary == 0 {
            return Err(file.invalid("the vocabulary is missing"));
        }
        Ok(config)
    }
}
