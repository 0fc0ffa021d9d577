//! Replaces the wording of insights with a model's. The rules' wording stays where the model's is
//! unusable.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::text::one_line;
use crate::types::KnownInsight;

/// The maximum length of a wording, in characters.
const LONGEST: usize = 500;

/// Returns the JSON Schema of the reply, in the strict form.
pub fn wording_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "insights": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "number": { "type": "integer" },
                        "text": { "type": "string" }
                    },
                    "required": ["number", "text"],
                    "additionalProperties": false
                }
            }
        },
        "required": ["insights"],
        "additionalProperties": false
    })
}

#[derive(Deserialize)]
struct Reply {
    insights: Vec<Value>,
}

#[derive(Deserialize)]
struct WordedInsight {
    number: usize,
    text: String,
}

/// Gives insights the wording of a reply, which refers to them by number from 1, and returns how
/// many changed. Rejects a wording that is empty, far too long, or lacks a name in backticks from
/// the original.
pub fn apply_wording(insights: &mut [KnownInsight], reply: &str) -> usize {
    let json = match (reply.find('{'), reply.rfind('}')) {
        (Some(begin), Some(end)) if begin < end => &reply[begin..=end],
        _ => return 0,
    };
    let Ok(reply) = serde_json::from_str::<Reply>(json) else {
        return 0;
    };
    let mut taken = 0;
    for entry in reply.insights {
        let Ok(worded) = serde_json::from_value::<WordedInsight>(entry) else {
            continue;
        };
        let insight = worded
            .number
            .checked_sub(1)
            .and_then(|place| insights.get_mut(place));
        let text = one_line(&worded.text);
        if let Some(insight) = insight
            && !insight.worded
            && !text.is_empty()
            && text.chars().count() <= LONGEST
            && names(insight).all(|name| text.contains(name))
        {
            insight.content = text;
            insight.worded = true;
            taken += 1;
        }
    }
    taken
}

/// Returns the names that an insight is about. Advice without them would be useless.
fn names(insight: &KnownInsight) -> impl Iterator<Item = &str> {
    insight.criterion.iter().map(String::as_str)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn two() -> Vec<KnownInsight> {
        let about = |criterion: Option<&str>, content: &str| KnownInsight {
            criterion: criterion.map(str::to_owned),
            ..KnownInsight::new("check", content, 0.5)
        };
        vec![about(Some("clear"), "first"), about(None, "second")]
    }

    #[test]
    fn words_are_taken_by_number_from_any_reply_that_has_them() {
        let mut insights = two();
        let reply = "Here:\n```json\n{\"insights\": [{\"number\": 2, \"text\": \"Be\\n brief.\"},
            {\"number\": 1, \"text\": \"For `clear`, say it first.\"}, {\"number\": 9, \"text\": \"x\"}, 5]}\n```";
        assert_eq!(apply_wording(&mut insights, reply), 2);
        assert_eq!(insights[0].content, "For `clear`, say it first.");
        assert_eq!(insights[1].content, "Be brief.");
        assert!(insights.iter().all(|insight| insight.worded));
        assert_eq!(insights[0].subject, "first");
    }

    #[test]
    fn what_cannot_be_used_changes_nothing() {
        let long = "x".repeat(LONGEST + 1);
        for reply in [
            "no".to_owned(),
            "}{".to_owned(),
            "{\"insights\": 3}".to_owned(),
            "{\"insights\": [{\"number\": 0, \"text\": \"x\"}]}".to_owned(),
            "{\"insights\": [{\"number\": 2, \"text\": \"  \"}]}".to_owned(),
            "{\"insights\": [{\"number\": 1, \"text\": \"Say it first.\"}]}".to_owned(),
            format!("{{\"insights\": [{{\"number\": 2, \"text\": \"{long}\"}}]}}"),
        ] {
            let mut insights = two();
            assert_eq!(apply_wording(&mut insights, &reply), 0, "{reply}");
            assert_eq!(insights, two());
        }
    }

    proptest! {
        #[test]
        fn any_reply_will_do(reply in "\\PC*") {
            apply_wording(&mut two(), &reply);
        }
    }
}
