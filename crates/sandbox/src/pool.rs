use std::path::PathBuf;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::limits::Limits;
use super::runner::{CPU, Worker, WorkerKey};
use super::script::{Language, ScriptError, ScriptErrorKind, ScriptOutcome, ScriptRequest};

/// How many evaluations a worker serves before it is replaced, to bound memory leaks in interpreters.
const USES: u32 = 500;

/// A pool of warm interpreters: one worker serves many evaluations, each with a fresh state. A worker that hits a
/// limit is killed and replaced. Dropping the pool kills all workers.
#[derive(Debug)]
pub struct ScriptPool {
    /// Our own binary, for Lua.
    binary: PathBuf,
    places: Semaphore,
    size: usize,
    idle: Mutex<Vec<Worker>>,
}

impl ScriptPool {
    /// The default number of workers: the number of cores.
    pub fn default_size() -> usize {
        std::thread::available_parallelism().map_or(2, std::num::NonZero::get)
    }

    /// A pool of the default size. `worker_binary` is a program whose `main` calls
    /// [`worker_main`](super::worker_main), usually this program itself (`std::env::current_exe()`).
    pub fn new(worker_binary: PathBuf) -> Self {
        Self::with_size(worker_binary, Self::default_size())
    }

    /// A pool of at most `size` workers (at least one); further evaluations wait for a free worker.
    pub fn with_size(worker_binary: PathBuf, size: usize) -> Self {
        let size = size.max(1);
        Self {
            binary: worker_binary,
            places: Semaphore::new(size),
            size,
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Evaluates one script. The time limit starts when a worker is free.
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
        let key = WorkerKey::new(language, limits);
        let mut worker = match self.take(key) {
            Some(worker) => worker,
            None => Worker::start(key, &self.binary, limits)?,
        };
        let result = worker.evaluate(request, limits).await;
        if worker.is_reusable() && worker.uses() < USES && worker.busy() < CPU / 2 {
            self.put(worker);
        }
        let answer = result?;
        Ok(ScriptOutcome {
            value: answer.value,
            prints: answer.prints,
            duration: started.elapsed(),
        })
    }

    /// The number of idle workers.
    pub fn idle(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, Vec<Worker>> {
        self.idle.lock()
    }

    /// Takes a worker with this key. If there is none, removes the longest idle worker of another kind.
    fn take(&self, key: WorkerKey) -> Option<Worker> {
        let mut idle = self.lock();
        // On Linux a worker dies with the thread that started it, which may have ended.
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
