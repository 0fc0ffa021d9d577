//! One file for each command.

pub(super) mod batch;
pub(super) mod config;
pub(super) mod criteria;
pub(super) mod docs;
pub(super) mod draft;
pub(super) mod evaluate;
pub(super) mod history;
pub(super) mod models;
pub(super) mod revise;
mod session;
