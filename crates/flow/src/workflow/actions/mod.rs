//! The actions of nodes, one file each. A new action needs a file with a [`ActionKind`], and a row in
//! [`KINDS`].

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
use super::world::ActionContext;
use crate::source::{self, SourceError};

/// An action of a node, or of a part of a loop.
#[async_trait(?Send)]
pub(super) trait Action: Send + Sync {
    /// Runs the action.
    async fn run(&self, context: &ActionContext<'_>) -> Result<Value, Failure>;

    /// Appends the programs that it runs.
    fn programs(&self, _: &mut Vec<Program>) {}

    /// Returns whether the keys of its result are visible to later nodes even if the result has a
    /// name.
    fn spreads(&self) -> bool {
        false
    }

    /// Returns the part of its result that is shown to people.
    fn answer<'r>(&self, result: &'r Value) -> &'r Value {
        result
    }

    /// Returns the result as the draft of a loop.
    fn draft(&self, result: Value) -> Value {
        result
    }
}

/// A kind of action.
pub(super) struct ActionKind {
    /// Its name.
    name: &'static str,
    /// Its alternative names.
    aliases: &'static [&'static str],
    /// Its keys. An empty list allows any.
    keys: &'static [&'static str],
    read: fn(&ActionCall) -> Result<Box<dyn Action>, SourceError>,
}

/// All kinds of actions.
const KINDS: [ActionKind; 10] = [
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

/// Returns the names of all actions.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS
        .iter()
        .flat_map(|kind| std::iter::once(kind.name).chain(kind.aliases.iter().copied()))
}

/// An action as written in the file.
pub(super) struct ActionCall {
    /// The part that holds the action.
    pub(super) owner: Part,
    /// The part that holds its parameters: the same, or its `with`.
    pub(super) body: Part,
    /// Its parameters.
    pub(super) params: IndexMap<String, Part>,
    pub(super) settings: Settings,
}

impl ActionCall {
    pub(super) fn get(&self, key: &str) -> Option<&Part> {
        self.params.get(key).filter(|part| !part.value().is_null())
    }

    /// Returns the error for a missing key.
    pub(super) fn missing(&self, name: &str, key: &str, hint: &str) -> SourceError {
        self.owner
            .error(&format!("`{name}` needs the key `{key}`"))
            .help(hint)
    }

    /// Parses an action that is part of this one.
    pub(super) fn inner(&self, part: &Part) -> Result<ReadAction, SourceError> {
        if !part.value().is_object() {
            return Err(part.expected("an object with `action` or `run`"));
        }
        read(part, part.fields(), &self.settings)
    }
}

/// An action with its name.
pub(super) struct ReadAction {
    pub(super) name: &'static str,
    pub(super) action: Box<dyn Action>,
}

/// Parses an action: its kind, and its parameters, which are next to its name or under `with`.
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
        return Err(second.error_at_key("both `uses` and `action` are set: keep one of them"));
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
                return Err(part.error_at_key(&format!("`{key}` is set twice")));
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
    let call = ActionCall {
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

/// Returns the kind that a part names.
fn find(part: &Part) -> Result<&'static ActionKind, SourceError> {
    let name = part.text()?;
    let found = KINDS
        .iter()
        .find(|kind| kind.name == name || kind.aliases.contains(&name));
    found.ok_or_else(|| {
        let near = source::similar(name, names());
        part.error(&format!("unknown action `{name}`"))
            .help_if(near.map(|near| format!("did you mean `{near}`?")))
            .help(format!(
                "known actions: {}",
                source::list(KINDS.iter().map(|kind| kind.name))
            ))
    })
}

/// Returns the kind of an action without a name, from what it runs.
fn implied(
    owner: &Part,
    fields: &IndexMap<String, Part>,
) -> Result<&'static ActionKind, SourceError> {
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
            owner.error("neither `uses` nor `run` is set").help(format!(
                "known actions: {}",
                source::list(KINDS.iter().map(|kind| kind.name))
            ))
        })
}
