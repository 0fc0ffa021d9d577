//! What a server says when it fails, in the many shapes there are, and what class of error it is.

use std::time::Duration;

use serde_json::Value;

use super::clean::one_line;
use super::retry::go_duration;
use crate::model::{ErrorClass, ModelError};

/// An error as a server described it.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Failure {
    /// In its words; one line.
    pub(crate) message: String,
    /// Its `code`, such as `insufficient_quota`.
    pub(crate) code: String,
    /// Its `type` or `status`, such as `invalid_request_error` or `RESOURCE_EXHAUSTED`.
    pub(crate) kind: String,
    /// The parameter that it names.
    pub(crate) param: Option<String>,
    /// The HTTP status, of the answer or inside of it.
    pub(crate) status: Option<u16>,
    /// How long it asks to wait.
    pub(crate) wait: Option<Duration>,
}

impl Failure {
    /// The failure in a value that may be an answer instead: only what calls itself an error is one.
    pub(crate) fn in_answer(value: &Value) -> Option<Self> {
        if let Value::Array(items) = value {
            // Gemini's compatible endpoint answers with a list of one.
            return items.first().and_then(Self::in_answer);
        }
        if let Some(error) = value.get("error").filter(|error| is_said(error)) {
            return Some(Self::from_error(error));
        }
        (value.get("object").and_then(Value::as_str) == Some("error"))
            .then(|| Self::from_error(value))
    }

    /// The failure in the body of an answer with an error status.
    pub(crate) fn of_body(status: u16, body: &[u8]) -> Self {
        let mut failure = match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::in_answer(&value).unwrap_or_else(|| Self::from_error(&value)),
            Err(_) => Self {
                message: plain_text(&String::from_utf8_lossy(body)),
                ..Self::default()
            },
        };
        // The status of the answer itself is the more reliable one.
        failure.status = Some(status);
        failure
    }

    /// A failure in plain words.
    pub(crate) fn text(message: &str) -> Self {
        Self {
            message: one_line(message),
            ..Self::default()
        }
    }

    /// Takes what is inside of `error`: a string, or an object of whatever shape.
    pub(crate) fn from_error(error: &Value) -> Self {
        let object = match error {
            Value::String(message) => {
                // Some gateways put the JSON of another error into the string.
                return match serde_json::from_str::<Value>(message) {
                    Ok(inner @ Value::Object(_)) => {
                        Self::in_answer(&inner).unwrap_or_else(|| Self::from_error(&inner))
                    }
                    _ => Self::text(message),
                };
            }
            Value::Object(object) => object,
            other => return Self::text(&other.to_string()),
        };
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| match object.get(name)? {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        let status = ["status_code", "code", "status"]
            .into_iter()
            .filter_map(number)
            .find(|status| (400..600).contains(status))
            .and_then(|status| u16::try_from(status).ok());
        let mut failure = Self {
            message: text("message").to_owned(),
            code: text("code").to_owned(),
            kind: [text("type"), text("status")]
                .into_iter()
                .find(|kind| !kind.is_empty())
                .unwrap_or_default()
                .to_owned(),
            param: object
                .get("param")
                .and_then(Value::as_str)
                .filter(|param| !param.is_empty())
                .map(str::to_owned),
            status,
            wait: object.get("details").and_then(retry_delay),
        };
        if failure.message.is_empty()
            && let Some(detail) = object.get("detail").or_else(|| object.get("message"))
        {
            failure.take_detail(detail);
        }
        // OpenRouter: what the provider behind it said.
        if let Some(raw) = object
            .get("metadata")
            .and_then(|data| data.get("raw"))
            .and_then(Value::as_str)
        {
            failure.message = format!("{}: {raw}", failure.message);
        }
        if failure.message.is_empty() {
            failure.message = error.to_string();
        }
        failure.message = one_line(&failure.message);
        failure
    }

    /// `FastAPI`'s list of what is wrong with the request.
    fn take_detail(&mut self, detail: &Value) {
        match detail {
            Value::String(message) => self.message.clone_from(message),
            Value::Array(items) => {
                if let Some(first) = items.first() {
                    let text = |name: &str| first.get(name).and_then(Value::as_str);
                    text("msg")
                        .unwrap_or_default()
                        .clone_into(&mut self.message);
                    text("type").unwrap_or_default().clone_into(&mut self.kind);
                    self.param = first
                        .get("loc")
                        .and_then(Value::as_array)
                        .and_then(|path| path.iter().find(|part| part.as_str() != Some("body")))
                        .and_then(Value::as_str)
                        .map(str::to_owned);
                    if let Some(param) = &self.param {
                        self.message = format!("{param}: {}", self.message);
                    }
                }
            }
            other => self.message = other.to_string(),
        }
    }

    /// Whether a filter refused to answer.
    pub(crate) fn is_refusal(&self) -> bool {
        ["content_filter", "content_policy_violation"].contains(&self.code.as_str())
    }

    /// Whether the server says that it does not know or not support something, rather than that a value
    /// is wrong.
    pub(crate) fn says_unsupported(&self) -> bool {
        const WORDS: [&str; 19] = [
            "unsupported",
            "not support",
            "n't support",
            "only the default",
            "unknown",
            "unrecognized",
            "unrecognised",
            "unexpected",
            "extra inputs",
            "extra_forbidden",
            "not permitted",
            "not allowed",
            "not available",
            "unavailable",
            "not implemented",
            "must be 'json_schema'",
            "deprecated",
            "use 'max_completion_tokens'",
            "incompatible",
        ];
        let message = self.message.to_lowercase();
        WORDS.iter().any(|word| {
            message.contains(word) || self.code.contains(word) || self.kind.contains(word)
        })
    }

    /// Whether the server speaks of `name`, as the parameter at fault or in its message.
    pub(crate) fn names(&self, name: &str) -> bool {
        if let Some(param) = &self.param {
            let top = param.split(['.', '[']).next().unwrap_or_default();
            if top == name {
                return true;
            }
        }
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        self.message.match_indices(name).any(|(at, _)| {
            let before = self.message[..at].chars().next_back();
            let after = self.message[at + name.len()..].chars().next();
            !before.is_some_and(word) && !after.is_some_and(word)
        })
    }

    /// The error of ours.
    pub(crate) fn into_error(self) -> ModelError {
        let class = self.class();
        let hint = match class {
            ErrorClass::ContextTooLong => Some(self.context_hint()),
            ErrorClass::Auth => Some(match self.status {
                Some(407) => "the proxy asks for a password".to_owned(),
                Some(403) => {
                    "the key is known, but may not do this: check the model and the account"
                        .to_owned()
                }
                _ => "check the API key: is it set, for this provider, and still valid?".to_owned(),
            }),
            ErrorClass::Quota => {
                Some("add credit at the provider, or use another model".to_owned())
            }
            _ => None,
        };
        ModelError {
            class,
            message: if self.message.is_empty() {
                "the server gave no reason".to_owned()
            } else {
                self.message
            },
            url: None,
            status: self.status,
            retry_after: self.wait,
            hint,
        }
    }

    /// The class: by what the server calls the error, then by its status, then by its words.
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
            || self.status == Some(413)
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
        ]) {
            return ErrorClass::NotFound;
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

    fn context_hint(&self) -> String {
        let advice = "shorten the prompt or its context, allow a shorter answer, or use a model \
                      with a larger window";
        match token_figures(&self.message) {
            Some((asked, window)) => {
                format!("about {asked} tokens do not fit the window of {window}; {advice}")
            }
            None => advice.to_owned(),
        }
    }
}

/// What was asked for and what fits, from messages such as "maximum context length is 8192 tokens.
/// However, you requested 10000 tokens" or "request (9000 tokens) exceeds the available context size
/// (4096 tokens)".
fn token_figures(message: &str) -> Option<(u64, u64)> {
    let mut figures: Vec<(usize, u64)> = Vec::new();
    let mut at = 0;
    while let Some(start) = message[at..].find(|c: char| c.is_ascii_digit()) {
        let start = at + start;
        let digits: String = message[start..]
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == ',')
            .collect();
        at = start + digits.len();
        // Names of models have figures, too, but rather small ones.
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

/// Google's `RetryInfo`.
fn retry_delay(details: &Value) -> Option<Duration> {
    details
        .as_array()?
        .iter()
        .find_map(|detail| go_duration(detail.get("retryDelay")?.as_str()?))
}

/// An error that is null, false or empty is none.
fn is_said(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

/// The words of a body that is no JSON; of a page, its title.
fn plain_text(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    if lower.contains("<html") || lower.contains("<!doctype") {
        let title = lower
            .find("<title>")
            .map(|at| at + "<title>".len())
            .and_then(|from| Some((from, from + lower[from..].find("</title>")?)))
            .map(|(from, to)| one_line(&body[from..to]));
        return match title {
            Some(title) if !title.is_empty() => format!("an HTML page came: {title}"),
            _ => "an HTML page came".to_owned(),
        };
    }
    one_line(body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn class(status: u16, body: &Value) -> ErrorClass {
        Failure::of_body(status, body.to_string().as_bytes()).class()
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
    fn the_status_may_be_inside() {
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
    fn an_answer_is_no_failure() {
        for value in [
            json!({"choices": []}),
            json!({"error": null}),
            json!({"error": ""}),
            json!({"error": {}, "choices": [1]}),
            json!([]),
        ] {
            assert_eq!(Failure::in_answer(&value), None, "{value}");
        }
        assert!(Failure::in_answer(&json!([{"error": {"code": 400}}])).is_some());
    }

    #[test]
    fn messages_from_every_shape() {
        let message = |body: &str| Failure::of_body(400, body.as_bytes()).message;
        assert_eq!(message(r#"{"error":"a\nb"}"#), "a b");
        assert_eq!(message(r#"{"error":{"message":"a"}}"#), "a");
        assert_eq!(message(r#"{"message":"a"}"#), "a");
        assert_eq!(message(r#"{"detail":"a"}"#), "a");
        assert_eq!(
            message(r#"{"detail":[{"loc":["body","seed"],"msg":"no"}]}"#),
            "seed: no"
        );
        assert_eq!(
            message(r#"{"error":"{\"error\":{\"message\":\"inner\"}}"}"#),
            "inner"
        );
        assert_eq!(
            message(r#"{"error":{"message":"Provider error","metadata":{"raw":"busy"}}}"#),
            "Provider error: busy"
        );
        assert_eq!(message("\u{1b}[31mplain"), "plain");
        assert_eq!(
            message("<html><title>502 Bad\nGateway</title></html>"),
            "an HTML page came: 502 Bad Gateway"
        );
    }

    #[test]
    fn the_figures_of_an_overflow() {
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
            assert_eq!(token_figures(message), expected, "{message}");
        }
    }

    #[test]
    fn parameters_are_named_as_whole_words() {
        let failure = Failure::text("Unsupported parameter: 'max_completion_tokens'");
        assert!(failure.names("max_completion_tokens"));
        assert!(!failure.names("max_tokens"));
        assert!(!failure.names("tokens"));
        assert!(failure.says_unsupported());
        let failure = Failure {
            param: Some("response_format.type".to_owned()),
            ..Failure::default()
        };
        assert!(failure.names("response_format"));
        assert!(!Failure::text("'temperature' is above the maximum of 2").says_unsupported());
    }

    #[test]
    fn google_says_how_long_to_wait() {
        let body = json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]}}]);
        let error = Failure::of_body(429, body.to_string().as_bytes()).into_error();
        assert_eq!(error.class, ErrorClass::Rate);
        assert_eq!(error.retry_after, Some(Duration::from_secs(34)));
    }
}
