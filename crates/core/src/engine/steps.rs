//! A draft that is written section by section: the next request, given what exists. The conversation only grows, so
//! that each call finds the earlier ones in the server's prompt cache.

use super::outline::Section;
use crate::model::Message;
use crate::prompt::Prompts;

/// What to request next.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Todo {
    /// A section, by its number, from 1.
    Write {
        number: usize,
        title: String,
        messages: Vec<Message>,
    },
    /// What the sections to come must fix or watch.
    LookBack(Vec<Message>),
    /// Nothing: all sections are there.
    Done,
}

/// A draft as far as it is written.
#[derive(Debug)]
pub(super) struct Steps {
    sections: Vec<Section>,
    /// After so many sections there is a look back; 0 for never.
    interval: u32,
    /// What was said so far, up to the last section that is there.
    conversation: Vec<Message>,
    written: Vec<String>,
    /// Whether there was a look back at the last section.
    looked_back: bool,
    /// Whether that look back came to something.
    heed: bool,
    /// Why the last reply was no section.
    note: Option<String>,
}

impl Steps {
    /// A draft of these sections, of which none is written. `note` is what the writer is told besides.
    pub(super) fn new(
        prompts: &Prompts,
        sections: Vec<Section>,
        interval: u32,
        note: Option<&str>,
    ) -> Self {
        let lines: Vec<String> = sections.iter().map(Section::describe).collect();
        Self {
            conversation: prompts.in_sections(&lines, note),
            sections,
            interval,
            written: Vec::new(),
            looked_back: false,
            heed: false,
            note: None,
        }
    }

    /// How many sections it is to have.
    pub(super) fn count(&self) -> usize {
        self.sections.len()
    }

    /// How many sections are written.
    pub(super) fn written(&self) -> usize {
        self.written.len()
    }

    /// What is to be asked next.
    pub(super) fn next(&self) -> Todo {
        let Some(section) = self.sections.get(self.written.len()) else {
            return Todo::Done;
        };
        if !self.looked_back && is_due(self.written.len(), self.sections.len(), self.interval) {
            return Todo::LookBack(Prompts::look_back(self.conversation.clone()));
        }
        let number = self.written.len() + 1;
        let messages = Prompts::section(
            self.conversation.clone(),
            (number, self.sections.len()),
            &section.describe(),
            self.heed,
            self.note.as_deref(),
        );
        Todo::Write {
            number,
            title: section.title.clone(),
            messages,
        }
    }

    /// Takes the section in that was asked for with these messages.
    pub(super) fn take(&mut self, asked: Vec<Message>, text: String) {
        self.conversation = Prompts::answered(asked, &text);
        self.written.push(text);
        (self.looked_back, self.heed, self.note) = (false, false, None);
    }

    /// The section is asked for again, with why the last reply was none.
    pub(super) fn again(&mut self, note: String) {
        self.note = Some(note);
    }

    /// Takes in what the look back came to that was asked for with these messages. Nothing leaves no trace.
    pub(super) fn looked_back(&mut self, asked: Vec<Message>, said: Option<&str>) {
        self.looked_back = true;
        if let Some(said) = said {
            self.heed = true;
            self.conversation = Prompts::answered(asked, said);
        }
    }

    /// The text so far.
    pub(super) fn text(&self) -> String {
        self.written.join("\n\n")
    }
}

/// `step_interval`: after every `interval`th section, but the last one: then the whole is judged.
fn is_due(written: usize, all: usize, interval: u32) -> bool {
    written > 0 && written < all && interval > 0 && written.is_multiple_of(interval as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Role;
    use crate::types::Task;

    fn steps(count: usize, interval: u32) -> Steps {
        let criteria = crate::criteria::resolve("writing", &[], &|_: &std::path::Path| {
            crate::source::FileAccess::Folder
        })
        .unwrap();
        let prompts = Prompts::new(&Task::new("Tell of the storm."), &criteria);
        let section = |n| Section {
            title: format!("Night {n}"),
            about: "it blows".to_owned(),
        };
        Steps::new(&prompts, (1..=count).map(section).collect(), interval, None)
    }

    /// What is asked, `w` for a section and `r` for a look back.
    fn order(count: usize, interval: u32) -> String {
        let mut steps = steps(count, interval);
        let mut order = String::new();
        loop {
            match steps.next() {
                Todo::Write { messages, .. } => {
                    order.push('w');
                    steps.take(messages, format!("Text {}.", steps.written() + 1));
                }
                Todo::LookBack(messages) => {
                    order.push('r');
                    steps.looked_back(messages, None);
                }
                Todo::Done => return order,
            }
        }
    }

    #[test]
    fn there_is_a_look_back_after_every_so_many_sections_but_the_last() {
        assert_eq!(order(5, 2), "wwrwwrw");
        assert_eq!(order(4, 2), "wwrww");
        assert_eq!(order(3, 1), "wrwrw");
        assert_eq!(order(3, 0), "www");
        assert_eq!(order(2, 9), "ww");
    }

    #[test]
    fn every_call_begins_with_the_one_before() {
        let mut steps = steps(4, 2);
        let mut before: Vec<Message> = Vec::new();
        loop {
            let asked = match steps.next() {
                Todo::Write { messages, .. } => {
                    steps.take(messages.clone(), "The storm.".to_owned());
                    messages
                }
                Todo::LookBack(messages) => {
                    steps.looked_back(messages.clone(), Some("Keep the roof."));
                    messages
                }
                Todo::Done => break,
            };
            assert_eq!(asked[..before.len()], before, "append only");
            assert_eq!(asked.last().unwrap().role, Role::User);
            let turns = asked.iter().map(|message| message.role);
            let expected = [Role::User, Role::Assistant].into_iter().cycle();
            assert!(turns.zip(expected).all(|(role, expected)| role == expected));
            before = asked;
        }
        assert_eq!(
            before
                .iter()
                .filter(|it| it.content == "Keep the roof.")
                .count(),
            1
        );
        assert_eq!(steps.text(), ["The storm."; 4].join("\n\n"));
    }

    #[test]
    fn what_was_said_is_heeded_by_the_next_section_and_nothing_leaves_no_trace() {
        let asked = |said: Option<&str>| {
            let mut steps = steps(2, 1);
            let Todo::Write { messages, .. } = steps.next() else {
                panic!("the first section")
            };
            steps.take(messages, "The storm.".to_owned());
            let Todo::LookBack(messages) = steps.next() else {
                panic!("a look back")
            };
            steps.looked_back(messages, said);
            match steps.next() {
                Todo::Write { messages, .. } => messages,
                other => panic!("{other:?}"),
            }
        };
        let (told, untold) = (asked(Some("Keep the roof.")), asked(None));
        assert_eq!((told.len(), untold.len()), (5, 3));
        assert!(
            told[4].content.contains("Use what you just noted"),
            "{}",
            told[4].content
        );
        assert!(!untold[2].content.contains("just noted"));
    }

    #[test]
    fn a_section_that_failed_is_asked_for_again_with_why() {
        let mut steps = steps(2, 0);
        steps.again("The last reply was empty.".to_owned());
        let Todo::Write {
            number, messages, ..
        } = steps.next()
        else {
            panic!("the same section")
        };
        assert_eq!(number, 1);
        let asked = messages.last().unwrap();
        assert!(asked.content.contains("The last reply was empty."));
        steps.take(messages, "The storm.".to_owned());
        let Todo::Write { messages, .. } = steps.next() else {
            panic!("the second section")
        };
        assert!(!messages.last().unwrap().content.contains("was empty"));
    }
}
