//! Responses of the server, in either protocol.

use std::time::Duration;

use serde_json::{Value, json};

/// The protocol of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Ollama,
    OpenAi,
}

/// How the bytes of a response are cut into HTTP chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chunks {
    /// One per frame.
    Frames,
    /// This many bytes each, cutting through anything.
    Bytes(usize),
    /// A single chunk.
    One,
}

/// A successful reply.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent option of the framing"
)]
pub struct Reply {
    pieces: Vec<String>,
    reasoning: Vec<String>,
    refusal: Option<String>,
    usage: Option<(u64, u64, Option<u64>)>,
    finish: String,
    logprobs: Option<Value>,
    first_wait: Duration,
    wait: Duration,
    chunks: Chunks,
    line_end: &'static str,
    comments: bool,
    glued: bool,
    done_marker: bool,
    final_newline: bool,
}

impl Reply {
    /// Creates a reply with a text, in one piece.
    pub fn text(text: &str) -> Self {
        Self::pieces(&[text])
    }

    /// Creates a reply with a text in pieces.
    pub fn pieces(pieces: &[&str]) -> Self {
        Self {
            pieces: pieces.iter().map(|piece| (*piece).to_owned()).collect(),
            reasoning: Vec::new(),
            refusal: None,
            usage: Some((100, 20, None)),
            finish: "stop".to_owned(),
            logprobs: None,
            first_wait: Duration::ZERO,
            wait: Duration::ZERO,
            chunks: Chunks::Frames,
            line_end: "\n",
            comments: false,
            glued: false,
            done_marker: true,
            final_newline: true,
        }
    }

    /// Creates an empty reply.
    pub fn empty() -> Self {
        Self::pieces(&[])
    }

    /// Creates a reply cut by the token limit.
    pub fn cut_by_length(text: &str) -> Self {
        Self::text(text).finish("length")
    }

    /// Creates a refusal.
    pub fn refusal(words: &str) -> Self {
        Self {
            refusal: Some(words.to_owned()),
            ..Self::pieces(&[])
        }
        .finish("content_filter")
    }

    /// Creates a reply that contains only reasoning.
    pub fn reasoning_only(text: &str) -> Self {
        Self::pieces(&[]).reasoning(text)
    }

    /// Adds reasoning, in a separate field.
    pub fn reasoning(mut self, text: &str) -> Self {
        self.reasoning.push(text.to_owned());
        self
    }

    /// Sets the finish reason; an empty one omits it.
    pub fn finish(mut self, reason: &str) -> Self {
        reason.clone_into(&mut self.finish);
        self
    }

    /// Sets token counts: prompt, completion, cached. The default is 100, 20 and none.
    pub fn usage(mut self, prompt: u64, completion: u64, cached: Option<u64>) -> Self {
        self.usage = Some((prompt, completion, cached));
        self
    }

    /// Removes token counts.
    pub fn no_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// Adds log-probabilities: a list of `{token, logprob, top_logprobs}`, sent with the first piece.
    pub fn logprobs(mut self, tokens: Value) -> Self {
        self.logprobs = Some(tokens);
        self
    }

    /// Waits before the first piece.
    pub fn first_wait(mut self, time: Duration) -> Self {
        self.first_wait = time;
        self
    }

    /// Waits between pieces.
    pub fn wait(mut self, time: Duration) -> Self {
        self.wait = time;
        self
    }

    /// Cuts the bytes differently.
    pub fn chunks(mut self, chunks: Chunks) -> Self {
        self.chunks = chunks;
        self
    }

    /// Uses `\r
    /// ` as the line end.
    pub fn crlf(mut self) -> Self {
        self.line_end = "\r\n";
        self
    }

    /// Adds comments, and fields other than `data`, between the events.
    pub fn comments(mut self) -> Self {
        self.comments = true;
        self
    }

    /// Removes the separators between events.
    pub fn glued(mut self) -> Self {
        self.glued = true;
        self
    }

    /// Omits `[DONE]`.
    pub fn no_done_marker(mut self) -> Self {
        self.done_marker = false;
        self
    }

    /// Omits the last line end.
    pub fn no_final_newline(mut self) -> Self {
        self.final_newline = false;
        self
    }

    pub(super) fn response(&self, protocol: Protocol, streams: bool) -> Response {
        if !streams && protocol == Protocol::OpenAi {
            return Response::json(200, &self.whole());
        }
        let mut steps = vec![Step::Wait(self.first_wait)];
        let frames = self.frames(protocol);
        if self.wait.is_zero() && self.chunks != Chunks::Frames {
            let bytes = frames.concat().into_bytes();
            let size = match self.chunks {
                Chunks::Bytes(size) => size.max(1),
                _ => bytes.len().max(1),
            };
            steps.extend(bytes.chunks(size).map(|part| Step::Send(part.to_vec())));
        } else {
            for frame in frames {
                steps.push(Step::Send(frame.into_bytes()));
                steps.push(Step::Wait(self.wait));
            }
        }
        steps.retain(|step| !matches!(step, Step::Wait(time) if time.is_zero()));
        Response {
            status: 200,
            headers: vec![("Content-Type".to_owned(), content_type(protocol).to_owned())],
            steps,
            headless: false,
        }
    }

    /// Returns the frames, each with its line end.
    fn frames(&self, protocol: Protocol) -> Vec<String> {
        let mut frames = Vec::new();
        let values = match protocol {
            Protocol::Ollama => self.ollama_lines(),
            Protocol::OpenAi => self.openai_chunks(),
        };
        let end = self.line_end;
        for value in values {
            frames.push(match protocol {
                Protocol::Ollama => format!("{value}{end}"),
                Protocol::OpenAi => {
                    let before = if self.comments {
                        format!(": PROCESSING{end}{end}event: message{end}id: 1{end}")
                    } else {
                        String::new()
                    };
                    let after = if self.glued { "" } else { end };
                    format!("{before}data: {value}{end}{after}")
                }
            });
        }
        if protocol == Protocol::OpenAi && self.done_marker {
            frames.push(format!("data: [DONE]{end}{end}"));
        }
        if !self.final_newline
            && let Some(last) = frames.last_mut()
        {
            let length = last.trim_end().len();
            last.truncate(length);
        }
        frames
    }

    fn openai_chunks(&self) -> Vec<Value> {
        let chunk = |delta: Value| {
            json!({"id": "c", "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
        };
        let mut chunks = vec![chunk(json!({"role": "assistant", "content": null}))];
        for text in &self.reasoning {
            chunks.push(chunk(json!({"reasoning_content": text})));
        }
        for (index, text) in self.pieces.iter().enumerate() {
            let mut value = chunk(json!({"content": text}));
            if let Some(tokens) = self.logprobs.as_ref().filter(|_| index == 0) {
                value["choices"][0]["logprobs"] = json!({"content": tokens});
            }
            chunks.push(value);
        }
        if let Some(refusal) = &self.refusal {
            chunks.push(chunk(json!({"refusal": refusal})));
        }
        if !self.finish.is_empty() {
            let mut last = chunk(json!({}));
            last["choices"][0]["finish_reason"] = json!(self.finish);
            chunks.push(last);
        }
        if let Some(usage) = self.openai_usage() {
            chunks.push(
                json!({"id": "c", "object": "chat.completion.chunk", "choices": [],
                "usage": usage}),
            );
        }
        chunks
    }

    fn openai_usage(&self) -> Option<Value> {
        let (prompt, completion, cached) = self.usage?;
        let mut usage = json!({"prompt_tokens": prompt, "completion_tokens": completion,
            "total_tokens": prompt + completion});
        if let Some(cached) = cached {
            usage["prompt_tokens_details"] = json!({"cached_tokens": cached});
        }
        Some(usage)
    }

    /// Returns the response without streaming.
    fn whole(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.pieces.concat()});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning.concat());
        }
        if let Some(refusal) = &self.refusal {
            message["refusal"] = json!(refusal);
        }
        let mut value = json!({"id": "c", "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": self.finish}]});
        if let Some(tokens) = &self.logprobs {
            value["choices"][0]["logprobs"] = json!({"content": tokens});
        }
        if let Some(usage) = self.openai_usage() {
            value["usage"] = usage;
        }
        value
    }

    fn ollama_lines(&self) -> Vec<Value> {
        let line = |message: Value| json!({"model": "test", "message": message, "done": false});
        let mut lines = Vec::new();
        for text in &self.reasoning {
            lines.push(line(
                json!({"role": "assistant", "content": "", "thinking": text}),
            ));
        }
        for (index, text) in self.pieces.iter().enumerate() {
            let mut value = line(json!({"role": "assistant", "content": text}));
            if let Some(tokens) = self.logprobs.as_ref().filter(|_| index == 0) {
                value["logprobs"] = tokens.clone();
            }
            lines.push(value);
        }
        if !self.finish.is_empty() {
            let mut last = line(json!({"role": "assistant", "content": ""}));
            last["done"] = json!(true);
            last["done_reason"] = json!(self.finish);
            if let Some((prompt, completion, _)) = self.usage {
                last["prompt_eval_count"] = json!(prompt);
                last["eval_count"] = json!(completion);
            }
            lines.push(last);
        }
        lines
    }
}

/// A failure.
#[derive(Debug, Clone)]
pub enum Fault {
    /// An error status, with headers and a body.
    Status {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// The connection is closed without a response. If it was a kept one, so is the new connection on which
    /// the client retries.
    Reset,
    /// The connection is closed in the middle of this reply.
    Cut(Reply),
    /// The reply ends after these pieces, without a terminal event.
    Unfinished(Vec<String>),
    /// An error status with the beginning of a body; the rest is delayed by this time.
    HangingError(u16, Duration),
    /// Nothing is sent for this time.
    SlowFirst(Duration),
    /// After these pieces, nothing is sent for this time.
    Idle(Vec<String>, Duration),
    /// An error event after these pieces.
    ErrorInside(Vec<String>, Value),
    /// These raw bytes in a response with status 200.
    Raw(Vec<u8>),
}

impl Fault {
    /// Creates an error status with a plain message in the protocol's usual form.
    pub fn status(status: u16) -> Self {
        Self::error(
            status,
            &json!({"error": {"message": format!("scripted status {status}")}}),
        )
    }

    /// Creates an error status with a JSON body.
    pub fn error(status: u16, body: &Value) -> Self {
        Self::Status {
            status,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    /// Creates a 429 with the time to wait in a header.
    pub fn rate_limit(header: &str, value: &str) -> Self {
        Self::Status {
            status: 429,
            headers: vec![(header.to_owned(), value.to_owned())],
            body: json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}})
                .to_string(),
        }
    }

    pub(super) fn response(&self, protocol: Protocol, streams: bool) -> Response {
        let unfinished = |pieces: &[String]| {
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            Reply::pieces(&pieces)
                .finish("")
                .no_usage()
                .no_done_marker()
        };
        match self {
            Self::Status {
                status,
                headers,
                body,
            } => {
                let mut response = Response {
                    status: *status,
                    headers: headers.clone(),
                    steps: vec![Step::Send(body.clone().into_bytes())],
                    headless: false,
                };
                response
                    .steps
                    .retain(|step| !matches!(step, Step::Send(bytes) if bytes.is_empty()));
                response
            }
            Self::HangingError(status, time) => Response {
                status: *status,
                headers: Vec::new(),
                steps: vec![
                    Step::Send(b"{\"error\": \"".to_vec()),
                    Step::Wait(*time),
                    Step::Close,
                ],
                headless: false,
            },
            Self::Reset => Response {
                status: 0,
                headers: Vec::new(),
                steps: vec![Step::Close],
                headless: true,
            },
            Self::Cut(reply) => {
                let mut response = reply.response(protocol, streams);
                let half = response.steps.len().div_ceil(2);
                response.steps.truncate(half);
                response.steps.push(Step::Close);
                response
            }
            Self::Unfinished(pieces) => unfinished(pieces).response(protocol, streams),
            Self::SlowFirst(time) => {
                let mut response = Reply::text("too late").response(protocol, streams);
                response.headless = true;
                response.steps = vec![Step::Wait(*time), Step::Close];
                response
            }
            Self::Idle(pieces, time) => {
                let mut response = unfinished(pieces).response(protocol, true);
                response.steps.extend([Step::Wait(*time), Step::Close]);
                response
            }
            Self::ErrorInside(pieces, error) => {
                let mut response = unfinished(pieces).response(protocol, true);
                let frame = match protocol {
                    Protocol::Ollama => format!("{}\n", json!({"error": error})),
                    Protocol::OpenAi => format!("data: {}\n\n", json!({"error": error})),
                };
                response.steps.push(Step::Send(frame.into_bytes()));
                response
            }
            Self::Raw(bytes) => Response {
                status: 200,
                headers: vec![("Content-Type".to_owned(), content_type(protocol).to_owned())],
                steps: if bytes.is_empty() {
                    Vec::new()
                } else {
                    vec![Step::Send(bytes.clone())]
                },
                headless: false,
            },
        }
    }
}

fn content_type(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Ollama => "application/x-ndjson",
        Protocol::OpenAi => "text/event-stream",
    }
}

/// A response, step by step.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, String)>,
    pub(super) steps: Vec<Step>,
    /// Whether to omit even the status line and headers.
    pub(super) headless: bool,
}

pub(super) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    Close,
}

impl Response {
    /// Whether the connection is closed without a response.
    pub(super) fn is_reset(&self) -> bool {
        self.headless && matches!(self.steps.as_slice(), [Step::Close])
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
            steps: vec![Step::Send(body.to_string().into_bytes())],
            headless: false,
        }
    }
}
