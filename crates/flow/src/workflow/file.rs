//! Parses workflow files and reports errors with positions.

use std::collections::HashSet;
use std::path::Path;

use serde_json::{Map, Value};

use super::actions::{self, Action};
use super::graph::{Graph, NodeExits};
use super::part::Part;
use super::program::Program;
use super::settings::Settings;
use super::template;
use super::triggers::Triggers;
use crate::source::{self, Data, DataFormat, FileAccess, Source, SourceError};

/// The keys of a workflow. Some belong to other tools and are ignored.
const KEYS: [&str; 15] = [
    "name",
    "description",
    "version",
    "nodes",
    "edges",
    "settings",
    "state_schema",
    "variables",
    "reflection",
    "initial_state",
    "config",
    "metadata",
    "author",
    "tags",
    "imports",
];

/// The keys of a node.
const NODE_KEYS: [&str; 16] = [
    "name",
    "description",
    "uses",
    "action",
    "with",
    "run",
    "language",
    "command",
    "shell",
    "stdin",
    "timeout",
    "output",
    "next",
    "goto",
    "when",
    "reflection",
];

/// The maximum number of nodes.
const MAX_NODES: usize = 1000;

/// A workflow that is ready to run.
pub struct Workflow {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) nodes: Vec<Node>,
    pub(super) graph: Graph,
    pub(super) variables: Map<String, Value>,
    pub(super) schema: Vec<(String, Type)>,
    /// The default values of the state's names.
    pub(super) defaults: Map<String, Value>,
    pub(super) triggers: Option<Triggers>,
    notes: Vec<String>,
}

/// A node of the workflow.
pub(super) struct Node {
    pub(super) name: String,
    pub(super) action_name: &'static str,
    pub(super) action: Box<dyn Action>,
    /// The name of its result in the state.
    pub(super) output: Option<String>,
    /// The condition for running the node.
    pub(super) when: Option<Part>,
    pub(super) triggers: Option<Triggers>,
}

/// The type of a name in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Type {
    Text,
    Integer,
    Number,
    Flag,
    List,
    Object,
    Any,
}

impl Type {
    const WORDS: [(&'static str, Self); 18] = [
        ("str", Self::Text),
        ("string", Self::Text),
        ("text", Self::Text),
        ("int", Self::Integer),
        ("integer", Self::Integer),
        ("float", Self::Number),
        ("number", Self::Number),
        ("bool", Self::Flag),
        ("boolean", Self::Flag),
        ("list", Self::List),
        ("array", Self::List),
        ("dict", Self::Object),
        ("object", Self::Object),
        ("map", Self::Object),
        ("json", Self::Any),
        ("any", Self::Any),
        ("Any", Self::Any),
        ("optional", Self::Any),
    ];

    fn read(part: &Part) -> Result<Self, SourceError> {
        // Also accepts an object: `{type: str, default: …}`.
        if part.value().is_object() {
            return match part.get("type") {
                Some(named) => Self::read(&named),
                None => Ok(Self::Any),
            };
        }
        let text = part.text()?;
        // `list[str]` is a list.
        let plain = text.split(['[', '<']).next().unwrap_or(text).trim();
        let found = Self::WORDS.iter().find(|(word, _)| *word == plain);
        found.map(|(_, found)| *found).ok_or_else(|| {
            let words = Self::WORDS.iter().map(|(word, _)| *word);
            let near = source::similar(plain, words.clone());
            part.error(&format!("there is no type `{text}`"))
                .help_if(near.map(|near| format!("did you mean `{near}`?")))
                .help(format!("known types: {}", source::list(words)))
        })
    }

    /// Returns whether a value has this type.
    pub(super) fn holds(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Text => value.is_string(),
            Self::Integer => value.is_i64() || value.is_u64(),
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }

    /// Returns a description for messages.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Any => "anything",
            Self::Text => "a text",
            Self::Integer => "a whole number",
            Self::Number => "a number",
            Self::Flag => "true or false",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

/// Reads a workflow file. `reach` returns which files it may refer to, given its full path.
///
/// # Errors
/// Any error that can be detected before the run, with its position.
pub fn load(path: &Path, reach: &dyn Fn(&Path) -> FileAccess) -> Result<Workflow, SourceError> {
    read(&source::read(path)?.with_file_access(reach))
}

/// Parses the text of a workflow. `name` stands for its path in errors.
///
/// # Errors
/// As for [`load`].
pub fn parse(text: &str, name: &str) -> Result<Workflow, SourceError> {
    read(&Source::new(name, text))
}

fn read(source: &Source) -> Result<Workflow, SourceError> {
    if source.is_blank() {
        return Err(source
            .file_error("the file is empty")
            .help("a workflow has a list of `nodes`"));
    }
    let (first, documents) = first_document(source);
    let whole = Part::whole(Data::parse(&first, DataFormat::Yaml)?);
    if !whole.value().is_object() {
        return Err(whole.expected("a workflow, which is an object with a list of `nodes`"));
    }
    whole.check_keys(&KEYS)?;
    let mut notes = Vec::new();
    if documents > 1 {
        notes.push(format!(
            "{} contains {documents} documents; only the first one runs",
            source.name()
        ));
    }
    if whole.get("imports").is_some() {
        notes.push("`imports` is not supported and ignored".to_owned());
    }
    let settings = match whole.get("settings") {
        Some(part) => Settings::read(&part)?,
        None => Settings::default(),
    };
    let parts = match whole.get("nodes") {
        Some(part) if part.value().as_array().is_some_and(|it| !it.is_empty()) => part.items(),
        Some(part) => return Err(part.expected("a list of at least one node")),
        None => {
            return Err(whole.error("`nodes` is missing").help(
                "for example: nodes: [{name: draft, uses: llm.call, with: {prompt: Hello}}]",
            ));
        }
    };
    if parts.len() > MAX_NODES {
        return Err(whole.error(&format!("more than {MAX_NODES} nodes")));
    }
    let mut names = HashSet::new();
    let mut read = Vec::new();
    for part in &parts {
        let node = read_node(part, &settings)?;
        if !names.insert(node.name.clone()) {
            let name = &node.name;
            let place = part.get("name").unwrap_or_else(|| part.clone());
            return Err(place.error(&format!("two nodes have the name `{name}`")));
        }
        read.push(node);
    }
    let next: Vec<Option<Part>> = parts
        .iter()
        .map(|part| part.get("next").or_else(|| part.get("goto")))
        .collect();
    let stops: Vec<NodeExits<'_>> = read
        .iter()
        .zip(parts.iter().zip(&next))
        .map(|(node, (part, next))| NodeExits {
            name: &node.name,
            part,
            next: next.as_ref(),
        })
        .collect();
    let graph = Graph::read(whole.get("edges").as_ref(), &stops)?;
    let object = |key: &str| match whole.get(key) {
        None => Ok(Map::new()),
        Some(part) => match part.value() {
            Value::Object(object) => Ok(object.clone()),
            _ => Err(part.expected("an object")),
        },
    };
    let schema = read_schema(&whole)?;
    let mut variables = object("variables")?;
    variables.extend(object("initial_state")?);
    let name = whole.text_at("name")?;
    Ok(Workflow {
        name: name.unwrap_or_else(|| "workflow".to_owned()),
        description: whole.text_at("description")?,
        nodes: read,
        graph,
        variables,
        defaults: read_defaults(&whole, &schema)?,
        schema,
        triggers: whole
            .get("reflection")
            .map(|part| Triggers::read(&part, &settings))
            .transpose()?,
        notes,
    })
}

/// Parses `state_schema:`, names with their types.
fn read_schema(whole: &Part) -> Result<Vec<(String, Type)>, SourceError> {
    match whole.get("state_schema") {
        None => Ok(Vec::new()),
        Some(part) if part.value().is_object() => part
            .fields()
            .into_iter()
            .map(|(name, part)| Ok((name, Type::read(&part)?)))
            .collect(),
        Some(part) => Err(part.expected("an object of names and types")),
    }
}

/// Parses the defaults in `state_schema:`, written as `{type: str, default: …}`.
fn read_defaults(
    whole: &Part,
    schema: &[(String, Type)],
) -> Result<Map<String, Value>, SourceError> {
    let mut defaults = Map::new();
    for (name, wanted) in schema {
        let at = whole.get("state_schema").and_then(|it| it.get(name));
        if let Some(default) = at.and_then(|it| it.get("default")) {
            if !wanted.holds(default.value()) {
                return Err(default.expected(wanted.describe()));
            }
            defaults.insert(name.clone(), default.value().clone());
        }
    }
    Ok(defaults)
}

fn read_node(part: &Part, settings: &Settings) -> Result<Node, SourceError> {
    part.check_keys(&NODE_KEYS)?;
    let Some(name) = part.get("name") else {
        return Err(part
            .error("this node has no `name`")
            .help("for example: - name: draft"));
    };
    let text = name.text()?;
    if text.trim().is_empty() || text.starts_with("__") {
        return Err(name.error("this name is reserved"));
    }
    let mut fields = part.fields();
    fields.retain(|key, part| {
        matches!(
            key.as_str(),
            "uses"
                | "action"
                | "with"
                | "run"
                | "language"
                | "command"
                | "shell"
                | "stdin"
                | "timeout"
        ) && !part.value().is_null()
    });
    let read = actions::read(part, fields, settings)?;
    let output = match part.get("output") {
        None => None,
        Some(output) => {
            let name = output.text()?;
            if name.is_empty() || name == "state" {
                return Err(output.error("this name is reserved"));
            }
            Some(name.to_owned())
        }
    };
    let when = part.get("when");
    when.as_ref().map_or(Ok(()), template::check_condition)?;
    Ok(Node {
        name: text.to_owned(),
        action_name: read.name,
        action: read.action,
        output,
        when,
        triggers: part
            .get("reflection")
            .map(|part| Triggers::read(&part, settings))
            .transpose()?,
    })
}

/// Returns the first document of a text, and the number of documents. A line that begins with `---`
/// always ends a document: even in a multi-line string it would be indented.
fn first_document(source: &Source) -> (Source, usize) {
    let text = source.text();
    let mut at = 0;
    let mut end = None;
    let mut documents = 0;
    let mut begun = false;
    for line in text.split_inclusive('\n') {
        let plain = line.trim_end();
        let marks = plain == "---" || plain.starts_with("--- ") || plain == "...";
        if marks {
            if begun && end.is_none() {
                end = Some(at);
            }
            begun = false;
        }
        let content = !marks && !plain.trim_start().is_empty();
        let content = content && !plain.trim_start().starts_with(['#', '%']);
        if content && !begun {
            begun = true;
            documents += 1;
        }
        at += line.len();
    }
    (
        end.map_or_else(|| source.clone(), |end| source.until(end)),
        documents,
    )
}

impl Workflow {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns warnings about a valid file.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the nodes in file order, each with the name of its action.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &'static str)> {
        self.nodes
            .iter()
            .map(|node| (node.name.as_str(), node.action_name))
    }

    /// Returns all programs that the workflow may run on this machine.
    pub fn programs(&self) -> Vec<Program> {
        let mut all = Vec::new();
        for node in &self.nodes {
            let mut list = Vec::new();
            node.action.programs(&mut list);
            if let Some(triggers) = &node.triggers {
                triggers.programs(&mut list);
            }
            all.extend(list.into_iter().map(|program| Program {
                node: node.name.clone(),
                ..program
            }));
        }
        if let Some(triggers) = &self.triggers {
            let mut list = Vec::new();
            triggers.programs(&mut list);
            all.extend(list.into_iter().map(|program| Program {
                node: "reflection".to_owned(),
                ..program
            }));
        }
        all
    }
}
