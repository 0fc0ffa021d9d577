//! Drawing on a terminal.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

/// Returns the draw target of progress bars: stderr, or none if it is not a terminal. Draws at most `hz`
/// times per second.
pub(super) fn draw_target(hz: u8) -> ProgressDrawTarget {
    let terminal = Term::buffered_stderr();
    if terminal.is_term() {
        ProgressDrawTarget::term_like_with_hz(Box::new(Resting::new(terminal)), hz)
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// Whether the terminal cannot move its cursor (`TERM=dumb`).
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// A terminal that rests its cursor at the start of the last drawn row, and that may be resized.
///
/// `indicatif` leaves the cursor after the end of that row. The `^C` that a terminal echoes then starts a new
/// row, and the drawing is cleared one row too low.
///
/// `indicatif` also assumes that the drawing keeps its number of rows. It fills each row to the end, so the
/// terminal sees a single line, which most terminals wrap again when resized.
#[derive(Debug)]
struct Resting<T> {
    terminal: T,
    /// The terminal width at the last drawing; 0 if nothing was drawn.
    drawn: AtomicU16,
    /// Whether everything was cleared in this turn, so rows need no clearing.
    cleared: AtomicBool,
}

impl<T: TermLike> Resting<T> {
    fn new(terminal: T) -> Self {
        Self {
            terminal,
            drawn: AtomicU16::new(0),
            cleared: AtomicBool::new(false),
        }
    }

    /// Does this unless everything was cleared.
    fn unless_cleared(&self, clear: impl FnOnce(&T) -> io::Result<()>) -> io::Result<()> {
        if self.cleared.load(Ordering::Relaxed) {
            return Ok(());
        }
        clear(&self.terminal)
    }
}

impl<T: TermLike> TermLike for Resting<T> {
    fn width(&self) -> u16 {
        self.terminal.width()
    }

    fn height(&self) -> u16 {
        self.terminal.height()
    }

    /// After a resize, moves to the new position of the first row and clears everything below it.
    fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
        let (before, now) = (self.drawn.load(Ordering::Relaxed), self.width().max(1));
        if before == now || before == 0 {
            return self.unless_cleared(|terminal| terminal.move_cursor_up(rows));
        }
        self.drawn.store(now, Ordering::Relaxed);
        self.cleared.store(true, Ordering::Relaxed);
        let rows = rows * usize::from(before) / usize::from(now);
        self.terminal.move_cursor_up(rows)?;
        self.terminal.write_str("\r\x1b[J")
    }

    fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
        self.unless_cleared(|terminal| terminal.move_cursor_down(rows))
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.terminal.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.terminal.move_cursor_left(columns)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.terminal.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.terminal.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.unless_cleared(TermLike::clear_line)
    }

    fn flush(&self) -> io::Result<()> {
        self.drawn.store(self.width(), Ordering::Relaxed);
        self.cleared.store(false, Ordering::Relaxed);
        self.terminal.write_str("\r")?;
        self.terminal.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::{ProgressBar, ProgressStyle};

    use super::*;

    /// Records what is written to it, and cursor movements.
    #[derive(Debug, Clone)]
    struct Paper {
        text: Arc<Mutex<String>>,
        width: Arc<AtomicU16>,
    }

    impl Paper {
        fn new() -> Self {
            Self {
                text: Arc::default(),
                width: Arc::new(AtomicU16::new(20)),
            }
        }

        /// Returns what was written since the last call.
        fn take(&self) -> String {
            std::mem::take(&mut self.text.lock().unwrap())
        }
    }

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            self.width.load(Ordering::Relaxed)
        }

        fn height(&self) -> u16 {
            24
        }

        fn move_cursor_up(&self, rows: usize) -> io::Result<()> {
            self.write_str(&format!("<up {rows}>"))
        }

        fn move_cursor_down(&self, rows: usize) -> io::Result<()> {
            self.write_str(&format!("<down {rows}>"))
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }

        fn write_str(&self, text: &str) -> io::Result<()> {
            self.text.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            self.write_str("<clear>")
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    fn bar(paper: &Paper) -> ProgressBar {
        let target = ProgressDrawTarget::term_like(Box::new(Resting::new(paper.clone())));
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(ProgressStyle::with_template("{msg}").unwrap());
        bar
    }

    #[test]
    fn the_cursor_rests_at_the_start_of_the_row() {
        let paper = Paper::new();
        bar(&paper).set_message("at work");
        let written = paper.take();
        assert!(written.trim_end_matches('\r').len() > 1, "{written:?}");
        assert!(written.ends_with('\r'), "{written:?}");
    }

    #[test]
    fn rows_are_found_and_cleared_after_a_resize() {
        let paper = Paper::new();
        let bar = bar(&paper);
        bar.set_message("one\ntwo\nthree");
        paper.take();
        bar.finish_and_clear();
        let written = paper.take();
        assert!(
            written.contains("<up 2>") && written.contains("<clear>"),
            "{written}"
        );
        // Two rows of 20 columns are four of 10.
        bar.reset();
        bar.set_message("one\ntwo\nthree");
        paper.take();
        paper.width.store(10, Ordering::Relaxed);
        bar.finish_and_clear();
        assert_eq!(paper.take(), "<up 4>\r\u{1b}[J\r");
    }
}
