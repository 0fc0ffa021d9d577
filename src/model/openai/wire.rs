//! Reads the frames of an answer.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::model::http::answer::{Answer, Wire};
use crate::model::http::clean::one_line;
use crate::model::http::failure::Failure;
use crate::model::http::framing::{end_of_event, next_event};
use crate::model::http::mould::Mould;
use crate::model::http::text::Text;
use crate::model::{EndReason, ErrorClass, ModelError, TokenLogprob};
use crate::types::TokenUsage;

/// Reads chunks of a stream, and whole answers of servers that do not stream.
#[derive(Debug, Default)]
pub(crate) struct OpenAiWire {
    /// The form of the last chunk that was nothing but a piece of text.
    mould: Mould,
}

// One comes for each token, so what is rare in it is boxed: it would be moved about with every chunk.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    choices: Choices<'a>,
    #[serde(default)]
    usage: Option<Box<Usage>>,
    /// Groq puts the token counts of a stream here.
    #[serde(default)]
    x_groq: Option<Box<Groq>>,
    #[serde(default)]
    error: Option<Box<Value>>,
    #[serde(borrow, default)]
    object: Option<Text<'a>>,
}

impl<'a> Chunk<'a> {
    /// The text, as it stands in the frame, of a chunk that says nothing else.
    fn only_text(&self) -> Option<&'a str> {
        let Self {
            choices: Choices(Some(choice)),
            usage: None,
            x_groq: None,
            error: None,
            // Only an error says something with this.
            object: _,
        } = self
        else {
            return None;
        };
        let Choice {
            // That it is the right one was seen before.
            index: _,
            delta: Some(delta),
            message: None,
            finish_reason: None,
            logprobs: None,
            error: None,
        } = choice
        else {
            return None;
        };
        match delta {
            Delta {
                content: Some(Content::Text(text)),
                reasoning: None,
                reasoning_content: None,
                thinking: None,
                refusal: None,
            } => text.borrowed(),
            _ => None,
        }
    }
}

#[derive(Deserialize)]
struct Groq {
    #[serde(default)]
    usage: Option<Box<Usage>>,
}

/// Of the choices the one that is asked for: number 0, or one without a number.
#[derive(Default)]
struct Choices<'a>(Option<Choice<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Choices<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ChoicesVisitor)
    }
}

struct ChoicesVisitor;

impl<'de> Visitor<'de> for ChoicesVisitor {
    type Value = Choices<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of choices")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Choices<'de>, A::Error> {
        let mut ours = None;
        while let Some(choice) = all.next_element::<Choice<'de>>()? {
            if ours.is_none() && choice.index.is_none_or(|index| index == 0) {
                ours = Some(choice);
            }
        }
        Ok(Choices(ours))
    }

    fn visit_unit<E>(self) -> Result<Choices<'de>, E> {
        Ok(Choices(None))
    }
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    delta: Option<Delta<'a>>,
    /// The whole answer, of a server that does not stream.
    #[serde(borrow, default)]
    message: Option<Box<Delta<'a>>>,
    #[serde(borrow, default)]
    finish_reason: Option<Text<'a>>,
    #[serde(borrow, default)]
    logprobs: Option<Logprobs<'a>>,
    /// `OpenRouter`: an error of the provider behind it.
    #[serde(default)]
    error: Option<Box<Value>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    reasoning: Option<Content<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Content<'a>>,
    #[serde(borrow, default)]
    thinking: Option<Content<'a>>,
    #[serde(borrow, default)]
    refusal: Option<Text<'a>>,
}

/// Text, or a list of parts (Mistral's reasoning models).
enum Content<'a> {
    Text(Text<'a>),
    Parts(Vec<Value>),
    /// Nothing that is known.
    Other,
}

// By hand: serde reads an untagged enum into a tree first, and this is read for every token.
impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a list of parts")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Text::new(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content<'de>, E> {
        Ok(Content::Text(Text::new(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content<'de>, A::Error> {
        let mut all = Vec::new();
        while let Some(part) = parts.next_element()? {
            all.push(part);
        }
        Ok(Content::Parts(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Content<'de>, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Content::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content<'de>, E> {
        Ok(Content::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content<'de>, E> {
        Ok(Content::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content<'de>, E> {
        Ok(Content::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content<'de>, E> {
        Ok(Content::Other)
    }

    fn visit_unit<E>(self) -> Result<Content<'de>, E> {
        Ok(Content::Other)
    }
}

#[derive(Deserialize)]
struct Logprobs<'a> {
    #[serde(borrow, default)]
    content: Option<Vec<Token<'a>>>,
}

#[derive(Deserialize)]
struct Token<'a> {
    #[serde(borrow, rename = "token")]
    text: Text<'a>,
    logprob: f64,
    #[serde(default)]
    bytes: Option<Vec<u8>>,
    #[serde(borrow, default)]
    top_logprobs: Option<Vec<Alternative<'a>>>,
}

#[derive(Deserialize)]
struct Alternative<'a> {
    #[serde(borrow)]
    token: Text<'a>,
    logprob: f64,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    /// `DeepSeek`'s name for the cached tokens.
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
}

impl Usage {
    fn tokens(&self) -> TokenUsage {
        let cached = self
            .prompt_tokens_details
            .as_ref()
            .and_then(|details| details.cached_tokens)
            .or(self.prompt_cache_hit_tokens);
        let mut usage = TokenUsage::new(self.prompt_tokens, self.completion_tokens, cached);
        usage.total = self.total_tokens.or(usage.total);
        usage
    }
}

impl Wire for OpenAiWire {
    fn frame(&mut self, text: &str, answer: &mut Answer) -> Result<(), ModelError> {
        if let Some((piece, [])) = self.mould.text(text.as_bytes()) {
            answer.text(&piece);
            return Ok(());
        }
        let mut rest = text.trim();
        // Usually one value; some servers glue several events together.
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[DONE]") {
                // Says that nothing follows, not that the answer is complete.
                if !answer.end() {
                    return Err(ModelError::new(
                        ErrorClass::CutOff,
                        "the answer ended without saying that it is complete",
                    ));
                }
                rest = after.trim_start();
            } else if let Some(after) = rest.strip_prefix("data:") {
                rest = after.trim_start();
            } else {
                rest = rest[self.value(rest, answer)?..].trim_start();
            }
        }
        Ok(())
    }

    fn more(&mut self, behind: &[u8], answer: &mut Answer) -> usize {
        let mut rest = behind;
        while let Some(event) = next_event(rest)
            && let Some((piece, end)) = self.mould.text(event)
            && let Some(next) = end_of_event(end)
        {
            answer.text(&piece);
            rest = next;
        }
        behind.len() - rest.len()
    }
}

impl OpenAiWire {
    /// Reads the JSON value at the beginning, and says how long it is.
    fn value(&mut self, text: &str, answer: &mut Answer) -> Result<usize, ModelError> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Chunk<'_>>();
        match values.next() {
            Some(Ok(chunk)) => {
                let length = values.byte_offset();
                if chunk.object.as_deref() == Some("error") || is_error(chunk.error.as_deref()) {
                    return Err(failure(&text[..length]));
                }
                if let Some(piece) = chunk.only_text() {
                    self.mould.take(&text[..length], piece);
                }
                read(chunk, answer)?;
                Ok(length)
            }
            Some(Err(error)) if error.is_data() => {
                // JSON, but not a chunk: an error of another shape, or nothing we know.
                Err(failure(text))
            }
            _ => Err(no_json(text)),
        }
    }
}

fn read(chunk: Chunk<'_>, answer: &mut Answer) -> Result<(), ModelError> {
    if let Some(choice) = chunk.choices.0 {
        if is_error(choice.error.as_deref()) {
            let error = choice.error.unwrap_or_default();
            return Err(Failure::from_error(&error).into_error());
        }
        if choice.message.is_some() {
            answer.is_whole();
        }
        let delta = choice.delta.or(choice.message.map(|message| *message));
        if let Some(delta) = delta {
            // Servers that send two of these fields say the same in both.
            let reasoning = [delta.reasoning_content, delta.reasoning, delta.thinking]
                .into_iter()
                .flatten()
                .next();
            match reasoning {
                Some(Content::Text(text)) => answer.reasoning(&text),
                Some(Content::Parts(parts)) => {
                    for part in &parts {
                        answer.reasoning(part_text(part));
                    }
                }
                Some(Content::Other) | None => {}
            }
            match delta.content {
                Some(Content::Text(text)) => answer.text(&text),
                Some(Content::Parts(parts)) => {
                    for part in &parts {
                        if let Some(thinking) = part.get("thinking") {
                            answer.reasoning(&thinking_text(thinking));
                        }
                        answer.text(part_text(part));
                    }
                }
                Some(Content::Other) | None => {}
            }
            if let Some(refusal) = delta.refusal {
                answer.refusal(&refusal);
            }
        }
        if let Some(tokens) = choice.logprobs.and_then(|logprobs| logprobs.content) {
            answer.logprobs(tokens.into_iter().map(token));
        }
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            answer.stop(end_reason(&reason)?);
        }
    }
    let usage = chunk
        .usage
        .or_else(|| chunk.x_groq.and_then(|groq| groq.usage));
    if let Some(usage) = usage {
        answer.usage(usage.tokens());
    }
    Ok(())
}

fn end_reason(reason: &str) -> Result<EndReason, ModelError> {
    let lower = reason.to_ascii_lowercase();
    match lower.as_str() {
        "length" | "max_tokens" | "model_length" | "max_output_tokens" => Ok(EndReason::Length),
        "error" => Err(ModelError::new(
            ErrorClass::Transient,
            "the provider says that it failed while answering",
        )),
        "insufficient_system_resource" => Err(ModelError::new(
            ErrorClass::Transient,
            "the provider ran out of resources while answering",
        )),
        "refusal" | "safety" | "recitation" | "blocklist" | "prohibited_content" | "spii" => {
            Ok(EndReason::Refused(one_line(reason)))
        }
        other if other.starts_with("content_filter") => Ok(EndReason::Refused(one_line(reason))),
        _ => Ok(EndReason::Stop),
    }
}

fn token(token: Token<'_>) -> (usize, TokenLogprob) {
    let length = token.bytes.map_or(token.text.len(), |bytes| bytes.len());
    let logprob = TokenLogprob {
        token: token.text.into_owned(),
        logprob: token.logprob,
        top: token
            .top_logprobs
            .into_iter()
            .flatten()
            .map(|other| (other.token.into_owned(), other.logprob))
            .collect(),
    };
    (length, logprob)
}

/// The text of a part, if it has any.
fn part_text(part: &Value) -> &str {
    part.get("text").and_then(Value::as_str).unwrap_or_default()
}

/// Mistral: a list of parts, or text.
fn thinking_text(thinking: &Value) -> String {
    match thinking {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .filter_map(|part| part.get("text")?.as_str())
            .collect(),
        _ => String::new(),
    }
}

fn is_error(error: Option<&Value>) -> bool {
    error.is_some_and(|error| Failure::in_answer(&serde_json::json!({ "error": error })).is_some())
}

/// The error of a value that is no chunk.
fn failure(text: &str) -> ModelError {
    let value: Option<Value> = serde_json::Deserializer::from_str(text)
        .into_iter()
        .next()
        .and_then(Result::ok);
    match value.as_ref().and_then(Failure::in_answer) {
        Some(failure) => failure.into_error(),
        None => no_json(text),
    }
}

fn no_json(text: &str) -> ModelError {
    let said = Failure::of_body(200, text.as_bytes()).message;
    let error = ModelError::new(
        ErrorClass::Protocol,
        format!("what came is no chat completion: {said}"),
    );
    if text.trim_start().starts_with('<') {
        error.with_hint("is the base URL right? most end with /v1")
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::model::http::answer::Decoder;
    use crate::model::http::answer::tests::{check_all_cuts, decode, joined};
    use crate::model::http::framing::Framing;
    use crate::model::{ChatEvent, ChatRequest, Purpose, ResponseSchema};

    fn decoder() -> Decoder<OpenAiWire> {
        let request = ChatRequest::new(Purpose::Write, Vec::new());
        Decoder::new(Framing::events_or_json(), OpenAiWire::default(), &request)
    }

    fn events(body: &str) -> Vec<ChatEvent> {
        let (events, result) = decode(decoder(), &[body.as_bytes()]);
        result.unwrap();
        events
    }

    fn text(piece: &str) -> ChatEvent {
        ChatEvent::Text(piece.to_owned())
    }

    #[test]
    fn a_stream_means_the_same_however_it_is_cut() {
        let body = concat!(
            ": OPENROUTER PROCESSING\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"<think>grü\"}}]}\r\n\r\n",
            "data:{\"choices\":[{\"delta\":{\"content\":\"beln</think> 𝄞 ok\"},\"logprobs\":{\"content\":",
            "[{\"token\":\"ok\",\"logprob\":-0.5}]}}]}\n\n",
            "event: x\ndata: {\"choices\":\ndata: [{\"finish_reason\":\"stop\"}]}\n\n",
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,",
            "\"total_tokens\":9,\"prompt_tokens_details\":{\"cached_tokens\":1}}}\n\n",
            "data: [DONE]",
        );
        check_all_cuts(decoder, body.as_bytes());
        let events = events(body);
        assert!(events.contains(&text("𝄞 ok")));
        let usage = TokenUsage {
            prompt: Some(3),
            completion: Some(2),
            total: Some(9),
            cached: Some(1),
        };
        assert!(events.contains(&ChatEvent::Usage(usage)));
        assert_eq!(events.last(), Some(&ChatEvent::End(EndReason::Stop)));
        check_all_cuts(
            decoder,
            b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"error\":\"x\"}\n\n",
        );
        check_all_cuts(
            decoder,
            "\n{\"choices\":[{\"message\":{\"content\":\"ä\"},\"finish_reason\":\"stop\"}]}"
                .as_bytes(),
        );
    }

    #[test]
    fn a_desert_ends_the_answer_however_it_is_cut() {
        let decoder = || {
            let mut request = ChatRequest::new(Purpose::Judge, Vec::new());
            request.schema = Some(Arc::new(ResponseSchema::any_object()));
            Decoder::new(Framing::events_or_json(), OpenAiWire::default(), &request)
        };
        let piece = |text: &str| {
            let chunk = json!({"choices": [{"delta": {"content": text}}]});
            format!("data: {chunk}\n\n")
        };
        let mut body = piece("{");
        body.push_str(&piece(&" \n".repeat(75)).repeat(3));
        body.push_str(&piece("}"));
        body.push_str(
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3}}\n\ndata: {\"error\":\"x\"}\n\n",
        );
        check_all_cuts(decoder, body.as_bytes());
        let (events, result) = decode(decoder(), &[body.as_bytes()]);
        result.unwrap();
        let blanks = format!("{{{} ", " \n".repeat(100));
        assert_eq!(events[0], text(&blanks));
        assert!(matches!(events[1], ChatEvent::Notice(_)));
        assert_eq!(events[2..], [ChatEvent::End(EndReason::Length)]);
    }

    #[test]
    fn events_that_are_glued_together_are_separated() {
        let one = json!({"choices": [{"delta": {"content": "a"}}]});
        let two = json!({"choices": [{"delta": {"content": "b"}, "finish_reason": "stop"}]});
        for body in [
            format!("data: {one}\ndata: {two}\n\n"),
            format!("data: {one}data: {two}\n\n"),
            format!("data: {one}{two}data: [DONE]\n\n"),
            format!("{one}\n{two}\n"),
        ] {
            let end = ChatEvent::End(EndReason::Stop);
            assert_eq!(events(&body), [text("ab"), end], "{body}");
        }
    }

    #[test]
    fn mistral_answers_in_parts_and_groq_counts_elsewhere() {
        let parts = json!({"choices": [{"delta": {"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "a"}]}, "finish_reason": "stop"}],
            "x_groq": {"usage": {"prompt_tokens": 1, "completion_tokens": 2}}});
        assert_eq!(
            events(&format!("data: {parts}\n\n")),
            [
                ChatEvent::Reasoning("hm".to_owned()),
                text("a"),
                ChatEvent::Usage(TokenUsage::new(Some(1), Some(2), None)),
                ChatEvent::End(EndReason::Stop),
            ]
        );
    }

    #[test]
    fn content_of_an_unknown_shape_says_nothing() {
        for content in [
            "7",
            "-7",
            "0.5",
            "true",
            "null",
            "{\"text\":[1]}",
            "[7,{\"text\":null}]",
        ] {
            let body = format!(
                "data: {{\"choices\":[{{\"delta\":{{\"content\":{content},\"reasoning\":{content}}}}}]}}\n\n\
                 data: {{\"choices\":[{{\"delta\":{{\"content\":\"\\u0061\"}},\"finish_reason\":\"stop\"}}]}}\n\n"
            );
            let end = ChatEvent::End(EndReason::Stop);
            assert_eq!(events(&body), [text("a"), end], "{content}");
        }
    }

    /// What is read from chunks one after the other is what is read from each of them alone.
    #[track_caller]
    fn check_chunks_are_independent(chunks: &[Value]) {
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
        let read = |chunks: &[Value]| {
            let frames: Vec<String> = chunks
                .iter()
                .chain([&end])
                .map(|chunk| format!("data: {chunk}\n\n"))
                .collect();
            let frames = frames.concat();
            let (mut events, result) = decode(decoder(), &[frames.as_bytes()]);
            if result.is_ok() {
                events.pop();
            }
            (events, result)
        };
        let mut expected = (Vec::new(), Ok(()));
        for chunk in chunks {
            let (events, result) = read(std::slice::from_ref(chunk));
            // The same figures again are no event.
            let known = expected
                .0
                .iter()
                .any(|event| matches!(event, ChatEvent::Usage(_)));
            let news = |event: &ChatEvent| !known || !matches!(event, ChatEvent::Usage(_));
            expected.0.extend(events.into_iter().filter(news));
            if result.is_err() {
                expected.1 = result;
                break;
            }
        }
        expected.0 = joined(expected.0);
        assert_eq!(read(chunks), expected);
    }

    #[test]
    fn a_chunk_that_says_more_than_text_is_read_whole_each_time() {
        let chunk = |key: &str, value: Value| {
            let mut choice = json!({"index": 0, "delta": {"content": "b"}});
            match key {
                "usage" | "error" | "object" | "x_groq" => {
                    return json!({"choices": [choice], key: value});
                }
                "refusal" | "reasoning" => choice["delta"][key] = value,
                _ => choice[key] = value,
            }
            json!({"choices": [choice]})
        };
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 2});
        let logprobs = json!({"content": [{"token": "b", "logprob": -0.5}]});
        for (key, value) in [
            ("plain", json!(1)),
            ("finish_reason", json!("length")),
            ("logprobs", logprobs),
            ("error", json!({"message": "no"})),
            ("object", json!("error")),
            ("usage", usage.clone()),
            ("x_groq", json!({ "usage": usage })),
            ("refusal", json!("never")),
            ("reasoning", json!("hm")),
            ("index", json!(1)),
        ] {
            let plain = chunk("plain", json!(1));
            let special = chunk(key, value);
            check_chunks_are_independent(&[
                plain.clone(),
                plain.clone(),
                special.clone(),
                plain,
                special.clone(),
                special,
            ]);
        }
    }

    #[test]
    fn other_choices_are_no_part_of_the_answer() {
        let chunk = json!({"choices": [
            {"index": 1, "delta": {"content": "x"}, "finish_reason": "length"},
            {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]});
        let end = ChatEvent::End(EndReason::Stop);
        assert_eq!(events(&format!("data: {chunk}\n\n")), [text("a"), end]);
    }

    proptest! {
        #[test]
        fn no_body_is_too_strange(
            parts in prop::collection::vec(prop::sample::select(vec![
                "data: ", "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}", "\n\n", "\r\n", "{", "}", "[DONE]",
                "{\"choices\":[{\"finish_reason\":\"stop\"}]}", "{\"error\":{\"code\":429}}", "null", "\u{feff}",
                "{\"choices\":null,\"usage\":{\"prompt_tokens\":1}}", "{\"error\":null}", "7", "<html>", "ä",
            ]), 0..12),
            cut in 0_usize..400,
        ) {
            let body = parts.concat().into_bytes();
            let (head, tail) = body.split_at(cut.min(body.len()));
            prop_assert_eq!(decode(decoder(), &[head, tail]), decode(decoder(), &[&body]));
        }
    }
}
