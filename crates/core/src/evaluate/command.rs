use std::ffi::OsString;
use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::Value;

use super::distill::{distill, placed};
use super::grade::Grade;
use super::script_verdict;
use super::tools::ExecPermission;
use super::unique_keys::UniqueKeys;
use super::{CheckIssue, Finding, HardCheck, Subject};
use crate::model::inside_fence;
use crate::sandbox::{
    CommandEnd, CommandOutput, CommandSpec, Limits, Scratch, minimal_env, run_command,
};
use crate::text::clip;
use crate::types::{CommandConfig, CommandVerdict, DRAFT_FILE, IssueType, Place, Status};

/// The maximum number of characters of a program's output in a prompt: its head, where compilers
/// print the first errors, and its tail, where test runners print the summary.
const MAX_OUTPUT: usize = 4000;
/// The maximum number of characters kept with the verdict.
const MAX_KEPT: usize = 64_000;
/// The maximum number of characters shown next to the score.
const MAX_EVIDENCE: usize = 300;

/// The `command` evaluator: a user's program returns the verdict.
pub(super) struct CommandCheck {
    config: CommandConfig,
    grade: Grade,
    /// The floor of its criterion.
    floor: f64,
}

impl CommandCheck {
    /// `_permission` is only a proof that programs may run.
    pub(super) fn new(
        config: &CommandConfig,
        floor: f64,
        _: &ExecPermission,
    ) -> Result<Self, String> {
        Ok(Self {
            grade: Grade::new(config)?,
            config: config.clone(),
            floor,
        })
    }
}

#[async_trait]
impl HardCheck for CommandCheck {
    async fn check(&self, subject: &Subject<'_>) -> Finding {
        let (output, file) = match run(&self.config, subject.draft).await {
            Ok(ran) => ran,
            Err(problem) => return Finding::none(Status::Failed, problem),
        };
        let program = self.config.command.first().map_or("", String::as_str);
        let written = written(&output, &file);
        match self.config.output {
            CommandVerdict::Exit => {
                let first_line = lines_before(subject.draft, read_by(&self.config, subject.draft));
                by_exit(program, &output, &written, &self.grade, first_line)
            }
            CommandVerdict::Json => by_json(
                program,
                &output,
                &output_text(&written, MAX_OUTPUT),
                self.floor,
            ),
        }
    }
}

/// The result of a user's program for a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRun {
    /// How the program ended.
    pub end: CommandEnd,
    /// Its output, standard error first, without colours, shortened for a prompt.
    pub output_text: String,
}

/// Runs a user's program on a text, under the configured limits. The permission is only a proof
/// that programs may run.
///
/// # Errors
/// If the program cannot be started.
pub async fn run_program(
    config: &CommandConfig,
    text: &str,
    _: &ExecPermission,
) -> Result<ProgramRun, String> {
    let (output, file) = run(config, text).await?;
    Ok(ProgramRun {
        output_text: output_text(&written(&output, &file), MAX_OUTPUT),
        end: output.end,
    })
}

/// File extensions for which a fence around the whole draft is part of the text.
const MARKDOWN: [&str; 4] = ["md", "markdown", "mdx", "qmd"];

/// Returns the part of the draft that the program reads: without a code fence around the whole draft,
/// because compilers cannot read one.
fn read_by<'d>(config: &CommandConfig, draft: &'d str) -> &'d str {
    inside_fence(draft.trim())
        .filter(|_| !MARKDOWN.contains(&config.extension.as_str()))
        .unwrap_or(draft)
}

/// Counts the lines of a text before a part of it.
fn lines_before(text: &str, part: &str) -> u64 {
    let (before, _) = text.split_once(part).unwrap_or_default();
    before.matches('\n').count() as u64
}

fn at_line(line: u64) -> Place {
    Place {
        line: Some(line),
        ..Place::default()
    }
}

/// Runs the program on the draft. Returns the output and the path of the draft's file.
async fn run(config: &CommandConfig, draft: &str) -> Result<(CommandOutput, PathBuf), String> {
    let draft = read_by(config, draft);
    let scratch = Scratch::new()
        .map_err(|error| format!("cannot create a temporary folder for the draft: {error}"))?;
    let file = scratch
        .write(&format!("draft.{}", config.extension), draft.as_bytes())
        .map_err(|error| format!("cannot write the draft to a file: {error}"))?;
    let path = file.to_string_lossy();
    let argv: Vec<OsString> = config
        .command
        .iter()
        .enumerate()
        .map(|(at, word)| match at {
            0 => word.into(),
            _ => word.replace(DRAFT_FILE, &path).into(),
        })
        .collect();
    let names: Vec<&str> = config.env.iter().map(String::as_str).collect();
    let spec = CommandSpec {
        argv,
        stdin: draft.as_bytes().to_vec(),
        cwd: config.cwd.clone(),
        env: minimal_env(&names),
        limits: Limits {
            time: config.timeout.get(),
            memory: config.memory.bytes(),
            processes: config.processes,
            ..Limits::COMMAND
        },
        scratch,
    };
    let output = run_command(&spec)
        .await
        .map_err(|error| error.to_string())?;
    Ok((output, file))
}

/// Returns the verdict by exit code: 0 passes. Everything else counts against the draft, because a
/// program that hangs or is killed on one draft may well succeed on the next. Only a program that
/// exited by itself is graded by its output.
///
/// `first_line` is the number of lines of the draft before the first one that the program read.
fn by_exit(
    program: &str,
    output: &CommandOutput,
    written: &[String],
    grade: &Grade,
    first_line: u64,
) -> Finding {
    let mut how = output.end.to_string();
    let full_output = output_text(written, MAX_KEPT);
    let all = written.join("\n");
    let mut score = 1.0;
    if !output.success() {
        let graded = grade.of(&all);
        score = match output.end {
            CommandEnd::Limit(_) | CommandEnd::Signal(_) => 0.0,
            CommandEnd::Exited(_) => graded.score,
        };
        if !graded.counted.is_empty() {
            how = format!("{how}, {}", graded.counted);
        }
    }
    let evidence = match clip(&full_output, MAX_EVIDENCE) {
        short if short.is_empty() => how.clone(),
        short => format!("{how}: {short}"),
    };
    let mut finding = Finding::graded(score, evidence);
    finding.valid = Some(output.success());
    finding.value = Some(full_output)
        .filter(|full_output| !full_output.is_empty())
        .map(Value::from);
    if output.success() {
        return finding;
    }
    let errors = placed(&all, first_line);
    if errors.len() > 1 {
        // One issue for each, so that edits fix them where they are.
        return finding.with_issues(errors.into_iter().map(|(text, line)| {
            let text = clip(&format!("`{program}`: {text}"), MAX_EVIDENCE);
            CheckIssue::new(IssueType::Incorrect, text).at(at_line(line))
        }));
    }
    let description = if all.is_empty() {
        format!("`{program}` {how}, and wrote nothing")
    } else {
        // Indented, so that it stays one item in a list of issues.
        let shown = distill(&all, cut).replace('\n', "\n    ");
        format!("`{program}` {how}:\n    {shown}")
    };
    let issue = CheckIssue::new(IssueType::Incorrect, description);
    finding.with_issues([match errors.first() {
        Some((_, line)) => issue.at(at_line(*line)),
        None => issue,
    }])
}

/// Parses standard output as the verdict. Ignores the exit code, because many programs exit with a
/// non-zero code if they find something.
fn by_json(program: &str, output: &CommandOutput, output_text: &str, floor: f64) -> Finding {
    let none = |problem: String| {
        let shown = clip(output_text, MAX_EVIDENCE);
        let reason = format!("`{program}` gave no verdict: {problem} (it {})", output.end);
        let reason = if shown.is_empty() {
            reason
        } else {
            format!("{reason}: {shown}")
        };
        Finding::none(Status::Failed, reason)
    };
    if matches!(output.end, CommandEnd::Limit(_) | CommandEnd::Signal(_)) {
        return none("it did not end by itself".to_owned());
    }
    let Some(bytes) = output.stdout.complete() else {
        return none(format!(
            "it wrote {} bytes, which is too much",
            output.stdout.total()
        ));
    };
    let UniqueKeys(value) = match serde_json::from_slice(&bytes) {
        Ok(value) => value,
        Err(_) if bytes.trim_ascii().is_empty() => {
            return none("its standard output is empty".to_owned());
        }
        Err(error) if error.is_data() => {
            return none(format!("its standard output contradicts itself ({error})"));
        }
        Err(error) => return none(format!("its standard output is not JSON ({error})")),
    };
    match script_verdict::read(&value, floor) {
        Ok(finding) => finding,
        Err(problem) => none(problem),
    }
}

/// Returns the text of each non-empty stream, standard error first, without colours and control
/// characters, and with a fixed name for the draft's file.
fn written(output: &CommandOutput, file: &std::path::Path) -> Vec<String> {
    let streams = [output.stderr.text(), output.stdout.text()].map(|text| {
        let plain = console::strip_ansi_codes(&text)
            .replace("\r\n", "\n")
            .replace(|c: char| c.is_control() && c != '\n' && c != '\t', " ");
        let folder = file.parent().map(|it| it.display().to_string());
        let plain = match folder {
            Some(folder) => plain
                .replace(&format!("{folder}{}", std::path::MAIN_SEPARATOR), "")
                .replace(&folder, "."),
            None => plain,
        };
        plain.trim().to_owned()
    });
    let filled = streams.into_iter().filter(|text| !text.is_empty());
    filled.collect()
}

/// Joins the streams within `most` characters, each cut to its share.
fn output_text(written: &[String], most: usize) -> String {
    let share = most / written.len().max(1);
    let parts: Vec<String> = written.iter().map(|text| cut(text, share)).collect();
    parts.join("\n")
}

/// Cuts a text to its head (two thirds) and tail (one third), at line ends where possible.
fn cut(text: &str, chars: usize) -> String {
    let total = text.chars().count();
    if total <= chars {
        return text.to_owned();
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let head = &text[..at(chars * 2 / 3)];
    let tail = &text[at(total - chars / 3)..];
    let head = head.rfind('\n').map_or(head, |end| &head[..end]);
    let tail = tail.find('\n').map_or(tail, |start| &tail[start + 1..]);
    let left = total - head.chars().count() - tail.chars().count();
    format!("{head}\n[... {left} characters cut ...]\n{tail}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_keeps_whole_lines_of_head_and_tail() {
        let lines: Vec<String> = (0..100).map(|n| format!("line {n}\n")).collect();
        let text = lines.concat();
        let short = cut(&text, 90);
        assert!(short.starts_with("line 0\nline 1\n"), "{short}");
        assert!(short.ends_with("line 98\nline 99\n"), "{short}");
        assert!(short.contains("characters cut ...]"), "{short}");
        assert_eq!(cut("short", 90), "short");
    }

    proptest! {
        #[test]
        fn a_cut_is_short_and_tells_how_much_is_gone(text in "(?s).{0,300}", chars in 1_usize..100) {
            let short = cut(&text, chars);
            prop_assert!(short.chars().count() <= chars.max(1) + 40);
            if text.chars().count() <= chars {
                prop_assert_eq!(short, text);
            }
        }
    }
}
