use std::{fmt, path::PathBuf};

use schemars::JsonSchema;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{self, SeqAccess, Visitor},
};

use super::origin::Origin;
use crate::types::{HumanDuration, HumanSize};

/// Stands for the draft's file among the arguments of a command.
pub const DRAFT_FILE: &str = "{draft_file}";

/// Configuration of the `command` evaluator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandConfig {
    /// The program and its arguments, as a list, or as one text that is split at blanks as a shell does;
    /// but there is no shell. `{draft_file}` stands for a file with the draft, which is also the
    /// program's standard input.
    #[serde(deserialize_with = "command_line")]
    #[schemars(with = "CommandLine")]
    pub command: Vec<String>,
    /// The ending of the draft's file, which many programs go by: `rs`, `md`. Default: txt.
    #[serde(default = "CommandConfig::default_extension")]
    pub extension: String,
    /// How long the program may take, at most `1h`. Default: 60s.
    #[serde(default = "CommandConfig::default_timeout")]
    pub timeout: HumanDuration,
    /// How much memory it and all that it starts may use together, `16MB` to `64GB`. Default: 2GB.
    #[serde(default = "CommandConfig::default_memory")]
    pub memory: HumanSize,
    /// How many processes and threads it may have at the same time, 1 to 4096. Default: 256.
    #[serde(default = "CommandConfig::default_processes")]
    #[schemars(range(min = 1, max = 4096))]
    pub processes: u64,
    /// The folder that it runs in, seen from the criteria file. Default: an empty one, with nothing but
    /// the draft's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<PathBuf>,
    /// Variables of the environment that it may see beside `PATH`, `HOME`, `LANG` and the like. Never
    /// one of ours (`REFLECT_…`) or one that holds a model's key (`…API_KEY`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// What the verdict is. Default: exit.
    #[serde(default)]
    pub output: CommandVerdict,
    /// A regular expression that matches once for each error in what the program writes: with one error the score
    /// is 1/2, with three 1/4. Exit code 0 alone passes. Default: any other exit code scores 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<String>,
    /// A regular expression that matches test results in what the program writes, with the groups `passed` and
    /// `failed`: each holds a number, or counts 1. The score is the share that passed. Exit code 0 alone passes.
    /// With `errors` as well, tests count for the upper half of the score, and errors for the lower half where no
    /// tests ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<String>,
    /// Where it is written.
    #[serde(skip)]
    pub origin: Origin,
}

/// What the verdict of a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommandVerdict {
    /// Its exit code: 0 passes.
    #[default]
    Exit,
    /// The JSON on its standard output, in the form that scripts return.
    Json,
}

/// Why a text is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CommandSyntaxError {
    /// A quote or a backslash is not closed.
    #[error("a quote or a backslash in it has no end")]
    Unclosed,
    /// It holds an operator of a shell.
    #[error("`{0}` is for a shell, and there is none here; if one is meant, say so: `sh -c '...'`")]
    Shell(String),
    /// It is empty.
    #[error("it names no program")]
    NoProgram,
}

impl CommandConfig {
    /// The longest `timeout`.
    pub const MAX_TIMEOUT: HumanDuration = HumanDuration::from_secs(3600);
    /// The least `memory`.
    pub const MIN_MEMORY: HumanSize = HumanSize::from_mib(16);
    /// The most `memory`.
    pub const MAX_MEMORY: HumanSize = HumanSize::from_mib(64 << 10);
    /// The most `processes`.
    pub const MAX_PROCESSES: u64 = 4096;

    /// A command that is one text, with the default for everything else.
    ///
    /// # Errors
    /// What is wrong with the text.
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

    /// The rule in words, as writers and judges read it.
    pub fn describe(&self) -> String {
        let command = self.shown();
        match self.output {
            CommandVerdict::Exit => {
                format!("The command `{command}`, given the text, must end with exit code 0.")
            }
            CommandVerdict::Json => format!("The command `{command}` must find the text valid."),
        }
    }

    /// The command on one line, as it would be typed into a shell.
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

    /// The `extension` of a command that names none: `txt`.
    pub fn default_extension() -> String {
        "txt".to_owned()
    }

    /// The `timeout` of a command that names none: 60 s.
    pub fn default_timeout() -> HumanDuration {
        HumanDuration::from_secs(60)
    }

    /// The `memory` of a command that names none: 2 GB.
    pub fn default_memory() -> HumanSize {
        HumanSize::from_mib(2048)
    }

    /// The `processes` of a command that names none: 256.
    pub fn default_processes() -> u64 {
        256
    }
}

/// The two ways to write a command.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum CommandLine {
    /// Program and arguments.
    List(Vec<String>),
    /// The same as one text.
    Text(String),
}

/// What only a shell understands. A word of a command that is one of these is most likely meant for it.
const SHELL_WORDS: [&str; 12] = [
    "|", "||", "&", "&&", ";", "<", ">", ">>", "2>", "2>&1", "&>", "<<",
];

/// Splits a command that is one text.
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
            f.write_str("a list of texts (the program and its arguments) or one text")
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
    fn a_text_is_split_as_a_shell_splits_it_and_a_list_is_not() {
        let text = read("command = 'prog \"two words\" it\\ is {draft_file}'").unwrap();
        assert_eq!(text.command, ["prog", "two words", "it is", "{draft_file}"]);
        assert_eq!(text.shown(), "prog 'two words' 'it is' {draft_file}");
        let flag = read("command = ['prog', '--edition=2024', '']").unwrap();
        assert_eq!(flag.shown(), "prog --edition=2024 ''");
        let list = read("command = ['prog', '$HOME a|b']").unwrap();
        assert_eq!(list.command, ["prog", "$HOME a|b"]);
    }

    #[test]
    fn what_only_a_shell_understands_is_refused_in_a_text() {
        for text in ["a | b", "a && b", "a > out", "a; b", "a 2>&1"] {
            let error = read(&format!("command = '{text}'")).unwrap_err();
            assert!(error.contains("is for a shell"), "{text}: {error}");
        }
        let error = read("command = \"a 'b\"").unwrap_err();
        assert!(error.contains("has no end"), "{error}");
        assert!(read("command = 3").unwrap_err().contains("a list of texts"));
    }

    proptest! {
        #[test]
        fn what_is_shown_can_be_read_again(words in prop::collection::vec("[ -~äß]{1,12}", 1..5)) {
            let shown = CommandConfig { command: words.clone(), ..read("command = ['x']").unwrap() }.shown();
            prop_assert_eq!(shlex::split(&shown), Some(words));
        }

        #[test]
        fn any_text_is_split_or_refused(text in ".*") {
            let _ = split(&text);
        }
    }
}
