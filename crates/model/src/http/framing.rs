//! Splits a byte stream into frames: lines (NDJSON), server-sent events, or a single JSON value.
//!
//! Bytes are decoded only when a line is complete, so a chunk may end inside a UTF-8 sequence. The frames do not
//! depend on how the bytes are split into chunks.

use crate::{ErrorClass, ModelError};

/// The maximum length of a line, in bytes; the same limit as in Ollama's own client.
pub(crate) const MAX_LINE: usize = 8 * 1024 * 1024;

/// The maximum size of a response, in bytes. Real responses, even with log-probabilities, are far smaller; the limit
/// stops a server that never ends.
pub(crate) const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// Splits the bytes of one response into frames.
#[derive(Debug)]
pub(crate) struct Framing {
    kind: Kind,
    /// An incomplete line or value.
    held: Vec<u8>,
    /// The `data` lines of the current event.
    data: Option<String>,
}

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One JSON value per line.
    Lines,
    /// Server-sent events; only the `data` fields are used.
    Events,
    /// A single JSON value.
    Whole,
    /// Events or a single value; the first character that is not white space decides.
    EventsOrWhole,
}

impl Framing {
    /// Framing for newline-delimited JSON.
    pub(crate) fn lines() -> Self {
        Self::new(Kind::Lines)
    }

    /// Framing for server-sent events, or a single JSON value from servers that do not stream.
    pub(crate) fn events_or_json() -> Self {
        Self::new(Kind::EventsOrWhole)
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            held: Vec::new(),
            data: None,
        }
    }

    /// Adds a chunk and calls `on_frame` for each frame that it completes.
    pub(crate) fn feed(
        &mut self,
        chunk: &[u8],
        on_frame: &mut dyn FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        match self.kind {
            Kind::EventsOrWhole => {
                self.held.extend_from_slice(chunk);
                let Some(kind) = kind_of(&self.held) else {
                    return Ok(());
                };
                self.kind = kind;
                let held = std::mem::take(&mut self.held);
                self.feed(without_bom(&held), on_frame)
            }
            Kind::Whole => self.hold(chunk),
            Kind::Lines | Kind::Events => {
                for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
                    self.hold(piece)?;
                    if piece.ends_with(b"\n") {
                        let line = std::mem::take(&mut self.held);
                        self.line(&line, on_frame)?;
                    }
                }
                Ok(())
            }
        }
    }

    /// Ends the stream and calls `on_frame` for a last frame without a line end.
    pub(crate) fn finish(
        &mut self,
        on_frame: &mut dyn FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let rest = std::mem::take(&mut self.held);
        match self.kind {
            Kind::Lines => self.line(&rest, on_frame),
            Kind::Events => {
                self.line(&rest, on_frame)?;
                // An event ends with a blank line, but many servers omit the last one.
                self.dispatch(on_frame)
            }
            Kind::Whole | Kind::EventsOrWhole => {
                frame(&String::from_utf8_lossy(without_bom(&rest)), on_frame)
            }
        }
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if self.held.len() + bytes.len() > MAX_LINE {
            return Err(too_long());
        }
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    fn line(
        &mut self,
        line: &[u8],
        on_frame: &mut dyn FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let line = String::from_utf8_lossy(line);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        if self.kind == Kind::Lines {
            return frame(line, on_frame);
        }
        if line.is_empty() {
            return self.dispatch(on_frame);
        }
        if let Some(value) = line.strip_prefix("data:") {
            return self.push_data(value.strip_prefix(' ').unwrap_or(value));
        }
        if line.starts_with(['{', '[']) {
            // Some gateways put a bare JSON error between the events.
            self.dispatch(on_frame)?;
            return on_frame(line);
        }
        // Ignore `event:`, `id:`, `retry:` and comments (`: keep-alive`).
        Ok(())
    }

    fn push_data(&mut self, value: &str) -> Result<(), ModelError> {
        let Some(data) = &mut self.data else {
            self.data = Some(value.to_owned());
            return Ok(());
        };
        if data.len() + value.len() > MAX_LINE {
            return Err(too_long());
        }
        data.push('\n');
        data.push_str(value);
        Ok(())
    }

    /// Emits the current event.
    fn dispatch(
        &mut self,
        on_frame: &mut dyn FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        match self.data.take() {
            Some(data) => frame(&data, on_frame),
            None => Ok(()),
        }
    }
}

/// Emits a frame that is not blank.
fn frame(
    text: &str,
    on_frame: &mut dyn FnMut(&str) -> Result<(), ModelError>,
) -> Result<(), ModelError> {
    if text.trim().is_empty() {
        return Ok(());
    }
    on_frame(text)
}

/// Whether the bytes are events or a single value; `None` if there are too few to tell.
fn kind_of(bytes: &[u8]) -> Option<Kind> {
    let bytes = without_bom(bytes);
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace())? {
        // A byte order mark may be incomplete.
        0xEF if bytes.len() < 3 => None,
        b'{' | b'[' | b'<' => Some(Kind::Whole),
        _ => Some(Kind::Events),
    }
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
        framing.finish(&mut take).unwrap();
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
    fn comments_and_other_fields_are_ignored() {
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
    fn an_endless_line_is_rejected() {
        let mut framing = Framing::lines();
        let chunk = vec![b'x'; 1024 * 1024];
        let mut result = Ok(());
        for _ in 0..9 {
            result = framing.feed(&chunk, &mut |_| Ok(()));
        }
        assert_eq!(result.unwrap_err().class, ErrorClass::Protocol);
    }

    proptest! {
        #[test]
        fn frames_do_not_depend_on_chunks(
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
