use std::io::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_RANGE, ETAG, HeaderMap, HeaderValue, IF_RANGE, RANGE,
};
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use secrecy::ExposeSecret as _;

use super::fetch::{FetchEvent, FetchOptions};
use super::spec::Origin;

/// The default model hub.
pub const HUB: &str = "https://huggingface.co";

/// The connection timeout.
const CONNECT: Duration = Duration::from_secs(10);

/// How many times to resume a broken download, as long as each attempt made progress.
const RESUMES: u32 = 5;

/// The display name of the source.
pub(super) fn name(origin: &Origin<'_>, options: &FetchOptions) -> String {
    url(origin, options)
}

fn url(origin: &Origin<'_>, options: &FetchOptions) -> String {
    let hub = options.hub.trim_end_matches('/');
    let Origin {
        owner, repo, file, ..
    } = origin;
    format!("{hub}/{owner}/{repo}/resolve/main/{file}")
}

/// Downloads a file to `part`, resuming an earlier attempt.
///
/// # Errors
/// A one-line message.
pub(super) async fn download(
    origin: &Origin<'_>,
    part: &Path,
    options: &FetchOptions,
    progress: &mut (dyn FnMut(FetchEvent) + Send),
) -> Result<(), String> {
    let client = client(options, Policy::default())?;
    let url = url(origin, options);
    let mut tries = 0;
    loop {
        let before = size(part);
        let error = match download_once(&client, &url, part, options, progress).await {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        tries += 1;
        match error {
            DownloadError::Final(reason) => return Err(reason),
            DownloadError::Interrupted(reason) => {
                if tries > RESUMES || size(part) <= before {
                    return Err(reason);
                }
            }
            DownloadError::Stale => {
                if tries > 1 {
                    return Err("the server refuses to resume a broken download".to_owned());
                }
                remove_partial(part);
            }
        }
    }
}

/// Asks the hub for the SHA-256 of a file, in hexadecimal. The hub announces it when it redirects to the storage of large
/// files, in the header `X-Linked-Etag`. `None` if it does not.
pub(super) async fn announced_sha256(
    origin: &Origin<'_>,
    options: &FetchOptions,
) -> Option<String> {
    let client = client(options, Policy::none()).ok()?;
    let mut request = client.head(url(origin, options));
    if let Some(token) = &options.token {
        request = request.bearer_auth(token.expose_secret());
    }
    let response = request.send().await.ok()?;
    let tag = response.headers().get("x-linked-etag")?.to_str().ok()?;
    let hash = tag.trim_matches('"').to_ascii_lowercase();
    let is_sha256 = hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    is_sha256.then_some(hash)
}

fn client(options: &FetchOptions, redirects: Policy) -> Result<Client, String> {
    // A second installation in the same process fails, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client = Client::builder();
    if is_loopback(&options.hub) {
        client = client.no_proxy();
    }
    client
        .redirect(redirects)
        .connect_timeout(CONNECT)
        .read_timeout(options.idle_timeout)
        .user_agent(concat!("reflect/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|e| error_chain(&e))
}

/// Whether an address is on this machine, where no proxy is used.
fn is_loopback(address: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(address) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Deletes a partial file.
pub(super) fn remove_partial(part: &Path) {
    for path in [part.to_owned(), etag_path(part)] {
        // It may not exist; a file that cannot be deleted is overwritten later.
        let _ = fs_err::remove_file(path);
    }
}

enum DownloadError {
    /// A retry would not help.
    Final(String),
    /// The connection was lost; the received part is kept.
    Interrupted(String),
    /// The partial file does not match the file on the hub.
    Stale,
}

async fn download_once(
    client: &Client,
    url: &str,
    part: &Path,
    options: &FetchOptions,
    progress: &mut (dyn FnMut(FetchEvent) + Send),
) -> Result<(), DownloadError> {
    let broken = |e: reqwest::Error| DownloadError::Interrupted(error_chain(&e.without_url()));
    let mut request = client.get(url).header(ACCEPT_ENCODING, "identity");
    if let Some(token) = &options.token {
        // The client drops this header on a redirect to another host.
        let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose_secret()))
            .map_err(|_| {
                DownloadError::Final("the hub token contains invalid characters".into())
            })?;
        value.set_sensitive(true);
        request = request.header(AUTHORIZATION, value);
    }
    let have = size(part);
    let etag = fs_err::read_to_string(etag_path(part)).ok();
    if have > 0 {
        request = request.header(RANGE, format!("bytes={have}-"));
        if let Some(etag) = &etag {
            request = request.header(IF_RANGE, etag);
        }
    }
    let response = request.send().await.map_err(broken)?;
    let (start, total) = match response.status() {
        StatusCode::OK => (0, response.content_length()),
        StatusCode::PARTIAL_CONTENT => match content_range(response.headers()) {
            Some((start, total)) if start == have => (start, total),
            _ => return Err(DownloadError::Stale),
        },
        StatusCode::RANGE_NOT_SATISFIABLE => return Err(DownloadError::Stale),
        status => return Err(status_error(status, options.token.is_some())),
    };
    let io = |e: std::io::Error| DownloadError::Final(format!("cannot write: {e}"));
    let mut file = fs_err::OpenOptions::new()
        .create(true)
        .append(start > 0)
        .write(true)
        .truncate(start == 0)
        .open(part)
        .map_err(io)?;
    // Only a strong tag guarantees identical bytes.
    let tag = response
        .headers()
        .get(ETAG)
        .and_then(|tag| tag.to_str().ok());
    match tag.filter(|tag| tag.starts_with('"')) {
        Some(tag) => fs_err::write(etag_path(part), tag).map_err(io)?,
        None => {
            let _ = fs_err::remove_file(etag_path(part));
        }
    }
    let mut done = start;
    progress(FetchEvent::Progress { done, total });
    let mut body = response.bytes_stream();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(broken)?;
        file.write_all(&piece).map_err(io)?;
        done += piece.len() as u64;
        progress(FetchEvent::Progress { done, total });
    }
    if total.is_some_and(|total| done < total) {
        return Err(DownloadError::Interrupted(
            "the connection closed before the file was complete".into(),
        ));
    }
    file.sync_all().map_err(io)?;
    let _ = fs_err::remove_file(etag_path(part));
    Ok(())
}

/// The first byte and the total size, from `bytes 5-9/10`.
fn content_range(headers: &HeaderMap) -> Option<(u64, Option<u64>)> {
    let range = headers.get(CONTENT_RANGE)?.to_str().ok()?;
    let (range, total) = range.strip_prefix("bytes ")?.split_once('/')?;
    let start = range.split_once('-')?.0.parse().ok()?;
    Some((start, total.parse().ok()))
}

fn status_error(status: StatusCode, with_token: bool) -> DownloadError {
    let why = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if with_token => {
            "no such repository, or your token lacks permission to read it"
        }
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "no such repository, or it requires a token (`HF_TOKEN`)"
        }
        StatusCode::NOT_FOUND => "no such file",
        StatusCode::TOO_MANY_REQUESTS => "too many requests; try again later",
        _ => "the request failed",
    };
    DownloadError::Final(format!("{why} (HTTP {status})"))
}

fn size(path: &Path) -> u64 {
    fs_err::metadata(path).map_or(0, |metadata| metadata.len())
}

fn etag_path(part: &Path) -> PathBuf {
    let mut name = part.as_os_str().to_owned();
    name.push(".etag");
    name.into()
}

/// An error with its causes, on one line.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
