//! `reflect worker`: runs the tasks that batches submit to a Restate server.

#[cfg(feature = "restate")]
mod executor;
#[cfg(feature = "restate")]
mod serve;

#[cfg(feature = "restate")]
pub(in crate::cli) use self::serve::run;
#[cfg(feature = "restate")]
pub(super) use self::serve::unusable;

#[cfg(not(feature = "restate"))]
use crate::cli::args::{GlobalArgs, WorkerArgs};
#[cfg(not(feature = "restate"))]
use crate::cli::error::CliError;

/// The error of a build without Restate.
#[cfg(not(feature = "restate"))]
pub(super) fn not_built() -> CliError {
    CliError::usage("this build of reflect has no Restate support")
        .hint("build it with `cargo install --path . --features restate`, or split the tasks with `reflect batch --shard`")
}

/// Fails, because this build has no Restate.
#[cfg(not(feature = "restate"))]
#[expect(
    clippy::unused_async,
    reason = "the same signature as with the feature"
)]
pub(in crate::cli) async fn run(
    _: &WorkerArgs,
    _: &GlobalArgs,
) -> Result<crate::types::ExitCode, CliError> {
    Err(not_built())
}
