//! The reflector's assessment of a completed command, on stderr.

use super::printer;
use crate::reflector::PlanAssessment;
use crate::report;

/// Prints the verdict: a headline, then common causes of failures and advice, then `notes`.
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
