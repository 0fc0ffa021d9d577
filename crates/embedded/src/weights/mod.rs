//! Model weights: parsing model names, finding local files, and downloading.

mod fetch;
mod hub;
mod list;
mod pip;
mod spec;

pub use fetch::{FetchError, FetchEvent, FetchOptions, SourceFailure, fetch};
pub use hub::HUB;
pub use list::{LocalModel, list_local};
pub use spec::{DEFAULT_MODEL, ModelSpec, NAMED, NamedModel, SpecError};

use spec::Origin;

#[cfg(test)]
mod tests;
