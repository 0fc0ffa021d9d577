//! What a command reads: the prompt, piped stdin, attached files.

use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use parking_lot::Mutex;

use super::error::CliError;
use super::{editor, printer};
use crate::batch::{PromptTemplate, TemplateError};
use crate::engine::Text;
use crate::source::Source;
use crate::types::{ContextBlock, ExitCode, Task};

/// The most that is read from standard input or one file. No model takes a prompt of this size; it keeps
/// `yes | reflect draft …` from filling the memory.
const LIMIT: u64 = 64 << 20;

/// How long stdin may stay silent before a message explains the wait.
const PATIENCE: Duration = Duration::from_secs(2);

/// The hint for commands that can do without stdin.
const IGNORABLE: &str = " (--ignore-stdin skips it)";

/// What stdin was read as. It can be read only once.
static STDIN_READ_AS: Mutex<Option<&str>> = Mutex::new(None);

/// Keeps stdin for what it is read as elsewhere: reading it here is an error from now on.
pub(super) fn reserve_stdin(what: &'static str) {
    *STDIN_READ_AS.lock() = Some(what);
}

/// Where a task's parts come from.
pub(super) struct Sources<'a> {
    /// The argument: text, or `-` for standard input.
    pub(super) prompt: Option<&'a str>,
    pub(super) prompt_file: Option<&'a Path>,
    /// Whether the prompt is written in the editor.
    pub(super) editor: bool,
    /// The values of `{{ NAME }}` in the prompt file, as `NAME=VALUE`.
    pub(super) vars: &'a [String],
    pub(super) files: &'a [PathBuf],
    pub(super) system: Option<&'a str>,
    pub(super) ignore_stdin: bool,
    pub(super) quiet: bool,
}

/// Reads a task. Piped or redirected stdin is the prompt if the argument is `-` or if there is no other prompt.
/// Otherwise it is context, unless an option names it (`-c -`, `-f -`).
pub(super) fn read_task(sources: &Sources<'_>) -> Result<Task, CliError> {
    let is_named = sources.files.iter().any(|file| file == Path::new("-"));
    let stdin = || -> Result<Option<String>, CliError> {
        let is_taken = is_named || STDIN_READ_AS.lock().is_some();
        if sources.ignore_stdin || is_taken || io::stdin().is_terminal() {
            return Ok(None);
        }
        let text = read_stdin("the prompt", sources.quiet, IGNORABLE)?;
        Ok(Some(text).filter(|text| !text.trim().is_empty()))
    };
    let mut context = Vec::new();
    let prompt = match (sources.prompt, sources.prompt_file) {
        (Some("-"), _) => {
            if io::stdin().is_terminal() && !sources.quiet {
                printer::say("reading the prompt from stdin; end it with Ctrl-D");
            }
            read_stdin("the prompt", sources.quiet, IGNORABLE)?
        }
        (prompt, file) => {
            let prompt = match (prompt, file) {
                (Some(prompt), _) => Some(prompt.to_owned()),
                (None, Some(file)) => Some(fill_in(read_file(file)?, file, sources.vars)?),
                (None, None) => None,
            };
            let prompt = if sources.editor {
                Some(editor::write_prompt(prompt.as_deref().unwrap_or_default())?)
            } else {
                prompt
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
                    return Err(CliError::usage("no prompt").hint(
                        "pass it as an argument (`reflect draft \"Write …\" -c writing`), with `--prompt-file FILE` \
                         or on stdin, or write it with `--editor`",
                    ));
                }
            }
        }
    };
    if prompt.trim().is_empty() {
        return Err(CliError::usage("the prompt is empty"));
    }
    context.extend(read_context(sources.files)?);
    Ok(Task {
        prompt,
        system: sources.system.map(str::to_owned),
        context,
        ..Task::default()
    })
}

/// Fills in the variables of a prompt file. Without any, the file is the prompt unchanged.
fn fill_in(text: String, file: &Path, vars: &[String]) -> Result<String, CliError> {
    if vars.is_empty() {
        return Ok(text);
    }
    let mut values = serde_json::Map::new();
    for var in vars {
        let Some((name, value)) = var.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(CliError::usage(format!(
                "--var: `{var}` is not `NAME=VALUE`"
            )));
        };
        values.insert(name.to_owned(), value.into());
    }
    let failed = |error: TemplateError| {
        CliError::usage(format!("{}: {error}", file.display()))
            .hint("set each variable with `--var NAME=VALUE`")
    };
    let template = PromptTemplate::new(&text).map_err(failed)?;
    template.fill(&values).map_err(failed)
}

/// Reads the files that the user attaches; `-` is stdin.
pub(super) fn read_context(files: &[PathBuf]) -> Result<Vec<ContextBlock>, CliError> {
    files
        .iter()
        .map(|file| {
            Ok(ContextBlock {
                name: match Input::of(file) {
                    Input::Stdin => "stdin".to_owned(),
                    Input::File(path) => path.display().to_string(),
                },
                content: Input::of(file).read("the context", true)?,
            })
        })
        .collect()
}

/// Reads the task of an existing text; its prompt is empty if none is given.
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

/// An input that the user named: a file, or `-` for stdin.
pub(super) enum Input<'a> {
    Stdin,
    File(&'a Path),
}

impl<'a> Input<'a> {
    /// Returns what a path stands for.
    pub(super) fn of(name: &'a Path) -> Self {
        if name == Path::new("-") {
            Self::Stdin
        } else {
            Self::File(name)
        }
    }
}

impl Input<'_> {
    /// Returns its name for messages.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Stdin => "stdin".to_owned(),
            Self::File(path) => format!("`{}`", path.display()),
        }
    }

    /// Reads all of it. Messages call it `what`.
    pub(super) fn read(&self, what: &'static str, quiet: bool) -> Result<String, CliError> {
        match self {
            Self::File(path) => read_file(path),
            Self::Stdin => {
                if io::stdin().is_terminal() && !quiet {
                    printer::say(&format!("reading {what} from stdin; end it with Ctrl-D"));
                }
                read_stdin(what, quiet, "")
            }
        }
    }

    /// Reads a source, so that errors can name positions in it. Messages call it `what`.
    pub(super) fn source(&self, what: &'static str, quiet: bool) -> Result<Source, CliError> {
        let name = match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) => path.display().to_string(),
        };
        Ok(Source::new(&name, &self.read(what, quiet)?))
    }

    /// Reads a text to `to`: evaluate or revise. It must not be empty.
    pub(super) fn read_text(&self, to: &str, quiet: bool) -> Result<Text, CliError> {
        let content = self.read("the text", quiet)?;
        if content.trim().is_empty() {
            let name = self.name();
            return Err(CliError::usage(format!(
                "{name} is empty; there is nothing to {to}"
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

/// Reads stdin to its end as `what`, in a separate thread, so that a message can explain the wait.
fn read_stdin(what: &'static str, quiet: bool, hint: &str) -> Result<String, CliError> {
    if let Some(other) = STDIN_READ_AS.lock().replace(what) {
        return Err(
            CliError::usage(format!("{other} and {what} cannot both come from stdin"))
                .hint("write one of them to a file"),
        );
    }
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let _ = sender.send(read_text(io::stdin(), "stdin"));
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(result) => return result,
        Err(mpsc::RecvTimeoutError::Timeout) if !quiet && !io::stdin().is_terminal() => {
            printer::say(&format!("waiting for the end of stdin{hint}"));
        }
        Err(_) => {}
    }
    receiver
        .recv()
        .unwrap_or_else(|_| Err(CliError::failure("cannot read stdin")))
}

fn read_text(reader: impl Read, name: &str) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    reader
        .take(LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::new(ExitCode::Usage, format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > LIMIT {
        return Err(CliError::usage(format!(
            "{name} is larger than {} MB",
            LIMIT >> 20
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let place = error.utf8_error().valid_up_to();
        CliError::usage(format!("{name} is not UTF-8 text (byte {place})"))
            .hint("convert it to UTF-8, for example with `iconv`")
    })
}
