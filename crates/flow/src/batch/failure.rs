//! Of which kind a failed task's failure is, in the reflector's words.

use super::row::Status;
use crate::model::{ErrorClass, ModelError};
use crate::reflector::ErrorCategory::{
    self, Execution, Network, NotFound, Permission, Resource, Timeout, Validation,
};
use crate::reflector::{Basis, Cause, ErrorCode, TaskError, cause};
use crate::types::{ConvergenceReason, ExitCode, RunRecord};

/// The kind of failure that ended a run; `None` for one that has a verdict. `last` is the failure of the run's last
/// call, where that is known; else the words of the run's error have to do.
pub(super) fn category(record: &RunRecord, last: Option<&ModelError>) -> Option<ErrorCategory> {
    let code = record.exit_code.unwrap_or(ExitCode::Failure);
    match Status::of(code) {
        Status::Met | Status::NotMet => return None,
        Status::Invalid => return Some(Validation),
        Status::Stopped | Status::Unjudged | Status::Failed => {}
    }
    Some(match record.convergence_reason {
        Some(ConvergenceReason::ModelError | ConvergenceReason::NoDraft) => {
            match (last, &record.error) {
                (Some(error), _) => of_model(error),
                (None, Some(said)) => cause(Some(&TaskError::new(said))).category,
                (None, None) => Execution,
            }
        }
        Some(ConvergenceReason::TimeLimit) => Timeout,
        Some(ConvergenceReason::TokenBudget | ConvergenceReason::CostLimit) => Resource,
        _ => Execution,
    })
}

/// The kind of failure that a call met.
fn of_model(error: &ModelError) -> ErrorCategory {
    match error.class {
        ErrorClass::Auth => Permission,
        ErrorClass::Quota | ErrorClass::Rate | ErrorClass::ContextTooLong | ErrorClass::Unable => {
            Resource
        }
        ErrorClass::NotFound => NotFound,
        ErrorClass::Rejected => Validation,
        ErrorClass::CutOff | ErrorClass::Unreachable => Network,
        ErrorClass::Protocol => Execution,
        ErrorClass::Transient => of_transient(error),
    }
}

/// What may pass is the network's or the server's fault, unless it took too long or the server has no room.
fn of_transient(error: &ModelError) -> ErrorCategory {
    let code = error
        .status
        .map(|status| ErrorCode::Number(i64::from(status)));
    let told = [
        TaskError::new(&error.message),
        TaskError {
            code,
            ..TaskError::default()
        },
    ];
    let telling = |Cause { category, basis }: &Cause| {
        *basis != Basis::Unknown && matches!(category, Timeout | Resource)
    };
    let mut causes = told.iter().map(|error| cause(Some(error)));
    causes.find(telling).map_or(Network, |cause| cause.category)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(reason: ConvergenceReason) -> RunRecord {
        let mut record = RunRecord::default();
        record.convergence_reason = Some(reason);
        record.exit_code = Some(reason.exit_code(false));
        record.error = Some("the server failed: the request timed out".to_owned());
        record
    }

    #[test]
    fn what_ended_a_run_says_what_kind_of_failure_it_is() {
        let of = |reason| category(&ended(reason), None);
        assert_eq!(of(ConvergenceReason::TimeLimit), Some(Timeout));
        assert_eq!(of(ConvergenceReason::CostLimit), Some(Resource));
        assert_eq!(of(ConvergenceReason::JudgeFailed), Some(Execution));
        assert_eq!(of(ConvergenceReason::Plateau), None);
        assert_eq!(of(ConvergenceReason::ModelError), Some(Timeout));
        let rejected = ModelError::new(ErrorClass::Rejected, "it timed out");
        let record = ended(ConvergenceReason::ModelError);
        assert_eq!(category(&record, Some(&rejected)), Some(Validation));
        assert_eq!(category(&RunRecord::default(), None), Some(Execution));
    }

    #[test]
    fn what_may_pass_is_told_apart() {
        let of = |message: &str, status| {
            let error = ModelError::new(ErrorClass::Transient, message);
            of_model(&ModelError { status, ..error })
        };
        assert_eq!(of("connection reset by peer", None), Network);
        assert_eq!(of("no answer: the request timed out", None), Timeout);
        assert_eq!(of("", Some(504)), Timeout);
        assert_eq!(of("too many requests", Some(429)), Resource);
        // That it went wrong in the server is no fault of the task's.
        assert_eq!(of("internal error", Some(500)), Network);
        assert_eq!(of("overloaded", Some(529)), Network);
    }
}
