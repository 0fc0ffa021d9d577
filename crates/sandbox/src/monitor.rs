use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use parking_lot::Mutex;

use super::process::SessionProcesses;

/// The interval between two checks of memory and the number of processes.
const EVERY: Duration = Duration::from_millis(50);

/// Monitors the processes of a session in a separate thread until it is dropped. It kills nothing after that.
#[derive(Debug)]
pub(super) struct LimitMonitor {
    /// Dropping it wakes the thread.
    _wake: mpsc::Sender<()>,
    over: Arc<Mutex<bool>>,
}

impl LimitMonitor {
    pub(super) fn start(members: Arc<SessionProcesses>) -> Self {
        let (wake, sleep) = mpsc::channel();
        let over = Arc::new(Mutex::new(false));
        let is_over = Arc::clone(&over);
        // Without a thread, the kernel's limits still apply.
        let _ = std::thread::Builder::new()
            .name("sandbox-watch".to_owned())
            .spawn(move || {
                while sleep.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let is_over = is_over.lock();
                    if *is_over || members.kill_if_exceeded() {
                        return;
                    }
                }
            });
        Self { _wake: wake, over }
    }
}

impl Drop for LimitMonitor {
    fn drop(&mut self) {
        *self.over.lock() = true;
    }
}
