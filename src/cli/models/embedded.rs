//! The embedded model: downloading its weights, with progress.

use std::path::PathBuf;

use indicatif::{ProgressBar, ProgressStyle};
use secrecy::SecretString;

use crate::cli::error::CliError;
use crate::cli::{paths, printer, terminal};
use crate::types::ExitCode;
use reflect_embedded::weights::{self, FetchEvent, FetchOptions, LocalModel, ModelSpec};

/// Downloads the weights if needed, and returns their path.
pub(in crate::cli) async fn fetch(
    spec: &ModelSpec,
    offline: bool,
    quiet: bool,
) -> Result<PathBuf, CliError> {
    let mut options = FetchOptions::new(paths::models()?);
    options.offline = offline;
    if let Some(hub) = paths::env_text("HF_ENDPOINT") {
        options.hub = hub;
    }
    options.token = paths::env_text("HF_TOKEN").map(SecretString::from);
    let mut shown = Shown { quiet, bar: None };
    let fetched = weights::fetch(spec, &options, &mut |event| shown.show(event)).await;
    shown.clear();
    fetched.map_err(|error| {
        CliError::new(ExitCode::Provider, error.to_string()).hint(
            "choose another model with `--model`, for example of a running Ollama, or a .gguf file on this \
             machine",
        )
    })
}

/// Returns the downloaded embedded models.
pub(in crate::cli) fn local() -> Result<Vec<LocalModel>, CliError> {
    Ok(weights::list_local(&paths::models()?))
}

/// The progress display of a download.
struct Shown {
    quiet: bool,
    bar: Option<ProgressBar>,
}

impl Shown {
    fn show(&mut self, event: FetchEvent) {
        if self.quiet {
            return;
        }
        match event {
            FetchEvent::Asking {
                model,
                licence,
                bytes,
                from,
            } => {
                self.clear();
                let size = bytes.map(|bytes| format!("{} MB", bytes / 1_000_000));
                let about: Vec<String> = [size, licence.map(str::to_owned)]
                    .into_iter()
                    .flatten()
                    .collect();
                let about = if about.is_empty() {
                    String::new()
                } else {
                    format!(" ({})", about.join(", "))
                };
                printer::say(&format!(
                    "downloading {model}{about} from {from} (one time only)"
                ));
            }
            FetchEvent::Progress { done, total } => {
                let bar = self.bar.get_or_insert_with(|| {
                    let bar = ProgressBar::with_draw_target(None, terminal::draw_target(15));
                    bar.set_style(
                        ProgressStyle::with_template(
                            "{bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left",
                        )
                        .unwrap_or_else(|_| ProgressStyle::default_bar()),
                    );
                    bar
                });
                if let Some(total) = total {
                    bar.set_length(total);
                }
                bar.set_position(done);
            }
            FetchEvent::SourceFailed(failure) => {
                self.clear();
                printer::say(&format!("{}: {}", failure.from, failure.reason));
            }
            FetchEvent::Waiting => {
                self.clear();
                printer::say("another process is downloading it; waiting");
            }
            FetchEvent::Verifying => self.clear(),
            FetchEvent::Done { path } => {
                self.clear();
                printer::say(&format!("saved in {}", path.display()));
            }
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
