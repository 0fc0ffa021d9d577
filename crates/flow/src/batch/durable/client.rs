//! Requests to a Restate server.

use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::header::{ACCEPT, AUTHORIZATION, DATE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use reflect_base::{secrets, text::clip};

use super::error::EngineError;
use crate::model::{BaseUrl, tls_config};

/// How long opening a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// How often an idle connection is probed, and how long the reply may take.
const ALIVE: Duration = Duration::from_secs(5);

/// The number of connections. Requests that wait for rows stay open for a long time, and a server handles
/// only a few hundred on one connection.
const CONNECTIONS: usize = 16;

/// The variable with the bearer token for an authenticating proxy. Restate's own tools read it too.
const TOKEN: &str = "RESTATE_AUTH_TOKEN";

/// How long to wait before retrying a server that was unreachable or had no worker.
pub const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// One of the server's two sides: the ingress or the admin API.
pub(super) struct Client {
    base: String,
    connections: Vec<reqwest::Client>,
    next: AtomicUsize,
    clock: Mutex<Clock>,
}

/// A lower bound of the server's clock, from the dates of its replies. Dates have whole seconds, so the bound
/// is up to a second too low at first; each reply can raise it.
struct Clock {
    began: Instant,
    /// The time on the server's clock when this client was created, in seconds since 1970.
    least: f64,
}

impl Clock {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            least: f64::NEG_INFINITY,
        }
    }

    /// Updates the bound with the date of a reply to a request sent `sent` after the start.
    fn see(&mut self, date: f64, sent: Duration) {
        let least = date - self.began.elapsed().as_secs_f64();
        // The server's clock was set back.
        let is_past = self.least + sent.as_secs_f64() > date + 1.0;
        self.least = if is_past {
            least
        } else {
            self.least.max(least)
        };
    }
}

/// A reply of the server.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T, EngineError> {
        serde_json::from_slice(&self.body)
            .map_err(|error| EngineError::Refused(format!("unexpected answer: {error}")))
    }

    /// Returns the reply, or an error if its status is not a success.
    pub(super) fn accepted(self) -> Result<Self, EngineError> {
        if self.status.is_success() {
            return Ok(self);
        }
        Err(EngineError::Refused(self.message()))
    }

    /// Returns the message of a failed reply.
    pub(super) fn message(&self) -> String {
        let message = self.json::<serde_json::Value>().ok();
        let message = message.and_then(|it| it["message"].as_str().map(str::to_owned));
        message.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&self.body);
            format!("status {}: {}", self.status.as_u16(), clip(&text, 500))
        })
    }
}

impl Client {
    /// Creates a client for the server at this URL, without connecting.
    ///
    /// # Errors
    /// If the URL is invalid, or the bearer token would be sent unencrypted over the network.
    pub(super) fn new(base: String) -> Result<Self, EngineError> {
        let connections = token(&base).and_then(|token| {
            let made = (0..CONNECTIONS).map(|_| connection(&base, token.as_ref()));
            let made = made.collect::<Result<_, _>>();
            made.map_err(|error| EngineError::Unreachable(base.clone(), error.to_string()))
        })?;
        Ok(Self {
            base,
            connections,
            next: AtomicUsize::new(0),
            clock: Mutex::new(Clock::new()),
        })
    }

    /// Returns the time on the server's clock in seconds since 1970, independent of this machine's clock. Up
    /// to a second too low, and not finite before the first reply.
    pub(super) fn time(&self) -> f64 {
        let clock = self.clock.lock();
        clock.least + clock.began.elapsed().as_secs_f64()
    }

    pub(super) fn base(&self) -> &str {
        &self.base
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer, EngineError> {
        self.send(Method::GET, path, None::<&()>).await
    }

    /// Sends a request, with a JSON body if one is given.
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
        let sent = self.clock.lock().began.elapsed();
        let asked = async {
            let response = request.send().await?;
            if let Some(time) = date(response.headers()) {
                self.clock.lock().see(time, sent);
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

/// Returns the date of a reply, in seconds since 1970.
fn date(headers: &HeaderMap) -> Option<f64> {
    let date = headers.get(DATE)?.to_str().ok()?;
    let date = jiff::fmt::rfc2822::parse(date).ok()?;
    Some(date.timestamp().as_duration().as_secs_f64())
}

/// Returns the header with the bearer token, if one is set.
///
/// # Errors
/// If the token would be sent unencrypted to this URL.
fn token(base: &str) -> Result<Option<HeaderValue>, EngineError> {
    let Some(token) = std::env::var(TOKEN).ok().filter(|it| !it.is_empty()) else {
        return Ok(None);
    };
    secrets::remember(&token);
    authorization(base, &token).map(Some)
}

fn authorization(base: &str, token: &str) -> Result<HeaderValue, EngineError> {
    let is_local = || BaseUrl::openai(base).is_ok_and(|url| url.is_loopback());
    if !base.starts_with("https://") && !is_local() {
        return Err(EngineError::TokenExposed(base.to_owned()));
    }
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| EngineError::Refused(format!("{TOKEN} is not a valid header value")))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Creates a connection that opens on first use. Without TLS it uses HTTP/2 with prior knowledge, so that
/// requests share it.
fn connection(base: &str, token: Option<&HeaderValue>) -> Result<reqwest::Client, Box<dyn Error>> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.extend(token.map(|token| (AUTHORIZATION, token.clone())));
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
    fn the_clock_follows_the_server() {
        let mut clock = Clock::new();
        let sent = clock.began.elapsed();
        // An hour ahead of this machine.
        clock.see(3600.0, sent);
        assert!((3599.0..=3600.0).contains(&clock.least), "{}", clock.least);
        clock.see(3601.0, sent);
        assert!((3600.0..=3601.0).contains(&clock.least), "{}", clock.least);
        // The date of the earlier second was nearly over.
        clock.see(3600.0, sent);
        assert!((3600.0..=3601.0).contains(&clock.least), "{}", clock.least);
        // The server's clock was set back.
        clock.see(60.0, sent);
        assert!(clock.least <= 60.0, "{}", clock.least);
    }

    #[test]
    fn a_token_is_sent_only_encrypted_or_to_this_machine() {
        for base in [
            "https://queue:8080",
            "http://127.0.0.1:8080",
            "http://localhost:8080",
        ] {
            let value = authorization(base, "let-me-in").unwrap();
            assert_eq!(value, "Bearer let-me-in");
            assert!(value.is_sensitive());
        }
        for base in [
            "http://queue:8080",
            "http://10.0.0.1:8080",
            "http://https.org",
        ] {
            let refused = authorization(base, "let-me-in");
            assert_eq!(refused, Err(EngineError::TokenExposed(base.to_owned())));
        }
    }
}
