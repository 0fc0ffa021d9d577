//! What the reflector says of a batch.

use std::path::Path;

use crate::batch::{BatchHistory, Ending, MOST, Status, Stop};
use crate::cli::args::BatchArgs;
use crate::cli::verdict;
use crate::report;
use crate::types::ReflectionCriteria;

/// What a batch is called as a plan: the file with its tasks.
pub(super) fn name(tasks: &Path) -> String {
    if tasks == Path::new("-") {
        "standard input".to_owned()
    } else {
        tasks.display().to_string()
    }
}

/// Says the verdict on a batch of `total` tasks, those of earlier calls included, or of as many as there are rows if
/// that is not known. Who has ended it early, or reads no more of it, wants none.
pub(super) fn say(
    chronicle: &BatchHistory,
    ending: &Ending,
    total: Option<u64>,
    criteria: &ReflectionCriteria,
    args: &BatchArgs,
) {
    let unwanted = matches!(ending.stop, Some(Stop::Interrupted | Stop::NoReader));
    if unwanted || chronicle.seen() == 0 {
        return;
    }
    let tally = &ending.tally;
    let total = total.unwrap_or_else(|| tally.rows());
    let assessment = chronicle.assess(tally, total, criteria);
    let mut notes = Vec::new();
    let again = chronicle.again();
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
             look at the criteria"
                .to_owned(),
        );
    }
    let offers = args.replan == 0 && args.file().is_some();
    if offers && assessment.tasks.iter().any(|task| task.should_replan) {
        notes.push(
            "hint: `--retry-failed --replan 2` tries the failed tasks again in another way"
                .to_owned(),
        );
    }
    let kept = u64::try_from(MOST).unwrap_or(u64::MAX);
    if chronicle.seen() > kept {
        notes.push(format!(
            "patterns and suggestions rest on the last {} tasks, the counts on all",
            report::thousands(kept)
        ));
    }
    verdict::say(&assessment, &notes);
}
