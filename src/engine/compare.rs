use async_trait::async_trait;

use crate::model::{CallObserver, ModelError};
use crate::prompt::Prompts;

/// Which of two drafts is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preference {
    /// The first one, whichever order they are shown in.
    First,
    /// The second one, whichever order they are shown in.
    Second,
    /// Neither, or the order decided: then it is no preference.
    Tie,
}

/// Somebody who looks at two drafts side by side, in both orders. Asked where scores are too close to say.
#[async_trait]
pub trait Compare: Send + Sync {
    /// Compares two drafts. `None` if no answer could be read: then the scores decide.
    ///
    /// # Errors
    /// If the model fails for good.
    async fn compare(
        &self,
        prompts: &Prompts,
        first: &str,
        second: &str,
        observer: &CallObserver<'_>,
    ) -> Result<Option<Preference>, ModelError>;
}
