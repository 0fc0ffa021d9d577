//! The side of the server that takes requests: hands tasks in and gets their rows.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use reqwest::{Method, StatusCode};
use serde::Deserialize;

use super::address::EngineAddress;
use super::client::{Answer, Client};
use super::error::EngineError;
use super::job::{Done, Job, Rates};
use super::limits::{Limited, Turn};
use super::workflow::{Outcome, Room, TASK};
use tokio::sync::OnceCell;

use crate::batch::row::{Row, Status};
use crate::model::ChatModel;
use crate::types::{ExitCode, ModelId};

/// The service of the limits.
const LIMIT: &str = "ReflectLimit";

/// How well the server's clock must be known, in seconds, and how often it is looked at for that.
const CERTAIN: f64 = 0.15;
const LOOKS: u32 = 25;

/// The message of an invocation that somebody cancelled.
const CANCELLED: &str = "cancelled";

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
    /// Somebody cancelled it.
    Cancelled,
    /// The task came to no row: somebody ended it at the server.
    Ended(String),
    /// The server does not know the task any more.
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

/// The room of the workers, as their latest rows tell it.
#[derive(Debug, Default)]
struct Rooms {
    latest: VecDeque<Room>,
}

impl Rooms {
    /// Takes in a row's worker. Of those that have sent no row for long nothing more is known.
    fn see(&mut self, room: Room) {
        self.latest.push_back(room);
        let most = 4 * self.limit().unwrap_or_default();
        while self.latest.len() > most {
            self.latest.pop_front();
        }
    }

    /// As many tasks as all workers have room for, and a quarter more: so that one waits wherever one ends, and a
    /// worker that is new gets some.
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

/// The server's side for requests.
pub struct Ingress {
    client: Client,
    /// The keys of the tasks that were handed in and have no row yet.
    handed_in: Mutex<HashSet<String>>,
    rooms: Mutex<Rooms>,
    /// Set once the server's clock is known.
    clock: OnceCell<()>,
}

impl Ingress {
    /// The server at this address. Nothing is asked yet.
    ///
    /// # Errors
    /// If no client can be made for it.
    pub fn new(address: &EngineAddress) -> Result<Self, EngineError> {
        let client = Client::new(address.ingress())?;
        Ok(Self {
            client,
            handed_in: Mutex::default(),
            rooms: Mutex::default(),
            clock: OnceCell::new(),
        })
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
            self.handed_in().insert(key.clone());
            let outcome = match self.hand_in(&key, job).await {
                Ok(handed) => {
                    is_ours |= handed == Handed::Now;
                    let url = format!("{}/{TASK}/{key}", self.client.base());
                    tell(Notice::HandedIn(&url));
                    self.wait(&key).await.map(|waited| (handed, waited))
                }
                Err(error) => Err(error),
            };
            self.handed_in().remove(&key);
            let done = match outcome {
                // What had failed before is what is to be done again.
                Ok((Handed::Before, waited))
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

    /// Whether this process handed in the task of this key, and has no row of it yet.
    pub fn has_handed_in(&self, key: &str) -> bool {
        self.handed_in().contains(key)
    }

    /// How many tasks the workers have room for, with some to wait for them; `None` before the first row.
    pub fn room(&self) -> Option<usize> {
        self.rooms().limit()
    }

    fn handed_in(&self) -> MutexGuard<'_, HashSet<String>> {
        self.handed_in.lock()
    }

    fn rooms(&self) -> MutexGuard<'_, Rooms> {
        self.rooms.lock()
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

    /// Asks the server until it is known well what its clock shows, which takes a second at the most.
    async fn see_clock(&self) -> Result<(), EngineError> {
        for _ in 0..LOOKS {
            self.check().await?;
            if self.client.uncertainty() < CERTAIN {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Asks for a turn to call a model: how long to wait for it.
    ///
    /// The turn is made for the time by the server's clock.
    pub(super) async fn enter(
        &self,
        model: &ModelId,
        turn: impl FnOnce(f64) -> Turn,
    ) -> Result<Duration, EngineError> {
        self.clock.get_or_try_init(|| self.see_clock()).await?;
        let turn = turn(self.client.time());
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
    fn the_room_is_that_of_the_workers_whose_rows_come() {
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
        // The other one sends nothing any more.
        for _ in 0..100 {
            rooms.see(room("a", 8));
        }
        assert_eq!(rooms.limit(), Some(12));
    }

    #[test]
    fn the_name_of_a_model_is_one_step_of_a_path() {
        assert_eq!(encoded("ollama/qwen3:4b"), "ollama%2Fqwen3%3A4b");
        assert_eq!(encoded("a-b._~9"), "a-b._~9");
        assert_eq!(encoded("é"), "%C3%A9");
    }
}
