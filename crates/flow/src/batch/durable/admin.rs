//! The server's admin API: registers workers, cancels tasks.

use std::collections::HashMap;

use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;

use super::client::Client;
use super::error::EngineError;
use super::fitness::UNFIT;
use super::job::key_of;
use super::version;
use super::workflow::TASK;

/// The key of the workers' version in the server's metadata.
pub(super) const VERSION: &str = "reflect-version";

#[derive(Deserialize)]
struct Service {
    deployment_id: String,
    #[serde(default)]
    metadata: HashMap<String, String>,
}

#[derive(Deserialize)]
struct Deployment {
    uri: String,
}

/// The server's reply to a registration.
#[derive(Deserialize)]
struct Registered {
    id: String,
    services: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    revision: u32,
}

/// The seconds after which a task on a worker counts as in progress. Before that, the worker may still hand
/// it back.
const LONG: u32 = 4;

/// A task that has not ended.
#[derive(Deserialize)]
struct Invocation {
    id: String,
    key: String,
    retry_count: Option<u64>,
    last_failure: Option<String>,
    /// Whether a worker has had the task long enough to be working on it.
    is_working: Option<bool>,
}

impl Invocation {
    /// Returns the number of attempts and the reason, if the last worker handed the task back.
    fn handed_back(&self) -> Option<(u64, String)> {
        let (_, problem) = self.last_failure.as_ref()?.split_once(UNFIT)?;
        let problem = problem.trim_start_matches(": ").lines().next()?;
        let problem = problem.trim_end_matches(['"', '\'']).to_owned();
        (self.is_working != Some(true)).then_some((self.retry_count?, problem))
    }
}

/// The server's admin API.
pub struct Admin(pub(super) Client);

impl Admin {
    /// Creates a client for this URL or `HOST:PORT`, without connecting.
    ///
    /// # Errors
    /// If the client cannot be created.
    pub fn new(url: String) -> Result<Self, EngineError> {
        let is_url = url.contains("://");
        let url = if is_url { url } else { format!("http://{url}") };
        Client::new(url.trim_end_matches('/').to_owned()).map(Self)
    }

    /// Makes the server send its tasks to the workers at `HOST:PORT`. With `replace`, moves the tasks of
    /// workers at another address or of another version there, including those in progress. Repeated
    /// registrations are harmless.
    ///
    /// # Errors
    /// If the server cannot be reached, cannot reach the address, or has other workers.
    pub async fn register(&self, address: &str, replace: bool) -> Result<(), EngineError> {
        let ours = version();
        let uri = format!("http://{address}/");
        let known = match self.service().await? {
            Some(known) => known,
            None => self.register_first(&uri).await?,
        };
        let path = format!("/deployments/{}", known.deployment_id);
        let deployment: Deployment = self.0.get(&path).await?.accepted()?.json()?;
        let theirs = known.metadata.get(VERSION).cloned().unwrap_or_default();
        let is_here = authority(&deployment.uri) == authority(&uri);
        if is_here && theirs == ours {
            return Ok(());
        }
        if replace {
            let register = json!({ "uri": uri, "overwrite": true });
            let answer = self.0.send(Method::PATCH, &path, Some(&register)).await?;
            return answer.accepted().map(drop);
        }
        if is_here {
            return Err(EngineError::OtherVersion {
                address: address.to_owned(),
                theirs,
                ours,
            });
        }
        Err(EngineError::OtherAddress(
            authority(&deployment.uri).to_owned(),
            address.to_owned(),
        ))
    }

    /// Cancels the tasks of a batch with the chosen keys. Each ends before its next call. Returns how many
    /// were in progress.
    ///
    /// # Errors
    /// If the server cannot be reached or rejects the query.
    pub async fn cancel(
        &self,
        batch: &str,
        is_chosen: impl Fn(&str) -> bool,
    ) -> Result<usize, EngineError> {
        let mut found = self.invocations(batch).await?;
        found.retain(|it| is_chosen(&it.key));
        let mut cancelled = 0;
        for Invocation { id, .. } in found {
            let path = format!("/invocations/{id}/cancel");
            let answer = self.0.send(Method::PATCH, &path, None::<&()>).await?;
            cancelled += usize::from(answer.status.is_success());
        }
        Ok(cancelled)
    }

    /// Returns how often each task was tried at least, and one reason, if workers handed back all unfinished
    /// tasks of a batch. Otherwise `None`.
    ///
    /// # Errors
    /// If the server cannot be reached or rejects the query.
    pub async fn handed_back(&self, batch: &str) -> Result<Option<(u64, String)>, EngineError> {
        let found = self.invocations(batch).await?;
        let all: Option<Vec<_>> = found.iter().map(Invocation::handed_back).collect();
        Ok(all.and_then(|all| all.into_iter().min()))
    }

    /// Returns the unfinished tasks of a batch.
    async fn invocations(&self, batch: &str) -> Result<Vec<Invocation>, EngineError> {
        #[derive(Deserialize)]
        struct Found {
            rows: Vec<Invocation>,
        }
        let query = format!(
            "SELECT id, target_service_key AS key, retry_count, last_failure, \
             status = 'running' AND last_start_at < now() - interval '{LONG} seconds' AS is_working \
             FROM sys_invocation WHERE target_service_name = '{TASK}' AND target_handler_name = 'run' \
             AND target_service_key LIKE '{}%' AND status <> 'completed'",
            key_of(batch)
        );
        let query = json!({ "query": query });
        let answer = self.0.send(Method::POST, "/query", Some(&query)).await?;
        let found: Found = answer.accepted()?.json()?;
        Ok(found.rows)
    }

    /// Registers the first workers. Others may register another address at the same time. The server has one
    /// address for all tasks, so the later registration is undone.
    async fn register_first(&self, uri: &str) -> Result<Service, EngineError> {
        let register = json!({ "uri": uri, "force": false });
        let answer = self.0.send(Method::POST, "/deployments", Some(&register));
        let done: Registered = answer.await?.accepted()?.json()?;
        let task = done.services.iter().find(|service| service.name == TASK);
        if task.is_some_and(|task| task.revision > 1) {
            let path = format!("/deployments/{}?force=true", done.id);
            let answer = self.0.send(Method::DELETE, &path, None::<&()>).await?;
            answer.accepted()?;
        }
        let registered = self.service().await?;
        registered.ok_or_else(|| EngineError::Refused("the registration was not saved".to_owned()))
    }

    /// Returns the task service; `None` if no worker was ever registered.
    async fn service(&self) -> Result<Option<Service>, EngineError> {
        let answer = self.0.get(&format!("/services/{TASK}")).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        answer.accepted()?.json().map(Some)
    }
}

/// Returns the `HOST:PORT` of an address in the server's notation.
fn authority(url: &str) -> &str {
    url.trim_start_matches("http://").trim_end_matches('/')
}
