use std::num::NonZeroUsize;

/// The threads of an engine. With one thread, the caller's thread does the work and there is no pool.
pub(super) struct Workers(Option<rayon::ThreadPool>);

impl Workers {
    /// Creates a pool that is separate from any other in the process. If the system cannot create the threads, the
    /// caller's thread does the work.
    pub(super) fn new(threads: NonZeroUsize) -> Self {
        if threads.get() == 1 {
            return Self(None);
        }
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .thread_name(|i| format!("embedded-{i}"))
            .build();
        Self(pool.ok())
    }

    /// The number of threads.
    pub(super) fn count(&self) -> usize {
        self.0
            .as_ref()
            .map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// Runs `work` inside the pool, where [`Workers::split`] is cheaper.
    pub(super) fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            None => work(),
            Some(pool) => pool.install(work),
        }
    }

    /// Splits `out` into pieces of whole units and calls `work` concurrently with each piece and the index of its
    /// first unit.
    pub(super) fn split(
        &self,
        out: &mut [f32],
        unit: usize,
        work: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        let units = out.len() / unit;
        let Some(pool) = &self.0 else {
            return work(0, out);
        };
        // Several pieces per thread, so that a delayed thread does not delay the rest.
        let pieces = (pool.current_num_threads() * 4).min(units.max(1));
        let size = units.div_ceil(pieces).max(1);
        let work = &work;
        pool.install(|| {
            rayon::scope(|scope| {
                for (i, piece) in out.chunks_mut(size * unit).enumerate() {
                    scope.spawn(move |_| work(i * size, piece));
                }
            });
        });
    }
}

/// The number of cores minus one, at least 1, to keep the machine responsive.
pub fn default_threads() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores.saturating_sub(1)).unwrap_or(NonZeroUsize::MIN)
}
