//! Requests to a Restate server.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::EngineError;
use crate::model::tls;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);

/// How often a quiet connection is tried, and how long an answer to that may take.
const ALIVE: Duration = Duration::from_secs(5);

/// Requests that wait for rows take long, and a server answers no more than some hundred on one connection.
const CONNECTIONS: usize = 16;

/// The variable with the bearer token of an authenticating proxy; the engine's own tools read it as well.
const TOKEN: &str = "RESTATE_AUTH_TOKEN";

/// One of the server's two sides: the ingress or the admin API.
pub(super) struct Client {
    base: String,
    connections: Vec<reqwest::Client>,
    next: AtomicUsize,
}

/// What the server answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, EngineError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| EngineError::Refused(format!("unexpected answer: {error}")))
    }

    /// The same answer, unless it is a refusal.
    pub(super) fn accepted(self) -> Result<Self, EngineError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(EngineError::Refused(self.message()))
    }

    /// The message of a refusal.
    pub(super) fn message(&self) -> String {
        let message = self.json::<serde_json::Value>().ok();
        let message = message.and_then(|it| it["message"].as_str().map(str::to_owned));
        message.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&self.body);
            let text: String = text.chars().take(500).collect();
            format!("status {}: {text}", self.status.as_u16())
        })
    }
}

impl Client {
    /// A client of the server at this URL. Nothing is asked yet.
    pub(super) fn new(base: String) -> Result<Self, EngineError> {
        let connections = (0..CONNECTIONS).map(|_| connection(&base));
        let connections = connections.collect::<Result<_, _>>();
        Ok(Self {
            connections: connections
                .map_err(|error| EngineError::Unreachable(base.clone(), error.to_string()))?,
            base,
            next: AtomicUsize::new(0),
        })
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer, EngineError> {
        self.send(Method::GET, path, None::<&()>).await
    }

    /// Sends a request, with a body in JSON where there is one.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&(impl Serialize + Sync)>,
    ) -> Result<Answer, EngineError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.connections.len();
        let url = format!("{}{path}", self.base);
        let mut request = self.connections[number].request(method, url);
        if let Some(body) = body {
            request = request.json(body);
        }
        let asked = async {
            let response = request.send().await?;
            Ok(Answer {
                status: response.status(),
                body: response.bytes().await?.to_vec(),
            })
        };
        asked.await.map_err(|error| self.unreachable(&error))
    }

    fn unreachable(&self, error: &reqwest::Error) -> EngineError {
        let mut cause: &dyn Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        EngineError::Unreachable(self.base.clone(), cause.to_string())
    }
}

/// A connection that is made when it is used. Without TLS it speaks HTTP/2 from the start: all requests share it.
fn connection(base: &str) -> Result<reqwest::Client, Box<dyn Error>> {
    let mut headers = HeaderMap::new();
    if let Some(token) = std::env::var(TOKEN).ok().filter(|it| !it.is_empty()) {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls()?)
        .default_headers(headers)
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(ALIVE)
        .http2_keep_alive_timeout(ALIVE)
        .http2_keep_alive_while_idle(true)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .tcp_nodelay(true);
    if base.starts_with("http://") {
        builder = builder.http2_prior_knowledge();
    }
    Ok(builder.build()?)
}
