use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    assign,
    layer::{Layer, Origin},
    mask,
    provider::Provider,
    settings::Settings,
};
use crate::source::{self, Source, SourceError};
use crate::types::Prices;

/// The keys that project files may set; `loop`, `judge` and `reflector` with all their keys. Project files
/// are untrusted, because they come with cloned repositories: they may not set servers, keys or trust.
pub const PROJECT_KEYS: &[&str] = &[
    "model",
    "judge_model",
    "criteria",
    "loop",
    "judge",
    "reflector",
];

/// The tables of the user file other than the settings.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Tables {
    /// Servers by name, for `provider` and `provider:model`.
    pub providers: BTreeMap<String, Provider>,
    /// Short names for models: `fast = "ollama:qwen3:4b"`.
    pub aliases: BTreeMap<String, String>,
    /// What models cost, by `provider:model` or just `model`, for `cost` in results and `max_cost`.
    pub prices: Prices,
    /// Settings under a name, for `--profile NAME`.
    pub profiles: BTreeMap<String, Settings>,
    /// What may be done on this machine without asking each time.
    pub trust: Trust,
}

/// What files that may be somebody else's may do without asking each time. Files, or folders of them: full paths, or
/// from the home directory with `~/`. Default: none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Trust {
    /// Their commands and scripts run as with `--allow-exec`.
    pub exec: Vec<PathBuf>,
    /// They choose models of any provider and download weights, as with `--allow-models`.
    pub models: Vec<PathBuf>,
    /// Workflows that set the server's address (`api_base`).
    pub endpoints: Vec<PathBuf>,
}

/// The parsed user file.
#[derive(Debug, Clone, Default)]
pub(super) struct UserFile {
    pub layer: Layer,
    pub providers: BTreeMap<String, Provider>,
    pub aliases: BTreeMap<String, String>,
    pub prices: Prices,
    pub profiles: IndexMap<String, Layer>,
    /// The line of each alias.
    pub alias_lines: BTreeMap<String, usize>,
    /// With absolute paths only.
    pub trust: Trust,
}

/// Parses the user file. Errors mask values that may be secrets.
pub(super) fn user(
    source: &Source,
    path: &Path,
    home: Option<&Path>,
) -> Result<UserFile, SourceError> {
    read_user(source, path, home).map_err(|error| mask::conceal(source, error))
}

fn read_user(source: &Source, path: &Path, home: Option<&Path>) -> Result<UserFile, SourceError> {
    let mut root = source::table(source)?;
    let outline = root.get_ref().clone();
    let whole = root.span();
    let table_keys = source::fields::<Tables>();
    let mut tables = DeTable::new();
    for key in table_keys {
        if let Some((key, value)) = root.get_mut().remove_entry(*key) {
            tables.insert(key, value);
        }
    }
    reject_singular_tables(source, root.get_ref())?;
    reject_unknown_keys(source, root.get_ref(), table_keys)?;
    let reader = Reader {
        source,
        path,
        home,
        outline: &outline,
        kind: FileKind::User,
    };
    let layer = reader.layer(root, None)?;
    let mut profiles = IndexMap::new();
    if let Some(value) = tables.remove("profiles") {
        let span = value.span();
        let DeValue::Table(named) = value.into_inner() else {
            return Err(source.error(span, "`profiles` must be tables: `[profiles.NAME]`"));
        };
        let mut named: Vec<_> = named.into_iter().collect();
        named.sort_by_key(|(name, _)| name.span().start);
        for (name, value) in named {
            let span = value.span();
            let DeValue::Table(table) = value.into_inner() else {
                return Err(source.error(span, "a profile must be a table: `[profiles.NAME]`"));
            };
            let name = name.into_inner().into_owned();
            let layer = reader.layer(Spanned::new(span, table), Some(&name))?;
            profiles.insert(name, layer);
        }
    }
    let tables: Tables = source::table_into(source, Spanned::new(whole, tables))?;
    reader.check_providers(&tables.providers)?;
    reader.check_prices(&tables.prices)?;
    for (name, model) in &tables.aliases {
        if name.contains(':') || model.trim().is_empty() {
            return Err(source
                .error(
                    source::value_span(&outline, &["aliases", name]).unwrap_or(0..0),
                    &format!("the alias `{name}` is not a short name of a model"),
                )
                .help("for example: fast = \"ollama:qwen3:4b\""));
        }
    }
    let trust = Trust {
        exec: reader.trusted("exec", &tables.trust.exec)?,
        models: reader.trusted("models", &tables.trust.models)?,
        endpoints: reader.trusted("endpoints", &tables.trust.endpoints)?,
    };
    let line_of = |name: &String| {
        let span = source::value_span(&outline, &["aliases", name])?;
        Some((name.clone(), source.position(span.start).0))
    };
    Ok(UserFile {
        alias_lines: tables.aliases.keys().filter_map(line_of).collect(),
        trust,
        layer,
        providers: tables.providers,
        aliases: tables.aliases,
        prices: tables.prices,
        profiles,
    })
}

/// Parses a project file. Errors mask values that may be secrets.
pub(super) fn project(source: &Source, path: &Path) -> Result<Layer, SourceError> {
    read_project(source, path).map_err(|error| mask::conceal(source, error))
}

fn read_project(source: &Source, path: &Path) -> Result<Layer, SourceError> {
    let root = source::table(source)?;
    let mut keys: Vec<_> = root.get_ref().keys().collect();
    keys.sort_by_key(|key| key.span().start);
    for key in keys {
        let name = key.get_ref().as_ref();
        if PROJECT_KEYS.contains(&name) {
            continue;
        }
        let is_ours = source::fields::<Settings>().contains(&name)
            || source::fields::<Tables>().contains(&name)
            || source::fields::<Provider>().contains(&name);
        if !is_ours {
            return Err(source::unknown_key(source, key.span(), name, PROJECT_KEYS));
        }
        return Err(source
            .error(
                key.span(),
                &format!("a project file may not set `{name}`"),
            )
            .help(format!(
                "project files are untrusted and may set only {}; set `{name}` in your own configuration file \
                 (`reflect config path`)",
                source::list(PROJECT_KEYS.iter().copied())
            )));
    }
    let outline = root.get_ref().clone();
    Reader {
        source,
        path,
        home: None,
        outline: &outline,
        kind: FileKind::Project,
    }
    .layer(root, None)
}

/// Parses the values of `--set`.
pub(super) fn assigned(assignments: &[String]) -> Result<Layer, SourceError> {
    let source = Source::new(assign::NAME, &assign::file(assignments)?);
    let root = source::table(&source)?;
    reject_unknown_keys(&source, root.get_ref(), &[])?;
    let outline = root.get_ref().clone();
    let home = std::env::home_dir();
    Reader {
        source: &source,
        path: Path::new(""),
        home: home.as_deref(),
        outline: &outline,
        kind: FileKind::Flags,
    }
    .layer(root, None)
}

/// Rejects `[provider.x]` and `[profile.x]`, which are easily mistaken for `[providers.x]` and
/// `[profiles.x]`.
fn reject_singular_tables(source: &Source, root: &DeTable<'_>) -> Result<(), SourceError> {
    for (key, tables) in [("provider", "providers"), ("profile", "profiles")] {
        if let Some((place, value)) = root.get_key_value(key)
            && matches!(value.get_ref(), DeValue::Table(_))
        {
            return Err(source
                .error(
                    place.span(),
                    &format!("`{key}` is a name under `{tables}`, not a table"),
                )
                .help(format!("write `[{tables}.NAME]` for the table")));
        }
    }
    Ok(())
}

/// Fails at the first key that is neither a setting nor a table.
fn reject_unknown_keys(
    source: &Source,
    root: &DeTable<'_>,
    tables: &[&str],
) -> Result<(), SourceError> {
    let settings = source::fields::<Settings>();
    let unknown = root
        .keys()
        .filter(|key| !settings.contains(&key.get_ref().as_ref()))
        .min_by_key(|key| key.span().start);
    match unknown {
        None => Ok(()),
        Some(key) => {
            let known: Vec<&str> = settings.iter().chain(tables).copied().collect();
            let name = key.get_ref().as_ref();
            Err(source::unknown_key(source, key.span(), name, &known))
        }
    }
}

struct Reader<'a> {
    source: &'a Source,
    path: &'a Path,
    home: Option<&'a Path>,
    outline: &'a DeTable<'a>,
    kind: FileKind,
}

/// The kind of source that is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileKind {
    /// The user file.
    User,
    /// A project file.
    Project,
    /// The values of `--set`.
    Flags,
}

impl Reader<'_> {
    /// Parses a table into a layer that records the line of each value.
    fn layer(
        &self,
        table: Spanned<DeTable<'_>>,
        profile: Option<&str>,
    ) -> Result<Layer, SourceError> {
        let outline = table.get_ref().clone();
        let whole = table.span();
        let place =
            |path: &[&str]| source::value_span(&outline, path).unwrap_or_else(|| whole.clone());
        let mut settings: Settings = source::table_into(self.source, table)?;
        settings
            .check()
            .map_err(|(path, message)| self.source.error(place(&path), &message))?;
        if self.kind != FileKind::Flags && settings.loop_settings.threshold.is_some() {
            return Err(self
                .source
                .error(
                    place(&["loop", "threshold"]),
                    "`loop.threshold` has no effect here: the threshold of the criteria overrides it",
                )
                .help("set it in the criteria file, or use `--threshold` or `REFLECT_THRESHOLD`"));
        }
        if profile.is_some() && settings.profile.is_some() {
            return Err(self
                .source
                .error(place(&["profile"]), "a profile cannot name another profile"));
        }
        settings.criteria = settings.criteria.map(|spec| self.criteria_spec(spec));
        settings.criteria_path = settings
            .criteria_path
            .map(|dirs| dirs.iter().map(|dir| self.resolve_path(dir)).collect());
        settings.prompt_dir = settings.prompt_dir.map(|dir| self.resolve_path(&dir));
        settings.ca_file = settings.ca_file.map(|file| self.resolve_path(&file));
        Ok(Layer::new(&settings, |key| {
            let keys: Vec<&str> = key.split('.').collect();
            let (path, line) = (
                self.path.to_owned(),
                self.source.position(place(&keys).start).0,
            );
            match self.kind {
                FileKind::Project => Origin::Project { path, line },
                FileKind::Flags => Origin::Flag(format!("{} {key}", assign::NAME)),
                FileKind::User => Origin::File {
                    path,
                    line,
                    profile: profile.map(str::to_owned),
                },
            }
        }))
    }

    /// Resolves a path relative to the folder of this file; `~/` is the home directory.
    fn resolve_path(&self, path: &Path) -> PathBuf {
        if let (Ok(rest), Some(home)) = (path.strip_prefix("~"), self.home) {
            return home.join(rest);
        }
        match self.path.parent() {
            Some(dir) => dir.join(path),
            None => path.to_owned(),
        }
    }

    /// Resolves trusted paths, which must be absolute or start with `~/`.
    fn trusted(&self, key: &str, paths: &[PathBuf]) -> Result<Vec<PathBuf>, SourceError> {
        let paths = paths.iter().filter_map(|path| {
            let full = match path.strip_prefix("~") {
                // Skip the path if there is no home directory.
                Ok(rest) => self.home?.join(rest),
                Err(_) => path.clone(),
            };
            if full.is_absolute() {
                return Some(Ok(full));
            }
            let place = source::value_span(self.outline, &["trust", key]).unwrap_or(0..0);
            Some(Err(self
                .source
                .error(
                    place,
                    &format!(
                        "`trust.{key}`: `{}` is not an absolute path",
                        path.display()
                    ),
                )
                .help(format!(
                    "for example: {key} = [\"/home/ada/criteria\", \"~/work/code.toml\"]"
                ))))
        });
        paths.collect()
    }

    /// Resolves criteria given as a path. A name stays unchanged.
    fn criteria_spec(&self, spec: String) -> String {
        if !source::is_path(&spec) {
            return spec;
        }
        let path = self.resolve_path(Path::new(&spec));
        path.to_str().map_or(spec, str::to_owned)
    }

    fn check_prices(&self, prices: &Prices) -> Result<(), SourceError> {
        for (name, price) in &prices.0 {
            price.check().map_err(|(key, message)| {
                let place = source::value_span(self.outline, &["prices", name, key]);
                self.source.error(place.unwrap_or(0..0), &message)
            })?;
        }
        Ok(())
    }

    fn check_providers(&self, providers: &BTreeMap<String, Provider>) -> Result<(), SourceError> {
        for (name, provider) in providers {
            let place = |key: &str| {
                source::value_span(self.outline, &["providers", name, key])
                    .or_else(|| source::value_span(self.outline, &["providers", name]))
                    .unwrap_or(0..0)
            };
            if name.is_empty() || name.contains(':') {
                return Err(self.source.error(
                    place(""),
                    "a provider's name must not be empty or contain `:`",
                ));
            }
            provider
                .check()
                .map_err(|(key, message)| self.source.error(place(key), &message))?;
            if provider.api_key.is_some() && readable_by_others(self.path) {
                return Err(SourceError::for_file(
                    self.source.name(),
                    &format!("the key of provider `{name}` is in a file that other users can read"),
                )
                .help(format!(
                    "`chmod 600 {}`, or use `api_key_env` or `api_key_cmd`",
                    self.path.display()
                )));
            }
        }
        Ok(())
    }
}

#[cfg(unix)]
fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|m| m.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn readable_by_others(_: &Path) -> bool {
    // The system keeps other users out of a user's directory.
    false
}
