//! The pace of a batch: the number of concurrent calls, and requests and tokens per minute.

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
