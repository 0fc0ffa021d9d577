//! Reads JSON Lines and CSV records, one at a time, with line numbers.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use serde_json::{Map, Value};

/// The maximum length of a line or record in bytes. Longer prompts exceed any model's context window.
const LIMIT: usize = 16 << 20;

/// The format of the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// One JSON object per line.
    Jsonl,
    /// Comma-separated values with a header line. `id`, `prompt`, `context` and `criteria` have the same
    /// meaning as in JSON; every other column is one of `vars`.
    Csv,
}

impl InputFormat {
    /// Returns the format of a file, from its extension.
    pub fn of(file: &Path) -> Self {
        match file.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("csv") => Self::Csv,
            _ => Self::Jsonl,
        }
    }
}

/// The fields of a line, or the problem with it.
#[derive(Debug)]
pub(super) struct Line {
    /// The line number, from 1: the first line of a multi-line record, or the first of the blank lines before
    /// a CSV record.
    pub(super) number: u64,
    pub(super) fields: Result<Map<String, Value>, String>,
    pub(super) bytes: usize,
}

/// Reads tasks from a file or a pipe.
pub struct Reader<R>(Lines<R>);

enum Lines<R> {
    Jsonl { input: BufReader<R>, number: u64 },
    Csv(Box<Csv<R>>),
}

impl<R: Read> Reader<R> {
    /// Creates a reader without reading anything yet.
    pub fn new(input: R, format: InputFormat) -> Self {
        Self(match format {
            InputFormat::Jsonl => Lines::Jsonl {
                input: BufReader::new(input),
                number: 0,
            },
            InputFormat::Csv => Lines::Csv(Box::new(Csv::new(input))),
        })
    }

    /// Whether all other columns become `vars`.
    pub(super) fn has_columns(&self) -> bool {
        matches!(self.0, Lines::Csv(_))
    }

    /// Returns the next line that is not blank.
    ///
    /// # Errors
    /// If the input cannot be read.
    pub(super) fn next(&mut self) -> io::Result<Option<Line>> {
        match &mut self.0 {
            Lines::Jsonl { input, number } => next_json(input, number),
            Lines::Csv(csv) => csv.next(),
        }
    }
}

fn next_json(input: &mut impl BufRead, number: &mut u64) -> io::Result<Option<Line>> {
    loop {
        let mut bytes = Vec::new();
        let limit = LIMIT as u64 + 1;
        if input.by_ref().take(limit).read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
        *number += 1;
        if bytes.len() > LIMIT && bytes.last() != Some(&b'\n') {
            input.skip_until(b'\n')?;
            return Ok(Some(Line {
                number: *number,
                fields: Err(too_long("line")),
                bytes: 0,
            }));
        }
        // Some editors write a byte order mark at the start of a file.
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").filter(|_| *number == 1);
        // Without the line end, so that errors refer to this line and not to the next.
        let text = text.unwrap_or(&bytes);
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        return Ok(Some(Line {
            number: *number,
            fields: object(text),
            bytes: bytes.len(),
        }));
    }
}

fn object(text: &[u8]) -> Result<Map<String, Value>, String> {
    match serde_json::from_slice(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err("expected a JSON object `{...}`".to_owned()),
        Err(error) => {
            // The error names line 1, which is misleading.
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            Err(format!("invalid JSON: {said} (column {})", error.column()))
        }
    }
}

fn too_long(what: &str) -> String {
    format!("the {what} is longer than {} MiB", LIMIT >> 20)
}

struct Csv<R> {
    reader: csv::Reader<Metered<R>>,
    names: Option<Vec<String>>,
    /// The number of bytes read since the last record.
    read: Rc<Cell<usize>>,
    over: bool,
}

impl<R: Read> Csv<R> {
    fn new(input: R) -> Self {
        let read = Rc::new(Cell::new(0));
        let metered = Metered {
            input,
            read: Rc::clone(&read),
        };
        Self {
            reader: csv::ReaderBuilder::new()
                .has_headers(false)
                .flexible(true)
                .from_reader(metered),
            names: None,
            read,
            over: false,
        }
    }

    fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            if self.over {
                return Ok(None);
            }
            self.read.set(0);
            let mut record = csv::StringRecord::new();
            let found = self.reader.read_record(&mut record);
            let number = record
                .position()
                .map_or_else(|| self.reader.position().line(), csv::Position::line);
            let fields = match found {
                Ok(false) => return Ok(None),
                Ok(true) => match &self.names {
                    None => match names(&record) {
                        Ok(names) => {
                            self.names = Some(names);
                            continue;
                        }
                        Err(problem) => {
                            // Without a valid header, the records are meaningless.
                            self.over = true;
                            Err(problem)
                        }
                    },
                    Some(names) => named(names, &record),
                },
                Err(error) => match error.into_kind() {
                    csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                        self.over = true;
                        Err(format!("{}; check for a missing quote", too_long("record")))
                    }
                    csv::ErrorKind::Io(error) => return Err(error),
                    csv::ErrorKind::Utf8 { err, .. } => {
                        Err(format!("column {} is not valid UTF-8", err.field() + 1))
                    }
                    other => return Err(io::Error::other(format!("{other:?}"))),
                },
            };
            return Ok(Some(Line {
                number,
                bytes: record.as_slice().len(),
                fields,
            }));
        }
    }
}

fn names(record: &csv::StringRecord) -> Result<Vec<String>, String> {
    let names: Vec<String> = record
        .iter()
        .map(|name| name.trim_start_matches('\u{feff}').trim().to_owned())
        .collect();
    for (index, name) in names.iter().enumerate() {
        if name.is_empty() {
            return Err(format!("column {} has no name", index + 1));
        }
        if names[..index].contains(name) {
            return Err(format!("duplicate column `{name}`"));
        }
    }
    Ok(names)
}

/// Converts a record to the fields of a JSON line. Empty cells are dropped, except in `vars`.
fn named(names: &[String], record: &csv::StringRecord) -> Result<Map<String, Value>, String> {
    if record.len() != names.len() {
        return Err(format!(
            "it has {} columns, and the first line names {}",
            record.len(),
            names.len()
        ));
    }
    let (mut fields, mut vars) = (Map::new(), Map::new());
    for (name, cell) in names.iter().zip(record) {
        let value = Value::String(cell.to_owned());
        match name.as_str() {
            "id" | "prompt" | "context" | "criteria" => {
                if !cell.is_empty() {
                    fields.insert(name.clone(), value);
                }
            }
            _ => {
                vars.insert(name.clone(), value);
            }
        }
    }
    fields.insert("vars".to_owned(), Value::Object(vars));
    Ok(fields)
}

/// Stops at a record that is too long. A stray quote would turn the rest of the file into one cell.
struct Metered<R> {
    input: R,
    read: Rc<Cell<usize>>,
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read.get() > LIMIT {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let read = self.input.read(buffer)?;
        self.read.set(self.read.get() + read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(text: &[u8], format: InputFormat) -> Vec<(u64, Result<Value, String>)> {
        let mut reader = Reader::new(text, format);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().unwrap() {
            lines.push((line.number, line.fields.map(Value::Object)));
        }
        lines
    }

    #[test]
    fn line_numbers_include_blank_lines() {
        let text = "\u{feff}{\"id\": 1}\n\n  \r\n{\"id\": 2}\r\nnonsense\n[1]\n{\"id\": 3}";
        let lines = all(text.as_bytes(), InputFormat::Jsonl);
        let numbers: Vec<u64> = lines.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, [1, 4, 5, 6, 7]);
        let bad = |index: usize| lines[index].1.clone().unwrap_err();
        assert!(bad(2).contains("invalid JSON"), "{}", bad(2));
        assert!(bad(3).contains("expected a JSON object"), "{}", bad(3));
        assert_eq!(lines[4].1, Ok(serde_json::json!({"id": 3})));
    }

    #[test]
    fn an_incomplete_line_is_reported_at_its_own_end() {
        for text in [&b"{\"id\": 1"[..], b"{\"id\": 1\n{\"id\": 2}"] {
            let lines = all(text, InputFormat::Jsonl);
            let problem = lines[0].1.clone().unwrap_err();
            assert!(problem.ends_with("(column 8)"), "{problem}");
        }
    }

    #[test]
    fn an_overlong_line_is_skipped() {
        let mut text = vec![b'x'; LIMIT + 100];
        text.extend(b"\n{\"id\": 2}\n");
        let lines = all(&text, InputFormat::Jsonl);
        assert!(lines[0].1.clone().unwrap_err().contains("16 MiB"));
        assert_eq!(lines[1], (2, Ok(serde_json::json!({"id": 2}))));
        let mut text = b"id,prompt\n1,\"".to_vec();
        text.extend(vec![b'x'; 2 * LIMIT]);
        let lines = all(&text, InputFormat::Csv);
        assert_eq!(lines.len(), 1);
        assert!(lines[0].1.clone().unwrap_err().contains("quote"));
    }

    #[test]
    fn other_csv_columns_are_variables() {
        let text = "\u{feff}id,topic,prompt\n1,tea,\"a, \"\"b\"\"\nc\"\n\n2,milk\n3,oat,x\n";
        let lines = all(text.as_bytes(), InputFormat::Csv);
        let first =
            serde_json::json!({"id": "1", "prompt": "a, \"b\"\nc", "vars": {"topic": "tea"}});
        assert_eq!(lines[0], (2, Ok(first)));
        assert_eq!(lines[1].0, 4);
        assert!(lines[1].1.clone().unwrap_err().contains("2 columns"));
        assert_eq!(lines[2].0, 6);
        for bad in ["id,id\n1,2\n", "id,\n1,2\n"] {
            let lines = all(bad.as_bytes(), InputFormat::Csv);
            assert_eq!((lines.len(), lines[0].1.is_err()), (1, true), "{bad:?}");
        }
        let lines = all(b"id,prompt\n1,\xff\n2,x\n", InputFormat::Csv);
        assert!(lines[0].1.clone().unwrap_err().contains("UTF-8"));
        assert!(lines[1].1.is_ok());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            all(&text, InputFormat::Jsonl);
            all(&text, InputFormat::Csv);
        }

        #[test]
        fn ids_written_as_json_are_read_back(ids in proptest::collection::vec("\\PC{0,9}", 0..20)) {
            let lines: Vec<String> = ids.iter().map(|id| serde_json::json!({"id": id}).to_string()).collect();
            let text = lines.join("\n");
            let read: Vec<Value> = all(text.as_bytes(), InputFormat::Jsonl)
                .into_iter()
                .map(|(_, fields)| fields.unwrap()["id"].clone())
                .collect();
            prop_assert_eq!(read, ids.into_iter().map(Value::String).collect::<Vec<_>>());
        }
    }
}
