//! The check of a whole file before anything is paid for.

use std::collections::BTreeSet;
use std::io::{self, Read};

use super::tasks::Tasks;
use crate::types::Task;

/// The most names of criteria that are gathered, and bad lines that are told.
const MOST: usize = 100;

/// What is in the input.
#[derive(Debug, Default)]
pub struct Checked {
    /// Lines that are to be done, bad ones included.
    pub entries: u64,
    /// Lines that are no tasks.
    pub bad: u64,
    /// The first of these, with what is wrong.
    pub first_bad: Vec<(u64, String)>,
    /// The criteria that lines name; the first hundred.
    pub criteria: BTreeSet<String>,
    /// The longest task.
    pub longest: Option<Task>,
}

/// Reads all entries, and keeps none.
///
/// # Errors
/// If the input cannot be read.
pub fn check<R: Read>(mut tasks: Tasks<R>) -> io::Result<Checked> {
    let mut checked = Checked::default();
    let mut longest = 0;
    while let Some(entry) = tasks.next_entry()? {
        checked.entries += 1;
        match entry.task {
            Err(problem) => {
                checked.bad += 1;
                if checked.first_bad.len() < MOST {
                    checked.first_bad.push((entry.line, problem));
                }
            }
            Ok(item) => {
                if let Some(name) = item.criteria.filter(|_| checked.criteria.len() < MOST) {
                    checked.criteria.insert(name);
                }
                if entry.bytes > longest {
                    longest = entry.bytes;
                    checked.longest = Some(item.task);
                }
            }
        }
    }
    Ok(checked)
}
