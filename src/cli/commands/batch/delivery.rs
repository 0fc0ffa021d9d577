//! Where rows go: to the file or to standard output.

use super::progress::Progress;
use crate::batch::{Flow, Now, Output, Results, Row};
use crate::cli::printer::{self, Reader};

/// Takes every row of this call, in the order in which they are written.
pub(super) struct Delivery {
    /// `None` for standard output.
    results: Option<Results>,
    progress: Progress,
}

impl Delivery {
    pub(super) fn new(results: Option<Results>, progress: Progress) -> Self {
        Self { results, progress }
    }

    /// Removes what is drawn.
    pub(super) fn end(self) {
        self.progress.end();
    }
}

impl Output for Delivery {
    fn row(&mut self, row: &Row, now: Now) -> Result<Flow, String> {
        match &mut self.results {
            Some(results) => results.append(row).map_err(|error| error.to_string())?,
            None => match self.progress.beside(|| printer::print(&row.to_line())) {
                Ok(Reader::There) => {}
                Ok(Reader::Gone) => return Ok(Flow::End),
                Err(error) => return Err(error.message),
            },
        }
        self.progress.row(row, now);
        Ok(Flow::Go)
    }

    fn changed(&mut self, now: Now) {
        self.progress.changed(now);
    }
}
