//! `reflect criteria`: lists, shows, checks and creates criteria sets.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use console::{Alignment, measure_text_width, pad_str};
use serde::Serialize;

use crate::cli::args::{CriteriaCommand, CriteriaFormat, GlobalArgs};
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::{printer, settings};
use crate::config::{Config, Settings};
use crate::criteria::{self, AvailableCriteria};
use crate::source::{FileAccess, SourceError};
use crate::text::plural;
use crate::types::{Criteria, Criterion, ExitCode};

/// Runs one of the criteria commands.
pub(in crate::cli) fn run(
    command: &CriteriaCommand,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    match command {
        CriteriaCommand::List { json } => list(global, *json),
        CriteriaCommand::Show { criteria, format } => show(global, criteria, *format),
        CriteriaCommand::Check { files } => check(global, files),
        CriteriaCommand::Init {
            file,
            task_type,
            from,
            force,
        } => init(file, task_type, from.as_deref(), global, *force),
        CriteriaCommand::Schema => {
            printer::print(&printer::json(&criteria::schema())?)?;
            Ok(ExitCode::Success)
        }
    }
}

/// The folders of custom sets, and the configuration that lists the trusted ones.
struct Place {
    config: Config,
    search_path: Vec<PathBuf>,
}

impl Place {
    fn of(global: &GlobalArgs) -> Result<Self, CliError> {
        let flags = Settings {
            profile: global.profile.clone(),
            ..Settings::default()
        };
        let config = settings::load(global)?;
        let settings = config.resolve(&flags, None)?.settings;
        Ok(Self {
            search_path: settings.criteria_path.unwrap_or_default(),
            config,
        })
    }

    fn read(&self, set: &AvailableCriteria) -> Result<Criteria, SourceError> {
        set.read(&|file| self.reach(file))
    }

    fn reach(&self, file: &Path) -> FileAccess {
        settings::reach(&self.config, false, file)
    }
}

/// A set, as `criteria list --json` prints it.
#[derive(Serialize)]
pub(super) struct Listed {
    /// The name for `-c NAME`.
    name: String,
    /// A one-sentence description; null if there is none.
    description: Option<String>,
    /// Its file; null if it is built in.
    path: Option<PathBuf>,
    /// Why it is invalid; null if it is valid.
    error: Option<String>,
}

impl Listed {
    /// Reads a set. `reach` returns which files a criteria file may refer to.
    pub(super) fn of(set: AvailableCriteria, reach: &dyn Fn(&Path) -> FileAccess) -> Self {
        let (description, error) = match set.read(reach) {
            Ok(criteria) => (criteria.description, None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            name: set.name,
            description,
            path: set.path,
            error,
        }
    }

    /// Its name, and what it is.
    pub(super) fn line(&self) -> String {
        match self.about() {
            "" => self.name.clone(),
            said => format!("{}: {said}", self.name),
        }
    }

    /// The description, or that the file is invalid.
    fn about(&self) -> &str {
        match (&self.description, &self.error) {
            (_, Some(_)) => "invalid",
            (description, None) => description.as_deref().unwrap_or_default(),
        }
    }
}

fn list(global: &GlobalArgs, json: bool) -> Result<ExitCode, CliError> {
    let place = Place::of(global)?;
    let sets: Vec<Listed> = criteria::available(&place.search_path)
        .into_iter()
        .map(|set| Listed::of(set, &|file| place.reach(file)))
        .collect();
    if json {
        printer::print(&printer::json(&sets)?)?;
        return Ok(ExitCode::Success);
    }
    let origin = |set: &Listed| origin(&set.name, set.path.as_deref());
    let widest = |texts: &mut dyn Iterator<Item = String>| {
        texts
            .map(|text| measure_text_width(&text))
            .max()
            .unwrap_or(0)
    };
    let names = widest(&mut sets.iter().map(|set| set.name.clone()));
    let origins = widest(&mut sets.iter().map(origin));
    let mut out = String::new();
    for set in &sets {
        let about = set.about();
        let line = format!(
            "{}  {}  {about}",
            pad_str(&set.name, names, Alignment::Left, None),
            pad_str(&origin(set), origins, Alignment::Left, None),
        );
        let _ = writeln!(out, "{}", printer::without_controls(line.trim_end()));
        if let Some(error) = &set.error {
            printer::say(&format!("warning: {error}"));
        }
    }
    printer::print(&out)?;
    Ok(ExitCode::Success)
}

/// Where a set comes from, and whether its name hides a built-in set.
fn origin(name: &str, path: Option<&Path>) -> String {
    match path {
        Some(path) if criteria::BUILTIN_NAMES.contains(&name) => {
            format!("{} (overrides the built-in set)", path.display())
        }
        Some(path) => path.display().to_string(),
        None => "built in".to_owned(),
    }
}

fn show(global: &GlobalArgs, spec: &str, format: CriteriaFormat) -> Result<ExitCode, CliError> {
    let place = Place::of(global)?;
    let set = criteria::locate(spec, &place.search_path)?;
    let criteria = place.read(&set)?;
    let text = match format {
        CriteriaFormat::Text => printer::without_controls(&set_text(&set, &criteria)).into_owned(),
        CriteriaFormat::Json => printer::json(&criteria)?,
        CriteriaFormat::Toml => criteria::to_toml(&criteria)
            .ok_or_else(|| CliError::failure("cannot write the criteria as TOML"))?,
    };
    printer::print(&text)?;
    Ok(ExitCode::Success)
}

/// Formats a set as text.
fn set_text(set: &AvailableCriteria, criteria: &Criteria) -> String {
    let mut out = criteria.name.clone();
    if let Some(description) = &criteria.description {
        let _ = write!(out, ": {}", description.trim());
    }
    out.push('\n');
    let _ = writeln!(
        out,
        "{}; the weighted mean must reach {}",
        origin(&set.name, set.path.as_deref()),
        criteria.threshold
    );
    let settings = toml::to_string(&criteria.loop_settings).unwrap_or_default();
    if !settings.trim().is_empty() {
        let settings: Vec<&str> = settings.lines().collect();
        let _ = writeln!(out, "loop: {}", settings.join(", "));
    }
    for criterion in &criteria.criteria {
        let Criterion {
            name,
            description,
            weight,
            threshold,
            required,
            evaluator,
        } = criterion;
        let required = if *required { ", required" } else { "" };
        let _ = writeln!(
            out,
            "\n{name} ({}): weight {weight}, floor {threshold}{required}",
            evaluator.kind()
        );
        for text in [Some(description.clone()), evaluator.describe()] {
            for line in text.iter().flat_map(|text| text.trim().lines()) {
                let _ = writeln!(out, "  {line}");
            }
        }
    }
    out
}

/// Checks every file and reports its problems on stderr. Prints nothing to stdout.
fn check(global: &GlobalArgs, files: &[String]) -> Result<ExitCode, CliError> {
    let place = Place::of(global)?;
    let mut code = ExitCode::Success;
    for file in files {
        match criteria::locate(file, &place.search_path).and_then(|set| place.read(&set)) {
            Err(error) => {
                printer::report(&CliError::from(error));
                code = ExitCode::Usage;
            }
            Ok(criteria) => {
                let warnings = criteria::warnings(&criteria);
                for warning in warnings.iter().filter(|_| !global.quiet) {
                    printer::say(&format!("warning: {file}: {warning}"));
                }
                if warnings.is_empty() && !global.quiet {
                    let count = criteria.criteria.len();
                    let noun = plural(count, "criterion", "criteria");
                    printer::say(&format!("{file}: valid, {count} {noun}"));
                }
            }
        }
    }
    Ok(code)
}

fn init(
    file: &Path,
    task_type: &str,
    from: Option<&str>,
    global: &GlobalArgs,
    force: bool,
) -> Result<ExitCode, CliError> {
    let name = file
        .file_stem()
        .and_then(|stem| stem.to_str())
        .filter(|stem| *stem != "-" && !stem.trim().is_empty())
        .unwrap_or("criteria");
    let (text, source) = match from {
        Some(from) => {
            let set = criteria::locate(from, &Place::of(global)?.search_path)?;
            let shown = if file == Path::new("-") {
                "FILE".into()
            } else {
                file.to_string_lossy()
            };
            (criteria::copy_of(&set, name.trim(), &shown)?, from)
        }
        None => (criteria::starting_file(name.trim(), task_type), task_type),
    };
    let text =
        text.ok_or_else(|| CliError::usage(format!("no built-in criteria named `{source}`")))?;
    let output = Output::open(Some(file))?;
    if output.is_stdout() {
        output.write(&text)?;
        return Ok(ExitCode::Success);
    }
    if !force && file.exists() {
        return Err(
            CliError::usage(format!("the file already exists: {}", file.display()))
                .hint("overwrite it with `--force`"),
        );
    }
    output.write(&text)?;
    printer::say(&format!(
        "wrote {0}; check it with `reflect criteria check {0}`",
        file.display()
    ));
    Ok(ExitCode::Success)
}
