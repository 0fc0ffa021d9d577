//! Which words make a failure one of a category. A word by itself says little (seed 004 would take any sentence with
//! "invalid" in it for a validation error), so what counts is what stands around it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::ErrorCategory::{
    self, Execution, Network, NotFound, Permission, Resource, Timeout, Validation,
};
use super::gist;

/// Patterns in the order in which they are tried, with what each means. They see what `gist::statement` makes of a
/// message.
type Tier = &'static [(ErrorCategory, &'static str)];

/// Phrases in which another category's word is not the point.
const SPECIFIC: Tier = &[
    (
        Validation,
        r"\binvalid (\w+ )?time ?outs?\b|\btime ?outs? (\w+ ){0,3}(must|should|is invalid|cannot be)\b",
    ),
    (
        Validation,
        r"\b(additional|unexpected|unknown|unrecogni[sz]ed|missing|unsupported) (\w+ ){0,2}(propert(y|ies)|parameters?|arguments?|fields?|options?|flags?|keywords?|attributes?)\b|\bpropert(y|ies) (is|are) not allowed\b|\bmethod not allowed\b|\b(invalid|unexpected) tokens? (at|in|near|x)\b",
    ),
    (
        Permission,
        r"\b(invalid|incorrect|wrong|bad|expired|missing) (\w+ )?(credentials?|api keys?|tokens?|passwords?|signatures?|certificates?)\b",
    ),
    (
        Network,
        r"\b(host|hostname|dns|domain)( name)? (was |is |could )?not (found|be resolved|be found|known)\b|\bcould not resolve\b|\bname or service not known\b|\bno (route to|such) host\b|\bunknown host\b|\b(name|dns) resolution\b|\bgetaddrinfo\b",
    ),
    (
        Resource,
        r"\bout of (memory|disk|space|storage|quota|resources|file descriptors)\b|\boom\b|\bno space left\b|\b(cannot|could not|failed to|unable to) allocate\b|\b(disk|storage|volume|file ?system) (\w+ ){0,2}full\b|\btoo many (open files|requests)\b|\brate limit(s|ed|ing)?\b|\b(quota|memory|disk|storage|resources?|cpu|context length|context window|token limit|usage limit) (\w+ ){0,2}(exceeded|exhausted|reached)\b|\b(exceed(s|ed|ing)?|exhaust(s|ed|ing)?) (\w+ ){0,4}(memory|quota|disk|resources?|context length|context window|rate)\b|\b(insufficient|not enough|low on|no more) (\w+ ){0,2}(memory|disk|storage|space|resources?|quota|funds|balance|credits?)\b|\bmaximum context length\b",
    ),
];

/// What inputs are called.
macro_rules! inputs {
    () => {
        r"(parameters?|params?|arguments?|args?|values?|inputs?|options?|formats?|types?|fields?|schema|json|yaml|xml|toml|csv|requests?|payload|body|date|time|timestamp|urls?|uri|e ?mail|number|integer|identifier|ids?|names?|paths?|query|syntax|config|configuration|data|expression|regex|pattern|enum|range|size|characters?|literal|encoding|utf 8|headers?)"
    };
}

/// Phrases that say what happened.
const SAID: Tier = &[
    (
        Timeout,
        r"\btim(e|ed|es|ing) out\b|\b(connection|connect|request|read|write|response|operation|gateway|socket|query|task|execution|lock|idle|server|job|step|call|command) time ?outs?\b|\btime ?out (error|expired|exceeded|reached|after|while|waiting|of)\b|\b(exceeded|exceeds|reached|hit|due to|because of) (\w+ ){0,2}time ?out\b|\bdeadline (was )?(exceeded|expired|passed|missed)\b|\btook too long\b|\btime limit (was )?(exceeded|reached)\b|\bexceed(ed|s) (\w+ ){0,3}(time limit|deadline)\b|\b(no (answer|response|reply)|nothing (more )?came) within (\d|x\b)|\btook longer than (\d|x\b)",
    ),
    (
        Permission,
        r"\bpermissions? (was |is |were |has been )?denied\b|\baccess (\w+ ){0,3}denied\b|\bdenied (\w+ ){0,2}access\b|\bnot (permitted|allowed|authori[sz]ed|entitled)\b|\bunauthori[sz]ed\b|\bforbidden\b|\bunauthenticated\b|\b(authentication|authori[sz]ation|login) (\w+ )?(failed|required|error|failure)\b|\b(lacks?|lacking|missing|insufficient|needs?|requires?|without|no) (\w+ ){0,2}(permissions?|privileges?|rights)\b|\bread only file ?system\b|\bfile ?system is read only\b",
    ),
    (
        NotFound,
        r"\bnot found\b|\bno such \w+|\b(does|do|did) not exist\b|\b(doesn't|don't|didn't) exist\b|\b(cannot|can't|can not|could not|couldn't|unable to|failed to) (find|locate)\b|\bno (file|directory|module|folder|table|package|command) (named|called|found|at)\b|\b(file|directory|path|module) (\w+ ){0,2}missing\b",
    ),
    (
        Network,
        r"\bconnections? (\w+ ){0,5}(refused|reset|closed|lost|aborted|failed|dropped|broken|broke|error|failure|interrupted|terminated)\b|\b(lost|refused|reset|broken|dropped|closed) (\w+ )?connection\b|\bno (network|internet)\b|\b(cannot|can't|could not|couldn't|unable to|failed to) (connect|reach|establish (\w+ ){0,2}connection|open (\w+ )?(connection|socket))\b|\bnetwork (\w+ ){0,2}(unreachable|down|error|failure|failed|unavailable|issue|problem|lost|changed)\b|\b(host|server|service|address|endpoint|site) (\w+ ){0,2}(unreachable|down|unavailable|not reachable|not responding)\b|\b(is|was|are|were|currently) unreachable\b|\bbroken pipe\b|\bbad gateway\b|\bsocket hang ?up\b|\b(ssl|tls) (\w+ )?(handshake|error|failure)\b|\bfetch failed\b|\breset by peer\b",
    ),
    (
        Validation,
        concat!(
            r"^(\w+: )?invalid\b|\binvalid (\w+ ){0,2}",
            inputs!(),
            r"\b|\b",
            inputs!(),
            r" (\w+ ){0,2}(is|are|was|were) (invalid|not valid|malformed)\b"
        ),
    ),
    (
        Validation,
        r"\b(validation|schema) (\w+ ){0,2}(failed|errors?|failure)\b|\b(failed|fails|failing|did not pass) (\w+ ){0,2}validation\b|\bvalidation of (\w+ ){1,3}failed\b|\bmust be (a|an|one of|at least|at most|between|greater|less|positive|non|unique)\b|\b(value|number|parameter|argument|date) (\w+ ){0,2}out of range\b|\btype mismatch\b|\bmalformed\b|\bis a required\b|\b(parameter|argument|field|property|value|option) (\w+ ){0,2}(is|are) required\b|\bis not (of type|a valid)\b|\bdoes not match (the )?(\w+ )?(schema|pattern|format|type)\b|\bunprocessable\b|\bbad request\b|\bexpected (\w+ ){1,4}(got|found|received)\b",
    ),
    (
        Resource,
        r"\b(memory|disk|storage|resources?|quota|cpu|gpu|vram|swap|heap) (\w+ )?(limit|error|pressure|unavailable|starvation|shortage|overload)\b",
    ),
    (
        Execution,
        r"\bexecution (error|failed|failure)\b|\bpanicked\b|\bseg(mentation )?fault\b|\bstack overflow\b|\bassertion\b|\bdivision by zero\b|\bcrash(ed|es)?\b|\bexit(ed)? (with )?(code|status|non ?zero)\b|\bnull pointer\b|\bindex out of (range|bounds)\b|\bunhandled exception\b|\binternal (server )?error\b",
    ),
];

/// Words that name a cause where there is hardly anything else.
const NAMED: Tier = &[
    (Timeout, r"\btime ?outs?\b"),
    (Permission, r"\bpermissions?\b"),
    (Network, r"\b(network|connection)\b"),
    (Validation, r"\b(validation|invalid)\b"),
    (Resource, r"\b(memory|disk|resources?)\b"),
];

/// A statement of so many words at the most is hardly anything but the name of its cause.
const SHORT: usize = 5;

struct Rules {
    /// In the order in which they are tried.
    said: Vec<(ErrorCategory, Regex)>,
    named: Vec<(ErrorCategory, Regex)>,
}

static RULES: LazyLock<Rules> = LazyLock::new(|| {
    let compiled = |tiers: &[Tier]| {
        tiers
            .iter()
            .flat_map(|tier| tier.iter())
            .map(|(category, pattern)| {
                let pattern =
                    Regex::new(pattern).expect("our own patterns are valid: a test uses them");
                (*category, pattern)
            })
            .collect()
    };
    Rules {
        said: compiled(&[SPECIFIC, SAID]),
        named: compiled(&[NAMED]),
    }
});

/// The category that a statement (of [`gist::statement`]) names, if it does.
pub(super) fn category(statement: &str) -> Option<ErrorCategory> {
    let first = |rules: &[(ErrorCategory, Regex)]| {
        let found = rules.iter().find(|(category, pattern)| {
            pattern
                .find_iter(statement)
                .any(|found| stands(statement, found.range(), *category))
        });
        found.map(|(category, _)| *category)
    };
    first(&RULES.said).or_else(|| {
        let short = gist::words(statement).count() <= SHORT;
        first(&RULES.named).filter(|_| short)
    })
}

/// Whether words at a place say that it happened: not that it did not, or that it is over, or that it was seen to.
fn stands(statement: &str, found: Range<usize>, category: ErrorCategory) -> bool {
    const NEGATORS: [&str; 9] = [
        "no", "not", "without", "never", "isn't", "wasn't", "didn't", "nor", "neither",
    ];
    const FILLERS: [&str; 22] = [
        "a", "an", "the", "any", "due", "to", "because", "of", "caused", "by", "been", "have",
        "has", "run", "into", "really", "was", "is", "were", "just", "such", "from",
    ];
    const SEEN_TO: [&str; 14] = [
        "skipped",
        "skip",
        "removed",
        "ignored",
        "ignoring",
        "dropped",
        "filtered",
        "cleaned",
        "deleted",
        "discarded",
        "fixed",
        "repaired",
        "retried",
        "replaced",
    ];
    const FINE: [&str; 10] = [
        "passed",
        "succeeded",
        "successful",
        "successfully",
        "ok",
        "fine",
        "restored",
        "recovered",
        "established",
        "works",
    ];
    const DOUBTS: [&str; 8] = [
        "problem", "problems", "issue", "issues", "trouble", "error", "errors", "failure",
    ];
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
    let mut back = gist::words(before)
        .rev()
        .skip_while(|word| FILLERS.contains(word));
    if back.next().is_some_and(|word| NEGATORS.contains(&word)) {
        return false;
    }
    let seen_to = |word: &str| SEEN_TO.contains(&word);
    if category == Validation && gist::words(before).rev().take(4).any(seen_to) {
        return false;
    }
    let mut ahead = gist::words(behind).skip_while(|word| FILLERS.contains(word));
    let Some(next) = ahead.next() else {
        return true;
    };
    // "No permission problem" is none.
    let denies = itself.starts_with("no ") || itself.starts_with("without ");
    !(FINE.contains(&next) || (denies && DOUBTS.contains(&next)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(message: &str) -> Option<ErrorCategory> {
        category(&gist::statement(message))
    }

    #[test]
    fn plain_errors_have_their_category() {
        let cases = [
            ("Connection timeout", Timeout),
            ("Timeout", Timeout),
            ("the request timed out after 30 s", Timeout),
            ("the server failed: no answer within 0.2 s", Timeout),
            ("nothing more came within 30 s", Timeout),
            ("the call took longer than 600 s in all", Timeout),
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

    /// A word of a category in a sentence that is about something else.
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

        /// "Invalid" with whatever is no input is no validation error.
        #[test]
        fn invalid_alone_says_nothing(thing in "(ticket|passport|vote|chess move|cheque|marriage)") {
            let message = format!("the clerk found that the {thing} was invalid and went home for the day");
            prop_assert_eq!(of(&message), None);
        }
    }
}
