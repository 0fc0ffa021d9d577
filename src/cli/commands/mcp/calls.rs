//! What the tools do: the same runs as on the command line.

use rmcp::model::CallToolResult;
use tokio_util::sync::CancellationToken;

use super::arguments::{CallLimits, DraftCall, EvaluateCall, ReviseCall, ShowCall};
use super::names::CriteriaNames;
use super::notify::Notifier;
use super::outcome::{self, CriteriaList, Outcome};
use crate::cli::args::{GlobalArgs, McpArgs};
use crate::cli::commands::criteria::Listed;
use crate::cli::commands::evaluate::ReadyJudge;
use crate::cli::commands::history::show;
use crate::cli::commands::session::ReadyRun;
use crate::cli::error::CliError;
use crate::cli::progress::Progress;
use crate::cli::run_inputs::RunInputs;
use crate::cli::settings;
use crate::cli::store::SharedStore;
use crate::engine::{Start, Text};
use crate::report;
use crate::types::{ContextBlock, RunRecord, Task};

/// Makes the calls, with the options that the server was started with.
pub(super) struct Calls {
    args: McpArgs,
    global: GlobalArgs,
    names: CriteriaNames,
}

impl Calls {
    /// # Errors
    /// If no call could succeed: the folders, the configuration or the flags are wrong.
    pub(super) fn new(args: &McpArgs, global: &GlobalArgs) -> Result<Self, CliError> {
        let quiet = GlobalArgs {
            quiet: true,
            ..global.clone()
        };
        settings::run(&args.run(None), true, &quiet)?;
        Ok(Self {
            args: args.clone(),
            global: global.clone(),
            names: CriteriaNames::new(&args.criteria_dir)?,
        })
    }

    pub(super) async fn draft(
        &self,
        call: DraftCall,
        notifier: Option<Notifier>,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, CliError> {
        let context = call.context.map(|content| ContextBlock {
            name: "context".to_owned(),
            content,
        });
        let task = Task {
            prompt: filled(call.prompt, "the prompt")?,
            context: context.into_iter().collect(),
            ..Task::default()
        };
        let criteria = call.criteria.as_deref();
        let given = (task, Start::Task);
        self.run(criteria, &call.limits, given, notifier, cancel)
            .await
    }

    pub(super) async fn revise(
        &self,
        call: ReviseCall,
        notifier: Option<Notifier>,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, CliError> {
        let task = Task::new(call.prompt.unwrap_or_default());
        let given = (task, Start::Text(text(call.text)?));
        let criteria = Some(call.criteria.as_str());
        self.run(criteria, &call.limits, given, notifier, cancel)
            .await
    }

    /// Runs the loop.
    async fn run(
        &self,
        criteria: Option<&str>,
        limits: &CallLimits,
        given: (Task, Start),
        notifier: Option<Notifier>,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, CliError> {
        let criteria = criteria.map(|name| self.names.find(name)).transpose()?;
        let args = self.args.run(criteria);
        let quiet = self.global.quiet;
        let mut plan = settings::run(&args, true, &self.global)?;
        limits.lower(&mut plan.resolved.settings.loop_settings)?;
        let inputs = RunInputs::of_run(&args, &plan, quiet, || Ok(given))?;
        let mut ready = ReadyRun::open(&args, &plan, inputs, cancel, quiet).await?;
        let drafts = plan.settings().loop_settings.max_iterations();
        let receiver = notifier.map(|notifier| notifier.receiver(drafts));
        let mut shown = Progress::new(&self.global).received_by(receiver);
        let record = ready.run(&mut shown, None, cancel, quiet).await;
        let draft = record.selected().map(|version| version.output.clone());
        let texts = draft.into_iter().chain([report::summary(&record)]);
        Ok(outcome::of_run(&record, texts.collect(), true))
    }

    pub(super) async fn evaluate(
        &self,
        call: EvaluateCall,
        notifier: Option<Notifier>,
        cancel: &CancellationToken,
    ) -> Result<CallToolResult, CliError> {
        let text = text(call.text)?;
        let args = self
            .args
            .evaluate(self.names.find(&call.criteria)?, call.prompt);
        let quiet = self.global.quiet;
        let plan = settings::evaluate(&args, &self.global)?;
        let inputs = RunInputs::of_texts(&args, &plan, quiet)?;
        let (longest, no_log) = (&text.content, self.args.no_log);
        let mut ready = ReadyJudge::open(plan, inputs, longest, no_log, cancel, quiet).await?;
        let receiver = notifier.map(|notifier| notifier.receiver(1));
        let mut shown = Progress::of_text("text", &self.global).received_by(receiver);
        let record = ready.judge(text, &mut shown, cancel).await;
        let texts = vec![report::critique_text("text", &record)];
        Ok(outcome::of_run(&record, texts, false))
    }

    pub(super) fn list_criteria(&self) -> Result<CallToolResult, CliError> {
        let config = settings::load(&self.global)?;
        let allowed = self.args.loops.allow_exec;
        let reach = |file: &std::path::Path| settings::reach(&config, allowed, file);
        let sets = self.names.all().into_iter();
        let criteria: Vec<Listed> = sets.map(|set| Listed::of(set, &reach)).collect();
        let lines: Vec<String> = criteria.iter().map(Listed::line).collect();
        Ok(outcome::answer(
            vec![lines.join("\n")],
            &CriteriaList { criteria },
        ))
    }

    pub(super) fn show_run(call: &ShowCall) -> Result<CallToolResult, CliError> {
        let store = SharedStore::open_existing()?;
        let store = store.ok_or_else(|| CliError::usage("no runs yet"))?;
        let store = store.lock();
        let events = store.events(store.find(&call.run_id)?)?;
        let record = RunRecord::from_events(&events);
        let text = show::show(&record, &events);
        Ok(outcome::answer(vec![text], &Outcome::of(&record)))
    }
}

fn text(content: String) -> Result<Text, CliError> {
    Ok(Text {
        content: filled(content, "the text")?,
        file: None,
    })
}

fn filled(text: String, what: &str) -> Result<String, CliError> {
    if text.trim().is_empty() {
        return Err(CliError::usage(format!("{what} is empty")));
    }
    Ok(text)
}
