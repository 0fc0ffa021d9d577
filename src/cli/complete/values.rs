//! The candidates for each kind of value.

use std::ffi::OsStr;

use clap::builder::StyledStr;
use clap_complete::CompletionCandidate;
use clap_complete::engine::{PathCompleter, ValueCompleter as _};

use super::leads_to_criteria;
use crate::cli::models::known_providers;
use crate::cli::paths;
use crate::config::{Config, Settings};
use crate::criteria as sets;
use crate::store::{RunFilter, RunSummary, Store, short_id};

/// How many of the latest runs are offered and searched for models.
const RUNS: u32 = 30;

/// The longest help text next to a value, in characters.
const HELP: usize = 60;

/// Returns models: aliases, models used by earlier runs, models on this machine (without asking a server),
/// and the prefixes of all providers.
pub(in crate::cli) fn models(typed: &OsStr) -> Vec<CompletionCandidate> {
    let config = config();
    let mut all = Vec::new();
    for (alias, model) in config.aliases() {
        all.push((alias.clone(), model.clone()));
    }
    for run in last_runs() {
        for model in [run.writer, run.judge] {
            all.push((model, "used before".to_owned()));
        }
    }
    for (name, provider) in config.providers() {
        if let Some(model) = &provider.model {
            all.push((format!("{name}:{model}"), "its default".to_owned()));
        }
    }
    #[cfg(feature = "embedded")]
    for model in crate::cli::models::local().unwrap_or_default() {
        let help = format!("{} MB, on this machine", model.bytes / 1_000_000);
        all.push((format!("embedded:{}", model.spec), help));
    }
    for name in known_providers(&config) {
        all.push((format!("{name}:"), String::new()));
    }
    fitting(typed, all)
}

/// Returns the known providers.
pub(in crate::cli) fn providers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let all = known_providers(&config()).into_iter();
    fitting(typed, all.map(|name| (name, String::new())).collect())
}

/// Returns the profiles of the user file.
pub(in crate::cli) fn profiles(typed: &OsStr) -> Vec<CompletionCandidate> {
    let config = config();
    let all = config
        .profiles()
        .map(|name| (name.to_owned(), String::new()));
    fitting(typed, all.collect())
}

/// Returns criteria sets by name, and files.
pub(in crate::cli) fn criteria(typed: &OsStr) -> Vec<CompletionCandidate> {
    let settings = config().resolve(&Settings::default(), None);
    let folders = settings.map(|resolved| resolved.settings.criteria_path);
    let folders = folders.ok().flatten().unwrap_or_default();
    let named = sets::available(&folders).into_iter().map(|set| {
        let help = set
            .path
            .map_or_else(|| "built in".to_owned(), |path| path.display().to_string());
        (set.name, help)
    });
    let mut all = fitting(typed, named.collect());
    all.extend(
        PathCompleter::any()
            .filter(leads_to_criteria)
            .complete(typed),
    );
    all
}

/// Returns runs by short id, latest first.
pub(in crate::cli) fn runs(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = vec![("last".to_owned(), String::new())];
    for run in last_runs() {
        all.push((
            short_id(run.run_id),
            format!("{}: {}", run.command, run.title),
        ));
    }
    fitting(typed, all)
}

/// Returns the configuration keys, for `--set`.
pub(in crate::cli) fn settings(typed: &OsStr) -> Vec<CompletionCandidate> {
    let resolved = config().resolve(&Settings::default(), None);
    let entries = resolved.map(|resolved| resolved.entries());
    let all = entries.into_iter().flatten().map(|entry| {
        let value = entry.value.map(|(value, _)| value.to_string());
        (format!("{}=", entry.key), value.unwrap_or_default())
    });
    fitting(typed, all.collect())
}

/// Loads the configuration, or an empty one if it cannot be read.
fn config() -> Config {
    let here = std::env::current_dir().unwrap_or_default();
    Config::load(&paths::env, &here).unwrap_or_default()
}

fn last_runs() -> Vec<RunSummary> {
    let open = || {
        let store = Store::open_existing(&paths::store().ok()?).ok()??;
        let filter = RunFilter {
            limit: Some(RUNS),
            ..RunFilter::default()
        };
        store.runs(&filter).ok()
    };
    open().unwrap_or_default()
}

/// Keeps each value that starts with what is typed, once, with a short help text.
fn fitting(typed: &OsStr, all: Vec<(String, String)>) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let mut seen = std::collections::HashSet::new();
    all.into_iter()
        // A value from a file or a model must not send keystrokes to the terminal.
        .filter(|(value, _)| !value.is_empty() && !value.contains(char::is_control))
        .filter(|(value, _)| value.starts_with(&*typed) && seen.insert(value.clone()))
        .map(|(value, help)| {
            let help: String = help
                .chars()
                .map(|c| if c.is_control() { ' ' } else { c })
                .take(HELP)
                .collect();
            let help = Some(help).filter(|help| !help.is_empty());
            CompletionCandidate::new(value).help(help.map(StyledStr::from))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matching_values_are_offered_once_without_control_characters() {
        let pair = |value: &str| (value.to_owned(), "a\tb".to_owned());
        let all = vec![
            pair("ollama:a"),
            pair("ollama:a"),
            pair("x"),
            pair("ollama:\n;rm"),
        ];
        let offered = fitting(OsStr::new("ol"), all);
        let values: Vec<_> = offered.iter().map(|it| it.get_value().to_owned()).collect();
        assert_eq!(values, ["ollama:a"]);
        assert_eq!(
            offered[0].get_help().map(ToString::to_string),
            Some("a b".to_owned())
        );
    }
}
