//! Failures of machines and of the network: every task is done once, and only calls in progress are repeated.
//!
//! The test runs in its own network with two machines, made of Linux network namespaces. If these are not
//! permitted, it prints a message and passes.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::rows_count_lost_calls;
use crate::world::{Process, World, wait_for};

/// Set in the process inside the test's network.
const INSIDE: &str = "REFLECT_TEST_NETWORK";

/// How many concurrent calls a worker makes.
const ROOM: usize = 8;

const TASKS: usize = 40;

/// How long a worker is disconnected.
const CUT_OFF: Duration = Duration::from_secs(10);

/// A machine with two connections: one to the server and the balancer, one to the models.
struct Machine {
    _process: Process,
    id: u32,
}

/// The address of the server and the balancer for the other machine.
const ENGINE: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);

impl Machine {
    fn new(log: PathBuf) -> Self {
        let mut command = Command::new("unshare");
        command.args(["--net", "sleep", "infinity"]);
        let process = Process::start(command, log);
        let id = process.child.id();
        let own = fs::read_link("/proc/self/ns/net").unwrap();
        wait_for("the other machine", || {
            let its = fs::read_link(format!("/proc/{id}/ns/net")).ok()?;
            (its != own).then_some(())
        });
        let machine = Self {
            _process: process,
            id,
        };
        for (name, network) in [("engine", "10.77.1"), ("models", "10.77.2")] {
            let peer = format!("{name}-peer");
            ip(&[
                "link",
                "add",
                name,
                "type",
                "veth",
                "peer",
                "name",
                &peer,
                "netns",
                &id.to_string(),
            ]);
            ip(&["address", "add", &format!("{network}.1/24"), "dev", name]);
            ip(&["link", "set", name, "up"]);
            machine.ip(&["address", "add", &format!("{network}.2/24"), "dev", &peer]);
            machine.ip(&["link", "set", &peer, "up"]);
        }
        machine.ip(&["link", "set", "lo", "up"]);
        machine
    }

    /// Wraps a command to run on this machine.
    fn on(&self, command: &Command) -> Command {
        let mut here = Command::new("nsenter");
        here.arg(format!("--net=/proc/{}/ns/net", self.id))
            .arg("--")
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .envs(
                command
                    .get_envs()
                    .filter_map(|(key, value)| Some((key, value?))),
            );
        if let Some(folder) = command.get_current_dir() {
            here.current_dir(folder);
        }
        here
    }

    fn ip(&self, args: &[&str]) {
        let mut command = Command::new("ip");
        run(self
            .on(command.args(args))
            .env("PATH", std::env::var_os("PATH").unwrap()));
    }

    /// Interrupts or restores a connection of the machine.
    fn set(&self, connection: &str, state: &str) {
        self.ip(&["link", "set", &format!("{connection}-peer"), state]);
    }
}

fn ip(args: &[&str]) {
    run(Command::new("ip").args(args));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

/// Whether this process is in its own network. Otherwise runs the test in another process that is.
fn is_in_own_network(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        ip(&["link", "set", "lo", "up"]);
        return true;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net", "--"]);
        command
    };
    let permitted = unshare()
        .args(["ip", "link", "set", "lo", "up"])
        .stderr(Stdio::null())
        .status();
    if !permitted.is_ok_and(|status| status.success()) {
        println!("SKIPPED, nothing was tested: `unshare --net` or `ip` is not permitted here");
        return false;
    }
    let status = unshare()
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "the test failed in its own network");
    false
}

/// A batch with a third of its tasks done, and the earlier calls.
struct Case<'a> {
    world: &'a World,
    name: &'a str,
    batch: Process,
    before: usize,
}

impl<'a> Case<'a> {
    fn begin(world: &'a World, name: &'a str) -> Self {
        let before = world.asked().len();
        let batch = world.batch(name, TASKS, &["-o", &format!("{name}.jsonl"), "-j", "24"]);
        wait_for("a third of the calls", || {
            (world.asked().len() >= before + TASKS * 4 / 3).then_some(())
        });
        Self {
            world,
            name,
            batch,
            before,
        }
    }

    /// Waits for the end and checks that at most `under_way` calls were repeated.
    #[track_caller]
    fn end(mut self, failed: Instant, under_way: usize) {
        let Self { world, name, .. } = self;
        assert_eq!(self.batch.code(), 0, "{}", self.batch.output());
        let rows = world.rows(&format!("{name}.jsonl"), TASKS);
        let asked = world.asked().split_off(self.before);
        let mut times: BTreeMap<&str, Vec<Instant>> = BTreeMap::new();
        for (prompt, time) in &asked {
            times.entry(prompt).or_default().push(*time);
        }
        let repeated = asked.len() - times.len();
        let waits = times.values().filter_map(|times| {
            let (first, last) = (times.first()?, times.last()?);
            (times.len() > 1).then(|| last.duration_since(*first))
        });
        println!(
            "{name}: {} rows, {} calls, {repeated} repeated ({under_way} may be under way), after up to {:.1} s; {:.1} s \
             from the failure to the end",
            rows.len(),
            asked.len(),
            waits.max().unwrap_or_default().as_secs_f64(),
            failed.elapsed().as_secs_f64(),
        );
        assert_eq!(times.len(), 4 * TASKS, "every call is made");
        assert!(
            repeated <= under_way,
            "{repeated} calls were repeated, {under_way} were under way"
        );
        rows_count_lost_calls(&rows, asked.len(), repeated, under_way);
    }
}

#[test]
fn machines_and_connections_may_fail() {
    if !is_in_own_network("failures::machines_and_connections_may_fail") {
        return;
    }
    let Some(world) = World::on(Ipv4Addr::UNSPECIFIED, &[ENGINE]) else {
        return;
    };
    let machine = Machine::new(world.path("machine.log"));
    let room = ROOM.to_string();
    let room = ["-j", room.as_str()];
    let (here, there) = (world.places[0], *world.places.last().unwrap());
    let mut near = world.worker_with("near", &room, |_| ());
    let mut command = world.worker_command("far", there, Ipv4Addr::new(10, 77, 1, 1), &room);
    let models = world.models.openai_url();
    let (_, port) = models.rsplit_once(':').unwrap();
    command
        .env("OPENAI_BASE_URL", format!("http://10.77.2.1:{port}"))
        .env_remove("RESTATE_AUTH_TOKEN");
    let far = world.start_worker("far", there, machine.on(&command), |_| ());

    let case = Case::begin(&world, "healthy");
    case.end(Instant::now(), 0);

    let case = Case::begin(&world, "killed");
    let failed = Instant::now();
    near.kill();
    case.end(failed, ROOM);
    near.restart();
    world.wait_for_balancer(here);

    // The worker can still reach its models, and could make calls for tasks that other workers now have.
    let case = Case::begin(&world, "cut-off");
    let failed = Instant::now();
    machine.set("engine", "down");
    std::thread::sleep(CUT_OFF);
    machine.set("engine", "up");
    case.end(failed, ROOM);
    world.wait_for_balancer(there);

    let mut case = Case::begin(&world, "client");
    let failed = Instant::now();
    case.batch.restart();
    case.end(failed, 0);

    let case = Case::begin(&world, "balancer");
    let failed = Instant::now();
    world.balancer.borrow_mut().restart();
    case.end(failed, 2 * ROOM);

    let case = Case::begin(&world, "server");
    let failed = Instant::now();
    world.server.borrow_mut().restart();
    case.end(failed, 2 * ROOM);

    let case = Case::begin(&world, "vanished");
    let failed = Instant::now();
    machine.set("engine", "down");
    machine.set("models", "down");
    case.end(failed, ROOM);
    // A run that moved to another worker is a single run, in their logs too.
    for worker in [&near, &far] {
        let output = worker.output();
        assert!(!output.contains("not recorded any more"), "{output}");
    }
}
