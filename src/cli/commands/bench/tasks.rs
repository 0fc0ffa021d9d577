//! The tasks of a benchmark, from a set or a file.

use std::path::Path;
use std::sync::Arc;

use crate::batch::{Entry, InputFormat, Reader, Shape, Tasks};
use crate::bench::fetch::{self, FetchError};
use crate::bench::sets::{Published, Set};
use crate::cli::args::BenchArgs;
use crate::cli::commands::batch::unreadable;
use crate::cli::error::CliError;
use crate::cli::{exec, paths, printer};
use crate::criteria;
use crate::model::HttpClient;
use crate::types::{ExitCode, Task};

/// The environment variable that names a mirror to download sets from.
const MIRROR: &str = "REFLECT_SETS_MIRROR";

/// Reads the tasks. Fails at an invalid task, because a benchmark of the others would not be comparable.
pub(super) async fn read(
    args: &BenchArgs,
    base: &Task,
    messages: u32,
    offline: bool,
    quiet: bool,
) -> Result<Vec<Entry>, CliError> {
    let path = Path::new(args.tasks());
    let set = Set::named(args.tasks());
    let (text, format) = match set {
        Some(set) => (lines(set, offline, quiet).await?, InputFormat::Jsonl),
        None => (read_file(path)?, InputFormat::of(path)),
    };
    let shape = Arc::new(Shape {
        base: base.clone(),
        messages,
        ..Shape::default()
    });
    let mut reader = Tasks::new(Reader::new(&*text, format), shape);
    let most = args.limit.map_or(usize::MAX, |limit| limit as usize);
    let (mut tasks, mut left_out) = (Vec::new(), 0);
    while tasks.len() < most
        && let Some(entry) = reader
            .next_entry()
            .map_err(|error| unreadable(path, &error))?
    {
        if let Err(problem) = &entry.task {
            let place = format!("{}:{}: {problem}", path.display(), entry.line);
            return Err(CliError::usage(place));
        }
        if set.is_some() && !args.loops.allow_exec && runs_programs(&entry) {
            left_out += 1;
        } else {
            tasks.push(entry);
        }
    }
    if left_out > 0 && !quiet {
        printer::say(&format!(
            "{}: {left_out} tasks run programs and are skipped; add `--allow-exec` to include them",
            args.tasks()
        ));
    }
    if tasks.is_empty() {
        let message = format!("there are no tasks in `{}`", path.display());
        return Err(CliError::usage(message));
    }
    Ok(tasks)
}

fn read_file(path: &Path) -> Result<Vec<u8>, CliError> {
    std::fs::read(path).map_err(|error| {
        let names = Set::ALL
            .map(|set| format!("`{}`", set.name()))
            .join(" and ");
        unreadable(path, &error).hint(format!("the sets are {names}"))
    })
}

fn runs_programs(entry: &Entry) -> bool {
    let item = entry.task.as_ref().ok();
    let held = item.and_then(|item| item.criteria.as_deref());
    let criteria = held.and_then(|text| criteria::parse(text, "criteria").ok());
    criteria.is_some_and(|criteria| exec::runs_programs(&criteria))
}

/// Reads the lines of a set and reports how many prompts it skips.
async fn lines(set: Set, offline: bool, quiet: bool) -> Result<Vec<u8>, CliError> {
    let published = match set.published() {
        Some(published) => published_text(&published, offline, quiet).await?,
        None => String::new(),
    };
    let name = set.name();
    let lines = set.lines(&published).map_err(|problem| {
        let message = format!("the set `{name}` cannot be read: {problem}");
        CliError::new(ExitCode::Provider, message)
    })?;
    if !quiet && !lines.skipped.is_empty() {
        let all: usize = lines.skipped.iter().map(|(_, number)| number).sum();
        let each = lines.skipped.iter();
        let each: Vec<String> = each
            .map(|(why, number)| format!("{why} {number}"))
            .collect();
        printer::say(&format!(
            "{name}: {} prompts; {all} without exact checks are skipped ({})",
            lines.text.lines().count(),
            each.join(", ")
        ));
    }
    Ok(lines.text.into_bytes())
}

/// Returns the text of a published set, downloaded on first use.
async fn published_text(
    published: &Published,
    offline: bool,
    quiet: bool,
) -> Result<String, CliError> {
    let folder = paths::sets()?;
    let failed = |error: FetchError| {
        let file = folder.join(published.file);
        let hint = match &error {
            FetchError::Changed { file } => {
                format!("remove `{}` to download it again", file.display())
            }
            FetchError::Folder { .. } => "set `REFLECT_CACHE_DIR` to another folder".to_owned(),
            FetchError::Offline | FetchError::Network { .. } => format!(
                "run the command once online, or set `{MIRROR}` to a mirror of {}; the file is kept as `{}`",
                published.host,
                file.display()
            ),
        };
        let code = match &error {
            FetchError::Folder { .. } => ExitCode::Failure,
            FetchError::Changed { .. } => ExitCode::Usage,
            FetchError::Offline | FetchError::Network { .. } => ExitCode::Provider,
        };
        CliError::new(code, error.to_string()).hint(hint)
    };
    if let Some(text) = fetch::kept(published, &folder).map_err(failed)? {
        return Ok(text);
    }
    if offline {
        return Err(failed(FetchError::Offline));
    }
    let mirror = paths::env_text(MIRROR);
    if !quiet {
        let (host, licence) = (
            mirror.as_deref().unwrap_or(published.host),
            published.licence,
        );
        printer::say(&format!(
            "fetching {} ({licence}) from {host}, once",
            published.file
        ));
    }
    let client = HttpClient::default();
    let fetching = fetch::fetch(published, mirror.as_deref(), &folder, &client);
    fetching.await.map_err(failed)
}
