//! Prompts for a draft that is written section by section: one conversation, to which each call adds.

use minijinja::context;

use super::{Prompts, render};
use crate::model::{Message, Role};

impl Prompts {
    /// Asks for the outline of a draft, of at most so many sections. `note` as for [`Prompts::draft`].
    pub fn outline(&self, most: usize, note: Option<&str>) -> Vec<Message> {
        self.begin("outline.j2", context! { most, note })
    }

    /// Begins the conversation in which a draft of these sections is written. `note` as for [`Prompts::draft`].
    pub fn in_sections(&self, sections: &[String], note: Option<&str>) -> Vec<Message> {
        let lines: Vec<String> = (1..)
            .zip(sections)
            .map(|(number, section): (usize, _)| format!("{number}. {section}"))
            .collect();
        let outline = lines.join("\n");
        self.begin("sections.j2", context! { outline, note })
    }

    /// Goes on in such a conversation: asks for a section, by its number and the number of all. `heed` says that
    /// the last thing said was a look back; `note` why the last reply was no section.
    pub fn section(
        conversation: Vec<Message>,
        (number, of): (usize, usize),
        section: &str,
        heed: bool,
        note: Option<&str>,
    ) -> Vec<Message> {
        let asked = render("section.j2", context! { number, of, section, heed, note });
        said(conversation, asked)
    }

    /// Goes on in such a conversation: asks what the sections to come must fix or watch for.
    pub fn look_back(conversation: Vec<Message>) -> Vec<Message> {
        said(conversation, render("look_back.j2", context! {}))
    }

    /// Asks for the rest of a reply that was cut off.
    pub fn go_on(conversation: Vec<Message>, reply: &str) -> Vec<Message> {
        let rest = "Your reply was cut off. Continue exactly where it stopped. Write only the rest, without \
                    repeating anything.";
        said(Self::answered(conversation, reply), rest.to_owned())
    }

    /// Goes on in a conversation: takes the model's reply in.
    pub fn answered(mut conversation: Vec<Message>, reply: &str) -> Vec<Message> {
        conversation.push(Message::new(Role::Assistant, reply));
        conversation
    }
}

/// Adds what the user says; to his last message, if nobody has answered it, since turns alternate.
fn said(mut conversation: Vec<Message>, text: String) -> Vec<Message> {
    match conversation.last_mut() {
        Some(last) if last.role == Role::User => {
            last.content.push_str("\n\n");
            last.content.push_str(&text);
        }
        _ => conversation.push(Message::new(Role::User, text)),
    }
    conversation
}
