//! The worker among others: where it listens, and what it is told.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::hand::Hand;
use crate::batch::durable::{EngineError, Front, Ingress, Membership, Standing};
use crate::batch::{Gate, Pace};
use crate::cli::args::{GlobalArgs, WorkerArgs};
use crate::cli::error::CliError;
use crate::cli::{interrupt, printer};
use crate::types::ExitCode;

/// How often the worker says that it is there.
const BEAT: Duration = Duration::from_secs(1);

/// Works until it is told to stop.
pub(in crate::cli) async fn run(
    args: &WorkerArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let cancel = interrupt::cancel_on_signal();
    let gate = Gate::new(Pace {
        concurrency: args.concurrency,
        requests_per_minute: None,
        tokens_per_minute: None,
    });
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        CliError::usage(format!("cannot listen at `{}`: {error}", args.listen))
            .hint("choose another address with `--listen`")
    })?;
    let own = own_address(args, &listener)?;
    let ingress = Arc::new(Ingress::new(&args.engine));
    let hand = Hand::new(args, global, Arc::clone(&gate), Arc::clone(&ingress))?;
    ingress.check().await.map_err(|it| unusable(&it))?;
    let (desk, mut begins) = mpsc::unbounded_channel();
    let front = Front::new(desk);
    let serving = tokio::spawn(front.clone().serve(listener));
    let admin = args.admin.clone().unwrap_or_else(|| args.engine.admin());
    let mut membership = Membership::new(admin, own.clone());
    // The server asks this worker what it can do: who cannot be reached is of no use.
    let mut standing = membership
        .beat(gate.limit())
        .await
        .map_err(|it| unusable(&it))?;
    let say = |line: &str| {
        if !global.quiet {
            printer::say(line);
        }
    };
    say(&format!("worker at {own}, of {}", args.engine));
    if standing != Standing::Alone {
        say(&describe(&standing, 1));
    }
    let beating = async {
        let mut known = 1;
        let mut lost = false;
        loop {
            front.set_slots(gate.limit());
            match membership.beat(gate.limit()).await {
                Ok(now) => {
                    lost = false;
                    let workers = front.workers();
                    if now != standing || (now == Standing::Front && workers != known) {
                        say(&describe(&now, workers));
                    }
                    (standing, known) = (now, workers);
                }
                Err(error) => {
                    if !lost {
                        say(&format!("warning: {error}"));
                    }
                    lost = true;
                }
            }
            tokio::time::sleep(BEAT).await;
        }
    };
    let working = async {
        let mut runs = FuturesUnordered::new();
        loop {
            tokio::select! {
                begin = begins.recv() => match begin {
                    Some(begin) => runs.push(hand.work(begin)),
                    None => break,
                },
                Some(()) = runs.next(), if !runs.is_empty() => {}
            }
        }
    };
    tokio::select! {
        biased;
        () = cancel.cancelled() => {}
        () = beating => {}
        () = working => {}
    }
    serving.abort();
    match front.under_way() {
        0 => {}
        1 => say("the task under way is gone on with by another worker"),
        number => say(&format!(
            "{number} tasks under way are gone on with by other workers"
        )),
    }
    Ok(ExitCode::Success)
}

/// Where others find this worker.
fn own_address(args: &WorkerArgs, listener: &TcpListener) -> Result<String, CliError> {
    if let Some(own) = &args.advertise {
        let parts = own.rsplit_once(':');
        let is_address = parts.is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
        });
        if !is_address {
            return Err(CliError::usage(format!(
                "--advertise: `{own}` is no HOST:PORT, for example gpu7.local:9080"
            )));
        }
        return Ok(own.clone());
    }
    let address = listener.local_addr().map_err(|error| {
        CliError::failure(format!(
            "cannot find out where this worker listens: {error}"
        ))
    })?;
    if address.ip().is_unspecified() {
        return Err(CliError::usage(format!(
            "`{address}` is every address of this machine: others must know one of them"
        ))
        .hint("name it with `--advertise HOST:PORT`"));
    }
    Ok(address.to_string())
}

fn describe(standing: &Standing, workers: usize) -> String {
    match standing {
        Standing::Front if workers == 1 => "the server asks this worker, the only one".to_owned(),
        Standing::Front => {
            format!("the server asks this worker, which shares the work with {workers} in all")
        }
        Standing::Member(front) => format!("the work comes from the worker at {front}"),
        Standing::Alone => "the worker that shares the work out does not answer".to_owned(),
    }
}

/// Why there is nothing to do.
pub(in crate::cli::commands) fn unusable(error: &EngineError) -> CliError {
    let hint = match error {
        EngineError::Unreachable(..) => {
            "start it with `npx @restatedev/restate-server`, or name another with `--engine`"
        }
        EngineError::Refused(_) => {
            "the server must reach this worker: see `--listen` and `--advertise`"
        }
        EngineError::NoWorker => "start one with `reflect worker`",
    };
    CliError::failure(error.to_string()).hint(hint)
}
