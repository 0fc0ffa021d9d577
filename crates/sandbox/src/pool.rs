use std::path::PathBuf;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::limits::Limits;
use super::runner::{CPU, Key, Worker};
use super::script::{Language, ScriptError, ScriptErrorKind, ScriptOutcome, ScriptRequest};

/// A worker is replaced after so many evaluations, so that what leaks in an interpreter stays small.
const USES: u32 = 500;

/// Keeps interpreters warm: one worker serves many evaluations, each with a fresh state. A worker
/// that hits a limit is killed and replaced. Dropping the pool kills them all.
#[derive(Debug)]
pub struct ScriptPool {
    /// Our own binary, for Lua.
    binary: PathBuf,
    places: Semaphore,
    size: usize,
    idle: Mutex<Vec<Worker>>,
}

impl ScriptPool {
    /// At most this many workers unless told otherwise: as many as there are cores.
    pub fn default_size() -> usize {
        std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
    }

    /// `worker_binary` is a program whose `main` calls [`worker_main`](super::worker_main): this
    /// program itself (`std::env::current_exe()`) in the command.
    pub fn new(worker_binary: PathBuf) -> Self {
        Self::with_size(worker_binary, Self::default_size())
    }

    /// With at most `size` workers (at least one); further evaluations wait for a place.
    pub fn with_size(worker_binary: PathBuf, size: usize) -> Self {
        let size = size.max(1);
        Self {
            binary: worker_binary,
            places: Semaphore::new(size),
            size,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Evaluates one script. The time limit counts from when a worker is free for it.
    pub async fn evaluate(
        &self,
        language: Language,
        request: &ScriptRequest,
        limits: &Limits,
    ) -> Result<ScriptOutcome, ScriptError> {
        let Ok(_place) = self.places.acquire().await else {
            let gone = "the pool was closed";
            return Err(ScriptError::new(language, ScriptErrorKind::Protocol, gone));
        };
        let started = Instant::now();
        let key = Key::new(language, limits);
        let mut worker = match self.take(key) {
            Some(worker) => worker,
            None => Worker::start(key, &self.binary, limits)?,
        };
        let result = worker.evaluate(request, limits).await;
        if worker.is_fit() && worker.uses() < USES && worker.busy() < CPU / 2 {
            self.put(worker);
        }
        let answer = result?;
        Ok(ScriptOutcome {
            value: answer.value,
            prints: answer.prints,
            duration: started.elapsed(),
        })
    }

    /// How many workers wait for work.
    pub fn idle(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<Worker>> {
        self.idle.lock()
    }

    /// A worker of this kind. Where there is none, the longest idle one of another kind makes room.
    fn take(&self, key: Key) -> Option<Worker> {
        let mut idle = self.lock();
        // A worker ends with the thread that started it, which may be gone.
        idle.retain_mut(Worker::is_alive);
        if let Some(at) = idle.iter().rposition(|worker| worker.key() == key) {
            return Some(idle.remove(at));
        }
        let busy = self.size - self.places.available_permits().min(self.size);
        let removed = (idle.len() + busy > self.size && !idle.is_empty()).then(|| idle.remove(0));
        drop(idle);
        drop(removed);
        None
    }

    fn put(&self, worker: Worker) {
        self.lock().push(worker);
    }
}
