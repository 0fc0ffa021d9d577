use std::time::{Duration, Instant};

use super::*;

fn sh(script: &str) -> CommandSpec {
    let mut spec = CommandSpec::new(["sh", "-c", script]).unwrap();
    spec.limits.time = Duration::from_secs(20);
    spec
}

async fn run(spec: &CommandSpec) -> CommandOutput {
    run_command(spec).await.unwrap()
}

/// Whether the process exists and is not a zombie.
fn alive(pid: &str) -> bool {
    std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", pid])
        .output()
        .is_ok_and(|o| {
            let stat = String::from_utf8_lossy(&o.stdout).trim().to_owned();
            !stat.is_empty() && !stat.starts_with('Z')
        })
}

#[tokio::test]
async fn input_output_and_exit_code_are_passed() {
    let mut spec = sh("cat; echo oops >&2; exit 3");
    spec.stdin = "draft ü".into();
    let output = run(&spec).await;
    assert_eq!(output.end, CommandEnd::Exited(3));
    assert_eq!(output.stdout.text(), "draft ü");
    assert_eq!(output.stderr.text(), "oops\n");
    assert!(!output.success());
    assert_eq!(output.end.to_string(), "ended with exit code 3");
}

#[tokio::test]
async fn ignoring_a_huge_input_is_not_an_error() {
    let mut spec = sh("exit 0");
    spec.stdin = vec![b'x'; 10_000_000];
    assert!(run(&spec).await.success());
}

#[tokio::test]
async fn the_environment_is_minimal_and_temporary_files_are_private() {
    let mut spec = sh("env; echo hi > \"$TMPDIR/f\"; pwd; ls -ld .");
    spec.env = minimal_env(&[]);
    spec.env.push(("GIVEN".into(), "yes".into()));
    let scratch = spec.scratch.path().to_owned();
    let text = run(&spec).await.stdout.text();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|l| l.split_once('='))
        .map(|(name, _)| name)
        .collect();
    assert!(names.contains(&"GIVEN") && names.contains(&"PATH"));
    assert!(!names.iter().any(|n| n.starts_with("CARGO")), "{names:?}");
    assert!(text.contains(&*scratch.to_string_lossy()), "{text}");
    assert!(text.contains("drwx------"), "{text}");
    assert!(scratch.join("f").exists());
    drop(spec);
    assert!(!scratch.exists());
}

#[tokio::test]
async fn the_time_limit_kills_and_keeps_the_output() {
    for script in [
        "echo before; sleep 60",
        "trap '' TERM INT HUP; echo before; while :; do sleep 1; done",
        "echo before; exec >&- 2>&-; sleep 60",
    ] {
        let mut spec = sh(script);
        spec.limits.time = Duration::from_millis(400);
        let start = Instant::now();
        let output = run(&spec).await;
        assert!(output.timed_out(), "{script}: {output:?}");
        assert_eq!(output.stdout.text(), "before\n");
        assert!(start.elapsed() < Duration::from_secs(5), "{script}");
        assert_eq!(
            output.end.to_string(),
            "hit the time limit of 400ms and was killed"
        );
    }
}

#[tokio::test]
async fn endless_output_is_stopped_early_and_keeps_its_head_and_tail() {
    let mut spec = sh("echo first; yes | head -c 1000000000; echo last");
    spec.limits.output = 64 * 1024;
    let start = Instant::now();
    let output = run(&spec).await;
    assert_eq!(output.end, CommandEnd::Limit(LimitHit::Output(1024 * 1024)));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(output.stdout.text().starts_with("first\ny\n"));
    assert!(output.stdout.total() < 2 * 1024 * 1024);
    assert!(output.stdout.text().len() < 70 * 1024);
}

#[tokio::test]
async fn long_output_keeps_its_head_and_tail() {
    let mut spec = sh("echo first; yes | head -c 200000; echo last; printf '\\377'");
    spec.limits.output = 64 * 1024;
    let output = run(&spec).await;
    assert!(output.success());
    let text = output.stdout.text();
    assert!(text.starts_with("first\n") && text.ends_with("last\n\u{fffd}"));
    assert_eq!(output.stdout.cut(), 200_000 + 6 + 5 + 1 - 64 * 1024);
    assert!(text.contains("bytes cut ..."));
}

#[tokio::test]
async fn background_processes_are_killed_with_the_program() {
    // In the group, in another session, and with the pipes still open.
    let mut spec = sh(
        "sleep 300 & echo $!; setsid sleep 301 & echo $!; (setsid sh -c 'echo $$; exec sleep 302' &) ; sleep 0.3",
    );
    spec.limits.time = Duration::from_secs(10);
    let output = run(&spec).await;
    assert!(output.success(), "{output:?}");
    let text = output.stdout.text();
    let pids: Vec<&str> = text.lines().collect();
    assert_eq!(pids.len(), 3, "{text}");
    tokio::time::sleep(Duration::from_millis(50)).await;
    for pid in pids {
        assert!(!alive(pid), "{pid} is still alive");
    }
    assert!(
        output.duration < Duration::from_secs(5),
        "{:?}",
        output.duration
    );
}

#[tokio::test]
async fn a_dropped_future_leaves_nothing_behind() {
    let spec = sh("echo $$ > \"$TMPDIR/pid\"; sleep 300");
    let run = tokio::time::timeout(Duration::from_millis(500), run_command(&spec)).await;
    assert!(run.is_err());
    let pid = std::fs::read_to_string(spec.scratch.path().join("pid")).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!alive(pid.trim()));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn too_many_processes_are_killed() {
    // Each process exits on its own in case the limit does not work.
    let mut spec = sh("for i in $(seq 60); do sleep 20 & done; wait");
    spec.limits.processes = 20;
    let output = run(&spec).await;
    assert_eq!(
        output.end,
        CommandEnd::Limit(LimitHit::Processes(20)),
        "{output:?}"
    );
    assert!(output.duration < Duration::from_secs(10));
}

/// With a control group there are never more processes than the limit, not even for a moment. The loop ends by itself
/// after 60.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_control_group_enforces_the_process_limit() {
    let mut spec = sh("i=0; while [ $i -lt 60 ]; do i=$((i+1)); sleep 10 & echo; done; wait");
    spec.limits.processes = 20;
    let has_group = cgroup::Group::make("probe", &spec.limits).is_some();
    let output = run(&spec).await;
    assert_eq!(output.end, CommandEnd::Limit(LimitHit::Processes(20)));
    if has_group {
        let born = output.stdout.text().lines().count();
        assert!(born <= 20, "{born} were born");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn children_have_a_lower_priority() {
    let own = sh("nice");
    let own: i32 = run(&own).await.stdout.text().trim().parse().unwrap();
    let ours = std::process::Command::new("nice").output().unwrap().stdout;
    let ours: i32 = String::from_utf8(ours).unwrap().trim().parse().unwrap();
    assert_eq!(own, (ours + 10).min(19));
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_fork_bomb_is_killed_completely() {
    // At most 127 shells with a sleeper each, which all exit on their own in case the limit does not work. Every
    // other one leaves the session.
    let bomb = "f() { if [ $1 -gt 0 ]; then f $(($1 - 1)) & setsid sh \"$0\" $(($1 - 1)) & fi; sleep 7.531; }; f $1";
    let mut spec = CommandSpec::new(["sh", "./bomb", "6"]).unwrap();
    spec.scratch.write("bomb", bomb.as_bytes()).unwrap();
    spec.limits.processes = 40;
    let output = run(&spec).await;
    assert_eq!(
        output.end,
        CommandEnd::Limit(LimitHit::Processes(40)),
        "{output:?}"
    );
    let left = std::process::Command::new("pgrep")
        .args(["-fc", "sleep 7.531|bomb [0-9]"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout).trim(), "0");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn many_small_processes_share_one_memory_limit() {
    // Each uses about 20 MB in a shell variable, below the limit for one process.
    let script = "for i in 1 2 3 4 5 6; do (x=$(head -c 20000000 /dev/zero | tr '\\0' x); sleep 20; :) & done; wait";
    let mut spec = sh(script);
    spec.limits.memory = 64 * 1024 * 1024;
    let output = run(&spec).await;
    assert_eq!(
        output.end,
        CommandEnd::Limit(LimitHit::Memory(64 * 1024 * 1024)),
        "{output:?}"
    );
}

#[tokio::test]
async fn an_oversized_file_hits_its_limit() {
    let mut spec = sh("exec head -c 2000000 /dev/zero > \"$TMPDIR/big\"");
    spec.limits.file_size = 1024 * 1024;
    let output = run(&spec).await;
    assert_eq!(
        output.end,
        CommandEnd::Limit(LimitHit::FileSize(1024 * 1024)),
        "{output:?}"
    );
}

#[tokio::test]
async fn a_signal_is_reported() {
    let output = run(&sh("kill -SEGV $$")).await;
    assert_eq!(output.end, CommandEnd::Signal(11));
    assert_eq!(
        output.end.to_string(),
        "was killed by signal 11 (segmentation fault)"
    );
}

#[tokio::test]
async fn a_missing_program_names_the_searched_path() {
    let mut spec = CommandSpec::new(["no-such-program-here"]).unwrap();
    spec.env = vec![("PATH".into(), "/nowhere:/bin".into())];
    let error = run_command(&spec).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "program `no-such-program-here` not found (searched the PATH `/nowhere:/bin`); install it, or use its full path"
    );

    let spec = CommandSpec::new(["./check.sh"]).unwrap();
    spec.scratch.write("check.sh", b"echo hi").unwrap();
    let error = run_command(&spec).await.unwrap_err();
    assert!(
        matches!(error, CommandError::NotExecutable { .. }),
        "{error}"
    );
    assert!(error.to_string().contains("chmod +x"), "{error}");

    let spec = CommandSpec::new(["/bin"]).unwrap();
    let error = run_command(&spec).await.unwrap_err().to_string();
    assert!(error.contains("is a directory"), "{error}");

    let mut spec = sh("true");
    spec.cwd = Some("/no/such/directory".into());
    let error = run_command(&spec).await.unwrap_err().to_string();
    assert!(error.contains("/no/such/directory"), "{error}");

    let spec = CommandSpec::new(Vec::<String>::new()).unwrap();
    assert!(matches!(run_command(&spec).await, Err(CommandError::Empty)));
}

#[tokio::test]
async fn a_script_without_a_shebang_runs_in_sh() {
    use std::os::unix::fs::PermissionsExt;
    let spec = CommandSpec::new(["./check"]).unwrap();
    let path = spec.scratch.write("check", b"echo checked").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run(&spec).await.stdout.text(), "checked\n");
}

#[test]
fn a_scratch_file_stays_in_its_directory() {
    let scratch = Scratch::new().unwrap();
    let path = scratch.write("../../draft.rs", b"x").unwrap();
    assert_eq!(path.parent(), Some(scratch.path()));
    assert!(scratch.write("..", b"x").is_err());
}
