//! A child process in a session of its own, with everything that it starts.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicI32, Ordering};

use tokio::process::{Child, Command};

use super::limits::Limits;

/// Name of the variable that marks the environment of a child and of what it starts. A process that
/// leaves the session (a daemon) is still found by it.
const MARK: &str = "REFLECT_SANDBOX";

/// What the processes of one session use together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    /// Processes that are not zombies; a thread counts as one.
    pub(super) processes: u64,
    /// Resident bytes.
    pub(super) memory: u64,
}

/// The child and its session. Dropping it ends all of them.
#[derive(Debug)]
pub(super) struct Session {
    child: Child,
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
    #[cfg(target_os = "linux")]
    mark: String,
    /// When the leader started: what it starts is not older.
    #[cfg(target_os = "linux")]
    started: u64,
    group: AtomicI32,
    ended: bool,
}

impl Session {
    /// Starts `command` as the leader of a new session, under `limits`.
    ///
    /// `cpu_seconds` is a backstop for the case that this process dies and cannot end its children.
    pub(super) fn start(
        mut command: Command,
        limits: &Limits,
        cpu_seconds: u64,
    ) -> std::io::Result<Self> {
        let mark = uuid::Uuid::now_v7().simple().to_string();
        command.env(MARK, &mark).kill_on_drop(true);
        #[cfg(unix)]
        super::rlimits::apply_at_start(&mut command, limits, cpu_seconds);
        #[cfg(not(unix))]
        let _ = (limits, cpu_seconds);
        let child = command.spawn()?;
        #[cfg(unix)]
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Ok(Self {
            #[cfg(unix)]
            id: id.and_then(rustix::process::Pid::from_raw),
            #[cfg(target_os = "linux")]
            started: id
                .and_then(super::proc::read)
                .map_or(0, |leader| leader.start),
            #[cfg(target_os = "linux")]
            mark,
            group: AtomicI32::new(0),
            child,
            ended: false,
        })
    }

    /// The leader, for its pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// A process group inside the session that is to be ended with it; 0 for none. On Linux it is
    /// found anyway, elsewhere only a group that is told.
    pub(super) fn also(&self, group: i32) {
        self.group.store(group, Ordering::Relaxed);
    }

    /// Waits for the leader.
    pub(super) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends every process of the session, and those that left it, at once (SIGKILL).
    pub(super) fn kill(&mut self) {
        if self.ended {
            return;
        }
        self.ended = true;
        // Fails only when the leader is gone already.
        let _ = self.child.start_kill();
        #[cfg(unix)]
        for id in [
            self.id,
            rustix::process::Pid::from_raw(self.group.load(Ordering::Relaxed)),
        ]
        .into_iter()
        .flatten()
        {
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
        #[cfg(target_os = "linux")]
        self.kill_the_rest();
    }

    /// Groups that were made inside the session, and processes that left it. New ones may be born
    /// while the list is read, hence the rounds; a process that is being killed can bear no more.
    #[cfg(target_os = "linux")]
    fn kill_the_rest(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        for _ in 0..100 {
            let mut found = false;
            for process in self.processes() {
                found = true;
                if let Some(pid) = Pid::from_raw(process.pid) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
            if !found {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }

    /// The processes of the session and those that left it.
    #[cfg(target_os = "linux")]
    fn processes(&self) -> impl Iterator<Item = super::proc::Process> {
        let id = self.id.map(|id| id.as_raw_nonzero().get());
        super::proc::list().into_iter().filter(move |process| {
            Some(process.session) == id
                || process.start >= self.started
                    && super::proc::has_mark(process.pid, MARK, &self.mark)
        })
    }

    /// What all of them use now; nothing where the system does not tell.
    #[cfg(target_os = "linux")]
    pub(super) fn usage(&self) -> Option<Usage> {
        // Without an id the leader was gone before it could be asked for.
        self.id?;
        let mut usage = Usage::default();
        for process in self.processes() {
            usage.processes += process.threads;
            usage.memory += process.resident;
        }
        Some(usage)
    }

    /// What the session uses now; nothing where the system does not tell.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "the same signature on every system")]
    pub(super) fn usage(&self) -> Option<Usage> {
        None
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill();
    }
}
