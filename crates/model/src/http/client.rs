//! The HTTP client: one without a proxy for loopback addresses, and one for all others.

use std::collections::HashSet;
use std::error::Error as _;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response, Url};
use tower::util::MapRequestLayer;

use super::tls;
use crate::{ErrorClass, ModelError};

/// If a reused connection fails within this time, the server had most likely closed it before the request arrived:
/// about one round trip.
const STALE: Duration = Duration::from_secs(1);

/// The timeouts of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is established, including TLS. Default 10 s.
    pub connect: Duration,
    /// From the request to the first piece of the reply. Default 10 min: a server may have to load the model, wait
    /// for other requests, and process a long prompt on a slow CPU.
    pub first_token: Duration,
    /// Between two pieces of the reply; keep-alive comments do not count. Default 2 min.
    pub idle: Duration,
    /// For a whole call, including retries and waits. Default 30 min.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_token: Duration::from_mins(10),
            idle: Duration::from_mins(2),
            total: Duration::from_mins(30),
        }
    }
}

/// A shared pool of connections with timeouts. Clones share the pool, so pass clones of one client to the writer and
/// the judge. The pool is created on the first request.
#[derive(Debug, Clone)]
pub struct HttpClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    timeouts: Timeouts,
    loopback: OnceLock<Result<Pool, String>>,
    outside: OnceLock<Result<Pool, String>>,
    /// The `host:port` of each server that sent any response.
    answered: Mutex<HashSet<String>>,
}

impl Default for HttpClient {
    fn default() -> Self {
        Self::new(Timeouts::default())
    }
}

impl HttpClient {
    /// A client with these timeouts.
    pub fn new(timeouts: Timeouts) -> Self {
        Self {
            shared: Arc::new(Shared {
                timeouts,
                loopback: OnceLock::new(),
                outside: OnceLock::new(),
                answered: Mutex::default(),
            }),
        }
    }

    /// Records that the server at this address responded.
    pub(crate) fn has_answered(&self, url: &Url) {
        self.shared
            .answered
            .lock()
            .insert(url.authority().to_owned());
    }

    /// Whether the server at this address has responded before.
    pub(crate) fn is_known_to_answer(&self, url: &Url) -> bool {
        self.shared.answered.lock().contains(url.authority())
    }

    /// The timeouts.
    pub fn timeouts(&self) -> Timeouts {
        self.shared.timeouts
    }

    /// The connection pool for an address. The environment's proxies apply to all but loopback addresses.
    pub fn get(&self, url: &Url) -> Result<&Pool, ModelError> {
        let loopback = is_loopback(url);
        let cell = if loopback {
            &self.shared.loopback
        } else {
            &self.shared.outside
        };
        cell.get_or_init(|| build(self.shared.timeouts.connect, loopback))
            .as_ref()
            .map_err(|message| ModelError::new(ErrorClass::Unreachable, message))
    }
}

/// A pool of reusable connections.
#[derive(Debug)]
pub struct Pool {
    client: reqwest::Client,
    /// The number of connections opened.
    connects: Arc<AtomicUsize>,
}

impl Pool {
    /// A GET request.
    pub fn get(&self, url: &Url) -> RequestBuilder {
        self.client.get(url.clone())
    }

    /// A POST request.
    pub(crate) fn post(&self, url: &Url) -> RequestBuilder {
        self.client.post(url.clone())
    }

    /// Sends a request. If a kept connection turns out to be closed right away, sends the request again. Servers
    /// close idle connections at will (llama.cpp's after each response), and they have not read such a request. If a
    /// connection dies later, the server may have processed the request and charged for it, so it is not sent again.
    pub async fn send(&self, request: RequestBuilder) -> Result<Response, reqwest::Error> {
        let again = request.try_clone();
        let begun = Instant::now();
        let before = self.connects.load(Ordering::Relaxed);
        let result = request.send().await;
        let kept = self.connects.load(Ordering::Relaxed) == before;
        match (result, again) {
            (Err(error), Some(again)) if kept && begun.elapsed() < STALE && was_closed(&error) => {
                again.send().await
            }
            (result, _) => result,
        }
    }
}

/// Whether the connection was closed while a request was in flight.
fn was_closed(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<hyper::Error>()
            && (cause.is_incomplete_message() || cause.is_canceled() || cause.is_closed())
        {
            return true;
        }
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            return matches!(
                cause.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::NotConnected
                    | io::ErrorKind::UnexpectedEof
            );
        }
        source = cause.source();
    }
    false
}

fn build(connect_timeout: Duration, loopback: bool) -> Result<Pool, String> {
    let tls = tls::client_config().map_err(|error| format!("cannot set up TLS: {error}"))?;
    let connects = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connects);
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .user_agent(concat!("reflect-cli/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        // A redirect could send the prompt, even if not the key, to another server. It becomes an error that names
        // the target.
        .redirect(Policy::none())
        // `reqwest` has its own retries since 0.13; use only ours.
        .retry(reqwest::retry::never())
        .connector_layer(MapRequestLayer::new(move |target| {
            counter.fetch_add(1, Ordering::Relaxed);
            target
        }))
        .tcp_nodelay(true);
    if loopback {
        builder = builder.no_proxy();
    }
    let client = builder
        .build()
        .map_err(|error| format!("cannot set up the HTTP client: {error}"))?;
    Ok(Pool { client, connects })
}

/// Whether the host is this machine.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
}

/// The address for messages: without user name, password and query.
pub(crate) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Both fail only for a URL without a host, which has neither.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// The model error for a transport failure. `streaming`: the response had started.
pub(crate) fn transport_error(error: &reqwest::Error, url: &Url, streaming: bool) -> ModelError {
    let mut causes = Vec::new();
    let mut refused = false;
    let mut tls = None;
    let mut source = error.source();
    while let Some(cause) = source {
        causes.push(cause.to_string());
        if let Some(cause) = cause.downcast_ref::<io::Error>() {
            refused |= cause.kind() == io::ErrorKind::ConnectionRefused;
        }
        tls = tls.or_else(|| cause.downcast_ref::<rustls::Error>());
        // An I/O error hides the error that it wraps: its source is the source of the wrapped error.
        source = match cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => cause.source(),
        };
    }
    let handshake_eof = causes.iter().any(|cause| cause.contains("handshake eof"));
    let dns = causes.iter().any(|cause| cause.contains("dns error"));
    let last = causes.last().cloned().unwrap_or_else(|| error.to_string());
    let tls = tls
        .map(ToString::to_string)
        .or_else(|| handshake_eof.then(|| last.clone()));
    let mut failure = if let Some(tls) = tls {
        ModelError::new(ErrorClass::Unreachable, format!("TLS failed: {tls}"))
            .with_hint(tls::advice(&tls))
    } else if dns {
        let host = url.host_str().unwrap_or_default();
        // An unreachable resolver reports "Temporary failure in name resolution".
        let class = if last.contains("emporary") {
            ErrorClass::Transient
        } else {
            ErrorClass::Unreachable
        };
        ModelError::new(
            class,
            format!("cannot resolve the host name `{host}`: {last}"),
        )
        .with_hint("check the base URL and the network connection")
    } else if refused && is_loopback(url) {
        ModelError::new(ErrorClass::Unreachable, "connection refused")
            .with_hint("no server listens at that address; start it, or set another base URL")
    } else if error.is_timeout() {
        ModelError::new(ErrorClass::Transient, "the connection timed out")
    } else if streaming {
        ModelError::new(
            ErrorClass::CutOff,
            format!("the connection was lost: {last}"),
        )
    } else if let Some(proxy) = proxy_of(url).filter(|_| error.is_connect()) {
        ModelError::new(
            ErrorClass::Transient,
            format!("the connection through the proxy {proxy} failed: {last}"),
        )
        .with_hint(format!(
            "check the proxy's address and password, or set NO_PROXY={} to bypass it",
            url.host_str().unwrap_or_default()
        ))
    } else {
        ModelError::new(ErrorClass::Transient, last)
    };
    failure.url = Some(shown(url));
    failure
}

/// The proxy for an address without its password, and the variable that sets it; `None` if there is none.
fn proxy_of(url: &Url) -> Option<String> {
    if is_loopback(url) {
        return None;
    }
    let names = if url.scheme() == "https" {
        ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    } else {
        ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]
    };
    names.into_iter().find_map(|name| {
        let proxy = std::env::var(name).ok().filter(|it| !it.is_empty())?;
        let proxy = Url::parse(&proxy).map_or_else(|_| "(invalid URL)".to_owned(), |it| shown(&it));
        Some(format!("{} from {name}", proxy.trim_end_matches('/')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_recognized() {
        for (url, expected) in [
            ("http://127.0.0.1:11434", true),
            ("http://127.8.0.1", true),
            ("http://[::1]:80", true),
            ("http://localhost:1234/v1", true),
            ("http://api.localhost", true),
            ("http://192.168.1.2:11434", false),
            ("https://api.openai.com/v1", false),
            ("http://localhost.example.com", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn shown_addresses_have_no_secrets() {
        let url = Url::parse("https://me:pw@x.org/v1/chat?key=1#a").unwrap();
        assert_eq!(shown(&url), "https://x.org/v1/chat");
    }
}
