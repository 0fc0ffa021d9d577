//! The loop: a pure state machine that decides, and a thin driver that does what it says and emits
//! events. Knows no terminal, no file, no environment.

mod critique;
mod driver;
mod evidence;
mod gate;
mod log;
mod machine;
mod select;

pub use critique::{Critique, Text};
pub use driver::Loop;
pub use log::Observer;
