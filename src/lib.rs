//! Iterative drafting: a language model writes a draft, hard checks and a judge evaluate it, and it is revised until
//! it meets the criteria or stops improving.
//!
//! The modules, from the top down. All but [`cli`], [`report`] and [`config`] live in crates of their own; `docs/architecture.md`
//! lists them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | what can be typed, and everything that is shown |
//! | [`report`] | text, Markdown and JSON of a run |
//! | [`mod@bench`] | whether the loop helps: the same tasks written in several ways at the same cost |
//! | [`workflow`] | YAML files of nodes that generate, evaluate, correct and loop |
//! | [`batch`] | many tasks at once: pace, rows, resuming |
//! | [`engine`] | the loop: a pure state machine, and the driver that does what it says |
//! | [`evaluate`] | the evaluators, and how their verdicts add up |
//! | [`memory`] | what is kept for later runs: recalling, learning, measuring |
//! | [`evidence`] | context files, and passages of code and documents that drafts are checked against |
//! | [`revise`] | the revision strategies |
//! | [`reflector`] | judging the outcome of tasks and plans that something else ran |
//! | [`sandbox`] | child processes and workers with limits, for code and commands |
//! | [`prompt`] | what models are told |
//! | [`criteria`] | criteria files and the built-in sets |
//! | [`store`] | the run log |
//! | [`model`] | one trait for all models, and those that there are |
//! | [`config`] | files, environment and profiles, laid over each other |
//! | [`source`] | reading files that people write, with errors that show the place |
//! | [`types`] | the nouns |
//! | [`secrets`] | keys that must not be read by other programs, shown, stored or sent |
//!
//! A run is a stream of [`types::Event`]s, and its result is the fold over them. How drafts are seen while they are
//! written, and how a program or a person decides for the loop, is shown in [`engine`].
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use reflect::engine::Loop;
//! use reflect::model::ScriptedModel;
//! use reflect::types::{Stamped, Task};
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A model that answers from a script; an `OllamaModel` or an `OpenAiModel` goes here, too.
//! let script = r#"
//!     [[reply]]
//!     text = "Leaves fall on the pond."
//!     [[reply]]
//!     text = "Leaves fall on the old pond,\nring after ring goes its way,\nthe frog does not look."
//! "#;
//! let model = Arc::new(ScriptedModel::parse(Path::new("demo.toml"), script)?);
//! let criteria = reflect::criteria::parse(
//!     "name = 'haiku'\n[[criteria]]\nname = 'lines'\nevaluator = 'length'\nunit = 'lines'\nmin = 3",
//!     "haiku.toml",
//! )?;
//! let plan = Loop::builder(model, Arc::new(criteria)).build()?;
//! let mut events = 0;
//! let record = plan
//!     .run(
//!         &Task::new("Write a haiku."),
//!         &mut |_: &Stamped| events += 1,
//!         &CancellationToken::new(),
//!     )
//!     .await;
//! assert!(record.success);
//! assert_eq!(record.versions.len(), 2);
//! assert!(events > 4);
//! # Ok(())
//! # }
//! ```

pub mod cli;
pub mod config;
pub mod report;

pub use reflect_base::{secrets, source, types};
use reflect_base::{template, text};
pub use reflect_core::{criteria, engine, evaluate, evidence, memory, prompt, reflector, revise};
#[cfg(feature = "embedded")]
pub use reflect_embedded as embedded;
pub use reflect_flow::{batch, bench, workflow};
pub use {reflect_model as model, reflect_sandbox as sandbox, reflect_store as store};

/// The examples of `docs/library.md`, compiled and run as tests.
#[cfg(doctest)]
#[doc = include_str!("../docs/library.md")]
mod library_examples {}
