use super::config::{Pairs, Rope};

/// The sines and cosines for every position of the context window.
pub(super) struct RopeTable {
    pairs: Pairs,
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl RopeTable {
    /// Precomputes the table. `factors` divide the frequency of each pair (Llama 3.1's long context).
    pub(super) fn new(rope: &Rope, factors: Option<&[f32]>, window: usize) -> Self {
        let half = rope.rotary_dims / 2;
        let mut cos = Vec::with_capacity(window * half);
        let mut sin = Vec::with_capacity(window * half);
        #[expect(clippy::cast_precision_loss, reason = "positions are far below 2^52")]
        let frequencies: Vec<f64> = (0..half)
            .map(|i| {
                let exponent = -2.0 * i as f64 / rope.rotary_dims as f64;
                let factor = factors.map_or(1.0, |factors| f64::from(factors[i]));
                f64::from(rope.base).powf(exponent) / factor / f64::from(rope.scale_factor)
            })
            .collect();
        for position in 0..window {
            for frequency in &frequencies {
                #[expect(clippy::cast_precision_loss, reason = "positions are far below 2^52")]
                let angle = position as f64 * frequency;
                #[expect(clippy::cast_possible_truncation, reason = "between -1 and 1")]
                cos.push(angle.cos() as f32);
                #[expect(clippy::cast_possible_truncation, reason = "between -1 and 1")]
                sin.push(angle.sin() as f32);
            }
        }
        Self {
            pairs: rope.pairs,
            half,
            cos,
            sin,
        }
    }

    /// Rotates the heads of rows at the positions from `first` on.
    pub(super) fn rotate(&self, first: usize, rows: &mut [f32], row: usize, head: usize) {
        if self.half == 0 {
            return;
        }
        let angles = self
            .cos
            .chunks_exact(self.half)
            .zip(self.sin.chunks_exact(self.half));
        for (row, (cos, sin)) in rows.chunks_exact_mut(row).zip(angles.skip(first)) {
            for head in row.chunks_exact_mut(head) {
                match self.pairs {
                    Pairs::Neighbours => {
                        let (pairs, _) = head[..2 * self.half].as_chunks_mut::<2>();
                        for ((pair, &cos), &sin) in pairs.iter_mut().zip(cos).zip(sin) {
                            let [a, b] = *pair;
                            *pair = [a * cos - b * sin, a * sin + b * cos];
                        }
                    }
                    Pairs::Halves => {
                        let (one, other) = head[..2 * self.half].split_at_mut(self.half);
                        for (((a, b), &cos), &sin) in one.iter_mut().zip(other).zip(cos).zip(sin) {
                            (*a, *b) = (*a * cos - *b * sin, *a * sin + *b * cos);
                        }
                    }
                }
            }
        }
    }
}
