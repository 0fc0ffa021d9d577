use std::{fmt, path::PathBuf};

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, SeqAccess, Visitor},
};

use super::origin::Origin;
use crate::types::{HumanDuration, HumanSize};

/// The placeholder for the draft's file in the arguments of a command.
pub const DRAFT_FILE: &str = "{draft_file}";

/// The configuration of the `command` evaluator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    /// The program and its arguments: a list, or one string that is split into words as a shell does, but not run by
    /// a shell. `{draft_file}` is replaced with the path of a file that contains the draft. The program also gets the
    /// draft on standard input.
    #[serde(deserialize_with = "command_line")]
    #[schemars(with = "CommandLine")]
    pub command: Vec<String>,
    /// The extension of the draft's file, such as `rs` or `md`, for programs that depend on it. Default: txt.
    #[serde(default = "CommandConfig::default_extension")]
    pub extension: String,
    /// The time limit, at most `1h`. Default: 60s.
    #[serde(default = "CommandConfig::default_timeout")]
    pub timeout: HumanDuration,
    /// The memory limit for the program and its child processes together, `16MB` to `64GB`. Default: 2GB.
    #[serde(default = "CommandConfig::default_memory")]
    pub memory: HumanSize,
    /// The limit on concurrent processes and threads, 1 to 4096. Default: 256.
    #[serde(default = "CommandConfig::default_processes")]
    #[schemars(range(min = 1, max = 4096))]
    pub processes: u64,
    /// The working directory, relative to the criteria file. Default: a temporary folder that contains only the
    /// draft's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Environment variables that are passed to the program, in addition to `PATH`, `HOME`, `LANG` and similar ones.
    /// Variables of `reflect` (`REFLECT_…`) and API keys (`…API_KEY`) are not allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// What determines the verdict. Default: exit.
    #[serde(default)]
    pub output: CommandVerdict,
    /// A regular expression that matches once per error in the program's output. The score is 1/2 for one error, 1/4
    /// for three errors, and so on. Only exit code 0 passes. Default: the score is 0 for any other exit code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<String>,
    /// A regular expression that matches test results in the program's output, with the groups `passed` and `failed`.
    /// A group that matches a number counts that many tests, any other match counts one. The score is the share of
    /// tests that passed. Only exit code 0 passes. Together with `errors`, tests make up the upper half of the score,
    /// and errors the lower half if no tests ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<String>,
    /// Where the criterion is defined.
    #[serde(skip)]
    pub origin: Origin,
}

/// What determines the verdict of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandVerdict {
    /// The exit code: 0 passes.
    #[default]
    Exit,
    /// The JSON on standard output, in the same format as a script's result.
    Json,
}

/// Why a string is not a valid command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandSyntaxError {
    /// A quote or a backslash is unterminated.
    #[error("unterminated quote or backslash")]
    Unclosed,
    /// It contains a shell operator.
    #[error(
        "`{0}` is a shell operator, and commands run without a shell; to use one, write `sh -c '...'`"
    )]
    Shell(String),
    /// It is empty.
    #[error("the command is empty")]
    NoProgram,
}

impl CommandConfig {
    /// The longest allowed `timeout`.
    pub const MAX_TIMEOUT: HumanDuration = HumanDuration::from_secs(3600);
    /// The smallest allowed `memory`.
    pub const MIN_MEMORY: HumanSize = HumanSize::from_mib(16);
    /// The largest allowed `memory`.
    pub const MAX_MEMORY: HumanSize = HumanSize::from_mib(64 << 10);
    /// The largest allowed `processes`.
    pub const MAX_PROCESSES: u64 = 4096;

    /// Parses a command from one string, with defaults for everything else.
    ///
    /// # Errors
    /// If the string is not a valid command.
    pub fn parse(text: &str) -> Result<Self, CommandSyntaxError> {
        let command = split(text)?;
        if command.first().is_none_or(String::is_empty) {
            return Err(CommandSyntaxError::NoProgram);
        }
        Ok(Self {
            command,
            extension: Self::default_extension(),
            timeout: Self::default_timeout(),
            memory: Self::default_memory(),
            processes: Self::default_processes(),
            cwd: None,
            env: Vec::new(),
            output: CommandVerdict::default(),
            errors: None,
            tests: None,
            origin: Origin::default(),
        })
    }

    /// The rule as a sentence for writers and judges.
    pub fn describe(&self) -> String {
        let command = self.shown();
        match self.output {
            CommandVerdict::Exit => {
                format!("The command `{command}`, given the text, must end with exit code 0.")
            }
            CommandVerdict::Json => format!("The command `{command}` must find the text valid."),
        }
    }

    /// The command on one line, quoted as for a shell.
    pub fn shown(&self) -> String {
        let plain = |c: char| c.is_alphanumeric() || "-_./=+:,@%{}".contains(c);
        let words: Vec<String> = self
            .command
            .iter()
            .map(|word| {
                if !word.is_empty() && word.chars().all(plain) {
                    return word.clone();
                }
                shlex::try_quote(word).map_or_else(|_| format!("{word:?}"), Into::into)
            })
            .collect();
        words.join(" ")
    }

    /// The default `extension`: `txt`.
    pub fn default_extension() -> String {
        "txt".to_owned()
    }

    /// The default `timeout`: 60 s.
    pub fn default_timeout() -> HumanDuration {
        HumanDuration::from_secs(60)
    }

    /// The default `memory`: 2 GB.
    pub fn default_memory() -> HumanSize {
        HumanSize::from_mib(2048)
    }

    /// The default `processes`: 256.
    pub fn default_processes() -> u64 {
        256
    }
}

/// The two ways to write a command; only used for the JSON Schema.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum CommandLine {
    /// The program and its arguments.
    List(Vec<String>),
    /// The same as one string.
    Text(String),
}

/// Shell operators. A word of a command that equals one of these was most likely meant for a shell.
const SHELL_WORDS: [&str; 12] = [
    "|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", "&>", "<<",
];

/// Splits a command string into words.
fn split(text: &str) -> Result<Vec<String>, CommandSyntaxError> {
    let words = shlex::split(text).ok_or(CommandSyntaxError::Unclosed)?;
    let shell = words
        .iter()
        .find(|word| SHELL_WORDS.contains(&word.as_str()) || word.ends_with(';'));
    match shell {
        Some(word) => Err(CommandSyntaxError::Shell(word.clone())),
        None => Ok(words),
    }
}

fn command_line<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct Words;

    impl<'de> Visitor<'de> for Words {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of strings (the program and its arguments) or one string")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Vec<String>, E> {
            split(text).map_err(E::custom)
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<String>, A::Error> {
            let mut words = Vec::new();
            while let Some(word) = items.next_element()? {
                words.push(word);
            }
            Ok(words)
        }
    }

    deserializer.deserialize_any(Words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(toml: &str) -> Result<CommandConfig, String> {
        toml::from_str(toml).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn a_string_is_split_like_a_shell_and_a_list_is_not() {
        let text = read("command = 'prog \"two words\" it\\ is {draft_file}'").unwrap();
        assert_eq!(text.command, ["prog", "two words", "it is", "{draft_file}"]);
        assert_eq!(text.shown(), "prog 'two words' 'it is' {draft_file}");
        let flag = read("command = ['prog', '--edition=2024', '']").unwrap();
        assert_eq!(flag.shown(), "prog --edition=2024 ''");
        let list = read("command = ['prog', '$HOME a|b']").unwrap();
        assert_eq!(list.command, ["prog", "$HOME a|b"]);
    }

    #[test]
    fn shell_operators_are_rejected_in_a_string() {
        for text in ["a | b", "a && b", "a > out", "a; b", "a 2>&1"] {
            let error = read(&format!("command = '{text}'")).unwrap_err();
            assert!(error.contains("is a shell operator"), "{text}: {error}");
        }
        let error = read("command = \"a 'b\"").unwrap_err();
        assert!(error.contains("unterminated"), "{error}");
        assert!(
            read("command = 3")
                .unwrap_err()
                .contains("a list of strings")
        );
    }

    proptest! {
        #[test]
        fn shown_commands_parse_back(words in prop::collection::vec("[ -~äß]{1,12}", 1..5)) {
            let shown = CommandConfig { command: words.clone(), ..read("command = ['x']").unwrap() }.shown();
            prop_assert_eq!(shlex::split(&shown), Some(words));
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".*") {
            let _ = split(&text);
        }
    }
}
