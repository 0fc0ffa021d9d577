use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    builtin::{self, BUILTIN_NAMES},
    check, kinds,
};
use crate::{
    source::{self, Reach, Source, SourceError},
    types::{Criteria, Criterion, DEFAULT_THRESHOLD, JudgeSettings, LoopSettings, ProbeTexts},
};

/// The keys of a criteria file outside of its criteria.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// The set's name, as shown to people. Default: the file's name without `.toml`.
    name: Option<String>,
    /// One sentence about the set.
    description: Option<String>,
    /// What kind of text is measured: `code`, `writing`, `analysis` or `reasoning`. In a file without
    /// criteria of its own, the built-in set of that name is used.
    task_type: Option<String>,
    /// The weighted mean of the criteria's scores must reach this. Default: 0.8, or the built-in
    /// set's.
    #[schemars(range(min = 0, max = 1))]
    threshold: Option<f64>,
    /// Defaults of the loop for these criteria; flags and environment go before them.
    #[serde(rename = "loop")]
    loop_settings: Option<LoopSettings>,
    /// How the judge is asked for these criteria; flags and environment go before it.
    judge: Option<JudgeSettings>,
    /// Texts that the judge is tried on where `judge.probe` is set.
    probe: Option<ProbeTexts>,
    #[expect(dead_code, reason = "here so that it is a known key")]
    /// Read by hand, since which keys a criterion may have depends on its evaluator.
    #[schemars(skip)]
    criteria: Option<IgnoredAny>,
}

/// The keys that every criterion has, whatever its evaluator.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Common {
    /// Unique in its file.
    name: String,
    /// What is measured, in one or two sentences; the judge and the writer read it.
    #[serde(default)]
    description: String,
    /// Share in the weighted mean, above 0. Default: 1.
    weight: Option<f64>,
    /// The floor: a draft with a lower score is not satisfactory, whatever the mean. Default: 0.7;
    /// 1 for `regex`, `length`, `contains`, `schema`, and `compare` without a judge.
    #[schemars(range(min = 0, max = 1))]
    threshold: Option<f64>,
    /// Whether nothing else counts where it is not met: the judge is not asked then, and no revision
    /// that loses it is taken. Default: false.
    #[serde(default)]
    required: bool,
    /// What gives the score. Default: `llm`.
    #[expect(
        dead_code,
        reason = "here so that it is a known key; it is read before the rest"
    )]
    evaluator: Option<String>,
}

/// Reads a criteria file. `reach` says which files it may refer to, from its full path.
pub fn load(path: &Path, reach: &dyn Fn(&Path) -> Reach) -> Result<Criteria, SourceError> {
    read_source(&source::read(path)?.with_reach(reach))
}

/// Reads the text of a criteria file; the name stands for its path in errors, and for the set's name if
/// the text gives none.
pub fn parse(text: &str, name: &str) -> Result<Criteria, SourceError> {
    read_source(&Source::new(name, text))
}

/// Criteria as the text of a criteria file that reads as the same criteria. `None` if they are none
/// that a file could hold.
pub fn to_toml(criteria: &Criteria) -> Option<String> {
    toml::to_string_pretty(criteria).ok()
}

pub(super) fn read_source(source: &Source) -> Result<Criteria, SourceError> {
    if source.is_blank() {
        return Err(source
            .error_of_whole("there is nothing in this criteria file")
            .help("the shortest one is: task_type = \"code\""));
    }
    let mut table = source::table(source)?;
    let outline = table.get_ref().clone();
    let tables = table.get_mut().remove("criteria");
    let head: Head = source::table_into(source, table)?;
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
        return Err(source
            .error_of_whole("there are no criteria in this file")
            .help(format!(
                "add a `[[criteria]]` table, or `task_type` for a built-in set: {}",
                source::list(BUILTIN_NAMES.iter().copied())
            )));
    }
    let base = base.unwrap_or(Criteria {
        name: String::new(),
        description: None,
        threshold: DEFAULT_THRESHOLD,
        loop_settings: LoopSettings::default(),
        judge_settings: JudgeSettings::default(),
        probe: ProbeTexts::default(),
        criteria: own,
    });
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

/// The name of a set whose file gives none: the file's own, without directory and ending.
fn default_name(file: &str) -> String {
    Path::new(file)
        .file_stem()
        .and_then(|s| s.to_str())
        .map(|s| s.trim_matches(['<', '>']))
        .filter(|s| !s.is_empty() && *s != "-")
        .unwrap_or("criteria")
        .to_owned()
}

fn check_head(source: &Source, outline: &DeTable<'_>, head: &Head) -> Result<(), SourceError> {
    let span = |path: &[&str]| source::value_span(outline, path).unwrap_or(0..0);
    if head.name.as_ref().is_some_and(|n| n.trim().is_empty()) {
        return Err(source.error(span(&["name"]), "the name is empty"));
    }
    if let Some(threshold) = head.threshold {
        check::threshold(source, span(&["threshold"]), threshold)?;
    }
    if let Some(task_type) = &head.task_type
        && !BUILTIN_NAMES.contains(&task_type.as_str())
    {
        let near = source::similar(task_type, BUILTIN_NAMES.iter().copied());
        return Err(source
            .error(
                span(&["task_type"]),
                &format!("`task_type`: unknown value `{task_type}`"),
            )
            .help_if(near.map(|n| format!("did you mean `{n}`?")))
            .help(format!(
                "known values: {}",
                source::list(BUILTIN_NAMES.iter().copied())
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
                return Err(source.error(
                    span(&["probe", key]),
                    &format!("`probe.{key}` is empty: there is nothing to judge"),
                ));
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

/// Reads one `[[criteria]]` table; returns it with the place of its name.
fn read_criterion(
    source: &Source,
    table: DeTable<'_>,
    span: std::ops::Range<usize>,
) -> Result<(Criterion, std::ops::Range<usize>), SourceError> {
    let kind = kinds::of_table(source, &table)?;
    let outline = table.clone();
    let common_keys = source::fields::<Common>();
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
    let common: Common = source::table_into(source, Spanned::new(span.clone(), common))?;
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
