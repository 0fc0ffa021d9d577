//! Parses streamed responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::http::decoder::{PartialReply, Wire};
use crate::http::failure::Failure;
use crate::http::json::{Surrogates, count, logprob};
use crate::types::TokenUsage;
use crate::{EndReason, ErrorClass, ModelError};

/// Parses the lines of `/api/chat`.
#[derive(Debug)]
pub(crate) struct OllamaWire {
    /// The minimum number of tokens in the prompt and the context window, if the prompt exceeds it.
    pub(crate) overflow: Option<(u64, u64)>,
    /// Whether an overflow was already reported.
    pub(crate) reported: Arc<AtomicBool>,
    pub(crate) surrogates: Surrogates,
    /// The last piece, and how many times in a row it came.
    pub(crate) last: (String, u32),
}

/// Ollama stops a reply that repeats one token 30 times. Some of the tokens may be held back, so this many equal
/// pieces are enough to recognize it.
const LOOPED: u32 = 25;

impl Wire for OllamaWire {
    fn frame(&mut self, text: &str, answer: &mut PartialReply) -> Result<(), ModelError> {
        let text = &self.surrogates.join(text);
        // Usually one value, but a line end may be missing.
        for line in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
            self.line(&line.map_err(|_| no_line(text))?, text, answer)?;
        }
        Ok(())
    }

    /// Ollama stops a reply that repeats one token without reporting it: the stream is complete but has no final
    /// line.
    fn end_unfinished(&mut self, answer: &mut PartialReply) {
        let (piece, times) = &self.last;
        if *times >= LOOPED && !piece.is_empty() {
            answer.notice(format!(
                "Ollama stopped the reply because it repeated itself ({times} times {piece:?})"
            ));
            answer.stop(EndReason::Repetition);
        }
    }
}

impl OllamaWire {
    fn line(
        &mut self,
        line: &Value,
        text: &str,
        answer: &mut PartialReply,
    ) -> Result<(), ModelError> {
        if let Some(failure) = Failure::in_answer(&serde_json::json!({ "error": line["error"] })) {
            return Err(failure.into_error());
        }
        let (message, done) = (&line["message"], line["done"] == true);
        if !message.is_object() && !done {
            return Err(no_line(text));
        }
        self.count(message);
        answer.reasoning(message["thinking"].as_str().unwrap_or_default());
        answer.text(message["content"].as_str().unwrap_or_default());
        if let Some(tokens) = line["logprobs"].as_array() {
            answer.logprobs(tokens.iter().filter_map(logprob));
        }
        if done {
            let prompt = count(&line["prompt_eval_count"]);
            answer.usage(TokenUsage::new(
                prompt,
                count(&line["eval_count"]),
                count(&line["prompt_eval_cached_count"]),
            ));
            self.report_overflow(prompt, answer);
            let reason = line["done_reason"].as_str().unwrap_or("stop");
            if reason == "load" || reason == "unload" {
                return Err(ModelError::new(
                    ErrorClass::Transient,
                    "the server loaded the model but wrote nothing",
                ));
            }
            answer.stop(if reason == "length" {
                EndReason::Length
            } else {
                EndReason::Stop
            });
            answer.end();
        }
        Ok(())
    }

    /// Counts repetitions of the same piece.
    fn count(&mut self, message: &Value) {
        let text = |part: &str| message[part].as_str().unwrap_or_default().to_owned();
        let piece = text("thinking") + &text("content");
        let (last, times) = &mut self.last;
        if *last == piece {
            *times += 1;
        } else {
            self.last = (piece, 1);
        }
    }

    /// Servers before 0.12.6 cut off prompts that are too long without reporting it.
    fn report_overflow(&self, counted: Option<u64>, answer: &mut PartialReply) {
        let Some((min_tokens, window)) = self.overflow else {
            return;
        };
        if self.reported.swap(true, Ordering::Relaxed) {
            return;
        }
        let counted = counted.map_or_else(String::new, |counted| {
            format!(" (the server read {counted} tokens of it)")
        });
        answer.notice(format!(
            "the prompt has at least {min_tokens} tokens, the context window only {window}: Ollama seems to have cut off \
             the beginning of the prompt{counted}; use a larger window (num_ctx), a shorter prompt, or \
             Ollama 0.12.6 or later, which reports this as an error"
        ));
    }
}

fn no_line(text: &str) -> ModelError {
    let said = Failure::of_body(200, text.as_bytes()).message;
    ModelError::new(
        ErrorClass::Protocol,
        format!("unexpected response, not a line of Ollama's chat API: {said}"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::http::decoder::Decoder;
    use crate::http::decoder::tests::{check_all_cuts, decode};
    use crate::http::framing::Framing;
    use crate::{ChatEvent, ChatRequest, Purpose};

    fn decoder() -> Decoder<OllamaWire> {
        let request = ChatRequest::new(Purpose::Judge, Vec::new());
        let wire = OllamaWire {
            overflow: None,
            reported: Arc::default(),
            surrogates: Surrogates::default(),
            last: Default::default(),
        };
        Decoder::new(Framing::lines(), wire, &request)
    }

    #[test]
    fn a_stream_decodes_the_same_for_any_split() {
        let body = concat!(
            "{\"message\":{\"role\":\"assistant\",\"content\":\"\",\"thinking\":\"grü\"},\"done\":false}\n",
            "{\"message\":{\"content\":\"{\\\"score\\\":\"},\"done\":false}\r\n\n",
            "{\"message\":{\"content\":\"1, \\\"é𝄞\\\"}\"},\"logprobs\":[{\"token\":\"1\",\"logprob\":-0.1}]}\n",
            "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"length\",\"eval_count\":4}",
        );
        check_all_cuts(decoder, body.as_bytes());
        let (events, result) = decode(decoder(), &[body.as_bytes()]);
        result.unwrap();
        assert_eq!(
            events.first(),
            Some(&ChatEvent::Reasoning("grü".to_owned()))
        );
        assert!(events.contains(&ChatEvent::Usage(TokenUsage::new(None, Some(4), None))));
        assert_eq!(events.last(), Some(&ChatEvent::End(EndReason::Length)));
        check_all_cuts(
            decoder,
            b"{\"message\":{\"content\":\"a\"}}\n{\"error\":\"x\"}\n",
        );
    }

    #[test]
    fn odd_counts_and_split_characters_do_not_fail_the_reply() {
        let body = concat!(
            "{\"message\":{\"content\":\"a \\ud83d\"}}\n",
            "{\"message\":{\"content\":\"\\ude00\",\"thinking\":false},\"logprobs\":7}\n",
            "{\"message\":7,\"done\":true,\"prompt_eval_count\":-1,\"eval_count\":\"4\"}\n",
        );
        let (events, result) = decode(decoder(), &[body.as_bytes()]);
        result.unwrap();
        assert!(events.contains(&ChatEvent::Text("a 😀".to_owned())));
        assert!(events.contains(&ChatEvent::Usage(TokenUsage::new(None, Some(4), None))));
        assert_eq!(events.last(), Some(&ChatEvent::End(EndReason::Stop)));
    }

    #[test]
    fn a_reasoning_tag_from_the_prompt_is_recognized_in_a_verdict() {
        let body = concat!(
            "{\"message\":{\"content\":\"First,\\n\"}}\n",
            "{\"message\":{\"content\":\"then.\\n</think>\\n\\n{}\"},\"done\":true}\n",
        );
        let (events, result) = decode(decoder(), &[body.as_bytes()]);
        result.unwrap();
        assert_eq!(
            events,
            [
                ChatEvent::Reasoning("First,\nthen.\n".to_owned()),
                ChatEvent::Text("{}".to_owned()),
                ChatEvent::End(EndReason::Stop),
            ]
        );
    }

    proptest! {
        #[test]
        fn arbitrary_bodies_never_panic(
            parts in prop::collection::vec(prop::sample::select(vec![
                "{\"message\":{\"content\":\"a\"}}", "\n", "\r\n", "{\"done\":true}", "{", "}", "null", "ä", "7",
                "{\"error\":\"x\"}", "{\"message\":null,\"done\":false}", "{\"done\":true,\"done_reason\":\"load\"}",
            ]), 0..12),
            cut in 0_usize..400,
        ) {
            let body = parts.concat().into_bytes();
            let (head, tail) = body.split_at(cut.min(body.len()));
            prop_assert_eq!(decode(decoder(), &[head, tail]), decode(decoder(), &[&body]));
        }
    }
}
