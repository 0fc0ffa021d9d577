//! Requests to a Restate server.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{ACCEPT, AUTHORIZATION, DATE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::error::EngineError;
use crate::model::tls_config;

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
    clock: Mutex<Clock>,
}

/// The server's clock. Its answers tell it to the second; several of them together tell it better.
struct Clock {
    began: Instant,
    /// What the server's clock showed at that moment, in seconds: not less than the first, and not more than the second.
    shown: (f64, f64),
}

impl Clock {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            shown: (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// Takes in an answer of this time, which came between `sent` and now.
    fn see(&mut self, time: f64, sent: Duration) {
        let least = time - self.began.elapsed().as_secs_f64();
        let most = time + 1.0 - sent.as_secs_f64();
        let both = (self.shown.0.max(least), self.shown.1.min(most));
        // Where they contradict each other the clock was set.
        self.shown = if both.0 <= both.1 {
            both
        } else {
            (least, most)
        };
    }
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
            clock: Mutex::new(Clock::new()),
        })
    }

    /// The time by the server's clock, in seconds since 1970, whatever the one of this machine shows. Before the first
    /// answer it is not finite.
    pub(super) fn time(&self) -> f64 {
        let clock = self.clock();
        clock.shown.0 + clock.began.elapsed().as_secs_f64()
    }

    /// By how many seconds that may be wrong.
    pub(super) fn uncertainty(&self) -> f64 {
        let (least, most) = self.clock().shown;
        most - least
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock()
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
        let sent = self.clock().began.elapsed();
        let asked = async {
            let response = request.send().await?;
            if let Some(time) = date(response.headers()) {
                self.clock().see(time, sent);
            }
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

/// The time of an answer, in seconds since 1970.
fn date(headers: &HeaderMap) -> Option<f64> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let date = jiff::fmt::rfc2822::parse(date).ok()?;
    Some(date.timestamp().as_duration().as_secs_f64())
}

/// A connection that is made when it is used. Without TLS it speaks HTTP/2 from the start: all requests share it.
fn connection(base: &str) -> Result<reqwest::Client, Box<dyn Error>> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(token) = std::env::var(TOKEN).ok().filter(|it| !it.is_empty()) {
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls_config()?)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_that_of_the_server() {
        let mut clock = Clock::new();
        let sent = clock.began.elapsed();
        // One hour ahead of us; at the end of one of its seconds.
        clock.see(3600.0, sent);
        assert!(clock.shown.1 - clock.shown.0 >= 1.0);
        clock.see(3601.0, sent);
        let (least, most) = clock.shown;
        assert!(
            (3600.0..=3601.0).contains(&least) && most - least < 0.5,
            "{least}"
        );
        // It was set back.
        clock.see(60.0, sent);
        assert!(clock.shown.1 <= 61.0);
    }
}
