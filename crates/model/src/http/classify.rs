//! Maps a server's failure to an error class and a hint.

use super::failure::Failure;
use crate::{ErrorClass, ModelError};

/// Messages of servers that cannot load a model.
const CANNOT_LOAD: [&str; 3] = [
    "unable to load model",
    "may be incompatible",
    "binary not found",
];

impl Failure {
    /// Converts the failure to a model error.
    pub(crate) fn into_error(self) -> ModelError {
        let class = self.class();
        let hint = match class {
            ErrorClass::ContextTooLong => Some(self.context_hint()),
            ErrorClass::Auth => Some(match self.status {
                Some(407) => "the proxy requires a password: add it to the proxy's address, as in \
                     HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
                    .to_owned(),
                Some(401) if self.wants_password => {
                    "the server requires a user name and a password: set the header `Authorization` under \
                     `headers` of the provider in the configuration, as in \
                     headers = { Authorization = \"Basic BASE64\" }"
                        .to_owned()
                }
                Some(403) => {
                    "the key is valid but lacks permission: check the model and the account"
                        .to_owned()
                }
                _ => "check that the API key is set, belongs to this provider, and is still valid".to_owned(),
            }),
            ErrorClass::Quota => {
                Some("add credit at the provider, or use another model".to_owned())
            }
            ErrorClass::Unable => Some(self.unable_hint().to_owned()),
            _ if self.is_gateway_limit() => Some(
                "a gateway in front of the server limits the size of requests (nginx: `client_max_body_size`): raise \
                 that limit, or shorten the prompt or its context"
                    .to_owned(),
            ),
            _ => None,
        };
        ModelError {
            class,
            message: if self.message.is_empty() {
                "the server sent no error message".to_owned()
            } else {
                self.message
            },
            url: None,
            status: self.status,
            retry_after: self.wait,
            hint,
        }
    }

    /// The error class: by the server's error code, then by the status, then by the message.
    pub(crate) fn class(&self) -> ErrorClass {
        let message = self.message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        let called = |names: &[&str]| {
            names.iter().any(|name| {
                self.code.eq_ignore_ascii_case(name) || self.kind.eq_ignore_ascii_case(name)
            })
        };
        if called(&[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_balance",
        ]) || self.status == Some(402)
            || says(&[
                "credit balance is too low",
                "insufficient balance",
                "exceeded your current quota, please check your plan and billing",
            ]) && !called(&["RESOURCE_EXHAUSTED"])
        {
            return ErrorClass::Quota;
        }
        if called(&["context_length_exceeded", "exceed_context_size_error"])
            || self.status == Some(413) && !self.is_gateway_limit()
            || matches!(self.status, None | Some(400 | 422 | 500))
                && says(&[
                    "context length",
                    "context window",
                    "context size",
                    "context_length",
                    "prompt is too long",
                    "input is too long",
                    "too many tokens",
                    "reduce the length",
                    "exceeds the maximum number of tokens",
                ])
        {
            return ErrorClass::ContextTooLong;
        }
        if called(&[
            "model_not_found",
            "model_decommissioned",
            "not_found_error",
            "NOT_FOUND",
        ]) || self.status == Some(400) && says(&["invalid model name"])
        {
            return ErrorClass::NotFound;
        }
        if matches!(self.status, None | Some(500)) {
            if self.lacks_memory() || says(&CANNOT_LOAD) {
                return ErrorClass::Unable;
            }
            if says(&["must be of type"]) {
                return ErrorClass::Rejected;
            }
        }
        match self.status {
            Some(403) if says(&["flagged", "moderation"]) => ErrorClass::Rejected,
            Some(401 | 403 | 407) => ErrorClass::Auth,
            Some(404 | 405 | 410) => ErrorClass::NotFound,
            Some(429) => ErrorClass::Rate,
            // Redirects are not followed.
            Some(300..=399 | 501) => ErrorClass::Rejected,
            Some(408 | 409 | 425 | 500..=599) => ErrorClass::Transient,
            Some(400..=499) => ErrorClass::Rejected,
            _ if called(&[
                "rate_limit_exceeded",
                "rate_limit_error",
                "too_many_requests",
                "RESOURCE_EXHAUSTED",
            ]) || says(&["rate limit", "too many requests"]) =>
            {
                ErrorClass::Rate
            }
            _ if called(&[
                "authentication_error",
                "permission_error",
                "invalid_api_key",
                "PERMISSION_DENIED",
                "UNAUTHENTICATED",
            ]) =>
            {
                ErrorClass::Auth
            }
            _ if called(&[
                "invalid_request_error",
                "BadRequestError",
                "INVALID_ARGUMENT",
            ]) =>
            {
                ErrorClass::Rejected
            }
            _ => ErrorClass::Transient,
        }
    }

    /// Whether a gateway, rather than the model's server, rejected the size of the request.
    fn is_gateway_limit(&self) -> bool {
        self.status == Some(413) && self.is_plain
    }

    fn lacks_memory(&self) -> bool {
        let message = self.message.to_lowercase();
        ["requires more system memory", "out of memory"]
            .iter()
            .any(|words| message.contains(words))
    }

    fn unable_hint(&self) -> &'static str {
        if self.lacks_memory() {
            "use a smaller model or a smaller context window (`--num-ctx`), or free memory on the server"
        } else if self.message.to_lowercase().contains("binary not found") {
            "the server's installation is incomplete: reinstall it"
        } else {
            "update the server, or pull the model again (`ollama pull`): the file may be damaged or too new"
        }
    }

    fn context_hint(&self) -> String {
        let advice = "shorten the prompt or its context, allow a shorter answer, or use a model \
                      with a larger window";
        match token_counts(&self.message) {
            Some((asked, window)) => {
                format!("about {asked} tokens do not fit the window of {window}; {advice}")
            }
            None => advice.to_owned(),
        }
    }
}

/// The requested number of tokens and the limit, from messages such as "maximum context length is 8192 tokens.
/// However, you requested 10000 tokens" or "request (9000 tokens) exceeds the available context size (4096 tokens)".
fn token_counts(message: &str) -> Option<(u64, u64)> {
    let mut figures: Vec<(usize, u64)> = Vec::new();
    let mut at = 0;
    while let Some(start) = message[at..].find(|c: char| c.is_ascii_digit()) {
        let start = at + start;
        let digits: String = message[start..]
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == ',')
            .collect();
        at = start + digits.len();
        // Model names contain numbers too, but small ones.
        if let Ok(figure) = digits.replace(',', "").parse::<u64>()
            && figure >= 100
        {
            figures.push((start, figure));
        }
    }
    let asked = figures.iter().map(|&(_, figure)| figure).max()?;
    let named = ["context length is ", "context length of ", "context size ("]
        .into_iter()
        .find_map(|words| Some(message.find(words)? + words.len()))
        .and_then(|after| figures.iter().find(|&&(at, _)| at == after))
        .map(|&(_, figure)| figure);
    let window = named.or_else(|| {
        figures
            .iter()
            .map(|&(_, figure)| figure)
            .filter(|&figure| figure < asked)
            .max()
    })?;
    (window < asked).then_some((asked, window))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn class(status: u16, body: &Value) -> ErrorClass {
        Failure::of_body(status, body.to_string().as_bytes()).class()
    }

    #[test]
    fn gateway_errors_are_recognized() {
        let nginx = b"<html><head><title>413 Request Entity Too Large</title></head></html>";
        let error = Failure::of_body(413, nginx).into_error();
        assert_eq!(error.class, ErrorClass::Rejected);
        assert!(error.hint.unwrap().contains("client_max_body_size"));
        let error = Failure {
            wants_password: true,
            ..Failure::of_body(401, b"<html>401 Authorization Required</html>")
        };
        assert!(error.into_error().hint.unwrap().contains("`headers`"));
    }

    #[test]
    fn classes_by_name_status_and_words() {
        use ErrorClass::{Auth, ContextTooLong, NotFound, Quota, Rate, Rejected, Transient};
        let error =
            |message: &str, code: &str| json!({"error": {"message": message, "code": code}});
        for (status, body, expected) in [
            (401, error("Incorrect API key", "invalid_api_key"), Auth),
            (403, json!({"error": "forbidden"}), Auth),
            (403, error("Your input was flagged", ""), Rejected),
            (
                429,
                error("You exceeded your current quota", "insufficient_quota"),
                Quota,
            ),
            (
                429,
                error("Rate limit reached", "rate_limit_exceeded"),
                Rate,
            ),
            (402, error("Insufficient credits", ""), Quota),
            (
                400,
                error("Your credit balance is too low to access the API", ""),
                Quota,
            ),
            (
                404,
                error("The model `x` does not exist", "model_not_found"),
                NotFound,
            ),
            (
                400,
                error(
                    "The model `x` has been decommissioned",
                    "model_decommissioned",
                ),
                NotFound,
            ),
            (
                400,
                error("too long", "context_length_exceeded"),
                ContextTooLong,
            ),
            (
                400,
                json!({"error": {"code": 400, "type": "exceed_context_size_error", "message":
                "request (9000 tokens) exceeds the available context size (8192 tokens)"}}),
                ContextTooLong,
            ),
            (
                400,
                json!({"object": "error", "message":
                "This model's maximum context length is 4096 tokens."}),
                ContextTooLong,
            ),
            (413, json!({}), ContextTooLong),
            (
                400,
                error(
                    "/chat/completions: Invalid model name passed in model=x",
                    "",
                ),
                NotFound,
            ),
            (
                400,
                error(
                    "Unsupported parameter: 'max_tokens'",
                    "unsupported_parameter",
                ),
                Rejected,
            ),
            (
                422,
                json!({"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}),
                Rejected,
            ),
            (500, json!({}), Transient),
            (503, json!("busy"), Transient),
            (
                529,
                json!({"type": "error", "error": {"type": "overloaded_error"}}),
                Transient,
            ),
            (408, json!({}), Transient),
            (501, json!({}), Rejected),
        ] {
            assert_eq!(class(status, &body), expected, "{status} {body}");
        }
    }

    #[test]
    fn the_status_may_be_in_the_body() {
        use ErrorClass::{Auth, Rate, Rejected, Transient};
        let class = |error: Value| {
            Failure::in_answer(&json!({"error": error}))
                .unwrap()
                .class()
        };
        assert_eq!(class(json!({"code": 429, "message": "x"})), Rate);
        assert_eq!(class(json!({"code": "502", "message": "x"})), Transient);
        assert_eq!(class(json!({"status_code": 401, "message": "x"})), Auth);
        assert_eq!(class(json!({"type": "invalid_request_error"})), Rejected);
        assert_eq!(class(json!({"status": "UNAVAILABLE"})), Transient);
        assert_eq!(
            class(json!("model runner has unexpectedly stopped")),
            Transient
        );
        assert_eq!(class(json!("rate limit exceeded")), Rate);
    }

    #[test]
    fn overflow_messages_are_parsed() {
        for (message, expected) in [
            (
                "This model's maximum context length is 8192 tokens. However, you requested 10000 \
                 tokens (9000 in the messages, 1000 in the completion).",
                Some((10_000, 8192)),
            ),
            (
                "request (9001 tokens) exceeds the available context size (4096 tokens), try increasing it",
                Some((9001, 4096)),
            ),
            (
                "prompt is too long: 208310 tokens > 200000 maximum",
                Some((208_310, 200_000)),
            ),
            (
                "The input token count (1,200,000) exceeds the maximum number of tokens allowed (1,048,576).",
                Some((1_200_000, 1_048_576)),
            ),
            (
                "the prompt is longer than the context length currently available",
                None,
            ),
        ] {
            assert_eq!(token_counts(message), expected, "{message}");
        }
    }
}
