//! The server's ingress: submits tasks and waits for their rows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use reqwest::{Method, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::OnceCell;

use super::client::{Answer, Client, RETRY_PAUSE};
use super::error::EngineError;
use super::job::{Done, Job, Rates};
use super::limits::{Limited, Turn};
use super::workflow::{Outcome, Room, TASK};
use crate::batch::EngineAddress;
use crate::batch::row::{Row, Status};
use crate::model::ChatModel;
use crate::types::{ExitCode, ModelId};

/// The service of the limits.
const LIMIT: &str = "ReflectLimit";

/// The server's message about a cancelled invocation.
const CANCELLED: &str = "cancelled";

/// An event while waiting for a row.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The server is unavailable at the moment.
    Waits(&'a EngineError),
    /// The task was submitted; this is its URL.
    Submitted(&'a str),
}

/// Whether a job was submitted now or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Submitted {
    Now,
    Before,
}

/// The result of waiting for a row.
enum Waited {
    Done(Box<Done>),
    /// The task was cancelled.
    Cancelled,
    /// The task ended at the server without a row.
    Ended(String),
    /// The server no longer knows the task.
    Forgotten,
}

impl Waited {
    fn is_failure(&self) -> bool {
        match self {
            Self::Done(done) => done.row.status.is_failure(),
            Self::Ended(_) | Self::Cancelled => true,
            Self::Forgotten => false,
        }
    }
}

/// The capacity of the workers, from their latest rows.
#[derive(Debug, Default)]
struct Rooms {
    latest: VecDeque<Room>,
}

impl Rooms {
    /// Records the capacity of a row's worker. Workers without recent rows are forgotten.
    fn see(&mut self, room: Room) {
        self.latest.push_back(room);
        let most = 4 * self.limit().unwrap_or_default();
        while self.latest.len() > most {
            self.latest.pop_front();
        }
    }

    /// Returns 1.25 times the capacity of all workers, so that none runs out of tasks and a new worker gets
    /// some.
    fn limit(&self) -> Option<usize> {
        let rooms: HashMap<&str, usize> = self
            .latest
            .iter()
            .map(|room| (room.worker.as_str(), room.tasks))
            .collect();
        let all: usize = rooms.values().sum();
        (all > 0).then_some(all + all / 4 + 2)
    }
}

/// A client of the server's ingress.
pub struct Ingress {
    client: Client,
    /// The keys of the tasks that were submitted and have no row yet.
    submitted: Mutex<HashSet<String>>,
    rooms: Mutex<Rooms>,
    /// Set once the server's clock is known.
    clock: OnceCell<()>,
}

impl Ingress {
    /// Creates a client for the server at this address, without connecting.
    ///
    /// # Errors
    /// If the client cannot be created.
    pub fn new(address: &EngineAddress) -> Result<Self, EngineError> {
        let client = Client::new(address.ingress())?;
        Ok(Self {
            client,
            submitted: Mutex::default(),
            rooms: Mutex::default(),
            clock: OnceCell::new(),
        })
    }

    /// Checks that the server responds.
    ///
    /// # Errors
    /// If it does not respond, or is not a Restate server.
    pub async fn check(&self) -> Result<(), EngineError> {
        let answer = self.client.get("/restate/health").await?;
        answer.accepted().map(drop)
    }

    /// Submits a job and waits for its row. A job submitted earlier in a batch of the same name is not
    /// repeated, unless it failed and `again` is set. `notify` receives events meanwhile.
    ///
    /// Waits without limit: for the server, for a worker, for the task. Dropping the future does not end the
    /// task. Only the call that submitted a job receives its comparison, so that it is counted once.
    pub async fn done(
        &self,
        job: &Job,
        batch: &str,
        again: bool,
        mut notify: impl FnMut(Notice<'_>),
    ) -> Done {
        let mut turn = 0;
        let mut is_ours = false;
        loop {
            let key = job.key(batch, turn);
            self.submitted().insert(key.clone());
            let outcome = match self.submit(&key, job).await {
                Ok(when) => {
                    is_ours |= when == Submitted::Now;
                    let url = format!("{}/{TASK}/{key}", self.client.base());
                    notify(Notice::Submitted(&url));
                    self.wait(&key).await.map(|waited| (when, waited))
                }
                Err(error) => Err(error),
            };
            self.submitted().remove(&key);
            let done = match outcome {
                // It failed before and is now repeated.
                Ok((Submitted::Before, waited))
                    if again && waited.is_failure() || matches!(waited, Waited::Cancelled) =>
                {
                    turn += 1;
                    is_ours = false;
                    continue;
                }
                Ok((_, Waited::Done(done))) => *done,
                Ok((_, Waited::Forgotten)) => continue,
                Ok((_, Waited::Cancelled)) => ended(job, "it was cancelled".to_owned()),
                Ok((_, Waited::Ended(problem))) | Err(EngineError::Refused(problem)) => {
                    ended(job, problem)
                }
                Err(error) => {
                    notify(Notice::Waits(&error));
                    tokio::time::sleep(RETRY_PAUSE).await;
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

    /// Whether this process submitted the task with this key and still waits for its row.
    pub fn has_submitted(&self, key: &str) -> bool {
        self.submitted().contains(key)
    }

    /// Returns how many tasks to keep submitted: slightly more than the capacity of the workers. `None`
    /// before the first row.
    pub fn room(&self) -> Option<usize> {
        self.rooms().limit()
    }

    fn submitted(&self) -> MutexGuard<'_, HashSet<String>> {
        self.submitted.lock()
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock()
    }

    async fn submit(&self, key: &str, job: &Job) -> Result<Submitted, EngineError> {
        #[derive(Deserialize)]
        struct Accepted {
            status: String,
        }
        let path = format!("/{TASK}/{key}/run/send");
        let answer = self.client.send(Method::POST, &path, Some(job)).await?;
        if answer.status == StatusCode::NOT_FOUND {
            return Err(EngineError::NoWorker);
        }
        self.usable(&answer)?;
        let accepted: Accepted = answer.json()?;
        Ok(if accepted.status == "PreviouslyAccepted" {
            Submitted::Before
        } else {
            Submitted::Now
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
            let Outcome { done, room } = answer.json()?;
            self.rooms().see(room);
            return Ok(Waited::Done(Box::new(done)));
        }
        match answer.json::<Failure>() {
            Ok(failure)
                if answer.status == StatusCode::CONFLICT && failure.message == CANCELLED =>
            {
                Ok(Waited::Cancelled)
            }
            Ok(failure) if failure.source.as_deref() == Some("invocation") => {
                Ok(Waited::Ended(failure.message))
            }
            _ if answer.status == StatusCode::NOT_FOUND => Ok(Waited::Forgotten),
            _ => self.usable(&answer).map(|()| Waited::Forgotten),
        }
    }

    /// Polls the server for a second, to receive a date right after its clock has ticked.
    async fn see_clock(&self) -> Result<(), EngineError> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            self.check().await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Requests a turn from the limits of a model. Returns how long to wait.
    ///
    /// `turn` receives the time on the server's clock.
    pub(super) async fn enter(
        &self,
        model: &ModelId,
        turn: impl FnOnce(f64) -> Turn,
    ) -> Result<Duration, EngineError> {
        self.clock.get_or_try_init(|| self.see_clock()).await?;
        let turn = turn(self.client.time());
        let path = path(&[LIMIT, &model.to_string(), "enter"]);
        let answer = self.client.send(Method::POST, &path, Some(&turn)).await?;
        self.usable(&answer)?;
        answer.json().map(Duration::from_millis)
    }

    /// Wraps a model with the limits shared by all workers.
    pub fn before(self: &Arc<Self>, model: Arc<dyn ChatModel>, rates: Rates) -> Arc<dyn ChatModel> {
        if rates.is_free() {
            return model;
        }
        Arc::new(Limited::new(model, Arc::clone(self), rates))
    }

    /// Checks the status of a reply. A server that is busy or shutting down counts as unreachable.
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

/// Encodes segments as a URL path.
fn path(segments: &[&str]) -> String {
    // Only the path of this URL is used.
    let url = Url::parse("http://localhost");
    url.map_or_else(
        |_| String::new(),
        |mut url| {
            let _ = url.path_segments_mut().map(|mut path| {
                path.extend(segments);
            });
            url.path().to_owned()
        },
    )
}

/// Creates the row of a task that ended without one.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_workers_with_recent_rows_count_towards_the_capacity() {
        let room = |worker: &str, tasks| Room {
            worker: worker.to_owned(),
            tasks,
        };
        let mut rooms = Rooms::default();
        assert_eq!(rooms.limit(), None);
        rooms.see(room("a", 4));
        rooms.see(room("b", 4));
        rooms.see(room("a", 8));
        assert_eq!(rooms.limit(), Some(17));
        // The other worker sends no more rows.
        for _ in 0..100 {
            rooms.see(room("a", 8));
        }
        assert_eq!(rooms.limit(), Some(12));
    }

    #[test]
    fn a_model_name_is_one_path_segment() {
        let enter = |model| path(&[LIMIT, model, "enter"]);
        assert_eq!(
            enter("ollama:qwen3/4b?"),
            "/ReflectLimit/ollama:qwen3%2F4b%3F/enter"
        );
        assert_eq!(enter("é"), "/ReflectLimit/%C3%A9/enter");
    }
}
