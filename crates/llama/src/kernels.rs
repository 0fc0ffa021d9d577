//! The inner loops. Each is plain Rust that the compiler vectorizes. Copies for AVX2 are selected at run time, so
//! that a build for the baseline CPU is fast too.
//!
//! This file contains all unsafe code of the embedded model: calls of the AVX2 copies, calls of `gemm`, and the typed
//! view of candle's quantized blocks.
#![expect(
    unsafe_code,
    reason = "calls of AVX2 code after detection, of gemm, and one typed view; each has a SAFETY comment"
)]
#![expect(
    clippy::inline_always,
    reason = "a body must be inlined into each copy, or it is compiled for the baseline CPU"
)]

use std::borrow::Cow;

use candle_core::quantized::{GgmlType, QTensor};
use gemm::Parallelism;

use super::bytes::{BLOCK, Part};

/// The number of lanes that the loops are written for: two AVX registers, or four of SSE and NEON.
const LANES: usize = 16;

/// Defines a function that calls its generic body with the best instructions of this CPU. The body's parameter says
/// whether fused multiply-add is a single instruction.
macro_rules! dispatched {
    ($(#[$doc:meta])* fn $name:ident = $body:ident($($arg:ident: $ty:ty),*) $(-> $ret:ty)?) => {
        $(#[$doc])*
        pub(super) fn $name($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($arg: $ty),*) $(-> $ret)? {
                    $body::<true>($($arg),*)
                }
                if has_avx2() {
                    // SAFETY: the CPU has the features that the function is compiled for.
                    return unsafe { avx2($($arg),*) };
                }
                $body::<false>($($arg),*)
            }
            #[cfg(not(target_arch = "x86_64"))]
            {
                $body::<{ cfg!(target_arch = "aarch64") }>($($arg),*)
            }
        }
    };
}

/// Whether the CPU has the features that the AVX2 copies need.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma")
}

/// `a * b + c`, fused if the CPU has an instruction for it.
#[inline(always)]
fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn sum_lanes(mut lanes: [f32; LANES]) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Multiplies a matrix, row by row in `weights`, with the vector `x`; `sums` are the block sums of `x`.
pub(super) fn gemv(weights: Part<'_>, x: &[f32], sums: &[f32], out: &mut [f32]) {
    let rows = weights.numbers.chunks_exact(x.len());
    let width = x.len() / BLOCK;
    let rows = rows.zip(weights.scales.chunks_exact(width));
    for ((row, scales), out) in rows.zip(out.iter_mut()) {
        #[cfg(target_arch = "x86_64")]
        if has_avx2() {
            // SAFETY: the CPU has the features that the function is compiled for.
            *out = unsafe { dot_bytes_avx2(row, scales, x) };
            continue;
        }
        *out = dot_bytes(row, scales, x);
    }
    if !weights.offsets.is_empty() {
        add_offsets(weights.offsets, sums, out);
    }
}

dispatched! {
    /// Adds the contribution of the block offsets.
    fn add_offsets = add_offsets_body(offsets: &[f32], sums: &[f32], out: &mut [f32])
}

#[inline(always)]
fn add_offsets_body<const FMA: bool>(offsets: &[f32], sums: &[f32], out: &mut [f32]) {
    for (offsets, out) in offsets.chunks_exact(sums.len()).zip(out) {
        *out += dot_body::<FMA>(offsets, sums);
    }
}

fn dot_bytes(weights: &[i8], scales: &[f32], x: &[f32]) -> f32 {
    let mut sum = [0f32; LANES];
    let blocks = weights.as_chunks::<BLOCK>().0.iter();
    let xs = x.as_chunks::<BLOCK>().0.iter();
    for ((w, x), &scale) in blocks.zip(xs).zip(scales) {
        for l in 0..LANES {
            let part = f32::from(w[l]) * x[l] + f32::from(w[l + LANES]) * x[l + LANES];
            sum[l] += part * scale;
        }
    }
    sum_lanes(sum)
}

/// Like [`dot_bytes`], vectorized by hand, because the compiler does not use the instruction that widens eight bytes.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_bytes_avx2(weights: &[i8], scales: &[f32], x: &[f32]) -> f32 {
    use std::arch::x86_64::{
        _mm_loadl_epi64, _mm256_cvtepi8_epi32, _mm256_cvtepi32_ps, _mm256_fmadd_ps,
        _mm256_loadu_ps, _mm256_mul_ps, _mm256_set1_ps, _mm256_setzero_ps, _mm256_storeu_ps,
    };
    let mut sum = _mm256_setzero_ps();
    let blocks = weights.as_chunks::<BLOCK>().0.iter();
    let xs = x.as_chunks::<BLOCK>().0.iter();
    for ((w, x), &scale) in blocks.zip(xs).zip(scales) {
        let (w, x) = (w.as_chunks::<8>().0, x.as_chunks::<8>().0);
        let eight = |i: usize| {
            // SAFETY: reads eight bytes from an array of eight; alignment is not required.
            let bytes = unsafe { _mm_loadl_epi64(w[i].as_ptr().cast()) };
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes))
        };
        // SAFETY: reads eight floats from an array of eight; alignment is not required.
        let input = |i: usize| unsafe { _mm256_loadu_ps(x[i].as_ptr()) };
        let a = _mm256_fmadd_ps(eight(1), input(1), _mm256_mul_ps(eight(0), input(0)));
        let b = _mm256_fmadd_ps(eight(3), input(3), _mm256_mul_ps(eight(2), input(2)));
        let scale = _mm256_set1_ps(scale);
        sum = _mm256_fmadd_ps(a, scale, sum);
        sum = _mm256_fmadd_ps(b, scale, sum);
    }
    let mut lanes = [0f32; 8];
    // SAFETY: writes eight floats to an array of eight; alignment is not required.
    unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
    lanes.iter().sum()
}

dispatched! {
    /// Dequantizes weights to floats.
    fn dequantize = dequantize_body(weights: Part<'_>, out: &mut [f32])
}

#[inline(always)]
fn dequantize_body<const FMA: bool>(weights: Part<'_>, out: &mut [f32]) {
    let blocks = weights.numbers.as_chunks::<BLOCK>().0.iter();
    let blocks = blocks
        .zip(weights.scales)
        .zip(out.as_chunks_mut::<BLOCK>().0);
    if weights.offsets.is_empty() {
        for ((numbers, &scale), out) in blocks {
            for l in 0..BLOCK {
                out[l] = f32::from(numbers[l]) * scale;
            }
        }
    } else {
        for (((numbers, &scale), out), &offset) in blocks.zip(weights.offsets) {
            for l in 0..BLOCK {
                out[l] = mul_add::<FMA>(f32::from(numbers[l]), scale, offset);
            }
        }
    }
}

/// The dot product of two vectors of the same length.
#[inline(always)]
fn dot_body<const FMA: bool>(a: &[f32], b: &[f32]) -> f32 {
    let mut sum = [0f32; LANES];
    let (a, a_rest) = a.as_chunks::<LANES>();
    let (b, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a.iter().zip(b) {
        for l in 0..LANES {
            sum[l] = mul_add::<FMA>(a[l], b[l], sum[l]);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sum_lanes(sum) + rest
}

dispatched! {
    /// Attention of one query over the positions of a cache: writes the scores to `scores` and the weighted sum of
    /// the values to `out`. Rows of the cache are `stride` floats apart.
    fn attend_one = attend_one_body(query: &[f32], keys: &[f32], values: &[f32], stride: usize, scores: &mut [f32], out: &mut [f32])
}

#[inline(always)]
fn attend_one_body<const FMA: bool>(
    query: &[f32],
    keys: &[f32],
    values: &[f32],
    stride: usize,
    scores: &mut [f32],
    out: &mut [f32],
) {
    let dim = query.len();
    for (score, key) in scores.iter_mut().zip(keys.chunks(stride)) {
        *score = dot_body::<FMA>(query, &key[..dim]);
    }
    let total = exp_shifted_body::<FMA>(scores);
    out.fill(0.0);
    for (&weight, value) in scores.iter().zip(values.chunks(stride)) {
        for (out, &value) in out.iter_mut().zip(&value[..dim]) {
            *out = mul_add::<FMA>(weight, value, *out);
        }
    }
    let scale = 1.0 / total;
    for out in out {
        *out *= scale;
    }
}

dispatched! {
    /// Softmax, in place.
    fn softmax = softmax_body(values: &mut [f32])
}

#[inline(always)]
fn softmax_body<const FMA: bool>(values: &mut [f32]) {
    let scale = 1.0 / exp_shifted_body::<FMA>(values);
    for value in values {
        *value *= scale;
    }
}

/// Replaces each value with `exp(value - max)` and returns the sum.
#[inline(always)]
fn exp_shifted_body<const FMA: bool>(values: &mut [f32]) -> f32 {
    let mut top = [f32::NEG_INFINITY; LANES];
    let (chunks, rest) = values.as_chunks_mut::<LANES>();
    for chunk in chunks.iter() {
        for l in 0..LANES {
            top[l] = if chunk[l] > top[l] { chunk[l] } else { top[l] };
        }
    }
    let greatest = top
        .iter()
        .chain(rest.iter())
        .copied()
        .fold(f32::NEG_INFINITY, f32::max);
    let mut sum = [0f32; LANES];
    for chunk in chunks {
        for l in 0..LANES {
            chunk[l] = exp::<FMA>(chunk[l] - greatest);
            sum[l] += chunk[l];
        }
    }
    let mut total = sum_lanes(sum);
    for value in rest {
        *value = exp::<FMA>(*value - greatest);
        total += *value;
    }
    total
}

/// `e^x` with an error of about 2 ulp; below -87 the result is almost 0. The constants are from Cephes' `expf`: a
/// polynomial on half an octave around 0, scaled by a power of two. Unlike the standard function it has no branches,
/// so loops over it are vectorized.
#[inline(always)]
fn exp<const FMA: bool>(x: f32) -> f32 {
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let x = if x < -87.0 { -87.0 } else { x };
    let x = if x > 88.0 { 88.0 } else { x };
    let shifted = mul_add::<FMA>(x, std::f32::consts::LOG2_E, ROUND);
    let octaves = shifted - ROUND;
    let r = mul_add::<FMA>(octaves, -0.693_359_4, x);
    let r = mul_add::<FMA>(octaves, 2.121_944_4e-4, r);
    let mut p = 1.987_569_1e-4;
    p = mul_add::<FMA>(p, r, 1.398_199_9e-3);
    p = mul_add::<FMA>(p, r, 8.333_452e-3);
    p = mul_add::<FMA>(p, r, 4.166_579_6e-2);
    p = mul_add::<FMA>(p, r, 1.666_666_5e-1);
    p = mul_add::<FMA>(p, r, 0.5);
    let p = mul_add::<FMA>(p, r * r, r) + 1.0;
    // The low bits of `shifted` are the octave; shifted into the exponent, they form the power of two.
    let power = f32::from_bits(shifted.to_bits().wrapping_add(127) << 23);
    p * power
}

dispatched! {
    /// The gated activation of the feed-forward layer: `gate = gate / (1 + e^-gate) * up`.
    fn swiglu = swiglu_body(gate: &mut [f32], up: &[f32])
}

#[inline(always)]
fn swiglu_body<const FMA: bool>(gate: &mut [f32], up: &[f32]) {
    for (gate, &up) in gate.iter_mut().zip(up) {
        *gate = *gate / (1.0 + exp::<FMA>(-*gate)) * up;
    }
}

dispatched! {
    /// RMS norm: scales a vector to a mean square of 1 and multiplies it with learned weights.
    fn rms_norm = rms_norm_body(x: &[f32], weights: &[f32], epsilon: f32, out: &mut [f32])
}

#[inline(always)]
fn rms_norm_body<const FMA: bool>(x: &[f32], weights: &[f32], epsilon: f32, out: &mut [f32]) {
    #[expect(clippy::cast_precision_loss, reason = "widths are far below 2^24")]
    let mean = dot_body::<FMA>(x, x) / x.len() as f32;
    let scale = 1.0 / (mean + epsilon).sqrt();
    for ((out, &x), &weight) in out.iter_mut().zip(x).zip(weights) {
        *out = x * scale * weight;
    }
}

/// A matrix of floats in a slice; rows are `stride` floats apart.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) stride: usize,
}

impl View<'_> {
    /// Whether every element is inside the slice.
    fn fits(&self) -> bool {
        span(self.rows, self.columns, self.stride).is_some_and(|span| span <= self.data.len())
    }
}

/// The distance from the first to the last element of a matrix, inclusive.
fn span(rows: usize, columns: usize, stride: usize) -> Option<usize> {
    if rows == 0 || columns == 0 {
        return Some(0);
    }
    // gemm takes signed strides.
    isize::try_from(stride).ok()?;
    (rows - 1).checked_mul(stride)?.checked_add(columns)
}

/// `out = a · bᵀ`; rows of `out` are `stride` floats apart.
pub(super) fn multiply_transposed(
    a: View<'_>,
    b: View<'_>,
    out: &mut [f32],
    stride: usize,
    threads: usize,
) {
    assert_eq!(a.columns, b.columns, "inner sizes of a product");
    // Swapping the strides transposes a matrix.
    let steps = (signed(b.stride), 1);
    product(a, b, b.rows, steps, out, stride, threads);
}

/// `out = a · b`; rows of `out` are `stride` floats apart.
pub(super) fn multiply(a: View<'_>, b: View<'_>, out: &mut [f32], stride: usize, threads: usize) {
    assert_eq!(a.columns, b.rows, "inner sizes of a product");
    let steps = (1, signed(b.stride));
    product(a, b, b.columns, steps, out, stride, threads);
}

/// Converts a stride that passed [`span`].
fn signed(stride: usize) -> isize {
    isize::try_from(stride).expect("a stride within the address space")
}

/// `b_steps`: the distances to the next column and the next row of the right factor.
fn product(
    a: View<'_>,
    b: View<'_>,
    columns: usize,
    b_steps: (isize, isize),
    out: &mut [f32],
    stride: usize,
    threads: usize,
) {
    assert!(a.fits() && b.fits(), "factors within their slices");
    assert!(stride >= columns, "rows of a product do not overlap");
    assert!(
        span(a.rows, columns, stride).is_some_and(|span| span <= out.len()),
        "a product within its slice"
    );
    let parallelism = if threads > 1 {
        Parallelism::Rayon(threads)
    } else {
        Parallelism::None
    };
    // SAFETY: the assertions above ensure that gemm, with these dimensions and strides, reads and writes only
    // elements inside the three slices. `out` is borrowed mutably, so it does not overlap the factors, and its rows
    // do not overlap each other. `read_dst` is false: the old contents are not read.
    unsafe {
        gemm::gemm(
            a.rows,
            columns,
            a.columns,
            out.as_mut_ptr(),
            1,
            signed(stride),
            false,
            a.data.as_ptr(),
            1,
            signed(a.stride),
            b.data.as_ptr(),
            b_steps.0,
            b_steps.1,
            0f32,
            1f32,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// The blocks of a candle tensor; `None` if it has another type or is not in main memory.
///
/// `T` must be one of candle's own block types; the callers in this crate use no others.
pub(super) fn blocks<T: GgmlType>(tensor: &QTensor) -> Option<&[T]> {
    if tensor.dtype() != T::DTYPE || !tensor.device().is_cpu() {
        return None;
    }
    let Ok(Cow::Borrowed(bytes)) = tensor.data() else {
        return None;
    };
    let size = size_of::<T>();
    let address = bytes.as_ptr().cast::<T>();
    if size == 0 || !bytes.len().is_multiple_of(size) || !address.is_aligned() {
        return None;
    }
    // SAFETY: candle stores a tensor of this type in main memory as a `Vec<T>`. The bytes are a view of it:
    // initialized, aligned (checked), a whole number of blocks (checked), and borrowed from `tensor` for the lifetime
    // of the result.
    Some(unsafe { std::slice::from_raw_parts(address, bytes.len() / size) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_within_three_ulp_of_the_standard_library() {
        for i in -87_000..=88_000_i32 {
            let x = f32::from(i16::try_from(i / 10).expect("small")) / 100.0;
            for ours in [exp::<false>(x), exp::<true>(x)] {
                let theirs = x.exp();
                assert!(
                    (ours - theirs).abs() <= theirs * 3.6e-7,
                    "exp({x}) = {ours}, not {theirs}"
                );
            }
        }
        assert!(exp::<true>(f32::NEG_INFINITY) < 1e-37);
    }
}
