use std::fmt;
use std::time::Duration;

/// What code and commands may use. Everything is bounded; there is no "unlimited".
///
/// On Unix the kernel enforces the limits on files (`setrlimit`), on Linux also those on memory and
/// processes; there the whole session of the child is counted together as well (see the
/// [crate](crate)), so that many small processes cannot use more together than one may. On Windows only time and output are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time for one command or one evaluation.
    pub time: Duration,
    /// Bytes of memory, of one process and (Linux) of all its processes together.
    pub memory: u64,
    /// Bytes kept of each output stream, and the most that a script may print or answer.
    /// A command that writes more keeps its head and tail; one that writes
    /// [`Limits::FLOOD`] times as much is ended.
    pub output: usize,
    /// Processes and threads that may live at the same time.
    pub processes: u64,
    /// Files that one process may hold open.
    pub open_files: u64,
    /// Bytes of the largest file that may be written.
    pub file_size: u64,
}

/// One mebibyte.
const MIB: u64 = 1024 * 1024;

impl Limits {
    /// A command is ended when it has written this many times [`Limits::output`] to one stream:
    /// a long test log keeps its head and tail, an endless one does not cost the whole time limit.
    pub const FLOOD: usize = 16;

    /// For scripts: 10 s, 256 MiB, 1 MiB of output, 16 processes, 64 open files, files of 16 MiB.
    pub const SCRIPT: Self = Self {
        time: Duration::from_secs(10),
        memory: 256 * MIB,
        output: 1024 * 1024,
        processes: 16,
        open_files: 64,
        file_size: 16 * MIB,
    };

    /// For commands, which are often compilers and test runners: 60 s, 2 GiB, 1 MiB of output,
    /// 256 processes, 1,024 open files, files of 1 GiB.
    pub const COMMAND: Self = Self {
        time: Duration::from_mins(1),
        memory: 2048 * MIB,
        output: 1024 * 1024,
        processes: 256,
        open_files: 1024,
        file_size: 1024 * MIB,
    };
}

impl Default for Limits {
    /// [`Limits::SCRIPT`].
    fn default() -> Self {
        Self::SCRIPT
    }
}

/// Which limit ended a command or a script, and its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitHit {
    /// It ran longer than this.
    Time(Duration),
    /// Its processes together used more than this many bytes.
    Memory(u64),
    /// It wrote more than this many bytes to one stream.
    Output(usize),
    /// It had more than this many processes.
    Processes(u64),
    /// It wrote a file of more than this many bytes.
    FileSize(u64),
}

impl fmt::Display for LimitHit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Time(limit) => write!(f, "the time limit of {limit:?}"),
            Self::Memory(limit) => write!(f, "the memory limit of {}", size(*limit)),
            Self::Output(limit) => {
                write!(
                    f,
                    "the output limit of {}",
                    size(u64::try_from(*limit).unwrap_or(u64::MAX))
                )
            }
            Self::Processes(limit) => write!(f, "the limit of {limit} processes"),
            Self::FileSize(limit) => write!(f, "the file size limit of {}", size(*limit)),
        }
    }
}

/// `268435456` as `256 MiB`; a figure that is not round stays in bytes, so that it is exact.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        b if b >= MIB && b.is_multiple_of(MIB) => format!("{} MiB", b / MIB),
        b if b >= 1024 && b.is_multiple_of(1024) => format!("{} KiB", b / 1024),
        b => format!("{b} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_says_its_value() {
        assert_eq!(
            LimitHit::Memory(256 * MIB).to_string(),
            "the memory limit of 256 MiB"
        );
        assert_eq!(
            LimitHit::Time(Duration::from_millis(1500)).to_string(),
            "the time limit of 1.5s"
        );
        assert_eq!(
            LimitHit::Output(1000).to_string(),
            "the output limit of 1000 bytes"
        );
    }
}
