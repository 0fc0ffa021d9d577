use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    builtin::{self, TASK_TYPES},
    check, kinds,
};
use crate::{
    source::{self, FileAccess, Source, SourceError},
    types::{Criteria, Criterion, JudgeSettings, LoopSettings, ProbeTexts},
};

/// The top-level keys of a criteria file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TopLevelKeys {
    /// The set's name. Default: the file name without `.toml`.
    name: Option<String>,
    /// A description of the set, one sentence.
    description: Option<String>,
    /// The kind of text: `code`, `writing`, `analysis` or `reasoning`. A file without its own
    /// criteria uses the built-in set of that name.
    task_type: Option<String>,
    /// The minimum weighted mean of the criteria's scores. Default: 0.8, or that of the built-in
    /// set.
    #[schemars(range(min = 0, max = 1))]
    threshold: Option<f64>,
    /// Defaults of the loop for these criteria. Flags and environment variables override them.
    #[serde(rename = "loop")]
    loop_settings: Option<LoopSettings>,
    /// Defaults of the judge for these criteria. Flags and environment variables override them.
    judge: Option<JudgeSettings>,
    /// The texts that test the judge if `judge.probe` is set.
    probe: Option<ProbeTexts>,
    #[expect(dead_code, reason = "here so that it is a known key")]
    /// Parsed separately, because the allowed keys depend on the evaluator.
    #[schemars(skip)]
    criteria: Option<IgnoredAny>,
}

/// The keys that every criterion has, whatever its evaluator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct CommonKeys {
    /// The name, unique in the file.
    name: String,
    /// What the criterion requires, in one or two sentences. The judge and the writer read it.
    #[serde(default)]
    description: String,
    /// The weight in the weighted mean, above 0. Default: 1.
    weight: Option<f64>,
    /// The floor: a draft with a lower score is not satisfactory, whatever the mean. Default: 0.7;
    /// 1 for `regex`, `length`, `contains`, `schema`, and `compare` without a judge.
    #[schemars(range(min = 0, max = 1))]
    threshold: Option<f64>,
    /// Whether the draft fails outright if this criterion is not met: the judge is then skipped,
    /// and no revision that breaks the criterion is kept. Default: false.
    #[serde(default)]
    required: bool,
    /// The evaluator that computes the score. Default: `llm`.
    #[expect(
        dead_code,
        reason = "here so that it is a known key; it is read before the rest"
    )]
    evaluator: Option<String>,
}

/// Reads a criteria file. `reach` returns which files it may refer to, given its full path.
pub fn load(path: &Path, reach: &dyn Fn(&Path) -> FileAccess) -> Result<Criteria, SourceError> {
    read_source(&source::read(path)?.with_file_access(reach))
}

/// Parses the text of a criteria file. `name` stands for its path in errors, and for the set's name
/// if the text gives none.
pub fn parse(text: &str, name: &str) -> Result<Criteria, SourceError> {
    read_source(&Source::new(name, text))
}

/// Writes criteria as the text of a criteria file that parses back to the same criteria. Returns
/// `None` for criteria that no file can express.
pub fn to_toml(criteria: &Criteria) -> Option<String> {
    toml::to_string_pretty(criteria).ok()
}

pub(super) fn read_source(source: &Source) -> Result<Criteria, SourceError> {
    if source.is_blank() {
        return Err(source
            .file_error("this criteria file is empty")
            .help("the shortest one is: task_type = \"code\""));
    }
    let mut table = source::table(source)?;
    let outline = table.get_ref().clone();
    let tables = table.get_mut().remove("criteria");
    let head: TopLevelKeys = source::table_into(source, table)?;
    check_head(source, &outline, &head)?;

    let own = match tables {
        Some(value) => read_criteria(source, value)?,
        None => Vec::new(),
    };
    let base = match head.task_type.as_deref().and_then(builtin::text) {
        Some(text) if own.is_empty() => Some(parse(text, "built-in")?),
        _ => None,
    };
    if own.is_empty() && base.is_none() {
        return Err(source.file_error("this file has no criteria").help(format!(
            "add a `[[criteria]]` table, or `task_type` for a built-in set: {}",
            source::list(TASK_TYPES.iter().copied())
        )));
    }
    let base = base.unwrap_or(Criteria::new(String::new(), own));
    Ok(Criteria {
        name: head.name.unwrap_or_else(|| default_name(source.name())),
        description: head.description.or(base.description),
        threshold: head.threshold.unwrap_or(base.threshold),
        loop_settings: head
            .loop_settings
            .unwrap_or_default()
            .or(&base.loop_settings),
        judge_settings: head.judge.unwrap_or_default().or(&base.judge_settings),
        probe: head.probe.unwrap_or(base.probe),
        criteria: base.criteria,
    })
}

/// Returns the default name of a set: the file name without directory and extension.
fn default_name(file: &str) -> String {
    Path::new(file)
        .file_stem()
        .and_then(|s| s.to_str())
        .map(|s| s.trim_matches(['<', '>']))
        .filter(|s| !s.is_empty() && *s != "-")
        .unwrap_or("criteria")
        .to_owned()
}

fn check_head(
    source: &Source,
    outline: &DeTable<'_>,
    head: &TopLevelKeys,
) -> Result<(), SourceError> {
    let span = |path: &[&str]| source::value_span(outline, path).unwrap_or(0..0);
    if head.name.as_ref().is_some_and(|n| n.trim().is_empty()) {
        return Err(source.error(span(&["name"]), "the name is empty"));
    }
    if let Some(threshold) = head.threshold {
        check::threshold(source, span(&["threshold"]), threshold)?;
    }
    if let Some(task_type) = &head.task_type
        && !TASK_TYPES.contains(&task_type.as_str())
    {
        let near = source::similar(task_type, TASK_TYPES.iter().copied());
        return Err(source
            .error(
                span(&["task_type"]),
                &format!("`task_type`: unknown value `{task_type}`"),
            )
            .help_if(near.map(|n| format!("did you mean `{n}`?")))
            .help(format!(
                "known values: {}",
                source::list(TASK_TYPES.iter().copied())
            )));
    }
    if let Some(settings) = &head.loop_settings {
        settings
            .check()
            .map_err(|(key, message)| source.error(span(&["loop", key]), &message))?;
    }
    if let Some(settings) = &head.judge {
        settings
            .check()
            .map_err(|(key, message)| source.error(span(&["judge", key]), &message))?;
    }
    if let Some(texts) = &head.probe {
        for (key, text) in [("good", &texts.good), ("bad", &texts.bad)] {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                return Err(source.error(span(&["probe", key]), &format!("`probe.{key}` is empty")));
            }
        }
    }
    Ok(())
}

fn read_criteria(
    source: &Source,
    value: Spanned<DeValue<'_>>,
) -> Result<Vec<Criterion>, SourceError> {
    let span = value.span();
    let wrong = |span| {
        source
            .error(span, "`criteria` must be an array of tables")
            .help("write each criterion under its own `[[criteria]]`, in two brackets")
    };
    let DeValue::Array(items) = value.into_inner() else {
        return Err(wrong(span));
    };
    let mut criteria = Vec::new();
    for item in items {
        let span = item.span();
        match item.into_inner() {
            DeValue::Table(table) => criteria.push(read_criterion(source, table, span)?),
            _ => return Err(wrong(span)),
        }
    }
    check::names(source, &criteria)?;
    check::patterns(source, &criteria, check::PATTERNS_SIZE_LIMIT)?;
    Ok(criteria
        .into_iter()
        .map(|(criterion, _)| criterion)
        .collect())
}

/// Reads one `[[criteria]]` table and returns it with the span of its name.
fn read_criterion(
    source: &Source,
    table: DeTable<'_>,
    span: std::ops::Range<usize>,
) -> Result<(Criterion, std::ops::Range<usize>), SourceError> {
    let kind = kinds::of_table(source, &table)?;
    let outline = table.clone();
    let common_keys = source::fields::<CommonKeys>();
    let mut common = DeTable::new();
    let mut config = DeTable::new();
    for (key, value) in table {
        if common_keys.contains(&key.get_ref().as_ref()) {
            common.insert(key, value);
        } else {
            config.insert(key, value);
        }
    }
    kinds::check_keys(source, kind, &config)?;
    let common: CommonKeys = source::table_into(source, Spanned::new(span.clone(), common))?;
    let at = |key| source::value_span(&outline, &[key]).unwrap_or(span.clone());
    let weight = common.weight.unwrap_or(1.0);
    check::weight(source, at("weight"), weight)?;
    let evaluator = (kind.read)(source, Spanned::new(span.clone(), config))?;
    let threshold = common
        .threshold
        .unwrap_or_else(|| evaluator.default_floor());
    check::threshold(source, at("threshold"), threshold)?;
    let criterion = Criterion {
        name: common.name,
        description: common.description,
        weight,
        threshold,
        required: common.required,
        evaluator,
    };
    Ok((criterion, at("name")))
}
