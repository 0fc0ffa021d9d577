//! What every protocol over HTTP needs: the client, framing, retries, the classes of errors.

pub(crate) mod answer;
pub(crate) mod call;
mod classify;
pub(crate) mod clean;
pub(crate) mod client;
mod connection;
pub(crate) mod failure;
pub(crate) mod framing;
pub(crate) mod json;
pub(crate) mod retry;
mod tls;

pub use client::{HttpClient, Pool, Timeouts};
pub use connection::{Connection, HeaderError};
pub use retry::RetryPolicy;
pub use tls::client_config as tls_config;
