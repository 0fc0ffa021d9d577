//! What nodes can do: one file an action. Another one is a file with a [`Kind`], and a line in [`KINDS`].

pub(super) mod code;
mod command;
mod correct;
mod evaluate;
mod llm_call;
pub(super) mod reflection;
mod response_format;
mod self_correct;
mod set;
mod validate;

use async_trait::async_trait;
use indexmap::IndexMap;
use serde_json::Value;

use super::failure::Failure;
use super::part::{self, Part};
use super::program::Program;
use super::settings::Settings;
use super::world::Scene;
use crate::source::{self, SourceError};

/// Something that a node does, or a part of a loop.
#[async_trait(?Send)]
pub(super) trait Action: Send + Sync {
    /// Does it.
    async fn run(&self, scene: &Scene<'_>) -> Result<Value, Failure>;

    /// Adds the programs that it runs.
    fn programs(&self, _: &mut Vec<Program>) {}

    /// Whether the keys of its result are visible to later nodes even where all of it has a name of its own.
    fn spreads(&self) -> bool {
        false
    }

    /// What of its result is for people.
    fn answer<'r>(&self, result: &'r Value) -> &'r Value {
        result
    }

    /// The result as the draft of a loop.
    fn draft(&self, result: Value) -> Value {
        result
    }
}

/// A kind of action.
pub(super) struct Kind {
    /// Its name.
    name: &'static str,
    /// Other names that files use for it.
    aliases: &'static [&'static str],
    /// Its keys; none for any.
    keys: &'static [&'static str],
    read: fn(&Call) -> Result<Box<dyn Action>, SourceError>,
}

/// All of them.
const KINDS: [Kind; 10] = [
    llm_call::KIND,
    reflection::KIND,
    evaluate::KIND,
    correct::KIND,
    self_correct::KIND,
    validate::KIND,
    set::KIND,
    code::KIND,
    command::COMMAND,
    command::SHELL,
];

/// The names of all actions.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS
        .iter()
        .flat_map(|kind| std::iter::once(kind.name).chain(kind.aliases.iter().copied()))
}

/// An action as it is written down.
pub(super) struct Call {
    /// Where it stands.
    pub(super) owner: Part,
    /// What holds its parameters: the same, or its `with`.
    pub(super) body: Part,
    /// Its parameters.
    pub(super) params: IndexMap<String, Part>,
    pub(super) settings: Settings,
}

impl Call {
    pub(super) fn get(&self, key: &str) -> Option<&Part> {
        self.params.get(key).filter(|part| !part.value().is_null())
    }

    /// The error that a key is not there.
    pub(super) fn missing(&self, name: &str, key: &str, hint: &str) -> SourceError {
        self.owner
            .error(&format!("`{name}` needs the key `{key}`"))
            .help(hint)
    }

    /// An action that is part of this one.
    pub(super) fn inner(&self, part: &Part) -> Result<ReadAction, SourceError> {
        if !part.value().is_object() {
            return Err(part.expected("an object with `action` or `run`"));
        }
        read(part, part.fields(), &self.settings)
    }
}

/// An action, with the name that it goes by.
pub(super) struct ReadAction {
    pub(super) name: &'static str,
    pub(super) action: Box<dyn Action>,
}

/// Reads an action: which one it is, and its parameters, which stand beside its name or under `with`.
pub(super) fn read(
    owner: &Part,
    mut fields: IndexMap<String, Part>,
    settings: &Settings,
) -> Result<ReadAction, SourceError> {
    let named: Vec<Part> = ["uses", "action"]
        .into_iter()
        .filter_map(|key| fields.shift_remove(key))
        .collect();
    if let [_, second, ..] = &named[..] {
        return Err(second.error_at_key("there are both `uses` and `action`: keep one of them"));
    }
    let mut body = owner.clone();
    if let Some(with) = fields.shift_remove("with")
        && !with.value().is_null()
    {
        if !with.value().is_object() {
            return Err(with.expected("an object"));
        }
        body = with.clone();
        for (key, part) in with.fields() {
            if fields.contains_key(&key) {
                return Err(part.error_at_key(&format!("`{key}` is there twice")));
            }
            fields.insert(key, part);
        }
    }
    let kind = match named.first() {
        Some(part) => find(part)?,
        None => implied(owner, &fields)?,
    };
    if !kind.keys.is_empty() {
        part::check(&fields, kind.keys)?;
    }
    let call = Call {
        owner: owner.clone(),
        body,
        params: fields,
        settings: settings.clone(),
    };
    Ok(ReadAction {
        name: kind.name,
        action: (kind.read)(&call)?,
    })
}

/// The kind of this name.
fn find(part: &Part) -> Result<&'static Kind, SourceError> {
    let name = part.text()?;
    let found = KINDS
        .iter()
        .find(|kind| kind.name == name || kind.aliases.contains(&name));
    found.ok_or_else(|| {
        let near = source::similar(name, names());
        part.error(&format!("there is no action `{name}`"))
            .help_if(near.map(|near| format!("did you mean `{near}`?")))
            .help(format!(
                "known actions: {}",
                source::list(KINDS.iter().map(|kind| kind.name))
            ))
    })
}

/// The kind of an action that names none: by what it runs.
fn implied(owner: &Part, fields: &IndexMap<String, Part>) -> Result<&'static Kind, SourceError> {
    let by_key = [
        ("run", "run"),
        ("command", "command"),
        ("shell", "shell"),
        ("prompt", "llm.call"),
        ("messages", "llm.call"),
    ];
    by_key
        .into_iter()
        .find(|(key, _)| fields.contains_key(*key))
        .and_then(|(_, name)| KINDS.iter().find(|kind| kind.name == name))
        .ok_or_else(|| {
            owner
                .error("there is neither `uses` nor `run` here: nothing is done")
                .help(format!(
                    "known actions: {}",
                    source::list(KINDS.iter().map(|kind| kind.name))
                ))
        })
}
