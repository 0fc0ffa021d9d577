//! `reflect assess`: judges the outcome of a plan that something else ran.

use std::path::Path;

use crate::cli::args::{AssessArgs, AssessFormat, GlobalArgs};
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::output::Output;
use crate::cli::verbose::Verbosity;
use crate::cli::{interrupt, models, printer, settings};
use crate::evaluate::{advice_prompt, advise};
use crate::reflector::{self, Episode, PlanAssessment};
use crate::report::{AssessmentReport, assessment_json, assessment_markdown, assessment_text};
use crate::types::{ExitCode, ModelId, Task};

/// Judges the outcome and prints the verdict, or prints the schema of the input with `--schema`.
pub(in crate::cli) async fn run(
    args: &AssessArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    if args.schema {
        printer::print(&printer::json(&reflector::schema())?)?;
        return Ok(ExitCode::Success);
    }
    settings::check_model(&args.model, args.llm)?;
    let plan = settings::assess(args, global)?;
    let criteria = plan.settings().reflector.criteria();
    let episode = read(args.file.as_deref().unwrap_or(Path::new("-")), global.quiet)?;
    let output = Output::open(args.output.as_deref())?;
    let mut assessment = reflector::evaluate_plan(&episode.plan, &episode.results, &criteria);
    let mut warnings = Vec::new();
    let mut model = None;
    if args.llm {
        let (judge, reply) = suggest(&plan, &episode, &assessment, global).await?;
        model = judge;
        match reply {
            Ok(suggestions) => assessment.add_suggestions(suggestions),
            Err(problem) => {
                if !global.quiet {
                    printer::say(&format!("warning: {problem}; the verdict is not affected"));
                }
                warnings.push(problem);
            }
        }
    }
    let report = AssessmentReport {
        assessment: &assessment,
        insights: &reflector::learn_from_episode(&episode, &criteria),
        criteria: &criteria,
        model: model.as_ref(),
        warnings: &warnings,
    };
    let text = match args.format {
        AssessFormat::Text => printer::without_controls(&assessment_text(&report)).into_owned(),
        AssessFormat::Json => assessment_json(&report),
        AssessFormat::Markdown => assessment_markdown(&report),
    };
    if output.deliver(&text, None)? == printer::Reader::Gone {
        return Ok(ExitCode::Success);
    }
    if assessment.verdict.success || args.exit_zero {
        return Ok(ExitCode::Success);
    }
    if !global.quiet {
        printer::say(&format!(
            "the plan `{}` failed: exit code 3 (0 with `--exit-zero`)",
            episode.plan.id
        ));
    }
    Ok(ExitCode::NotMet)
}

fn read(file: &Path, quiet: bool) -> Result<Episode, CliError> {
    let source = Input::of(file).source("the plan and its results", quiet)?;
    Ok(reflector::read(&source)?)
}

/// Asks the judge for suggestions. Returns the judge's model, and its suggestions or why there are none.
///
/// # Errors
/// If the model settings are invalid, or on a signal. An unreachable model is only a warning, because the
/// verdict does not depend on it.
async fn suggest(
    plan: &settings::Plan,
    episode: &Episode,
    assessment: &PlanAssessment,
    global: &GlobalArgs,
) -> Result<(Option<ModelId>, Result<Vec<String>, String>), CliError> {
    let cancel = interrupt::cancel_on_signal();
    let prompt: String = advice_prompt(episode, assessment)
        .into_iter()
        .map(|message| message.content)
        .collect();
    let observer = Verbosity::of(global).observer("suggestions");
    let ask = async {
        match models::open_judge(plan, &Task::default(), &prompt, global.quiet).await {
            Ok(None) => Ok((None, Err("the model cannot judge".to_owned()))),
            Ok(Some(judge)) => {
                let reply = advise(episode, assessment, &judge, &observer).await;
                Ok((Some(judge.model.id().clone()), reply))
            }
            Err(error) if error.code == ExitCode::Provider => {
                let problem = format!("cannot get suggestions from the model: {}", error.message);
                Ok((None, Err(problem)))
            }
            Err(error) => Err(error),
        }
    };
    interrupt::unless_cancelled(&cancel, ask).await
}
