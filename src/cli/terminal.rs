//! Drawing on a terminal.

use std::io;

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

/// Where bars are drawn: on standard error, or nowhere if that is no terminal. At most `hz` times a second.
pub(super) fn draw_target(hz: u8) -> ProgressDrawTarget {
    let terminal = Term::buffered_stderr();
    if terminal.is_term() {
        ProgressDrawTarget::term_like_with_hz(Box::new(Resting(terminal)), hz)
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// Whether the terminal says that it can do nothing but print.
pub(super) fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// A terminal whose cursor rests at the beginning of the last line that is drawn. The library leaves it
/// beyond the end of that line: the `^C` that a terminal shows for the key then goes to a line of its own,
/// and what is drawn is cleared one line too low.
#[derive(Debug)]
struct Resting<T>(T);

impl<T: TermLike> TermLike for Resting<T> {
    fn width(&self) -> u16 {
        self.0.width()
    }

    fn height(&self) -> u16 {
        self.0.height()
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.0.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.0.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.write_str("\r")?;
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use indicatif::ProgressBar;

    use super::*;

    /// Keeps what is written to it, as much as the test needs of it.
    #[derive(Debug, Clone, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            20
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
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
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }

        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }

        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_cursor_rests_at_the_beginning_of_the_line() {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like(Box::new(Resting(paper.clone())));
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_message("at work");
        bar.tick();
        let written = paper.0.lock().unwrap().clone();
        assert!(written.trim_end_matches('\r').len() > 1, "{written:?}");
        assert!(written.ends_with('\r'), "{written:?}");
    }
}
