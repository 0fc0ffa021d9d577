//! The setup of a child between `fork` and `exec`.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit, setsid};
#[cfg(target_os = "linux")]
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tokio::process::Command;

use super::limits::Limits;

/// The extra allowance in `RLIMIT_NPROC`. The kernel counts all processes and threads of the user, who may start a
/// browser while a worker runs. So this limit is only a safeguard; the control group or the monitor enforces the
/// exact one.
#[cfg(target_os = "linux")]
const OTHER_TASKS: u64 = 4096;

/// How much lower the priority of children is, so that the parent stays responsive.
const NICE: i32 = 10;

/// Prepares the command to start in its own session, in the control group behind `procs_file` if there is one, with limits
/// that it cannot raise. On Linux it is killed when this thread ends.
pub(super) fn apply_at_start(
    command: &mut Command,
    limits: &Limits,
    cpu_seconds: u64,
    procs_file: Option<File>,
) {
    let limits = rlimits(limits, cpu_seconds);
    #[cfg(target_os = "linux")]
    let parent = rustix::process::getpid();
    let in_child = move || {
        #[cfg(target_os = "linux")]
        {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the signal was set.
            if getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
        }
        setsid()?;
        // Failures of these two are not fatal.
        if let Some(procs_file) = &procs_file {
            let _ = rustix::io::write(procs_file, b"0");
        }
        let _ = nice(NICE);
        for (resource, limit) in &limits {
            setrlimit(*resource, *limit)?;
        }
        Ok(())
    };
    // SAFETY: the closure runs in the child after `fork`, where only async-signal-safe operations are allowed. It
    // makes plain system calls (prctl, getppid, setsid, write, nice, setrlimit) on values computed before the fork.
    // It does not allocate or lock, and it creates its error from the system's error number alone.
    #[expect(
        unsafe_code,
        reason = "a session and limits can only be set in the child itself"
    )]
    unsafe {
        command.pre_exec(in_child);
    }
}

fn rlimits(limits: &Limits, cpu_seconds: u64) -> Vec<(Resource, Rlimit)> {
    #[cfg_attr(
        not(target_os = "linux"),
        expect(unused_mut, reason = "nothing is added")
    )]
    let mut wanted = vec![
        (Resource::Core, 0),
        (Resource::Cpu, cpu_seconds),
        (Resource::Nofile, limits.open_files),
        (Resource::Fsize, limits.file_size),
    ];
    // Limit the memory that is written to. Programs such as node and Go reserve far more address space than they use,
    // so the address space is not a useful measure. Only Linux counts it this way.
    #[cfg(target_os = "linux")]
    wanted.extend([
        (Resource::Data, limits.memory),
        (
            Resource::Nproc,
            super::proc::tasks_of_user()
                .saturating_add(limits.processes)
                .saturating_add(OTHER_TASKS),
        ),
    ]);
    wanted
        .into_iter()
        .map(|(resource, value)| {
            // A limit cannot exceed that of this process.
            let value = getrlimit(resource)
                .maximum
                .map_or(value, |max| value.min(max));
            let limit = Rlimit {
                current: Some(value),
                maximum: Some(value),
            };
            (resource, limit)
        })
        .collect()
}
