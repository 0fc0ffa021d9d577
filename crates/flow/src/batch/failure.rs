//! Assigns the reflector's error category to a failed task.

use super::row::Status;
use crate::model::{ErrorClass, ModelError};
use crate::reflector::ErrorCategory::{
    self, Execution, Network, NotFound, Permission, Resource, Timeout, Validation,
};
use crate::reflector::{Basis, Cause, ErrorCode, TaskError, cause};
use crate::types::{ConvergenceReason, ExitCode, RunRecord};

/// Returns the category of the failure that ended a run; `None` if the run has a verdict. `last` is the error
/// of its last call, if known; otherwise the text of the run's error decides.
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

/// Returns the category of a failed call.
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

/// Categorizes a transient error: as network, unless it is a timeout or a lack of capacity.
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
    fn the_category_follows_from_the_reason_a_run_ended() {
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
    fn transient_errors_have_different_categories() {
        let of = |message: &str, status| {
            let error = ModelError::new(ErrorClass::Transient, message);
            of_model(&ModelError { status, ..error })
        };
        assert_eq!(of("connection reset by peer", None), Network);
        assert_eq!(of("no answer: the request timed out", None), Timeout);
        assert_eq!(of("", Some(504)), Timeout);
        assert_eq!(of("too many requests", Some(429)), Resource);
        // A server error is not the task's fault.
        assert_eq!(of("internal error", Some(500)), Network);
        assert_eq!(of("overloaded", Some(529)), Network);
    }
}
