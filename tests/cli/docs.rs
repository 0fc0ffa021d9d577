//! The documentation: links resolve, examples are valid, references are complete.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Test, each};

/// Returns the project's folder.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of the documentation.
struct Document {
    /// The path relative to the project's folder.
    name: String,
    path: PathBuf,
    /// The text with `
    /// ` line ends, however the project was checked out.
    text: String,
}

fn document(path: PathBuf) -> Document {
    let name = path.strip_prefix(root()).expect("a file of the project");
    Document {
        name: name.display().to_string().replace('\\', "/"),
        text: fs::read_to_string(&path)
            .expect("a text")
            .replace("\r\n", "\n"),
        path,
    }
}

/// Returns all Markdown files for readers.
fn documents() -> Vec<Document> {
    let in_docs = fs::read_dir(root().join("docs")).expect("a folder");
    let in_docs = in_docs.map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
        .map(|name| root().join(name))
        .into_iter()
        .chain(in_docs.filter(|path| path.extension().is_some_and(|ending| ending == "md")))
        .collect();
    paths.sort();
    assert!(paths.len() > 10, "{paths:?}");
    paths.into_iter().map(document).collect()
}

/// A fenced code block: its language, its text, and its first line number.
struct Block {
    language: String,
    text: String,
    line: usize,
}

impl Document {
    fn blocks(&self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut open: Option<Block> = None;
        for (line, text) in (1..).zip(self.text.lines()) {
            match (&mut open, text.strip_prefix("```")) {
                (None, Some(language)) => {
                    open = Some(Block {
                        language: language.trim().to_owned(),
                        text: String::new(),
                        line,
                    });
                }
                (Some(_), Some("")) => blocks.extend(open.take()),
                (Some(block), _) => {
                    block.text.push_str(text);
                    block.text.push('\n');
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{}: a block has no end", self.name);
        blocks
    }

    /// Returns the text outside of code blocks, without inline code.
    fn prose(&self) -> String {
        let mut inside = false;
        let lines = self.text.lines().filter(|line| {
            let fence = line.starts_with("```");
            inside ^= fence;
            !inside && !fence
        });
        let code = regex::Regex::new("`[^`]*`").expect("a pattern");
        let prose: Vec<&str> = lines.collect();
        code.replace_all(&prose.join("\n"), "").into_owned()
    }

    /// Returns the anchors of the headings, as GitHub and mdBook generate them.
    fn anchors(&self) -> BTreeSet<String> {
        let mut inside = false;
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut anchors = BTreeSet::new();
        for line in self.text.lines() {
            inside ^= line.starts_with("```");
            let title = line.trim_start_matches('#');
            if inside || title.len() == line.len() || !title.starts_with(' ') {
                continue;
            }
            let slug: String = title
                .trim()
                .to_lowercase()
                .chars()
                .filter_map(|c| match c {
                    ' ' => Some('-'),
                    c if c.is_alphanumeric() || matches!(c, '-' | '_') => Some(c),
                    _ => None,
                })
                .collect();
            let before = seen.entry(slug.clone()).or_default();
            anchors.insert(match *before {
                0 => slug,
                before => format!("{slug}-{before}"),
            });
            *before += 1;
        }
        anchors
    }
}

#[test]
fn every_link_resolves() {
    let link = regex::Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let named = regex::Regex::new(r"\bexamples/[\w/.-]+\.(?:toml|yaml)\b").expect("a pattern");
    let mut links = 0;
    let mut broken = Vec::new();
    for document in documents() {
        let folder = document.path.parent().expect("a folder");
        for found in link.captures_iter(&document.prose()) {
            let target = &found[1];
            if target.contains("://") {
                continue;
            }
            links += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match file {
                "" => document.path.clone(),
                file => folder.join(file),
            };
            let leads_to_heading = || {
                let path = path.canonicalize().expect("a path");
                self::document(path).anchors().contains(anchor)
            };
            if !path.exists() || !anchor.is_empty() && !leads_to_heading() {
                broken.push(format!("{}: {target}", document.name));
            }
        }
        // Commands name these files relative to the project's folder.
        for file in named.find_iter(&document.text) {
            if !root().join(file.as_str()).exists() {
                broken.push(format!("{}: {}", document.name, file.as_str()));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new());
    assert!(links > 50, "{links} links");
}

/// Creates a folder with the files that the examples refer to.
fn with_files() -> Test {
    Test::new()
        .file("profile.schema.json", r#"{"type": "object"}"#)
        .file("contract.txt", "The supplier delivers on Monday.")
}

/// Creates the check for a block, by its language. TOML blocks are criteria files unless marked otherwise,
/// and YAML blocks are workflows.
fn check(block: &Block) -> Option<Test> {
    let text = block.text.as_str();
    Some(match block.language.as_str() {
        "toml" => with_files()
            .file("example.toml", text)
            .args(["criteria", "check", "example.toml"])
            .stderr_lacks("warning"),
        "toml config" => with_files().file("config.toml", text).args([
            "config",
            "show",
            "--config",
            "config.toml",
        ]),
        "toml script" => with_files()
            .file("script.toml", text)
            .file("text.md", "A text.")
            .args([
                "evaluate",
                "text.md",
                "-c",
                "task.toml",
                "-m",
                "scripted:script.toml",
            ])
            .file(
                "task.toml",
                "[[criteria]]\nname = 'clear'\ndescription = 'It is clear.'",
            ),
        "yaml" => with_files()
            .file("example.yaml", text)
            .args(["run", "example.yaml", "--check"]),
        "yaml evaluator" => with_files()
            .file("example.yaml", text)
            .file(
                "text.json",
                r#"{"name": "Ada", "email": "ada@example.org"}"#,
            )
            .args(["evaluate", "text.json", "--evaluator", "example.yaml"]),
        // For other programs; `integrations.rs` tests it.
        "yaml ci" => return None,
        other => {
            let kind = other.split(' ').next();
            assert!(
                !matches!(kind, Some("toml" | "yaml")),
                "unknown kind of block: {other}"
            );
            return None;
        }
    })
}

#[test]
fn every_example_is_valid() {
    let mut examples = Vec::new();
    for document in documents() {
        // The deployment page has examples for other programs.
        if document.name == "docs/scale.md" {
            continue;
        }
        for block in document.blocks() {
            examples.extend(check(&block).map(|_| (document.name.clone(), block)));
        }
    }
    assert!(examples.len() > 30, "{} examples", examples.len());
    each(
        &examples,
        |(name, block)| format!("{name}:{}", block.line),
        |(_, block)| {
            check(block).expect("a known kind").run();
        },
    );
}

/// Returns the text below a heading, up to the next heading of the same or a higher level.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let level = heading.split(' ').next().expect("a mark").len();
    let begin = text
        .find(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("missing heading {heading:?}"));
    let rest = &text[begin + heading.len() + 2..];
    let end = (1..=level)
        .filter_map(|level| rest.find(&format!("\n{} ", "#".repeat(level))))
        .min();
    &rest[..end.unwrap_or(rest.len())]
}

/// Returns the first column of the tables of keys.
fn table_keys(text: &str) -> BTreeSet<String> {
    let mut in_table = false;
    let mut keys = BTreeSet::new();
    for line in text.lines() {
        in_table = line.starts_with("| key |") || in_table && line.starts_with('|');
        let row = line.strip_prefix("| `").filter(|_| in_table);
        if let Some((key, _)) = row.and_then(|row| row.split_once('`')) {
            keys.insert(key.trim_matches(['[', ']']).to_owned());
        }
    }
    keys
}

fn keys(schema: &Value) -> BTreeSet<String> {
    let properties = schema["properties"].as_object().expect("properties");
    properties.keys().cloned().collect()
}

#[test]
fn the_criteria_reference_names_every_key() {
    let text = document(root().join("docs/criteria.md")).text;
    let schema = Test::new().args(["criteria", "schema"]).run().json();
    assert_eq!(
        table_keys(section(&text, "## Keys of the file")),
        keys(&schema)
    );
    let common = table_keys(section(&text, "## Keys of every criterion"));
    let kinds = schema["properties"]["criteria"]["items"]["oneOf"]
        .as_array()
        .expect("one for each evaluator");
    assert!(kinds.len() > 7, "{} evaluators", kinds.len());
    for kind in kinds {
        let all = keys(kind);
        let name = kind["properties"]["evaluator"]["const"]
            .as_str()
            .expect("its name");
        assert!(all.is_superset(&common), "{name}: {all:?}");
        let own: BTreeSet<String> = all.difference(&common).cloned().collect();
        let documented = table_keys(section(&text, &format!("### {name}")));
        assert_eq!(documented, own, "{name}");
    }
}

/// Describes the possible values in words.
fn value_of(schema: &Value) -> String {
    for key in ["anyOf", "oneOf"] {
        if let Some(several) = schema[key].as_array() {
            let mut words: Vec<String> = several.iter().map(value_of).collect();
            words.retain(|word| !word.is_empty());
            words.dedup();
            return words.join(", ");
        }
    }
    if let Some(word) = schema["const"].as_str() {
        return format!("`{word}`");
    }
    let mut kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => return "any value".to_owned(),
    };
    kinds.retain(|kind| *kind != "null");
    let bound = |key: &str| schema[key].as_f64();
    let range = match (bound("minimum"), bound("maximum")) {
        (Some(min), Some(max)) => format!(", {min} to {max}"),
        (Some(min), None) if min > 0.0 => format!(", at least {min}"),
        (None, Some(max)) => format!(", at most {max}"),
        _ => String::new(),
    };
    match kinds.first().copied() {
        None => String::new(),
        Some("string") => "text".to_owned(),
        Some("boolean") => "`true`, `false`".to_owned(),
        Some("integer") => format!("whole number{range}"),
        Some("number") => format!("number{range}"),
        Some("array") => "list".to_owned(),
        Some(_) => "table".to_owned(),
    }
}

/// Writes a table of keys, with nested tables as separate tables.
fn reference(path: &str, schema: &Value, out: &mut String) {
    use std::fmt::Write as _;

    let mut tables = Vec::new();
    let mut rows = String::new();
    for (key, value) in schema["properties"].as_object().expect("properties") {
        let named = &value["additionalProperties"];
        let path = format!("{path}{key}");
        if value["properties"].is_object() {
            tables.push((path, value));
        } else if named["properties"].is_object() && !named["properties"]["loop"].is_object() {
            tables.push((format!("{path}.NAME"), named));
        } else {
            let words = |text: &str| {
                let words: Vec<&str> = text.split_whitespace().collect();
                words.join(" ").replace('|', "\\|")
            };
            let meaning = value["description"].as_str().unwrap_or_default();
            writeln!(
                rows,
                "| `{key}` | {} | {} |",
                value_of(value),
                words(meaning)
            )
            .expect("a text");
        }
    }
    if !rows.is_empty() {
        out.push_str("| key | value | meaning |\n|---|---|---|\n");
        out.push_str(&rows);
    }
    for (path, table) in tables {
        write!(out, "\n### `[{path}]`\n\n").expect("a text");
        reference(&format!("{path}."), table, out);
    }
}

/// The tables of `docs/config.md` come from the JSON Schema of the configuration. `REFLECT_UPDATE=1`
/// regenerates them.
#[test]
fn the_configuration_reference_is_up_to_date() {
    const BEGIN: &str = "<!-- Made from `reflect config schema` by a test; do not edit. -->\n\n";
    let schema = Test::new().args(["config", "schema"]).run().json();
    let mut tables = String::new();
    reference("", &schema, &mut tables);
    let document = document(root().join("docs/config.md"));
    let (prose, kept) = document.text.split_once(BEGIN).expect("the mark");
    if std::env::var_os("REFLECT_UPDATE").is_some_and(|value| value == "1") {
        fs::write(&document.path, format!("{prose}{BEGIN}{tables}")).expect("a file");
    } else {
        assert!(
            kept == tables,
            "docs/config.md is not up to date; write it anew with\n\
             REFLECT_UPDATE=1 cargo test --test cli up_to_date"
        );
    }
}
