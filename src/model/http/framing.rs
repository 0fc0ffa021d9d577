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

    /// Takes a chunk. `on_frame` gets each frame that it completes and, of server-sent events, what of the chunk is
    /// behind that; it says how many bytes of this it has read already, as [`next_event`] shows them.
    pub(crate) fn feed(
        &mut self,
        chunk: &[u8],
        mut on_frame: impl FnMut(&str, &[u8]) -> Result<usize, ModelError>,
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
            Self::Lines(lines) => lines.feed(chunk, |line, _| {
                let line = decode(line);
                if line.trim().is_empty() {
                    return Ok(0);
                }
                on_frame(&line, &[])
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
    /// `on_line` gets each line that the chunk completes, and what of the chunk is behind it; it says how many bytes of
    /// this it has taken, too.
    fn feed(
        &mut self,
        mut chunk: &[u8],
        mut on_line: impl FnMut(&[u8], &[u8]) -> Result<usize, ModelError>,
    ) -> Result<(), ModelError> {
        while let Some(end) = memchr(b'\n', chunk) {
            let (head, tail) = chunk.split_at(end);
            chunk = &tail[1..];
            if self.held.len() + head.len() > MAX_LINE {
                return Err(too_long());
            }
            let taken = if self.held.is_empty() {
                on_line(without_return(head), chunk)?
            } else {
                self.held.extend_from_slice(head);
                let line = std::mem::take(&mut self.held);
                let taken = on_line(without_return(&line), chunk)?;
                // The buffer is kept for the next line.
                self.held = line;
                self.held.clear();
                taken
            };
            chunk = &chunk[taken..];
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
        mut on_frame: impl FnMut(&str, &[u8]) -> Result<usize, ModelError>,
    ) -> Result<(), ModelError> {
        let Self { lines, data } = self;
        lines.feed(chunk, |line, behind| {
            data.line(&decode(line), behind, &mut on_frame)
        })
    }

    fn finish(
        &mut self,
        mut on_frame: impl FnMut(&str) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let rest = self.lines.take_rest();
        let mut on_frame = |frame: &str, _: &[u8]| on_frame(frame).map(|()| 0);
        self.data.line(&decode(&rest), &[], &mut on_frame)?;
        // An event needs a blank line to end it, but many servers forget the last one.
        self.data.dispatch(&[], &mut on_frame)?;
        Ok(())
    }
}

/// What stands in the next event, and behind it, where that follows at once on the last line of the one before, in the
/// form that nearly every server gives it: an empty line, `data: `, and the text up to the end of a line.
pub(crate) fn next_event(behind: &[u8]) -> Option<&[u8]> {
    behind.strip_prefix(b"\ndata: ")
}

/// What is behind such an event, if it ends here.
pub(crate) fn end_of_event(rest: &[u8]) -> Option<&[u8]> {
    rest.strip_prefix(b"\n")
        .filter(|behind| behind.starts_with(b"\n"))
}

/// The `data` lines of the event that is being read.
#[derive(Debug, Default)]
struct EventData {
    text: String,
    present: bool,
    begun: bool,
}

impl EventData {
    /// Takes a line, and says how many bytes of what is behind it `on_frame` has read.
    fn line(
        &mut self,
        line: &str,
        behind: &[u8],
        on_frame: &mut impl FnMut(&str, &[u8]) -> Result<usize, ModelError>,
    ) -> Result<usize, ModelError> {
        let line = if self.begun {
            line
        } else {
            self.begun = true;
            line.strip_prefix('\u{feff}').unwrap_or(line)
        };
        if line.is_empty() {
            return self.dispatch(behind, on_frame);
        }
        if let Some(value) = line.strip_prefix("data:") {
            let value = value.strip_prefix(' ').unwrap_or(value);
            let is_last = behind.starts_with(b"\n") || behind.starts_with(b"\r\n");
            if is_last && !self.present {
                // Nearly every event: it is read where it stands.
                return frame(value, behind, on_frame);
            }
            self.push(value)?;
        } else if line.starts_with(['{', '[']) {
            // Some gateways put a bare JSON error between the events.
            self.dispatch(&[], on_frame)?;
            return on_frame(line, behind);
        }
        // Or it is `event:`, `id:`, `retry:`, or a comment (`: keep-alive`).
        Ok(0)
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
        behind: &[u8],
        on_frame: &mut impl FnMut(&str, &[u8]) -> Result<usize, ModelError>,
    ) -> Result<usize, ModelError> {
        if !std::mem::take(&mut self.present) {
            return Ok(0);
        }
        let result = frame(&self.text, behind, on_frame);
        self.text.clear();
        result
    }
}

/// What an event says, if it says something.
fn frame(
    text: &str,
    behind: &[u8],
    on_frame: &mut impl FnMut(&str, &[u8]) -> Result<usize, ModelError>,
) -> Result<usize, ModelError> {
    if text.chars().all(char::is_whitespace) {
        return Ok(0);
    }
    on_frame(text, behind)
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

    fn frames(framing: Framing, chunks: &[&[u8]]) -> Vec<String> {
        frames_taken(framing, chunks, false)
    }

    /// As one who reads ahead takes them, or one who does not.
    fn frames_taken(mut framing: Framing, chunks: &[&[u8]], reads_ahead: bool) -> Vec<String> {
        let mut all = Vec::new();
        for chunk in chunks {
            framing
                .feed(chunk, |frame, mut behind| {
                    all.push(frame.to_owned());
                    let there = behind.len();
                    while reads_ahead && let Some((frame, next)) = next_frame(behind) {
                        all.push(frame.to_owned());
                        behind = next;
                    }
                    Ok(there - behind.len())
                })
                .unwrap();
        }
        framing
            .finish(|frame| {
                all.push(frame.to_owned());
                Ok(())
            })
            .unwrap();
        all
    }

    /// A frame that needs no more than to be read, and what is behind it.
    fn next_frame(behind: &[u8]) -> Option<(&str, &[u8])> {
        let event = next_event(behind)?;
        let (frame, end) = event.split_at(memchr(b'\n', event)?);
        let frame = std::str::from_utf8(frame).ok()?;
        let next = end_of_event(end)?;
        (!frame.ends_with('\r') && !frame.trim().is_empty()).then_some((frame, next))
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
            result = framing.feed(&chunk, |_, _| Ok(0));
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
            let whole = frames(Framing::events_or_json(), &[&bytes]);
            for chunks in [&[&bytes[..]], &chunks[..]] {
                prop_assert_eq!(&frames_taken(Framing::events_or_json(), chunks, true), &whole);
            }
        }
    }
}
