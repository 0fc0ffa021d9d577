use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::sandbox::{Language, Limits, ScriptError, ScriptOutcome, ScriptPool, ScriptRequest};

/// The error for programs that the user has not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this runs programs, which needs permission")]
pub struct NotAllowed;

/// Proof that the user allows the programs named by criteria to run on this machine: commands, and
/// the interpreters of Python and Prolog. Criteria files are untrusted; only code that has asked
/// the user may create it.
#[derive(Debug, Clone)]
pub struct ExecPermission(());

impl ExecPermission {
    /// Creates the permission after the user has allowed the programs to run.
    pub fn given_by_user() -> Self {
        Self(())
    }
}

/// The result of a script that ran for its value.
#[derive(Debug)]
pub struct ScriptResult {
    /// Its value, or why there is none, for example because it is not allowed to run.
    pub result: Result<Value, String>,
    /// What it printed.
    pub prints: String,
}

/// What evaluators may use in addition to models. Cheap to clone; clones share one pool of
/// interpreters, so that a process has only one.
#[derive(Debug, Clone, Default)]
pub struct Tools {
    scripts: Option<Arc<ScriptPool>>,
    exec: Option<ExecPermission>,
    extracts: bool,
}

impl Tools {
    /// Returns tools without scripts and programs, for criteria that need none.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds Lua scripts. `worker` is a program whose `main` calls
    /// [`worker_main`](crate::sandbox::worker_main) first: it is started with special arguments
    /// that any other program would misinterpret.
    pub fn with_worker(worker: PathBuf) -> Self {
        Self {
            scripts: Some(Arc::new(ScriptPool::new(worker))),
            ..Self::default()
        }
    }

    /// Adds scripts in all languages, and commands.
    #[must_use]
    pub fn allow(self, permission: ExecPermission) -> Self {
        Self {
            exec: Some(permission),
            ..self
        }
    }

    /// Sets whether checks judge the first fenced code block of a draft, if there is one, instead
    /// of all of it.
    #[must_use]
    pub fn extracting(self, extracts: bool) -> Self {
        Self { extracts, ..self }
    }

    /// Returns whether checks judge the first fenced code block of a draft.
    pub(super) fn extracts(&self) -> bool {
        self.extracts
    }

    /// Runs a script for its value, in the way that the `script` evaluator runs one for its
    /// verdict.
    pub async fn run_script(
        &self,
        language: Language,
        request: &ScriptRequest,
        limits: &Limits,
    ) -> ScriptResult {
        let (result, prints) = match self.run_allowed(language, request, limits).await {
            Ok(Ok(outcome)) => (Ok(outcome.value), outcome.prints),
            Ok(Err(error)) => (Err(error.to_string()), error.prints),
            Err(refusal) => (Err(refusal), String::new()),
        };
        ScriptResult { result, prints }
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

    /// Returns the permission to run programs.
    ///
    /// # Errors
    /// If it was not given.
    pub fn may_run_programs(&self) -> Result<ExecPermission, NotAllowed> {
        self.exec.clone().ok_or(NotAllowed)
    }

    /// Returns the interpreters.
    pub(super) fn scripts(&self) -> Result<Arc<ScriptPool>, String> {
        self.scripts
            .clone()
            .ok_or_else(|| "no script worker is available".to_owned())
    }

    /// Returns the permission, if it was given.
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
