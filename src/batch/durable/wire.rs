//! HTTP/2 without TLS, as a Restate server and its workers speak it: a few connections, many requests on each.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::http::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::error::EngineError;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// What is sent and received, in pieces.
pub(super) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How often a quiet connection is tried, and how long an answer to that may take.
const ALIVE: Duration = Duration::from_secs(5);

/// Requests that wait for rows are under way for long, and a server takes no more than some hundred on one connection.
const CONNECTIONS: usize = 16;

/// A body that is there as a whole.
pub(super) fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into())
        .map_err(|never| match never {})
        .boxed_unsync()
}

/// Connects to `HOST:PORT`.
pub(super) async fn connect(authority: &str) -> Result<SendRequest<Body>, BoxError> {
    let stream = tokio::time::timeout(CONNECT, TcpStream::connect(authority)).await??;
    stream.set_nodelay(true)?;
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .handshake(TokioIo::new(stream))
        .await?;
    // Why it ends is told to those whose requests are on it.
    tokio::spawn(async move {
        let _ = connection.await;
    });
    Ok(sender)
}

/// Somebody who is asked more than once.
pub(super) struct Peer {
    authority: String,
    connections: Vec<Mutex<Option<SendRequest<Body>>>>,
    next: AtomicUsize,
}

/// What a peer answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    body: Bytes,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.body)
    }

    /// The same, unless it says no.
    pub(super) fn accepted(self) -> Result<Self, EngineError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(EngineError::Refused(self.said()))
    }

    /// What was said, for people.
    pub(super) fn said(&self) -> String {
        let message = self.json::<serde_json::Value>().ok();
        let message = message.and_then(|it| it["message"].as_str().map(str::to_owned));
        message.unwrap_or_else(|| {
            let text: String = String::from_utf8_lossy(&self.body)
                .chars()
                .take(500)
                .collect();
            format!("status {}: {text}", self.status.as_u16())
        })
    }
}

impl Peer {
    /// Somebody at `HOST:PORT` who is asked one thing after another.
    pub(super) fn new(authority: String) -> Self {
        Self::with_connections(authority, 1)
    }

    /// Somebody at `HOST:PORT` who is asked many things at once.
    pub(super) fn of_many_requests(authority: String) -> Self {
        Self::with_connections(authority, CONNECTIONS)
    }

    fn with_connections(authority: String, number: usize) -> Self {
        Self {
            authority,
            connections: (0..number).map(|_| Mutex::new(None)).collect(),
            next: AtomicUsize::new(0),
        }
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer, EngineError> {
        let answer = self.ask(Method::GET, path, Bytes::new()).await;
        answer.map_err(|error| self.unreachable(&error))
    }

    pub(super) async fn post(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<Answer, EngineError> {
        self.send(Method::POST, path, body).await
    }

    pub(super) async fn patch(
        &self,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<Answer, EngineError> {
        self.send(Method::PATCH, path, body).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: &(impl Serialize + Sync),
    ) -> Result<Answer, EngineError> {
        let answer = match serde_json::to_vec(body) {
            Ok(body) => self.ask(method, path, body.into()).await,
            Err(error) => Err(error.into()),
        };
        answer.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &BoxError) -> EngineError {
        let mut cause: &dyn Error = &**error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        EngineError::Unreachable(self.authority.clone(), cause.to_string())
    }

    async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Answer, BoxError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.authority));
        if !body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(whole(body))?;
        let mut sender = self.sender().await?;
        let response: Response<_> = sender.send_request(request).await?;
        Ok(Answer {
            status: response.status(),
            body: response.into_body().collect().await?.to_bytes(),
        })
    }

    /// One of the connections; a new one where it has ended.
    async fn sender(&self) -> Result<SendRequest<Body>, BoxError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let mut place = self.connections[number].lock().await;
        if let Some(sender) = place.as_ref().filter(|sender| !sender.is_closed()) {
            return Ok(sender.clone());
        }
        let sender = connect(&self.authority).await?;
        *place = Some(sender.clone());
        Ok(sender)
    }
}
