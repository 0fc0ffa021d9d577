use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::sandbox::{Language, Limits, ScriptError, ScriptOutcome, ScriptPool, ScriptRequest};

/// Programs may not run: the user has not allowed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this runs programs, and nobody has allowed that")]
pub struct NotAllowed;

/// Proof that the user has allowed the programs that criteria name to run on this machine: commands, and
/// the interpreters of Python and Prolog. Criteria files are other people's; nothing in this library
/// makes one of these but who asked the user.
#[derive(Debug, Clone)]
pub struct ExecPermission(());

impl ExecPermission {
    /// The user has seen what would run, or has said that it need not be shown, and allows it.
    pub fn given_by_user() -> Self {
        Self(())
    }
}

/// A script that ran for its value.
#[derive(Debug)]
pub struct RanScript {
    /// Its value; or why there is none, among other things that nobody has allowed it to run.
    pub result: Result<Value, String>,
    /// What it printed.
    pub prints: String,
}

/// What evaluators may use beside models. Cheap to clone; clones share one pool of interpreters, so that
/// a process has only one.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    scripts: Option<Arc<ScriptPool>>,
    exec: Option<ExecPermission>,
    extracts: bool,
}

impl Tools {
    /// No scripts and no programs: for criteria that need none.
    pub fn none() -> Self {
        Self::default()
    }

    /// Scripts in Lua. `worker` is a program whose `main` calls
    /// [`worker_main`](crate::sandbox::worker_main) before all else: it is started with arguments of its
    /// own, and any other program would do whatever those mean to it.
    pub fn with_worker(worker: PathBuf) -> Self {
        Self {
            scripts: Some(Arc::new(ScriptPool::new(worker))),
            ..Self::default()
        }
    }

    /// The same, with scripts in all languages, and with commands.
    #[must_use]
    pub fn allow(self, permission: ExecPermission) -> Self {
        Self {
            exec: Some(permission),
            ..self
        }
    }

    /// The same; checks judge the first fenced code block of a draft instead of all of it, where there is one.
    #[must_use]
    pub fn extracting(self, extracts: bool) -> Self {
        Self { extracts, ..self }
    }

    /// Whether checks judge the first fenced code block of a draft.
    pub(super) fn extracts(&self) -> bool {
        self.extracts
    }

    /// Runs a script for its value, as the `script` evaluator runs one for its verdict.
    pub async fn run_script(
        &self,
        language: Language,
        request: &ScriptRequest,
        limits: &Limits,
    ) -> RanScript {
        let (result, prints) = match self.run_allowed(language, request, limits).await {
            Ok(Ok(outcome)) => (Ok(outcome.value), outcome.prints),
            Ok(Err(error)) => (Err(error.to_string()), error.prints),
            Err(refusal) => (Err(refusal), String::new()),
        };
        RanScript { result, prints }
    }

    async fn run_allowed(
        &self,
        language: Language,
        request: &ScriptRequest,
        limits: &Limits,
    ) -> Result<Result<ScriptOutcome, ScriptError>, String> {
        if language != Language::Lua {
            self.exec()?;
        }
        Ok(self.scripts()?.evaluate(language, request, limits).await)
    }

    /// The permission to run programs.
    ///
    /// # Errors
    /// If it was not given.
    pub fn may_run_programs(&self) -> Result<ExecPermission, NotAllowed> {
        self.exec.clone().ok_or(NotAllowed)
    }

    /// The interpreters.
    pub(super) fn scripts(&self) -> Result<Arc<ScriptPool>, String> {
        self.scripts
            .clone()
            .ok_or_else(|| "there are scripts, and there is nothing to run them".to_owned())
    }

    /// The permission, if it was given.
    pub(super) fn exec(&self) -> Result<ExecPermission, String> {
        self.may_run_programs().map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_pool_however_often_tools_are_handed_on() {
        let tools = Tools::with_worker("reflect".into());
        let other = tools.clone().allow(ExecPermission::given_by_user());
        let (pool, same) = (tools.scripts().unwrap(), other.scripts().unwrap());
        assert!(Arc::ptr_eq(&pool, &same));
    }

    #[test]
    fn what_was_not_given_is_not_there() {
        assert!(Tools::none().scripts().is_err());
        assert!(Tools::with_worker("reflect".into()).exec().is_err());
    }
}
