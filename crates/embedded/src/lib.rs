//! A language model inside the process, without a server or a key.
//!
//! candle reads a GGUF file of the Llama family, the engine in `reflect-llama` ([`Engine`]) evaluates it, and
//! [`EmbeddedModel`] answers chats. [`weights`] finds and downloads such files.

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
