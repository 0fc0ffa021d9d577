use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::{
    dirs, env,
    env::Env,
    file::{self, UserFile},
    layer::{Layer, Origin, Resolved},
    owner,
    provider::Provider,
    settings::Settings,
};
use crate::{
    source::{self, SourceError},
    types::{Criteria, LoopSettings, Prices},
};

/// A limit on the user's money, which other people's files may lower and not raise.
const MAX_COST: &str = "loop.max_cost";

/// A project's file that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredProject {
    /// Where it is.
    pub path: PathBuf,
    /// Why, as the end of a sentence about it.
    pub reason: &'static str,
}

/// The user's file, the project's file and the environment, read and checked, not yet laid over each
/// other.
#[derive(Debug, Clone, Default)]
pub struct Config {
    user_path: Option<PathBuf>,
    project_path: Option<PathBuf>,
    ignored_project: Option<IgnoredProject>,
    user: UserFile,
    project: Layer,
    env: Layer,
    assigned: Layer,
    serves_tasks: bool,
}

impl Config {
    /// Reads what there is. A file that is not there is no error, except one that `REFLECT_CONFIG`
    /// names. The project's file is looked for from `directory` upwards.
    pub fn load(env: Env<'_>, directory: &Path) -> Result<Self, SourceError> {
        let mut config = Self {
            env: env::layer(env)?,
            user_path: dirs::user_file(env),
            ..Self::default()
        };
        let named = env("REFLECT_CONFIG").is_some_and(|v| !v.is_empty());
        if let Some(path) = config.user_path.as_deref().filter(|p| named || p.exists()) {
            let home = dirs::home(env);
            config.user = file::user(&source::read(path)?, path, home.as_deref())?;
        }
        if let Some(path) = dirs::project_file(directory) {
            if let Some(reason) = owner::distrusted(&path) {
                config.ignored_project = Some(IgnoredProject { path, reason });
            } else {
                config.project = file::project(&source::read(&path)?, &path)?;
                config.project_path = Some(path);
            }
        }
        Ok(config)
    }

    /// Adds what `--set` sets: `KEY=VALUE`, with the keys and values of the configuration file. It overrides everything
    /// but the flag of the same setting.
    ///
    /// # Errors
    /// If a key is unknown or a value is out of range.
    pub fn assign(mut self, assignments: &[String]) -> Result<Self, SourceError> {
        self.assigned = file::assigned(assignments)?;
        Ok(self)
    }

    /// The same configuration, for tasks of other people: trust in files of this machine says nothing about them, since a
    /// task may claim to come from any file.
    #[must_use]
    pub fn for_tasks(mut self) -> Self {
        self.user.trust = file::Trust::default();
        self.serves_tasks = true;
        self
    }

    /// Whether it is for tasks of other people: see [`Self::for_tasks`].
    pub fn serves_tasks(&self) -> bool {
        self.serves_tasks
    }

    /// Where the user's file is or would be.
    pub fn user_path(&self) -> Option<&Path> {
        self.user_path.as_deref()
    }

    /// The project's file, if there is one.
    pub fn project_path(&self) -> Option<&Path> {
        self.project_path.as_deref()
    }

    /// A project's file that is there and was not read.
    pub fn ignored_project(&self) -> Option<&IgnoredProject> {
        self.ignored_project.as_ref()
    }

    /// The models and providers that the user's own file and environment name outside of profiles, short names
    /// resolved.
    pub fn own_models(&self) -> impl Iterator<Item = &str> {
        let keys = ["provider", "model", "judge_model", "stronger_model"];
        let layers = [&self.user.layer, &self.env, &self.assigned];
        let named = layers
            .into_iter()
            .flat_map(move |layer| keys.into_iter().filter_map(|key| layer.text(key)));
        named.map(|(name, _)| self.user.aliases.get(name).map_or(name, String::as_str))
    }

    /// The provider of this name in the user's file.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.user.providers.get(name)
    }

    /// The providers of the user's file, in alphabetical order.
    pub fn providers(&self) -> &BTreeMap<String, Provider> {
        &self.user.providers
    }

    /// Whether code in this criteria file may run without asking: the user's own file names it, or a folder
    /// that it is in. The path must be full, with symbolic links resolved.
    pub fn trusts(&self, file: &Path) -> bool {
        is_in(&self.user.trust.exec, file)
    }

    /// Whether this file may choose models of any provider and have weights downloaded; otherwise as
    /// [`Self::trusts`].
    pub fn trusts_models(&self, file: &Path) -> bool {
        is_in(&self.user.trust.models, file)
    }

    /// Whether this workflow may set the address of a server; otherwise as [`Self::trusts`].
    pub fn trusts_endpoints(&self, file: &Path) -> bool {
        is_in(&self.user.trust.endpoints, file)
    }

    /// What models cost.
    pub fn prices(&self) -> &Prices {
        &self.user.prices
    }

    /// What the user's own file trusts: criteria files and folders of them, full paths.
    pub fn trusted(&self) -> &[PathBuf] {
        &self.user.trust.exec
    }

    /// Short names for models.
    pub fn aliases(&self) -> &BTreeMap<String, String> {
        &self.user.aliases
    }

    /// The names of the profiles, in the order of the file.
    pub fn profiles(&self) -> impl Iterator<Item = &str> {
        self.user.profiles.keys().map(String::as_str)
    }

    /// Lays everything over each other. `flags` are what the command line sets. `criteria` are the
    /// criteria of the run, once they are known: first resolve without them to learn which they are.
    /// Aliases of models are replaced by what they stand for.
    pub fn resolve(
        &self,
        flags: &Settings,
        criteria: Option<&Criteria>,
    ) -> Result<Resolved, SourceError> {
        flags.check().map_err(|(path, message)| {
            SourceError::for_file(&flag_name(&path.join(".")), &message)
        })?;
        let flags = Layer::new(flags, |key| Origin::Flag(flag_name(key)));
        let mut all = Layer::new(&Settings::defaults(), |_| Origin::BuiltIn);
        all.cover(&self.user.layer);
        all.cover_but_keep_lower(&self.project, MAX_COST);
        // A project's file may not choose the profile, so it has no say here.
        let chosen = [&flags, &self.assigned, &self.env, &self.user.layer]
            .into_iter()
            .find_map(|layer| layer.text("profile"));
        if let Some((name, origin)) = chosen {
            all.cover(self.profile(name, origin)?);
        }
        if let Some(criteria) = criteria {
            let settings = Settings {
                loop_settings: LoopSettings {
                    threshold: criteria
                        .loop_settings
                        .threshold
                        .or(Some(criteria.threshold)),
                    ..criteria.loop_settings.clone()
                },
                judge: criteria.judge_settings.clone(),
                ..Settings::default()
            };
            let layer = Layer::new(&settings, |_| Origin::Criteria(criteria.name.clone()));
            all.cover_but_keep_lower(&layer, MAX_COST);
        }
        all.cover(&self.env);
        all.cover(&self.assigned);
        all.cover(&flags);
        for key in ["model", "judge_model", "stronger_model"] {
            let found = all.text(key).and_then(|(name, origin)| {
                let model = self.user.aliases.get(name)?.clone();
                Some((model, self.origin_of_alias(name, origin)))
            });
            if let Some((model, origin)) = found {
                all.set(key, model.into(), origin);
            }
        }
        let resolved = all
            .resolved()
            .map_err(|error| SourceError::for_file(&error.key, &error.message))?;
        no_contradiction(&resolved)?;
        Ok(resolved)
    }

    /// Where a model comes from that is named by an alias at this place: what a project names by a short name is the
    /// user's own word.
    fn origin_of_alias(&self, name: &str, origin: &Origin) -> Origin {
        match (origin, &self.user_path) {
            (Origin::Project { .. }, Some(path)) => Origin::File {
                path: path.clone(),
                line: self.user.alias_lines.get(name).copied().unwrap_or(1),
                profile: None,
            },
            _ => origin.clone(),
        }
    }

    fn profile(&self, name: &str, origin: &Origin) -> Result<&Layer, SourceError> {
        self.user.profiles.get(name).ok_or_else(|| {
            let near = source::similar(name, self.profiles());
            SourceError::for_file(&origin.to_string(), &format!("no profile named `{name}`"))
                .help_if(near.map(|n| format!("did you mean `{n}`?")))
                .help(match &self.user_path {
                    _ if !self.user.profiles.is_empty() => {
                        format!("known profiles: {}", source::list(self.profiles()))
                    }
                    Some(path) => format!("define it as `[profiles.{name}]` in {}", path.display()),
                    None => "profiles are defined in your configuration file".to_owned(),
                })
        })
    }
}

/// Whether a file is one of these files, or in one of these folders. One that does not exist holds nothing.
fn is_in(trusted: &[PathBuf], file: &Path) -> bool {
    trusted.iter().any(|trusted| {
        let trusted = trusted.canonicalize();
        trusted.is_ok_and(|trusted| file.starts_with(trusted))
    })
}

/// Reads a user's file and says what is wrong with it, if anything.
pub fn check_user_file(path: &Path, env: Env<'_>) -> Result<(), SourceError> {
    let home = dirs::home(env);
    file::user(&source::read(path)?, path, home.as_deref()).map(drop)
}

/// Values that are right in their layers may contradict each other across them. The error is about the one that
/// was set higher up, and names the place of both.
fn no_contradiction(resolved: &Resolved) -> Result<(), SourceError> {
    const KEYS: [&str; 2] = ["loop.min_iterations", "loop.max_iterations"];
    let settings = &resolved.settings.loop_settings;
    let Err((_, message)) = settings.check() else {
        return Ok(());
    };
    let places = KEYS.map(|key| resolved.origin(key).unwrap_or(&Origin::BuiltIn));
    let [min, max] = places;
    let higher = if max.rank() > min.rank() { max } else { min };
    Err(
        SourceError::for_file(&higher.to_string(), &message).help(format!(
            "`min_iterations` comes from {min}, `max_iterations` from {max}"
        )),
    )
}

/// The flag that sets a key: `--max-iterations` for `loop.max_iterations`, `--timeout-idle` for
/// `timeouts.idle`, `--judge-mode` for `judge.mode`.
fn flag_name(key: &str) -> String {
    let name = match key.split_once('.') {
        Some(("timeouts", "total")) => "timeout".to_owned(),
        Some(("timeouts", name)) => format!("timeout-{name}"),
        Some(("judge", "cache")) => "no-cache".to_owned(),
        Some(("loop", "early_stop")) => "no-early-stop".to_owned(),
        Some(("judge", name)) => format!("judge-{name}"),
        Some((_, name)) => name.to_owned(),
        None => key.to_owned(),
    };
    format!("--{}", name.replace('_', "-"))
}
