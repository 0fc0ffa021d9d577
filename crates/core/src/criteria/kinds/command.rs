use std::ops::Range;
use std::path::Path;

use toml::{Spanned, de::DeTable};

use super::regex::invalid_pattern;
use super::{EvaluatorKind, check_limits, origin, place_of};
use crate::source::{self, Source, SourceError};
use crate::types::{CommandConfig, CommandVerdict, DRAFT_FILE, Evaluator, compile};

pub(super) const KIND: EvaluatorKind = EvaluatorKind {
    name: "command",
    keys: source::fields::<CommandConfig>,
    schema: source::schema_of::<CommandConfig>,
    read,
};

fn read(source: &Source, table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let whole = table.span();
    let outline = table.clone();
    let at = |key: &str| place_of(&outline, key);
    let mut config: CommandConfig = source::table_into(source, table)?;
    config.origin = origin(source, &whole);
    checked(source, &at, config).map(Evaluator::Command)
}

/// Checks the configuration of a command. `places` holds the spans of its keys; paths are resolved
/// relative to the file.
///
/// # Errors
/// If the configuration is invalid.
pub(in crate::criteria) fn checked(
    source: &Source,
    at: &dyn Fn(&str) -> Range<usize>,
    mut config: CommandConfig,
) -> Result<CommandConfig, SourceError> {
    check_command(source, at("command"), &config.command)?;
    let plain = config.extension.trim_start_matches('.').to_owned();
    if plain.is_empty()
        || plain.len() > 32
        || !plain
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+'))
    {
        let message = format!(
            "`extension` must be a file extension, not `{}`",
            config.extension
        );
        return Err(source
            .error(at("extension"), &message)
            .help("for example: extension = \"rs\""));
    }
    config.extension = plain;
    if config.processes == 0 || config.processes > CommandConfig::MAX_PROCESSES {
        let most = CommandConfig::MAX_PROCESSES;
        let message = format!(
            "`processes` must be from 1 to {most}, not {}",
            config.processes
        );
        return Err(source.error(at("processes"), &message));
    }
    let time = (config.timeout, CommandConfig::MAX_TIMEOUT);
    let range = CommandConfig::MIN_MEMORY..=CommandConfig::MAX_MEMORY;
    check_limits(source, at, time, (config.memory, range))?;
    for name in &config.env {
        check_variable(source, at("env"), name)?;
    }
    check_patterns(source, at, &config)?;
    // Paths in a file are relative to the file, not to the current directory.
    if let Some(folder) = source.path().and_then(Path::parent) {
        config.cwd = config.cwd.map(|cwd| folder.join(cwd));
        if let Some(program) = config.command.first_mut()
            && program.contains(std::path::is_separator)
            && let Some(path) = folder.join(&*program).to_str()
        {
            path.clone_into(program);
        }
    }
    if let Some(cwd) = config.cwd.as_deref().filter(|cwd| !cwd.is_dir()) {
        let message = format!("`cwd`: the folder `{}` does not exist", cwd.display());
        return Err(source.error(at("cwd"), &message));
    }
    Ok(config)
}

fn check_command(
    source: &Source,
    place: Range<usize>,
    command: &[String],
) -> Result<(), SourceError> {
    let Some(program) = command.first().filter(|program| !program.is_empty()) else {
        return Err(source
            .error(place, "`command` is empty")
            .help("for example: command = [\"rustc\", \"--emit=metadata\", \"{draft_file}\"]"));
    };
    if program.contains(DRAFT_FILE) {
        return Err(source.error(place, "the draft cannot be the program").help(
            "name the program that reads it first, for example: [\"sh\", \"{draft_file}\"]",
        ));
    }
    if command.iter().any(|word| word.contains('\0')) {
        return Err(source.error(place, "`command` contains a NUL byte"));
    }
    Ok(())
}

/// Checks that the patterns that grade a failed command are valid and have an effect.
fn check_patterns(
    source: &Source,
    at: &dyn Fn(&str) -> Range<usize>,
    config: &CommandConfig,
) -> Result<(), SourceError> {
    for (key, pattern) in [("errors", &config.errors), ("tests", &config.tests)] {
        let Some(pattern) = pattern else {
            continue;
        };
        let regex =
            compile(pattern).map_err(|error| invalid_pattern(source, at(key), key, &error))?;
        if config.output == CommandVerdict::Json {
            let message = format!("`{key}` has no effect with `output = \"json\"`");
            return Err(source
                .error(at(key), &message)
                .help("the command writes the score itself: remove one of the two keys"));
        }
        if regex.is_match("") {
            let message = format!("`{key}` matches the empty string, and so every text");
            return Err(source.error(at(key), &message));
        }
        let has = |name: &str| regex.capture_names().flatten().any(|group| group == name);
        if key == "tests" && !(has("passed") && has("failed")) {
            return Err(source
                .error(at(key), "`tests` needs the groups `passed` and `failed`")
                .help("for example: tests = '(?P<passed>\\d+) passed; (?P<failed>\\d+) failed'"));
        }
    }
    Ok(())
}

/// Rejects names of variables that may hold keys or belong to `reflect`, even if the command itself
/// is allowed: a check has no use for a key.
fn check_variable(source: &Source, place: Range<usize>, name: &str) -> Result<(), SourceError> {
    let upper = name.to_ascii_uppercase();
    if upper.ends_with("API_KEY") || upper.starts_with("REFLECT_") {
        return Err(source.error(
            place,
            &format!("`env`: `{name}` is not passed on, because it may hold an API key"),
        ));
    }
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(source
            .error(place, &format!("`env`: `{name}` is not a variable name"))
            .help("`env` lists only names; the values come from the user's environment"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::criteria::{load, parse, schema, to_toml};
    use crate::source::FileAccess;
    use crate::types::{CommandConfig, Evaluator};

    const COMMAND: &str = "[[criteria]]\nname = 'x'\nevaluator = 'command'\n";

    fn read(folder: &Path, keys: &str) -> CommandConfig {
        let path = folder.join("c.toml");
        std::fs::write(&path, format!("# mine\n{COMMAND}{keys}\n")).unwrap();
        let criteria = load(&path, &|_| FileAccess::Folder).unwrap();
        let again = parse(&to_toml(&criteria).unwrap(), "elsewhere").unwrap();
        assert_eq!(again, criteria, "what is written reads as the same");
        match &criteria.criteria[0].evaluator {
            Evaluator::Command(config) => config.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_are_seen_from_the_file_and_names_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("in")).unwrap();
        let config = read(&folder, "command = ['./check.sh', './a']\ncwd = 'in'");
        assert_eq!(Path::new(&config.command[0]), folder.join("./check.sh"));
        assert_eq!(config.command[1], "./a");
        assert_eq!(config.cwd, Some(folder.join("in")));
        assert_eq!(config.origin.line, 2);
        let config = read(&folder, "command = 'rustc {draft_file}'\nextension = '.rs'");
        assert_eq!(config.command, ["rustc", "{draft_file}"]);
        assert_eq!(config.extension, "rs");
        assert_eq!(config.cwd, None);
    }

    #[test]
    fn patterns_that_grade_must_be_valid_and_of_use() {
        let refused = |keys: &str| {
            let text = format!("{COMMAND}command = 'true'\n{keys}\n");
            parse(&text, "c.toml").unwrap_err().render(false)
        };
        for (keys, words) in [
            ("errors = '('", "`errors` is not a valid regular expression"),
            ("errors = 'x*'", "`errors` matches the empty string"),
            (
                "tests = '(\\d+) passed'",
                "`tests` needs the groups `passed` and `failed`",
            ),
            (
                "output = 'json'\nerrors = 'x'",
                "`errors` has no effect with `output = \"json\"`",
            ),
        ] {
            let error = refused(keys);
            assert!(error.contains(words), "{keys}: {error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let config = read(
            folder.path(),
            "command = 'true'\nerrors = 'x'\ntests = '(?P<passed>a)|(?P<failed>b)'",
        );
        assert_eq!(config.errors.as_deref(), Some("x"));
    }

    #[test]
    fn the_schema_knows_both_ways_to_write_a_command() {
        let schema = jsonschema::validator_for(&schema()).unwrap();
        let valid = |keys: &str| {
            let value: toml::Value = toml::from_str(&format!("{COMMAND}{keys}")).unwrap();
            schema.is_valid(&serde_json::to_value(value).unwrap())
        };
        assert!(valid("command = 'true'\noutput = 'json'"));
        assert!(valid("command = ['true']\nenv = ['A']\nprocesses = 9"));
        assert!(!valid("command = 3"));
        assert!(!valid("command = 'true'\norigin = 'x'"));
        assert!(!valid(""));
    }
}
