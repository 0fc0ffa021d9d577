//! Prompts for a draft that is written section by section, as one conversation to which each call
//! appends.

use minijinja::context;

use super::{Prompts, render};
use crate::model::{Message, Role};

impl Prompts {
    /// Requests the outline of a draft with at most `most` sections. `note` as for
    /// [`Prompts::draft`].
    pub fn outline(&self, most: usize, note: Option<&str>) -> Vec<Message> {
        self.begin("outline.j2", context! { most, note })
    }

    /// Begins the conversation in which a draft with these sections is written. `note` as for
    /// [`Prompts::draft`].
    pub fn in_sections(&self, sections: &[String], note: Option<&str>) -> Vec<Message> {
        let lines: Vec<String> = (1..)
            .zip(sections)
            .map(|(number, section): (usize, _)| format!("{number}. {section}"))
            .collect();
        let outline = lines.join("\n");
        self.begin("sections.j2", context! { outline, note })
    }

    /// Requests the next section, by its number and the total. `heed` says that the previous turn
    /// was a reflection; `note` is the reason why the last reply was rejected.
    pub fn section(
        conversation: Vec<Message>,
        (number, of): (usize, usize),
        section: &str,
        heed: bool,
        note: Option<&str>,
    ) -> Vec<Message> {
        let asked = render("section.j2", context! { number, of, section, heed, note });
        with_user_message(conversation, asked)
    }

    /// Asks what the remaining sections must fix or watch for.
    pub fn look_back(conversation: Vec<Message>) -> Vec<Message> {
        with_user_message(conversation, render("look_back.j2", context! {}))
    }

    /// Requests the rest of a truncated reply.
    pub fn go_on(conversation: Vec<Message>, reply: &str) -> Vec<Message> {
        let rest = "Your reply was cut off. Continue exactly where it stopped. Write only the rest, without \
                    repeating anything.";
        with_user_message(Self::answered(conversation, reply), rest.to_owned())
    }

    /// Appends the model's reply to a conversation.
    pub fn answered(mut conversation: Vec<Message>, reply: &str) -> Vec<Message> {
        conversation.push(Message::new(Role::Assistant, reply));
        conversation
    }
}

/// Appends a user message, or extends the last one if it has no reply, because turns must
/// alternate.
fn with_user_message(mut conversation: Vec<Message>, text: String) -> Vec<Message> {
    match conversation.last_mut() {
        Some(last) if last.role == Role::User => {
            last.content.push_str("\n\n");
            last.content.push_str(&text);
        }
        _ => conversation.push(Message::new(Role::User, text)),
    }
    conversation
}
