//! What everything else stands on: the nouns of the program, keys, and files that people write.

pub mod secrets;
pub mod source;
pub mod template;
pub mod text;
pub mod types;
