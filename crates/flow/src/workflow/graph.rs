//! Which node follows which.

use std::collections::BTreeSet;

use serde_json::Value;

use super::failure::Failure;
use super::part::Part;
use super::template::{self, Names};
use crate::source::{self, SourceError};
use crate::types::ExitCode;

/// Where a workflow begins, in edges.
const START: &str = "__start__";
/// Where it ends.
const END: &str = "__end__";

/// The way through the nodes, which are known by their places.
#[derive(Debug, Default)]
pub(super) struct Graph {
    start: Vec<Exit>,
    /// Per node.
    exits: Vec<Vec<Exit>>,
}

/// A way on.
#[derive(Debug)]
struct Exit {
    when: Option<Condition>,
    /// `None` for the end.
    to: Option<usize>,
    /// Where it is written; `None` where nodes follow each other as they stand.
    place: Option<Part>,
}

#[derive(Debug)]
struct Condition {
    part: Part,
    /// What it must come to.
    wanted: bool,
}

/// A node, as far as the way is concerned.
pub(super) struct Stop<'a> {
    pub(super) name: &'a str,
    pub(super) part: &'a Part,
    /// `next:` or `goto:`.
    pub(super) next: Option<&'a Part>,
}

impl Graph {
    /// Reads the way: the file's `edges`, and what nodes say of what follows them. Without any of it, nodes
    /// follow each other as they stand.
    pub(super) fn read(edges: Option<&Part>, stops: &[Stop<'_>]) -> Result<Self, SourceError> {
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
                .map_or(Ok(Vec::new()), |next| jumps(next, stops))?
            {
                said = true;
                graph.exits[at].push(exit);
            }
        }
        for (at, exits) in graph.exits.iter_mut().enumerate() {
            // With a way that is laid out, a node without one is the end of it.
            if !said && at + 1 < stops.len() {
                exits.push(Exit::plain(Some(at + 1)));
            }
            one_way(exits)?;
        }
        if graph.start.is_empty() {
            graph.start.push(Exit::plain(Some(0)));
        }
        one_way(&graph.start)?;
        graph.check_reach(stops)?;
        Ok(graph)
    }

    fn check_reach(&self, stops: &[Stop<'_>]) -> Result<(), SourceError> {
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
                    .error(&format!("nothing leads to the node `{name}`"))
                    .help(format!(
                        "add an edge to it: {{from: …, to: {name}}}, or take it out"
                    )))
            }
        }
    }

    /// Where the workflow begins.
    pub(super) fn first(&self, names: &Names) -> Result<Option<usize>, Failure> {
        choose(&self.start, names, START)
    }

    /// What follows a node; `None` for the end.
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

/// The first exit whose condition holds, else the one without a condition.
fn choose(exits: &[Exit], names: &Names, name: &str) -> Result<Option<usize>, Failure> {
    for exit in exits {
        if let Some(Condition { part, wanted }) = &exit.when {
            let text = part.text()?;
            let holds = template::holds(text, names).map_err(|fault| fault.at(part, text))?;
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
            format!("no condition of the edges from `{name}` holds: it is not said what follows"),
        )
        .hint("add an edge without a condition")),
    }
}

/// That no two exits are taken at the same time.
fn one_way(exits: &[Exit]) -> Result<(), SourceError> {
    let plain: Vec<&Exit> = exits.iter().filter(|exit| exit.when.is_none()).collect();
    match plain[..] {
        [_, second, ..] => match &second.place {
            Some(place) => Err(place
                .error("a second way without a condition: only one node runs at a time")
                .help("give it a condition (`when: …`), or take it out")),
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
            // `when: false` beside a condition turns it round.
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

/// `next: NODE`, or a list of `{if, to}`.
fn jumps(next: &Part, stops: &[Stop<'_>]) -> Result<Vec<Exit>, SourceError> {
    if next.value().is_array() {
        return next
            .items()
            .iter()
            .map(|jump| {
                jump.check_keys(&["if", "when", "to"])?;
                let to = jump
                    .get("to")
                    .ok_or_else(|| jump.error("it is not said where `to`"))?;
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

fn target(part: &Part, stops: &[Stop<'_>]) -> Result<Option<usize>, SourceError> {
    if part.text()? == END {
        return Ok(None);
    }
    node(part, stops).map(Some)
}

fn node(part: &Part, stops: &[Stop<'_>]) -> Result<usize, SourceError> {
    let name = part.text()?;
    let found = stops.iter().position(|stop| stop.name == name);
    found.ok_or_else(|| {
        let known = stops.iter().map(|stop| stop.name).chain([START, END]);
        let near = source::similar(name, known);
        part.error(&format!("there is no node `{name}`"))
            .help_if(near.map(|near| format!("did you mean `{near}`?")))
            .help(format!(
                "known nodes: {}",
                source::list(stops.iter().map(|stop| stop.name))
            ))
    })
}
