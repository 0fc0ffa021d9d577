//! The server's ingress, which takes requests: submits tasks and waits for their rows.

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

/// What happens while a row is awaited.
#[derive(Debug)]
pub enum Notice<'a> {
    /// The server cannot be used at the moment.
    Waits(&'a EngineError),
    /// The task was submitted and has this address.
    Submitted(&'a str),
}

/// Whether a job was submitted now or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Submitted {
    Now,
    Before,
}

/// How the wait for a row ended.
enum Waited {
    Done(Box<Done>),
    /// The task was cancelled.
    Cancelled,
    /// The task was ended at the server, without a row.
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

/// How much room the workers have, from their latest rows.
#[derive(Debug, Default)]
struct Rooms {
    latest: VecDeque<Room>,
}

impl Rooms {
    /// Takes in the worker of a row. Workers without recent rows are forgotten.
    fn see(&mut self, room: Room) {
        self.latest.push_back(room);
        let most = 4 * self.limit().unwrap_or_default();
        while self.latest.len() > most {
            self.latest.pop_front();
        }
    }

    /// The number of tasks that all workers have room for and a quarter more, so that none runs out of tasks and a new
    /// worker gets some.
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
    /// The server at this address. Sends nothing yet.
    ///
    /// # Errors
    /// If no client can be made for it.
    pub fn new(address: &EngineAddress) -> Result<Self, EngineError> {
        let client = Client::new(address.ingress())?;
        Ok(Self {
            client,
            submitted: Mutex::default(),
            rooms: Mutex::default(),
            clock: OnceCell::new(),
        })
    }

    /// Checks that the server answers.
    ///
    /// # Errors
    /// If it does not, or is something else.
    pub async fn check(&self) -> Result<(), EngineError> {
        let answer = self.client.get("/restate/health").await?;
        answer.accepted().map(drop)
    }

    /// Submits a job and waits for its row. A job that was submitted before in a batch of the same name is not done
    /// again, unless it failed and `again` is set. `notify` receives what happens meanwhile.
    ///
    /// Waits without limit: for the server to come back, for a worker, for the task. Dropping the future does not end
    /// the task. Only the call that submitted a job gets its comparison, so that nobody gets it twice.
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
                // It failed before and is now done again.
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

    /// Whether this process submitted the task with this key and has no row of it yet.
    pub fn has_submitted(&self, key: &str) -> bool {
        self.submitted().contains(key)
    }

    /// How many tasks to have submitted: the room of the workers and some more. `None` before the first row.
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

    /// Asks the server for a second, so that one of the answers comes right after its clock has moved on.
    async fn see_clock(&self) -> Result<(), EngineError> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            self.check().await?;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Asks the limits of a model for a turn. Returns how long to wait.
    ///
    /// `turn` receives the time by the server's clock.
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

    /// This model with the limits that hold for all workers together.
    pub fn before(self: &Arc<Self>, model: Arc<dyn ChatModel>, rates: Rates) -> Arc<dyn ChatModel> {
        if rates.is_free() {
            return model;
        }
        Arc::new(Limited::new(model, Arc::clone(self), rates))
    }

    /// A server that is busy or about to stop counts as unreachable.
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

/// A path of these segments.
fn path(segments: &[&str]) -> String {
    // Only its path is used.
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

/// The row of a task that ended without one.
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
    fn the_room_is_that_of_workers_with_recent_rows() {
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
        // The other one sends no more rows.
        for _ in 0..100 {
            rooms.see(room("a", 8));
        }
        assert_eq!(rooms.limit(), Some(12));
    }

    #[test]
    fn the_name_of_a_model_is_one_segment_of_a_path() {
        let enter = |model| path(&[LIMIT, model, "enter"]);
        assert_eq!(
            enter("ollama:qwen3/4b?"),
            "/ReflectLimit/ollama:qwen3%2F4b%3F/enter"
        );
        assert_eq!(enter("é"), "/ReflectLimit/%C3%A9/enter");
    }
}
