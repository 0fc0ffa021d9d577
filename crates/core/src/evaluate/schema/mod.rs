//! The `schema` evaluator: the JSON value in a draft must be valid under a JSON Schema.

mod coerce;
mod issue;
mod share;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Map, Value, json};

use self::coerce::Coercion;
use super::{CheckIssue, Finding, HardCheck, Subject, json_text};
use crate::criteria::json_schema::Compiled;
use crate::text::counted;
use crate::types::{IssueType, Place, SchemaConfig, Status};

/// The maximum number of reported errors. A revision cannot fix more at once.
const MAX_ERRORS: usize = 50;
/// The maximum number of errors that enter the score.
const MAX_SCORED: usize = 10_000;
/// The time limit of one check. A schema that refers to itself in two ways can run forever.
const LIMIT: Duration = Duration::from_secs(10);
/// The stack size of a check, in bytes: enough for a value of 128 levels (the parser's limit), each
/// with a chain of schemas. The memory is reserved, and committed only when used.
const STACK: usize = 128 << 20;
/// The keys of an object that is only the envelope around the answer, such as a chat server's
/// message.
const ENVELOPE: [&str; 9] = [
    "content",
    "usage",
    "model",
    "role",
    "finish_reason",
    "reasoning",
    "thinking",
    "attempts",
    "total_delay",
];

/// The `schema` evaluator. A draft passes only if it is strictly valid; the score is the share of
/// the schema's requirements that hold ([`share::share`]).
pub(super) struct SchemaCheck {
    checker: Arc<Checker>,
}

impl SchemaCheck {
    pub(super) fn new(config: &SchemaConfig) -> Result<Self, String> {
        let compiled = Compiled::new(config).map_err(|problem| problem.message)?;
        Ok(Self {
            checker: Arc::new(Checker::new(compiled, config.coerce)),
        })
    }
}

#[async_trait]
impl HardCheck for SchemaCheck {
    /// Runs on its own thread, with a large enough stack and a time limit.
    async fn check(&self, subject: &Subject<'_>) -> Finding {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let checker = Arc::clone(&self.checker);
        let draft = subject.draft.to_owned();
        let started = std::thread::Builder::new()
            .name("schema".to_owned())
            .stack_size(STACK)
            .spawn(move || {
                // The receiver is gone once the time limit has passed.
                let _ = sender.send(checker.check(&draft));
            });
        if let Err(error) = started {
            return Finding::none(
                Status::Failed,
                format!("the schema check could not be started: {error}"),
            );
        }
        match tokio::time::timeout(LIMIT, receiver).await {
            Ok(Ok(finding)) => finding,
            Ok(Err(_)) => Finding::none(Status::Failed, "the schema check crashed"),
            Err(_) => Finding::none(
                Status::Failed,
                format!(
                    "the schema check took longer than {} seconds: the schema refers to itself in too many ways",
                    LIMIT.as_secs()
                ),
            ),
        }
    }
}

/// Checks drafts against a schema.
struct Checker {
    compiled: Compiled,
    coerce: bool,
    /// Whether only scalars can be valid. Text without JSON is then a value, too.
    scalar: bool,
}

/// A value found in a draft.
struct Candidate {
    value: Value,
    /// The byte offset at which it begins, or `None` if the draft does not contain it literally.
    start: Option<usize>,
}

impl Checker {
    fn new(compiled: Compiled, coerce: bool) -> Self {
        let mut checker = Self {
            compiled,
            coerce,
            scalar: false,
        };
        let refused = |value: Value| checker.refuses(&value, &["type", "enum", "const"]);
        checker.scalar = refused(json!({})) && refused(json!([]));
        checker
    }

    /// Returns whether a value as a whole violates one of these keywords.
    fn refuses(&self, value: &Value, keywords: &[&str]) -> bool {
        self.compiled.validator().iter_errors(value).any(|error| {
            error.instance_path().is_empty() && keywords.contains(&error.kind().keyword())
        })
    }

    fn check(&self, draft: &str) -> Finding {
        let Candidate { mut value, start } = match self.candidate(draft) {
            Ok(candidate) => candidate,
            Err((problem, line)) => return no_json(problem, line),
        };
        let validator = self.compiled.validator();
        let changes = if self.coerce && !validator.is_valid(&value) {
            coerce::coerce(&self.compiled, &mut value)
        } else {
            Vec::new()
        };
        let found = start.map(|start| &draft[start..]);
        let first_line = start.map_or(0, |start| lines_before(draft, start));
        let errors: Vec<_> = validator.iter_errors(&value).take(MAX_SCORED).collect();
        let undecided = errors.iter().find(|error| {
            matches!(
                error.kind(),
                Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. }
            )
        });
        if let Some(error) = undecided {
            // Whether the value matches is unknown, so this does not count as an error of the
            // draft.
            let reason = format!(
                "the schema's pattern at `{}` takes too long on this draft",
                error.evaluation_path()
            );
            return Finding::none(Status::Failed, reason);
        }
        let shown = errors.iter().take(MAX_ERRORS);
        let issues = shown.map(|error| issue::issue(error, &self.compiled, found, first_line));
        let score = share::share(&self.compiled, &errors);
        let mut finding =
            Finding::graded(score, evidence(errors.len(), &changes)).with_issues(issues);
        finding.valid = Some(errors.is_empty());
        drop(errors);
        finding.value = Some(value);
        finding
    }

    /// Returns the value of a draft: the whole text, or the last complete value of a type that the
    /// schema allows.
    ///
    /// # Errors
    /// Why there is none, and in which line.
    fn candidate(&self, draft: &str) -> Result<Candidate, (String, Option<u64>)> {
        let text = draft.trim();
        match serde_json::from_str::<Value>(text) {
            // A string that holds JSON: models and tools encode twice.
            Ok(Value::String(inner)) if !self.scalar => {
                return self.candidate(&inner).map(|found| Candidate {
                    start: None,
                    ..found
                });
            }
            Ok(value) => {
                if let Some(content) = self.content(&value)
                    && let Ok(found) = self.candidate(content)
                {
                    return Ok(Candidate {
                        value: found.value,
                        start: None,
                    });
                }
                let start = draft.len() - draft.trim_start().len();
                return Ok(Candidate {
                    value,
                    start: Some(start),
                });
            }
            Err(_) => {}
        }
        if self.scalar {
            let text = unfenced(text);
            let value =
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
            return Ok(Candidate { value, start: None });
        }
        let mut scan = json_text::scan(draft);
        let wanted = scan
            .found
            .iter()
            .rposition(|found| !self.refuses(&found.value, &["type"]));
        // Without a type in the schema, an array in prose is more likely a reference than the
        // answer.
        let objects = scan.found.iter().rposition(|found| found.value.is_object());
        let chosen = match (wanted, objects) {
            (Some(wanted), Some(object)) if !self.refuses(&scan.found[object].value, &["type"]) => {
                if self.expects_array() {
                    wanted
                } else {
                    object
                }
            }
            (Some(wanted), _) => wanted,
            (None, object) => match object.or(scan.found.len().checked_sub(1)) {
                Some(any) => any,
                None => {
                    return Err(match scan.longest_broken() {
                        Some(broken) => {
                            let line = |at| lines_before(draft, at) + 1;
                            let (begins, fails) = (line(broken.start), line(broken.end));
                            (
                                format!(
                                    "the JSON that begins in line {begins} is not valid: {} (line {fails})",
                                    broken.reason
                                ),
                                Some(fails),
                            )
                        }
                        None => ("there is no JSON value in the text".to_owned(), None),
                    });
                }
            },
        };
        let found = scan.found.swap_remove(chosen);
        Ok(Candidate {
            value: found.value,
            start: Some(found.start),
        })
    }

    /// Returns whether an array can be valid and an object cannot.
    fn expects_array(&self) -> bool {
        self.refuses(&json!({}), &["type"])
    }

    /// Returns the text in an envelope, unless the schema describes the envelope itself.
    fn content<'v>(&self, value: &'v Value) -> Option<&'v str> {
        let object = value.as_object()?;
        let content = object.get("content")?.as_str()?;
        let is_envelope =
            |object: &Map<String, Value>| object.keys().all(|key| ENVELOPE.contains(&key.as_str()));
        (is_envelope(object) && !self.compiled.validator().is_valid(value)).then_some(content)
    }
}

fn evidence(errors: usize, changes: &[Coercion]) -> String {
    /// The maximum number of conversions that are listed individually.
    const MAX_LISTED: usize = 5;
    let verdict = match errors {
        0 => "valid".to_owned(),
        errors => counted(errors, "error"),
    };
    let mut listed: Vec<String> = changes
        .iter()
        .take(MAX_LISTED)
        .map(Coercion::describe)
        .collect();
    if changes.len() > MAX_LISTED {
        listed.push(format!("{} more", changes.len() - MAX_LISTED));
    }
    if listed.is_empty() {
        verdict
    } else {
        format!("{verdict}, having read {}", listed.join(", "))
    }
}

/// Returns the finding for a draft without a value: the lowest score, not a failure of the check.
fn no_json(problem: String, line: Option<u64>) -> Finding {
    let issue = CheckIssue::new(IssueType::Missing, problem.clone())
        .fix("answer with the complete JSON value, and nothing else")
        .at(Place {
            line,
            path: Some(String::new()),
            keyword: Some("type".to_owned()),
            ..Place::default()
        });
    let mut finding = Finding::graded(0.0, problem).with_issues([issue]);
    finding.valid = Some(false);
    finding
}

/// Removes a fence around the whole text.
fn unfenced(text: &str) -> &str {
    let inner = || {
        let body = text.strip_prefix("```")?.strip_suffix("```")?;
        Some(body.split_once('\n')?.1.trim())
    };
    inner().unwrap_or(text)
}

fn lines_before(text: &str, at: usize) -> u64 {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..at.min(text.len())]).count() as u64
}

#[cfg(test)]
mod tests;
