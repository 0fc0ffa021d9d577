//! What two sequences have in common.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Instant;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// The numbers of things: equal ones have the same, and numbers are compared faster than texts.
#[derive(Debug)]
pub(crate) struct Numbers<T>(HashMap<T, u32>);

impl<T: Eq + Hash> Numbers<T> {
    /// None so far.
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    /// The number of this one.
    pub(crate) fn of(&mut self, thing: T) -> u32 {
        let next = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        *self.0.entry(thing).or_insert(next)
    }
}

/// What has to be done to make one sequence the other, with as few changes as there can be (Myers 1986, "An O(ND)
/// Difference Algorithm and Its Variations"). What is found after the deadline is right, but longer than it need be.
///
/// For numbers only, and by its one algorithm: the library would compile all that it has for every type.
pub(crate) fn edit_script(old: &[u32], new: &[u32], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut script = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff_deadline(&mut script, old, 0..old.len(), new, 0..new.len(), deadline);
    script.into_inner().into_inner().into_ops()
}
