//! Checks a whole input before any paid call.

use std::collections::BTreeSet;
use std::io::{self, Read};

use super::tasks::Tasks;
use crate::types::Task;

/// The maximum number of criteria names and bad lines to report.
const MOST: usize = 100;

/// A summary of the input.
#[derive(Debug, Default)]
pub struct Checked {
    /// The number of lines to process, including bad ones.
    pub entries: u64,
    /// The number of lines that are not valid tasks.
    pub bad: u64,
    /// The first bad lines, each with its problem.
    pub first_bad: Vec<(u64, String)>,
    /// The criteria that lines name; at most the first hundred.
    pub criteria: BTreeSet<String>,
    /// The longest task.
    pub longest: Option<Task>,
}

/// Reads all entries without keeping them.
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
