//! What two sequences have in common.

use std::time::Instant;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// What has to be done to make one sequence the other, with as few changes as there can be (Myers 1986, "An O(ND)
/// Difference Algorithm and Its Variations"). What is found after the deadline is right, but longer than it need be.
///
/// For numbers only, and by its one algorithm: the library would compile all that it has for every type.
pub(crate) fn edit_script(old: &[usize], new: &[usize], deadline: Option<Instant>) -> Vec<DiffOp> {
    let mut script = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff_deadline(&mut script, old, 0..old.len(), new, 0..new.len(), deadline);
    script.into_inner().into_inner().into_ops()
}
