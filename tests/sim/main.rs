//! Simulates the loop with writers and judges whose true quality is known: what it returns, at what cost.
//!
//! The engine is the real one, with its prompts, gate and edits; only the model is simulated, in the same
//! process. All results follow from the seeds. `cargo test --release --test sim -- --ignored --nocapture`
//! prints the tables. With `REFLECT_SIM_REPLAY=FILE` it also prints those of recorded runs (JSON Lines:
//! `model`, `drafts` of `text` and `score`).
#![expect(
    clippy::cast_precision_loss,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "counts are small; a test fails by panicking"
)]

mod model;
mod play;
mod world;

mod curves;
mod process;
mod recorded;
