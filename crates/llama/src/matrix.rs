use candle_core::quantized::k_quants::{
    BlockQ2K, BlockQ3K, BlockQ4_0, BlockQ4K, BlockQ5K, BlockQ6K,
};
use candle_core::quantized::{GgmlDType, GgmlType, QTensor};
use half::{bf16, f16};

use super::bytes::{Bytes, block_sums};
use super::kernels::{self, View};
use super::workers::Workers;

/// From this many rows on, a prompt is multiplied with dequantized weights; below, row by row with quantized ones.
/// Measured: both cost the same at 4 to 6 rows.
const DEQUANTIZE_FROM: usize = 6;

/// The number of weight rows that are dequantized at a time: for small models, about the size of the L2 cache.
const PANEL: usize = 256;

/// A weight matrix with `rows` outputs and `columns` inputs.
pub(super) struct Matrix {
    rows: usize,
    columns: usize,
    weights: Weights,
}

enum Weights {
    /// One byte per weight, with a scale and an optional offset per block: the fast path.
    Bytes(Bytes),
    /// Any other type, stored by candle.
    Other(QTensor),
}

/// Calls `$work::<T>($tensor, …)` with the tensor's block type.
macro_rules! by_type {
    ($tensor:expr, $work:ident($($arg:expr),*)) => {
        match $tensor.dtype() {
            GgmlDType::F32 => $work::<f32>($tensor, $($arg),*),
            GgmlDType::F16 => $work::<f16>($tensor, $($arg),*),
            GgmlDType::BF16 => $work::<bf16>($tensor, $($arg),*),
            GgmlDType::Q4_0 => $work::<BlockQ4_0>($tensor, $($arg),*),
            GgmlDType::Q2K => $work::<BlockQ2K>($tensor, $($arg),*),
            GgmlDType::Q3K => $work::<BlockQ3K>($tensor, $($arg),*),
            GgmlDType::Q4K => $work::<BlockQ4K>($tensor, $($arg),*),
            GgmlDType::Q5K => $work::<BlockQ5K>($tensor, $($arg),*),
            GgmlDType::Q6K => $work::<BlockQ6K>($tensor, $($arg),*),
            other => unreachable!("`Matrix::new` rejects {other:?}"),
        }
    };
}

impl Matrix {
    /// Creates a matrix from a tensor.
    ///
    /// # Errors
    /// A message, if the tensor is not two-dimensional or its type is not supported.
    pub(super) fn new(tensor: QTensor) -> Result<Self, String> {
        let &[rows, columns] = tensor.shape().dims() else {
            return Err(format!(
                "expected a matrix, got a tensor of shape {:?}",
                tensor.shape()
            ));
        };
        let dtype = tensor.dtype();
        if rows == 0 || columns == 0 || !columns.is_multiple_of(dtype.block_size()) {
            return Err(format!(
                "a {dtype:?} matrix cannot have the shape {rows} by {columns}"
            ));
        }
        let weights = match dtype {
            GgmlDType::Q4_1 | GgmlDType::Q5_0 | GgmlDType::Q5_1 | GgmlDType::Q8_0 => {
                let data = tensor.data().map_err(|e| e.to_string())?;
                Weights::Bytes(Bytes::unpack(dtype, &data))
            }
            GgmlDType::F32
            | GgmlDType::F16
            | GgmlDType::BF16
            | GgmlDType::Q4_0
            | GgmlDType::Q2K
            | GgmlDType::Q3K
            | GgmlDType::Q4K
            | GgmlDType::Q5K
            | GgmlDType::Q6K => Weights::Other(tensor),
            GgmlDType::Q8_1 | GgmlDType::Q8K => {
                return Err(format!("unsupported weight type {dtype:?}"));
            }
        };
        Ok(Self {
            rows,
            columns,
            weights,
        })
    }

    /// The number of outputs.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// The number of inputs.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// Dequantizes the rows from `first` on into `out`, whose length is a multiple of the row length.
    pub(super) fn dequantize(&self, first: usize, out: &mut [f32]) {
        match &self.weights {
            Weights::Bytes(bytes) => {
                let start = first * self.columns;
                kernels::dequantize(bytes.part(start, start + out.len()), out);
            }
            Weights::Other(tensor) => by_type!(tensor, dequantize(first * self.columns, out)),
        }
    }

    /// Multiplies the matrix with `m` vectors, stored one after the other in `x`, and writes the results to `out` in
    /// the same layout. `scratch` is a buffer that is kept between calls.
    pub(super) fn multiply(
        &self,
        m: usize,
        x: &[f32],
        out: &mut [f32],
        scratch: &mut Vec<f32>,
        workers: &Workers,
    ) {
        if m < DEQUANTIZE_FROM {
            let rows = x.chunks_exact(self.columns);
            for (x, out) in rows.zip(out.chunks_exact_mut(self.rows)) {
                self.multiply_one(x, out, workers);
            }
            return;
        }
        let panel = PANEL.min(self.rows);
        scratch.resize(panel * self.columns, 0.0);
        for first in (0..self.rows).step_by(panel) {
            let count = panel.min(self.rows - first);
            let floats = &mut scratch[..count * self.columns];
            workers.split(floats, self.columns, |row, floats| {
                self.dequantize(first + row, floats);
            });
            let x = View {
                data: x,
                rows: m,
                columns: self.columns,
                stride: self.columns,
            };
            let weights = View {
                data: floats,
                rows: count,
                columns: self.columns,
                stride: self.columns,
            };
            kernels::multiply_transposed(x, weights, &mut out[first..], self.rows, workers.count());
        }
    }

    fn multiply_one(&self, x: &[f32], out: &mut [f32], workers: &Workers) {
        match &self.weights {
            Weights::Bytes(bytes) => {
                let sums = bytes.offsets.as_ref().map(|_| block_sums(x));
                workers.split(out, 1, |first, out| {
                    let start = first * self.columns;
                    let part = bytes.part(start, start + out.len() * self.columns);
                    kernels::gemv(part, x, sums.as_deref().unwrap_or(&[]), out);
                });
            }
            Weights::Other(tensor) => by_type!(tensor, gemv(x, out, workers)),
        }
    }
}

fn dequantize<T: GgmlType>(tensor: &QTensor, start: usize, out: &mut [f32]) {
    let blocks = view::<T>(tensor);
    let first = start / T::BLCK_SIZE;
    T::to_float(&blocks[first..first + out.len() / T::BLCK_SIZE], out);
}

fn gemv<T: GgmlType>(tensor: &QTensor, x: &[f32], out: &mut [f32], workers: &Workers) {
    let mut quantized = vec![T::VecDotType::zeros(); x.len() / T::VecDotType::BLCK_SIZE];
    if T::DIRECT_COPY {
        T::VecDotType::direct_copy(x, &mut quantized);
    } else {
        T::VecDotType::from_float(x, &mut quantized);
    }
    let blocks = view::<T>(tensor);
    let width = x.len() / T::BLCK_SIZE;
    workers.split(out, 1, |first, out| {
        for (row, out) in blocks[first * width..].chunks_exact(width).zip(out) {
            *out = T::vec_dot(x.len(), row, &quantized);
        }
    });
}

fn view<T: GgmlType>(tensor: &QTensor) -> &[T] {
    kernels::blocks::<T>(tensor).expect("the tensor has the type that was matched")
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;

    use candle_core::{Device, Tensor};

    use super::*;

    fn noise(n: usize, seed: u64) -> Vec<f32> {
        let mut rng = fastrand::Rng::with_seed(seed);
        (0..n).map(|_| rng.f32() * 2.0 - 0.7).collect()
    }

    #[test]
    fn every_type_is_unpacked_and_multiplied_correctly() {
        let (rows, columns) = (9, 512);
        let floats = noise(rows * columns, 1);
        let floats = Tensor::from_vec(floats, (rows, columns), &Device::Cpu).unwrap();
        for (dtype, tolerance) in [
            (GgmlDType::F32, 1e-4),
            (GgmlDType::F16, 0.1),
            (GgmlDType::BF16, 1.0),
            (GgmlDType::Q4_1, 1e-4),
            (GgmlDType::Q5_0, 1e-4),
            (GgmlDType::Q5_1, 1e-4),
            (GgmlDType::Q8_0, 1e-4),
            // These types round the input vector to 8 bits.
            (GgmlDType::Q4_0, 0.3),
            (GgmlDType::Q2K, 0.3),
            (GgmlDType::Q3K, 0.3),
            (GgmlDType::Q4K, 0.3),
            (GgmlDType::Q5K, 0.3),
            (GgmlDType::Q6K, 0.3),
        ] {
            let tensor = QTensor::quantize(&floats, dtype).unwrap();
            let expected = tensor.dequantize(&Device::Cpu).unwrap();
            let expected: Vec<f32> = expected.flatten_all().unwrap().to_vec1().unwrap();
            let matrix = Matrix::new(tensor).unwrap();
            let mut found = vec![0.0; 2 * columns];
            matrix.dequantize(3, &mut found);
            for (found, expected) in found.iter().zip(&expected[3 * columns..]) {
                assert!((found - expected).abs() < 1e-6, "{dtype:?}");
            }
            for threads in [1, 3] {
                let workers = Workers::new(NonZeroUsize::new(threads).unwrap());
                for m in [1, 2, DEQUANTIZE_FROM, 17] {
                    let x = noise(m * columns, 2);
                    let mut out = vec![0.0; m * rows];
                    matrix.multiply(m, &x, &mut out, &mut Vec::new(), &workers);
                    for (x, out) in x.chunks(columns).zip(out.chunks(rows)) {
                        for (row, out) in expected.chunks(columns).zip(out) {
                            let pairs = row.iter().zip(x);
                            let sum: f64 = pairs.map(|(a, b)| f64::from(a * b)).sum();
                            let error = (f64::from(*out) - sum).abs();
                            assert!(error < tolerance, "{dtype:?}, {m} rows: {error}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn invalid_matrices_are_rejected() {
        let vector = Tensor::zeros(64, candle_core::DType::F32, &Device::Cpu).unwrap();
        let vector = QTensor::quantize(&vector, GgmlDType::Q8_0).unwrap();
        assert!(Matrix::new(vector).is_err());
    }
}
