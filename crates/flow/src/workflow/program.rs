use std::path::PathBuf;

use super::part::Part;
use crate::sandbox::Language;
use crate::types::{Evaluator, Origin, ScriptConfig};

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
    pub(super) fn of_code(config: &ScriptConfig, part: &Part) -> Option<Self> {
        let file = part.source().path().map(Into::into);
        Self::of_script(config, file, part.line())
    }

    fn of_script(config: &ScriptConfig, file: Option<PathBuf>, line: usize) -> Option<Self> {
        let language = crate::evaluate::interpreter(config.language);
        let what = ProgramKind::Script(language, config.code.clone());
        (language != Language::Lua).then(|| Self::new(file, line, what))
    }

    /// A command.
    pub(super) fn of_command(shown: String, part: &Part) -> Self {
        let file = part.source().path().map(Into::into);
        Self::new(file, part.line(), ProgramKind::Command(shown))
    }

    /// What an evaluator of criteria runs, if it runs anything.
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
