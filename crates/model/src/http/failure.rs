//! Parses servers' error responses, which come in many shapes.

use std::time::Duration;

use serde_json::Value;

use super::clean::clean;
use super::retry::go_duration;

/// An error as described by a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Failure {
    /// The message; one line.
    pub(crate) message: String,
    /// The `code`, such as `insufficient_quota`.
    pub(crate) code: String,
    /// The `type` or `status`, such as `invalid_request_error` or `RESOURCE_EXHAUSTED`.
    pub(crate) kind: String,
    /// The parameter that it names.
    pub(crate) param: Option<String>,
    /// The HTTP status, of the response or inside its body.
    pub(crate) status: Option<u16>,
    /// The wait that it requests.
    pub(crate) wait: Option<Duration>,
    /// Whether the body is not JSON; then a gateway most likely wrote it.
    pub(crate) is_plain: bool,
    /// Whether the server requires a user name and a password.
    pub(crate) wants_password: bool,
}

impl Failure {
    /// The failure in a response that may be successful: only an explicit error counts.
    pub(crate) fn in_answer(value: &Value) -> Option<Self> {
        if let Value::Array(items) = value {
            // Gemini's compatible endpoint wraps the response in a list.
            return items.first().and_then(Self::in_answer);
        }
        if let Some(error) = value.get("error").filter(|error| is_error_value(error)) {
            return Some(Self::from_error(error));
        }
        (value.get("object").and_then(Value::as_str) == Some("error"))
            .then(|| Self::from_error(value))
    }

    /// The failure in the body of a response with an error status.
    pub(crate) fn of_body(status: u16, body: &[u8]) -> Self {
        let mut failure = match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::in_answer(&value).unwrap_or_else(|| Self::from_error(&value)),
            Err(_) => Self {
                message: plain_text(&String::from_utf8_lossy(body)),
                is_plain: true,
                ..Self::default()
            },
        };
        // Ollama's cloud models: the URL for signing in.
        if let Some(url) = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|value| value.get("signin_url")?.as_str().map(clean))
        {
            failure.message = format!("{} (sign in at {url})", failure.message);
        }
        // The status of the response itself is more reliable.
        failure.status = Some(status);
        failure
    }

    /// A failure with only a message.
    pub(crate) fn text(message: &str) -> Self {
        Self {
            message: clean(message),
            ..Self::default()
        }
    }

    /// Parses the value of `error`: a string, or an object of any shape.
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
            ..Self::default()
        };
        if failure.message.is_empty()
            && let Some(detail) = object.get("detail").or_else(|| object.get("message"))
        {
            failure.take_detail(detail);
        }
        // OpenRouter: the error of the provider behind it.
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
        failure.message = clean(&failure.message);
        failure
    }

    /// `FastAPI`'s list of validation errors.
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

    /// Whether a content filter refused to answer.
    pub(crate) fn is_refusal(&self) -> bool {
        ["content_filter", "content_policy_violation"].contains(&self.code.as_str())
    }

    /// Whether the server does not know or support a feature, as opposed to rejecting a value.
    pub(crate) fn is_unsupported(&self) -> bool {
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

    /// Whether the failure is about `name`, as the offending parameter or in the message.
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
}

/// Google's `RetryInfo`.
fn retry_delay(details: &Value) -> Option<Duration> {
    details
        .as_array()?
        .iter()
        .find_map(|detail| go_duration(detail.get("retryDelay")?.as_str()?))
}

/// Whether the value of `error` is an error: null, false and empty values are not.
fn is_error_value(error: &Value) -> bool {
    match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(object) => !object.is_empty(),
        _ => true,
    }
}

/// The message in a body that is not JSON: the title of an HTML page, otherwise the text.
fn plain_text(body: &str) -> String {
    let lower = body.to_ascii_lowercase();
    if lower.contains("<html") || lower.contains("<!doctype") {
        let title = lower
            .find("<title>")
            .map(|at| at + "<title>".len())
            .and_then(|from| Some((from, from + lower[from..].find("</title>")?)))
            .map(|(from, to)| clean(&body[from..to]));
        return match title {
            Some(title) if !title.is_empty() => format!("the server sent an HTML page: {title}"),
            _ => "the server sent an HTML page".to_owned(),
        };
    }
    clean(body)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ErrorClass;

    #[test]
    fn a_successful_response_is_not_a_failure() {
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
            "the server sent an HTML page: 502 Bad Gateway"
        );
    }

    #[test]
    fn parameters_are_named_as_whole_words() {
        let failure = Failure::text("Unsupported parameter: 'max_completion_tokens'");
        assert!(failure.names("max_completion_tokens"));
        assert!(!failure.names("max_tokens"));
        assert!(!failure.names("tokens"));
        assert!(failure.is_unsupported());
        let failure = Failure {
            param: Some("response_format.type".to_owned()),
            ..Failure::default()
        };
        assert!(failure.names("response_format"));
        assert!(!Failure::text("'temperature' is above the maximum of 2").is_unsupported());
    }

    #[test]
    fn google_retry_info_is_parsed() {
        let body = json!([{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "x",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]}}]);
        let error = Failure::of_body(429, body.to_string().as_bytes()).into_error();
        assert_eq!(error.class, ErrorClass::Rate);
        assert_eq!(error.retry_after, Some(Duration::from_secs(34)));
    }
}
