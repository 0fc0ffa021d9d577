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

/// The key of the cost limit, which untrusted files may lower but not raise.
const MAX_COST: &str = "loop.max_cost";

/// A project file that was ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredProject {
    /// Its path.
    pub path: PathBuf,
    /// The reason, as the end of a sentence.
    pub reason: &'static str,
}

/// The user file, the project file and the environment: parsed and checked, but not yet merged.
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
    /// Reads the user file, the project file and the environment. Missing files are skipped, but the file
    /// that `REFLECT_CONFIG` names must exist. The search for the project file starts in `directory` and goes
    /// up.
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

    /// Adds the `KEY=VALUE` pairs of `--set`, with the keys and values of the configuration file. They
    /// override everything but the flag of the same setting.
    ///
    /// # Errors
    /// If a key is unknown or a value is out of range.
    pub fn assign(mut self, assignments: &[String]) -> Result<Self, SourceError> {
        self.assigned = file::assigned(assignments)?;
        Ok(self)
    }

    /// Returns the configuration without trusted files, for tasks from other machines. A task may claim to
    /// come from any file, so trust in local files must not apply to it.
    #[must_use]
    pub fn for_tasks(mut self) -> Self {
        self.user.trust = file::Trust::default();
        self.serves_tasks = true;
        self
    }

    /// Whether it is for tasks from other machines: see [`Self::for_tasks`].
    pub fn serves_tasks(&self) -> bool {
        self.serves_tasks
    }

    /// The path of the user file, which may not exist.
    pub fn user_path(&self) -> Option<&Path> {
        self.user_path.as_deref()
    }

    /// The path of the project file, if there is one.
    pub fn project_path(&self) -> Option<&Path> {
        self.project_path.as_deref()
    }

    /// The project file that was ignored, if any.
    pub fn ignored_project(&self) -> Option<&IgnoredProject> {
        self.ignored_project.as_ref()
    }

    /// The models and providers that the user file, the environment and `--set` name outside of profiles,
    /// with aliases resolved.
    pub fn own_models(&self) -> impl Iterator<Item = &str> {
        let keys = ["provider", "model", "judge_model", "stronger_model"];
        let layers = [&self.user.layer, &self.env, &self.assigned];
        let named = layers
            .into_iter()
            .flat_map(move |layer| keys.into_iter().filter_map(|key| layer.text(key)));
        named.map(|(name, _)| self.user.aliases.get(name).map_or(name, String::as_str))
    }

    /// The provider of this name in the user file.
    pub fn provider(&self, name: &str) -> Option<&Provider> {
        self.user.providers.get(name)
    }

    /// The providers of the user file, in alphabetical order.
    pub fn providers(&self) -> &BTreeMap<String, Provider> {
        &self.user.providers
    }

    /// Whether code in this criteria file may run without asking, because the user file trusts it or a
    /// folder above it. The path must be canonical.
    pub fn trusts(&self, file: &Path) -> bool {
        is_in(&self.user.trust.exec, file)
    }

    /// Whether this file may choose models of any provider and download weights. The rules are those of
    /// [`Self::trusts`].
    pub fn trusts_models(&self, file: &Path) -> bool {
        is_in(&self.user.trust.models, file)
    }

    /// Whether this workflow may set the address of a server. The rules are those of [`Self::trusts`].
    pub fn trusts_endpoints(&self, file: &Path) -> bool {
        is_in(&self.user.trust.endpoints, file)
    }

    /// The prices of models.
    pub fn prices(&self) -> &Prices {
        &self.user.prices
    }

    /// The criteria files and folders that the user file trusts, as absolute paths.
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

    /// Merges all layers and resolves aliases of models. `flags` are the settings of the command line.
    /// `criteria` are the criteria of the run; resolve without them first to find out which they are.
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
        all.override_with(&self.user.layer);
        all.override_unless_lower(&self.project, MAX_COST);
        // Project files may not choose the profile.
        let chosen = [&flags, &self.assigned, &self.env, &self.user.layer]
            .into_iter()
            .find_map(|layer| layer.text("profile"));
        if let Some((name, origin)) = chosen {
            all.override_with(self.profile(name, origin)?);
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
            all.override_unless_lower(&layer, MAX_COST);
        }
        all.override_with(&self.env);
        all.override_with(&self.assigned);
        all.override_with(&flags);
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
        check_contradictions(&resolved)?;
        Ok(resolved)
    }

    /// The origin of a model that is named by an alias. An alias in a project file counts as the user's
    /// choice, because the user file defines it.
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

/// Whether a file is one of these files or in one of these folders. Missing ones match nothing.
fn is_in(trusted: &[PathBuf], file: &Path) -> bool {
    trusted.iter().any(|trusted| {
        let trusted = trusted.canonicalize();
        trusted.is_ok_and(|trusted| file.starts_with(trusted))
    })
}

/// Checks a user file.
pub fn check_user_file(path: &Path, env: Env<'_>) -> Result<(), SourceError> {
    let home = dirs::home(env);
    file::user(&source::read(path)?, path, home.as_deref()).map(drop)
}

/// Checks that values of different layers do not contradict each other. The error is about the value with the
/// higher precedence and names the origin of both.
fn check_contradictions(resolved: &Resolved) -> Result<(), SourceError> {
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
