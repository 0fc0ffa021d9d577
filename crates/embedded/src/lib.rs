//! A model inside the process: no server, no key.
//!
//! A GGUF file of the Llama family is read with candle, computed by a graph of our own ([`Engine`]),
//! and answers chats as [`EmbeddedModel`]. [`weights`] finds such files and fetches them.

mod constrain;
mod generate;
mod model;
mod sampler;
mod slots;
mod template;
mod utf8;
mod vocabulary;
pub mod weights;

pub use model::{EmbeddedModel, EmbeddedOptions, MAX_DEFAULT_CONTEXT, open_engine};
pub use reflect_llama::{Engine, EngineError, Stop};
pub use sampler::{DEFAULT_TEMPERATURE, DEFAULT_TOP_P};
