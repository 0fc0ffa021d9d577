//! A call as the run log keeps it.

use crate::model::{Asked, CallReport, Exchange, Message, Reply, Role};
use crate::report::{self, Said, Talk};
use crate::store::{KeptCall, KeptMessage, Store, StoreError};

/// What is kept of a call that was answered.
pub(super) fn of_report(call: &CallReport<'_>) -> KeptCall {
    let messages = call.request.messages.iter().map(|message| KeptMessage {
        role: message.role.as_str().to_owned(),
        content: message.content.clone(),
    });
    // What cannot be written as JSON, as an infinite log-probability, is not found again and asked for anew.
    KeptCall {
        key: call.request.key(),
        asked: serde_json::to_string(&Asked::of(call)).unwrap_or_default(),
        messages: messages.collect(),
        reply: serde_json::to_string(call.reply).unwrap_or_default(),
    }
}

/// The call that was kept; `None` if it cannot be read.
pub(super) fn exchange(kept: KeptCall) -> Option<Exchange> {
    let role = |name: &str| {
        let roles = [Role::System, Role::User, Role::Assistant];
        roles.into_iter().find(|role| role.as_str() == name)
    };
    let messages = kept
        .messages
        .into_iter()
        .map(|message| Some(Message::new(role(&message.role)?, message.content)));
    Some(Exchange {
        asked: serde_json::from_str(&kept.asked).ok()?,
        key: kept.key,
        messages: messages.collect::<Option<_>>()?,
        reply: serde_json::from_str(&kept.reply).ok()?,
    })
}

/// What was said in the call that was kept; `None` if it cannot be read.
fn talk(kept: KeptCall) -> Option<Talk> {
    let reply: Reply = serde_json::from_str(&kept.reply).ok()?;
    let said = |message: KeptMessage| Said {
        role: message.role,
        text: message.content,
    };
    Some(Talk {
        asked: kept.messages.into_iter().map(said).collect(),
        reasoning: reply.reasoning,
        answer: reply.text,
    })
}

/// The report on a run that was kept, as a page with what was said in its calls.
pub(super) fn page(store: &Store, run_id: uuid::Uuid) -> Result<String, StoreError> {
    let (numbers, events): (Vec<u64>, Vec<_>) = store.numbered_events(run_id)?.into_iter().unzip();
    let (calls, _) = store.calls(run_id)?;
    let talks = calls.into_iter().filter_map(|(number, call)| {
        let place = numbers.binary_search(&number).ok()?;
        Some((place, talk(call)?))
    });
    Ok(report::html_with_talks(&events, talks.collect()))
}
