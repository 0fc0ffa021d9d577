use super::kernels::{self, View};
use super::workers::Workers;

/// Up to this many queries are computed one by one; more are computed together by matrix products.
const ONE_BY_ONE_MAX: usize = 4;

/// The number of queries in one matrix product: enough for fast products, and few enough to waste little work on
/// positions after each query.
const QUERY_BLOCK: usize = 64;

/// The dimensions of the attention heads.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head: usize,
}

/// The keys and values of one layer, one row per position. All memory is reserved at once; the system provides pages
/// only when they are written.
pub(super) struct Cache {
    keys: Vec<f32>,
    values: Vec<f32>,
    row: usize,
}

impl Cache {
    pub(super) fn new(window: usize, row: usize) -> Self {
        Self {
            keys: vec![0.0; window * row],
            values: vec![0.0; window * row],
            row,
        }
    }

    /// Writes rows starting at the position `first`.
    pub(super) fn put(&mut self, first: usize, keys: &[f32], values: &[f32]) {
        let start = first * self.row;
        self.keys[start..start + keys.len()].copy_from_slice(keys);
        self.values[start..start + values.len()].copy_from_slice(values);
    }

    /// Copies the first `len` rows of another cache.
    pub(super) fn copy(&mut self, from: &Self, len: usize) {
        let end = len * self.row;
        self.keys[..end].copy_from_slice(&from.keys[..end]);
        self.values[..end].copy_from_slice(&from.values[..end]);
    }
}

/// Scratch buffers, kept between calls.
#[derive(Default)]
pub(super) struct AttentionScratch {
    query: Vec<f32>,
    scores: Vec<f32>,
    out: Vec<f32>,
}

/// Computes attention for the queries at the positions from `first` on. Each query attends to the positions up to its
/// own. Rows of `query` and `out` contain all heads.
pub(super) fn attend(
    shape: Shape,
    cache: &Cache,
    first: usize,
    query: &[f32],
    out: &mut [f32],
    space: &mut AttentionScratch,
    workers: &Workers,
) {
    let row = shape.heads * shape.head;
    if query.len() / row <= ONE_BY_ONE_MAX {
        let rows = query.chunks_exact(row).zip(out.chunks_exact_mut(row));
        for (i, (query, out)) in rows.enumerate() {
            attend_one(shape, cache, first + i + 1, query, out, workers);
        }
        return;
    }
    let queries = query
        .chunks(QUERY_BLOCK * row)
        .zip(out.chunks_mut(QUERY_BLOCK * row));
    for (i, (query, out)) in queries.enumerate() {
        for kv_head in 0..shape.kv_heads {
            attend_many(
                shape,
                cache,
                first + i * QUERY_BLOCK,
                kv_head,
                query,
                out,
                space,
                workers,
            );
        }
    }
}

/// Computes one query over the first `seen` positions.
fn attend_one(
    shape: Shape,
    cache: &Cache,
    seen: usize,
    query: &[f32],
    out: &mut [f32],
    workers: &Workers,
) {
    let group = shape.heads / shape.kv_heads;
    #[expect(clippy::cast_precision_loss, reason = "widths are far below 2^24")]
    let scale = 1.0 / (shape.head as f32).sqrt();
    workers.split(out, shape.head, |first, out| {
        let mut scores = vec![0.0; seen];
        let mut scaled = vec![0.0; shape.head];
        for (i, out) in out.chunks_exact_mut(shape.head).enumerate() {
            let head = first + i;
            let query = &query[head * shape.head..(head + 1) * shape.head];
            for (scaled, query) in scaled.iter_mut().zip(query) {
                *scaled = query * scale;
            }
            let start = head / group * shape.head;
            let end = seen * cache.row;
            kernels::attend_one(
                &scaled,
                &cache.keys[start..end],
                &cache.values[start..end],
                cache.row,
                &mut scores,
                out,
            );
        }
    });
}

/// Computes several queries for the heads that share one key head.
#[expect(
    clippy::too_many_arguments,
    reason = "called once, and the arguments do not form a group"
)]
fn attend_many(
    shape: Shape,
    cache: &Cache,
    first: usize,
    kv_head: usize,
    query: &[f32],
    out: &mut [f32],
    space: &mut AttentionScratch,
    workers: &Workers,
) {
    let Shape {
        heads,
        kv_heads,
        head,
    } = shape;
    let row = heads * head;
    let count = query.len() / row;
    let seen = first + count;
    let group = heads / kv_heads;
    #[expect(clippy::cast_precision_loss, reason = "widths are far below 2^24")]
    let scale = 1.0 / (head as f32).sqrt();
    let AttentionScratch {
        query: queries,
        scores,
        out: mixed,
    } = space;

    // Stack the heads of the group: `group` rows per query.
    queries.clear();
    let own = kv_head * group * head..(kv_head + 1) * group * head;
    for query in query.chunks_exact(row) {
        queries.extend(query[own.clone()].iter().map(|q| q * scale));
    }
    scores.resize(count * group * seen, 0.0);
    mixed.resize(count * group * head, 0.0);
    let start = kv_head * head;
    let end = seen * cache.row;
    let of_cache = |data| View {
        data,
        rows: seen,
        columns: head,
        stride: cache.row,
    };
    let queries = View {
        data: queries,
        rows: count * group,
        columns: head,
        stride: head,
    };
    let threads = workers.count();
    let keys = of_cache(&cache.keys[start..end]);
    kernels::multiply_transposed(queries, keys, scores, seen, threads);
    workers.split(scores, seen, |row, scores| {
        for (i, scores) in scores.chunks_exact_mut(seen).enumerate() {
            // Causal mask: a query does not see later positions.
            let visible = first + (row + i) / group + 1;
            let (scores, hidden) = scores.split_at_mut(visible);
            kernels::softmax(scores);
            hidden.fill(0.0);
        }
    });
    let shares = View {
        data: scores,
        rows: count * group,
        columns: seen,
        stride: seen,
    };
    let values = of_cache(&cache.values[start..end]);
    kernels::multiply(shares, values, mixed, head, threads);
    let mixed = mixed.chunks_exact(group * head);
    for (out, mixed) in out.chunks_exact_mut(row).zip(mixed) {
        out[own.clone()].copy_from_slice(mixed);
    }
}
