//! Delivers rows to the file or standard output, and to the batch history.

use jiff::Timestamp;

use super::progress::Progress;
use crate::batch::{BatchHistory, Flow, Now, Output, Results, Row};
use crate::cli::printer::{self, Reader};

/// Writes the rows of one batch call in order.
pub(super) struct Delivery {
    /// `None` for standard output.
    results: Option<Results>,
    /// The rows that could not be written: the first that failed, and all later ones.
    unwritten: String,
    progress: Progress,
    history: BatchHistory,
}

impl Delivery {
    pub(super) fn new(results: Option<Results>, progress: Progress, history: BatchHistory) -> Self {
        Self {
            results,
            unwritten: String::new(),
            progress,
            history,
        }
    }

    /// Clears the progress bar. Returns the batch history and the rows that could not be written.
    pub(super) fn end(self) -> (BatchHistory, String) {
        self.progress.end();
        (self.history, self.unwritten)
    }

    fn write(&mut self, row: &Row) -> Result<Reader, String> {
        match &mut self.results {
            Some(results) => results
                .append(row)
                .map(|()| Reader::There)
                .map_err(|error| error.to_string()),
            None => self
                .progress
                .with_bar_hidden(|| printer::print(&row.to_line()))
                .map_err(|error| error.message),
        }
    }
}

impl Output for Delivery {
    fn row(&mut self, row: &Row, now: Now) -> Result<Flow, String> {
        if !self.unwritten.is_empty() {
            self.unwritten.push_str(&row.to_line());
            return Err("cannot write further rows".to_owned());
        }
        match self.write(row) {
            Ok(Reader::There) => {}
            Ok(Reader::Gone) => return Ok(Flow::End),
            Err(error) => {
                self.unwritten = row.to_line();
                return Err(error);
            }
        }
        self.progress.row(row, now);
        self.history.add(row, Timestamp::now());
        Ok(Flow::Go)
    }

    fn changed(&mut self, now: Now) {
        self.progress.changed(now);
    }
}
