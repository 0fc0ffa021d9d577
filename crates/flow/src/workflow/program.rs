use std::path::PathBuf;

use super::part::Part;
use crate::sandbox::Language;
use crate::types::{Evaluator, Origin, ScriptConfig};

/// Something that a workflow runs on this machine, and that the user must allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The node that runs it.
    pub node: String,
    /// The file that contains it, if any, as an absolute path without symbolic links.
    pub file: Option<PathBuf>,
    /// The line at which it begins, counted from 1.
    pub line: usize,
    /// The program.
    pub what: ProgramKind,
}

/// A program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// A script, with its interpreter.
    Script(Language, String),
    /// A command as typed into a shell. May contain a template.
    Command(String),
}

impl Program {
    fn new(file: Option<PathBuf>, line: usize, what: ProgramKind) -> Self {
        Self {
            node: String::new(),
            file,
            line,
            what,
        }
    }

    /// Returns the program for code. Lua needs no permission.
    pub(super) fn of_code(config: &ScriptConfig, part: &Part) -> Option<Self> {
        let file = part.source().path().map(Into::into);
        Self::of_script(config, file, part.line())
    }

    fn of_script(config: &ScriptConfig, file: Option<PathBuf>, line: usize) -> Option<Self> {
        let language = crate::evaluate::interpreter(config.language);
        let what = ProgramKind::Script(language, config.code.clone());
        (language != Language::Lua).then(|| Self::new(file, line, what))
    }

    /// Returns the program for a command.
    pub(super) fn of_command(shown: String, part: &Part) -> Self {
        let file = part.source().path().map(Into::into);
        Self::new(file, part.line(), ProgramKind::Command(shown))
    }

    /// Returns the program that a criteria evaluator runs, if any.
    pub(super) fn of_evaluator(evaluator: &Evaluator) -> Option<Self> {
        match evaluator {
            Evaluator::Command(config) => {
                let Origin { file, line, .. } = config.origin.clone();
                Some(Self::new(file, line, ProgramKind::Command(config.shown())))
            }
            Evaluator::Script(config) => {
                let Origin { file, line, .. } = config.origin.clone();
                Self::of_script(config, file, line)
            }
            _ => None,
        }
    }
}
