//! Criteria files: reading them, the built-in sets, finding them by name, and what is wrong with them
//! and where.

mod builtin;
mod check;
mod file;
mod kinds;
mod resolve;
mod schema;

pub use builtin::{BUILTIN_NAMES, builtin, builtins};
pub use check::warnings;
pub use file::{load, parse, to_toml};
pub use resolve::{Available, available, resolve};
pub use schema::schema;

#[cfg(test)]
mod tests;
