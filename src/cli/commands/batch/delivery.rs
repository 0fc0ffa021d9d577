//! Where rows go: to the file or to standard output, and to the reflector.

use jiff::Timestamp;

use super::progress::Progress;
use crate::batch::{Chronicle, Flow, Now, Output, Results, Row};
use crate::cli::printer::{self, Reader};

/// Takes every row of this call, in the order in which they are written.
pub(super) struct Delivery {
    /// `None` for standard output.
    results: Option<Results>,
    progress: Progress,
    chronicle: Chronicle,
}

impl Delivery {
    pub(super) fn new(results: Option<Results>, progress: Progress, chronicle: Chronicle) -> Self {
        Self {
            results,
            progress,
            chronicle,
        }
    }

    /// Removes what is drawn. Gives what the reflector is to know.
    pub(super) fn end(self) -> Chronicle {
        self.progress.end();
        self.chronicle
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
        self.chronicle.add(row, Timestamp::now());
        Ok(Flow::Go)
    }

    fn changed(&mut self, now: Now) {
        self.progress.changed(now);
    }
}
