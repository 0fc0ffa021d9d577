//! `reflect evaluate`: evaluates existing texts.

use std::path::Path;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::cli::args::{EvaluateArgs, EvaluateFormat, GlobalArgs, InputFormat, ReportFormat};
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::observers::{Kept, Lines, RunLog, Tee};
use crate::cli::output::Output;
use crate::cli::printer::{self, Reader};
use crate::cli::progress::Progress;
use crate::cli::run_inputs::RunInputs;
use crate::cli::settings::Plan;
use crate::cli::store::{self, SharedStore};
use crate::cli::{dry_run, interrupt, models, settings};
use crate::engine::{EvaluateOnce, Observer, Text};
use crate::evaluate::JudgeModel;
use crate::report;
use crate::types::{Criteria, ExitCode, RunRecord, Stamped, Task};

/// Evaluates the texts and prints the report.
pub(in crate::cli) async fn run(
    args: &EvaluateArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    if args.output.dry_run {
        return dry_run::of_texts(args, global, || read_texts(args, global.quiet));
    }
    match prepare(args, global).await {
        Ok(prepared) => prepared.run(args, global).await,
        Err(error) => {
            if args.output.format == EvaluateFormat::Ndjson {
                // Readers of events expect an end event, even if no evaluation started.
                printer::print(&Lines::end_of_failed(error.code, &error.message))?;
            }
            Err(error)
        }
    }
}

/// A validated evaluation, ready to start, without the parts for a terminal.
pub(super) struct ReadyJudge {
    task: Task,
    /// The criteria in force, without the judge if it cannot judge.
    criteria: Arc<Criteria>,
    critique: EvaluateOnce,
    log: Option<RunLog>,
}

impl ReadyJudge {
    /// Opens the run log and the judge for texts of which this is the longest.
    pub(super) async fn open(
        plan: Plan,
        inputs: RunInputs,
        longest: &str,
        no_log: bool,
        cancel: &CancellationToken,
        quiet: bool,
    ) -> Result<Self, CliError> {
        let store = SharedStore::open(&plan, no_log)?;
        let mut criteria = plan.criteria.clone();
        let judge = if criteria.need_judge() {
            let opening = models::open_judge(&plan, &inputs.task, longest, quiet);
            let judge = interrupt::unless_cancelled(cancel, opening).await?;
            criteria.judge_settings.enabled = Some(judge.is_some());
            judge.map(|judge| JudgeModel {
                cache: store::verdicts(&criteria, store.as_ref()),
                ..judge
            })
        } else {
            None
        };
        let criteria = Arc::new(criteria);
        let critique = EvaluateOnce::new(Arc::clone(&criteria), judge, &inputs.tools)
            .map_err(CliError::usage)?
            .with_evidence(inputs.evidence)
            .with_prices(plan.config.prices().clone())
            .with_templates(inputs.templates);
        Ok(Self {
            task: inputs.task,
            criteria,
            critique,
            log: store.map(RunLog::new),
        })
    }

    /// Judges a text. The log receives each event before `shown` does.
    pub(super) async fn judge(
        &mut self,
        text: Text,
        shown: &mut dyn Observer,
        cancel: &CancellationToken,
    ) -> RunRecord {
        let mut observers: Vec<&mut dyn Observer> = Vec::new();
        observers.extend(self.log.as_mut().map(|log| log as &mut dyn Observer));
        observers.push(shown);
        let observer = &mut Tee(observers);
        self.critique.run(&self.task, text, observer, cancel).await
    }
}

/// A validated evaluation for the command line, ready to start.
struct Prepared {
    texts: Vec<Text>,
    ready: ReadyJudge,
    output: Output,
    report: Option<Output>,
    cancel: CancellationToken,
}

async fn prepare(args: &EvaluateArgs, global: &GlobalArgs) -> Result<Prepared, CliError> {
    args.output.check()?;
    let plan = settings::evaluate(args, global)?;
    let inputs = RunInputs::of_texts(args, &plan, global.quiet)?;
    let texts = read_texts(args, global.quiet)?;
    let (output, report) = args.output.open()?;
    let cancel = interrupt::cancel_on_signal();
    let longest = texts
        .iter()
        .map(|text| text.content.as_str())
        .max_by_key(|text| text.len())
        .unwrap_or_default();
    let (no_log, quiet) = (args.output.no_log, global.quiet);
    let ready = ReadyJudge::open(plan, inputs, longest, no_log, &cancel, quiet).await?;
    Ok(Prepared {
        texts,
        ready,
        output,
        report,
        cancel,
    })
}

/// Reads all texts before the first evaluation, so that a misspelt name fails before any paid call.
fn read_texts(args: &EvaluateArgs, quiet: bool) -> Result<Vec<Text>, CliError> {
    let stdin = [Path::new("-").to_owned()];
    let names = if args.texts.is_empty() {
        &stdin[..]
    } else {
        &args.texts[..]
    };
    let mut texts = Vec::new();
    for name in names {
        let input = Input::of(name);
        if matches!(input, Input::Stdin) && texts.iter().any(|text: &Text| text.file.is_none()) {
            return Err(CliError::usage("stdin can be evaluated only once"));
        }
        let mut text = input.read_text("judge", quiet)?;
        if args.input_format == InputFormat::Json {
            text.content = json_text(text.content, text.file.as_deref())?;
        }
        texts.push(text);
    }
    Ok(texts)
}

/// Returns the text to evaluate from JSON input: the content of a string, or any other value unchanged.
fn json_text(content: String, file: Option<&str>) -> Result<String, CliError> {
    match serde_json::from_str(&content) {
        Ok(serde_json::Value::String(text)) => Ok(text),
        Ok(_) => Ok(content),
        Err(error) => Err(CliError::usage(format!(
            "{} is not JSON: {error}",
            file.map_or("stdin".to_owned(), |file| format!("`{file}`"))
        ))
        .hint("remove `--input-format json` to evaluate it as text")),
    }
}

impl Prepared {
    async fn run(mut self, args: &EvaluateArgs, global: &GlobalArgs) -> Result<ExitCode, CliError> {
        let mut lines = (args.output.format == EvaluateFormat::Ndjson)
            .then(|| Lines::new(args.output.stream_deltas, self.cancel.clone()));
        let mut records: Vec<Judged> = Vec::new();
        let mut kept: Vec<Kept> = Vec::new();
        for text in self.texts {
            let file = text.file.clone();
            let mut progress = Progress::of_text(name_of(file.as_deref()), global);
            let mut observers: Vec<&mut dyn Observer> = vec![&mut progress];
            observers.extend(lines.as_mut().map(|lines| lines as &mut dyn Observer));
            if self.report.is_some() {
                kept.push(Kept::default());
            }
            observers.extend(kept.last_mut().map(|kept| kept as &mut dyn Observer));
            let shown = &mut Tee(observers);
            let record = self.ready.judge(text, shown, &self.cancel).await;
            if let Some(error) = &record.error {
                printer::report(&CliError::failure(error.clone()));
            }
            let over = self.cancel.is_cancelled();
            records.push((file, record));
            if over {
                break;
            }
        }
        if let Some(cost) = report::cost(&records).filter(|_| !global.quiet) {
            printer::say(&cost);
        }
        let printed = Printed::of(args);
        let reported = self.report.map(|file| {
            file.write(&match args.output.report_format() {
                ReportFormat::Json => (printed.json)(&records),
                ReportFormat::Markdown => each(&records, printed.markdown),
                ReportFormat::Html => {
                    let runs: Vec<&[Stamped]> = kept.iter().map(|Kept(it)| it.as_slice()).collect();
                    report::html(&runs)
                }
            })
        });
        let code = match worst(&records) {
            ExitCode::NotMet if args.output.exit_zero => ExitCode::Success,
            code => code,
        };
        let ended = if let Some(lines) = lines {
            lines.end()?
        } else {
            let folder = std::env::current_dir().unwrap_or_default();
            let text = match args.output.format {
                EvaluateFormat::Text | EvaluateFormat::Ndjson => {
                    printer::without_controls(&each(&records, printed.text)).into_owned()
                }
                EvaluateFormat::Json => (printed.json)(&records),
                EvaluateFormat::Markdown => each(&records, printed.markdown),
                EvaluateFormat::Junit => report::junit(&self.ready.criteria, &records),
                EvaluateFormat::Sarif => {
                    report::sarif(&self.ready.criteria, &records, &folder, code)
                }
                EvaluateFormat::Github => report::github(&self.ready.criteria, &records, &folder),
            };
            if args.output.format == EvaluateFormat::Text && self.output.is_stdout() {
                printer::print_report(&text)?
            } else {
                self.output.deliver(&text, None)?
            }
        };
        reported.transpose()?;
        if ended == Reader::Gone {
            return Ok(ExitCode::Success);
        }
        Ok(code)
    }
}

/// The exit code of the worst result. A failed evaluation is worse than unmet criteria.
fn worst(records: &[Judged]) -> ExitCode {
    records
        .iter()
        .filter_map(|(_, record)| record.exit_code)
        .max_by_key(|code| match code {
            ExitCode::Success => 0,
            ExitCode::NotMet => 1,
            ExitCode::JudgeUnusable => 2,
            _ => 3,
        })
        .unwrap_or(ExitCode::Failure)
}

fn name_of(file: Option<&str>) -> &str {
    file.unwrap_or("stdin")
}

/// A text's file and the record of its evaluation.
type Judged = (Option<String>, RunRecord);

/// The output functions: for a report on criteria, or for the verdict of a single evaluator.
struct Printed {
    text: fn(&str, &RunRecord) -> String,
    markdown: fn(&str, &RunRecord) -> String,
    json: fn(&[Judged]) -> String,
}

impl Printed {
    fn of(args: &EvaluateArgs) -> Self {
        if args.evaluator.is_some() {
            Self {
                text: report::verdict_text,
                markdown: report::verdict_markdown,
                json: report::verdicts_json,
            }
        } else {
            Self {
                text: report::critique_text,
                markdown: report::critique_markdown,
                json: report::critiques_json,
            }
        }
    }
}

fn each(records: &[Judged], print: fn(&str, &RunRecord) -> String) -> String {
    let parts: Vec<String> = records
        .iter()
        .map(|(file, record)| print(name_of(file.as_deref()), record))
        .collect();
    parts.join("\n")
}
