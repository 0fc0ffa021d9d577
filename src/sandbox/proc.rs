//! Reading `/proc`: which processes there are, and what they use.

use std::path::PathBuf;

/// One process that is not a zombie.
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) session: i32,
    pub(super) threads: u64,
    /// When it started, in clock ticks since the system did.
    pub(super) start: u64,
    /// Resident bytes.
    pub(super) resident: u64,
}

/// All processes that can be seen, read one by one. One that ends meanwhile is left out.
pub(super) fn list() -> impl Iterator<Item = Process> {
    pids().filter_map(read)
}

fn pids() -> impl Iterator<Item = i32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

fn file(pid: i32, name: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/{name}"))
}

/// One of them.
pub(super) fn read(pid: i32) -> Option<Process> {
    parse(
        pid,
        &String::from_utf8_lossy(&std::fs::read(file(pid, "stat")).ok()?),
    )
}

/// `proc_pid_stat(5)`. The name (field 2) is in parentheses and may itself hold spaces and parentheses.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    // The first is field 3.
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    if matches!(field(3)?, "Z" | "X") {
        return None;
    }
    let pages: u64 = field(24)?.parse().ok()?;
    Some(Process {
        pid,
        session: field(6)?.parse().ok()?,
        threads: field(20)?.parse().ok()?,
        start: field(22)?.parse().ok()?,
        resident: pages.saturating_mul(u64::try_from(rustix::param::page_size()).ok()?),
    })
}

/// Whether the environment that the process started with has `name=value`.
pub(super) fn has_mark(pid: i32, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}");
    std::fs::read(file(pid, "environ")).is_ok_and(|env| {
        env.split(|b| *b == 0)
            .any(|entry| entry == wanted.as_bytes())
    })
}

/// Processes and threads of the user that runs this: what `RLIMIT_NPROC` counts.
pub(super) fn tasks_of_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::getuid().as_raw();
    pids()
        .filter(|pid| std::fs::metadata(file(*pid, "")).is_ok_and(|m| m.uid() == user))
        .filter_map(read)
        .map(|process| process.threads)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b (c)) S 1 7 5 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 3 0 99 1000 2 18446744073709551615";
        let process = parse(7, stat).unwrap();
        assert_eq!(
            (process.session, process.threads, process.start),
            (5, 3, 99)
        );
        assert_eq!(process.resident, 2 * rustix::param::page_size() as u64);
        assert!(parse(7, "7 (x) Z 1 7 5").is_none());
        assert!(parse(7, "nonsense").is_none());
    }

    #[test]
    fn this_process_is_in_the_list() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(list().any(|p| p.pid == own && p.resident > 0));
        assert!(tasks_of_user() > 0);
    }
}
