//! Masks secrets that are recognizable by their form: the user name, password and query values of a URL, fields named
//! like a key, and keys with a well-known prefix.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Matches user information before a host, a query parameter, a field with its value, and a key with a provider's
/// prefix.
static PARTS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r#"(?P<user>[^\s/"'`<>@=]*:[^\s/"'`<>@]*|(?:://)[^\s/"'`<>@]+)@"#,
        r#"|(?P<name>[?&][^\s=&"'`<>]+=)(?P<value>[^\s&#"'`<>]+)"#,
        r#"|(?i:(?P<field>(?:api[_-]?key|secret|passw(?:or)?d|authorization|(?:access|auth)[_-]?token)["']?\s*[:=]\s*["']?)"#,
        r#"(?P<key>(?:bearer\s+)?[^\s"',}\]]+))"#,
        r"|(?P<known>\b(?:sk-|gsk_|xai-|AIza|hf_|ghp_)[\w-]{16,})",
    ))
    .ok()
});

/// Replaces every byte of such a secret with `*`. The length in bytes stays the same, so positions stay valid. A
/// parameter that names a version is left alone.
pub fn redact(text: &str) -> Cow<'_, str> {
    let Some(parts) = &*PARTS else {
        return Cow::Owned("*".repeat(text.len()));
    };
    parts.replace_all(text, |found: &Captures<'_>| {
        if let Some(user) = found.name("user") {
            let scheme = user.as_str().find("://").map_or(0, |at| at + 3);
            let (scheme, secret) = user.as_str().split_at(scheme);
            return format!("{scheme}{}@", "*".repeat(secret.len()));
        }
        if let (Some(field), Some(key)) = (found.name("field"), found.name("key")) {
            return format!("{}{}", field.as_str(), "*".repeat(key.len()));
        }
        if let Some(key) = found.name("known") {
            return "*".repeat(key.len());
        }
        let part = |name| found.name(name).map_or("", |part| part.as_str());
        let (name, value) = (part("name"), part("value"));
        if name.to_lowercase().contains("version") {
            return format!("{name}{value}");
        }
        format!("{name}{}", "*".repeat(value.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_passwords_and_parameters_are_masked() {
        for (text, shown) in [
            ("https://x.org/v1", "https://x.org/v1"),
            (
                "see http://me:pw@x.org/v1?a=b.",
                "see http://*****@x.org/v1?a=**",
            ),
            ("http://token@x.org/v1", "http://*****@x.org/v1"),
            ("me:pw@x.org", "*****@x.org"),
            (
                "'x.org/v1?api-version=3&key=secret#f'",
                "'x.org/v1?api-version=3&key=******#f'",
            ),
            ("mail ada@example.org", "mail ada@example.org"),
            ("\"http://ü:p@h\"", "\"http://****@h\""),
            ("what? a=b", "what? a=b"),
            ("api_key: sk-1", "api_key: ****"),
            ("{\"apiKey\":\"sk-1\"}", "{\"apiKey\":\"****\"}"),
            (
                "Authorization = 'Bearer abc'",
                "Authorization = '**********'",
            ),
            ("api_key_env = 'WORK_KEY'", "api_key_env = 'WORK_KEY'"),
            ("max_tokens = 5", "max_tokens = 5"),
            ("['sk-0123456789abcdef']", "['*******************']"),
            ("risk-free-and-then-some", "risk-free-and-then-some"),
        ] {
            assert_eq!(redact(text), shown, "{text}");
            assert_eq!(redact(text).len(), text.len(), "{text}");
        }
    }
}
