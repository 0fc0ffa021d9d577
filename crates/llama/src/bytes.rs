use candle_core::quantized::GgmlDType;
use half::f16;

/// Weights of one block share a scale (llama.cpp's `QK4_1`, `QK5_0`, `QK5_1` and `QK8_0`).
pub(super) const BLOCK: usize = 32;

/// Weights of a byte each: `scale * number + offset`, with a scale and an offset for each block. Holds
/// every type of 4 to 8 bits that is made so without any loss.
pub(super) struct Bytes {
    pub(super) numbers: Vec<i8>,
    pub(super) scales: Vec<f32>,
    /// `None` if they are all 0.
    pub(super) offsets: Option<Vec<f32>>,
}

/// Some whole blocks of [`Bytes`].
#[derive(Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) numbers: &'a [i8],
    pub(super) scales: &'a [f32],
    /// Empty if they are all 0.
    pub(super) offsets: &'a [f32],
}

impl Bytes {
    /// Takes the blocks of a file apart, as `ggml-common.h` of llama.cpp puts them together: scales and
    /// offsets of 16 bits; the first half of a block in the low four bits, the second in the high ones;
    /// fifth bits by themselves.
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
            other => unreachable!("{other:?} is not made of bytes"),
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

    /// The weights from `start` to `end`, both at the bounds of blocks.
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

/// Puts numbers together from their low four bits and their fifth, and takes `zero` off.
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

/// The sum of each block of a vector: what the offsets of weights are multiplied with.
pub(super) fn block_sums(x: &[f32]) -> Vec<f32> {
    x.chunks(BLOCK).map(|block| block.iter().sum()).collect()
}
