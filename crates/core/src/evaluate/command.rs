use std::ffi::OsString;
use std::path::PathBuf;

use async_trait::async_trait;
use serde_json::Value;

use super::answer;
use super::distill::distill;
use super::grade::Grade;
use super::tools::ExecPermission;
use super::unique::Unique;
use super::{Fault, Finding, HardCheck, Subject};
use crate::model::inside_fence;
use crate::sandbox::{
    CommandEnd, CommandOutput, CommandSpec, Limits, Scratch, minimal_env, run_command,
};
use crate::text::clip;
use crate::types::{CommandConfig, CommandVerdict, DRAFT_FILE, IssueType, Status};

/// The most characters of a program's output that a writer is shown: its head, where compilers say what
/// is wrong first, and its tail, where test runners sum up.
const MAX_OUTPUT: usize = 4000;
/// The most of it that is kept with the verdict.
const MAX_KEPT: usize = 64_000;
/// The most of it that is shown beside the score.
const MAX_EVIDENCE: usize = 300;

/// The `command` evaluator: a program of the user's gives the verdict.
pub(super) struct CommandCheck {
    config: CommandConfig,
    grade: Grade,
    /// The floor of its criterion.
    floor: f64,
}

impl CommandCheck {
    /// The permission is not looked at: that there is one is what counts.
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
            CommandVerdict::Exit => by_exit(program, &output, &written, &self.grade),
            CommandVerdict::Json => {
                by_json(program, &output, &said(&written, MAX_OUTPUT), self.floor)
            }
        }
    }
}

/// What a program of the user's came to on a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramRun {
    /// How it ended.
    pub end: CommandEnd,
    /// What it wrote, standard error first, without colours, cut to what a writer can use.
    pub said: String,
}

/// Runs a program of the user's on a text, under its limits. The permission is not looked at: that there is one is
/// what counts.
///
/// # Errors
/// If it cannot be started.
pub async fn run_program(
    config: &CommandConfig,
    text: &str,
    _: &ExecPermission,
) -> Result<ProgramRun, String> {
    let (output, file) = run(config, text).await?;
    Ok(ProgramRun {
        said: said(&written(&output, &file), MAX_OUTPUT),
        end: output.end,
    })
}

/// The endings of files in which a fence around everything is part of the text.
const MARKDOWN: [&str; 4] = ["md", "markdown", "mdx", "qmd"];

/// Runs the program on the draft, without a code fence around all of it: that is how a code block is shown, and no
/// compiler reads it. Gives its output with the name of the draft's file.
async fn run(config: &CommandConfig, draft: &str) -> Result<(CommandOutput, PathBuf), String> {
    let draft = inside_fence(draft.trim())
        .filter(|_| !MARKDOWN.contains(&config.extension.as_str()))
        .unwrap_or(draft);
    let scratch = Scratch::new()
        .map_err(|error| format!("there is no place for the draft's file: {error}"))?;
    let file = scratch
        .write(&format!("draft.{}", config.extension), draft.as_bytes())
        .map_err(|error| format!("the draft's file cannot be written: {error}"))?;
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

/// Exit code 0 passes. Everything else is the draft's fault: where a program hangs or is killed on one
/// draft, it may well not on the next. Only a program that ended by itself is graded by what it wrote.
fn by_exit(program: &str, output: &CommandOutput, written: &[String], grade: &Grade) -> Finding {
    let mut how = output.end.to_string();
    let kept = said(written, MAX_KEPT);
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
    let evidence = match clip(&kept, MAX_EVIDENCE) {
        short if short.is_empty() => how.clone(),
        short => format!("{how}: {short}"),
    };
    let mut finding = Finding::graded(score, evidence);
    finding.valid = Some(output.success());
    finding.value = Some(kept).filter(|kept| !kept.is_empty()).map(Value::from);
    if output.success() {
        return finding;
    }
    let description = if all.is_empty() {
        format!("`{program}` {how}, and wrote nothing")
    } else {
        // Indented, so that it stays one item in a list of issues.
        let shown = distill(&all, cut).replace('\n', "\n    ");
        format!("`{program}` {how}:\n    {shown}")
    };
    finding.with_faults([Fault::new(IssueType::Incorrect, description)])
}

/// The verdict is what it writes; many programs end with an exit code of their own where they find
/// something.
fn by_json(program: &str, output: &CommandOutput, said: &str, floor: f64) -> Finding {
    let none = |problem: String| {
        let shown = clip(said, MAX_EVIDENCE);
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
    let Unique(value) = match serde_json::from_slice(&bytes) {
        Ok(value) => value,
        Err(_) if bytes.trim_ascii().is_empty() => {
            return none("its standard output is empty".to_owned());
        }
        Err(error) if error.is_data() => {
            return none(format!("its standard output contradicts itself ({error})"));
        }
        Err(error) => return none(format!("its standard output is not JSON ({error})")),
    };
    match answer::read(&value, floor) {
        Ok(finding) => finding,
        Err(problem) => none(problem),
    }
}

/// What the program wrote to each stream, standard error first, without those that are empty: free of colours and
/// other controls, with the draft's file under the same name each time.
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

/// All of it in so many characters, each stream cut to its share.
fn said(written: &[String], most: usize) -> String {
    let share = most / written.len().max(1);
    let parts: Vec<String> = written.iter().map(|text| cut(text, share)).collect();
    parts.join("\n")
}

/// Head and tail of a text, at the ends of lines where there are some: two thirds and one third.
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
