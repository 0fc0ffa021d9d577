//! The terminal that a person sits at. Keys come from there also where standard input is a pipe.

use std::io::{self, IsTerminal as _};

use console::{Key, Term};

use crate::cli::error::CliError;

/// A terminal that a person can be asked at.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: mode::Terminal,
}

impl Keyboard {
    /// The terminal of this process.
    ///
    /// # Errors
    /// If standard error is no terminal, or there is none to read keys from.
    pub(super) fn open() -> Result<Self, CliError> {
        let none = |why: &str| {
            CliError::usage(format!("--interactive needs a terminal: {why}"))
                .hint("remove `--interactive`, or add `--yes` to run without questions")
        };
        if !io::stderr().is_terminal() {
            return Err(none("stderr is not a terminal"));
        }
        let terminal = mode::Terminal::open()
            .map_err(|error| none(&format!("no terminal to read keys from ({error})")))?;
        Ok(Self { terminal })
    }

    /// Begins to ask: keys come one by one and are not shown, and those typed before are forgotten, since they were
    /// no answer. Until the result is dropped.
    pub(super) fn hold(&self) -> io::Result<Held<'_>> {
        self.terminal.begin()?;
        Ok(Held(&self.terminal))
    }
}

/// A terminal at which somebody is being asked. However that ends, it is left as it was, with its cursor: a thread
/// may still wait for a key that nobody wants any more.
#[derive(Debug)]
pub(super) struct Held<'k>(&'k mode::Terminal);

impl Held<'_> {
    /// Waits for the next key, Ctrl-C included. The result must be waited for: two cannot wait at the same time.
    #[expect(
        clippy::unused_self,
        reason = "keys come one by one only while the terminal is held"
    )]
    pub(super) fn key(&self) -> tokio::task::JoinHandle<io::Result<Key>> {
        tokio::task::spawn_blocking(|| Term::stderr().read_key_raw())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.end();
        let _ = Term::stderr().show_cursor();
    }
}

#[cfg(unix)]
mod mode {
    use std::fs::{File, OpenOptions};
    use std::io;

    use rustix::termios::{
        LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcsetattr,
    };

    /// The controlling terminal, and how it was when we came.
    #[derive(Debug)]
    pub(super) struct Terminal {
        file: File,
        before: Termios,
    }

    impl Terminal {
        pub(super) fn open() -> io::Result<Self> {
            let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
            let before = tcgetattr(&file)?;
            Ok(Self { file, before })
        }

        /// Ctrl-C is a key as well, so that it cannot end the question before somebody waits for keys.
        pub(super) fn begin(&self) -> io::Result<()> {
            let mut quiet = self.before.clone();
            quiet
                .local_modes
                .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            tcsetattr(&self.file, OptionalActions::Now, &quiet)?;
            Ok(tcflush(&self.file, QueueSelector::IFlush)?)
        }

        pub(super) fn end(&self) {
            // If the terminal is gone, there is nothing to put back.
            let _ = tcsetattr(&self.file, OptionalActions::Now, &self.before);
        }
    }

    impl Drop for Terminal {
        /// Once more: a thread that was late to wait for a key may have changed the mode after the end of a question.
        fn drop(&mut self) {
            self.end();
        }
    }
}

#[cfg(not(unix))]
mod mode {
    use std::io::{self, IsTerminal as _};

    /// The console, whose mode the library takes care of.
    #[derive(Debug)]
    pub(super) struct Terminal;

    impl Terminal {
        pub(super) fn open() -> io::Result<Self> {
            if io::stdin().is_terminal() {
                Ok(Self)
            } else {
                Err(io::Error::other("stdin is not a terminal"))
            }
        }

        /// Ctrl-C is a key as well, so that it cannot end the question before somebody waits for keys.
        pub(super) fn begin(&self) -> io::Result<()> {
            Ok(())
        }

        pub(super) fn end(&self) {}
    }
}
