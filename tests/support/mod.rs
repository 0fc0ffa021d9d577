//! What the black-box tests and the benchmarks share.

pub mod server;
