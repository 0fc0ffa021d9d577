//! The admin API of the server: where the workers are, and which tasks are to end.

use std::collections::HashMap;

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::error::EngineError;
use super::fitness::UNFIT;
use super::job::key_of;
use super::version;
use super::workflow::TASK;

/// The key under which the server keeps the version of the workers.
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

/// The server's answer to a registration.
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

#[derive(Serialize)]
struct Register<'a> {
    uri: &'a str,
    /// Whether it takes the place of what is registered under the same address.
    #[serde(skip_serializing_if = "Option::is_none")]
    force: Option<bool>,
    /// Whether a newer version of the same services takes the place of an older one.
    #[serde(skip_serializing_if = "Option::is_none")]
    overwrite: Option<bool>,
}

/// A task that has longer been on a worker than this, in seconds, is not about to be handed back.
const LONG: u32 = 4;

/// As often a task is handed back before no worker is taken to be able to do it.
const OFTEN: u64 = 5;

/// A task that has not ended.
#[derive(Deserialize)]
struct Invocation {
    id: String,
    key: String,
    retry_count: Option<u64>,
    last_failure: Option<String>,
    /// Whether a worker has been at it for long enough to be able to.
    at_work: Option<bool>,
}

impl Invocation {
    /// Why workers hand it back again and again, if they do.
    fn unfit(&self) -> Option<String> {
        let is_often = self.retry_count.is_some_and(|count| count >= OFTEN);
        let (_, problem) = self.last_failure.as_ref()?.split_once(UNFIT)?;
        let problem = problem.trim_start_matches(": ").lines().next()?;
        let problem = problem.trim_end_matches(['"', '\'']).to_owned();
        (is_often && self.at_work != Some(true)).then_some(problem)
    }
}

/// The server's admin API.
pub struct Admin(pub(super) Client);

impl Admin {
    /// The API at this URL, or at `HOST:PORT`. Nothing is asked yet.
    ///
    /// # Errors
    /// If no client can be made for it.
    pub fn new(url: String) -> Result<Self, EngineError> {
        let is_url = url.contains("://");
        let url = if is_url { url } else { format!("http://{url}") };
        Client::new(url.trim_end_matches('/').to_owned()).map(Self)
    }

    /// Has the server send its tasks to the workers at `HOST:PORT`. With `replace`, the tasks of workers at another
    /// address or of another version move there, those under way included. To register the same twice does no harm.
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
            let register = Register {
                uri: &uri,
                force: None,
                overwrite: Some(true),
            };
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

    /// Cancels those tasks of a batch whose keys are chosen: each ends before its next call. Returns how many were still
    /// under way.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not answer the question.
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

    /// Why no worker can do the tasks of a batch, if none can: each has been handed back often for a reason that is not
    /// its own, and none is at work.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not answer the question.
    pub async fn is_hopeless(&self, batch: &str) -> Result<Option<String>, EngineError> {
        let found = self.invocations(batch).await?;
        let problems: Option<Vec<String>> = found.iter().map(Invocation::unfit).collect();
        Ok(problems.and_then(|problems| problems.into_iter().next()))
    }

    /// The tasks of a batch that have not ended.
    async fn invocations(&self, batch: &str) -> Result<Vec<Invocation>, EngineError> {
        #[derive(Deserialize)]
        struct Found {
            rows: Vec<Invocation>,
        }
        let query = format!(
            "SELECT id, target_service_key AS key, retry_count, last_failure, \
             status = 'running' AND last_start_at < now() - interval '{LONG} seconds' AS at_work \
             FROM sys_invocation WHERE target_service_name = '{TASK}' AND target_handler_name = 'run' \
             AND target_service_key LIKE '{}%' AND status <> 'completed'",
            key_of(batch)
        );
        let query = serde_json::json!({ "query": query });
        let answer = self.0.send(Method::POST, "/query", Some(&query)).await?;
        let found: Found = answer.accepted()?.json()?;
        Ok(found.rows)
    }

    /// Registers the first workers. Others may do so at the same moment with another address: the server has one
    /// address for all tasks, so the later one is taken back.
    async fn register_first(&self, uri: &str) -> Result<Service, EngineError> {
        let register = Register {
            uri,
            force: Some(false),
            overwrite: None,
        };
        let answer = self.0.send(Method::POST, "/deployments", Some(&register));
        let done: Registered = answer.await?.accepted()?.json()?;
        let task = done.services.iter().find(|service| service.name == TASK);
        if task.is_some_and(|task| task.revision > 1) {
            let path = format!("/deployments/{}?force=true", done.id);
            let answer = self.0.send(Method::DELETE, &path, None::<&()>).await?;
            answer.accepted()?;
        }
        let registered = self.service().await?;
        registered.ok_or_else(|| EngineError::Refused("it forgot the workers".to_owned()))
    }

    /// The tasks as the server knows them; `None` where no worker was ever registered.
    async fn service(&self) -> Result<Option<Service>, EngineError> {
        let answer = self.0.get(&format!("/services/{TASK}")).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        answer.accepted()?.json().map(Some)
    }
}

/// `HOST:PORT` of an address that the server knows.
fn authority(url: &str) -> &str {
    url.trim_start_matches("http://").trim_end_matches('/')
}
