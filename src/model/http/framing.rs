//! Cuts a stream of bytes into frames: lines (NDJSON), server-sent events, or one whole JSON value.
//!
//! Bytes are decoded only once a whole line is there, so a chunk that ends inside a UTF-8 sequence does
//! no harm. The same bytes give the same frames, however they are cut into chunks.

use std::borrow::Cow;

use memchr::memchr;

use crate::model::{ErrorClass, ModelError};

/// The longest line that is accepted, in bytes; Ollama's own client has the same limit.
pub(crate) const MAX_LINE: usize = 8 * 1024 * 1024;

/// What a server may send in one answer, in bytes. A real answer with log-probabilities stays far
/// below; a server that never stops is stopped here.
pub(crate) const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// How a server divides its answer.
#[derive(Debug)]
pub(crate) enum Framing {
    /// One JSON value on each line.
    Lines(Lines),
    /// Server-sent events, or one plain JSON value from servers that do not stream; the first byte that
    /// is no blank says which.
    Sniff(Vec<u8>),
    /// Server-sent events.
    Events(Events),
    /// One JSON value.
    Whole(Vec<u8>),
}

impl Framing {
    /// For newline-delimited JSON.
    pub(crate) fn lines() -> Self {
        Self::Lines(Lines::default())
    }

    /// For server-sent events, or a plain JSON answer in their place.
    pub(crate) fn events_or_json() -> Self {
        Self::Sniff(Vec::new())
    }

    /// Takes a chunk. `on_frame` gets each frame that it completes.
    pub(crate) fn feed(
        &mut self,
        chunk: &[u8],
        mut on_frame: impl FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        if let Self::Sniff(held) = self {
            let mut held = std::mem::take(held);
            let come = if held.is_empty() {
                chunk
            } else {
                held.extend_from_slice(chunk);
                &held
            };
            let start = without_bom(come);
            *self = match start.iter().find(|byte| !byte.is_ascii_whitespace()) {
                None => Self::Sniff(come.to_vec()),
                // A byte order mark may still be incomplete.
                Some(&0xEF) if start.len() < 3 => Self::Sniff(come.to_vec()),
                Some(b'{' | b'[' | b'<') => Self::Whole(Vec::new()),
                Some(_) => Self::Events(Events::default()),
            };
            if let Self::Sniff(_) = self {
                return Ok(());
            }
            return self.feed(come, on_frame);
        }
        match self {
            Self::Lines(lines) => lines.feed(chunk, |line| {
                let line = decode(line);
                if line.trim().is_empty() {
                    return Ok(());
                }
                on_frame(&line)
            }),
            Self::Events(events) => events.feed(chunk, on_frame),
            Self::Whole(bytes) => {
                if bytes.len() + chunk.len() > MAX_LINE {
                    return Err(too_long());
                }
                bytes.extend_from_slice(chunk);
                Ok(())
            }
            Self::Sniff(_) => Ok(()),
        }
    }

    /// The stream has ended: `on_frame` gets what was not yet closed by a line end.
    pub(crate) fn finish(
        &mut self,
        mut on_frame: impl FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        match self {
            Self::Lines(lines) => {
                let rest = lines.take_rest();
                let rest = decode(&rest);
                if rest.trim().is_empty() {
                    return Ok(());
                }
                on_frame(&rest)
            }
            Self::Events(events) => events.finish(on_frame),
            Self::Whole(bytes) | Self::Sniff(bytes) => {
                let bytes = std::mem::take(bytes);
                let text = decode(without_bom(&bytes));
                if text.trim().is_empty() {
                    return Ok(());
                }
                on_frame(&text)
            }
        }
    }
}

/// Cuts bytes at line ends (`\n` or `\r\n`).
#[derive(Debug, Default)]
pub(crate) struct Lines {
    /// The beginning of a line whose end has not come yet.
    held: Vec<u8>,
}

impl Lines {
    /// `on_line` gets each line that the chunk completes.
    fn feed(
        &mut self,
        mut chunk: &[u8],
        mut on_line: impl FnMut(&[u8]) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        while let Some(end) = memchr(b'\n', chunk) {
            let (head, tail) = chunk.split_at(end);
            chunk = &tail[1..];
            if self.held.len() + head.len() > MAX_LINE {
                return Err(too_long());
            }
            if self.held.is_empty() {
                on_line(without_return(head))?;
            } else {
                self.held.extend_from_slice(head);
                let line = std::mem::take(&mut self.held);
                on_line(without_return(&line))?;
                // The buffer is kept for the next line.
                self.held = line;
                self.held.clear();
            }
        }
        if self.held.len() + chunk.len() > MAX_LINE {
            return Err(too_long());
        }
        self.held.extend_from_slice(chunk);
        Ok(())
    }

    fn take_rest(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.held);
        if rest.last() == Some(&b'\r') {
            rest.pop();
        }
        rest
    }
}

/// Cuts bytes into server-sent events (the `data` of each; other fields say nothing here).
#[derive(Debug, Default)]
pub(crate) struct Events {
    lines: Lines,
    data: EventData,
}

impl Events {
    fn feed(
        &mut self,
        chunk: &[u8],
        mut on_frame: impl FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let Self { lines, data } = self;
        lines.feed(chunk, |line| data.line(&decode(line), &mut on_frame))
    }

    fn finish(
        &mut self,
        mut on_frame: impl FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let rest = self.lines.take_rest();
        self.data.line(&decode(&rest), &mut on_frame)?;
        // An event needs a blank line to end it, but many servers forget the last one.
        self.data.dispatch(&mut on_frame)
    }
}

/// The `data` lines of the event that is being read.
#[derive(Debug, Default)]
struct EventData {
    text: String,
    present: bool,
    begun: bool,
}

impl EventData {
    fn line(
        &mut self,
        line: &str,
        on_frame: &mut impl FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let line = if self.begun {
            line
        } else {
            self.begun = true;
            line.strip_prefix('\u{feff}').unwrap_or(line)
        };
        if line.is_empty() {
            return self.dispatch(on_frame);
        }
        if let Some(value) = line.strip_prefix("data:") {
            self.push(value.strip_prefix(' ').unwrap_or(value))?;
        } else if line.starts_with(['{', '[']) {
            // Some gateways put a bare JSON error between the events.
            self.dispatch(on_frame)?;
            return on_frame(line);
        }
        // Or it is `event:`, `id:`, `retry:`, or a comment (`: keep-alive`).
        Ok(())
    }

    fn push(&mut self, value: &str) -> Result<(), ModelError> {
        if self.text.len() + value.len() > MAX_LINE {
            return Err(too_long());
        }
        if self.present {
            self.text.push('\n');
        }
        self.present = true;
        self.text.push_str(value);
        Ok(())
    }

    fn dispatch(
        &mut self,
        on_frame: &mut impl FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        if !std::mem::take(&mut self.present) {
            return Ok(());
        }
        let said = if self.text.chars().all(char::is_whitespace) {
            Ok(())
        } else {
            on_frame(&self.text)
        };
        self.text.clear();
        said
    }
}

fn decode(line: &[u8]) -> Cow<'_, str> {
    // The check alone is much faster than the replacement, which is hardly ever needed.
    std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn without_bom(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes)
}

fn too_long() -> ModelError {
    ModelError::new(
        ErrorClass::Protocol,
        format!(
            "the server sent a line of more than {} MB",
            MAX_LINE / 1024 / 1024
        ),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frames(mut framing: Framing, chunks: &[&[u8]]) -> Vec<String> {
        let mut all = Vec::new();
        let mut take = |frame: &str| {
            all.push(frame.to_owned());
            Ok(())
        };
        for chunk in chunks {
            framing.feed(chunk, &mut take).unwrap();
        }
        framing.finish(take).unwrap();
        all
    }

    fn events(text: &str) -> Vec<String> {
        frames(Framing::events_or_json(), &[text.as_bytes()])
    }

    #[test]
    fn data_with_and_without_space_and_all_line_ends() {
        assert_eq!(
            events("data: a\n\ndata:b\r\n\r\ndata:  c\n\n"),
            ["a", "b", " c"]
        );
    }

    #[test]
    fn comments_and_other_fields_say_nothing() {
        assert_eq!(
            events(": OPENROUTER PROCESSING\n\nevent: x\nid: 7\nretry: 10\ndata: a\n: b\n\n\n\n"),
            ["a"]
        );
    }

    #[test]
    fn lines_of_one_event_are_joined() {
        assert_eq!(events("data: {\"a\":\ndata: 1}\n\n"), ["{\"a\":\n1}"]);
    }

    #[test]
    fn the_last_event_needs_no_newline() {
        assert_eq!(events("data: a\n\ndata: b"), ["a", "b"]);
        assert_eq!(events("data: a\n\ndata: b\r"), ["a", "b"]);
        assert_eq!(
            frames(Framing::lines(), &[b"{}\n\n{\"a\"", b":1}"]),
            ["{}", "{\"a\":1}"]
        );
    }

    #[test]
    fn plain_json_in_place_of_events_is_one_frame() {
        assert_eq!(events("\n {\"a\":\n\n1}\n"), ["\n {\"a\":\n\n1}\n"]);
    }

    #[test]
    fn bare_json_between_events_is_a_frame() {
        assert_eq!(
            events("data: a\n\n{\"error\":\"x\"}\ndata: b\n\n"),
            ["a", "{\"error\":\"x\"}", "b"]
        );
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(events("\u{feff}data: a\n\n"), ["a"]);
        assert_eq!(events("\u{feff}{}"), ["{}"]);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut framing = Framing::lines();
        let chunk = vec![b'x'; 1024 * 1024];
        let mut result = Ok(());
        for _ in 0..9 {
            result = framing.feed(&chunk, |_| Ok(()));
        }
        assert_eq!(result.unwrap_err().class, ErrorClass::Protocol);
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            parts in prop::collection::vec(
                prop::sample::select(vec![
                    "data: ", "data:", "ä€𝄞", "\n", "\r\n", "\n\n", "{\"a\":1}", ": c", "event: e", " ",
                    "[DONE]", "\r", "\u{feff}", "x", "data: a\n\n", "data: b\n\n",
                ]),
                0..30,
            ),
            cuts in prop::collection::vec(0_usize..200, 0..8),
        ) {
            let bytes = parts.concat().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut start = 0;
            for cut in cuts {
                chunks.push(&bytes[start..cut]);
                start = cut;
            }
            chunks.push(&bytes[start..]);
            for make in [Framing::lines, Framing::events_or_json] {
                let whole = frames(make(), &[&bytes]);
                prop_assert_eq!(&frames(make(), &chunks), &whole);
                let single: Vec<&[u8]> = bytes.chunks(1).collect();
                prop_assert_eq!(&frames(make(), &single), &whole);
            }
        }
    }
}
