//! Reports on runs from the run log.

use crate::model::Exchange;
use crate::report::{self, Said, Talk};
use crate::store::{Store, StoreError};

/// Converts a call for the report.
fn talk(call: Exchange) -> Talk {
    let messages = call.messages.into_iter().map(|message| Said {
        role: message.role.as_str().to_owned(),
        text: message.content,
    });
    Talk {
        asked: messages.collect(),
        reasoning: call.reply.reasoning,
        answer: call.reply.text,
    }
}

/// Renders the report on a recorded run as an HTML page with its calls.
pub(super) fn page(store: &Store, run_id: uuid::Uuid) -> Result<String, StoreError> {
    let (numbers, events): (Vec<u64>, Vec<_>) = store.numbered_events(run_id)?.into_iter().unzip();
    let (calls, _) = store.calls(run_id)?;
    let talks = calls.into_iter().filter_map(|(number, call)| {
        let place = numbers.binary_search(&number).ok()?;
        Some((place, talk(call)))
    });
    Ok(report::html_with_talks(&events, talks.collect()))
}
