//! Runs a worker: listens, registers, runs tasks, drains.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::executor::Executor;
use crate::batch::durable::{self, Admin, EngineError, Ingress, Worker};
use crate::batch::{Gate, Pace};
use crate::cli::args::{GlobalArgs, WorkerArgs};
use crate::cli::error::CliError;
use crate::cli::{interrupt, printer};
use crate::model::BaseUrl;
use crate::types::ExitCode;

/// Runs until a signal stops it.
pub(in crate::cli) async fn run(
    args: &WorkerArgs,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    let stop = interrupt::cancel_on_signal();
    let gate = Gate::new(Pace {
        concurrency: args.concurrency,
        requests_per_minute: None,
        tokens_per_minute: None,
    });
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        CliError::usage(format!("cannot listen at `{}`: {error}", args.listen))
            .hint("choose another address with `--listen`")
    })?;
    let listening = listener.local_addr().map_err(|error| {
        CliError::failure(format!("cannot determine the listening address: {error}"))
    })?;
    let address = own_address(args, listening)?;
    let ingress = Ingress::new(&args.engine).map_err(|error| unusable(&error))?;
    let (queue, mut begins) = mpsc::unbounded_channel();
    let worker = Worker::new(queue, Arc::clone(&gate));
    let executor = Executor::new(args, global, gate, Arc::new(ingress), worker.clone())?;
    let serving = durable::serve(listener, worker.clone(), args.identity.as_deref())
        .map_err(|problem| CliError::usage(format!("--identity: {problem}")))?;
    let serving = tokio::spawn(serving);
    let say = |line: &str| {
        if !global.quiet {
            printer::say(line);
        }
    };
    say(&format!(
        "{} listens at {listening} for {}",
        durable::version(),
        args.engine
    ));
    for warning in warnings(args, &address) {
        say(&format!("warning: {warning}"));
    }
    let registering = async {
        if args.register {
            register(args, &address, &say).await?;
        }
        std::future::pending().await
    };
    let working = async {
        let mut runs = FuturesUnordered::new();
        loop {
            tokio::select! {
                begin = begins.recv() => match begin {
                    Some(begin) => runs.push(executor.work(begin)),
                    None => break,
                },
                Some(()) = runs.next(), if !runs.is_empty() => {}
            }
        }
    };
    let draining = async {
        stop.cancelled().await;
        worker.drain();
        tokio::time::timeout(args.grace.get(), serving).await
    };
    tokio::select! {
        biased;
        failed = registering => failed,
        ended = draining => {
            if ended.is_err() {
                say("some calls did not finish in time; other workers will retry them");
            }
            Ok(ExitCode::Success)
        }
        () = working => Ok(ExitCode::Success),
    }
}

/// Registers the workers at this address as soon as the server is up and reaches them.
async fn register(args: &WorkerArgs, address: &str, say: &impl Fn(&str)) -> Result<(), CliError> {
    let url = args.admin.clone().unwrap_or_else(|| args.engine.admin());
    let admin = Admin::new(url).map_err(|error| unusable(&error))?;
    let mut reported = None;
    loop {
        match admin.register(address, args.replace).await {
            Ok(()) => break,
            Err(error @ (EngineError::OtherAddress(..) | EngineError::OtherVersion { .. })) => {
                return Err(unusable(&error));
            }
            Err(error) if reported.as_ref() != Some(&error) => {
                say(&format!("warning: {error}; waiting for it"));
                reported = Some(error);
            }
            Err(_) => {}
        }
        tokio::time::sleep(durable::RETRY_PAUSE).await;
    }
    say(&format!(
        "registered: the server sends its tasks to {address}"
    ));
    Ok(())
}

/// The address at which the server finds this worker.
fn own_address(args: &WorkerArgs, listening: SocketAddr) -> Result<String, CliError> {
    if let Some(own) = &args.advertise {
        let parts = own.rsplit_once(':');
        let is_address = parts.is_some_and(|(host, port)| {
            !host.is_empty() && !host.contains('/') && port.parse::<u16>().is_ok()
        });
        if !is_address {
            return Err(CliError::usage(format!(
                "--advertise: `{own}` is not HOST:PORT, for example gpu7.local:9080"
            )));
        }
        return Ok(own.clone());
    }
    if args.register && listening.ip().is_unspecified() {
        return Err(CliError::usage(format!(
            "`{listening}` is a wildcard address, and the server needs a specific one"
        ))
        .hint("name it with `--advertise HOST:PORT`"));
    }
    Ok(listening.to_string())
}

/// Warnings about who can reach this worker.
fn warnings(args: &WorkerArgs, address: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_loopback = BaseUrl::openai(address).is_ok_and(|url| url.is_loopback());
    if is_loopback && !args.engine.is_local() {
        warnings.push(format!(
            "{address} is reachable from this machine only, and the server is at {}: use `--listen \
             0.0.0.0:9080 --advertise HOST:9080`",
            args.engine
        ));
    }
    if !args.listen.ip().is_loopback() && args.identity.is_none() {
        warnings.push(format!(
            "anyone who can reach {} can run tasks on this worker's models: let only the server reach it, or \
             set `--identity` to the server's key",
            args.listen
        ));
    }
    warnings
}

/// Converts an engine error into a CLI error with a hint.
pub(in crate::cli::commands) fn unusable(error: &EngineError) -> CliError {
    let hint = match error {
        EngineError::Unreachable(..) => {
            "start it with `npx @restatedev/restate-server`, or name another with `--engine`"
        }
        EngineError::Refused(_) => {
            "the server must reach this worker: see `--listen` and `--advertise`"
        }
        EngineError::TokenExposed(_) => {
            "reach the server through `https://`, or unset `RESTATE_AUTH_TOKEN`"
        }
        EngineError::NoWorker => "start one with `reflect worker --register`",
        EngineError::OtherAddress(..) => {
            "put a load balancer in front of all workers and advertise its address with each of them \
             (docs/scale.md); if the other worker is gone, add `--replace`"
        }
        EngineError::OtherVersion { .. } => {
            "use the same version everywhere; to replace the other workers, stop them and add `--replace`"
        }
    };
    let problem = error.to_string();
    let error = match error {
        EngineError::TokenExposed(_) => CliError::usage(problem),
        _ => CliError::failure(problem),
    };
    error.hint(hint)
}
