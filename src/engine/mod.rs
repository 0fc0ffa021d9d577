//! The loop: a pure state machine that decides, and a thin driver that does what it says and emits
//! events. Knows no terminal, no file, no environment.

mod adapt;
mod converge;
mod critics;
mod critique;
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
mod select;
mod similarity;
mod start;
mod studio;
mod verdict;

pub use critique::{Critique, Text};
pub use driver::Loop;
pub use log::Observer;
pub use start::Start;
pub use studio::{Studio, StudioError, Workshop, Written, is_failure};
