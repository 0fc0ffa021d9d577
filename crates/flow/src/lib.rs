//! What runs the loop many times: workflows, batches and benchmarks.

pub mod batch;
pub mod bench;
pub mod workflow;

use reflect_base::{source, template, types};
use reflect_core::{criteria, engine, evaluate, evidence, prompt, reflector};
use {reflect_model as model, reflect_sandbox as sandbox};
