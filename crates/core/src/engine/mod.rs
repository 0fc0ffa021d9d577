//! The loop: a pure state machine that decides, and a thin driver that performs its effects and emits events. It
//! knows no terminal, no files and no environment.
//!
//! A [`Loop`] is built from a writer, from criteria, and from whatever differs from the defaults. It can run on
//! any number of tasks. An [`Observer`] receives every event of a run; [`Event::Delta`] carries drafts while they
//! are written. A [`Decider`] is asked after each evaluation, and may continue, stop, accept a version, add an
//! instruction for the writer, or write the next version itself.
//!
//! ```
//! use std::path::Path; use std::sync::Arc;
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
//! assert!(record.success); assert_eq!(record.selected().map(|version| version.iteration), Some(2));
//! assert_eq!(written, "A pond in the autumn rain.");
//! # Ok(())
//! # }
//! ```
//!
//! [`Event::Delta`]: crate::types::Event::Delta

mod bound;
mod builder;
mod candidates;
mod converge;
mod custom_loop;
mod decide;
mod drive;
mod driver;
mod early;
mod ending;
mod evaluate_once;
mod evidence;
mod gate;
mod incumbent;
mod judge_diagnostics;
mod ledger;
mod lessons;
mod log;
mod machine;
mod next_call;
mod outline;
mod past;
mod policy;
mod prefetched;
mod replay;
#[cfg(test)]
mod resume_tests;
mod select;
mod similarity;
mod spent;
mod start;
mod steps;
mod tool;
mod triggers;
mod variant;
mod verdict;

pub use builder::{BuildError, LoopBuilder};
pub use custom_loop::{BackendError, CustomLoop, LoopBackend, Written};
pub use decide::{Decider, Moment};
pub use driver::Loop;
pub use evaluate_once::{EvaluateOnce, Text};
pub use log::Observer;
pub use next_call::NextCall;
pub use past::{PRIOR_CHARACTERS, PRIOR_DRAFTS};
pub use replay::RunJournal;
pub use start::Start;
pub use tool::WriterTool;
