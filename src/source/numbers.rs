use std::collections::HashMap;
use std::hash::Hash;

/// The numbers of things, from 0 on: equal ones have the same, and numbers are compared faster than texts.
#[derive(Debug)]
pub(crate) struct Numbers<T>(HashMap<T, usize>);

impl<T: Eq + Hash> Numbers<T> {
    /// None so far.
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    /// The number of this one.
    pub(crate) fn of(&mut self, thing: T) -> usize {
        let next = self.count();
        *self.0.entry(thing).or_insert(next)
    }

    /// How many different ones there were.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
