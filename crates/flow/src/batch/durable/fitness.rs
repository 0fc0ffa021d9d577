use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

/// How often a task tries a model that is unusable here.
const PROBE: Duration = Duration::from_secs(5);

/// The start of the error with which a worker hands a task back to the server.
pub(super) const UNFIT: &str = "this worker cannot run the task";

/// The models that this worker cannot use, with the reason, e.g. a rejected key or a server that is down.
/// Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Fitness(Arc<Mutex<HashMap<String, Unfit>>>);

#[derive(Debug)]
struct Unfit {
    problem: String,
    /// When the next task may try the model.
    probe: Instant,
}

impl Fitness {
    /// Checks whether a task with this model may run. While the model is unusable, one task every few seconds
    /// may try it.
    ///
    /// # Errors
    /// The reason, if the task must go back to the server.
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

    /// Marks the model as unusable, for a reason unrelated to the task. Returns whether that is new.
    pub(super) fn fails(&self, model: &str, problem: &str, now: Instant) -> bool {
        let unfit = Unfit {
            problem: problem.to_owned(),
            probe: now + PROBE,
        };
        self.models().insert(model.to_owned(), unfit).is_none()
    }

    /// Marks the model as usable. Returns whether that is new.
    pub(super) fn works(&self, model: &str) -> bool {
        self.models().remove(model).is_some()
    }

    /// Returns why tasks with this model go back to the server, if they do.
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
    fn an_unusable_model_is_probed_until_it_works() {
        let (fitness, now) = (Fitness::default(), Instant::now());
        assert_eq!(fitness.check("a:b", now), Ok(()));
        assert!(fitness.fails("a:b", "no key", now));
        assert!(fitness.check("a:b", now).unwrap_err().ends_with(": no key"));
        assert_eq!(fitness.check("a:c", now), Ok(()));
        let later = now + PROBE;
        // The first is the probe; the others wait for its result.
        assert_eq!(fitness.check("a:b", later), Ok(()));
        assert!(fitness.check("a:b", later).is_err());
        assert!(!fitness.fails("a:b", "no key", later));
        assert!(fitness.works("a:b"));
        assert!(!fitness.works("a:b"));
        assert_eq!(fitness.check("a:b", later), Ok(()));
    }
}
