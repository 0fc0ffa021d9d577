//! Tells the server where the workers are.

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::client::Client;
use super::error::EngineError;
use super::version;
use super::workflow::TASK;

/// The key under which the server keeps the version of the workers.
pub(super) const VERSION: &str = "reflect-version";

#[derive(Deserialize)]
struct Service {
    deployment_id: String,
    revision: u32,
    #[serde(default)]
    metadata: std::collections::BTreeMap<String, String>,
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

/// The server's admin API.
pub struct Admin(pub(super) Client);

impl Admin {
    /// The API at this URL. Nothing is asked yet.
    ///
    /// # Errors
    /// If no client can be made for it.
    pub fn new(url: String) -> Result<Self, EngineError> {
        Client::new(url).map(Self)
    }

    /// Has the server send its tasks to the workers at `HOST:PORT`. With `replace`, the tasks of workers at another
    /// address or of another version move there, those under way included. To register the same twice does no harm.
    ///
    /// # Errors
    /// If the server cannot be reached, cannot reach the address, or has other workers.
    pub async fn register(&self, address: &str, replace: bool) -> Result<(), EngineError> {
        let ours = version();
        let uri = format!("http://{address}/");
        let Some(known) = self.service().await? else {
            return self.register_first(address, &uri).await;
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

    /// Registers the first workers. Others may do so at the same moment with another address: the server has one
    /// address for all tasks, so the later one is taken back.
    async fn register_first(&self, address: &str, uri: &str) -> Result<(), EngineError> {
        let register = Register {
            uri,
            force: Some(false),
            overwrite: None,
        };
        let answer = self.0.send(Method::POST, "/deployments", Some(&register));
        let done: Registered = answer.await?.accepted()?.json()?;
        let task = done.services.iter().find(|service| service.name == TASK);
        if task.is_none_or(|task| task.revision == 1) {
            return Ok(());
        }
        let path = format!("/deployments/{}?force=true", done.id);
        let answer = self.0.send(Method::DELETE, &path, None::<&()>).await?;
        answer.accepted()?;
        let first = self.service().await?.filter(|first| first.revision == 1);
        let at = match first {
            Some(first) => {
                let path = format!("/deployments/{}", first.deployment_id);
                let deployment: Deployment = self.0.get(&path).await?.accepted()?.json()?;
                authority(&deployment.uri).to_owned()
            }
            None => "another address".to_owned(),
        };
        Err(EngineError::OtherAddress(at, address.to_owned()))
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
