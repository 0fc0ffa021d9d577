//! Who of the workers is the front.

use std::time::Duration;

use hyper::Uri;
use hyper::http::StatusCode;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::EngineError;
use super::front::{JOIN, Join};
use super::wire::{Answer, Peer};
use super::workflow::TASK;

/// How often the front may not answer before another takes its place.
const MISSES: u32 = 3;

/// How long the front may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a worker is among the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The one that the server knows.
    Front,
    /// One of those that the front at this address shares the work with.
    Member(String),
    /// It has no front for the moment.
    Alone,
}

/// A worker's place among the others.
///
/// The server knows one address for all of them, since it has a task that was begun at one address done to its end
/// there. It is that of the front; to move it is one request, and then all tasks are gone on with at the new one.
pub struct Membership {
    /// The server's side for administration.
    admin: Peer,
    /// Where this worker is found by the others and by the server.
    own: String,
    /// The front that this worker has joined.
    front: Option<Peer>,
    misses: u32,
}

#[derive(Deserialize)]
struct Service {
    deployment_id: String,
}

#[derive(Deserialize)]
struct Deployment {
    uri: String,
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

impl Membership {
    /// A worker at `own`, of the server that is administered at `admin`, each as `HOST:PORT`.
    pub fn new(admin: String, own: String) -> Self {
        Self {
            admin: Peer::new(admin),
            own,
            front: None,
            misses: 0,
        }
    }

    /// Finds out how things stand, and sees to it that there is a front. Wants to be done about once a second. `slots`
    /// is how much this worker can take, in proportion to others.
    ///
    /// # Errors
    /// If the server cannot be reached, or cannot reach this worker.
    pub async fn beat(&mut self, slots: usize) -> Result<Standing, EngineError> {
        let url = format!("http://{}/", self.own);
        let answer = self.admin.get(&format!("/services/{TASK}")).await?;
        if answer.status == StatusCode::NOT_FOUND {
            let register = Register {
                uri: &url,
                force: Some(false),
                overwrite: None,
            };
            let answer = self.admin.post("/deployments", &register).await?;
            answer.accepted()?;
            // Another may have done the same meanwhile: the next beat tells.
            return Ok(Standing::Alone);
        }
        let service: Service = read(answer)?;
        let path = format!("/deployments/{}", service.deployment_id);
        let deployment: Deployment = read(self.admin.get(&path).await?)?;
        let front = authority(&deployment.uri);
        if front.as_deref() == Some(&self.own) {
            self.misses = 0;
            return Ok(Standing::Front);
        }
        if let Some(front) = front
            && self.join(&front, slots).await
        {
            self.misses = 0;
            return Ok(Standing::Member(front));
        }
        self.misses += 1;
        if self.misses >= MISSES {
            let register = Register {
                uri: &url,
                force: None,
                overwrite: Some(true),
            };
            self.admin.patch(&path, &register).await?.accepted()?;
            self.misses = 0;
        }
        Ok(Standing::Alone)
    }

    /// Tells the front that this worker is there.
    async fn join(&mut self, front: &str, slots: usize) -> bool {
        let join = Join {
            address: self.own.clone(),
            slots,
        };
        let known = self.front.take().filter(|it| it.authority() == front);
        let peer = known.unwrap_or_else(|| Peer::new(front.to_owned()));
        let asked = tokio::time::timeout(PATIENCE, peer.post(JOIN, &join)).await;
        let joined = matches!(asked, Ok(Ok(answer)) if answer.status.is_success());
        // A connection without an answer is not asked again.
        self.front = joined.then_some(peer);
        joined
    }
}

fn read<T: DeserializeOwned>(answer: Answer) -> Result<T, EngineError> {
    let read = answer.accepted()?.json();
    read.map_err(|error| EngineError::Refused(format!("what it says is new to us: {error}")))
}

/// `HOST:PORT` of an address that the server knows.
fn authority(url: &str) -> Option<String> {
    let url: Uri = url.parse().ok()?;
    let port = url.port_u16().unwrap_or(80);
    Some(format!("{}:{port}", url.host()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        for url in ["http://host:80/", "http://host:80", "http://host"] {
            assert_eq!(authority(url).as_deref(), Some("host:80"), "{url}");
        }
        assert_eq!(authority("http://[::1]:9/").as_deref(), Some("[::1]:9"));
        assert_eq!(authority("/nowhere"), None);
    }
}
