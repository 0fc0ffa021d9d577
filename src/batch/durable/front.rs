//! The workers' side for the server: serves what it asks, and shares it out where this worker is the front.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http_body_util::BodyExt as _;
use hyper::body::{Bytes, Frame, Incoming, SizeHint};
use hyper::client::conn::http2::SendRequest;
use hyper::http::{HeaderValue, Request, Response, StatusCode};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::{Mutex, MutexGuard};
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::Endpoint;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::limits::Limits;
use super::wire::{self, Body, BoxError};
use super::workflow::{Begin, TASK, Tasks};

/// Where workers say that they are there.
pub(super) const JOIN: &str = "/reflect/join";

/// Says that a request has been shared out already.
const SHARED: &str = "x-reflect-shared";

/// After this time without a word a worker is taken to be gone.
const SILENCE: Duration = Duration::from_secs(4);

/// The longest that a worker's word may be.
const LONGEST: usize = 4096;

/// How often a quiet connection is tried, and how long an answer to that may take.
const ALIVE: Duration = Duration::from_secs(10);

/// A worker says that it is there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Join {
    /// Where, as `HOST:PORT`.
    pub(super) address: String,
    /// How much it can take, in proportion to others.
    pub(super) slots: usize,
}

/// Serves the server's requests.
#[derive(Clone)]
pub struct Front(Arc<Inner>);

struct Inner {
    endpoint: HyperEndpoint,
    own: Share,
    members: Mutex<HashMap<String, Member>>,
}

/// Another worker.
struct Member {
    share: Share,
    seen: Instant,
    connection: Option<SendRequest<Body>>,
}

/// How much of the work one worker has.
#[derive(Debug, Clone, Default)]
struct Share {
    under_way: Arc<AtomicUsize>,
    slots: Arc<AtomicUsize>,
}

impl Share {
    /// Whether it has less to do than another, for what each can take, once both have one more.
    fn is_less_than(&self, other: &Self) -> bool {
        let of = |it: &Self| {
            (
                it.under_way.load(Ordering::Relaxed) + 1,
                it.slots.load(Ordering::Relaxed).max(1),
            )
        };
        let ((mine, my_slots), (others, other_slots)) = (of(self), of(other));
        mine * other_slots < others * my_slots
    }

    fn take(&self) -> Taken {
        self.under_way.fetch_add(1, Ordering::Relaxed);
        Taken(Arc::clone(&self.under_way))
    }
}

/// A piece of work; given back when it is dropped.
struct Taken(Arc<AtomicUsize>);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Front {
    /// A front whose own tasks go to this desk.
    pub fn new(desk: mpsc::UnboundedSender<Begin>) -> Self {
        let endpoint = Endpoint::builder()
            .bind(Tasks { desk })
            .bind(Limits)
            .build();
        Self(Arc::new(Inner {
            endpoint: HyperEndpoint::new(endpoint),
            own: Share::default(),
            members: Mutex::default(),
        }))
    }

    /// Sets how much this worker can take itself.
    pub fn set_slots(&self, slots: usize) {
        self.0.own.slots.store(slots, Ordering::Relaxed);
    }

    /// How many workers share the work that comes here.
    pub fn workers(&self) -> usize {
        let members = self.members();
        1 + members.values().filter(|it| it.is_there()).count()
    }

    /// How many tasks are under way on this worker.
    pub fn under_way(&self) -> usize {
        self.0.own.under_way.load(Ordering::Relaxed)
    }

    /// Serves whoever connects, for ever.
    pub async fn serve(self, listener: TcpListener) {
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // Too many open files, for example: that passes.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let _ = stream.set_nodelay(true);
            let front = self.clone();
            let service = service_fn(move |request| {
                let front = front.clone();
                async move { Ok::<_, Infallible>(front.answer(request).await) }
            });
            let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(ALIVE)
                .max_concurrent_streams(None)
                .serve_connection(TokioIo::new(stream), service);
            // Who was connected notices by itself that the connection has ended.
            tokio::spawn(async move {
                let _ = connection.await;
            });
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        if path == JOIN {
            return self.joined(request).await;
        }
        let is_task = path.contains(&format!("/invoke/{TASK}/"));
        if !is_task {
            return self.own(request);
        }
        if request.headers().contains_key(SHARED) {
            let taken = self.0.own.take();
            return self.own(request).map(|body| counted(body, taken));
        }
        while let Some((address, taken)) = self.least() {
            // A worker that is gone has not seen the request: another gets it.
            if let Some(sender) = self.sender(&address).await {
                return Self::pass_on(request, sender, taken).await;
            }
            self.members().remove(&address);
        }
        let taken = self.0.own.take();
        self.own(request).map(|body| counted(body, taken))
    }

    /// Serves a request itself.
    fn own(&self, request: Request<Incoming>) -> Response<Body> {
        let response = self.0.endpoint.call(request).into_inner();
        let response = response.unwrap_or_else(|never| match never {});
        response.map(|body| body.map_err(BoxError::from).boxed_unsync())
    }

    async fn joined(&self, request: Request<Incoming>) -> Response<Body> {
        let body = http_body_util::Limited::new(request.into_body(), LONGEST);
        let join = match body.collect().await {
            Ok(body) => serde_json::from_slice::<Join>(&body.to_bytes()),
            Err(_) => return status(StatusCode::BAD_REQUEST),
        };
        let Ok(join) = join else {
            return status(StatusCode::BAD_REQUEST);
        };
        let mut members = self.members();
        members.retain(|_, member| member.is_there());
        let member = members.entry(join.address).or_insert_with(|| Member {
            share: Share::default(),
            seen: Instant::now(),
            connection: None,
        });
        member.seen = Instant::now();
        member.share.slots.store(join.slots, Ordering::Relaxed);
        status(StatusCode::OK)
    }

    /// The worker with the least to do, if it is another one.
    fn least(&self) -> Option<(String, Taken)> {
        let members = self.members();
        let mut least: Option<(&String, &Share)> = None;
        for (address, member) in members.iter().filter(|(_, it)| it.is_there()) {
            let than = least.map_or(&self.0.own, |(_, share)| share);
            if member.share.is_less_than(than) {
                least = Some((address, &member.share));
            }
        }
        least.map(|(address, share)| (address.clone(), share.take()))
    }

    /// A connection to another worker; `None` where it cannot be reached.
    async fn sender(&self, address: &str) -> Option<SendRequest<Body>> {
        let kept = {
            let members = self.members();
            let kept = members.get(address)?.connection.clone();
            kept.filter(|sender| !sender.is_closed())
        };
        if kept.is_some() {
            return kept;
        }
        let sender = wire::connect(address).await.ok()?;
        if let Some(member) = self.members().get_mut(address) {
            member.connection = Some(sender.clone());
        }
        Some(sender)
    }

    /// Has another worker answer. If it is lost on the way, the server asks again.
    async fn pass_on(
        mut request: Request<Incoming>,
        mut sender: SendRequest<Body>,
        taken: Taken,
    ) -> Response<Body> {
        let shared = HeaderValue::from_static("1");
        request.headers_mut().insert(SHARED, shared);
        let request = request.map(|body| body.map_err(BoxError::from).boxed_unsync());
        match sender.send_request(request).await {
            Ok(response) => response.map(|body| {
                let body = body.map_err(BoxError::from).boxed_unsync();
                counted(body, taken)
            }),
            Err(_) => status(StatusCode::SERVICE_UNAVAILABLE),
        }
    }

    fn members(&self) -> MutexGuard<'_, HashMap<String, Member>> {
        self.0.members.lock()
    }
}

impl Member {
    fn is_there(&self) -> bool {
        self.seen.elapsed() < SILENCE
    }
}

fn status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(wire::whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// An answer that counts as work under way until it is over.
fn counted(body: Body, taken: Taken) -> Body {
    Counted {
        body,
        _taken: taken,
    }
    .boxed_unsync()
}

struct Counted {
    body: Body,
    _taken: Taken,
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(under_way: usize, slots: usize) -> Share {
        let share = Share::default();
        share.under_way.store(under_way, Ordering::Relaxed);
        share.slots.store(slots, Ordering::Relaxed);
        share
    }

    #[test]
    fn work_is_shared_out_by_what_each_can_take() {
        assert!(share(0, 1).is_less_than(&share(1, 1)));
        assert!(!share(1, 1).is_less_than(&share(1, 1)));
        assert!(share(5, 16).is_less_than(&share(1, 4)));
        assert!(!share(8, 16).is_less_than(&share(1, 4)));
        // A worker that can take nothing yet is one that takes one.
        assert!(share(0, 4).is_less_than(&share(0, 0)));
    }

    #[test]
    fn what_is_over_is_given_back() {
        let share = share(0, 1);
        let one = share.take();
        let two = share.take();
        assert_eq!(share.under_way.load(Ordering::Relaxed), 2);
        drop((one, two));
        assert_eq!(share.under_way.load(Ordering::Relaxed), 0);
    }
}
