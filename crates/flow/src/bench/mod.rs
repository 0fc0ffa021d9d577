//! Measures whether the loop helps: runs the same tasks, model, seeds and checks with several
//! methods ([`Arm`]) at the same cost.
//!
//! A [`Bench`] turns tasks into trials, one for each task, arm and seed. A batch runs them and
//! stores their rows. A [`Summary`] is computed from the rows alone, so that an interrupted
//! benchmark can continue.

mod arm;
pub mod fetch;
mod ifeval;
pub mod judging;
mod meter;
mod run;
mod score;
pub mod sets;
pub mod stats;
mod summary;
mod trial;

pub use arm::Arm;
pub use run::{Bench, Plan, PlanError};
pub use summary::{ArmSummary, Comparison, Share, Summary};
pub use trial::{Key, Trial, TrialRow};
