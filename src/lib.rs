//! Iterative drafting: a language model writes a draft, criteria judge it, and it is revised until it
//! is good enough or no longer gets better.

pub mod criteria;
pub mod engine;
pub mod evaluate;
pub mod model;
pub mod prompt;
pub mod revise;
pub mod sandbox;
pub mod source;
pub mod store;
pub mod types;
