//! What the Lua worker may ask the kernel for: a second wall, should a script break out of the
//! interpreter through a fault in it.

use std::collections::BTreeMap;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Reading the request, writing the answer, memory, the clock, and ending. No files, no network, no
/// processes: those calls fail with EPERM.
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
    // To abort: only to itself would do, but the filter cannot tell.
    libc::SYS_tgkill,
];

/// From now on this process can do nothing but the above. Where the kernel knows no such filters it
/// stays as it is: the interpreter gives scripts no way to call the kernel anyway.
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
