//! The menu of interactive runs: its actions, keys and layout.

use console::{Key, measure_text_width, style};

/// What the user can do after a version was evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Accept the version and end the run.
    Accept,
    /// Revise again.
    Continue,
    /// Revise again with an instruction.
    Guide,
    /// Edit the version by hand.
    Edit,
    /// Show the whole version.
    Show,
    /// Show the changes against its base version and the best one.
    Diff,
    /// Show the critique.
    Report,
    /// Pick another version.
    Pick,
    /// End the run without accepting a version.
    Quit,
    /// Show the keys.
    Help,
}

/// Each action: its key, the rest of its label, its description.
const ACTIONS: [(Action, char, &str, &str); 10] = [
    (Action::Accept, 'a', "ccept", "accept this draft and stop"),
    (
        Action::Continue,
        'c',
        "ontinue",
        "revise the best draft again",
    ),
    (
        Action::Guide,
        'g',
        "uide",
        "revise with an instruction of yours",
    ),
    (
        Action::Edit,
        'e',
        "dit",
        "edit the draft in your editor; it is evaluated like any other",
    ),
    (Action::Show, 's', "how", "show the whole draft"),
    (
        Action::Diff,
        'd',
        "iff",
        "show the changes against its base and the best draft",
    ),
    (
        Action::Report,
        'r',
        "eport",
        "show scores and issues by criterion",
    ),
    (
        Action::Pick,
        'p',
        "ick",
        "pick another draft to accept or edit",
    ),
    (
        Action::Quit,
        'q',
        "uit",
        "stop; print the best draft so far",
    ),
    (Action::Help, '?', "", "show the keys"),
];

/// The facts that the menu depends on.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent fact about the run"
)]
pub(super) struct Situation {
    /// Whether the version meets the criteria.
    pub(super) met: bool,
    /// Whether another revision is possible, i.e. no limit is reached.
    pub(super) more: bool,
    /// Whether there is another version to compare with.
    pub(super) comparable: bool,
    /// Whether there is another version to pick.
    pub(super) several: bool,
}

/// The menu for a situation.
#[derive(Debug)]
pub(super) struct Menu {
    situation: Situation,
    /// What the question is about, in a few words.
    title: String,
    /// Lines below the title.
    issues: Vec<String>,
}

impl Menu {
    pub(super) fn new(situation: Situation, title: String, issues: Vec<String>) -> Self {
        Self {
            situation,
            title,
            issues,
        }
    }

    fn offers(&self, action: Action) -> bool {
        let Situation {
            more,
            comparable,
            several,
            ..
        } = self.situation;
        match action {
            Action::Continue | Action::Guide => more,
            Action::Diff => comparable,
            Action::Pick => several,
            _ => true,
        }
    }

    /// Returns the action of Enter: accept if the criteria are met, else continue, else quit.
    pub(super) fn default(&self) -> Action {
        match self.situation {
            Situation { met: true, .. } => Action::Accept,
            Situation { more: true, .. } => Action::Continue,
            _ => Action::Quit,
        }
    }

    /// Returns the action of a key, in either case; `None` if it is not offered.
    pub(super) fn action(&self, key: &Key) -> Option<Action> {
        let pressed = match key {
            Key::Enter => return Some(self.default()),
            // Ctrl-D, the end of input.
            Key::Char('\u{4}') => return Some(Action::Quit),
            Key::Char(pressed) => pressed.to_ascii_lowercase(),
            _ => return None,
        };
        ACTIONS
            .iter()
            .find(|(action, key, ..)| *key == pressed && self.offers(*action))
            .map(|(action, ..)| *action)
    }

    /// Renders the menu in rows of at most `width` columns, the first one blank, with colours if stderr
    /// supports them.
    pub(super) fn rows(&self, width: usize) -> Vec<String> {
        let title = console::truncate_str(&self.title, width, "…");
        let title = style(title).for_stderr().bold().to_string();
        let mut rows = vec![String::new(), title];
        let issues = self.issues.iter();
        rows.extend(issues.map(|issue| console::truncate_str(issue, width, "…").into_owned()));
        let offered = ACTIONS.iter().filter(|(action, ..)| self.offers(*action));
        let items = offered.map(|(action, key, rest, _)| {
            let key = style(key).for_stderr().bold();
            let item = format!("[{key}]{rest}");
            if *action == self.default() {
                format!("{item} (Enter)")
            } else {
                item
            }
        });
        let mut row = String::new();
        for item in items {
            let gap = if row.is_empty() { "" } else { "  " };
            let wanted = measure_text_width(&row) + gap.len() + measure_text_width(&item);
            if wanted > width && !row.is_empty() {
                rows.push(std::mem::replace(&mut row, item));
            } else {
                row = row + gap + &item;
            }
        }
        rows.push(row);
        rows
    }

    /// Describes the keys, one line each.
    pub(super) fn help(&self) -> String {
        let offered = ACTIONS.iter().filter(|(action, ..)| self.offers(*action));
        let lines: Vec<String> = offered
            .map(|(_, key, _, what)| format!("  {key}  {what}"))
            .collect();
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Situation = Situation {
        met: true,
        more: true,
        comparable: true,
        several: true,
    };

    fn menu(situation: Situation) -> Menu {
        Menu::new(situation, "draft 2 · score 0.86".to_owned(), Vec::new())
    }

    fn plain(menu: &Menu, width: usize) -> String {
        let rows: Vec<String> = menu
            .rows(width)
            .iter()
            .map(|row| console::strip_ansi_codes(row).into_owned())
            .collect();
        rows.join("\n")
    }

    #[test]
    fn the_menu_fits_the_terminal() {
        assert_eq!(
            plain(&menu(ALL), 79),
            "\ndraft 2 · score 0.86\n\
             [a]ccept (Enter)  [c]ontinue  [g]uide  [e]dit  [s]how  [d]iff  [r]eport  [p]ick\n\
             [q]uit  [?]"
        );
        for width in 16..100 {
            for row in plain(&menu(ALL), width).lines() {
                assert!(measure_text_width(row) <= width, "{width}: {row}");
            }
        }
        // Narrower than a single item: one item per row.
        assert_eq!(plain(&menu(ALL), 1).lines().count(), 12);
    }

    #[test]
    fn only_possible_actions_are_offered() {
        let nothing = Situation {
            met: false,
            more: false,
            comparable: false,
            several: false,
        };
        let last = menu(nothing);
        for key in ['c', 'g', 'd', 'p', 'x', '\u{1b}'] {
            assert_eq!(last.action(&Key::Char(key)), None, "{key}");
        }
        for (_, key, ..) in ACTIONS {
            assert!(menu(ALL).action(&Key::Char(key)).is_some(), "{key}");
            let upper = key.to_ascii_uppercase();
            assert!(menu(ALL).action(&Key::Char(upper)).is_some(), "{key}");
        }
        assert_eq!(last.action(&Key::Char('\u{4}')), Some(Action::Quit));
        assert_eq!(last.action(&Key::ArrowUp), None);
        assert!(!last.help().contains("revision"), "{}", last.help());
        assert_eq!(menu(ALL).help().lines().count(), ACTIONS.len());
    }

    #[test]
    fn enter_accepts_if_the_criteria_are_met_and_continues_otherwise() {
        for (met, more, expected) in [
            (true, true, Action::Accept),
            (true, false, Action::Accept),
            (false, true, Action::Continue),
            (false, false, Action::Quit),
        ] {
            let menu = menu(Situation { met, more, ..ALL });
            assert_eq!(menu.action(&Key::Enter), Some(expected));
        }
    }
}
