//! The commands, one module each.

pub(super) mod assess;
pub(super) mod batch;
pub(super) mod bench;
pub(super) mod config;
pub(super) mod criteria;
pub(super) mod docs;
pub(super) mod doctor;
pub(super) mod draft;
pub(super) mod evaluate;
pub(super) mod history;
pub(super) mod mcp;
pub(super) mod memory;
pub(super) mod models;
pub(super) mod resume;
pub(super) mod revise;
pub(super) mod run;
mod session;
pub(super) mod worker;
