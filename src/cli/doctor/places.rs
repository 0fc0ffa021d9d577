//! Checks of files and folders that a run uses, and of interpreters.

use std::path::Path;

use super::{Area, Check, Level, Report};
use crate::cli::args::GlobalArgs;
use crate::cli::error::CliError;
use crate::cli::paths;
use crate::cli::settings::{self, Plan};
use crate::config::{Config, PROJECT_FILE, VARIABLES};
use crate::criteria;
use crate::sandbox::{Language, check_interpreter};
use crate::store::Store;
use crate::types::ExitCode;

pub(in crate::cli) const CONFIGURATION: Area = area("configuration");
const CRITERIA: Area = area("criteria");
const STORAGE: Area = area("storage");
const PROGRAMS: Area = area("programs");

const fn area(name: &'static str) -> Area {
    Area {
        name,
        subject: None,
    }
}

/// Loads and checks the configuration. Returns `None` if it is invalid.
pub(in crate::cli) fn configuration(global: &GlobalArgs, report: &mut Report) -> Option<Config> {
    let config = match settings::load(global) {
        Ok(config) => config,
        Err(error) => {
            report.failed(CONFIGURATION, "files", &error);
            return None;
        }
    };
    report.add(&CONFIGURATION, user_file(config.user_path()));
    let (level, finding) = match (config.project_path(), config.ignored_project()) {
        (Some(path), _) => (Level::Ok, path.display().to_string()),
        (None, Some(ignored)) => {
            let (path, reason) = (ignored.path.display(), ignored.reason);
            (Level::Warning, format!("{path} is ignored: {reason}"))
        }
        (None, None) => {
            let finding = format!("no {PROJECT_FILE} in this folder or its parents");
            (Level::Note, finding)
        }
    };
    report.add(&CONFIGURATION, Check::new("project file", level, finding));
    let set: Vec<&str> = VARIABLES
        .iter()
        .map(|variable| variable.name)
        .filter(|name| paths::env(name).is_some_and(|value| !value.is_empty()))
        .collect();
    if !set.is_empty() {
        let check = Check::new("environment", Level::Note, set.join(", "));
        report.add(&CONFIGURATION, check);
    }
    Some(config)
}

fn user_file(path: Option<&Path>) -> Check {
    const NAME: &str = "user file";
    let Some(path) = path else {
        return Check::new(NAME, Level::Warning, "no home directory")
            .advice("set `REFLECT_CONFIG`");
    };
    let shown = path.display();
    if !path.exists() {
        return Check::new(NAME, Level::Note, format!("{shown} does not exist"))
            .advice("create it with `reflect config init`");
    }
    if others_may_write(path) {
        return Check::new(
            NAME,
            Level::Warning,
            format!("other users can write to {shown}"),
        )
        .advice(format!(
            "`chmod go-w {shown}`; the file decides where keys are sent"
        ));
    }
    Check::new(NAME, Level::Ok, shown.to_string())
}

/// Checks the criteria search path, the default criteria and the trusted files.
pub(in crate::cli) fn criteria(plan: &Plan, report: &mut Report) {
    let settings = plan.settings();
    let search = settings.criteria_path.as_deref().unwrap_or_default();
    for folder in search {
        let shown = folder.display();
        let own = criteria::available(std::slice::from_ref(folder));
        let check = match own.iter().filter(|set| set.path.is_some()).count() {
            _ if !folder.is_dir() => Check::new(
                "search path",
                Level::Warning,
                format!("{shown} is not a folder"),
            )
            .advice("create it, or remove it from `criteria_path`"),
            1 => Check::new("search path", Level::Ok, format!("{shown}: 1 file")),
            files => Check::new("search path", Level::Ok, format!("{shown}: {files} files")),
        };
        report.add(&CRITERIA, check);
    }
    if search.is_empty() {
        let check = Check::new(
            "search path",
            Level::Note,
            "none; only the built-in criteria",
        );
        report.add(&CRITERIA, check);
    }
    if let Some(name) = &settings.criteria {
        let reach = |file: &Path| settings::reach(&plan.config, false, file);
        let origin = plan.resolved.origin("criteria");
        let found = settings::criteria_named(name, None, origin, search);
        match found.and_then(|set| Ok(set.read(&reach)?)) {
            Ok(set) => {
                let finding = format!("{name}: {} criteria", set.criteria.len());
                report.add(&CRITERIA, Check::new("default", Level::Ok, finding));
            }
            Err(error) => report.failed(CRITERIA, "default", &error),
        }
    }
    for path in plan.config.trusted() {
        let shown = path.display();
        let check = if !path.exists() {
            Check::new("trusted", Level::Warning, format!("{shown} does not exist"))
                .advice("remove it from `[trust] exec`")
        } else if others_may_write(path) {
            let finding = format!(
                "{shown}: its code runs without confirmation, and other users can write to it"
            );
            Check::new("trusted", Level::Warning, finding)
                .advice(format!("`chmod -R go-w {shown}`"))
        } else {
            let finding = format!("{shown}: its code runs without confirmation");
            Check::new("trusted", Level::Ok, finding)
        };
        report.add(&CRITERIA, check);
    }
}

/// Checks the run log. Leaves no files behind.
pub(in crate::cli) fn storage(report: &mut Report) {
    let path = match paths::store() {
        Ok(path) => path,
        Err(error) => return report.failed(STORAGE, "run log", &error),
    };
    let shown = path.display();
    match Store::open_existing(&path) {
        Err(error) => return report.failed(STORAGE, "run log", &CliError::from(error)),
        Ok(Some(_)) if others_may_read(&path) => {
            let finding =
                format!("other users can read {shown}, which holds your prompts and drafts");
            let check = Check::new("run log", Level::Warning, finding)
                .advice(format!("`chmod 600 {shown}`"));
            return report.add(&STORAGE, check);
        }
        Ok(Some(_)) => {
            let finding = format!("{shown}, readable only by you");
            return report.add(&STORAGE, Check::new("run log", Level::Ok, finding));
        }
        Ok(None) => {}
    }
    // The first run creates the file and its missing parent folders.
    let folder = path.ancestors().skip(1).find(|folder| folder.exists());
    let folder = folder.unwrap_or(Path::new("."));
    let check = match tempfile::tempfile_in(folder) {
        Ok(_) => {
            let finding = format!("{shown} (created by the first run)");
            Check::new("run log", Level::Ok, finding)
        }
        Err(error) => {
            let code = Level::Failed(ExitCode::Failure);
            let finding = format!("cannot create {shown}: {error}");
            Check::new("run log", code, finding).advice(
                "set `REFLECT_STATE_DIR` to a writable folder, or disable the log with `--no-log`",
            )
        }
    };
    report.add(&STORAGE, check);
}

/// Checks the interpreters of scripted criteria.
pub(in crate::cli) fn programs(report: &mut Report) {
    for (language, name) in [(Language::Python, "python3"), (Language::Prolog, "swipl")] {
        let check = if check_interpreter(language).is_ok() {
            Check::new(name, Level::Ok, format!("found; {language} scripts work"))
        } else {
            let finding = format!("not found; {language} scripts do not work");
            Check::new(name, Level::Note, finding)
                .advice("only such criteria need it; Lua is built in")
        };
        report.add(&PROGRAMS, check);
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs_err::metadata(path).map_or(0, |metadata| metadata.permissions().mode())
}

#[cfg(unix)]
fn others_may_write(path: &Path) -> bool {
    mode(path) & 0o022 != 0
}

#[cfg(unix)]
fn others_may_read(path: &Path) -> bool {
    mode(path) & 0o044 != 0
}

/// On other systems, the default permissions protect a user's folders.
#[cfg(not(unix))]
fn others_may_write(_: &Path) -> bool {
    false
}

#[cfg(not(unix))]
fn others_may_read(_: &Path) -> bool {
    false
}
