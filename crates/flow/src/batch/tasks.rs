//! Converts input lines to tasks.

use std::io::{self, Read};
use std::sync::Arc;

use tokio::sync::mpsc;

use super::ids::Seen;
use super::line::{self, Entry, Item};
use super::reader::{Line, Reader};
use super::shard::Shard;
use super::template::PromptTemplate;
use crate::types::Task;

/// How many entries the reader thread reads ahead.
const AHEAD: usize = 8;

/// The settings shared by all tasks of a batch.
#[derive(Debug, Default)]
pub struct Shape {
    /// What every task receives in addition to its line: system text, files, facts.
    pub base: Task,
    /// The prompt template; `None` if each line has its own prompt.
    pub template: Option<PromptTemplate>,
    /// How many of the last messages of a history are used.
    pub messages: u32,
    /// The shard of the tasks that runs here; `None` for all.
    pub shard: Option<Shard>,
    /// The tasks that are already done.
    pub done: Seen,
}

/// An iterator over the tasks to run. Skips tasks that are already done or belong to another shard.
pub struct Tasks<R> {
    reader: Reader<R>,
    shape: Arc<Shape>,
    seen: Seen,
    place: u64,
    skipped: u64,
}

impl<R: Read> Tasks<R> {
    /// Creates the tasks of this reader.
    pub fn new(reader: Reader<R>, shape: Arc<Shape>) -> Self {
        Self {
            reader,
            shape,
            seen: Seen::default(),
            place: 0,
            skipped: 0,
        }
    }

    /// Returns how many completed tasks were skipped so far.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Returns the next entry; `None` at the end.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub fn next_entry(&mut self) -> io::Result<Option<Entry>> {
        while let Some(line) = self.reader.next()? {
            let place = self.place;
            self.place += 1;
            // All shards check for repeated ids, so that all processes agree on which task has an id.
            let (id, identified) = self.identify(&line);
            if !self.shape.shard.is_none_or(|shard| shard.has(place)) {
                continue;
            }
            if self.shape.done.contains(id.as_deref(), line.number) {
                self.skipped += 1;
                continue;
            }
            let Line {
                number,
                fields,
                bytes,
            } = line;
            let task = identified.and(fields).and_then(|fields| self.item(fields));
            return Ok(Some(Entry {
                line: number,
                id,
                task,
                bytes,
            }));
        }
        Ok(None)
    }

    /// Returns the id of a line and any problem with it. An invalid line has an id only if it gives one.
    fn identify(&mut self, line: &Line) -> (Option<String>, Result<(), String>) {
        let given = match line.fields.as_ref().map(line::id) {
            Ok(Ok(given)) => given,
            Ok(Err(problem)) => return (None, Err(problem)),
            Err(_) => return (None, Ok(())),
        };
        let id = given.unwrap_or_else(|| line.number.to_string());
        if self.seen.insert(Some(&id), line.number) {
            (Some(id), Ok(()))
        } else {
            (
                None,
                Err(format!("the id `{id}` is already used by an earlier task")),
            )
        }
    }

    fn item(&self, mut fields: serde_json::Map<String, serde_json::Value>) -> Result<Item, String> {
        let Shape {
            base,
            template,
            messages,
            ..
        } = &*self.shape;
        if self.reader.has_columns() && template.is_none() {
            // Without a template, the other columns are not used.
            fields.remove("vars");
        }
        line::item(fields, base, template.as_ref(), *messages)
    }
}

impl<R: Read + 'static> Tasks<R> {
    /// Reads in a separate thread, with bounded read-ahead. `open` is called there.
    pub fn read_ahead(
        open: impl FnOnce() -> Self + Send + 'static,
    ) -> mpsc::Receiver<io::Result<Entry>> {
        let (sender, receiver) = mpsc::channel(AHEAD);
        std::thread::spawn(move || {
            let mut tasks = open();
            loop {
                let entry = match tasks.next_entry() {
                    Ok(Some(entry)) => Ok(entry),
                    Ok(None) => return,
                    Err(error) => Err(error),
                };
                let failed = entry.is_err();
                if sender.blocking_send(entry).is_err() || failed {
                    return;
                }
            }
        });
        receiver
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::InputFormat;

    fn entries(text: &str, shape: Shape) -> (Vec<Entry>, u64) {
        let reader = Reader::new(text.as_bytes(), InputFormat::Jsonl);
        let mut tasks = Tasks::new(reader, Arc::new(shape));
        let mut entries = Vec::new();
        while let Some(entry) = tasks.next_entry().unwrap() {
            entries.push(entry);
        }
        (entries, tasks.skipped())
    }

    const TEXT: &str = "{\"id\": \"a\", \"prompt\": \"1\"}\n{\"prompt\": \"2\"}\n{\"id\": \"a\", \"prompt\": \"3\"}\n\
                        nonsense\n{\"id\": \"e\"}\n{\"id\": [], \"prompt\": \"6\"}\n{\"id\": 2, \"prompt\": \"7\"}";

    #[test]
    fn every_line_is_a_task_or_an_error() {
        let (entries, _) = entries(TEXT, Shape::default());
        let ids: Vec<Option<&str>> = entries.iter().map(|entry| entry.id.as_deref()).collect();
        assert_eq!(
            ids,
            [Some("a"), Some("2"), None, None, Some("e"), None, None]
        );
        let good: Vec<bool> = entries.iter().map(|entry| entry.task.is_ok()).collect();
        assert_eq!(good, [true, true, false, false, false, false, false]);
        let said = |index: usize| entries[index].task.as_ref().unwrap_err().clone();
        assert!(said(2).contains("`a` is already used by an earlier task"));
        assert!(said(5).contains("`id` must be"));
        assert!(said(6).contains("`2` is already used"));
    }

    #[test]
    fn completed_tasks_are_skipped() {
        let mut shape = Shape::default();
        shape.done.insert(Some("a"), 1);
        shape.done.insert(None, 4);
        let (entries, skipped) = entries(TEXT, shape);
        let lines: Vec<u64> = entries.iter().map(|entry| entry.line).collect();
        assert_eq!(lines, [2, 3, 5, 6, 7]);
        assert_eq!(skipped, 2);
    }

    #[test]
    fn shards_cover_every_line_and_agree_on_ids() {
        let mut lines = Vec::new();
        for index in 0..3 {
            let shape = Shape {
                shard: Some(format!("{index}/3").parse().unwrap()),
                ..Shape::default()
            };
            lines.extend(
                entries(TEXT, shape)
                    .0
                    .into_iter()
                    .map(|it| (it.line, it.id)),
            );
        }
        lines.sort();
        let (all, _) = entries(TEXT, Shape::default());
        let all: Vec<_> = all.into_iter().map(|it| (it.line, it.id)).collect();
        assert_eq!(lines, all);
    }
}
