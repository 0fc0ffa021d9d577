use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// How often a task is tried with a model that this worker cannot use.
const PROBE: Duration = Duration::from_secs(5);

/// What the server is told of a task that is handed back because this worker cannot do it.
pub(super) const UNFIT: &str = "this worker cannot do the task";

/// With which models this worker cannot do tasks, and why: its key is refused, its server is down. Clones are the same.
#[derive(Debug, Clone, Default)]
pub(super) struct Fitness(Arc<Mutex<HashMap<String, Unfit>>>);

#[derive(Debug)]
struct Unfit {
    problem: String,
    /// When the next task is tried.
    probe: Instant,
}

impl Fitness {
    /// Whether a task with this model is to be tried: where the last one failed, one is from time to time.
    ///
    /// # Errors
    /// If it is to be handed back; says why.
    pub(super) fn check(&self, model: &str, now: Instant) -> Result<(), String> {
        match self.models().get_mut(model) {
            Some(unfit) if now < unfit.probe => Err(format!("{UNFIT}: {}", unfit.problem)),
            Some(unfit) => {
                unfit.probe = now + PROBE;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Tasks with this model fail here, for a reason that is not theirs. Returns whether that is new.
    pub(super) fn fails(&self, model: &str, problem: &str, now: Instant) -> bool {
        let unfit = Unfit {
            problem: problem.to_owned(),
            probe: now + PROBE,
        };
        self.models().insert(model.to_owned(), unfit).is_none()
    }

    /// Tasks with this model do not fail here. Returns whether that is new.
    pub(super) fn works(&self, model: &str) -> bool {
        self.models().remove(model).is_some()
    }

    /// Why tasks with this model are handed back, if they are.
    pub(super) fn problem(&self, model: &str) -> Option<String> {
        let models = self.models();
        Some(format!("{UNFIT}: {}", models.get(model)?.problem))
    }

    fn models(&self) -> MutexGuard<'_, HashMap<String, Unfit>> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_from_time_to_time_until_it_works() {
        let (fitness, now) = (Fitness::default(), Instant::now());
        assert_eq!(fitness.check("a:b", now), Ok(()));
        assert!(fitness.fails("a:b", "no key", now));
        assert!(fitness.check("a:b", now).unwrap_err().ends_with(": no key"));
        assert_eq!(fitness.check("a:c", now), Ok(()));
        let later = now + PROBE;
        // One is the probe; the others wait for it.
        assert_eq!(fitness.check("a:b", later), Ok(()));
        assert!(fitness.check("a:b", later).is_err());
        assert!(!fitness.fails("a:b", "no key", later));
        assert!(fitness.works("a:b"));
        assert!(!fitness.works("a:b"));
        assert_eq!(fitness.check("a:b", later), Ok(()));
    }
}
