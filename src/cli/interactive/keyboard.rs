//! The user's terminal. Keys come from it even if stdin is a pipe.

use std::io::{self, IsTerminal as _};

use console::{Key, Term};

use crate::cli::error::CliError;

/// A terminal that can ask the user.
#[derive(Debug)]
pub(super) struct Keyboard {
    terminal: mode::Terminal,
}

impl Keyboard {
    /// Opens the terminal of this process.
    ///
    /// # Errors
    /// If stderr is not a terminal, or there is no terminal to read keys from.
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

    /// Starts a question: reads keys one by one without echo, and discards keys typed before it. Ends when
    /// the result is dropped.
    pub(super) fn hold(&self) -> io::Result<Held<'_>> {
        self.terminal.begin()?;
        Ok(Held(&self.terminal))
    }
}

/// A terminal during a question. Dropping it restores the mode and the cursor, even while a thread still
/// waits for a key.
#[derive(Debug)]
pub(super) struct Held<'k>(&'k mode::Terminal);

impl Held<'_> {
    /// Waits for the next key, including Ctrl-C. Await the result: only one wait may be active at a time.
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

    /// The controlling terminal, and its original mode.
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

        /// Switches to raw keys. Ctrl-C becomes a key, so it cannot end the question before a thread waits
        /// for keys.
        pub(super) fn begin(&self) -> io::Result<()> {
            let mut quiet = self.before.clone();
            quiet
                .local_modes
                .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG);
            tcsetattr(&self.file, OptionalActions::Now, &quiet)?;
            Ok(tcflush(&self.file, QueueSelector::IFlush)?)
        }

        pub(super) fn end(&self) {
            // If the terminal is gone, there is nothing to restore.
            let _ = tcsetattr(&self.file, OptionalActions::Now, &self.before);
        }
    }

    impl Drop for Terminal {
        /// Restores the mode again: a late thread may have changed it after the question ended.
        fn drop(&mut self) {
            self.end();
        }
    }
}

#[cfg(not(unix))]
mod mode {
    use std::io::{self, IsTerminal as _};

    /// The console. `console` manages its mode.
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

        /// Does nothing; `console` reads keys one by one.
        pub(super) fn begin(&self) -> io::Result<()> {
            Ok(())
        }

        pub(super) fn end(&self) {}
    }
}
