use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;

use super::process::Members;

/// How often memory and the number of processes are looked at.
const EVERY: Duration = Duration::from_millis(50);

/// Looks at the processes of a session from a thread of its own until it is dropped. From then on it ends
/// none of them any more.
#[derive(Debug)]
pub(super) struct Watch {
    /// Closed when this is dropped, which wakes the thread.
    _wake: mpsc::Sender<()>,
    over: Arc<Mutex<bool>>,
}

impl Watch {
    pub(super) fn start(members: Arc<Members>) -> Self {
        let (wake, sleep) = mpsc::channel();
        let over = Arc::new(Mutex::new(false));
        let is_over = Arc::clone(&over);
        // Where no thread can be had the limits of the kernel still hold.
        let _ = std::thread::Builder::new()
            .name("sandbox-watch".to_owned())
            .spawn(move || {
                while sleep.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let is_over = is_over.lock();
                    if *is_over || members.end_if_over() {
                        return;
                    }
                }
            });
        Self { _wake: wake, over }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.over.lock() = true;
    }
}
