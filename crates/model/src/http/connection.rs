//! The connection to a server: its address, key, headers and retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{
    AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::client::{HttpClient, is_loopback, shown, transport_error};
use super::failure::Failure;
use super::retry::{RetryPolicy, retry_after};
use crate::base_url::BaseUrl;
use crate::key::ApiKey;
use crate::secrets;
use crate::{ErrorClass, ModelError};

/// The maximum size of an error response, in bytes.
const MAX_ERROR_BODY: usize = 64 * 1024;

/// The maximum size of a list of models, in bytes; `OpenRouter`'s is about half a megabyte.
const MAX_LIST: usize = 16 * 1024 * 1024;

/// The timeout for the rest of an error response.
const ERROR_BODY_TIME: Duration = Duration::from_secs(10);

/// The timeout for a request about models, which requires no loaded model.
const LIST_TIME: Duration = Duration::from_secs(30);

/// A server with everything needed to send requests to it. Clones share the connection pool.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The server's base URL.
    pub base_url: BaseUrl,
    /// The API key, if one is needed. It is sent only to the server that it belongs to.
    pub key: Option<ApiKey>,
    /// The HTTP client, shared by all models with a clone of it.
    pub client: HttpClient,
    /// When to retry failed calls.
    pub retries: RetryPolicy,
    /// The hint if the server requires a key and none is set.
    pub missing_key_hint: Option<String>,
    headers: HeaderMap,
    warned: Arc<AtomicBool>,
}

/// An invalid header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid header `{name}`: its name or value contains forbidden characters")]
pub struct HeaderError {
    /// The name of the header.
    pub name: String,
}

impl Connection {
    /// A connection without a key, with default timeouts and retries.
    pub fn new(base_url: BaseUrl) -> Self {
        Self {
            base_url,
            key: None,
            client: HttpClient::default(),
            retries: RetryPolicy::default(),
            missing_key_hint: None,
            headers: HeaderMap::new(),
            warned: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: Option<ApiKey>) -> Self {
        self.key = key;
        self
    }

    /// Adds a header to every request. Its value is treated as a secret.
    ///
    /// # Errors
    /// If HTTP does not allow the name or the value.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, HeaderError> {
        let error = || HeaderError {
            name: super::clean::clean(name),
        };
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| error())?;
        secrets::remember_header(value);
        let mut value = HeaderValue::from_str(value).map_err(|_| error())?;
        value.set_sensitive(true);
        self.headers.insert(header, value);
        Ok(self)
    }

    /// Whether a request to `url` carries a key or a user-defined authorization header.
    pub(crate) fn sends_key(&self, url: &Url) -> bool {
        self.has_authorization() || self.key.as_ref().is_some_and(|key| key.fits(url))
    }

    /// Whether the user configured an authorization header.
    pub fn has_authorization(&self) -> bool {
        self.headers.contains_key(AUTHORIZATION)
    }

    /// The headers of a request to `url`.
    pub(crate) fn headers(&self, url: &Url) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Some(bearer) = self.key.as_ref().and_then(|key| key.bearer(url)) {
            headers.insert(AUTHORIZATION, bearer);
        }
        headers
    }

    /// A warning about the key, returned once.
    pub(crate) fn key_notice(&self) -> Option<String> {
        let key = self.key.as_ref()?;
        let url = self.base_url.url();
        let text = if !key.fits(url) {
            format!(
                "the API key belongs to {}; it is not sent to {}",
                key.origin(),
                shown(url)
            )
        } else if url.scheme() == "http" && !is_loopback(url) {
            format!("the API key is sent to {} without encryption", shown(url))
        } else {
            return None;
        };
        (!self.warned.swap(true, Ordering::Relaxed)).then_some(text)
    }

    /// Redacts keys in the server's message and adds the address.
    pub(crate) fn locate(&self, mut error: ModelError, url: &Url) -> ModelError {
        error.message = secrets::redact_text(error.message);
        error.hint = error.hint.map(secrets::redact_text);
        if error.status == Some(401) && !self.sends_key(url) && self.missing_key_hint.is_some() {
            error.hint.clone_from(&self.missing_key_hint);
        }
        error.url.get_or_insert_with(|| shown(url));
        error
    }

    /// Requests a JSON value from an endpoint that needs no model: once, without retries.
    pub(crate) async fn json(
        &self,
        url: &Url,
        body: Option<&Value>,
        time: Option<Duration>,
    ) -> Result<Value, ModelError> {
        let work = async {
            let client = self.client.get(url)?;
            let request = match body {
                Some(body) => client.post(url).json(body),
                None => client.get(url),
            };
            let mut response = client
                .send(request.headers(self.headers(url)))
                .await
                .map_err(|error| transport_error(&error, url, false))?;
            if !response.status().is_success() {
                let deadline = Instant::now() + ERROR_BODY_TIME;
                let (failure, wait) = failure_of(&mut response, url, deadline).await;
                return Err(with_wait(failure.into_error(), wait));
            }
            let bytes = read_capped(&mut response, MAX_LIST)
                .await
                .map_err(|error| transport_error(&error, url, true))?;
            let value = serde_json::from_slice(&bytes).map_err(|_| {
                let said = Failure::of_body(200, &bytes).message;
                ModelError::new(ErrorClass::Protocol, format!("expected JSON, got: {said}"))
            })?;
            match Failure::in_answer(&value) {
                Some(failure) => Err(failure.into_error()),
                None => Ok(value),
            }
        };
        let time = time.unwrap_or(LIST_TIME);
        let result = tokio::time::timeout(time, work).await.unwrap_or_else(|_| {
            Err(ModelError::new(
                ErrorClass::Transient,
                format!("no response within {} ms", time.as_millis()),
            ))
        });
        result.map_err(|error| self.locate(error, url))
    }
}

/// Reads an error response until the deadline of its call, and the wait that it requests.
pub(crate) async fn failure_of(
    response: &mut reqwest::Response,
    url: &Url,
    deadline: Instant,
) -> (Failure, Option<Duration>) {
    let status = response.status().as_u16();
    let wait = retry_after(response.headers(), jiff::Timestamp::now());
    let wants_password = response
        .headers()
        .get_all(WWW_AUTHENTICATE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| value.to_ascii_lowercase().starts_with("basic"));
    if (300..400).contains(&status) {
        let target = response
            .headers()
            .get(LOCATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|target| url.join(target).ok())
            .map_or_else(|| "another address".to_owned(), |target| shown(&target));
        let failure = Failure {
            status: Some(status),
            ..Failure::text(&format!(
                "the server redirects to {target}; reflect does not follow redirects, so that prompt and key \
                 stay with the configured server: set that address as the base URL"
            ))
        };
        return (failure, wait);
    }
    let due = deadline.min(Instant::now() + ERROR_BODY_TIME);
    let body = timeout_at(due, read_capped(response, MAX_ERROR_BODY)).await;
    let body = match body {
        Ok(Ok(body)) => body,
        _ => Vec::new(),
    };
    let failure = Failure {
        wants_password,
        ..Failure::of_body(status, &body)
    };
    (failure, wait)
}

/// Sets the wait that the headers request.
pub(crate) fn with_wait(mut error: ModelError, wait: Option<Duration>) -> ModelError {
    error.retry_after = wait.or(error.retry_after);
    error
}

async fn read_capped(
    response: &mut reqwest::Response,
    limit: usize,
) -> Result<Vec<u8>, reqwest::Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        let room = limit - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if bytes.len() >= limit {
            break;
        }
    }
    Ok(bytes)
}
