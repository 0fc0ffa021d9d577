//! The side of the server that takes requests: hands tasks in and gets their rows.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::Deserialize;

use super::address::EngineAddress;
use super::client::{Answer, Client};
use super::error::EngineError;
use super::job::{Done, Job, Rates};
use super::limits::{Limited, Turn};
use super::workflow::TASK;
use crate::batch::row::{Row, Status};
use crate::model::ChatModel;
use crate::types::{ExitCode, ModelId};

/// The service of the limits.
const LIMIT: &str = "ReflectLimit";

/// How long is waited before the server is asked again, where it could not be reached or has no workers yet.
const AGAIN: Duration = Duration::from_secs(1);

/// What those who wait for a row may want to know.
#[derive(Debug)]
pub enum Notice<'a> {
    /// This is in the way.
    Waits(&'a EngineError),
    /// The task is found at this address.
    HandedIn(&'a str),
}

/// Whether a job was handed in now or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handed {
    Now,
    Before,
}

/// What came of waiting for a row.
enum Waited {
    Done(Box<Done>),
    /// The task came to no row: somebody ended it at the server.
    Ended(String),
    /// The server does not know the task any more.
    Forgotten,
}

impl Waited {
    fn is_failure(&self) -> bool {
        match self {
            Self::Done(done) => done.row.status.is_failure(),
            Self::Ended(_) => true,
            Self::Forgotten => false,
        }
    }
}

/// The server's side for requests.
pub struct Ingress {
    client: Client,
}

impl Ingress {
    /// The server at this address. Nothing is asked yet.
    ///
    /// # Errors
    /// If no client can be made for it.
    pub fn new(address: &EngineAddress) -> Result<Self, EngineError> {
        let client = Client::new(address.ingress())?;
        Ok(Self { client })
    }

    /// Finds out whether the server is there.
    ///
    /// # Errors
    /// If it is not, or is something else.
    pub async fn check(&self) -> Result<(), EngineError> {
        let answer = self.client.get("/restate/health").await?;
        answer.accepted().map(drop)
    }

    /// Hands a job in and waits for its row. A job that was handed in before, in a batch of the same name, is not done
    /// again; with `again`, one that had failed is. `tell` is told what happens meanwhile.
    ///
    /// This waits as long as it takes: for the server to come back, for a worker, for the task. Giving up does not end
    /// the task. What a run says of memory is given only where the job was handed in by this call: so it is given once.
    pub async fn done(
        &self,
        job: &Job,
        batch: &str,
        again: bool,
        mut tell: impl FnMut(Notice<'_>),
    ) -> Done {
        let mut turn = 0;
        let mut is_ours = false;
        loop {
            let key = job.key(batch, turn);
            let outcome = match self.hand_in(&key, job).await {
                Ok(handed) => {
                    is_ours |= handed == Handed::Now;
                    let url = format!("{}/{TASK}/{key}", self.client.base());
                    tell(Notice::HandedIn(&url));
                    self.wait(&key).await.map(|waited| (handed, waited))
                }
                Err(error) => Err(error),
            };
            let done = match outcome {
                // What had failed before is what is to be done again.
                Ok((Handed::Before, waited)) if again && waited.is_failure() => {
                    turn += 1;
                    is_ours = false;
                    continue;
                }
                Ok((_, Waited::Done(done))) => *done,
                Ok((_, Waited::Forgotten)) => continue,
                Ok((_, Waited::Ended(problem))) | Err(EngineError::Refused(problem)) => {
                    ended(job, problem)
                }
                Err(error) => {
                    tell(Notice::Waits(&error));
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            };
            return Done {
                row: Row {
                    line: job.line,
                    ..done.row
                },
                compared: done.compared.filter(|_| is_ours),
            };
        }
    }

    async fn hand_in(&self, key: &str, job: &Job) -> Result<Handed, EngineError> {
        #[derive(Deserialize)]
        struct Said {
            status: String,
        }
        let path = format!("/{TASK}/{key}/run/send");
        let answer = self.client.send(Method::POST, &path, Some(job)).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Err(EngineError::NoWorker);
        }
        self.usable(&answer)?;
        let said: Said = answer.json()?;
        Ok(if said.status == "PreviouslyAccepted" {
            Handed::Before
        } else {
            Handed::Now
        })
    }

    async fn wait(&self, key: &str) -> Result<Waited, EngineError> {
        #[derive(Deserialize)]
        struct Failure {
            message: String,
            source: Option<String>,
        }
        let path = format!("/restate/workflow/{TASK}/{key}/attach");
        let answer = self.client.get(&path).await?;
        if answer.status.is_success() {
            return answer.json().map(Waited::Done);
        }
        match answer.json::<Failure>() {
            Ok(failure) if failure.source.as_deref() == Some("invocation") => {
                Ok(Waited::Ended(failure.message))
            }
            _ if answer.status == StatusCode::NOT_FOUND => Ok(Waited::Forgotten),
            _ => self.usable(&answer).map(|()| Waited::Forgotten),
        }
    }

    /// Asks for a turn to call a model: how long to wait for it.
    pub(super) async fn enter(&self, model: &ModelId, turn: Turn) -> Result<Duration, EngineError> {
        let path = format!("/{LIMIT}/{}/enter", encoded(&model.to_string()));
        let answer = self.client.send(Method::POST, &path, Some(&turn)).await?;
        self.usable(&answer)?;
        answer.json().map(Duration::from_millis)
    }

    /// This model, which keeps to the limits of all workers together.
    pub fn before(self: &Arc<Self>, model: Arc<dyn ChatModel>, rates: Rates) -> Arc<dyn ChatModel> {
        if rates.is_free() {
            return model;
        }
        Arc::new(Limited::new(model, Arc::clone(self), rates))
    }

    /// A server that is busy or about to stop is as good as one that is not there.
    fn usable(&self, answer: &Answer) -> Result<(), EngineError> {
        let status = answer.status;
        if status.is_success() {
            return Ok(());
        }
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            let base = self.client.base().to_owned();
            return Err(EngineError::Unreachable(base, answer.message()));
        }
        Err(EngineError::Refused(answer.message()))
    }
}

/// The row of a task that came to none of its own.
fn ended(job: &Job, problem: String) -> Done {
    Done {
        row: Row {
            status: Status::Failed,
            exit_code: ExitCode::Failure,
            ..Row::invalid(job.line, Some(job.id.clone()), problem)
        },
        compared: None,
    }
}

/// As one step of a path.
fn encoded(text: &str) -> String {
    let mut path = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            path.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(path, "%{byte:02X}");
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_model_is_one_step_of_a_path() {
        assert_eq!(encoded("ollama/qwen3:4b"), "ollama%2Fqwen3%3A4b");
        assert_eq!(encoded("a-b._~9"), "a-b._~9");
        assert_eq!(encoded("é"), "%C3%A9");
    }
}
