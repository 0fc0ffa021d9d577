use std::path::PathBuf;

use super::part::Part;
use crate::sandbox::Language;
use crate::types::{Evaluator, Origin, ScriptLanguage};

/// Something that a workflow runs on this machine, and that its user must have allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The node that runs it.
    pub node: String,
    /// The file that it is written in, if it is in one: absolute, symbolic links resolved.
    pub file: Option<PathBuf>,
    /// The line that it begins in, counted from 1.
    pub line: usize,
    /// What runs.
    pub what: ProgramKind,
}

/// What runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramKind {
    /// A script, for an interpreter on this machine.
    Script(Language, String),
    /// A command, as it would be typed into a shell; a template may stand in it.
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

    /// Code, unless it is in Lua, which needs no leave.
    pub(super) fn of_code(language: Language, code: &str, part: &Part) -> Option<Self> {
        let file = part.source().path().map(Into::into);
        let what = ProgramKind::Script(language, code.to_owned());
        (language != Language::Lua).then(|| Self::new(file, part.line(), what))
    }

    /// A command.
    pub(super) fn of_command(shown: String, part: &Part) -> Self {
        let file = part.source().path().map(Into::into);
        Self::new(file, part.line(), ProgramKind::Command(shown))
    }

    /// What an evaluator of criteria runs, if it runs anything.
    pub(super) fn of_evaluator(evaluator: &Evaluator) -> Option<Self> {
        let of = |origin: &Origin, what| Self::new(origin.file.clone(), origin.line, what);
        match evaluator {
            Evaluator::Command(config) => {
                Some(of(&config.origin, ProgramKind::Command(config.shown())))
            }
            Evaluator::Script(config) => {
                let language = match config.language {
                    ScriptLanguage::Lua => return None,
                    ScriptLanguage::Python => Language::Python,
                    ScriptLanguage::Prolog => Language::Prolog,
                };
                let what = ProgramKind::Script(language, config.code.clone());
                Some(of(&config.origin, what))
            }
            _ => None,
        }
    }
}
