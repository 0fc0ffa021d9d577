//! The order of the nodes: edges and conditions.

use std::collections::BTreeSet;

use serde_json::Value;

use super::failure::Failure;
use super::part::Part;
use super::template::{self, Names};
use crate::source::{self, SourceError};
use crate::types::ExitCode;

/// The name of the start in edges.
const START: &str = "__start__";
/// The name of the end in edges.
const END: &str = "__end__";

/// The graph of the nodes, which are identified by index.
#[derive(Debug, Default)]
pub(super) struct Graph {
    start: Vec<Exit>,
    /// The exits of each node.
    exits: Vec<Vec<Exit>>,
}

/// An exit of a node.
#[derive(Debug)]
struct Exit {
    when: Option<Condition>,
    /// The next node, or `None` for the end.
    to: Option<usize>,
    /// Where the exit is written, or `None` for the implicit exit to the next node in the file.
    place: Option<Part>,
}

#[derive(Debug)]
struct Condition {
    part: Part,
    /// The required result of the condition.
    wanted: bool,
}

/// The parts of a node that the graph needs.
pub(super) struct NodeExits<'a> {
    pub(super) name: &'a str,
    pub(super) part: &'a Part,
    /// The value of `next:` or `goto:`.
    pub(super) next: Option<&'a Part>,
}

impl Graph {
    /// Parses the graph: the file's `edges`, and the `next` of nodes. Without any of these, the
    /// nodes run in file order.
    pub(super) fn read(edges: Option<&Part>, stops: &[NodeExits<'_>]) -> Result<Self, SourceError> {
        let mut graph = Self {
            start: Vec::new(),
            exits: stops.iter().map(|_| Vec::new()).collect(),
        };
        let mut said = false;
        if let Some(edges) = edges {
            if !edges.value().is_array() {
                return Err(edges.expected("a list of edges, each with `from` and `to`"));
            }
            for edge in edges.items() {
                edge.check_keys(&["from", "to", "when", "if", "condition", "type", "name"])?;
                let ends = ["from", "to"].map(|key| {
                    edge.get(key)
                        .ok_or_else(|| edge.error(&format!("this edge has no `{key}`")))
                });
                let [from, to] = ends;
                let exit = Exit {
                    when: condition(&edge)?,
                    to: target(&to?, stops)?,
                    place: Some(edge.clone()),
                };
                let from = from?;
                if from.text()? == START {
                    graph.start.push(exit);
                } else {
                    said = true;
                    let at = node(&from, stops)?;
                    graph.exits[at].push(exit);
                }
            }
        }
        for (at, stop) in stops.iter().enumerate() {
            for exit in stop
                .next
                .map_or(Ok(Vec::new()), |next| read_targets(next, stops))?
            {
                said = true;
                graph.exits[at].push(exit);
            }
        }
        for (at, exits) in graph.exits.iter_mut().enumerate() {
            // If any exit is specified, a node without one ends the workflow.
            if !said && at + 1 < stops.len() {
                exits.push(Exit::plain(Some(at + 1)));
            }
            check_single_default(exits)?;
        }
        if graph.start.is_empty() {
            graph.start.push(Exit::plain(Some(0)));
        }
        check_single_default(&graph.start)?;
        graph.check_reach(stops)?;
        Ok(graph)
    }

    fn check_reach(&self, stops: &[NodeExits<'_>]) -> Result<(), SourceError> {
        let mut reached: BTreeSet<usize> = BTreeSet::new();
        let mut open: Vec<usize> = self.start.iter().filter_map(|exit| exit.to).collect();
        while let Some(at) = open.pop() {
            if reached.insert(at) {
                open.extend(self.exits[at].iter().filter_map(|exit| exit.to));
            }
        }
        match stops
            .iter()
            .enumerate()
            .find(|(at, _)| !reached.contains(at))
        {
            None => Ok(()),
            Some((_, stop)) => {
                let name = stop.name;
                let place = stop.part.get("name").unwrap_or_else(|| stop.part.clone());
                Err(place
                    .error(&format!("the node `{name}` is unreachable"))
                    .help(format!(
                        "add an edge to it: {{from: …, to: {name}}}, or remove it"
                    )))
            }
        }
    }

    /// Returns the first node.
    pub(super) fn first(&self, names: &Names) -> Result<Option<usize>, Failure> {
        choose(&self.start, names, START)
    }

    /// Returns the node after this one, or `None` at the end.
    pub(super) fn after(
        &self,
        node: usize,
        name: &str,
        names: &Names,
    ) -> Result<Option<usize>, Failure> {
        match self.exits.get(node) {
            Some(exits) => choose(exits, names, name),
            None => Ok(None),
        }
    }
}

impl Exit {
    fn plain(to: Option<usize>) -> Self {
        Self {
            when: None,
            to,
            place: None,
        }
    }
}

/// Returns the target of the first exit whose condition holds, or else of the one without a
/// condition.
fn choose(exits: &[Exit], names: &Names, name: &str) -> Result<Option<usize>, Failure> {
    for exit in exits {
        if let Some(Condition { part, wanted }) = &exit.when {
            let text = part.text()?;
            let holds = template::holds(text, names)
                .map_err(|template_error| template_error.at(part, text))?;
            if holds == *wanted {
                return Ok(exit.to);
            }
        }
    }
    match exits.iter().find(|exit| exit.when.is_none()) {
        Some(exit) => Ok(exit.to),
        None if exits.is_empty() => Ok(None),
        None => Err(Failure::new(
            ExitCode::Usage,
            format!("no condition of the edges from `{name}` holds"),
        )
        .hint("add an edge without a condition")),
    }
}

/// Checks that at most one exit has no condition.
fn check_single_default(exits: &[Exit]) -> Result<(), SourceError> {
    let plain: Vec<&Exit> = exits.iter().filter(|exit| exit.when.is_none()).collect();
    match plain[..] {
        [_, second, ..] => match &second.place {
            Some(place) => Err(place
                .error("a second edge without a condition: only one node runs at a time")
                .help("add a condition (`when: …`), or remove it")),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn condition(edge: &Part) -> Result<Option<Condition>, SourceError> {
    let mut wanted = true;
    let mut found = None;
    for key in ["when", "if", "condition"] {
        let Some(part) = edge.get(key) else {
            continue;
        };
        match part.value() {
            // `when: false` next to a condition inverts it.
            Value::Bool(flag) => wanted = *flag,
            Value::Object(_) => {
                part.check_keys(&["type", "value", "expression"])?;
                found = part.get("value").or_else(|| part.get("expression"));
                if found.is_none() {
                    return Err(part.error("this condition has no `value`"));
                }
            }
            _ => found = Some(part),
        }
    }
    let Some(part) = found else {
        return Ok(None);
    };
    template::check_condition(&part)?;
    Ok(Some(Condition { part, wanted }))
}

/// Parses `next: NODE`, or a list of `{if, to}`.
fn read_targets(next: &Part, stops: &[NodeExits<'_>]) -> Result<Vec<Exit>, SourceError> {
    if next.value().is_array() {
        return next
            .items()
            .iter()
            .map(|jump| {
                jump.check_keys(&["if", "when", "to"])?;
                let to = jump
                    .get("to")
                    .ok_or_else(|| jump.error("the key `to` is missing"))?;
                Ok(Exit {
                    when: condition(jump)?,
                    to: target(&to, stops)?,
                    place: Some(jump.clone()),
                })
            })
            .collect();
    }
    Ok(vec![Exit {
        when: None,
        to: target(next, stops)?,
        place: Some(next.clone()),
    }])
}

fn target(part: &Part, stops: &[NodeExits<'_>]) -> Result<Option<usize>, SourceError> {
    if part.text()? == END {
        return Ok(None);
    }
    node(part, stops).map(Some)
}

fn node(part: &Part, stops: &[NodeExits<'_>]) -> Result<usize, SourceError> {
    let name = part.text()?;
    let found = stops.iter().position(|stop| stop.name == name);
    found.ok_or_else(|| {
        let known = stops.iter().map(|stop| stop.name).chain([START, END]);
        let near = source::similar(name, known);
        part.error(&format!("unknown node `{name}`"))
            .help_if(near.map(|near| format!("did you mean `{near}`?")))
            .help(format!(
                "known nodes: {}",
                source::list(stops.iter().map(|stop| stop.name))
            ))
    })
}
