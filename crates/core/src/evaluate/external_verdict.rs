//! Parses verdicts that were computed elsewhere, in the form that scripts return.

use serde_json::Value;

use super::{aggregate::aggregate, script_verdict};
use crate::types::{Criteria, Evaluation};

/// Why a value is not a verdict.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidVerdict(String);

/// Parses what a script returned as the verdict on the single criterion of a set: a boolean, a
/// number from 0 to 1, or an object with `valid`, `score`, `errors` and `suggestions`.
///
/// # Errors
/// If the value is not a verdict.
pub fn read_returned(value: &Value, criteria: &Criteria) -> Result<Evaluation, InvalidVerdict> {
    let floor = criteria
        .criteria
        .first()
        .map_or(criteria.threshold, |it| it.threshold);
    let finding = script_verdict::read(value, floor).map_err(InvalidVerdict)?;
    Ok(aggregate(criteria, vec![finding], Vec::new(), Some(1.0)))
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
