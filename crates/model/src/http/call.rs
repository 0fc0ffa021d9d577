//! One call of a model: request, response, retries and parameter adjustments.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use parking_lot::{Mutex, MutexGuard};
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Response, Url};
use tokio::time::{Instant, timeout, timeout_at};

use super::client::transport_error;
use super::connection::{Connection, failure_of, with_wait};
use super::decoder::{Decoder, Wire};
use super::failure::Failure;
use crate::{ChatEvent, ChatRequest, ChatStream, EndReason, ErrorClass, ModelError, Think};

/// How long to wait for token counts and the end of the stream once the reply is complete.
const GRACE: Duration = Duration::from_secs(2);

/// How long to wait for the end of a body after its final event.
const DRAIN: Duration = Duration::from_millis(50);

/// How long to keep trying a server that answered before and now refuses connections: enough for a local server to
/// restart.
const RESTART: Duration = Duration::from_secs(20);

/// The interval between these attempts.
const RESTART_POLL: Duration = Duration::from_millis(500);

/// The maximum number of retries with changed parameters. More than the number of parameters that can be rejected.
const MAX_ADJUSTMENTS: u32 = 12;

/// The endpoint for chats, and what was learned about it.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint<Q> {
    /// How to reach the server.
    pub(crate) connection: Connection,
    url: Url,
    /// Shared by all clones of a model.
    quirks: Arc<Mutex<Q>>,
}

impl<Q> Endpoint<Q> {
    /// An endpoint at a path below the server's address, with the quirks known in advance.
    pub(crate) fn new(connection: Connection, path: &str, quirks: Q) -> Self {
        Self {
            url: connection.base_url.join(path),
            connection,
            quirks: Arc::new(Mutex::new(quirks)),
        }
    }

    /// The quirks learned so far.
    pub(crate) fn learned(&self) -> MutexGuard<'_, Q> {
        self.quirks.lock()
    }
}

/// A protocol: how to write a request and read its response.
#[async_trait::async_trait]
pub(crate) trait Adapter: Send + Sync {
    /// The frame reader.
    type Wire: Wire;
    /// What was learned about the server, such as parameters that it rejects.
    type Quirks: Clone + PartialEq + Send;

    /// The endpoint for chats.
    fn endpoint(&self) -> &Endpoint<Self::Quirks>;

    /// The request's body.
    fn body(&self, request: &ChatRequest, quirks: &Self::Quirks) -> Result<Vec<u8>, ModelError>;

    /// A decoder for the response to a request.
    fn decoder(&self, request: &ChatRequest) -> Decoder<Self::Wire>;

    /// If the server rejects a parameter that can be changed or dropped: changes `quirks` and returns a message about
    /// it.
    fn adjust(
        &self,
        failure: &Failure,
        request: &ChatRequest,
        quirks: &mut Self::Quirks,
    ) -> Option<String>;

    /// Adds a hint, which may require a request to the server.
    async fn explain(&self, error: ModelError) -> ModelError;
}

/// Makes a call; see [`crate::ChatModel::chat`].
pub(crate) fn chat<A: Adapter>(adapter: &A, request: ChatRequest) -> ChatStream<'_> {
    let call = Box::new(Call {
        adapter,
        request,
        queue: VecDeque::new(),
        stage: Stage::Send,
        retries: 0,
        busy: 0,
        adjustments: 0,
        refused_since: None,
        deadline: Instant::now() + adapter.endpoint().connection.client.timeouts().total,
    });
    stream::unfold(call, |mut call| async {
        let event = call.next().await?;
        Some((event, call))
    })
    .boxed()
}

struct Call<'a, A: Adapter> {
    adapter: &'a A,
    request: ChatRequest,
    queue: VecDeque<ChatEvent>,
    stage: Stage<A::Wire>,
    retries: u32,
    /// How many times the server was busy.
    busy: u32,
    adjustments: u32,
    /// The time of the first refused connection, for a server that answered before.
    refused_since: Option<Instant>,
    deadline: Instant,
}

enum Stage<W> {
    Wait(Duration),
    Send,
    Receive(Box<Receiving<W>>),
    Fail(Box<ModelError>),
    Over,
}

struct Receiving<W> {
    body: Response,
    decoder: Decoder<W>,
    /// The deadline for the next piece.
    due: Instant,
}

impl<A: Adapter> Call<'_, A> {
    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Some(Ok(event));
            }
            match std::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Over => return None,
                Stage::Wait(wait) => {
                    tokio::time::sleep(wait).await;
                    self.stage = Stage::Send;
                }
                Stage::Send => self.send().await,
                Stage::Receive(receiving) => self.receive(receiving).await,
                Stage::Fail(error) => {
                    // Looking up a hint may need another request, which may be just as slow.
                    let explained = self.adapter.explain((*error).clone());
                    let explained = timeout_at(self.deadline, explained).await;
                    return Some(Err(explained.unwrap_or(*error)));
                }
            }
        }
    }

    async fn send(&mut self) {
        let connection = &self.adapter.endpoint().connection;
        let url = &self.adapter.endpoint().url;
        if let Some(notice) = connection.key_notice() {
            self.queue.push_back(ChatEvent::Notice(notice));
        }
        let quirks = self.adapter.endpoint().quirks.lock().clone();
        let request = self
            .adapter
            .body(&self.request, &quirks)
            .and_then(|body| Ok((body, connection.client.get(url)?)));
        let (body, client) = match request {
            Ok(parts) => parts,
            Err(error) => return self.fail(error),
        };
        let request = client
            .post(url)
            .headers(connection.headers(url))
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        let first_token = connection.client.timeouts().first_token;
        let due = Instant::now() + first_token;
        let mut response = match timeout_at(due.min(self.deadline), client.send(request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return self.fail(transport_error(&error, url, false)),
            Err(_) => return self.time_out(first_token, "no response", "--timeout-first-token"),
        };
        connection.client.has_answered(url);
        self.refused_since = None;
        if response.status().is_success() {
            self.stage = Stage::Receive(Box::new(Receiving {
                body: response,
                decoder: self.adapter.decoder(&self.request),
                due,
            }));
            return;
        }
        let (failure, wait) = failure_of(&mut response, url, self.deadline).await;
        self.refused_by_server(failure, wait, &quirks);
    }

    /// Handles an error status.
    fn refused_by_server(&mut self, failure: Failure, wait: Option<Duration>, sent: &A::Quirks) {
        if failure.is_refusal() {
            self.queue
                .push_back(ChatEvent::End(EndReason::Refused(failure.message)));
            return;
        }
        // Some servers use 403 and 500 for a rejected parameter.
        let adjustable = matches!(
            failure.class(),
            ErrorClass::Rejected | ErrorClass::Auth | ErrorClass::Transient
        );
        if adjustable && self.adjustments < MAX_ADJUSTMENTS {
            let mut quirks = self.adapter.endpoint().quirks.lock();
            // A concurrent call may have learned the same.
            let known = *quirks != *sent;
            let notice = if known {
                None
            } else {
                self.adapter.adjust(&failure, &self.request, &mut quirks)
            };
            drop(quirks);
            if known || notice.is_some() {
                self.adjustments += 1;
                let endpoint = self.adapter.endpoint();
                let error = endpoint
                    .connection
                    .locate(failure.into_error(), &endpoint.url);
                self.queue.push_back(ChatEvent::Retry {
                    error,
                    wait: Duration::ZERO,
                });
                self.queue.extend(notice.map(ChatEvent::Notice));
                self.stage = Stage::Send;
                return;
            }
        }
        self.fail(with_wait(failure.into_error(), wait));
    }

    async fn receive(&mut self, mut receiving: Box<Receiving<A::Wire>>) {
        let timeouts = self.adapter.endpoint().connection.client.timeouts();
        let Receiving { body, decoder, due } = &mut *receiving;
        let result = match timeout_at((*due).min(self.deadline), body.chunk()).await {
            Ok(Ok(Some(bytes))) => {
                let pieces = decoder.pieces();
                let result = decoder.feed(&bytes);
                if decoder.is_complete() {
                    *due = (*due).min(Instant::now() + GRACE);
                } else if decoder.pieces() > pieces {
                    *due = Instant::now() + timeouts.idle;
                }
                result
            }
            Ok(Ok(None)) => decoder.finish(),
            // The connection is lost or silent, but the reply is complete.
            Ok(Err(_)) | Err(_) if decoder.is_complete() => {
                decoder.end();
                Ok(())
            }
            Ok(Err(error)) => Err(transport_error(&error, &self.adapter.endpoint().url, true)),
            Err(_) => {
                let begun = decoder.pieces() > 0;
                self.queue.append(decoder.events());
                return if begun {
                    self.time_out(
                        timeouts.idle,
                        "the reply stalled: no response",
                        "--timeout-idle",
                    );
                } else {
                    self.time_out(timeouts.first_token, "no response", "--timeout-first-token");
                };
            }
        };
        self.queue.append(decoder.events());
        if let Err(error) = result {
            return self.fail(error);
        }
        let only_reasoned = decoder.has_ended() && decoder.only_reasoned();
        if only_reasoned && self.ask_without_reasoning() {
            return;
        }
        if decoder.has_ended() {
            // The rest has usually arrived already.
            let _ = timeout(DRAIN, drain(body)).await;
        } else {
            self.stage = Stage::Receive(receiving);
        }
    }

    /// If the model spent the whole reply on reasoning, and reasoning can be turned off, makes the call again without
    /// it. The same request would end the same way.
    fn ask_without_reasoning(&mut self) -> bool {
        let Some(ChatEvent::End(end @ (EndReason::Stop | EndReason::Length))) = self.queue.back()
        else {
            return false;
        };
        let spent = match (end, self.request.sampling.max_tokens) {
            (EndReason::Length, Some(limit)) => {
                format!("spent its limit of {limit} tokens on reasoning")
            }
            (EndReason::Length, None) => "filled its context window with reasoning".to_owned(),
            _ => "reasoned but wrote no answer".to_owned(),
        };
        let quirks = self.adapter.endpoint().quirks.lock().clone();
        let without = ChatRequest {
            think: Think::Off,
            ..self.request.clone()
        };
        let body = |request: &ChatRequest| self.adapter.body(request, &quirks).ok();
        if body(&without) == body(&self.request) {
            return false;
        }
        self.queue.pop_back();
        let message = format!("the model {spent}");
        self.queue.push_back(ChatEvent::Retry {
            error: ModelError::new(ErrorClass::CutOff, message.clone()),
            wait: Duration::ZERO,
        });
        self.queue.push_back(ChatEvent::Notice(format!(
            "{message}; retrying with reasoning off"
        )));
        self.request = without;
        self.stage = Stage::Send;
        true
    }

    /// Fails the call with a timeout; `flag` raises `limit`.
    fn time_out(&mut self, limit: Duration, what: &str, flag: &str) {
        let (error, flag) = if Instant::now() >= self.deadline {
            let total = self.adapter.endpoint().connection.client.timeouts().total;
            let error = format!(
                "the call took longer than {} s in total",
                total.as_secs_f32()
            );
            (error, "--timeout-total")
        } else {
            (format!("{what} within {} s", limit.as_secs_f32()), flag)
        };
        self.fail(
            ModelError::new(ErrorClass::Transient, error).with_hint(format!(
                "the server may be overloaded; raise `{flag}` to wait longer"
            )),
        );
    }

    /// Whether a server that answered in this run refuses connections, for at most the time of a restart.
    fn restarts(&self, error: &ModelError) -> bool {
        let endpoint = self.adapter.endpoint();
        error.class == ErrorClass::Unreachable
            && endpoint.connection.retries.max_retries > 0
            && endpoint.connection.client.is_known_to_answer(&endpoint.url)
            && self
                .refused_since
                .is_none_or(|since| since.elapsed() < RESTART)
    }

    /// Retries the call or fails it for good.
    fn fail(&mut self, error: ModelError) {
        let connection = &self.adapter.endpoint().connection;
        let error = connection.locate(error, &self.adapter.endpoint().url);
        let policy = connection.retries;
        if self.restarts(&error) && Instant::now() + RESTART_POLL < self.deadline {
            if self.refused_since.is_none() {
                self.refused_since = Some(Instant::now());
                let wait = RESTART;
                self.queue.push_back(ChatEvent::Retry { error, wait });
            }
            self.stage = Stage::Wait(RESTART_POLL);
            return;
        }
        if is_busy(&error) && policy.max_retries > 0 {
            // The server is busy with another run; this does not count as a failure of this one.
            let wait = policy.busy_wait(self.busy);
            if Instant::now() + wait < self.deadline {
                self.busy += 1;
                self.queue.push_back(ChatEvent::Retry { error, wait });
                self.stage = Stage::Wait(wait);
                return;
            }
        }
        let most = if is_crash(&error) {
            policy.max_retries.min(1)
        } else {
            policy.max_retries
        };
        if error.class.is_retryable() && self.retries < most {
            let wait = policy.wait(self.retries, error.retry_after);
            if Instant::now() + wait < self.deadline {
                self.retries += 1;
                self.queue.push_back(ChatEvent::Retry { error, wait });
                self.stage = Stage::Wait(wait);
                return;
            }
        }
        self.stage = Stage::Fail(Box::new(with_advice(error)));
    }
}

/// Reads and discards the rest of a body, so that the connection can be reused.
async fn drain(body: &mut Response) {
    while let Ok(Some(_)) = body.chunk().await {}
}

/// Whether the server is at capacity, by Ollama's message.
fn is_busy(error: &ModelError) -> bool {
    error.status == Some(503) && error.message.contains("server busy")
}

/// Whether the process that runs the model died; it may die again.
fn is_crash(error: &ModelError) -> bool {
    let dies = ["terminated", "unexpectedly stopped", "unexpected EOF"];
    error.class == ErrorClass::Transient && dies.iter().any(|words| error.message.contains(words))
}

/// Adds a generic hint if there is none.
fn with_advice(error: ModelError) -> ModelError {
    let advice = match error.class {
        _ if error.hint.is_some() => return error,
        ErrorClass::Protocol => "check that a chat server runs at that address",
        class if class.is_retryable() => {
            "the error may be temporary: try again later, or allow more retries with `--retries`"
        }
        _ => return error,
    };
    error.with_hint(advice)
}
