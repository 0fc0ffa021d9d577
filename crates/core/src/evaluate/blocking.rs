use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{Finding, HardCheck, Subject};
use crate::types::Status;

/// The time limit of a check. A megabyte of text takes less than a second, but some patterns can
/// take hours.
const LIMIT: Duration = Duration::from_secs(10);

/// A check that only computes.
pub(super) trait Measure: Send + Sync + 'static {
    /// Measures a draft. `prior` is the version that it revises.
    fn measure(&self, draft: &str, prior: Option<&str>) -> Finding;
}

/// Runs a check on its own thread and abandons it at a time limit. Criteria files are untrusted,
/// and neither a signal nor another check may have to wait for them.
pub(super) struct BlockingCheck<M> {
    check: Arc<M>,
    limit: Duration,
}

impl<M> BlockingCheck<M> {
    pub(super) fn new(check: M) -> Self {
        Self {
            check: Arc::new(check),
            limit: LIMIT,
        }
    }
}

#[async_trait]
impl<M: Measure> HardCheck for BlockingCheck<M> {
    async fn check(&self, subject: &Subject<'_>) -> Finding {
        let check = Arc::clone(&self.check);
        let draft = subject.draft.to_owned();
        let prior = subject.prior.map(str::to_owned);
        let measured = tokio::task::spawn_blocking(move || check.measure(&draft, prior.as_deref()));
        match tokio::time::timeout(self.limit, measured).await {
            Ok(Ok(finding)) => finding,
            Ok(Err(_)) => Finding::none(
                Status::Failed,
                "the check crashed; this is a bug in reflect",
            ),
            Err(_) => Finding::none(
                Status::Failed,
                format!(
                    "the check took longer than {} s on this text and was stopped",
                    self.limit.as_secs_f64()
                ),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes as many milliseconds as the draft says.
    struct SlowMeasure;

    impl Measure for SlowMeasure {
        fn measure(&self, draft: &str, prior: Option<&str>) -> Finding {
            std::thread::sleep(Duration::from_millis(draft.parse().unwrap()));
            Finding::graded(1.0, prior.unwrap_or("none"))
        }
    }

    async fn check(draft: &str, prior: Option<&str>) -> Finding {
        let check = BlockingCheck {
            limit: Duration::from_millis(500),
            ..BlockingCheck::new(SlowMeasure)
        };
        let subject = Subject {
            prior,
            ..Subject::of(draft)
        };
        check.check(&subject).await
    }

    #[tokio::test]
    async fn what_takes_too_long_is_neither_a_pass_nor_a_zero() {
        let quick = check("0", Some("before")).await;
        assert_eq!(
            (quick.score, quick.evidence.as_str()),
            (Some(1.0), "before")
        );
        let slow = check("3000", None).await;
        assert_eq!((slow.score, slow.status), (None, Status::Failed));
        assert_eq!(
            slow.evidence,
            "the check took longer than 0.5 s on this text and was stopped"
        );
    }

    #[tokio::test]
    async fn a_fault_of_ours_is_not_the_end() {
        let broken = check("no number", None).await;
        assert_eq!(broken.status, Status::Failed);
    }
}
