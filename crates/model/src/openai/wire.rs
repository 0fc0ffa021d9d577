//! Parses streamed and complete responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::http::clean::clean;
use crate::http::decoder::{PartialReply, Wire};
use crate::http::failure::Failure;
use crate::http::json::{Surrogates, count, logprob, texts};
use crate::types::TokenUsage;
use crate::{ChatRequest, EndReason, ErrorClass, ModelError};

/// Parses the chunks of a stream, and complete responses of servers that do not stream.
#[derive(Debug, Default)]
pub(crate) struct OpenAiWire {
    surrogates: Surrogates,
    /// A lower bound on the number of tokens in the prompt.
    min_tokens: u64,
    /// Whether a truncated prompt was already reported.
    reported: Arc<AtomicBool>,
}

impl OpenAiWire {
    /// A parser for the response to a request. `reported` is shared by all responses of a server.
    pub(crate) fn new(request: &ChatRequest, reported: Arc<AtomicBool>) -> Self {
        Self {
            surrogates: Surrogates::default(),
            min_tokens: request.least_tokens(),
            reported,
        }
    }

    /// Warns once if the server processed fewer tokens than it was sent: some servers, such as Ollama, drop the
    /// beginning of a long prompt without an error.
    fn report_cut(&self, chunk: &Value, tokens: TokenUsage, answer: &mut PartialReply) {
        /// Smaller prompts fit any context window.
        const LEAST: u64 = 2000;
        let read = tokens.prompt.unwrap_or(u64::MAX);
        if self.min_tokens < LEAST
            || read >= self.min_tokens
            || self.reported.swap(true, Ordering::Relaxed)
        {
            return;
        }
        let advice = if chunk["system_fingerprint"] == "fp_ollama" {
            "use `--model ollama:NAME`, which sets the context window, or a shorter prompt"
        } else {
            "use a larger context window on the server, or a shorter prompt"
        };
        answer.notice(format!(
            "the server processed only {read} tokens of a prompt with at least {} tokens and dropped the rest; {advice}",
            self.min_tokens
        ));
    }
}

impl Wire for OpenAiWire {
    fn frame(&mut self, text: &str, answer: &mut PartialReply) -> Result<(), ModelError> {
        let text = self.surrogates.join(text);
        let mut rest = text.trim();
        // Usually one value, but some servers concatenate several events.
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[DONE]") {
                // Marks the end of the stream, but not that the reply is complete.
                if !answer.end() {
                    return Err(ModelError::new(
                        ErrorClass::CutOff,
                        "the reply ended without a final event",
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
}

impl OpenAiWire {
    /// Parses the JSON value at the beginning and returns its length.
    fn value(&self, text: &str, answer: &mut PartialReply) -> Result<usize, ModelError> {
        let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let Some(Ok(chunk)) = values.next() else {
            return Err(no_json(text));
        };
        let choices = &chunk["choices"];
        let known = chunk.is_object() && (choices.is_array() || choices.is_null());
        if !known || chunk["object"] == "error" || is_error(&chunk["error"]) {
            let failure = Failure::in_answer(&chunk);
            return Err(failure.map_or_else(|| no_json(text), Failure::into_error));
        }
        self.read(&chunk, answer)?;
        Ok(values.byte_offset())
    }

    fn read(&self, chunk: &Value, answer: &mut PartialReply) -> Result<(), ModelError> {
        // Only one choice is requested: number 0, or one without a number.
        let ours = |choice: &&Value| count(&choice["index"]).is_none_or(|index| index == 0);
        let mut choices = chunk["choices"].as_array().into_iter().flatten();
        if let Some(choice) = choices.find(ours) {
            if is_error(&choice["error"]) {
                return Err(Failure::from_error(&choice["error"]).into_error());
            }
            // The complete reply of a server that does not stream.
            let message = &choice["message"];
            if !message.is_null() {
                answer.not_streamed();
            }
            let delta = &choice["delta"];
            read_message(if delta.is_null() { message } else { delta }, answer);
            if let Some(tokens) = choice["logprobs"]["content"].as_array() {
                answer.logprobs(tokens.iter().filter_map(logprob));
            }
            if let Some(reason) = choice["finish_reason"].as_str().filter(|it| !it.is_empty()) {
                answer.stop(end_reason(reason)?);
            }
        }
        // Groq reports the token counts of a stream in another field.
        for usage in [&chunk["usage"], &chunk["x_groq"]["usage"]] {
            if usage.is_object() {
                let tokens = tokens(usage);
                self.report_cut(chunk, tokens, answer);
                answer.usage(tokens);
                break;
            }
        }
        Ok(())
    }
}

/// Reads the content of a message or delta: text, or a list of parts (Mistral's reasoning models).
fn read_message(message: &Value, answer: &mut PartialReply) {
    // Servers that send two of these fields repeat the same text.
    let mut reasoning = ["reasoning_content", "reasoning", "thinking"].into_iter();
    if let Some(field) = reasoning.find(|field| !message[field].is_null()) {
        texts(&message[field]).for_each(|text| answer.reasoning(text));
    }
    match &message["content"] {
        Value::Array(parts) => {
            for part in parts {
                texts(&part["thinking"]).for_each(|text| answer.reasoning(text));
                answer.text(part["text"].as_str().unwrap_or_default());
            }
        }
        content => answer.text(content.as_str().unwrap_or_default()),
    }
    if let Some(refusal) = message["refusal"].as_str() {
        answer.refusal(refusal);
    }
}

fn tokens(usage: &Value) -> TokenUsage {
    let cached = count(&usage["prompt_tokens_details"]["cached_tokens"])
        // `DeepSeek`'s name.
        .or_else(|| count(&usage["prompt_cache_hit_tokens"]));
    let prompt = count(&usage["prompt_tokens"]);
    let mut tokens = TokenUsage::new(prompt, count(&usage["completion_tokens"]), cached);
    tokens.total = count(&usage["total_tokens"]).or(tokens.total);
    tokens
}

fn end_reason(reason: &str) -> Result<EndReason, ModelError> {
    let lower = reason.to_ascii_lowercase();
    match lower.as_str() {
        "length" | "max_tokens" | "model_length" | "max_output_tokens" => Ok(EndReason::Length),
        "error" => Err(ModelError::new(
            ErrorClass::Transient,
            "the provider reported a failure during the reply",
        )),
        "insufficient_system_resource" => Err(ModelError::new(
            ErrorClass::Transient,
            "the provider ran out of resources during the reply",
        )),
        "refusal" | "safety" | "recitation" | "blocklist" | "prohibited_content" | "spii" => {
            Ok(EndReason::Refused(clean(reason)))
        }
        other if other.starts_with("content_filter") => Ok(EndReason::Refused(clean(reason))),
        _ => Ok(EndReason::Stop),
    }
}

fn is_error(error: &Value) -> bool {
    Failure::in_answer(&serde_json::json!({ "error": error })).is_some()
}

fn no_json(text: &str) -> ModelError {
    let reply = Failure::of_body(200, text.as_bytes()).message;
    let error = ModelError::new(
        ErrorClass::Protocol,
        format!("unexpected response, not a chat completion: {reply}"),
    );
    if text.trim_start().starts_with('<') {
        error.with_hint("check the base URL; most end with /v1")
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
    use crate::http::decoder::Decoder;
    use crate::http::decoder::tests::{check_all_cuts, decode, joined};
    use crate::http::framing::Framing;
    use crate::{ChatEvent, ChatRequest, Purpose, ResponseSchema};

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
    fn a_stream_decodes_the_same_for_any_split() {
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
            estimated: None,
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
    fn endless_white_space_stops_the_reply_for_any_split() {
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
    fn mistral_parts_and_groq_usage_are_parsed() {
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
    fn content_of_an_unknown_shape_is_ignored() {
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

    #[test]
    fn malformed_counts_do_not_fail_the_reply() {
        for (usage, prompt, completion) in [
            (
                json!({"prompt_tokens": -1, "completion_tokens": 2}),
                None,
                Some(2),
            ),
            (
                json!({"prompt_tokens": 12.0, "completion_tokens": "2"}),
                Some(12),
                Some(2),
            ),
            (
                json!({"prompt_tokens": 3, "prompt_tokens_details": 7}),
                Some(3),
                None,
            ),
            (json!("none"), None, None),
            (json!([]), None, None),
        ] {
            let choice = json!({"index": "0", "delta": {"content": "a", "refusal": false},
                "finish_reason": "stop", "logprobs": {"content": [{"token": "a", "logprob": null}]}});
            let chunk = json!({"choices": [choice], "usage": usage, "x_groq": 1});
            let events = events(&format!("data: {chunk}\n\n"));
            assert_eq!(events[0], text("a"), "{usage}");
            assert_eq!(
                events.last(),
                Some(&ChatEvent::End(EndReason::Stop)),
                "{usage}"
            );
            let counted = TokenUsage::new(prompt, completion, None);
            let is_counted = events.contains(&ChatEvent::Usage(counted));
            assert_eq!(is_counted, counted != TokenUsage::default(), "{usage}");
        }
    }

    #[test]
    fn characters_split_across_chunks_are_joined() {
        let body = concat!(
            "data: {\"choices\":[{\"delta\":{\"content\":\"a \\ud83d\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\ude00 b\"},\"finish_reason\":\"stop\"}]}\n\n",
        );
        check_all_cuts(decoder, body.as_bytes());
        assert_eq!(
            events(body),
            [text("a 😀 b"), ChatEvent::End(EndReason::Stop)]
        );
    }

    /// Checks that a sequence of chunks yields the same events as each chunk on its own.
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
            // Repeated token counts emit no event.
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
    fn chunks_with_other_fields_are_parsed_fully() {
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
    fn other_choices_are_ignored() {
        let chunk = json!({"choices": [
            {"index": 1, "delta": {"content": "x"}, "finish_reason": "length"},
            {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}]});
        let end = ChatEvent::End(EndReason::Stop);
        assert_eq!(events(&format!("data: {chunk}\n\n")), [text("a"), end]);
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(
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
