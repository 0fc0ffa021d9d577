//! A control group (cgroup) for one child and all processes that it starts.
//!
//! The kernel enforces the limits, and a process cannot leave the group by creating a new session. It is the only
//! limit on processes that also applies to root. If no group can be created (no permission, or no kernel support),
//! only the limit monitor applies, without a warning.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::limits::{LimitHit, Limits};

/// The prefix of our groups' names, followed by the id of the creating process.
const PREFIX: &str = "reflect-";

/// How many times to try to remove a group while its last processes exit, one millisecond apart.
const TRIES: u32 = 50;

/// A control group, removed on drop.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    /// Creates a group with limits on processes and, where supported, on memory.
    pub(super) fn make(mark: &str, limits: &Limits) -> Option<Self> {
        let of = |name: &str| fs::read_to_string(Path::new("/proc/self").join(name)).ok();
        let (cgroup, mounts) = (of("cgroup")?, of("mountinfo")?);
        parents(&cgroup, &mounts)
            .iter()
            .find_map(|parent| Self::within(parent, mark, limits))
    }

    /// The group of a process that no longer exists.
    pub(super) fn existing(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The group's folder.
    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    fn within(parent: &Path, mark: &str, limits: &Limits) -> Option<Self> {
        remove_stale(parent);
        let folder = parent.join(format!("{PREFIX}{}-{mark}", std::process::id()));
        fs::create_dir(&folder).ok()?;
        // From here on, drop removes the group if something fails.
        let group = Self(folder);
        group.set("pids.max", &limits.processes.to_string())?;
        // Version 2 only, and only if the memory controller is enabled.
        if group
            .set("memory.max", &limits.memory.to_string())
            .is_some()
        {
            let _ = group.set("memory.swap.max", "0");
            let _ = group.set("memory.oom.group", "1");
        }
        Some(group)
    }

    fn set(&self, name: &str, value: &str) -> Option<()> {
        // Do not create files: a missing file means that the kernel lacks the feature.
        let mut file = File::options().write(true).open(self.0.join(name)).ok()?;
        file.write_all(value.as_bytes()).ok()
    }

    /// The file for joining the group: a process that writes `0` to it joins.
    pub(super) fn procs_file(&self) -> Option<File> {
        File::options()
            .write(true)
            .open(self.0.join("cgroup.procs"))
            .ok()
    }

    /// The limit that the group has hit, if any.
    pub(super) fn hit(&self, limits: &Limits) -> Option<LimitHit> {
        if self.count("pids.events", "max") > 0 {
            Some(LimitHit::Processes(limits.processes))
        } else if self.count("memory.events", "oom_kill") > 0 {
            Some(LimitHit::Memory(limits.memory))
        } else {
            None
        }
    }

    /// Whether the kernel limits the total memory of the group.
    pub(super) fn bounds_memory(&self) -> bool {
        self.0.join("memory.max").exists()
    }

    /// The value of a `key number` line in one of the group's files.
    fn count(&self, file: &str, key: &str) -> u64 {
        let text = fs::read_to_string(self.0.join(file)).unwrap_or_default();
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(name, _)| *name == key)
            .and_then(|(_, number)| number.trim().parse().ok())
            .unwrap_or(0)
    }

    /// Kills all processes in the group.
    pub(super) fn kill(&self) {
        // First forbid new processes, because older kernels have no `cgroup.kill`.
        let _ = self.set("pids.max", "0");
        if self.set("cgroup.kill", "1").is_some() {
            return;
        }
        let members = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
        for pid in members.lines().filter_map(|line| line.parse().ok()) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
        for _ in 0..TRIES {
            match fs::remove_dir(&self.0) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => return,
            }
        }
    }
}

/// Removes the groups of dead processes that could not clean up. A group that still has processes cannot be removed.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let maker = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|rest| rest.split('-').next())
            .and_then(|pid| pid.parse().ok());
        if maker.is_some_and(|pid| super::proc::read(pid).is_none()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The folders in which a group may be created, from `/proc/self/cgroup` and `/proc/self/mountinfo` (`cgroups(7)`,
/// `proc_pid_mountinfo(5)`).
fn parents(cgroup: &str, mounts: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for line in cgroup.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(own)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if controllers.is_empty() {
            // Version 2 allows processes only in leaf groups, so a new group must be a sibling of our own, except at
            // the root.
            let Some(own) = folder(mounts, own, |kind, _| kind == "cgroup2") else {
                continue;
            };
            let beside = own.parent().map(Path::to_owned);
            found.extend([Some(own), beside].into_iter().flatten().filter(|folder| {
                fs::read_to_string(folder.join("cgroup.subtree_control"))
                    .is_ok_and(|enabled| enabled.split_whitespace().any(|it| it == "pids"))
            }));
        } else if controllers.split(',').any(|it| it == "pids") {
            found.extend(folder(mounts, own, |kind, options| {
                kind == "cgroup" && options.split(',').any(|it| it == "pids")
            }));
        }
    }
    found
}

/// The mount point of the group `own` in the hierarchy that `is_it` selects by type and options.
fn folder(mounts: &str, own: &str, is_it: impl Fn(&str, &str) -> bool) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (mount, system) = line.split_once(" - ")?;
        let mut system = system.split(' ');
        let (kind, _, options) = (system.next()?, system.next()?, system.next()?);
        if !is_it(kind, options) {
            return None;
        }
        let mut fields = mount.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        Some(Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime shared:9 - cgroup cgroup rw,pids
40 31 0:37 /docker/ab /sys/fs/cgroup/both rw - cgroup cgroup rw,cpu,cpuacct
41 31 0:38 / /nowhere/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn the_folder_of_a_group_is_found_by_its_mount() {
        let found = parents("8:pids:/jobs/a\n4:memory:/x\n0::/\nnonsense\n", MOUNTS);
        // Nothing is mounted for version 2, so no controller is enabled.
        assert_eq!(found, [PathBuf::from("/sys/fs/cgroup/pids/jobs/a")]);
        let is_cpu = |kind: &str, options: &str| kind == "cgroup" && options.contains("cpu");
        assert_eq!(
            folder(MOUNTS, "/docker/ab/c", is_cpu),
            Some(PathBuf::from("/sys/fs/cgroup/both/c"))
        );
        assert_eq!(folder(MOUNTS, "/elsewhere", is_cpu), None);
        assert!(parents("", "").is_empty());
    }

    /// As in a systemd user session: our own group has processes, so it cannot have child groups.
    #[test]
    fn version_2_uses_the_folder_that_enables_pids() {
        let root = tempfile::tempdir().unwrap();
        let slice = root.path().join("user.slice/app.slice");
        let scope = slice.join("term.scope");
        fs::create_dir_all(&scope).unwrap();
        let enable = |folder: &Path, text: &str| {
            fs::write(folder.join("cgroup.subtree_control"), text).unwrap();
        };
        let mounts = format!(
            "41 31 0:38 / {} rw - cgroup2 cgroup2 rw",
            root.path().display()
        );
        let found = || parents("0::/user.slice/app.slice/term.scope\n", &mounts);
        enable(&scope, "");
        enable(&slice, "cpu memory\n");
        assert!(found().is_empty());
        enable(&slice, "cpu memory pids\n");
        assert_eq!(found(), [slice]);
    }

    #[test]
    fn failing_to_create_a_group_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        assert!(Group::within(parent.path(), "test", &Limits::SCRIPT).is_none());
        assert!(fs::read_dir(parent.path()).unwrap().next().is_none());
    }

    #[test]
    fn dropping_a_group_removes_it() {
        let Some(group) = Group::make("test", &Limits::SCRIPT) else {
            return;
        };
        let folder = group.0.clone();
        assert_eq!(
            fs::read_to_string(folder.join("pids.max")).unwrap().trim(),
            "16"
        );
        assert_eq!(group.hit(&Limits::SCRIPT), None);
        drop(group);
        assert!(!folder.exists());
    }

    #[test]
    fn stale_groups_are_removed_and_used_ones_are_kept() {
        let parent = tempfile::tempdir().unwrap();
        // No process has the largest possible id.
        let (old, own) = (
            format!("{PREFIX}{}-a", i32::MAX),
            format!("{PREFIX}{}-b", std::process::id()),
        );
        for name in [&old, &own, &"reflect-x".to_owned(), &"other".to_owned()] {
            fs::create_dir(parent.path().join(name)).unwrap();
        }
        remove_stale(parent.path());
        let left = |name: &str| parent.path().join(name).exists();
        assert!(!left(&old));
        assert!(left(&own) && left("reflect-x") && left("other"));
    }
}
