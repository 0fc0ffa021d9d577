use super::row::{Row, Status};
use crate::types::{ExitCode, TokenUsage};

/// The number of tasks by outcome.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    counts: [u64; Status::ALL.len()],
    worst: Option<ExitCode>,
    /// The tokens of the tasks of this call.
    pub token_usage: TokenUsage,
    known_cost: f64,
    without_cost: u64,
}

/// From worst to best: tasks without a verdict before tasks that do not meet their criteria.
const WORST_FIRST: [ExitCode; 8] = [
    ExitCode::Interrupted,
    ExitCode::Failure,
    ExitCode::Provider,
    ExitCode::Usage,
    ExitCode::JudgeUnusable,
    ExitCode::Limit,
    ExitCode::NotMet,
    ExitCode::Success,
];

/// Returns the worse of two exit codes.
pub(super) fn worse(a: ExitCode, b: ExitCode) -> ExitCode {
    let is_one = |code: &&ExitCode| **code == a || **code == b;
    WORST_FIRST.iter().find(is_one).copied().unwrap_or(a)
}

impl Tally {
    /// Adds a row of this call.
    pub(super) fn add(&mut self, row: &Row) {
        self.count(row.status, row.exit_code);
        self.token_usage += row.token_usage;
        if row.run_id.is_some() {
            self.known_cost += row.cost.unwrap_or(0.0);
            self.without_cost += u64::from(row.cost.is_none());
        }
    }

    /// Adds a row written before this call.
    pub(super) fn count(&mut self, status: Status, code: ExitCode) {
        self.counts[status as usize] += 1;
        self.worst = Some(self.worst.map_or(code, |worst| worse(worst, code)));
    }

    /// Returns the number of tasks with this outcome.
    pub fn of(&self, status: Status) -> u64 {
        self.counts[status as usize]
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the cost of the tasks of this call; `None` if the cost of any task is unknown.
    pub fn cost(&self) -> Option<f64> {
        let known = self.without_cost == 0 && self.token_usage != TokenUsage::default();
        known.then(|| (self.known_cost * 1e9).round() / 1e9)
    }

    /// Returns the exit code of the worst row; success if there is none.
    pub fn exit_code(&self) -> ExitCode {
        self.worst.unwrap_or(ExitCode::Success)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_row_decides_the_exit_code() {
        let mut tally = Tally::default();
        assert_eq!(tally.exit_code(), ExitCode::Success);
        for (code, worst) in [
            (ExitCode::Success, ExitCode::Success),
            (ExitCode::NotMet, ExitCode::NotMet),
            (ExitCode::Provider, ExitCode::Provider),
            (ExitCode::Usage, ExitCode::Provider),
            (ExitCode::Success, ExitCode::Provider),
        ] {
            tally.count(Status::of(code), code);
            assert_eq!(tally.exit_code(), worst);
        }
        assert_eq!((tally.rows(), tally.of(Status::Met)), (5, 2));
    }

    #[test]
    fn table_positions_match_the_list() {
        for (index, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(status as usize, index);
        }
    }
}
