//! Checks where the `$ref`s of a schema lead.

use std::collections::HashMap;

use referencing::{Draft, Registry, Resolver};
use serde_json::Value;

use super::{Problem, url};
use crate::source::pointer;
use crate::types::SchemaConfig;

/// The maximum nesting depth of schemas that apply to the same value. Nobody writes a longer chain
/// by hand, and each level takes stack.
const MAX_DEPTH: usize = 64;
/// The maximum number of schemas that apply to one value. An `allOf` of two schemas, each again an
/// `allOf` of two, nested thirty times, would take a billion steps.
const MAX_CHECKS: u64 = 20_000;

/// The keywords whose single subschema applies to the same value as the surrounding schema.
const ONE: [&str; 4] = ["not", "if", "then", "else"];
const LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];
/// The keywords that refer to another schema.
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// A schema within the documents, identified by its address in memory: the registry owns all
/// schemas and moves none.
struct Node<'r> {
    schema: &'r Value,
    /// The node numbers of the schemas that apply to the same value.
    inner: Vec<usize>,
}

struct Graph<'r> {
    nodes: Vec<Node<'r>>,
    numbers: HashMap<*const Value, usize>,
    /// Nodes whose subschemas are still to be visited.
    open: Vec<(usize, Resolver<'r>, Draft)>,
}

impl<'r> Graph<'r> {
    fn number(&mut self, schema: &'r Value, resolver: &Resolver<'r>, draft: Draft) -> usize {
        if let Some(number) = self.numbers.get(&std::ptr::from_ref(schema)) {
            return *number;
        }
        let number = self.nodes.len();
        self.nodes.push(Node {
            schema,
            inner: Vec::new(),
        });
        self.numbers.insert(std::ptr::from_ref(schema), number);
        let draft = draft.detect(schema);
        // A schema with its own `$id` is the base for its references.
        let resolver = resolver
            .in_subresource(draft.create_resource_ref(schema))
            .unwrap_or_else(|_| resolver.clone());
        self.open.push((number, resolver, draft));
        number
    }
}

/// Checks that every reference resolves, and that none leads back to itself for the same value:
/// validation against such a schema would never end.
pub(super) fn check(
    registry: &Registry<'static>,
    names: &[(String, Option<&str>)],
    draft: Draft,
) -> Result<(), Box<Problem>> {
    let mut documents = Vec::new();
    let mut graph = Graph {
        nodes: Vec::new(),
        numbers: HashMap::new(),
        open: Vec::new(),
    };
    for (address, name) in names {
        let Ok(uri) = referencing::uri::from_str(address) else {
            continue;
        };
        let Ok(found) = registry.resolver(uri).lookup("") else {
            continue;
        };
        documents.push((*name, found.contents()));
        graph.number(found.contents(), found.resolver(), draft);
    }
    while let Some((number, resolver, draft)) = graph.open.pop() {
        let schema = graph.nodes[number].schema;
        for part in draft.subresources_of(schema) {
            graph.number(part, &resolver, draft);
        }
        let mut inner = Vec::new();
        for part in same_value_schemas(schema) {
            inner.push(graph.number(part, &resolver, draft));
        }
        for keyword in REFERENCES {
            let Some(text) = schema.get(keyword).and_then(Value::as_str) else {
                continue;
            };
            let found = resolver.lookup(text).map_err(|error| {
                let (name, place) = place_of(&documents, schema);
                Box::new(
                    Problem::new(
                        name,
                        &pointer::join(&place, keyword),
                        format!("the `{keyword}` `{text}` cannot be resolved"),
                    )
                    .hint(explain(&error)),
                )
            })?;
            let (target, resolver, draft) = found.into_inner();
            let target = graph.number(target, &resolver, draft);
            if keyword == "$ref" {
                inner.push(target);
            }
        }
        graph.nodes[number].inner = inner;
    }
    bounded(&graph.nodes).map_err(|(number, message)| {
        let schema = graph.nodes[number].schema;
        let (name, place) = place_of(&documents, schema);
        let place = if schema.get("$ref").is_some() {
            pointer::join(&place, "$ref")
        } else {
            place
        };
        Box::new(Problem::new(name, &place, message))
    })
}

fn same_value_schemas(schema: &Value) -> impl Iterator<Item = &Value> {
    let one = ONE.iter().filter_map(|key| schema.get(key));
    let listed = LISTS
        .iter()
        .filter_map(|key| schema.get(key)?.as_array())
        .flatten();
    let mapped = MAPS
        .iter()
        .filter_map(|key| schema.get(key)?.as_object())
        .flat_map(|map| map.values());
    one.chain(listed)
        .chain(mapped)
        .filter(|part| part.is_object())
}

/// The state of a node during the traversal.
#[derive(Clone, Copy)]
enum NodeState {
    New,
    /// On the current path. Reaching it again means a cycle.
    Open,
    /// The depth below this node, and the total number of schemas.
    Done(usize, u64),
}

/// Traverses the graph iteratively, because it may be as deep as the file is long.
fn bounded(nodes: &[Node<'_>]) -> Result<(), (usize, String)> {
    let mut states = vec![NodeState::New; nodes.len()];
    for start in 0..nodes.len() {
        if !matches!(states[start], NodeState::New) {
            continue;
        }
        states[start] = NodeState::Open;
        let mut path = vec![(start, 0)];
        while let Some((number, next)) = path.last_mut() {
            let number = *number;
            if let Some(&child) = nodes[number].inner.get(*next) {
                *next += 1;
                match states[child] {
                    NodeState::New => {
                        states[child] = NodeState::Open;
                        path.push((child, 0));
                    }
                    NodeState::Open => {
                        return Err((
                            number,
                            "this `$ref` is circular: it refers back to itself for the same value"
                                .to_owned(),
                        ));
                    }
                    NodeState::Done(..) => {}
                }
                continue;
            }
            let (mut depth, mut checks) = (0, 1_u64);
            for child in &nodes[number].inner {
                if let NodeState::Done(of_child, checks_of_child) = states[*child] {
                    depth = depth.max(of_child + 1);
                    checks = checks.saturating_add(checks_of_child);
                }
            }
            if depth > MAX_DEPTH {
                return Err((
                    number,
                    format!(
                        "this schema is a chain of more than {MAX_DEPTH} schemas for one value"
                    ),
                ));
            }
            if checks > MAX_CHECKS {
                return Err((
                    number,
                    format!("this schema applies more than {MAX_CHECKS} schemas to one value"),
                ));
            }
            states[number] = NodeState::Done(depth, checks);
            path.pop();
        }
    }
    Ok(())
}

/// Returns the document and the JSON Pointer of a schema in the registry.
fn place_of<'n>(
    documents: &[(Option<&'n str>, &Value)],
    schema: &Value,
) -> (Option<&'n str>, String) {
    for (name, document) in documents {
        let mut open = vec![(String::new(), *document)];
        while let Some((at, value)) = open.pop() {
            if std::ptr::eq(value, schema) {
                return (*name, at);
            }
            match value {
                Value::Object(map) => open.extend(
                    map.iter()
                        .map(|(key, value)| (pointer::join(&at, key), value)),
                ),
                Value::Array(items) => open.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(index, value)| (pointer::join(&at, &index.to_string()), value)),
                ),
                _ => {}
            }
        }
    }
    (None, String::new())
}

fn explain(error: &referencing::Error) -> String {
    use referencing::Error;
    match error {
        Error::PointerToNowhere { pointer } => {
            format!("that document has nothing at `{pointer}`")
        }
        Error::NoSuchAnchor { anchor } => format!("no schema has the anchor `{anchor}`"),
        Error::Unretrievable { .. } => {
            "the document was not read with the criteria file".to_owned()
        }
        error => error.to_string(),
    }
}

/// Returns the problem for a missing document, at the first reference to it.
pub(super) fn unresolved(
    config: &SchemaConfig,
    folder: &str,
    error: &referencing::Error,
) -> Problem {
    let referencing::Error::Unretrievable { uri, .. } = error else {
        return Problem::new(None, "", error.to_string());
    };
    let base = config.base.as_deref().unwrap_or(super::INLINE);
    let documents = std::iter::once((None, base, &config.schema)).chain(
        config
            .documents
            .iter()
            .map(|(name, document)| (Some(name.as_str()), name.as_str(), document)),
    );
    for (name, place, document) in documents {
        let Ok(base) = url(folder, place) else {
            continue;
        };
        for (pointer, text) in references(document) {
            if url(base.as_str(), text).is_ok_and(|url| url.as_str() == uri) {
                return Problem::new(
                    name,
                    &pointer,
                    format!("the `$ref` `{text}` cannot be resolved"),
                )
                .hint(explain(error));
            }
        }
    }
    Problem::new(
        None,
        "",
        format!("the schema needs the document `{uri}`, which is not there"),
    )
}

/// Returns the references in a document, each with its JSON Pointer.
pub(super) fn references(document: &Value) -> Vec<(String, &str)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), document)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let place = pointer::join(&at, key);
                    match value {
                        Value::String(text) if REFERENCES.contains(&key.as_str()) => {
                            found.push((place, text.as_str()));
                        }
                        _ => open.push((place, value)),
                    }
                }
            }
            Value::Array(items) => open.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, value)| (pointer::join(&at, &index.to_string()), value)),
            ),
            _ => {}
        }
    }
    found
}
