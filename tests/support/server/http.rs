//! A minimal HTTP/1.1 server: requests with a length, chunked responses, keep-alive connections.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread;

use serde_json::Value;

use super::Purpose;
use super::reply::{Protocol, Response, Step};

/// A received request.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub method: String,
    /// The path without the query.
    pub path: String,
    pub query: Option<String>,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    /// Null if the body is not JSON.
    pub body: Value,
}

impl Recorded {
    /// Returns a header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }

    /// Whether it is a chat request.
    pub fn is_chat(&self) -> bool {
        self.path.ends_with("/api/chat") || self.path.ends_with("/chat/completions")
    }

    /// Returns the protocol of its path.
    pub fn protocol(&self) -> Protocol {
        if self.path.ends_with("/api/chat") {
            Protocol::Ollama
        } else {
            Protocol::OpenAi
        }
    }

    /// Returns the purpose of the call: one with a schema judges.
    pub fn purpose(&self) -> Purpose {
        if self.body.get("format").is_some() || self.body.get("response_format").is_some() {
            Purpose::Judge
        } else {
            Purpose::Write
        }
    }

    /// Returns the text of all messages, one after the other.
    pub fn prompt(&self) -> String {
        let messages = self.body["messages"].as_array();
        let contents = messages.into_iter().flatten();
        contents
            .filter_map(|message| message["content"].as_str())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

pub(super) struct Connection {
    reader: BufReader<TcpStream>,
}

impl Connection {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            reader: BufReader::new(stream),
        }
    }

    /// Reads the next request; `None` if the client has closed the connection.
    pub(super) fn read(&mut self) -> Option<Recorded> {
        if !self.reader.fill_buf().ok()?.first()?.is_ascii_uppercase() {
            // A TLS client gets the same response as from other servers.
            let refusal = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
            let _ = self.reader.get_mut().write_all(refusal);
            return None;
        }
        let first = self.line()?;
        let mut parts = first.split_whitespace();
        let method = parts.next()?.to_owned();
        let target = parts.next()?.to_owned();
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers
            .iter()
            .find(|(name, _)| name == "content-length")
            .and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).ok()?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (target, None),
        };
        Some(Recorded {
            method,
            path,
            query,
            headers,
            body: serde_json::from_slice(&body).unwrap_or_default(),
        })
    }

    /// Writes a response. Returns whether the connection can be reused.
    pub(super) fn write(&mut self, response: &Response) -> bool {
        let stream = self.reader.get_mut();
        let mut head = format!("HTTP/1.1 {} Test\r\n", response.status);
        for (name, value) in &response.headers {
            head = head + name + ": " + value + "\r\n";
        }
        head.push_str("Transfer-Encoding: chunked\r\n\r\n");
        // Data without a wait in between is sent in one write.
        let mut pending = if response.headless {
            Vec::new()
        } else {
            head.into_bytes()
        };
        for step in &response.steps {
            match step {
                Step::Send(bytes) => {
                    pending.extend_from_slice(format!("{:x}\r\n", bytes.len()).as_bytes());
                    pending.extend_from_slice(bytes);
                    pending.extend_from_slice(b"\r\n");
                }
                Step::Wait(time) => {
                    if stream.write_all(&pending).is_err() {
                        return false;
                    }
                    pending.clear();
                    thread::sleep(*time);
                }
                Step::Close => {
                    let _ = stream.write_all(&pending);
                    return false;
                }
            }
        }
        pending.extend_from_slice(b"0\r\n\r\n");
        stream.write_all(&pending).is_ok()
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let length = self.reader.read_line(&mut line).ok()?;
        (length > 0).then(|| line.trim_end().to_owned())
    }
}
