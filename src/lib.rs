//! Iterative drafting: a language model writes a draft, hard checks and a judge evaluate it, and the model
//! revises it until it meets the criteria or stops improving.
//!
//! The modules, from the top down. All but [`cli`], [`report`] and [`config`] are separate crates, which
//! `docs/architecture.md` lists.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cli`] | the command line: arguments, commands, output |
//! | [`report`] | reports on runs as text, Markdown, JSON and HTML |
//! | [`mod@bench`] | benchmarks: the loop compared with other methods at the same cost |
//! | [`workflow`] | YAML workflows of nodes that generate, evaluate, correct and loop |
//! | [`batch`] | many tasks at once: rate limits, rows, resuming |
//! | [`engine`] | the loop: a pure state machine, and the driver that executes its steps |
//! | [`evaluate`] | the evaluators, and the aggregation of their verdicts |
//! | [`memory`] | knowledge for later runs: recall, learning, measurement |
//! | [`evidence`] | context files, and passages of code and documents that drafts are checked against |
//! | [`revise`] | the revision strategies |
//! | [`reflector`] | evaluation of tasks and plans that other programs ran |
//! | [`sandbox`] | child processes and workers with resource limits, for code and commands |
//! | [`prompt`] | prompts and their templates |
//! | [`criteria`] | criteria files and the built-in sets |
//! | [`store`] | the run log |
//! | [`model`] | the model trait and its implementations |
//! | [`config`] | settings from files, environment and profiles |
//! | [`source`] | parsing of input files, with errors that show the position |
//! | [`types`] | the shared data types |
//! | [`secrets`] | protection of keys from other programs, output, logs and requests |
//!
//! A run is a stream of [`types::Event`]s, and its result is a fold over them. [`engine`] shows how to
//! observe drafts while they are written, and how a program or a user can decide for the loop.
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
//! // A model with scripted replies. An `OllamaModel` or an `OpenAiModel` works the same way.
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
