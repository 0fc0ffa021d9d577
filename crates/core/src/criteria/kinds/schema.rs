use std::collections::BTreeMap;
use std::path::Path;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{Kind, place_of};
use crate::criteria::json_schema::{self, Compiled};
use crate::source::{self, Data, Reach, Source, SourceError};
use crate::types::{Evaluator, SchemaConfig};

pub(super) const KIND: Kind = Kind {
    name: "schema",
    keys: source::fields::<Keys>,
    schema: source::schema_of::<Keys>,
    read,
};

/// The keys of a `schema` criterion: the JSON value in the draft must be valid under a JSON Schema.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "`schema` and `documents` are taken out before, with their places"
)]
struct Keys {
    /// The JSON Schema itself: draft 4, 6, 7, 2019-09 or 2020-12, as its `$schema` says. This, or
    /// `file`.
    schema: Option<Value>,
    /// The file that the JSON Schema is in: JSON, YAML or TOML, in the criteria file's folder; elsewhere if
    /// the user trusts the criteria file.
    file: Option<String>,
    /// Where the inline schema is taken to stand, seen from the criteria file's folder: relative
    /// `$ref`s start there. Default: in that folder.
    base: Option<String>,
    /// Documents that `$ref`s lead to, by their URLs: the document itself, or the file that it is in.
    /// Those that are not here are read from the criteria file's folder; from elsewhere if the user trusts
    /// the criteria file.
    #[serde(default)]
    documents: BTreeMap<String, Value>,
    /// Whether a value of the wrong type is read as the right one where that is beyond doubt: "42" as
    /// a number, "yes" as true, 7 as a text. Default: true.
    coerce: Option<bool>,
    /// Whether `format` is checked. Default: false.
    formats: Option<bool>,
}

/// How a schema is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::criteria) struct Manner {
    pub(in crate::criteria) coerce: bool,
    pub(in crate::criteria) formats: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self {
            coerce: true,
            formats: false,
        }
    }
}

fn read(source: &Source, mut table: Spanned<DeTable<'_>>) -> Result<Evaluator, SourceError> {
    let whole = table.span();
    let file_span = place_of(&table, "file");
    let base_span = place_of(&table, "base");
    let schema = table.get_mut().remove("schema");
    let documents = table.get_mut().remove("documents");
    let keys: Keys = source::table_into(source, table)?;
    let (folder, reach) = (source.folder(), source.reach());
    let manner = Manner {
        coerce: keys.coerce.unwrap_or(true),
        formats: keys.formats.unwrap_or(false),
    };
    let given = match documents {
        Some(documents) => read_documents(source, documents)?,
        None => IndexMap::new(),
    };
    match (schema, keys.file) {
        (Some(schema), Some(_)) => Err(source
            .error(schema.span(), "there are both a `schema` and a `file`")
            .also(file_span, "`file` is here")
            .help("keep one of them")),
        (None, None) => Err(source
            .error(whole, "a schema criterion needs `schema` or `file`")
            .help("for example: file = \"profile.schema.json\"")),
        (Some(schema), None) => {
            if let DeValue::String(text) = schema.get_ref() {
                return Err(source
                    .error(
                        schema.span(),
                        "`schema` must be the schema itself, in a table",
                    )
                    .help(format!("to name a file, write: file = \"{text}\"")));
            }
            let root = Data::of_toml(source, schema)?;
            assemble(&root, keys.base, given, (folder, reach), manner)
        }
        (None, Some(_)) if keys.base.is_some() => Err(source
            .error(base_span, "`base` is for a schema that stands in this file")
            .help("a schema of a file stands where the file is; leave `base` out")),
        (None, Some(file)) => {
            let place = |message: &str| source.error(file_span.clone(), message);
            let (base, root) = json_schema::open(&file, folder, reach, &place)?;
            assemble(&root, Some(base), given, (folder, reach), manner)
        }
    }
}

fn read_documents(
    source: &Source,
    documents: Spanned<DeValue<'_>>,
) -> Result<IndexMap<String, Data>, SourceError> {
    let span = documents.span();
    let DeValue::Table(table) = documents.into_inner() else {
        return Err(source.error(span, "`documents`: expected a table"));
    };
    table
        .into_iter()
        .map(|(name, document)| {
            let span = document.span();
            let data = match document.get_ref() {
                DeValue::String(file) => {
                    let place = |message: &str| source.error(span.clone(), message);
                    json_schema::open(file, source.folder(), source.reach(), &place)?.1
                }
                _ => Data::of_toml(source, document)?,
            };
            Ok((name.into_inner().into_owned(), data))
        })
        .collect()
}

/// Makes the evaluator of a schema: reads what it refers to, and checks all of it.
pub(in crate::criteria) fn assemble(
    root: &Data,
    base: Option<String>,
    given: IndexMap<String, Data>,
    (folder, reach): (Option<&Path>, Reach),
    manner: Manner,
) -> Result<Evaluator, SourceError> {
    let documents = json_schema::gather(root, base.as_deref(), given, folder, reach)?;
    let config = SchemaConfig {
        schema: root.value().clone(),
        base,
        documents: documents
            .iter()
            .map(|(name, data)| (name.clone(), data.value().clone()))
            .collect(),
        coerce: manner.coerce,
        formats: manner.formats,
    };
    Compiled::new(&config).map_err(|problem| {
        let data = problem
            .document
            .and_then(|name| documents.get(&name))
            .unwrap_or(root);
        data.error(&problem.pointer, &problem.message)
            .help_if(problem.hint)
    })?;
    Ok(Evaluator::Schema(config))
}
