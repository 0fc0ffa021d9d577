//! `reflect memory learn`: derives insights from the run log.

use std::sync::Arc;

use jiff::Timestamp;

use super::{add_entries, list};
use crate::cli::args::{GlobalArgs, LearnArgs};
use crate::cli::commands::history::when;
use crate::cli::error::CliError;
use crate::cli::verbose::Verbosity;
use crate::cli::{learning, models, paths, printer, settings};
use crate::memory::{apply_wording, learn as lessons, wording_schema};
use crate::model::{ChatRequest, Purpose, ResponseSchema, call};
use crate::prompt::word_insights;
use crate::store::{RunFilter, Store};
use crate::text::counted;
use crate::types::{Knowledge, KnownInsight};

/// Stores insights from the run log. Returns a table of the new and changed entries.
pub(super) async fn learn(args: &LearnArgs, global: &GlobalArgs) -> Result<String, CliError> {
    settings::check_model(&args.model, args.llm)?;
    let since = args
        .since
        .as_deref()
        .map(|it| when::parse("--since", it))
        .transpose()?;
    let Some(mut store) = Store::open_existing(&paths::store()?)? else {
        printer::say("no runs yet");
        return Ok(String::new());
    };
    let filter = RunFilter {
        limit: Some(learning::RUNS),
        since,
        ..RunFilter::default()
    };
    let runs = store.runs(&filter)?.into_iter().map(|run| run.run_id);
    let episodes = learning::episodes(&store, runs);
    let mut learned = lessons(&episodes);
    if args.llm && !learned.is_empty() {
        word(&mut learned, args, global).await?;
    }
    let found = learned.len();
    let changed = add_entries(
        &mut store,
        learned.into_iter().map(Knowledge::Insight).collect(),
    )?;
    if !global.quiet {
        let runs = counted(episodes.len(), "run");
        printer::say(&if found == 0 {
            format!("nothing to learn from {runs}: no issue recurs often enough")
        } else {
            format!("{runs}: {}", learning::changes(found, &changed))
        });
    }
    let known = store.memories()?;
    let shown = known.iter().filter(|memory| {
        changed.added.contains(&memory.id) || changed.replaced.contains(&memory.id)
    });
    Ok(list::table(shown, Timestamp::now()))
}

/// Lets a model phrase the insights. If it fails for some, they keep the wording of the rules.
async fn word(
    learned: &mut [KnownInsight],
    args: &LearnArgs,
    global: &GlobalArgs,
) -> Result<(), CliError> {
    let plan = settings::models(settings::load(global)?, &args.model, global)?;
    let (model, sampling) = models::open_alone(&plan, global.quiet).await?;
    let texts: Vec<&str> = learned.iter().map(|it| it.content.as_str()).collect();
    let request = ChatRequest {
        sampling,
        schema: Some(Arc::new(ResponseSchema::new("insights", wording_schema()))),
        think: plan.settings().think.unwrap_or_default(),
        ..ChatRequest::new(Purpose::Write, word_insights(&texts))
    };
    let observer = Verbosity::of(global).observer("wording");
    let problem = match call(&*model, request, &observer).await {
        Ok(reply) => match (apply_wording(learned, &reply.text), learned.len()) {
            (worded, all) if worded == all => return Ok(()),
            (worded, all) => format!("its reply covers {worded} of {all}"),
        },
        Err(error) => error.to_string(),
    };
    printer::say(&format!(
        "warning: the model did not phrase all insights; the rest are phrased by rules: {problem}"
    ));
    Ok(())
}
