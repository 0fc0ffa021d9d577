//! The inference engine of the embedded model: it reads a GGUF file and evaluates the model behind [`Engine`].
//!
//! It is a separate package so that debug builds can optimize it alone: without optimization it is fifty times
//! slower, and optimizing everything else takes ten minutes.
//!
//! The engine runs models of the Llama family on the CPU: token embedding, layers of grouped-query attention and a
//! gated feed-forward network with RMS norms, and the logits of the last position. Weights stay quantized; sums are
//! computed in 32-bit floats.

mod attention;
mod bytes;
mod config;
mod engine;
mod gguf;
mod kernels;
mod matrix;
mod rope;
mod workers;

use std::num::NonZeroUsize;
use std::sync::Arc;

use attention::{Cache, Shape};
use config::Config;
use matrix::Matrix;
use rope::RopeTable;
use workers::Workers;

pub use engine::{Engine, EngineError, Stop};
pub use gguf::Gguf;
pub use workers::default_threads;

/// The number of tokens evaluated together. A larger batch makes the products a few percent faster; a smaller one
/// reacts to cancellation sooner and needs less memory.
const BATCH: usize = 256;

/// A model of the Llama family with its token sequence.
pub struct Llama {
    model: Arc<Model>,
    cache: Vec<Cache>,
    len: usize,
    space: LayerScratch,
}

/// The part that all forks share.
struct Model {
    config: Config,
    embedding: Matrix,
    layers: Vec<Layer>,
    norm: Vec<f32>,
    /// The output matrix; `None` if the embedding is used for it.
    output: Option<Matrix>,
    rope: RopeTable,
    window: usize,
    workers: Workers,
}

struct Layer {
    attention_norm: Vec<f32>,
    query: Projection,
    key: Projection,
    value: Projection,
    mix: Matrix,
    forward_norm: Vec<f32>,
    gate: Matrix,
    up: Matrix,
    down: Matrix,
}

/// A weight matrix with the optional extras of some models.
struct Projection {
    matrix: Matrix,
    /// The bias (Qwen2).
    bias: Option<Vec<f32>>,
    /// The weights of a norm per head (Qwen3).
    norm: Option<Vec<f32>>,
}

/// Scratch buffers for intermediate results, kept between calls.
#[derive(Default)]
struct LayerScratch {
    stream: Vec<f32>,
    normed: Vec<f32>,
    query: Vec<f32>,
    key: Vec<f32>,
    value: Vec<f32>,
    mixed: Vec<f32>,
    gate: Vec<f32>,
    up: Vec<f32>,
    result: Vec<f32>,
    logits: Vec<f32>,
    weights: Vec<f32>,
    attention: attention::AttentionScratch,
}

impl Llama {
    /// Loads a model from a file.
    pub fn load(
        file: &mut Gguf,
        window: usize,
        threads: NonZeroUsize,
    ) -> Result<Self, EngineError> {
        let config = Config::read(file)?;
        let window = window.min(config.trained);
        let embedding = matrix(file, "token_embd.weight", config.vocabulary, config.width)?;
        let layers = (0..config.layers)
            .map(|layer| Layer::load(file, &config, layer))
            .collect::<Result<_, _>>()?;
        let norm = vector(file, "output_norm.weight", config.width)?;
        let output = file
            .has_tensor("output.weight")
            .then(|| matrix(file, "output.weight", config.vocabulary, config.width))
            .transpose()?;
        let factors = file
            .has_tensor("rope_freqs.weight")
            .then(|| vector(file, "rope_freqs.weight", config.rope.rotary_dims / 2))
            .transpose()?;
        let rope = RopeTable::new(&config.rope, factors.as_deref(), window);
        Ok(Self::new(Arc::new(Model {
            config,
            embedding,
            layers,
            norm,
            output,
            rope,
            window,
            workers: Workers::new(threads),
        })))
    }

    fn new(model: Arc<Model>) -> Self {
        let row = model.config.kv_heads * model.config.head;
        let cache = (0..model.config.layers)
            .map(|_| Cache::new(model.window, row))
            .collect();
        Self {
            model,
            cache,
            len: 0,
            space: LayerScratch::default(),
        }
    }

    /// Evaluates one batch of tokens.
    fn eval_batch(&mut self, tokens: &[u32], stop: &Stop) -> Result<(), EngineError> {
        let Self {
            model,
            cache,
            len,
            space,
        } = self;
        let Config {
            width,
            inner,
            head,
            heads,
            kv_heads,
            epsilon,
            ..
        } = model.config;
        let rows = tokens.len();
        let workers = &model.workers;
        let LayerScratch {
            stream,
            normed,
            query,
            key,
            value,
            mixed,
            gate,
            up,
            result,
            weights,
            attention,
            ..
        } = space;
        stream.resize(rows * width, 0.0);
        normed.resize(rows * width, 0.0);
        query.resize(rows * heads * head, 0.0);
        key.resize(rows * kv_heads * head, 0.0);
        value.resize(rows * kv_heads * head, 0.0);
        mixed.resize(rows * heads * head, 0.0);
        gate.resize(rows * inner, 0.0);
        up.resize(rows * inner, 0.0);
        result.resize(rows * width, 0.0);
        for (&token, row) in tokens.iter().zip(stream.chunks_exact_mut(width)) {
            model.embedding.dequantize(token as usize, row);
        }
        let shape = Shape {
            heads,
            kv_heads,
            head,
        };
        for (layer, cache) in model.layers.iter().zip(cache) {
            if stop.is_raised() {
                return Err(EngineError::Stopped);
            }
            norm_rows(stream, &layer.attention_norm, epsilon, normed);
            for (projection, out) in [
                (&layer.query, &mut *query),
                (&layer.key, &mut *key),
                (&layer.value, &mut *value),
            ] {
                projection.apply(rows, normed, out, weights, epsilon, workers);
            }
            model.rope.rotate(*len, query, heads * head, head);
            model.rope.rotate(*len, key, kv_heads * head, head);
            cache.put(*len, key, value);
            attention::attend(shape, cache, *len, query, mixed, attention, workers);
            layer.mix.multiply(rows, mixed, result, weights, workers);
            add(stream, result);

            norm_rows(stream, &layer.forward_norm, epsilon, normed);
            layer.gate.multiply(rows, normed, gate, weights, workers);
            layer.up.multiply(rows, normed, up, weights, workers);
            workers.split(gate, 1, |first, gate| {
                kernels::swiglu(gate, &up[first..first + gate.len()]);
            });
            layer.down.multiply(rows, gate, result, weights, workers);
            add(stream, result);
        }
        *len += rows;
        Ok(())
    }

    /// Computes the logits after the last row of the batch.
    fn logits(&mut self) {
        let Self { model, space, .. } = self;
        let Config {
            width,
            epsilon,
            vocabulary,
            ..
        } = model.config;
        let LayerScratch {
            stream,
            normed,
            logits,
            weights,
            ..
        } = space;
        let last = &stream[stream.len() - width..];
        normed.resize(width, 0.0);
        kernels::rms_norm(last, &model.norm, epsilon, &mut normed[..width]);
        logits.resize(vocabulary, 0.0);
        model.output.as_ref().unwrap_or(&model.embedding).multiply(
            1,
            &normed[..width],
            logits,
            weights,
            &model.workers,
        );
    }
}

impl Engine for Llama {
    fn eval(&mut self, tokens: &[u32], stop: &Stop) -> Result<&[f32], EngineError> {
        let wanted = self.len + tokens.len();
        if wanted > self.model.window {
            return Err(EngineError::Full {
                wanted,
                window: self.model.window,
            });
        }
        let vocabulary = self.model.config.vocabulary;
        if let Some(&token) = tokens.iter().find(|&&t| t as usize >= vocabulary) {
            return Err(EngineError::Token(token));
        }
        if !tokens.is_empty() {
            let model = Arc::clone(&self.model);
            model.workers.enter(|| {
                for batch in tokens.chunks(BATCH) {
                    self.eval_batch(batch, stop)?;
                }
                self.logits();
                Ok::<_, EngineError>(())
            })?;
        }
        Ok(&self.space.logits)
    }

    fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    fn fork(&self) -> Box<dyn Engine> {
        let mut fork = Self::new(Arc::clone(&self.model));
        for (to, from) in fork.cache.iter_mut().zip(&self.cache) {
            to.copy(from, self.len);
        }
        fork.len = self.len;
        fork.space.logits.clone_from(&self.space.logits);
        Box::new(fork)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn window(&self) -> usize {
        self.model.window
    }
}

impl Layer {
    fn load(file: &mut Gguf, config: &Config, layer: usize) -> Result<Self, EngineError> {
        let Config {
            width,
            inner,
            head,
            heads,
            kv_heads,
            ..
        } = *config;
        let name = |part: &str| format!("blk.{layer}.{part}.weight");
        Ok(Self {
            attention_norm: vector(file, &name("attn_norm"), width)?,
            query: Projection::load(file, layer, "attn_q", heads * head, width, head)?,
            key: Projection::load(file, layer, "attn_k", kv_heads * head, width, head)?,
            value: Projection::load(file, layer, "attn_v", kv_heads * head, width, head)?,
            mix: matrix(file, &name("attn_output"), width, heads * head)?,
            forward_norm: vector(file, &name("ffn_norm"), width)?,
            gate: matrix(file, &name("ffn_gate"), inner, width)?,
            up: matrix(file, &name("ffn_up"), inner, width)?,
            down: matrix(file, &name("ffn_down"), width, inner)?,
        })
    }
}

impl Projection {
    fn load(
        file: &mut Gguf,
        layer: usize,
        part: &str,
        rows: usize,
        columns: usize,
        head: usize,
    ) -> Result<Self, EngineError> {
        let name = format!("blk.{layer}.{part}");
        let mut optional = |name: String, len: usize| {
            file.has_tensor(&name)
                .then(|| vector(file, &name, len))
                .transpose()
        };
        Ok(Self {
            bias: optional(format!("{name}.bias"), rows)?,
            norm: optional(format!("{name}_norm.weight"), head)?,
            matrix: matrix(file, &format!("{name}.weight"), rows, columns)?,
        })
    }

    fn apply(
        &self,
        rows: usize,
        x: &[f32],
        out: &mut [f32],
        scratch: &mut Vec<f32>,
        epsilon: f32,
        workers: &Workers,
    ) {
        self.matrix.multiply(rows, x, out, scratch, workers);
        if let Some(bias) = &self.bias {
            for row in out.chunks_exact_mut(bias.len()) {
                add(row, bias);
            }
        }
        if let Some(norm) = &self.norm {
            for row in out.chunks_exact_mut(norm.len()) {
                let x = row.to_vec();
                kernels::rms_norm(&x, norm, epsilon, row);
            }
        }
    }
}

fn norm_rows(x: &[f32], weights: &[f32], epsilon: f32, out: &mut [f32]) {
    let rows = x.chunks_exact(weights.len());
    for (x, out) in rows.zip(out.chunks_exact_mut(weights.len())) {
        kernels::rms_norm(x, weights, epsilon, out);
    }
}

fn add(to: &mut [f32], what: &[f32]) {
    for (to, what) in to.iter_mut().zip(what) {
        *to += what;
    }
}

fn matrix(file: &mut Gguf, name: &str, rows: usize, columns: usize) -> Result<Matrix, EngineError> {
    let tensor = file.tensor(name)?;
    let matrix =
        Matrix::new(tensor).map_err(|reason| file.unsupported(format!("`{name}`: {reason}")))?;
    let found = (matrix.rows(), matrix.columns());
    if found != (rows, columns) {
        return Err(file.invalid(format!(
            "`{name}` has the shape {} by {}, expected {rows} by {columns}",
            found.0, found.1
        )));
    }
    Ok(matrix)
}

fn vector(file: &mut Gguf, name: &str, len: usize) -> Result<Vec<f32>, EngineError> {
    let vector = file.floats(name)?;
    if vector.len() == len {
        Ok(vector)
    } else {
        Err(file.invalid(format!(
            "`{name}` has {} elements, expected {len}",
            vector.len()
        )))
    }
}

/// The context length that the file's model was trained on, in tokens.
pub fn trained_window(file: &Gguf) -> Result<usize, EngineError> {
    Ok(Config::read(file)?.trained)
}
