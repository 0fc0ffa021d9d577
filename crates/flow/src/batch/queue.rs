//! The queue of tasks that wait to start. It looks a little ahead, so that tasks with the same criteria
//! follow each other and servers find the prefix of their prompts in the cache.

use std::collections::VecDeque;

use super::line::Item;

/// The maximum number of waiting tasks. Also how often a task may be overtaken.
const LOOK_AHEAD: usize = 256;

/// The maximum size of the waiting tasks in bytes, unless a single task is larger.
const MOST_BYTES: usize = 32 << 20;

/// A waiting task.
#[derive(Debug)]
pub(super) struct Waiting {
    /// Its position among all entries of the batch.
    pub(super) place: u64,
    pub(super) line: u64,
    pub(super) id: String,
    pub(super) item: Item,
    pub(super) bytes: usize,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// The criteria of the last task that started.
    last: Option<String>,
    /// How often the first task was overtaken.
    overtaken: usize,
}

impl Queue {
    pub(super) fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes;
        self.waiting.push_back(waiting);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= LOOK_AHEAD || (self.bytes >= MOST_BYTES && !self.is_empty())
    }

    /// Takes the next task: the first one with the same criteria as the last, unless the first task was
    /// overtaken too often.
    pub(super) fn take(&mut self) -> Option<Waiting> {
        let same = |it: &Waiting| it.item.criteria == self.last;
        let index = if self.overtaken >= LOOK_AHEAD {
            0
        } else {
            self.waiting.iter().position(same).unwrap_or(0)
        };
        let taken = self.waiting.remove(index)?;
        self.overtaken = if index == 0 { 0 } else { self.overtaken + 1 };
        self.bytes -= taken.bytes;
        self.last.clone_from(&taken.item.criteria);
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::Task;

    fn waiting(place: u64, criteria: Option<&str>) -> Waiting {
        Waiting {
            place,
            line: place + 1,
            id: place.to_string(),
            item: Item {
                task: Task::default(),
                criteria: criteria.map(str::to_owned),
            },
            bytes: 1,
        }
    }

    #[test]
    fn tasks_with_the_same_criteria_follow_each_other() {
        let mut queue = Queue::default();
        for (place, criteria) in (0..).zip([Some("a"), Some("b"), Some("a"), None, Some("b")]) {
            queue.push(waiting(place, criteria));
        }
        let order: Vec<u64> = std::iter::from_fn(|| queue.take())
            .map(|it| it.place)
            .collect();
        // Tasks without criteria use those of the batch, which come first.
        assert_eq!(order, [3, 0, 2, 1, 4]);
    }

    #[test]
    fn no_task_waits_forever() {
        let mut queue = Queue::default();
        queue.push(waiting(0, Some("rare")));
        for place in 1..10 * LOOK_AHEAD as u64 {
            queue.push(waiting(place, None));
            if queue.take().unwrap().place == 0 {
                assert!(place <= LOOK_AHEAD as u64 + 1);
                return;
            }
        }
        panic!("the first task never started");
    }

    #[test]
    fn the_queue_is_full_by_number_or_by_size() {
        let mut queue = Queue::default();
        queue.push(Waiting {
            bytes: 2 * MOST_BYTES,
            ..waiting(0, None)
        });
        assert!(queue.is_full());
        queue.take();
        assert!(!queue.is_full());
        for place in 0..LOOK_AHEAD as u64 {
            queue.push(waiting(place, None));
        }
        assert!(queue.is_full());
    }

    proptest! {
        #[test]
        fn every_task_is_taken_once(names in proptest::collection::vec(0..4_u8, 0..60), takes in proptest::collection::vec(any::<bool>(), 0..200)) {
            let (mut queue, mut out) = (Queue::default(), Vec::new());
            let mut names = names.into_iter().enumerate();
            let mut put = 0;
            for take in takes {
                if take {
                    out.extend(queue.take().map(|it| it.place));
                } else if let Some((place, name)) = names.next() {
                    queue.push(waiting(place as u64, Some(&name.to_string())));
                    put += 1;
                }
            }
            out.extend(std::iter::from_fn(|| queue.take()).map(|it| it.place));
            out.sort_unstable();
            prop_assert_eq!(out, (0..put).collect::<Vec<u64>>());
            prop_assert_eq!(queue.bytes, 0);
        }
    }
}
