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

use super::{EvaluatorKind, place_of};
use crate::criteria::json_schema::{self, Compiled};
use crate::source::{self, Data, FileAccess, Source, SourceError};
use crate::types::{Evaluator, SchemaConfig};

pub(super) const KIND: EvaluatorKind = EvaluatorKind {
    name: "schema",
    keys: source::fields::<SchemaKeys>,
    schema: source::schema_of::<SchemaKeys>,
    read,
};

/// The keys of a `schema` criterion: the JSON value in the draft must be valid under a JSON Schema.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "`schema` and `documents` are taken out before, with their places"
)]
struct SchemaKeys {
    /// The JSON Schema: draft 4, 6, 7, 2019-09 or 2020-12, according to its `$schema`. Set
    /// either this or `file`.
    schema: Option<Value>,
    /// A file with the JSON Schema, in JSON, YAML or TOML, within the criteria file's folder. It
    /// may be elsewhere if the user trusts the criteria file.
    file: Option<String>,
    /// The base path of the inline schema, relative to the criteria file's folder: relative `$ref`s
    /// are resolved against it. Default: that folder.
    base: Option<String>,
    /// Documents that `$ref`s refer to, by URL: the document itself, or a file that contains it.
    /// Other documents are read from the criteria file's folder, or from elsewhere if the user
    /// trusts the criteria file.
    #[serde(default)]
    documents: BTreeMap<String, Value>,
    /// Whether values of the wrong type are converted where this is unambiguous: "42" to a number,
    /// "yes" to true, 7 to a string. Default: true.
    coerce: Option<bool>,
    /// Whether `format` is checked. Default: false.
    formats: Option<bool>,
}

/// The options for applying a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::criteria) struct SchemaOptions {
    pub(in crate::criteria) coerce: bool,
    pub(in crate::criteria) formats: bool,
}

impl Default for SchemaOptions {
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
    let keys: SchemaKeys = source::table_into(source, table)?;
    let (folder, reach) = (source.folder(), source.file_access());
    let options = SchemaOptions {
        coerce: keys.coerce.unwrap_or(true),
        formats: keys.formats.unwrap_or(false),
    };
    let inline_documents = match documents {
        Some(documents) => read_documents(source, documents)?,
        None => IndexMap::new(),
    };
    match (schema, keys.file) {
        (Some(schema), Some(_)) => Err(source
            .error(schema.span(), "both `schema` and `file` are set")
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
            let root = Data::from_toml(source, schema)?;
            assemble(&root, keys.base, inline_documents, (folder, reach), options)
        }
        (None, Some(_)) if keys.base.is_some() => Err(source
            .error(
                base_span,
                "`base` applies only to a schema written in this file",
            )
            .help("the base of a schema file is the file itself; remove `base`")),
        (None, Some(file)) => {
            let place = |message: &str| source.error(file_span.clone(), message);
            let (base, root) = json_schema::open(&file, folder, reach, &place)?;
            assemble(
                &root,
                Some(base),
                inline_documents,
                (folder, reach),
                options,
            )
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
                    json_schema::open(file, source.folder(), source.file_access(), &place)?.1
                }
                _ => Data::from_toml(source, document)?,
            };
            Ok((name.into_inner().into_owned(), data))
        })
        .collect()
}

/// Builds the evaluator of a schema: loads what it refers to and checks everything.
pub(in crate::criteria) fn assemble(
    root: &Data,
    base: Option<String>,
    inline_documents: IndexMap<String, Data>,
    (folder, reach): (Option<&Path>, FileAccess),
    options: SchemaOptions,
) -> Result<Evaluator, SourceError> {
    let documents = json_schema::gather(root, base.as_deref(), inline_documents, folder, reach)?;
    let config = SchemaConfig {
        schema: root.value().clone(),
        base,
        documents: documents
            .iter()
            .map(|(name, data)| (name.clone(), data.value().clone()))
            .collect(),
        coerce: options.coerce,
        formats: options.formats,
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
