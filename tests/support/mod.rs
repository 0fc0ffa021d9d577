//! Shared by the black-box tests and the benchmarks.

pub mod server;
