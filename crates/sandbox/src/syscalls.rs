//! The system calls that the Lua worker may make: a second line of defence in case a script breaks out of the
//! interpreter.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// The system calls for reading requests, writing responses, memory, the clock, and exiting. Files, network and
/// processes are not included; such calls fail with EPERM.
const ALLOWED: [i64; 24] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_close,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_restart_syscall,
    libc::SYS_sched_yield,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_getpid,
    libc::SYS_gettid,
    // For abort. The filter cannot restrict it to this process.
    libc::SYS_tgkill,
];

/// Restricts this process to the calls above. If the kernel does not support filters, nothing changes: the
/// interpreter offers scripts no system calls anyway.
pub(super) fn confine() {
    let arch = if cfg!(target_arch = "x86_64") {
        TargetArch::x86_64
    } else {
        TargetArch::aarch64
    };
    let rules = ALLOWED
        .iter()
        .map(|call| (*call, Vec::new()))
        .collect::<BTreeMap<_, _>>();
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let filter = SeccompFilter::new(rules, denied, SeccompAction::Allow, arch);
    if let Some(program) = filter.ok().and_then(|f| BpfProgram::try_from(f).ok()) {
        let _ = seccompiler::apply_filter(&program);
    }
}
