//! Does the loop help? The same tasks, model, seeds and checks, written in several ways ([`Arm`]) at the same cost.
//!
//! A [`Bench`] turns tasks into trials, one for each task, arm and seed. A batch does them and keeps their rows; a
//! [`Summary`] is made of the rows alone, so that an interrupted benchmark goes on where it stopped.

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
pub use trial::{Key, Measured, Trial};
