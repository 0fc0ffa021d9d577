use candle_core::quantized::GgmlDType;
use half::f16;

/// The number of weights in a block, which share a scale (llama.cpp's `QK4_1`, `QK5_0`, `QK5_1` and `QK8_0`).
pub(super) const BLOCK: usize = 32;

/// Weights of one byte each: `scale * number + offset`, with a scale and an offset per block. Represents every 4- to
/// 8-bit type of this form without loss.
pub(super) struct Bytes {
    pub(super) numbers: Vec<i8>,
    pub(super) scales: Vec<f32>,
    /// The offsets; `None` if all are 0.
    pub(super) offsets: Option<Vec<f32>>,
}

/// A range of whole blocks of [`Bytes`].
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) numbers: &'a [i8],
    pub(super) scales: &'a [f32],
    /// The offsets; empty if all are 0.
    pub(super) offsets: &'a [f32],
}

impl Bytes {
    /// Unpacks the blocks of a file, as defined in `ggml-common.h` of llama.cpp: 16-bit scales and offsets, the first
    /// half of a block in the low four bits and the second half in the high ones, and fifth bits stored separately.
    pub(super) fn unpack(dtype: GgmlDType, data: &[u8]) -> Self {
        match dtype {
            GgmlDType::Q4_1 => {
                Self::blocks(data, |&[d0, d1, m0, m1, ref low @ ..]: &[u8; 20]| Block {
                    scale: [d0, d1],
                    offset: Some([m0, m1]),
                    numbers: halves(low, [0; 4], 0),
                })
            }
            GgmlDType::Q5_0 => Self::blocks(
                data,
                |&[d0, d1, h0, h1, h2, h3, ref low @ ..]: &[u8; 22]| Block {
                    scale: [d0, d1],
                    offset: None,
                    numbers: halves(low, [h0, h1, h2, h3], 16),
                },
            ),
            GgmlDType::Q5_1 => Self::blocks(
                data,
                |&[d0, d1, m0, m1, h0, h1, h2, h3, ref low @ ..]: &[u8; 24]| Block {
                    scale: [d0, d1],
                    offset: Some([m0, m1]),
                    numbers: halves(low, [h0, h1, h2, h3], 0),
                },
            ),
            GgmlDType::Q8_0 => Self::blocks(data, |&[d0, d1, ref numbers @ ..]: &[u8; 34]| Block {
                scale: [d0, d1],
                offset: None,
                numbers: numbers.map(u8::cast_signed),
            }),
            other => unreachable!("unsupported type {other:?}"),
        }
    }

    fn blocks<const N: usize>(data: &[u8], read: impl Fn(&[u8; N]) -> Block) -> Self {
        let blocks = data.as_chunks::<N>().0;
        let mut numbers = Vec::with_capacity(blocks.len() * BLOCK);
        let mut scales = Vec::with_capacity(blocks.len());
        let mut offsets = Vec::new();
        for block in blocks {
            let block = read(block);
            numbers.extend_from_slice(&block.numbers);
            scales.push(f16::from_le_bytes(block.scale).to_f32());
            offsets.extend(
                block
                    .offset
                    .map(|offset| f16::from_le_bytes(offset).to_f32()),
            );
        }
        Self {
            numbers,
            scales,
            offsets: (!offsets.is_empty()).then_some(offsets),
        }
    }

    /// The weights from `start` to `end`, both at block boundaries.
    pub(super) fn part(&self, start: usize, end: usize) -> Part<'_> {
        let blocks = start / BLOCK..end / BLOCK;
        Part {
            numbers: &self.numbers[start..end],
            scales: &self.scales[blocks.clone()],
            offsets: self
                .offsets
                .as_ref()
                .map_or(&[], |offsets| &offsets[blocks]),
        }
    }
}

struct Block {
    scale: [u8; 2],
    offset: Option<[u8; 2]>,
    numbers: [i8; BLOCK],
}

/// Combines the low four bits and the fifth bits of numbers, and subtracts `zero`.
fn halves(low: &[u8; BLOCK / 2], fifth: [u8; 4], zero: i8) -> [i8; BLOCK] {
    let fifth = u32::from_le_bytes(fifth);
    std::array::from_fn(|i| {
        let bits = if i < BLOCK / 2 {
            low[i] & 0xF
        } else {
            low[i - BLOCK / 2] >> 4
        };
        let high = if fifth >> i & 1 == 1 { 16 } else { 0 };
        (bits | high).cast_signed() - zero
    })
}

/// The sum of each block of a vector, to be multiplied with the offsets of weights.
pub(super) fn block_sums(x: &[f32]) -> Vec<f32> {
    x.chunks(BLOCK).map(|block| block.iter().sum()).collect()
}
