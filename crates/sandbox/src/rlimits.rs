//! What a child does between `fork` and `exec`.

use std::fs::File;

use rustix::process::{Resource, Rlimit, getrlimit, nice, setrlimit, setsid};
#[cfg(target_os = "linux")]
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use tokio::process::Command;

use super::limits::Limits;

/// The kernel counts all processes and threads of the user, not only those of one session, and the
/// user may start a browser while a worker lives. So this limit is only a backstop with much room; the
/// exact one is kept by the control group, or by the watch.
#[cfg(target_os = "linux")]
const OTHER_TASKS: u64 = 4096;

/// How much lower than ours the priority of children is: who started them must get its turn.
const NICE: i32 = 10;

/// The command will start in a session of its own, in the control group behind this door if there is one,
/// under limits that it cannot raise. On Linux it is killed when this thread ends.
pub(super) fn apply_at_start(
    command: &mut Command,
    limits: &Limits,
    cpu_seconds: u64,
    door: Option<File>,
) {
    let limits = rlimits(limits, cpu_seconds);
    #[cfg(target_os = "linux")]
    let parent = rustix::process::getpid();
    let in_child = move || {
        #[cfg(target_os = "linux")]
        {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // It may have died before that.
            if getppid() != Some(parent) {
                return Err(rustix::io::Errno::SRCH.into());
            }
        }
        setsid()?;
        // Neither is worth giving up for.
        if let Some(door) = &door {
            let _ = rustix::io::write(door, b"0");
        }
        let _ = nice(NICE);
        for (resource, limit) in &limits {
            setrlimit(*resource, *limit)?;
        }
        Ok(())
    };
    // SAFETY: the closure runs in the child after `fork`, where only async-signal-safe work is allowed.
    // It makes plain system calls (prctl, getppid, setsid, write, nice, setrlimit) on values computed before the fork; it allocates
    // nothing, takes no lock, and its error is built from the system's number alone.
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
    // Memory that is written to: programs such as node and Go reserve far more address space than
    // they use, so the address space itself is no measure. Only Linux counts it this way.
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
            // No more than what this process may have itself.
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
