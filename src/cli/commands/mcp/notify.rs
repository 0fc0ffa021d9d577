//! Progress notifications: the lines that a terminal shows, sent to the client.

use parking_lot::Mutex;
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use tokio::sync::mpsc;

use crate::cli::progress::Receiver;
use crate::secrets::redact_text;
use crate::types::RunRecord;

/// Sends the progress of one call.
pub(super) struct Notifier {
    token: ProgressToken,
    sender: mpsc::UnboundedSender<ProgressNotificationParam>,
}

impl Notifier {
    /// The receiver of the lines of a run with at most `drafts` drafts. The value is the number of drafts. Each line
    /// takes it closer to the draft at hand, because every notification must raise it.
    pub(super) fn receiver(self, drafts: u32) -> Receiver {
        let value = Mutex::new(0.0);
        Box::new(move |record: &RunRecord, line: &str| {
            let mut value = value.lock();
            *value = raised(*value, record.iterations());
            let progress = ProgressNotificationParam::new(self.token.clone(), *value)
                .with_total(f64::from(drafts))
                .with_message(redact_text(line.to_owned()));
            // If nobody receives it, the session is over.
            let _ = self.sender.send(progress);
        })
    }
}

/// A value above this one, and below the number of the draft at hand.
fn raised(value: f64, draft: u32) -> f64 {
    value + (f64::from(draft.max(1)) - value) / 8.0
}

/// Makes a call, and sends the client its progress if it asks for that. All of it is sent when this returns.
pub(super) async fn notifying<T>(
    context: &RequestContext<RoleServer>,
    call: impl AsyncFnOnce(Option<Notifier>) -> T,
) -> T {
    let Some(token) = context.meta.get_progress_token() else {
        return call(None).await;
    };
    let (sender, mut lines) = mpsc::unbounded_channel();
    let sending = async {
        while let Some(progress) = lines.recv().await {
            // A client that has cancelled the call wants to hear no more of it.
            if !context.ct.is_cancelled() {
                let _ = context.peer.notify_progress(progress).await;
            }
        }
    };
    tokio::join!(call(Some(Notifier { token, sender })), sending).0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_rises_and_stays_below_the_draft_at_hand() {
        let mut value = 0.0;
        for draft in 0..=3 {
            for _ in 0..100 {
                let next = raised(value, draft);
                assert!(value < next && next < f64::from(draft.max(1)), "{value}");
                value = next;
            }
        }
    }
}
