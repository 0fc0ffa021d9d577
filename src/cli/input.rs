//! What a command reads: the prompt, piped standard input, attached files.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use super::error::CliError;
use super::printer;
use crate::engine::Text;
use crate::source::Source;
use crate::types::{ContextBlock, ExitCode, Task};

/// The most that is read from standard input or one file. No model takes a prompt of this size; it keeps
/// `yes | reflect draft …` from filling the memory.
const LIMIT: u64 = 64 << 20;

/// How long standard input may stay silent before people are told what is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What to do where standard input need not be read.
const IGNORABLE: &str = "; use --ignore-stdin if nothing is to be read from it";

/// Where a task's parts come from.
pub(super) struct Sources<'a> {
    /// The argument: text, or `-` for standard input.
    pub(super) prompt: Option<&'a str>,
    pub(super) prompt_file: Option<&'a Path>,
    pub(super) files: &'a [PathBuf],
    pub(super) system: Option<&'a str>,
    pub(super) ignore_stdin: bool,
    pub(super) quiet: bool,
}

/// Reads a task. Standard input that is piped or redirected is the prompt if the argument is `-`, or if
/// there is no other prompt; otherwise it is a context block.
pub(super) fn read_task(sources: &Sources<'_>) -> Result<Task, CliError> {
    let stdin = || -> Result<Option<String>, CliError> {
        if sources.ignore_stdin || io::stdin().is_terminal() {
            return Ok(None);
        }
        let text = read_stdin(sources.quiet, IGNORABLE)?;
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    };
    let mut context = Vec::new();
    let prompt = match (sources.prompt, sources.prompt_file) {
        (Some("-"), _) => {
            if io::stdin().is_terminal() && !sources.quiet {
                printer::say("reading the prompt from standard input; end it with Ctrl-D");
            }
            read_stdin(sources.quiet, IGNORABLE)?
        }
        (prompt, file) => {
            let prompt = match (prompt, file) {
                (Some(prompt), _) => Some(prompt.to_owned()),
                (None, Some(file)) => Some(read_file(file)?),
                (None, None) => None,
            };
            match (prompt, stdin()?) {
                (Some(prompt), piped) => {
                    context.extend(piped.map(|content| ContextBlock {
                        name: "stdin".to_owned(),
                        content,
                    }));
                    prompt
                }
                (None, Some(piped)) => piped,
                (None, None) => {
                    return Err(CliError::usage("there is no prompt").hint(
                        "give it as an argument, with `--prompt-file FILE`, or pipe it in: \
                         `reflect draft \"Write …\" -c writing`",
                    ));
                }
            }
        }
    };
    if prompt.trim().is_empty() {
        return Err(CliError::usage("the prompt is empty").hint("say what is to be written"));
    }
    context.extend(read_context(sources.files)?);
    Ok(Task {
        prompt,
        system: sources.system.map(str::to_owned),
        context,
        ..Task::default()
    })
}

/// Reads the files that the user attaches.
pub(super) fn read_context(files: &[PathBuf]) -> Result<Vec<ContextBlock>, CliError> {
    files
        .iter()
        .map(|file| {
            Ok(ContextBlock {
                name: file.display().to_string(),
                content: read_file(file)?,
            })
        })
        .collect()
}

/// The task of a text that is there already; its prompt is empty where nobody says what was asked for.
pub(super) fn read_known_task(
    prompt: Option<&str>,
    prompt_file: Option<&Path>,
    system: Option<&str>,
    files: &[PathBuf],
) -> Result<Task, CliError> {
    Ok(Task {
        prompt: match (prompt, prompt_file) {
            (Some(prompt), _) => prompt.to_owned(),
            (None, Some(file)) => read_file(file)?,
            (None, None) => String::new(),
        },
        system: system.map(str::to_owned),
        context: read_context(files)?,
        ..Task::default()
    })
}

/// A text that the user named: a file, or `-` for standard input.
pub(super) enum Input<'a> {
    Stdin,
    File(&'a Path),
}

impl<'a> Input<'a> {
    /// What a name stands for.
    pub(super) fn of(name: &'a Path) -> Self {
        if name == Path::new("-") {
            Self::Stdin
        } else {
            Self::File(name)
        }
    }
}

impl Input<'_> {
    /// What it is called in messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Stdin => "standard input".to_owned(),
            Self::File(path) => format!("`{}`", path.display()),
        }
    }

    /// Reads all of it. `what` it is, is said at a terminal.
    pub(super) fn read(&self, what: &str, quiet: bool) -> Result<String, CliError> {
        match self {
            Self::File(path) => read_file(path),
            Self::Stdin => {
                if io::stdin().is_terminal() && !quiet {
                    printer::say(&format!(
                        "reading {what} from standard input; end it with Ctrl-D"
                    ));
                }
                read_stdin(quiet, "")
            }
        }
    }

    /// Reads what may be wrong in places, which messages then name. `what` it is, as for [`Self::read`].
    pub(super) fn source(&self, what: &str, quiet: bool) -> Result<Source, CliError> {
        let name = match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) => path.display().to_string(),
        };
        Ok(Source::new(&name, &self.read(what, quiet)?))
    }

    /// Reads a text that is to be judged or revised, which `to` says. There must be something in it.
    pub(super) fn read_text(&self, to: &str, quiet: bool) -> Result<Text, CliError> {
        let content = self.read("the text", quiet)?;
        if content.trim().is_empty() {
            let name = self.name();
            return Err(CliError::usage(format!(
                "{name} is empty: there is nothing to {to}"
            )));
        }
        Ok(Text {
            content,
            file: match self {
                Self::Stdin => None,
                Self::File(path) => Some(path.display().to_string()),
            },
        })
    }
}

/// Reads a text file that the user named.
pub(super) fn read_file(path: &Path) -> Result<String, CliError> {
    let shown = path.display();
    let file = fs_err::File::open(path).map_err(|error| CliError::usage(error.to_string()))?;
    let metadata = file
        .metadata()
        .map_err(|error| CliError::usage(error.to_string()))?;
    if metadata.is_dir() {
        return Err(CliError::usage(format!(
            "`{shown}` is a directory, not a file"
        )));
    }
    read_text(file, &format!("`{shown}`"))
}

/// Reads standard input to its end, on a thread of its own, so that silence can be explained: `hint` says what to
/// do about it.
fn read_stdin(quiet: bool, hint: &str) -> Result<String, CliError> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(read_text(io::stdin(), "standard input"));
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(result) => return result,
        Err(mpsc::RecvTimeoutError::Timeout) if !quiet && !io::stdin().is_terminal() => {
            printer::say(&format!("waiting for standard input to end{hint}"));
        }
        Err(_) => {}
    }
    receiver
        .recv()
        .unwrap_or_else(|_| Err(CliError::failure("standard input could not be read")))
}

fn read_text(reader: impl Read, name: &str) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    reader
        .take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::new(ExitCode::Usage, format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > LIMIT {
        return Err(CliError::usage(format!(
            "{name} is larger than {} MB, which no model takes",
            LIMIT >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        CliError::usage(format!("{name} is not UTF-8 text (byte {place})"))
            .hint("only text can be read; convert it to UTF-8 first, for instance with `iconv`")
    })
}
