//! The loop: criteria, prompts, evaluation, revision and convergence.
//!
//! A run is a stream of [`Event`](reflect_base::types::Event)s, and its result is the fold over them. See [`engine`].

pub mod criteria;
pub mod engine;
pub mod evaluate;
pub mod evidence;
pub mod memory;
pub mod prompt;
pub mod reflector;
pub mod revise;

use reflect_base::{source, template, text, types};
use {reflect_model as model, reflect_sandbox as sandbox};
