use super::kernels::{self, View};
use super::workers::Workers;

/// Up to this many queries are answered one by one; more together, by matrix products.
const FEW: usize = 4;

/// Queries that are answered together: enough for fast products, few enough that little is computed
/// for positions that come after them.
const TOGETHER: usize = 64;

/// The heads of an attention.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head: usize,
}

/// The keys and values of one layer, one row for each position. The memory is asked for at once;
/// where it is not written, the system does not provide it.
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

    /// Writes rows from the position `first` on.
    pub(super) fn put(&mut self, first: usize, keys: &[f32], values: &[f32]) {
        let start = first * self.row;
        self.keys[start..start + keys.len()].copy_from_slice(keys);
        self.values[start..start + values.len()].copy_from_slice(values);
    }

    /// Takes over the first `len` rows of another.
    pub(super) fn copy(&mut self, from: &Self, len: usize) {
        let end = len * self.row;
        self.keys[..end].copy_from_slice(&from.keys[..end]);
        self.values[..end].copy_from_slice(&from.values[..end]);
    }
}

/// Space that is kept between calls.
#[derive(Default)]
pub(super) struct Space {
    query: Vec<f32>,
    scores: Vec<f32>,
    out: Vec<f32>,
}

/// Answers the queries at the positions from `first` on, each from the positions up to its own. Rows
/// of `query` and `out` hold all heads.
pub(super) fn attend(
    shape: Shape,
    cache: &Cache,
    first: usize,
    query: &[f32],
    out: &mut [f32],
    space: &mut Space,
    workers: &Workers,
) {
    let row = shape.heads * shape.head;
    if query.len() / row <= FEW {
        let rows = query.chunks_exact(row).zip(out.chunks_exact_mut(row));
        for (i, (query, out)) in rows.enumerate() {
            attend_one(shape, cache, first + i + 1, query, out, workers);
        }
        return;
    }
    let queries = query
        .chunks(TOGETHER * row)
        .zip(out.chunks_mut(TOGETHER * row));
    for (i, (query, out)) in queries.enumerate() {
        for kv_head in 0..shape.kv_heads {
            attend_many(
                shape,
                cache,
                first + i * TOGETHER,
                kv_head,
                query,
                out,
                space,
                workers,
            );
        }
    }
}

/// Answers one query from the first `seen` positions.
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

/// Answers a few queries for the heads that share one key head.
#[expect(
    clippy::too_many_arguments,
    reason = "one call, and no two belong together"
)]
fn attend_many(
    shape: Shape,
    cache: &Cache,
    first: usize,
    kv_head: usize,
    query: &[f32],
    out: &mut [f32],
    space: &mut Space,
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
    let Space {
        query: queries,
        scores,
        out: mixed,
    } = space;

    // The heads of the group one under the other: for each query `group` rows.
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
            // A query sees nothing after its own position.
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
