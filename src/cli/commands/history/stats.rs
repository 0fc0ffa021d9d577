//! `reflect history stats`: reports how much the loop improved scores in recorded runs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::when;
use crate::bench::stats::{count, mean};
use crate::cli::args::StatsArgs;
use crate::cli::error::CliError;
use crate::cli::printer;
use crate::report::thousands;
use crate::store::{RunFilter, RunSummary, Store};
use crate::text::plural;

/// Statistics of the runs with the same criteria and writer.
#[derive(Debug, PartialEq, Serialize)]
struct Stats {
    criteria: String,
    model: String,
    /// The number of runs with a score for both the first and the selected version.
    runs: usize,
    /// The share of runs that met the criteria.
    met: f64,
    /// The mean score of the first version.
    first_score: f64,
    /// The mean score of the selected version.
    overall_score: f64,
    /// The share of runs whose selected version scores higher than the first.
    better: f64,
    /// The share of runs whose selected version scores lower than the first.
    worse: f64,
    /// The mean tokens of a run, over the runs that report them.
    tokens: Option<f64>,
    /// The score gained per 1,000 tokens.
    gain_per_1000_tokens: Option<f64>,
}

impl Stats {
    fn of(criteria: &str, model: &str, runs: &[&Scored<'_>]) -> Self {
        let each = |value: &dyn Fn(&Scored<'_>) -> f64| {
            let values: Vec<f64> = runs.iter().map(|run| value(run)).collect();
            mean(&values)
        };
        let share = |which: &dyn Fn(&Scored<'_>) -> bool| {
            count(runs.iter().filter(|run| which(run)).count()) / count(runs.len())
        };
        let known: Vec<(f64, f64)> = runs
            .iter()
            .filter_map(|run| Some((run.score - run.first, tokens(run.run.tokens?))))
            .collect();
        let used: f64 = known.iter().map(|(_, tokens)| tokens).sum();
        let gained: f64 = known.iter().map(|(gain, _)| gain).sum();
        Self {
            criteria: criteria.to_owned(),
            model: model.to_owned(),
            runs: runs.len(),
            met: share(&|run| run.run.success == Some(true)),
            first_score: each(&|run| run.first),
            overall_score: each(&|run| run.score),
            better: share(&|run| run.score > run.first),
            worse: share(&|run| run.score < run.first),
            tokens: (!known.is_empty()).then(|| used / count(known.len())),
            gain_per_1000_tokens: (used > 0.0).then(|| 1000.0 * gained / used),
        }
    }
}

/// A run with scores for its first and its selected version.
struct Scored<'a> {
    run: &'a RunSummary,
    first: f64,
    score: f64,
}

/// Formats the statistics.
pub(super) fn stats(args: &StatsArgs, store: Option<&Store>) -> Result<String, CliError> {
    let since = args.since.as_deref();
    let filter = RunFilter {
        since: since.map(|it| when::parse("--since", it)).transpose()?,
        model: args.model.clone(),
        criteria: args.criteria.clone(),
        ..RunFilter::default()
    };
    let runs = match store {
        Some(store) => store.runs(&filter)?,
        None => Vec::new(),
    };
    let groups = groups(&runs);
    if args.json {
        return printer::json(&groups);
    }
    if groups.is_empty() {
        printer::say("no matching runs with scores yet");
    }
    Ok(table(&groups))
}

/// Groups runs by criteria and writer, most runs first.
fn groups(runs: &[RunSummary]) -> Vec<Stats> {
    let scored = runs.iter().filter(|run| run.command != "evaluate");
    let scored = scored.filter_map(|run| {
        let (first, score) = (run.first_score?, run.overall_score?);
        Some(Scored { run, first, score })
    });
    let scored: Vec<Scored<'_>> = scored.collect();
    let mut groups: BTreeMap<(&str, &str), Vec<&Scored<'_>>> = BTreeMap::new();
    for scored in &scored {
        let key = (scored.run.criteria.as_str(), scored.run.writer.as_str());
        groups.entry(key).or_default().push(scored);
    }
    let groups = groups.into_iter();
    let mut groups: Vec<Stats> = groups
        .map(|((criteria, model), runs)| Stats::of(criteria, model, &runs))
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.runs));
    groups
}

fn table(groups: &[Stats]) -> String {
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    groups
        .iter()
        .map(|group| {
            let runs = plural(group.runs, "run", "runs");
            let mut line = format!(
                "{} · {}: {} {runs}, {} met; score {:.2} → {:.2}; {} better, {} worse",
                group.criteria,
                group.model,
                thousands(group.runs as u64),
                percent(group.met),
                group.first_score,
                group.overall_score,
                percent(group.better),
                percent(group.worse)
            );
            if let Some(gain) = group.gain_per_1000_tokens {
                line = format!("{line}; {gain:+.3} per 1,000 tokens");
            }
            printer::without_controls(&line).into_owned() + "\n"
        })
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "no run has 2^53 tokens")]
fn tokens(number: u64) -> f64 {
    number as f64
}
