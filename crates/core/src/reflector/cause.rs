use std::sync::LazyLock;

use regex::Regex;

use super::ErrorCategory::{
    self, Execution, Network, NotFound, Permission, Resource, Timeout, Validation,
};
use super::{ErrorCode, TaskError, normalize, phrases};

/// The category of a failure, and how it was determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cause {
    /// What kind.
    pub category: ErrorCategory,
    /// How the category was determined.
    pub basis: Basis,
}

/// How a category was determined, most reliable first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Basis {
    /// The executor stated it.
    Declared,
    /// From the error's type or code.
    Typed,
    /// From the words of the message.
    Said,
    /// Not determined: there was no indication.
    Unknown,
}

impl Basis {
    /// Returns the confidence in the category, 0 to 1. A guess from words is more likely wrong than
    /// right.
    pub fn certainty(self) -> f64 {
        match self {
            Self::Declared => 0.95,
            Self::Typed => 0.8,
            Self::Said => 0.45,
            Self::Unknown => 0.3,
        }
    }
}

impl Cause {
    const UNKNOWN: Self = Self {
        category: Execution,
        basis: Basis::Unknown,
    };

    fn typed(category: ErrorCategory) -> Self {
        Self {
            category,
            basis: Basis::Typed,
        }
    }
}

/// Determines the category of an error: from the executor's statement, or else from its type, its
/// code, or its words. Without any indication it is `execution`.
pub fn cause(error: Option<&TaskError>) -> Cause {
    let Some(error) = error else {
        return Cause::UNKNOWN;
    };
    if let Some(category) = error.category {
        return Cause {
            category,
            basis: Basis::Declared,
        };
    }
    let by_type = error.kind.as_deref().and_then(of_type);
    let by_code = || error.code.as_ref().and_then(of_code);
    if let Some(category) = by_type.or_else(by_code) {
        return Cause::typed(category);
    }
    if let Some(inner) = normalize::unpacked(&error.message) {
        // Objects within this object are ignored.
        let inner_type = inner.kind.as_deref().and_then(of_type);
        let inner_code = || inner.code.as_ref().and_then(of_code);
        return inner_type
            .or_else(inner_code)
            .map_or_else(|| of_message(&inner.message), Cause::typed);
    }
    let cause = of_message(&error.message);
    match &error.kind {
        // An unknown specific type indicates a failure of the task itself.
        Some(kind) if cause.basis == Basis::Unknown && !is_general(kind) => Cause::typed(Execution),
        _ => cause,
    }
}

fn of_message(message: &str) -> Cause {
    let lines = normalize::lines(message);
    let typed = lines.first().and_then(|line| normalize::type_named(line));
    let by_type = typed.and_then(of_type);
    let by_code = || lines.iter().find_map(|line| code_named(line));
    if let Some(category) = by_type.or_else(by_code) {
        return Cause::typed(category);
    }
    let said = lines
        .iter()
        .find_map(|line| phrases::category(&normalize::statement(line)));
    match (said, typed) {
        (Some(category), _) => Cause {
            category,
            basis: Basis::Said,
        },
        (None, Some(kind)) if !is_general(kind) => Cause::typed(Execution),
        _ => Cause::UNKNOWN,
    }
}

/// Returns the category of a type by its name: `SocketTimeoutException`,
/// `std::io::ErrorKind::NotFound`, `timeout`.
fn of_type(name: &str) -> Option<ErrorCategory> {
    /// Parts of type names, in the order in which they are tested.
    const PARTS: [(ErrorCategory, &str); 6] = [
        (Timeout, "timeout timedout deadline"),
        (
            Permission,
            "permission forbidden unauthorized accessdenied authentication authorization unauthenticated credential",
        ),
        (NotFound, "notfound nosuch doesnotexist"),
        (
            Network,
            "connection connecterror network socket unreachable sslerror tlserror gaierror brokenpipe unknownhost",
        ),
        (
            Validation,
            "validation invalid valueerror illegalargument argumenterror badrequest decodeerror parseerror schemaerror",
        ),
        (
            Resource,
            "memoryerror outofmemory resourceexhausted resourceerror quota ratelimit toomanyrequests diskfull nospace",
        ),
    ];
    let last = name.rsplit(['.', ':']).next().unwrap_or(name);
    let bare: String = last
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect();
    match bare.as_str() {
        "memory" | "disk" | "resource" | "oom" => return Some(Resource),
        "execution" => return Some(Execution),
        _ => {}
    }
    PARTS
        .into_iter()
        .find(|(_, parts)| parts.split(' ').any(|part| bare.contains(part)))
        .map(|(category, _)| category)
}

/// Returns whether a type says only that there is an error.
fn is_general(name: &str) -> bool {
    let last = name
        .rsplit(['.', ':'])
        .next()
        .unwrap_or(name)
        .to_lowercase();
    [
        "error",
        "exception",
        "runtimeerror",
        "runtimeexception",
        "ioerror",
        "ioexception",
        "oserror",
        "httperror",
        "apierror",
        "toolerror",
        "taskerror",
        "unknownerror",
        "",
    ]
    .contains(&last.as_str())
}

fn of_code(code: &ErrorCode) -> Option<ErrorCategory> {
    match code {
        ErrorCode::Number(number) => of_number(*number),
        ErrorCode::Name(name) => match name.trim().parse() {
            Ok(number) => of_number(number),
            Err(_) => of_name(name).or_else(|| phrases::category(&normalize::statement(name))),
        },
    }
}

/// HTTP status codes (RFC 9110, 6585), and exit codes of `timeout` and of shells (POSIX).
fn of_number(number: i64) -> Option<ErrorCategory> {
    Some(match number {
        124 | 408 | 504 | 524 => Timeout,
        126 | 401 | 403 | 407 => Permission,
        127 | 404 | 410 => NotFound,
        502 | 503 | 521..=523 => Network,
        400 | 405 | 406 | 411..=416 | 422 => Validation,
        429 | 507 => Resource,
        500 | 501 => Execution,
        _ => return None,
    })
}

/// Names of system errors (POSIX) and remote call errors (gRPC).
fn of_name(name: &str) -> Option<ErrorCategory> {
    Some(match name {
        "ETIMEDOUT" | "ESOCKETTIMEDOUT" | "ETIME" => Timeout,
        "EACCES" | "EPERM" | "EROFS" => Permission,
        "ENOENT" | "ENODEV" | "ENXIO" | "ESRCH" => NotFound,
        // In Node, `ENOTFOUND` is a host name that could not be resolved.
        "ECONNREFUSED" | "ECONNRESET" | "ECONNABORTED" | "EHOSTUNREACH" | "EHOSTDOWN"
        | "ENETUNREACH" | "ENETDOWN" | "EPIPE" | "ENOTFOUND" | "EAI_AGAIN" | "EADDRNOTAVAIL"
        | "UNAVAILABLE" => Network,
        "EINVAL" | "ENAMETOOLONG" | "EDOM" | "OUT_OF_RANGE" => Validation,
        "ENOMEM" | "ENOSPC" | "EMFILE" | "ENFILE" | "EDQUOT" | "EAGAIN" => Resource,
        _ => return None,
    })
}

/// Returns the category of an unambiguous code in a line of a message.
fn code_named(line: &str) -> Option<ErrorCategory> {
    static NAME: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\bE[A-Z_]{3,}\b").expect("a test uses it"));
    static STATUS: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(
            r"(?i)\b(?:https?(?:/\d(?:\.\d)?)?|status|error)(?: status)?(?: code)?(?:: ?| ?= ?| ?\(| )([45]\d\d)\b",
        )
        .expect("a test uses it")
    });
    static EXIT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"(?i)\bexit(?:ed)?(?: with)?(?: code| status):? (12[467])\b")
            .expect("a test uses it")
    });
    let named = NAME
        .find_iter(line)
        .find_map(|found| of_name(found.as_str()));
    let number = |pattern: &Regex| {
        let number = pattern.captures(line)?.get(1)?.as_str().parse().ok()?;
        // A status such as 500 is less specific than the words of the message.
        of_number(number).filter(|category| *category != Execution)
    };
    named.or_else(|| number(&STATUS)).or_else(|| number(&EXIT))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(message: &str) -> Cause {
        cause(Some(&TaskError::new(message)))
    }

    #[test]
    fn what_the_executor_says_goes_first_then_type_then_code_then_words() {
        let mut error = TaskError {
            message: "Permission denied".to_owned(),
            kind: Some("requests.exceptions.ReadTimeout".to_owned()),
            code: Some(ErrorCode::Number(404)),
            category: Some(Network),
        };
        let basis = |error: &TaskError| {
            let cause = cause(Some(error));
            (cause.category, cause.basis)
        };
        assert_eq!(basis(&error), (Network, Basis::Declared));
        error.category = None;
        assert_eq!(basis(&error), (Timeout, Basis::Typed));
        error.kind = Some("RuntimeError".to_owned());
        assert_eq!(basis(&error), (NotFound, Basis::Typed));
        error.code = Some(ErrorCode::Number(1));
        assert_eq!(basis(&error), (Permission, Basis::Said));
        error.message.clear();
        assert_eq!(basis(&error), (Execution, Basis::Unknown));
        error.kind = Some("ZeroDivisionError".to_owned());
        assert_eq!(basis(&error), (Execution, Basis::Typed));
        assert_eq!(cause(None), Cause::UNKNOWN);
    }

    #[test]
    fn types_and_codes_are_found_in_messages() {
        let cases = [
            ("TimeoutError: x", Timeout),
            (
                "Traceback (most recent call last):\n  File \"invalid.py\"\nMemoryError",
                Resource,
            ),
            ("java.net.ConnectException: Connection refused", Network),
            ("FileNotFoundError: [Errno 2] No such file: 'a'", NotFound),
            ("pydantic.ValidationError: 2 errors", Validation),
            ("connect ECONNREFUSED 127.0.0.1:11434", Network),
            ("EACCES: permission denied, open '/a'", Permission),
            ("the server said HTTP 429", Resource),
            ("HTTP/1.1 504 Gateway", Timeout),
            ("Request failed with status code 404", NotFound),
            ("the command ended: exit code 124", Timeout),
            (
                "{\"error\": {\"message\": \"slow down\", \"type\": \"rate_limit_error\"}}",
                Resource,
            ),
            (
                "{\"error\": \"UNAVAILABLE: x\", \"code\": \"UNAVAILABLE\"}",
                Network,
            ),
            ("something\nand then: Permission denied", Permission),
        ];
        for (message, category) in cases {
            assert_eq!(said(message).category, category, "{message}");
        }
        assert_eq!(said("KeyError: 'timeout'").basis, Basis::Typed);
        assert_eq!(said("KeyError: 'timeout'").category, Execution);
        assert_eq!(said("it has 404 lines").basis, Basis::Unknown);
        assert_eq!(said("Error: ").basis, Basis::Unknown);
        let name = |name: &str| of_code(&ErrorCode::Name(name.to_owned()));
        assert_eq!(name("DEADLINE_EXCEEDED"), Some(Timeout));
        assert_eq!(name("invalid_api_key"), Some(Permission));
        assert_eq!(name("429"), Some(Resource));
        assert_eq!(name("E_STRANGE"), None);
    }

    proptest! {
        #[test]
        fn any_error_has_a_cause(message in "\\PC{0,60}", kind in proptest::option::of("\\PC{0,12}"), number in any::<i64>()) {
            let code = Some(ErrorCode::Number(number));
            let _ = cause(Some(&TaskError { message, kind, code, category: None }));
        }
    }
}
