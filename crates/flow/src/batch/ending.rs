use std::time::Duration;

use super::tally::{Tally, worse};
use crate::model::ModelError;
use crate::types::ExitCode;

/// What ends a batch before its tasks are done.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Limits {
    /// No further task is begun once all together have used so many tokens.
    pub tokens: Option<u64>,
    /// No further task is begun once all together have cost so much.
    pub cost: Option<f64>,
    /// After this time everything ends; what is under way is not finished.
    pub time: Option<Duration>,
}

/// Why a batch stopped before all tasks were done.
#[derive(Debug, Clone, PartialEq)]
pub enum Stop {
    /// A signal.
    Interrupted,
    /// A task failed, and that was to be the end.
    Failed,
    /// The limit on tokens.
    Tokens,
    /// The limit on cost.
    Cost,
    /// The limit on time.
    Time,
    /// A failure that every other task would meet as well.
    Provider(Box<ModelError>),
    /// Nobody reads the rows any more.
    NoReader,
    /// The input cannot be read.
    Input(String),
    /// A row cannot be written.
    Output(String),
}

impl Stop {
    /// The exit code that it stands for; that of the rows counts, too.
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
    /// Why it stopped early, if it did.
    pub stop: Option<Stop>,
    /// What became of the tasks.
    pub tally: Tally,
}

impl Ending {
    /// The exit code: that of the worst row, or of what stopped the batch, if that is worse. From the worst to the
    /// best: 130, 1, 4, 2, 6, 5, 3, 0. A reader who goes away has seen enough.
    pub fn exit_code(&self) -> ExitCode {
        match &self.stop {
            Some(Stop::NoReader) => ExitCode::Success,
            Some(stop) => worse(stop.exit_code(), self.tally.exit_code()),
            None => self.tally.exit_code(),
        }
    }
}
