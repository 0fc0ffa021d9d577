use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, context};

use super::vocabulary::Vocabulary;
use reflect_base::template;
use reflect_model::{Message, Role, Think};

/// The limit on template instructions for one prompt; a chat of a thousand messages takes some tens of thousands.
const FUEL: u64 = 10_000_000;

/// A Unicode noncharacter; runs of it mark positions in a prompt.
const MARK: char = '\u{FDD0}';

/// A model's chat template.
pub(super) struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

/// A rendered conversation.
pub(super) struct Prompt {
    /// The text, including control tokens.
    pub(super) text: String,
    /// The marker that is inserted into message text that looks like a control token. It is removed after the real
    /// control tokens are found.
    pub(super) hidden: String,
}

impl ChatTemplate {
    /// Parses a template from the `tokenizer.chat_template` of a model file.
    ///
    /// # Errors
    /// A message, if the template is invalid.
    pub(super) fn new(source: &str) -> Result<Self, String> {
        let mut environment = Environment::new();
        // The settings of the transformers library, for which these templates are written.
        environment.set_syntax(template::trimmed());
        environment.set_fuel(Some(FUEL));
        environment
            .set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function(
            "raise_exception",
            |message: String| -> Result<Value, Error> {
                Err(Error::new(ErrorKind::InvalidOperation, message))
            },
        );
        environment.add_function("strftime_now", |format: String| -> Result<String, Error> {
            jiff::fmt::strtime::format(&format, &jiff::Zoned::now())
                .map_err(|e| Error::new(ErrorKind::InvalidOperation, e.to_string()))
        });
        environment
            .add_template_owned("chat", source.to_owned())
            .map_err(|e| describe(&e))?;
        Ok(Self {
            environment,
            source: source.to_owned(),
        })
    }

    /// Renders a conversation up to the start of the reply. Text in a message that looks like a control token stays
    /// text.
    pub(super) fn render(
        &self,
        messages: &[Message],
        think: Think,
        vocabulary: &Vocabulary,
    ) -> Result<Prompt, String> {
        let hidden = self.unused_mark(messages);
        let shielded: Vec<Message> = messages
            .iter()
            .map(|message| {
                Message::new(
                    message.role,
                    vocabulary.escape_control_tokens(&message.content, &hidden),
                )
            })
            .collect();
        let text = self
            .render_messages(&shielded, think, vocabulary)
            .or_else(|error| {
                // Some templates have no system role; then prepend the system message to the user's message.
                let merged = without_system(&shielded).ok_or(error)?;
                self.render_messages(&merged, think, vocabulary)
            })
            .map_err(|e| describe(&e))?;
        Ok(Prompt { text, hidden })
    }

    fn render_messages(
        &self,
        messages: &[Message],
        think: Think,
        vocabulary: &Vocabulary,
    ) -> Result<String, Error> {
        let template = self.environment.get_template("chat")?;
        let shared = context! {
            messages => messages.iter().map(value).collect::<Vec<_>>(),
            add_generation_prompt => true,
            bos_token => vocabulary.bos_name(),
            eos_token => vocabulary.name(vocabulary.eos()),
        };
        match think {
            Think::Auto => template.render(shared),
            Think::Off => template.render(context! { enable_thinking => false, ..shared }),
            Think::On | Think::Low | Think::Medium | Think::High => {
                template.render(context! { enable_thinking => true, ..shared })
            }
        }
    }

    /// A run of markers that occurs neither in the messages nor in the template.
    fn unused_mark(&self, messages: &[Message]) -> String {
        let mut mark = String::from(MARK);
        while self.source.contains(&mark) || messages.iter().any(|m| m.content.contains(&mark)) {
            mark.push(MARK);
        }
        mark
    }
}

fn value(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    Value::from_pairs([("role", role), ("content", message.content.as_str())])
}

fn without_system(messages: &[Message]) -> Option<Vec<Message>> {
    let [first, second, rest @ ..] = messages else {
        return None;
    };
    if first.role != Role::System || second.role != Role::User {
        return None;
    }
    let both = format!("{}\n\n{}", first.content, second.content);
    Some(
        std::iter::once(Message::new(Role::User, both))
            .chain(rest.iter().cloned())
            .collect(),
    )
}

fn describe(error: &Error) -> String {
    match (error.detail(), error.line()) {
        (Some(detail), Some(line)) => format!("{}: {detail} (line {line})", error.kind()),
        (Some(detail), None) => format!("{}: {detail}", error.kind()),
        (None, _) => error.to_string(),
    }
}
