//! What the reflector makes of what this program has carried out itself, on standard error.

use super::printer;
use crate::reflector::PlanAssessment;
use crate::report;

/// Says the verdict: a headline, and below it what failures have in common, and what to do. `notes` stand below that.
pub(super) fn say(assessment: &PlanAssessment, notes: &[String]) {
    let lines = report::assessment_brief(assessment);
    let below = lines.iter().skip(1).chain(notes);
    if let Some(headline) = lines.first() {
        printer::say(&format!("verdict: {headline}"));
    }
    for line in below {
        printer::say(&format!("  {line}"));
    }
}
