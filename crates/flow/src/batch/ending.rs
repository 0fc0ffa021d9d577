use std::time::Duration;

use super::tally::{Tally, worse};
use crate::model::ModelError;
use crate::types::ExitCode;

/// Limits that end a batch before all tasks are done.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// Start no further task once all tasks together have used this many tokens.
    pub tokens: Option<u64>,
    /// Start no further task once all tasks together have cost this much.
    pub cost: Option<f64>,
    /// Cancel everything after this time, including tasks in progress.
    pub time: Option<Duration>,
}

/// Why a batch stopped before all tasks were done.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// A signal.
    Interrupted,
    /// A task failed, and `fail_fast` is set.
    Failed,
    /// The token limit.
    Tokens,
    /// The cost limit.
    Cost,
    /// The time limit.
    Time,
    /// A failure that would affect every other task as well.
    Provider(Box<ModelError>),
    /// The reader of the rows is gone.
    NoReader,
    /// The input cannot be read.
    Input(String),
    /// A row cannot be written.
    Output(String),
}

impl Stop {
    /// Returns its exit code. The rows have exit codes too.
    fn exit_code(&self) -> ExitCode {
        match self {
            Self::Interrupted => ExitCode::Interrupted,
            Self::Failed | Self::NoReader => ExitCode::Success,
            Self::Tokens | Self::Cost | Self::Time => ExitCode::Limit,
            Self::Provider(_) => ExitCode::Provider,
            Self::Input(_) | Self::Output(_) => ExitCode::Failure,
        }
    }
}

/// How a batch ended.
#[derive(Debug)]
pub struct Ending {
    /// Why the batch stopped early, if it did.
    pub stop: Option<Stop>,
    /// The results of the tasks.
    pub tally: Tally,
}

impl Ending {
    /// Returns the exit code: the worst of the rows and of the reason to stop. From worst to best: 130, 1, 4,
    /// 2, 6, 5, 3, 0. A reader that stops reading counts as success.
    pub fn exit_code(&self) -> ExitCode {
        match &self.stop {
            Some(Stop::NoReader) => ExitCode::Success,
            Some(stop) => worse(stop.exit_code(), self.tally.exit_code()),
            None => self.tally.exit_code(),
        }
    }
}
