//! Published sets: downloaded once, stored with their checksum, and never changed.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use reqwest::Url;
use sha2::{Digest as _, Sha256};

use super::sets::Published;
use crate::model::HttpClient;
use crate::source::hex;

/// The maximum size of a set, in bytes. The largest takes less than one percent of it.
const LIMIT: usize = 64 << 20;

/// Why a set is not available.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// It was never downloaded, and `--offline` is set.
    #[error("the set is not stored on this machine, and `--offline` is set")]
    Offline,
    /// The download failed.
    #[error("cannot fetch {url}: {reason}")]
    Network {
        /// The URL.
        url: String,
        /// The error.
        reason: String,
    },
    /// The stored file differs from the download.
    #[error("`{}` was changed after it was fetched", .file.display())]
    Changed {
        /// The file.
        file: PathBuf,
    },
    /// It cannot be stored.
    #[error("cannot write to `{}`: {error}", .folder.display())]
    Folder {
        /// The folder for sets.
        folder: PathBuf,
        /// The error.
        error: std::io::Error,
    },
}

/// Returns the text of a downloaded set, or `None` if it was not downloaded.
///
/// # Errors
/// If the file was changed after the download.
pub fn kept(published: &Published, folder: &Path) -> Result<Option<String>, FetchError> {
    let (file, sum) = files(published, folder);
    let (Ok(text), Ok(sum)) = (fs_err::read_to_string(&file), fs_err::read_to_string(sum)) else {
        return Ok(None);
    };
    if checksum(text.as_bytes()) == sum.trim() {
        Ok(Some(text))
    } else {
        Err(FetchError::Changed { file })
    }
}

/// Downloads a set, stores it and returns its text. `host` replaces the publisher's host, for a
/// mirror.
///
/// # Errors
/// If it cannot be downloaded or stored.
pub async fn fetch(
    published: &Published,
    host: Option<&str>,
    folder: &Path,
    client: &HttpClient,
) -> Result<String, FetchError> {
    let host = host.unwrap_or(published.host).trim_end_matches('/');
    let url = format!("{host}{}", published.path);
    let text = get(&url, client).await;
    let text = text.map_err(|reason| FetchError::Network { url, reason })?;
    keep(published, folder, &text).map_err(|error| FetchError::Folder {
        folder: folder.to_owned(),
        error,
    })?;
    Ok(text)
}

async fn get(url: &str, client: &HttpClient) -> Result<String, String> {
    let url = Url::parse(url).map_err(|error| error.to_string())?;
    let pool = client.get(&url).map_err(|error| error.to_string())?;
    let said = |error: reqwest::Error| {
        let error = error.without_url();
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"))
    };
    let mut response = pool.send(pool.get(&url)).await.map_err(said)?;
    if !response.status().is_success() {
        return Err(format!("HTTP {}", response.status()));
    }
    let mut bytes = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(said)? {
        bytes.extend(piece);
        if bytes.len() > LIMIT {
            return Err(format!("it is larger than {} MiB", LIMIT >> 20));
        }
    }
    String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())
}

fn keep(published: &Published, folder: &Path, text: &str) -> std::io::Result<()> {
    fs_err::create_dir_all(folder)?;
    let (file, sum) = files(published, folder);
    for (path, text) in [(sum, checksum(text.as_bytes())), (file, text.to_owned())] {
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(text.as_bytes())?;
        temporary.persist(path).map_err(|error| error.error)?;
    }
    Ok(())
}

fn files(published: &Published, folder: &Path) -> (PathBuf, PathBuf) {
    let file = folder.join(published.file);
    let sum = folder.join(format!("{}.sha256", published.file));
    (file, sum)
}

fn checksum(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
