//! The phrases that assign a failure to a category. A single word says little (a sentence with
//! "invalid" need not be a validation error), so its context decides.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::ErrorCategory::{self, Validation};
use super::normalize;

/// Phrases that state what happened, in the order in which they are tested: phrases that contain
/// another category's word incidentally come first. Each line has a category and patterns of whole
/// words, which are matched against the result of `normalize::statement`.
const PHRASES: &str = r"
validation: invalid time ?out|time ?out must
validation: unexpected (token|character|end of (input|json))
validation: (additional|unexpected|unknown|missing) (propert(y|ies)|parameters?|arguments?|fields?|options?)
permission: (invalid|incorrect|wrong|expired|missing) (\w+ )?(credentials?|api keys?|tokens?|passwords?)
network: could not resolve|no (route to|such) host|(name|dns) resolution|host not found|getaddrinfo|fetch failed
resource: out of (memory|disk|space|storage|quota)|no space left|(disk|storage|volume) (\w+ )?full
resource: exceed(s|ed|ing)? (\w+ ){0,3}(memory|quota|disk|context length|context window)|failed to allocate
resource: too many (open files|requests)|rate limit(s|ed|ing)?|maximum context length
resource: (quota|memory|disk|resources?|context length) (\w+ ){0,2}(exceeded|exhausted|reached)
resource: (insufficient|not enough) (\w+ )?(memory|disk|storage|space|resources|quota|funds|credits)
timeout: tim(e|ed|es|ing) out|(connection|request|read|response|gateway|operation) time ?outs?
timeout: (exceeded|reached|hit|due to) (\w+ ){0,2}time ?out|deadline (exceeded|expired)|time limit (exceeded|reached)
timeout: took (too long|longer than)|(no (answer|response|reply)|nothing (more )?came) within
permission: permissions? (was |is )?denied|access (\w+ )?denied|not (permitted|allowed|authori[sz]ed)
permission: unauthori[sz]ed|unauthenticated|forbidden|(authentication|authori[sz]ation|login) (failed|required)
permission: (lacks?|missing|insufficient|needs?|requires?|no) (\w+ ){0,2}(permissions?|privileges?|rights)
permission: read only file ?system
not_found: not found|no such \w+|(does|do|did) not exist|(doesn't|don't|didn't) exist
not_found: (cannot|can't|could not|couldn't|unable to|failed to) (find|locate)
network: connections? (\w+ ){0,5}(refused|reset|closed|lost|aborted|failed|dropped|broke|error|interrupted)
network: (lost|refused|reset|broken|dropped|closed) connection|broken pipe|bad gateway
network: (cannot|can't|could not|couldn't|unable to|failed to) (connect|reach)
network: (network|host|server|service) (\w+ )?(unreachable|down|unavailable|not responding)|network error
network: (is|was|are|were) unreachable|(ssl|tls) (handshake|error)
validation: ^(\w+: )?invalid|malformed|type mismatch|bad request|(value|number) out of range
validation: invalid (\w+ )?(parameters?|arguments?|values?|inputs?|options?|formats?|types?|fields?|json|requests?)
validation: (parameters?|arguments?|values?|inputs?|options?|fields?|json|requests?) (is|are|was|were) invalid
validation: (validation|schema) (failed|errors?)|is a required|must be (a|an|one of|at least|at most|positive)
resource: (memory|disk|storage|resource|quota) (limit|error)
execution: execution (error|failed)|panicked|seg(mentation )?fault|stack overflow|assertion|division by zero
execution: crash(ed|es)?|exit(ed)? (with )?(code|status)|index out of (range|bounds)|internal (server )?error
";

/// Words that name a cause if the statement contains little else.
const NAMES: &str = "
timeout: time ?outs?
permission: permissions?
network: network|connection
validation: validation|invalid
resource: memory|disk|resources?
";

/// The maximum number of words in a statement that consists of little else than the name of its
/// cause.
const SHORT: usize = 5;

/// Phrases or names as patterns, in the order in which they are tested.
type PhraseRules = Vec<(ErrorCategory, Regex)>;

static RULES: LazyLock<(PhraseRules, PhraseRules)> =
    LazyLock::new(|| (rules(PHRASES), rules(NAMES)));

fn rules(table: &str) -> PhraseRules {
    let rule = |line: &str| {
        let (name, phrases) = line.split_once(": ")?;
        let category = ErrorCategory::ALL
            .into_iter()
            .find(|it| it.as_str() == name)?;
        Some((category, Regex::new(&format!(r"\b(?:{phrases})\b")).ok()?))
    };
    let lines = table.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| rule(line).expect("our own table is valid: a test uses it"))
        .collect()
}

/// Returns the category that a statement (of [`normalize::statement`]) names, if any.
pub(super) fn category(statement: &str) -> Option<ErrorCategory> {
    let first = |rules: &PhraseRules| {
        let found = rules.iter().find(|(category, pattern)| {
            pattern
                .find_iter(statement)
                .any(|found| is_asserted(statement, found.range(), *category))
        });
        found.map(|(category, _)| *category)
    };
    let (phrases, names) = &*RULES;
    first(phrases).or_else(|| {
        let short = normalize::words(statement).count() <= SHORT;
        first(names).filter(|_| short)
    })
}

/// Returns whether the match states that the failure happened, rather than that it did not, is
/// over, or was handled.
fn is_asserted(statement: &str, found: Range<usize>, category: ErrorCategory) -> bool {
    const NEGATORS: [&str; 6] = ["no", "not", "without", "never", "isn't", "wasn't"];
    const FILLERS: [&str; 10] = [
        "a", "an", "the", "any", "due", "to", "of", "by", "was", "is",
    ];
    const HANDLED: [&str; 6] = [
        "skipped", "removed", "ignored", "dropped", "fixed", "retried",
    ];
    const FINE: [&str; 5] = ["passed", "succeeded", "ok", "restored", "established"];
    const DOUBTS: [&str; 4] = ["problem", "problems", "issue", "issues"];
    let parts = |c: char| ",;:.!?()[]".contains(c);
    let before = statement[..found.start]
        .rsplit(parts)
        .next()
        .unwrap_or_default();
    let behind = statement[found.end..]
        .split(parts)
        .next()
        .unwrap_or_default();
    let itself = &statement[found];
    let mut back = normalize::words(before)
        .rev()
        .skip_while(|word| FILLERS.contains(word));
    if back.next().is_some_and(|word| NEGATORS.contains(&word)) {
        return false;
    }
    let handled = |word: &str| HANDLED.contains(&word);
    if category == Validation && normalize::words(before).rev().take(4).any(handled) {
        return false;
    }
    let mut ahead = normalize::words(behind).skip_while(|word| FILLERS.contains(word));
    let Some(next) = ahead.next() else {
        return true;
    };
    // "No permission problem" is not a failure.
    let denies = itself.starts_with("no ") || itself.starts_with("without ");
    !(FINE.contains(&next) || (denies && DOUBTS.contains(&next)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reflector::ErrorCategory::{
        Execution, Network, NotFound, Permission, Resource, Timeout,
    };

    fn of(message: &str) -> Option<ErrorCategory> {
        category(&normalize::statement(message))
    }

    #[test]
    fn plain_errors_have_their_category() {
        let cases = [
            ("Connection timeout", Timeout),
            ("Timeout", Timeout),
            ("the request timed out after 30 s", Timeout),
            ("the server failed: no response within 0.2 s", Timeout),
            ("the reply stalled: no response within 30 s", Timeout),
            ("the call took longer than 600 s in total", Timeout),
            ("context deadline exceeded", Timeout),
            ("the operation reached its timeout of 30 s", Timeout),
            ("Permission denied", Permission),
            ("Access is denied.", Permission),
            ("403 Forbidden", Permission),
            ("Invalid API key", Permission),
            (
                "the service account lacks the permission to write",
                Permission,
            ),
            ("File not found", NotFound),
            ("No such file or directory: '/tmp/timeout'", NotFound),
            ("bash: foo: command not found", NotFound),
            ("the table does not exist", NotFound),
            ("Network unreachable", Network),
            ("Connection refused", Network),
            ("connection to the memory server was lost", Network),
            ("could not resolve host: example.com", Network),
            ("getaddrinfo ENOTFOUND example.com", Network),
            ("TypeError: fetch failed", Network),
            ("Unexpected token < in JSON at position 0", Validation),
            ("No such host is known", Network),
            ("Network", Network),
            ("Invalid parameter", Validation),
            ("The 'path' argument is invalid", Validation),
            ("validation failed for two fields", Validation),
            ("'name' is a required property", Validation),
            (
                "Additional properties are not allowed ('x' was unexpected)",
                Validation,
            ),
            ("invalid timeout value", Validation),
            ("timeout must be a positive number", Validation),
            ("unknown option --timeout", Validation),
            ("Out of memory", Resource),
            ("Disk full", Resource),
            ("Memory error", Resource),
            ("no space left on device", Resource),
            ("Rate limit exceeded, permission to retry in 20 s", Resource),
            (
                "this model's maximum context length is 8192 tokens",
                Resource,
            ),
            ("Insufficient resources", Resource),
            ("Execution error 0", Execution),
            ("thread 'main' panicked", Execution),
        ];
        for (message, category) in cases {
            assert_eq!(of(message), Some(category), "{message}");
        }
    }

    /// A word of a category in a sentence about something else.
    #[test]
    fn sentences_are_not_taken_by_a_word() {
        let cases = [
            (
                "The connection was reset while the invalidated cache was read",
                Some(Network),
            ),
            (
                "The request to refresh the invalid session timed out",
                Some(Timeout),
            ),
            (
                "Permission denied: invalid choice of user",
                Some(Permission),
            ),
            (
                "the cache entry had become invalid and the tool gave up",
                None,
            ),
            (
                "could not book: the invalid passenger seat was taken by somebody",
                None,
            ),
            (
                "Skipped 3 invalid records, then the connection was reset by the peer",
                Some(Network),
            ),
            (
                "Skipped 2 invalid values and then stopped for no reason at all",
                None,
            ),
            (
                "there was no timeout; the file was not found",
                Some(NotFound),
            ),
            (
                "This was not a timeout: the file was not found",
                Some(NotFound),
            ),
            (
                "There was no connection timeout, the disk is full",
                Some(Resource),
            ),
            (
                "no permission problem; the host was unreachable",
                Some(Network),
            ),
            ("validation passed, but the tool crashed", Some(Execution)),
            (
                "the network connection was established, then it crashed",
                Some(Execution),
            ),
            (
                "Memory of the previous run was loaded, and then it stopped",
                None,
            ),
            ("Resource not found", Some(NotFound)),
            (
                "the disk image was mounted, after which the tool gave up",
                None,
            ),
            (
                "file permissions were written, then the connection broke",
                Some(Network),
            ),
            (
                "timeout was set to 30 s, but the disk is full",
                Some(Resource),
            ),
            (
                "could not parse the title \"Permission denied, a novel\"",
                None,
            ),
            ("error in network.py: division by zero", Some(Execution)),
            ("internal error: entered unreachable code", Some(Execution)),
            (
                "immemorial diskussion, networking resourceful permissions2",
                None,
            ),
            ("the tool has no idea what to do with all this", None),
            ("", None),
        ];
        for (message, category) in cases {
            assert_eq!(of(message), category, "{message}");
        }
    }

    proptest! {
        #[test]
        fn any_sentence_is_read(message in "((not|no|invalid|timeout|time|out|of|memory|permission|denied|passed|value|is|é|[,:;.'\"]) ?){0,12}") {
            let _ = of(&message);
        }

        /// "Invalid" followed by something other than input is not a validation error.
        #[test]
        fn invalid_alone_says_nothing(thing in "(ticket|passport|vote|chess move|cheque|marriage)") {
            let message = format!("the clerk found that the {thing} was invalid and went home for the day");
            prop_assert_eq!(of(&message), None);
        }
    }
}
