//! The parts that all HTTP protocols share: client, framing, retries, and error classes.

pub(crate) mod call;
mod classify;
pub(crate) mod clean;
pub(crate) mod client;
mod connection;
pub(crate) mod decoder;
pub(crate) mod failure;
pub(crate) mod framing;
pub(crate) mod json;
pub(crate) mod retry;
mod tls;

pub use client::{HttpClient, Pool, Timeouts};
pub use connection::{Connection, HeaderError};
pub use retry::RetryPolicy;
pub use tls::client_config as tls_config;
pub use tls::trust_certificates;
