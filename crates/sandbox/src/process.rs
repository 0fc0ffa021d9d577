//! A child process in a session of its own, with everything that it starts.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::process::{Child, Command};

use super::limits::{LimitHit, Limits};
use super::watch::Watch;

/// The child and its session. Dropping it ends all of them.
#[derive(Debug)]
pub(super) struct Session {
    child: Child,
    members: Arc<Members>,
    #[cfg(target_os = "linux")]
    _note: super::watchdog::Note,
}

/// The processes of a session, as they are looked at and ended from several threads.
#[derive(Debug)]
pub(super) struct Members {
    limits: Limits,
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
    #[cfg(target_os = "linux")]
    trace: super::proc::Trace,
    #[cfg(target_os = "linux")]
    cgroup: Option<super::cgroup::Group>,
    group: AtomicI32,
    ended: AtomicBool,
    /// The limit that they were ended for.
    hit: OnceLock<LimitHit>,
}

impl Session {
    /// Starts `command` as the leader of a new session, under `limits`.
    ///
    /// The kernel ends the child when the thread that calls this ends, so that it does not outlive this process.
    /// `cpu_seconds` is a backstop for where it does.
    pub(super) fn start(
        mut command: Command,
        limits: &Limits,
        cpu_seconds: u64,
    ) -> std::io::Result<Self> {
        command.kill_on_drop(true);
        #[cfg(target_os = "linux")]
        let mark = uuid::Uuid::now_v7().simple().to_string();
        #[cfg(target_os = "linux")]
        let cgroup = {
            command.env(super::proc::MARK, &mark);
            super::cgroup::Group::make(&mark, limits)
        };
        #[cfg(target_os = "linux")]
        let door = cgroup.as_ref().and_then(super::cgroup::Group::door);
        #[cfg(all(unix, not(target_os = "linux")))]
        let door = None;
        #[cfg(unix)]
        super::rlimits::apply_at_start(&mut command, limits, cpu_seconds, door);
        #[cfg(not(unix))]
        let _ = cpu_seconds;
        let child = command.spawn()?;
        #[cfg(unix)]
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        #[cfg(target_os = "linux")]
        let trace = super::proc::Trace::new(id, mark);
        #[cfg(target_os = "linux")]
        let note = super::watchdog::Note::session(
            &trace,
            cgroup.as_ref().map(super::cgroup::Group::folder),
        );
        let members = Members {
            limits: *limits,
            #[cfg(unix)]
            id: id.and_then(rustix::process::Pid::from_raw),
            #[cfg(target_os = "linux")]
            trace,
            #[cfg(target_os = "linux")]
            cgroup,
            group: AtomicI32::new(0),
            ended: AtomicBool::new(false),
            hit: OnceLock::new(),
        };
        Ok(Self {
            child,
            members: Arc::new(members),
            #[cfg(target_os = "linux")]
            _note: note,
        })
    }

    /// Whether the leader still runs.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The leader, for its pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// A process group inside the session that is to be ended with it; 0 for none. On Linux it is
    /// found anyway, elsewhere only a group that is told.
    pub(super) fn also(&self, group: i32) {
        self.members.group.store(group, Ordering::Relaxed);
    }

    /// Looks after the limits on memory and processes until the result is dropped, on a thread of its
    /// own: what is watched may leave this thread no time. At a limit everything is ended.
    pub(super) fn watch(&self) -> Watch {
        Watch::start(Arc::clone(&self.members))
    }

    /// The limit on memory or processes that was hit, if one was; also one that the watch came too late
    /// for.
    pub(super) fn hit(&self) -> Option<LimitHit> {
        let members = &self.members;
        members
            .hit
            .get()
            .copied()
            .or_else(|| members.over_by_kernel())
    }

    /// Waits for the leader.
    pub(super) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends every process of the session, and those that left it, at once (SIGKILL).
    pub(super) fn kill(&mut self) {
        // Fails only when the leader is gone already.
        let _ = self.child.start_kill();
        self.members.kill();
    }
}

impl Members {
    /// Ends all of them if they are over a limit; whether they were.
    pub(super) fn end_if_over(&self) -> bool {
        let Some(hit) = self.over_by_kernel().or_else(|| self.over()) else {
            return false;
        };
        let _ = self.hit.set(hit);
        self.kill();
        true
    }

    /// Ends them, the many in one call first: counting them can wait.
    fn kill(&self) {
        if self.ended.swap(true, Ordering::SeqCst) {
            return;
        }
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
        {
            if let Some(cgroup) = &self.cgroup {
                cgroup.kill();
            }
            self.trace.kill();
        }
    }

    /// The limit that the kernel itself has held them to.
    fn over_by_kernel(&self) -> Option<LimitHit> {
        #[cfg(target_os = "linux")]
        if let Some(cgroup) = &self.cgroup {
            return cgroup.hit(&self.limits);
        }
        let _ = &self.limits;
        None
    }

    /// The limit that they are over together; nothing where the system does not tell. The count stops
    /// where that is clear: of a fork bomb there may be tens of thousands.
    #[cfg(target_os = "linux")]
    fn over(&self) -> Option<LimitHit> {
        // Without an id the leader was gone before it could be asked for.
        self.id?;
        // Then the kernel counts everything.
        if self
            .cgroup
            .as_ref()
            .is_some_and(super::cgroup::Group::bounds_memory)
        {
            return None;
        }
        let (mut processes, mut memory) = (0, 0);
        for process in self.trace.processes() {
            processes += process.threads;
            memory += process.resident;
            if memory > self.limits.memory {
                return Some(LimitHit::Memory(self.limits.memory));
            }
            if processes > self.limits.processes {
                return Some(LimitHit::Processes(self.limits.processes));
            }
        }
        None
    }

    /// The same where the system does not tell.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "the same signature on every system")]
    fn over(&self) -> Option<LimitHit> {
        None
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill();
    }
}
