use std::fmt;
use std::time::Duration;

/// The limits for code and commands. Every resource is limited; there is no "unlimited".
///
/// On Unix the kernel enforces the limits on files (`setrlimit`), on Linux also those on memory and processes. On
/// Linux the limits also apply to the whole session of the child (see the [crate](crate)), so that many small
/// processes cannot exceed them together. Windows enforces only time and output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The wall-clock time for one command or one evaluation.
    pub time: Duration,
    /// The memory in bytes, for one process and (on Linux) for all its processes together.
    pub memory: u64,
    /// The number of bytes kept of each output stream, and the most that a script may print or return. Of a longer
    /// command output, only the head and tail are kept. A command that writes [`Limits::FLOOD`] times as much is
    /// killed.
    pub output: usize,
    /// The number of concurrent processes and threads.
    pub processes: u64,
    /// The number of open files per process.
    pub open_files: u64,
    /// The maximum size of a written file, in bytes.
    pub file_size: u64,
}

/// One mebibyte.
const MIB: u64 = 1024 * 1024;

impl Limits {
    /// A command that writes this many times [`Limits::output`] to one stream is killed. So a long test log keeps its
    /// head and tail, and an endless one does not use up the time limit.
    pub const FLOOD: usize = 16;

    /// The limits for scripts: 10 s, 256 MiB, 1 MiB of output, 16 processes, 64 open files, files of 16 MiB.
    pub const SCRIPT: Self = Self {
        time: Duration::from_secs(10),
        memory: 256 * MIB,
        output: 1024 * 1024,
        processes: 16,
        open_files: 64,
        file_size: 16 * MIB,
    };

    /// The limits for commands, often compilers and test runners: 60 s, 2 GiB, 1 MiB of output, 256 processes, 1,024
    /// open files, files of 1 GiB.
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

/// The limit that a command or script hit, with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitHit {
    /// The time limit.
    Time(Duration),
    /// The limit on the memory of all processes together, in bytes.
    Memory(u64),
    /// The limit on one output stream, in bytes.
    Output(usize),
    /// The limit on processes.
    Processes(u64),
    /// The limit on the size of a file, in bytes.
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

/// Formats `268435456` as `256 MiB`. A value that is not a multiple of a unit stays in bytes, so that the result is
/// exact.
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
    fn limits_print_their_value() {
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
