//! `reflect config`: shows, writes and edits the configuration.

use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use crate::cli::args::{ConfigCommand, GlobalArgs};
use crate::cli::error::CliError;
use crate::cli::{editor, paths, printer, settings};
use crate::config::{self, Config, Settings};
use crate::prompt::built_in_templates;
use crate::source::redact;
use crate::types::ExitCode;

/// Runs one of the config commands.
pub(in crate::cli) fn run(
    command: &ConfigCommand,
    global: &GlobalArgs,
) -> Result<ExitCode, CliError> {
    match command {
        ConfigCommand::Path => path(global),
        ConfigCommand::Show { origin } => show(global, *origin),
        ConfigCommand::Prompts { folder, force } => prompts(folder, *force),
        ConfigCommand::Init { force } => init(global, *force),
        ConfigCommand::Edit => edit(global),
        ConfigCommand::Schema => schema(),
    }
}

fn path(global: &GlobalArgs) -> Result<ExitCode, CliError> {
    let path = settings::user_file(global)?;
    if !path.exists() && !global.quiet {
        printer::say("the file does not exist yet; create it with `reflect config init`");
    }
    printer::print(&format!("{}\n", path.display()))?;
    Ok(ExitCode::Success)
}

fn show(global: &GlobalArgs, with_origin: bool) -> Result<ExitCode, CliError> {
    let config: Config = settings::load(global)?;
    let flags = Settings {
        profile: global.profile.clone(),
        ..Settings::default()
    };
    let resolved = config.resolve(&flags, None)?;
    let mut out = String::new();
    for entry in resolved.entries() {
        let Some((value, origin)) = entry.value else {
            if with_origin {
                let _ = writeln!(out, "# {} is not set", entry.key);
            }
            continue;
        };
        let _ = write!(out, "{} = {}", entry.key, redact(&value.to_string()));
        if with_origin {
            let _ = write!(out, "  # {origin}");
        }
        out.push('\n');
    }
    printer::print(&out)?;
    Ok(ExitCode::Success)
}

fn prompts(folder: &Path, force: bool) -> Result<ExitCode, CliError> {
    let files: Vec<_> = built_in_templates()
        .map(|(name, text)| (folder.join(name), text))
        .collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.exists() && !force) {
        return Err(
            CliError::usage(format!("the file already exists: {}", path.display()))
                .hint("overwrite it with `--force`"),
        );
    }
    let failed = |error: std::io::Error| CliError::failure(error.to_string());
    fs_err::create_dir_all(folder).map_err(failed)?;
    for (path, text) in &files {
        fs_err::write(path, text).map_err(failed)?;
    }
    printer::say(&format!(
        "wrote {} templates to {}; delete those that you do not change",
        files.len(),
        folder.display()
    ));
    Ok(ExitCode::Success)
}

fn init(global: &GlobalArgs, force: bool) -> Result<ExitCode, CliError> {
    let path = settings::user_file(global)?;
    if path.exists() && !force {
        return Err(
            CliError::usage(format!("the file already exists: {}", path.display()))
                .hint("overwrite it with `--force`"),
        );
    }
    write_new(&path)?;
    printer::say(&format!("wrote {}", path.display()));
    Ok(ExitCode::Success)
}

/// Writes the example file with every setting explained, and its schema next to it.
fn write_new(path: &Path) -> Result<(), CliError> {
    let failed = |error: std::io::Error| CliError::failure(error.to_string());
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder).map_err(failed)?;
    }
    let schema = schema_path(path);
    let name = schema.file_name().unwrap_or_default().to_string_lossy();
    let text = format!("#:schema ./{name}\n{}", config::EXAMPLE);
    fs_err::write(path, text).map_err(failed)?;
    // The file may later contain a key.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
    }
    fs_err::write(schema, printer::json(&config::schema())?).map_err(failed)
}

/// The path of a configuration file's schema, which editors use: `config.schema.json` for `config.toml`.
fn schema_path(path: &Path) -> PathBuf {
    path.with_extension("schema.json")
}

fn schema() -> Result<ExitCode, CliError> {
    printer::print(&printer::json(&config::schema())?)?;
    Ok(ExitCode::Success)
}

fn edit(global: &GlobalArgs) -> Result<ExitCode, CliError> {
    let path = settings::user_file(global)?;
    let schema = schema_path(&path);
    if !path.exists() {
        write_new(&path)?;
    } else if schema.exists() {
        // Update the schema, which an earlier version may have written.
        fs_err::write(schema, printer::json(&config::schema())?)
            .map_err(|error| CliError::failure(error.to_string()))?;
    }
    loop {
        editor::edit(&path)?;
        let Err(error) = config::check_user_file(&path, &paths::env) else {
            return Ok(ExitCode::Success);
        };
        let error = CliError::from(error);
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            return Err(error.hint("continue with `reflect config edit`"));
        }
        printer::report(&error);
        printer::say("edit it again? [Y/n]");
        let mut answer = String::new();
        // End of input counts as no.
        let read = std::io::stdin().read_line(&mut answer);
        let no = answer.trim().to_lowercase().starts_with('n');
        if no || !read.is_ok_and(|bytes| bytes > 0) {
            return Err(CliError::usage("the configuration file is still invalid"));
        }
    }
}
