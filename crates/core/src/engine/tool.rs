use crate::evaluate::{ExecPermission, run_program};
use crate::sandbox::CommandEnd;
use crate::types::{CommandConfig, DRAFT_FILE};

/// A user's program whose output the writer sees before it writes.
///
/// Before the first draft it receives the prompt on standard input, before each revision the draft. A program that
/// names
/// `{draft_file}` does not run before there is a draft. Its result does not affect the evaluation.
#[derive(Debug, Clone)]
pub struct WriterTool {
    name: String,
    config: CommandConfig,
    permission: ExecPermission,
}

/// The warning about a tool that could not run.
pub(super) fn problem(name: &str, why: &str) -> String {
    format!("the tool `{name}` could not be run: {why}")
}

/// The output of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ToolOutput {
    /// How it ended, to follow "it".
    pub(super) end: String,
    /// `None` if it was stopped.
    pub(super) exit_code: Option<i32>,
    /// Its output, standard error first, clipped for the writer.
    pub(super) text: String,
}

impl ToolOutput {
    /// Whether it ended in another way than with exit code 0.
    pub(super) fn failed(&self) -> bool {
        self.exit_code != Some(0)
    }
}

impl WriterTool {
    /// A program that the user allowed to run, named after its file.
    pub fn new(config: CommandConfig, permission: ExecPermission) -> Self {
        let program = config.command.first().map_or("", String::as_str);
        let file = std::path::Path::new(program).file_name();
        let name = file.map_or_else(|| program.into(), |name| name.to_string_lossy());
        Self {
            name: name.into_owned(),
            config,
            permission,
        }
    }

    /// Its name in settings and events.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it takes a draft, and cannot run without one.
    pub(super) fn needs_draft(&self) -> bool {
        let mut args = self.config.command.iter().skip(1);
        args.any(|word| word.contains(DRAFT_FILE))
    }

    /// Runs it on a text, within its limits.
    pub(super) async fn run(&self, text: &str) -> Result<ToolOutput, String> {
        let ran = run_program(&self.config, text, &self.permission).await?;
        Ok(ToolOutput {
            end: ran.end.to_string(),
            exit_code: match ran.end {
                CommandEnd::Exited(code) => Some(code),
                CommandEnd::Signal(_) | CommandEnd::Limit(_) => None,
            },
            text: ran.output_text,
        })
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn tool(command: &str) -> WriterTool {
        let config = CommandConfig::parse(command).unwrap();
        WriterTool::new(config, ExecPermission::given_by_user())
    }

    #[test]
    fn a_tool_is_called_like_its_program() {
        assert_eq!(tool("/bin/sh -c x").name(), "sh");
        assert_eq!(tool("./check.sh").name(), "check.sh");
        assert!(tool("wc {draft_file}").needs_draft());
        assert!(!tool("wc -w").needs_draft());
    }

    #[tokio::test]
    async fn it_gets_the_text_and_its_end_is_told() {
        let output = tool("sh -c 'cat; echo no >&2; exit 3'")
            .run("storm")
            .await
            .unwrap();
        assert_eq!(output.text, "no\nstorm");
        assert_eq!((output.exit_code, output.failed()), (Some(3), true));
        let output = tool("cat {draft_file}").run("storm").await.unwrap();
        assert_eq!((output.text.as_str(), output.failed()), ("storm", false));
        assert!(tool("there-is-no-such-program").run("").await.is_err());
    }
}
