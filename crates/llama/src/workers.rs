use std::num::NonZeroUsize;

/// The threads that an engine computes on. One thread means the caller's own, with no pool at all.
pub(super) struct Workers(Option<rayon::ThreadPool>);

impl Workers {
    /// Threads of their own, apart from any other pool of the process. If the system refuses them,
    /// the caller's thread does the work.
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

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0
            .as_ref()
            .map_or(1, rayon::ThreadPool::current_num_threads)
    }

    /// Runs `work` where the threads are at hand; [`Workers::split`] inside is cheaper then.
    pub(super) fn enter<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            None => work(),
            Some(pool) => pool.install(work),
        }
    }

    /// Cuts `out` into pieces of whole units and gives each with the number of its first unit to
    /// `work`, side by side.
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
        // A few pieces for each thread, so that one that is held up does not hold up the rest.
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

/// Cores but one, so that the terminal and the rest of the machine stay alive; at least 1.
pub fn default_threads() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores.saturating_sub(1)).unwrap_or(NonZeroUsize::MIN)
}
