//! The loop: a pure state machine that decides, and a thin driver that does what it says and emits
//! events. Knows no terminal, no file, no environment.
//!
//! A [`Loop`] is built from a model that writes, from criteria, and from whatever else is to be other than by default.
//! It runs on a task, and may run on many. An [`Observer`] sees every event of a run; [`Event::Delta`] brings
//! drafts while they are being written. A [`Decider`] is asked after each evaluation, and may go on, stop, accept
//! a version, tell the writer a wish, or write the next version itself.
//!
//! ```
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use reflect_core::engine::{Loop, Moment};
//! use reflect_model::ScriptedModel;
//! use reflect_base::types::{DeltaKind, Event, LoopSettings, Phase, Stamped, Task, UserDecision};
//! use tokio_util::sync::CancellationToken;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let script = "[[reply]]\ntext = 'A pond in the rain.'\n[[reply]]\ntext = 'A pond in the autumn rain.'";
//! # let model = Arc::new(ScriptedModel::parse(Path::new("demo.toml"), script)?);
//! # let criteria = reflect_core::criteria::parse(
//! #     "name = 'line'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nunit = 'words'\nmax = 8",
//! #     "line.toml",
//! # )?;
//! let plan = Loop::builder(model, Arc::new(criteria))
//!     .settings(LoopSettings {
//!         max_iterations: Some(4),
//!         ..LoopSettings::default()
//!     })
//!     .build()?;
//!
//! // Shows drafts while they are written. What a model reasons, and a judge's verdict, come as deltas, too.
//! let mut written = String::new();
//! let mut observer = |stamped: &Stamped| match &stamped.event {
//!     Event::Phase { phase: Phase::Draft | Phase::Revise, .. } => written.clear(),
//!     // What came before is void: the call is made again.
//!     Event::Retry { .. } => written.clear(),
//!     Event::Delta { phase: Phase::Draft | Phase::Revise, kind: DeltaKind::Text, text, .. } => {
//!         written.push_str(text);
//!     }
//!     _ => {}
//! };
//!
//! // The first version meets the criteria, but the season is missing.
//! let mut decider = |moment: Moment<'_>| match moment.version() {
//!     Some(version) if !version.output.contains("autumn") => {
//!         UserDecision::Guide("Name the season.".to_owned())
//!     }
//!     _ => UserDecision::Accept(moment.iteration),
//! };
//!
//! let record = plan
//!     .run_with_decider(
//!         &Task::new("Write a line about a pond."),
//!         &mut observer,
//!         &mut decider,
//!         &CancellationToken::new(),
//!     )
//!     .await;
//! assert!(record.success);
//! assert_eq!(record.selected().map(|version| version.iteration), Some(2));
//! assert_eq!(written, "A pond in the autumn rain.");
//! # Ok(())
//! # }
//! ```
//!
//! [`Event::Delta`]: crate::types::Event::Delta

mod ahead;
mod bound;
mod builder;
mod candidates;
mod converge;
mod critics;
mod critique;
mod decide;
mod drive;
mod driver;
mod early;
mod ending;
mod evidence;
mod gate;
mod incumbent;
mod ledger;
mod lessons;
mod log;
mod machine;
mod next_call;
mod outline;
mod past;
mod policy;
mod replay;
#[cfg(test)]
mod resume_tests;
mod select;
mod similarity;
mod spent;
mod start;
mod steps;
mod studio;
mod tool;
mod triggers;
mod variant;
mod verdict;

pub use builder::{BuildError, LoopBuilder};
pub use critique::{Critique, Text};
pub use decide::{Decider, Moment};
pub use driver::Loop;
pub use log::Observer;
pub use next_call::NextCall;
pub use past::{PRIOR_CHARACTERS, PRIOR_DRAFTS};
pub use replay::RunJournal;
pub use start::Start;
pub use studio::{Studio, StudioError, Workshop, Written};
pub use tool::WriterTool;
