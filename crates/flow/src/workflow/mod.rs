//! Workflows: YAML files of nodes that generate, evaluate, correct, and loop.
//!
//! `file` reads and checks the whole file before anything runs: unknown actions and keys,
//! unreachable nodes, and invalid templates are errors with a position. `run` executes the nodes in
//! the order of `graph`. `actions` has one file per action, and `state` holds the values that nodes
//! share. `template` renders a template when its value is needed, in a loop once per iteration.
//!
//! A loop is a run of the [`engine`](crate::engine) in which the file's actions write, judge and
//! correct the drafts.

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
