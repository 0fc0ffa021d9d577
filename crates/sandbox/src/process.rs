//! A child process in its own session, with everything that it starts.

use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::process::{Child, Command};

use super::limits::{LimitHit, Limits};
use super::monitor::LimitMonitor;

/// A child and its session. Dropping it kills all its processes.
#[derive(Debug)]
pub(super) struct Session {
    child: Child,
    members: Arc<SessionProcesses>,
    #[cfg(target_os = "linux")]
    _note: super::watchdog::CleanupNote,
}

/// The processes of a session; several threads check and kill them.
#[derive(Debug)]
pub(super) struct SessionProcesses {
    limits: Limits,
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
    #[cfg(target_os = "linux")]
    trace: super::proc::SessionTrace,
    #[cfg(target_os = "linux")]
    cgroup: Option<super::cgroup::Group>,
    group: AtomicI32,
    ended: AtomicBool,
    /// The limit that they were killed for.
    hit: OnceLock<LimitHit>,
}

impl Session {
    /// Starts `command` as the leader of a new session, with limits.
    ///
    /// On Linux the kernel kills the child when the calling thread ends, so that it does not outlive this process.
    /// `cpu_seconds` is a safeguard in case it does.
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
        let procs_file = cgroup.as_ref().and_then(super::cgroup::Group::procs_file);
        #[cfg(all(unix, not(target_os = "linux")))]
        let procs_file = None;
        #[cfg(unix)]
        super::rlimits::apply_at_start(&mut command, limits, cpu_seconds, procs_file);
        #[cfg(not(unix))]
        let _ = cpu_seconds;
        let child = command.spawn()?;
        #[cfg(unix)]
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        #[cfg(target_os = "linux")]
        let trace = super::proc::SessionTrace::new(id, mark);
        #[cfg(target_os = "linux")]
        let note = super::watchdog::CleanupNote::session(
            &trace,
            cgroup.as_ref().map(super::cgroup::Group::folder),
        );
        let members = SessionProcesses {
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

    /// Whether the leader is running.
    pub(super) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The leader, for its pipes.
    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Registers a process group inside the session to be killed with it; 0 for none. Linux finds all groups anyway;
    /// other systems only the registered one.
    pub(super) fn register_group(&self, group: i32) {
        self.members.group.store(group, Ordering::Relaxed);
    }

    /// Monitors the limits on memory and processes until the result is dropped. Runs in a separate thread, because
    /// the monitored processes may leave this one no CPU time. Kills everything when a limit is hit.
    pub(super) fn monitor(&self) -> LimitMonitor {
        LimitMonitor::start(Arc::clone(&self.members))
    }

    /// The limit on memory or processes that was hit, if any, including one that the kernel enforced before the
    /// monitor.
    pub(super) fn hit(&self) -> Option<LimitHit> {
        let members = &self.members;
        members
            .hit
            .get()
            .copied()
            .or_else(|| members.kernel_limit_hit())
    }

    /// Waits for the leader.
    pub(super) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Kills every process of the session, including those that left it (SIGKILL).
    pub(super) fn kill(&mut self) {
        // Fails only if the leader has already exited.
        let _ = self.child.start_kill();
        self.members.kill();
    }
}

impl SessionProcesses {
    /// Kills all processes if they exceed a limit; returns whether they did.
    pub(super) fn kill_if_exceeded(&self) -> bool {
        let Some(hit) = self.kernel_limit_hit().or_else(|| self.exceeded_limit()) else {
            return false;
        };
        let _ = self.hit.set(hit);
        self.kill();
        true
    }

    /// Kills all processes, first the whole group with one call, then the others.
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

    /// The limit that the kernel enforced on the group, if any.
    fn kernel_limit_hit(&self) -> Option<LimitHit> {
        #[cfg(target_os = "linux")]
        if let Some(cgroup) = &self.cgroup {
            return cgroup.hit(&self.limits);
        }
        let _ = &self.limits;
        None
    }

    /// The limit that the processes exceed together, if any. Counting stops as soon as a limit is exceeded, because a
    /// fork bomb may have tens of thousands of processes.
    #[cfg(target_os = "linux")]
    fn exceeded_limit(&self) -> Option<LimitHit> {
        // Without an id, the leader exited before it was queried.
        self.id?;
        // The kernel counts everything itself.
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

    /// The same on systems without `/proc`: never a limit.
    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_self, reason = "the same signature on every system")]
    fn exceeded_limit(&self) -> Option<LimitHit> {
        None
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.kill();
    }
}
