//! A scripted HTTP server that speaks Ollama's `/api/chat` and `OpenAI`'s `/v1/chat/completions`.
//!
//! ```ignore
//! let server = Server::start();
//! server.reply_text("A first draft.");                    // the next call
//! server.reply_verdict(json!({"score": 0.4}));            // the one after it
//! server.fault(Fault::status(503));                       // then a failure
//! server.on(Purpose::Write, |_| Reply::text("Again."));   // all further calls that write
//! run(&["--base-url", &server.openai_url()]);
//! assert_eq!(server.calls(), 4);
//! ```
//!
//! A call is a chat request. Requests about models are answered automatically and only recorded.

mod http;
mod reply;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use self::http::Recorded;
use self::reply::Response;
pub use self::reply::{Chunks, Fault, Protocol, Reply};

/// The purpose of a call, as the server guesses it: a call with a schema judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    Write,
    Judge,
}

type Handler = Arc<dyn Fn(&Recorded) -> Planned + Send + Sync>;

/// The planned response to a call: a reply or a failure.
pub enum Planned {
    Reply(Box<Reply>),
    Fault(Box<Fault>),
}

impl From<Reply> for Planned {
    fn from(reply: Reply) -> Self {
        Self::Reply(Box::new(reply))
    }
}

impl From<Fault> for Planned {
    fn from(fault: Fault) -> Self {
        Self::Fault(Box::new(fault))
    }
}

impl Planned {
    fn response(&self, protocol: Protocol, streams: bool) -> Response {
        match self {
            Self::Reply(reply) => reply.response(protocol, streams),
            Self::Fault(fault) => fault.response(protocol, streams),
        }
    }
}

/// A scripted server. It stops when it is dropped.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Planned>,
    faults: BTreeMap<usize, Fault>,
    handlers: BTreeMap<Purpose, Handler>,
    requests: Vec<Recorded>,
    calls: usize,
    busy: Duration,
    connections: usize,
    closing: bool,
    /// How many requests on new connections are closed unread.
    resets: usize,
    models: Vec<(String, u64)>,
    /// The recorded model list of an Ollama server, which replaces `models`.
    tags: Option<Value>,
}

impl Shared {
    /// Whether to close the connection without reading the request.
    fn closes_unread(&self, kept: bool) -> bool {
        let mut state = self.state();
        if kept {
            return state.closing;
        }
        let reset = state.resets > 0;
        state.resets = state.resets.saturating_sub(1);
        reset
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Starts on a free port of the loopback interface, with one model, `test`, with a window of 8192.
    pub fn start() -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST)
    }

    /// Starts on a free port of this interface.
    pub fn start_on(interface: Ipv4Addr) -> Self {
        let listener = TcpListener::bind((interface, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                models: vec![("test".to_owned(), 8192)],
                ..State::default()
            }),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&accepting);
                shared.state().connections += 1;
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    /// Returns `http://127.0.0.1:PORT`, for `OLLAMA_HOST`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns `http://127.0.0.1:PORT/v1`, for `OPENAI_BASE_URL`.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Plans a reply for the next call without one.
    pub fn reply(&self, reply: Reply) -> &Self {
        self.state().queue.push_back(reply.into());
        self
    }

    /// Plans this text for the next call.
    pub fn reply_text(&self, text: &str) -> &Self {
        self.reply(Reply::text(text))
    }

    /// Plans this value as JSON text for the next call.
    pub fn reply_verdict(&self, verdict: &Value) -> &Self {
        self.reply(Reply::text(&verdict.to_string()))
    }

    /// Plans a failure of the next call.
    pub fn fault(&self, fault: Fault) -> &Self {
        self.state().queue.push_back(fault.into());
        self
    }

    /// Makes call number `call` (from 1) fail. Its planned response moves to the next call.
    pub fn fault_at(&self, call: usize, fault: Fault) -> &Self {
        self.state().faults.insert(call, fault);
        self
    }

    /// Responds to all other calls of a purpose with a reply or a fault.
    pub fn on<R: Into<Planned>>(
        &self,
        purpose: Purpose,
        handler: impl Fn(&Recorded) -> R + Send + Sync + 'static,
    ) -> &Self {
        let handler: Handler = Arc::new(move |request| handler(request).into());
        self.state().handlers.insert(purpose, handler);
        self
    }

    /// From now on, closes each kept connection when the next request arrives on it, without reading it.
    /// (llama.cpp's server closes each connection after a response without announcing it. Whether a client is
    /// affected depends on timing; here it always is.)
    pub fn close_kept_connections(&self) -> &Self {
        self.state().closing = true;
        self
    }

    /// Sets the models of the server, with their windows.
    pub fn models(&self, models: &[(&str, u64)]) -> &Self {
        self.state().models = models
            .iter()
            .map(|(name, window)| ((*name).to_owned(), *window))
            .collect();
        self
    }

    /// Sets a recorded response to `/api/tags`. `/api/show` knows its models, and `/api/ps` lists those under
    /// `loaded`.
    pub fn tags(&self, recorded: &str) -> &Self {
        self.state().tags = serde_json::from_str(recorded).ok();
        self
    }

    /// Returns all requests so far, including those about models.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state().requests.clone()
    }

    /// Returns all chat requests so far.
    pub fn chats(&self) -> Vec<Recorded> {
        let mut requests = self.requests();
        requests.retain(Recorded::is_chat);
        requests
    }

    /// Returns the number of chat requests so far.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// Returns the total time from reading a chat request to having written its response.
    pub fn busy(&self) -> Duration {
        self.state().busy
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.state().connections
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let mut connection = http::Connection::new(stream);
    let mut kept = false;
    while let Some(request) = connection.read() {
        if shared.stopped.load(Ordering::SeqCst) || shared.closes_unread(kept) {
            return;
        }
        let begun = Instant::now();
        let response = answer(&request, shared);
        let written = connection.write(&response);
        if request.is_chat() {
            shared.state().busy += begun.elapsed();
        }
        if !written {
            // A call without a response is closed twice: if a kept connection is closed, the client retries
            // immediately on a new one.
            shared.state().resets += usize::from(kept && response.is_reset());
            return;
        }
        kept = true;
    }
}

fn answer(request: &Recorded, shared: &Shared) -> Response {
    let mut state = shared.state();
    state.requests.push(request.clone());
    if !request.is_chat() {
        if let Some(tags) = &state.tags
            && let Some(response) = recorded(request, tags)
        {
            return response;
        }
        return about_models(request, &state.models);
    }
    state.calls += 1;
    let call = state.calls;
    let protocol = request.protocol();
    let streams = request.body["stream"] != json!(false);
    if let Some(fault) = state.faults.remove(&call) {
        return fault.response(protocol, streams);
    }
    if let Some(planned) = state.queue.pop_front() {
        return planned.response(protocol, streams);
    }
    let handler = state.handlers.get(&request.purpose()).cloned();
    // A handler may take a long time, or use the server.
    drop(state);
    match handler {
        Some(handler) => handler(request).response(protocol, streams),
        None => Response::json(
            500,
            &json!({"error": {"message": format!("the test has no reply for call {call}")}}),
        ),
    }
}

/// Returns the response about models from a recorded list; `None` for other requests.
fn recorded(request: &Recorded, tags: &Value) -> Option<Response> {
    match request.path.as_str() {
        "/api/tags" => Some(Response::json(200, tags)),
        "/api/ps" => Some(Response::json(200, &json!({"models": tags["loaded"]}))),
        "/api/version" => Some(Response::json(200, &json!({"version": "0.32.1"}))),
        "/api/show" => {
            let wanted = &request.body["model"];
            let mut models = tags["models"].as_array()?.iter();
            let mut shown = models.find(|model| model["name"] == *wanted)?.clone();
            shown["model_info"] = json!({"llama.context_length": 8192});
            Some(Response::json(200, &shown))
        }
        _ => None,
    }
}

fn about_models(request: &Recorded, models: &[(String, u64)]) -> Response {
    let path = request.path.as_str();
    match path.trim_start_matches("/v1") {
        "/api/tags" => Response::json(
            200,
            &json!({"models": models.iter().map(|(name, _)| json!({
                "name": name, "model": name, "size": 1_000_000,
                "details": {"parameter_size": "1.0B", "quantization_level": "Q4_K_M"},
            })).collect::<Vec<_>>()}),
        ),
        "/api/show" => {
            let wanted = request.body["model"].as_str().unwrap_or_default();
            match models.iter().find(|(name, _)| name == wanted) {
                Some((_, window)) => Response::json(
                    200,
                    &json!({"model_info": {"general.architecture": "test", "test.context_length": window}}),
                ),
                None => Response::json(
                    404,
                    &json!({"error": format!("model '{wanted}' not found")}),
                ),
            }
        }
        "/models" => Response::json(
            200,
            &json!({"object": "list", "data": models.iter().map(|(name, window)| json!({
                "id": name, "object": "model", "context_length": window,
            })).collect::<Vec<_>>()}),
        ),
        _ => Response::json(
            404,
            &json!({"error": {"message": format!("no route {path}")}}),
        ),
    }
}
