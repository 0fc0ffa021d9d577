//! Verdicts that were had elsewhere, in the form that scripts return them.

use serde_json::Value;

use super::{add_up::add_up, answer};
use crate::types::{Criteria, Evaluation};

/// A value that is no verdict, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NoVerdict(String);

/// Reads what a script returned as the verdict on the one criterion of a set: a boolean, a number from 0 to 1, or
/// an object with `valid`, `score`, `errors` and `suggestions`.
///
/// # Errors
/// If it is no verdict.
pub fn read_returned(value: &Value, criteria: &Criteria) -> Result<Evaluation, NoVerdict> {
    let floor = criteria
        .criteria
        .first()
        .map_or(criteria.threshold, |it| it.threshold);
    let finding = answer::read(value, floor).map_err(NoVerdict)?;
    Ok(add_up(criteria, vec![finding], Vec::new(), Some(1.0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::criteria::parse_spec;
    use crate::source::DataFormat;

    #[test]
    fn a_returned_value_is_a_verdict_or_none() {
        let spec = json!({ "type": "custom", "run": "x" }).to_string();
        let criteria = parse_spec(&spec, "x", DataFormat::Json).unwrap();
        let read = |value| read_returned(&value, &criteria);
        assert!(read(json!(true)).unwrap().satisfactory);
        let half = read(json!({ "valid": false, "score": 0.4, "errors": ["bad"] })).unwrap();
        assert_eq!((half.satisfactory, half.overall_score), (false, Some(0.4)));
        assert_eq!(half.issues[0].description, "bad");
        assert!(read(json!(["no verdict"])).is_err());
    }
}
