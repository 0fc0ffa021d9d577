//! The worker's HTTP server. Handles the engine's requests until the worker has drained.

use std::convert::Infallible;
use std::error::Error;
use std::future::ready;
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::http::{Request, Response, StatusCode};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use restate_sdk::endpoint::ServiceOptions;
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::Endpoint;
use restate_sdk::service::IntoServiceDefinition as _;
use tokio::net::TcpListener;

use super::admin::VERSION;
use super::limits::Limits;
use super::version;
use super::workflow::{Tasks, Worker};

type BoxError = Box<dyn Error + Send + Sync>;

/// How often an idle connection is probed.
const ALIVE: Duration = Duration::from_secs(10);

/// The path of the health check for load balancers.
const HEALTH: &str = "/health";

/// Serves until the worker has drained and the last response is sent. `identity` is the server's public key;
/// with it, unsigned requests are rejected.
///
/// # Errors
/// The reason, if the identity is not a public key.
pub fn serve(
    listener: TcpListener,
    worker: Worker,
    identity: Option<&str>,
) -> Result<impl Future<Output = ()> + Send + use<>, String> {
    let options = ServiceOptions::new().metadata(VERSION, version());
    let tasks = Tasks {
        worker: worker.clone(),
    };
    let mut endpoint = Endpoint::builder()
        .bind(tasks.into_service_definition().options(options))
        .bind(Limits);
    if let Some(key) = identity {
        endpoint = endpoint
            .identity_key(key)
            .map_err(|error| error.to_string())?;
    }
    let endpoint = HyperEndpoint::new(endpoint.build());
    Ok(async move {
        let connections = GracefulShutdown::new();
        // Keeps listening while tasks are in progress: a load balancer that cannot check the worker's health
        // takes them away.
        let mut idle = Box::pin(worker.clone().idle());
        loop {
            let stream = tokio::select! {
                () = &mut idle => break,
                accepted = listener.accept() => {
                    if let Ok((stream, _)) = accepted {
                        stream
                    } else {
                        // For example too many open files, which is temporary.
                        tokio::time::sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                }
            };
            let _ = stream.set_nodelay(true);
            let (endpoint, worker) = (endpoint.clone(), worker.clone());
            let service = service_fn(move |request: Request<Incoming>| {
                if request.uri().path() == HEALTH {
                    return ready(Ok::<_, Infallible>(health(&worker)));
                }
                let response = endpoint.call(request).into_inner();
                let response = response.unwrap_or_else(|never| match never {});
                ready(Ok(
                    response.map(|body| body.map_err(BoxError::from).boxed_unsync())
                ))
            });
            let mut builder = Builder::new(TokioExecutor::new());
            builder
                .http2()
                .timer(TokioTimer::new())
                .keep_alive_interval(ALIVE)
                .max_concurrent_streams(None);
            let connection = builder.serve_connection(TokioIo::new(stream), service);
            let connection = connections.watch(connection.into_owned());
            // The engine notices when a connection ends.
            tokio::spawn(async move {
                let _ = connection.await;
            });
        }
        drop(listener);
        connections.shutdown().await;
    })
}

/// Returns whether the worker accepts tasks; needs no signature. `404` tells load balancers to send nothing
/// new but to let requests in progress finish.
fn health(worker: &Worker) -> Response<UnsyncBoxBody<Bytes, BoxError>> {
    let body = Empty::new().map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    if worker.is_draining() {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}
