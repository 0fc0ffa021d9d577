//! The reflector's verdict on a batch.

use std::path::Path;

use crate::batch::{BatchHistory, Ending, MOST, Status, Stop};
use crate::cli::args::BatchArgs;
use crate::cli::verdict;
use crate::reflector::{FailurePattern, PatternType, PlanAssessment};
use crate::report;
use crate::types::ReflectionCriteria;

/// The name of a batch as a plan: its task file.
pub(super) fn name(tasks: &Path) -> String {
    if tasks == Path::new("-") {
        "standard input".to_owned()
    } else {
        tasks.display().to_string()
    }
}

/// Prints the verdict on a batch of `total` tasks, including those of earlier calls. If `total` is unknown,
/// counts the rows instead. Prints nothing after an interrupt, or if the output was closed.
pub(super) fn print(
    history: &BatchHistory,
    ending: &Ending,
    total: Option<u64>,
    criteria: &ReflectionCriteria,
    args: &BatchArgs,
) {
    let skip = matches!(ending.stop, Some(Stop::Interrupted | Stop::NoReader));
    if skip || history.seen() == 0 {
        return;
    }
    let tally = &ending.tally;
    let total = total.unwrap_or_else(|| tally.rows());
    let mut assessment = history.assess(tally, total, criteria);
    drop_plan_advice(&mut assessment);
    let mut notes = Vec::new();
    let again = history.again();
    if again.tasks > 0 {
        notes.push(format!(
            "tried again in another way: {}, {} of them to an end",
            report::thousands(again.tasks),
            report::thousands(again.fixed)
        ));
    }
    if tally.of(Status::NotMet) > 0 {
        notes.push(
            "suggestion: where criteria are not met: more drafts (`-n`), a stronger model (`--stronger-model`), or \
             review the criteria"
                .to_owned(),
        );
    }
    let offers = args.replan == 0 && args.file().is_some();
    if offers && assessment.tasks.iter().any(|task| task.should_replan) {
        notes.push(
            "hint: `--retry-failed --replan 2` retries the failed tasks with a different approach"
                .to_owned(),
        );
    }
    let kept = u64::try_from(MOST).unwrap_or(u64::MAX);
    if history.seen() > kept {
        notes.push(format!(
            "patterns and suggestions rest on the last {} tasks, the counts on all",
            report::thousands(kept)
        ));
    }
    verdict::say(&assessment, &notes);
}

/// Removes the pattern of too few successful tasks and its advice. The headline has the counts, and advice about plans
/// does not apply to the independent tasks of a batch; `reflect assess` gives it.
fn drop_plan_advice(assessment: &mut PlanAssessment) {
    let low = |pattern: &FailurePattern| pattern.pattern_type == PatternType::LowSuccessRate;
    let dropped: Vec<FailurePattern> = assessment.patterns.extract_if(.., |it| low(it)).collect();
    let is_dropped = |suggestion: &String| {
        let mut fixes = dropped.iter().filter_map(|it| it.suggested_fix.as_ref());
        fixes.any(|fix| fix == suggestion)
    };
    assessment.verdict.suggestions.retain(|it| !is_dropped(it));
}
