use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::{Spanned, de::DeTable};

use super::{EvaluatorKind, check_limits, origin, place_of};
use crate::source::{self, Source, SourceError};
use crate::types::{Evaluator, HumanDuration, HumanSize, Origin, ScriptConfig, ScriptLanguage};

pub(super) const KIND: EvaluatorKind = EvaluatorKind {
    name: "script",
    keys: source::fields::<ScriptKeys>,
    schema: source::schema_of::<ScriptKeys>,
    read,
};

/// The keys of the `script` evaluator: either `code` or `file`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["code"] }, { "required": ["file"] }]))]
struct ScriptKeys {
    /// The language of the script. Python and Prolog run only with the user's permission. Default:
    /// lua.
    #[serde(default)]
    language: ScriptLanguage,
    /// The script. It receives `output` (the draft) and `state`, and returns a boolean, a number
    /// from 0 to 1, or a table with `valid`, `score`, `errors` and `suggestions`.
    code: Option<String>,
    /// A file with the script, in the criteria file's folder.
    file: Option<PathBuf>,
    /// The time limit of one evaluation, at most `10m`. Default: 10s.
    timeout: Option<HumanDuration>,
    /// The memory limit of one evaluation, `16MB` to `4GB`. Default: 256MB.
    memory: Option<HumanSize>,
}

fn read(source: &Source, table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let whole = table.span();
    let outline = table.clone();
    let place = |key: &str| place_of(&outline, key);
    let keys: ScriptKeys = source::table_into(source, table)?;
    let (code, script, code_place) = match (keys.code, keys.file) {
        (Some(code), None) => (code, None, place("code")),
        (None, Some(file)) => {
            let text = source::read_relative(source, place("file"), &file)?;
            let path = text.path().map(Into::into);
            (text.text().to_owned(), path, place("file"))
        }
        (Some(_), Some(_)) => {
            return Err(source
                .error(
                    place("file"),
                    "a script needs either `code` or `file`, not both",
                )
                .also(place("code"), "`code` is here"));
        }
        (None, None) => {
            return Err(source
                .error(whole, "a script criterion needs `code` or `file`")
                .help("for example: code = \"return #output < 1000\""));
        }
    };
    if code.trim().is_empty() {
        return Err(source.error(code_place, "this script is empty"));
    }
    let config = ScriptConfig {
        language: keys.language,
        code,
        timeout: keys.timeout.unwrap_or_else(ScriptConfig::default_timeout),
        memory: keys.memory.unwrap_or_else(ScriptConfig::default_memory),
        origin: Origin {
            script,
            ..origin(source, &whole)
        },
    };
    let time = (config.timeout, ScriptConfig::MAX_TIMEOUT);
    let range = ScriptConfig::MIN_MEMORY..=ScriptConfig::MAX_MEMORY;
    check_limits(source, &place, time, (config.memory, range))?;
    Ok(Evaluator::Script(config))
}

#[cfg(test)]
mod tests {
    use crate::criteria::{load, parse, schema, to_toml};
    use crate::source::FileAccess;
    use crate::types::{Evaluator, ScriptLanguage};

    const SCRIPT: &str = "[[criteria]]\nname = 'x'\nevaluator = 'script'\n";

    #[test]
    fn what_was_read_from_a_file_can_be_written_as_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        std::fs::write(
            &path,
            format!("{SCRIPT}language = 'python'\nfile = 'a.py'\ntimeout = '1m'\n"),
        )
        .unwrap();
        std::fs::write(folder.path().join("a.py"), "return True\n").unwrap();
        let criteria = load(&path, &|_| FileAccess::Folder).unwrap();
        let Evaluator::Script(config) = &criteria.criteria[0].evaluator else {
            panic!("{criteria:?}");
        };
        assert_eq!(config.language, ScriptLanguage::Python);
        assert_eq!(config.code, "return True\n");
        let folder = folder.path().canonicalize().unwrap();
        assert_eq!(config.origin.file.as_deref(), Some(&*folder.join("c.toml")));
        assert_eq!(config.origin.script.as_deref(), Some(&*folder.join("a.py")));
        assert_eq!(config.origin.line, 1);
        let again = parse(&to_toml(&criteria).unwrap(), "elsewhere").unwrap();
        assert_eq!(again, criteria);
    }

    #[test]
    fn what_does_not_come_from_a_file_reads_none() {
        let error = parse(&format!("{SCRIPT}file = 'a.lua'\n"), "built-in").unwrap_err();
        assert!(error.message().contains("this text has no file"), "{error}");
    }

    #[test]
    fn the_schema_wants_code_or_file_and_not_both() {
        let schema = jsonschema::validator_for(&schema()).unwrap();
        let valid = |keys: &str| {
            let value: toml::Value = toml::from_str(&format!("{SCRIPT}{keys}")).unwrap();
            schema.is_valid(&serde_json::to_value(value).unwrap())
        };
        assert!(valid("code = 'return true'\nmemory = '64MB'"));
        assert!(valid("file = 'a.lua'\nlanguage = 'prolog'"));
        assert!(!valid("code = 'x'\nfile = 'y'"));
        assert!(!valid(""));
        assert!(!valid("code = 'x'\nlanguage = 'ruby'"));
    }
}
