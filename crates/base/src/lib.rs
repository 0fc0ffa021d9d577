//! The foundation of all other crates: the domain types, known secrets, and parsing of files that people write.

pub mod secrets;
pub mod source;
pub mod template;
pub mod text;
pub mod types;
