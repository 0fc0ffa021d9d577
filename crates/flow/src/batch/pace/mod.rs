//! How fast a batch goes: how many calls at once, and how many requests and tokens a minute.

mod controller;
mod gate;
mod paced;
mod rate;
#[cfg(test)]
mod simulation;

pub use self::controller::{Concurrency, MAX_CONCURRENCY};
pub use self::gate::{Gate, Pace};
pub use self::paced::Paced;
#[cfg(feature = "restate")]
pub(super) use self::rate::Rate;
