//! Interactive runs: after each evaluation, the user decides with one key.

mod keyboard;
mod line;
mod menu;
mod view;

use std::io;

use console::{Key, Term};
use dialoguer::Select;
use tokio_util::sync::CancellationToken;

use self::keyboard::{Held, Keyboard};
use self::line::{Line, Typed};
use self::menu::{Action, Menu, Situation};
use super::args::AskingArgs;
use super::error::CliError;
use super::{diff, editor, printer, terminal};
use crate::engine::{Decider, Moment};
use crate::types::{ConvergenceReason, LoopSettings, ModelId, UserDecision, Version};

/// How often the terminal size is checked while waiting for a key.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);

/// Providers whose models run on the user's own hardware, where a wasted call costs only power.
const OWN: [&str; 2] = ["ollama", "embedded"];

/// Screen rows reserved for the messages above and the menu when a draft is first shown.
const OTHER_ROWS: usize = 10 + view::ISSUES;

impl AskingArgs {
    /// Whether to prefetch the next revision while the user decides. `in_cloud`: the writer's server forwards
    /// prompts to another host.
    pub(super) fn prefetch(&self, writer: &ModelId, in_cloud: bool) -> bool {
        let own = !in_cloud && OWN.contains(&writer.provider.as_str());
        self.prefetch.unwrap_or(own)
    }
}

/// A user who decides with keys at a terminal.
pub(super) struct Person {
    keyboard: Keyboard,
    /// Ends the run.
    cancel: CancellationToken,
    /// The maximum number of versions of the run.
    max_iterations: u32,
    /// The last version shown.
    shown: Option<u32>,
}

/// Why the user gave no answer.
#[derive(Debug)]
enum NoAnswer {
    /// Ctrl-C.
    Interrupted,
    /// The terminal cannot be read, most likely because it was closed.
    Gone(io::Error),
}

impl From<io::Error> for NoAnswer {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::Interrupted => Self::Interrupted,
            _ => Self::Gone(error),
        }
    }
}

impl Person {
    /// Returns a decider at the terminal of this process if `--interactive` is set. `cancel` ends the run.
    ///
    /// # Errors
    /// If there is no terminal.
    pub(super) fn if_wanted(
        asking: &AskingArgs,
        cancel: &CancellationToken,
        settings: &LoopSettings,
    ) -> Result<Option<Self>, CliError> {
        if asking.yes || !asking.interactive {
            return Ok(None);
        }
        Ok(Some(Self {
            keyboard: Keyboard::open()?,
            cancel: cancel.clone(),
            max_iterations: settings.max_iterations(),
            shown: None,
        }))
    }

    /// Asks until the user decides.
    async fn ask(&mut self, moment: Moment<'_>) -> Result<UserDecision, NoAnswer> {
        let mut at = moment.incumbent;
        loop {
            let Some(version) = moment.record.version(at) else {
                return Ok(UserDecision::Auto);
            };
            self.show_new(version);
            let menu = self.menu(moment, version);
            let held = self.keyboard.hold()?;
            match choose(&held, &menu).await? {
                Action::Accept => return Ok(UserDecision::Accept(at)),
                Action::Continue => return Ok(UserDecision::Continue),
                Action::Quit => return Ok(UserDecision::Stop),
                Action::Guide => {
                    if let Some(wish) = ask_line(&held, "instruction: ").await? {
                        return Ok(UserDecision::Guide(wish));
                    }
                }
                Action::Edit => {
                    // The editor needs the original terminal mode.
                    drop(held);
                    match editor::edit_text(&version.output).await {
                        Ok(Some(text)) => return Ok(UserDecision::Edit { of: at, text }),
                        Ok(None) => printer::say("the draft is unchanged"),
                        Err(error) => printer::say(&format!("{error}")),
                    }
                }
                Action::Show => {
                    printer::say(&view::draft(&version.output, width(), usize::MAX));
                }
                Action::Diff => {
                    for other in view::others(moment.record, version, moment.incumbent) {
                        printer::draw(&diff::of_versions(other, version));
                    }
                }
                Action::Report => printer::say(&view::critique(moment.record, version)),
                Action::Pick => {
                    if let Some(picked) = pick(moment, at).await? {
                        at = picked;
                    }
                }
                Action::Help => printer::say(&menu.help()),
            }
        }
    }

    fn menu(&self, moment: Moment<'_>, version: &Version) -> Menu {
        let Moment {
            record, incumbent, ..
        } = moment;
        let spent = matches!(
            moment.stops,
            Some(
                ConvergenceReason::TokenBudget
                    | ConvergenceReason::TimeLimit
                    | ConvergenceReason::CostLimit
            )
        );
        let situation = Situation {
            met: version
                .evaluation
                .as_ref()
                .is_some_and(|it| it.satisfactory),
            more: !spent && moment.iteration < self.max_iterations,
            comparable: !view::others(record, version, incumbent).is_empty(),
            several: judged(moment).nth(1).is_some(),
        };
        let rejected = moment.version().is_none().then_some(moment.iteration);
        Menu::new(
            situation,
            view::title(record, version, incumbent, rejected),
            view::issues(version),
        )
    }

    /// Shows a version unless it was shown last, cut to leave room for the menu.
    fn show_new(&mut self, version: &Version) {
        if self.shown.replace(version.iteration) != Some(version.iteration) {
            let rows = usize::from(Term::stderr().size().0).saturating_sub(OTHER_ROWS);
            printer::say(&view::draft(&version.output, width(), rows.max(4)));
        }
    }
}

#[async_trait::async_trait]
impl Decider for Person {
    async fn decide(&mut self, moment: Moment<'_>) -> UserDecision {
        match self.ask(moment).await {
            Ok(decision) => decision,
            Err(NoAnswer::Interrupted) => {
                // Same as the signal: end the run without a decision.
                self.cancel.cancel();
                std::future::pending().await
            }
            Err(NoAnswer::Gone(error)) => {
                printer::say(&format!("cannot read from the terminal: {error}"));
                UserDecision::Stop
            }
        }
    }
}

/// Returns the versions that can be picked.
fn judged(moment: Moment<'_>) -> impl Iterator<Item = &Version> {
    let versions = moment.record.versions.iter();
    versions.filter(|version| version.rank().is_some())
}

/// Returns the usable width. The last column stays free: some terminals wrap a row that fills it.
fn width() -> usize {
    usize::from(Term::stderr().size().1).saturating_sub(1)
}

/// Draws the menu, waits for a key that it offers, and erases the menu.
async fn choose(held: &Held<'_>, menu: &Menu) -> Result<Action, NoAnswer> {
    let mut drawn = Drawn::of(&menu.rows(width()));
    loop {
        let mut key = held.key();
        let key = loop {
            tokio::select! {
                key = &mut key => break key.map_err(io::Error::other)??,
                () = tokio::time::sleep(LOOK) => drawn.refresh(|| menu.rows(width())),
            }
        };
        if key == Key::CtrlC {
            drawn.leave();
            return Err(NoAnswer::Interrupted);
        }
        if let Some(action) = menu.action(&key) {
            drawn.erase();
            return Ok(action);
        }
    }
}

/// Asks for a line of text; `None` if it is blank or cancelled with Escape.
async fn ask_line(held: &Held<'_>, prompt: &str) -> Result<Option<String>, NoAnswer> {
    let mut line = Line::default();
    let rows = |line: &Line| {
        let space = width().saturating_sub(prompt.len());
        vec![format!("{prompt}{}", line.shown(space))]
    };
    let mut drawn = Drawn::of(&rows(&line));
    loop {
        let key = held.key().await.map_err(io::Error::other)??;
        if key == Key::CtrlC {
            drawn.leave();
            return Err(NoAnswer::Interrupted);
        }
        match line.press(&key) {
            Typed::More => drawn.redraw(&rows(&line)),
            Typed::Done => {
                drawn.erase();
                let text = line.into_text();
                return Ok((!text.trim().is_empty()).then_some(text));
            }
            Typed::Cancelled => {
                drawn.erase();
                return Ok(None);
            }
        }
    }
}

/// Lets the user pick a version from a list; `None` if cancelled.
async fn pick(moment: Moment<'_>, at: u32) -> Result<Option<u32>, NoAnswer> {
    let versions: Vec<&Version> = judged(moment).collect();
    let place = versions.iter().position(|it| it.iteration == at);
    // The list indents items by two characters.
    let space = width().saturating_sub(2);
    let items: Vec<String> = versions
        .iter()
        .map(|version| view::item(version, moment.incumbent, space))
        .collect();
    let picked = tokio::task::spawn_blocking(move || {
        Select::new()
            .items(items)
            .default(place.unwrap_or(0))
            .report(false)
            .interact_opt()
    });
    match picked.await.map_err(io::Error::other)? {
        Ok(place) => Ok(place
            .and_then(|place| versions.get(place))
            .map(|version| version.iteration)),
        // `dialoguer` has raised the signal itself, which ends the run. A second one would end the process.
        Err(dialoguer::Error::IO(error)) if error.kind() == io::ErrorKind::Interrupted => {
            std::future::pending().await
        }
        Err(dialoguer::Error::IO(error)) => Err(error.into()),
    }
}

/// Rows drawn at the bottom of the screen, with the cursor after the last one.
struct Drawn {
    rows: usize,
    /// The terminal width when they were drawn.
    width: usize,
}

impl Drawn {
    fn of(rows: &[String]) -> Self {
        let drawn = Self {
            rows: rows.len(),
            width: width(),
        };
        printer::draw(&rows.join("\r\n"));
        drawn
    }

    /// Replaces the rows.
    fn redraw(&mut self, rows: &[String]) {
        self.erase();
        *self = Self::of(rows);
    }

    /// Redraws the rows if the terminal width has changed.
    fn refresh(&mut self, rows: impl FnOnce() -> Vec<String>) {
        if width() != self.width {
            self.redraw(&rows());
        }
    }

    /// Erases the rows. Keeps them if the terminal cannot erase or was resized, because their position is
    /// then unknown.
    fn erase(&self) {
        let screen = Term::stderr();
        if terminal::is_dumb() || width() != self.width {
            self.leave();
            return;
        }
        let _ = screen.clear_line();
        for _ in 1..self.rows {
            let _ = screen.move_cursor_up(1);
            let _ = screen.clear_line();
        }
    }

    /// Keeps the rows and moves to the next line.
    #[expect(clippy::unused_self, reason = "only drawn rows can be kept")]
    fn leave(&self) {
        printer::draw("\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_models_on_the_users_own_hardware_prefetch_by_default() {
        let of = |model: &str, in_cloud, prefetch| {
            let args = AskingArgs {
                interactive: true,
                yes: false,
                prefetch,
            };
            let (provider, model) = model.split_once(':').unwrap();
            let id = ModelId {
                provider: provider.to_owned(),
                model: model.to_owned(),
            };
            args.prefetch(&id, in_cloud)
        };
        assert!(of("ollama:qwen3", false, None));
        assert!(of("embedded:smollm2", false, None));
        // Ollama forwards the prompt to its cloud.
        assert!(!of("ollama:gpt-oss:120b-cloud", true, None));
        assert!(!of("openai:gpt-5-mini", false, None));
        assert!(of("openai:gpt-5-mini", false, Some(true)));
        assert!(!of("ollama:qwen3", false, Some(false)));
    }
}
