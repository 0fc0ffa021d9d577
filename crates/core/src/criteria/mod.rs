//! Criteria files: parsing, the built-in sets, lookup by name, and errors with positions.

mod builtin;
mod check;
mod combine;
mod file;
pub(crate) mod json_schema;
mod kinds;
mod resolve;
mod schema;
mod spec;
mod start;

pub use builtin::{BUILTIN_NAMES, TASK_TYPES, builtin, builtins};
pub use check::warnings;
pub use combine::combine;
pub use file::{load, parse, to_toml};
pub use resolve::{AvailableCriteria, available, built_in, is_inline, locate, resolve};
pub use schema::schema;
pub use spec::{command_of_data, load as load_spec, of_data as spec_of_data, parse as parse_spec};
pub use start::{copy_of, starting_file};

#[cfg(test)]
mod library_tests;
#[cfg(test)]
mod tests;
