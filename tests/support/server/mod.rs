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
//! A call is a request for a chat; questions about models are answered by themselves and only recorded.

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

/// What a call is for, as the server guesses it: a call with a schema judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    Write,
    Judge,
}

type Handler = Arc<dyn Fn(&Recorded) -> Planned + Send + Sync>;

/// What a call gets: an answer or a failure.
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

/// The server. It stops when it is dropped.
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
    /// What an Ollama lists, word for word, in place of `models`.
    tags: Option<Value>,
}

impl Shared {
    /// Whether a request is not even looked at.
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
    /// Starts on a free port of the loopback interface. It has one model, `test`, with a window of
    /// 8192.
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

    /// `http://127.0.0.1:PORT`, what `OLLAMA_HOST` takes.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://127.0.0.1:PORT/v1`, what `OPENAI_BASE_URL` takes.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next call that nothing was planned for gets this.
    pub fn reply(&self, reply: Reply) -> &Self {
        self.state().queue.push_back(reply.into());
        self
    }

    /// The next call gets this text.
    pub fn reply_text(&self, text: &str) -> &Self {
        self.reply(Reply::text(text))
    }

    /// The next call gets this value as JSON text.
    pub fn reply_verdict(&self, verdict: &Value) -> &Self {
        self.reply(Reply::text(&verdict.to_string()))
    }

    /// The next call fails.
    pub fn fault(&self, fault: Fault) -> &Self {
        self.state().queue.push_back(fault.into());
        self
    }

    /// Call number `call` (from 1) fails, whatever is planned for it; the plan moves to the call after
    /// it.
    pub fn fault_at(&self, call: usize, fault: Fault) -> &Self {
        self.state().faults.insert(call, fault);
        self
    }

    /// Answers the calls of a purpose that nothing else was planned for, with a reply or a fault.
    pub fn on<R: Into<Planned>>(
        &self,
        purpose: Purpose,
        handler: impl Fn(&Recorded) -> R + Send + Sync + 'static,
    ) -> &Self {
        let handler: Handler = Arc::new(move |request| handler(request).into());
        self.state().handlers.insert(purpose, handler);
        self
    }

    /// From now on a kept connection is closed as soon as the next request on it arrives, unread. (llama.cpp's
    /// server closes each connection after an answer without saying so; whether the client meets that depends
    /// on the moment. Here it always does.)
    pub fn close_kept_connections(&self) -> &Self {
        self.state().closing = true;
        self
    }

    /// The models that the server has, with their windows.
    pub fn models(&self, models: &[(&str, u64)]) -> &Self {
        self.state().models = models
            .iter()
            .map(|(name, window)| ((*name).to_owned(), *window))
            .collect();
        self
    }

    /// What `/api/tags` answers, as a server was recorded; `/api/show` knows these models. `/api/ps` answers with the
    /// models under `loaded`.
    pub fn tags(&self, recorded: &str) -> &Self {
        self.state().tags = serde_json::from_str(recorded).ok();
        self
    }

    /// Every request so far, questions about models included.
    pub fn requests(&self) -> Vec<Recorded> {
        self.state().requests.clone()
    }

    /// Every request for a chat so far.
    pub fn chats(&self) -> Vec<Recorded> {
        let mut requests = self.requests();
        requests.retain(Recorded::is_chat);
        requests
    }

    /// How many chats were asked for.
    pub fn calls(&self) -> usize {
        self.state().calls
    }

    /// The time from having read a request for a chat to having written its answer, of all of them.
    pub fn busy(&self) -> Duration {
        self.state().busy
    }

    /// How many connections were made.
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
        // Wakes the thread that waits for connections.
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
            // A call that goes without an answer does so twice: the client asks again at once, on a new
            // connection, where a kept one dies.
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
    // A handler may take its time, or look at the server.
    drop(state);
    match handler {
        Some(handler) => handler(request).response(protocol, streams),
        None => Response::json(
            500,
            &json!({"error": {"message": format!("the test has no reply for call {call}")}}),
        ),
    }
}

/// What is answered about the models of a recorded list; `None` to anything else.
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
