//! Workflows: YAML files of nodes that generate, evaluate, correct, and loop.
//!
//! A file is read as a whole before anything runs (`file`): unknown actions and keys, nodes that nothing leads to,
//! templates that are none are errors with their place. A run goes from node to node (`run`, `graph`); what they
//! do is an action (`actions`, one file each), and what they know is the state (`state`). Templates are filled in
//! at the moment when their text is wanted, and not before (`template`): within a loop for each iteration anew.
//!
//! A loop is a run of the [`engine`](crate::engine) whose drafts are written, judged and corrected by the actions
//! of the file.

mod actions;
mod defined;
mod evaluator;
mod event;
mod failure;
mod file;
mod graph;
mod limits;
mod part;
mod program;
mod run;
mod settings;
mod state;
mod template;
mod triggers;
mod world;

pub use actions::names as action_names;
pub use event::{Event, Observer};
pub use failure::Failure;
pub use file::{Workflow, load, parse};
pub use program::{Program, ProgramKind};
pub use run::Outcome;
pub use state::State;
pub use world::{ChosenModel, ModelChoice, ModelSource, World};

#[cfg(test)]
mod tests;
