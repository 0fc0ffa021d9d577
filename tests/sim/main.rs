//! The loop against writers and judges whose truth is known: what is shipped, at what cost.
//!
//! The engine is the real one, with its prompts, its gate and its edits; only the model is simulated, in the process.
//! Every figure follows from the seeds. `cargo test --release --test sim -- --ignored --nocapture` prints the tables;
//! with `REFLECT_SIM_REPLAY=FILE` also those of recorded runs (JSON Lines: `model`, `drafts` of `text` and `score`).
#![expect(
    clippy::cast_precision_loss,
    clippy::unwrap_used,
    unreachable_pub,
    reason = "counts are small; a test ends where something is wrong"
)]

mod model;
mod play;
mod world;

mod curves;
mod process;
mod recorded;
