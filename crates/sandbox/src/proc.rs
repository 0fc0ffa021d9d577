//! Reads processes and their resource usage from `/proc`.

use std::fmt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The environment variable that marks a child and its descendants. It identifies processes that left the session,
/// such as daemons.
pub(super) const MARK: &str = crate::secrets::SANDBOX_MARK;

/// How long to chase processes that fork faster than they are killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(2);

/// How to find the processes of a session, including those that left it.
#[derive(Debug)]
pub(super) struct SessionTrace {
    /// The process id of the leader; `None` if it exited before it was queried.
    pub(super) leader: Option<i32>,
    /// The start time of the leader; its descendants are not older.
    pub(super) started: u64,
    /// The value of [`MARK`].
    pub(super) mark: String,
}

impl SessionTrace {
    /// The trace of `child`, which was started with this mark.
    pub(super) fn new(child: Option<i32>, mark: String) -> Self {
        Self {
            leader: child,
            started: child.and_then(read).map_or(0, |leader| leader.start),
            mark,
        }
    }

    /// The processes, one by one.
    pub(super) fn processes(&self) -> impl Iterator<Item = Process> {
        list().filter(|process| {
            process.start >= self.started
                && (Some(process.session) == self.leader || has_mark(process.pid, MARK, &self.mark))
        })
    }

    /// Kills the processes one by one, in several rounds, because new ones may start while the list is read. A
    /// process that is being killed cannot start others.
    pub(super) fn kill(&self) {
        let begun = Instant::now();
        while begun.elapsed() < KILL_TIMEOUT {
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
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Parses the output of [`Display`](fmt::Display) and returns the rest of the text.
    pub(super) fn parse(text: &str) -> Option<(Self, &str)> {
        let mut fields = text.splitn(4, ' ');
        let trace = Self {
            leader: fields.next()?.parse().ok().filter(|leader| *leader > 0),
            started: fields.next()?.parse().ok()?,
            mark: fields.next()?.to_owned(),
        };
        Some((trace, fields.next()?))
    }
}

impl fmt::Display for SessionTrace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leader = self.leader.unwrap_or(0);
        write!(f, "{leader} {} {}", self.started, self.mark)
    }
}

/// A process that is not a zombie.
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) session: i32,
    pub(super) threads: u64,
    /// The start time, in clock ticks since boot.
    pub(super) start: u64,
    /// The resident memory in bytes.
    pub(super) resident: u64,
}

/// All visible processes, read one by one. Skips those that exit meanwhile.
fn list() -> impl Iterator<Item = Process> {
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

/// Reads one process.
pub(super) fn read(pid: i32) -> Option<Process> {
    parse(
        pid,
        &String::from_utf8_lossy(&std::fs::read(file(pid, "stat")).ok()?),
    )
}

/// Parses `proc_pid_stat(5)`. The name (field 2) is in parentheses and may contain spaces and parentheses.
fn parse(pid: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    // The first element is field 3.
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

/// Whether the initial environment of the process contains `name=value`.
fn has_mark(pid: i32, name: &str, value: &str) -> bool {
    let wanted = format!("{name}={value}");
    std::fs::read(file(pid, "environ")).is_ok_and(|env| {
        env.split(|b| *b == 0)
            .any(|entry| entry == wanted.as_bytes())
    })
}

/// The number of processes and threads of the current user: what `RLIMIT_NPROC` counts.
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
    fn parentheses_in_a_name_do_not_shift_the_fields() {
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
    fn a_trace_parses_back() {
        for leader in [None, Some(7)] {
            let trace = SessionTrace {
                leader,
                started: 99,
                mark: "m".to_owned(),
            };
            let written = format!("{trace} /a group");
            let (read, rest) = SessionTrace::parse(&written).unwrap();
            assert_eq!((read.leader, read.started), (leader, 99));
            assert_eq!((read.mark.as_str(), rest), ("m", "/a group"));
        }
        assert!(SessionTrace::parse("7 99 m").is_none());
    }

    #[test]
    fn this_process_is_in_the_list() {
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(list().any(|p| p.pid == own && p.resident > 0));
        assert!(tasks_of_user() > 0);
    }
}
