//! From flags to effective settings.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Once};

use super::args::{
    AssessArgs, CallLimitArgs, EvaluateArgs, GlobalArgs, KnowledgeArgs, LimitArgs, ModelArgs,
    RunArgs, TasksArgs, WorkflowArgs,
};
use super::error::CliError;
use super::input::Input;
use super::{paths, printer};
use crate::batch::Limits;
use crate::config::{self, Config, HumanDuration, Origin, Resolved, Settings, TimeoutSettings};
use crate::criteria::{self, AvailableCriteria};
use crate::prompt::Templates;
use crate::source::FileAccess;
use crate::types::{Criteria, LoopSettings};

/// The criteria to use if none are named.
const DEFAULT_CRITERIA: &str = "writing";

/// The effective settings, and the files that they come from.
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) resolved: Resolved,
    pub(super) criteria: Criteria,
    /// Whether evidence is searched, which makes prompts longer.
    pub(super) evidence: bool,
    /// Whether drafts are evaluated. Otherwise the criteria only appear in the prompt.
    pub(super) judged: bool,
    /// How many tools the writer sees results of.
    pub(super) tools: usize,
}

/// What a command evaluates texts with.
#[derive(Debug, Clone, Copy)]
enum Measure<'a> {
    /// The criteria that are set, or the default ones, and these in addition.
    Criteria(&'a [String]),
    /// A single evaluator, instead of the criteria.
    Evaluator(&'a Path),
    /// Nothing. Criteria that are set, and these in addition, still appear in the writer's prompt.
    Nothing(&'a [String]),
}

impl Plan {
    /// Returns the merged settings of all layers.
    pub(super) fn settings(&self) -> &Settings {
        &self.resolved.settings
    }
}

/// Resolves the settings of a run of the loop, with or without evaluation.
pub(super) fn run(args: &RunArgs, judged: bool, global: &GlobalArgs) -> Result<Plan, CliError> {
    let (first, more) = first_and_more(&args.criteria);
    let flags = Settings {
        criteria: first,
        criteria_path: args.criteria_path.clone(),
        loop_settings: args.flow.clone().or(&limits(&args.limits)?),
        context_messages: args.knowledge.context_messages,
        evidence_tokens: args.knowledge.evidence_tokens,
        memory: args.memory,
        judge: args.judge.clone(),
        ..model_flags(&args.model)?
    };
    let measure = if judged {
        Measure::Criteria(more)
    } else {
        Measure::Nothing(more)
    };
    let plan = plan(
        flags,
        &args.knowledge,
        global,
        args.allow_exec,
        measure,
        None,
    )?;
    check_steps(&args.flow, &plan)?;
    Ok(Plan {
        tools: args.tools.len(),
        ..plan
    })
}

/// Rejects step options if drafts are not written in steps.
fn check_steps(args: &LoopSettings, plan: &Plan) -> Result<(), CliError> {
    if args.reflection_interval.is_some() && !plan.settings().loop_settings.steps() {
        return Err(CliError::usage("--reflection-interval needs --steps")
            .hint("add `--steps`, or remove it"));
    }
    Ok(())
}

/// Resolves the settings of `reflect run`.
pub(super) fn workflow(args: &WorkflowArgs, global: &GlobalArgs) -> Result<Plan, CliError> {
    if args.model.stronger_model.is_some() {
        return Err(
            CliError::usage("--stronger-model has no effect on workflows")
                .hint("set the model of each node in the file"),
        );
    }
    let flags = Settings {
        profile: global.profile.clone(),
        loop_settings: LoopSettings {
            max_total_tokens: args.max_total_tokens,
            max_cost: args.max_cost,
            max_time: max_time(args.max_time.as_deref())?,
            ..LoopSettings::default()
        },
        ..model_flags(&args.model)?
    };
    let config = load(global)?;
    without_criteria(config, &flags, false)
}

/// Resolves the settings of a batch or benchmark for the tasks with these criteria, or for those that name
/// none. The limits apply to all tasks together and are not included.
pub(super) fn batch(
    args: TasksArgs<'_>,
    criteria: Option<&str>,
    global: &GlobalArgs,
) -> Result<Plan, CliError> {
    let loops = args.loops;
    let (first, more) = match criteria {
        Some(own) => (Some(own.to_owned()), &[][..]),
        None => first_and_more(args.criteria),
    };
    let flags = Settings {
        criteria: first,
        loop_settings: loops.flow.clone(),
        context_messages: args.knowledge.context_messages,
        evidence_tokens: args.knowledge.evidence_tokens,
        memory: args.memory,
        judge: loops.judge.clone(),
        ..model_flags(&loops.model)?
    };
    let (knowledge, allowed) = (args.knowledge, loops.allow_exec);
    let folder = criteria.map(|_| match args.tasks.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    });
    let measure = Measure::Criteria(more);
    let plan = plan(flags, knowledge, global, allowed, measure, folder)?;
    if criteria.is_none() {
        // Tasks with their own criteria may be written without steps.
        check_steps(&loops.flow, &plan)?;
    }
    Ok(Plan {
        tools: loops.tools.len(),
        ..plan
    })
}

/// Returns the limits of `reflect batch` for all tasks together.
pub(super) fn batch_limits(args: &LimitArgs) -> Result<Limits, CliError> {
    let limits = limits(args)?;
    limits
        .check()
        .map_err(|(_, message)| CliError::usage(message))?;
    Ok(Limits {
        tokens: limits.max_total_tokens,
        cost: limits.max_cost,
        time: limits.max_time(),
    })
}

/// Resolves the settings of `reflect evaluate`.
pub(super) fn evaluate(args: &EvaluateArgs, global: &GlobalArgs) -> Result<Plan, CliError> {
    let (first, more) = first_and_more(&args.criteria);
    let flags = Settings {
        criteria: first,
        criteria_path: args.criteria_path.clone(),
        loop_settings: LoopSettings {
            threshold: args.threshold,
            ..LoopSettings::default()
        },
        context_messages: args.knowledge.context_messages,
        evidence_tokens: args.knowledge.evidence_tokens,
        judge: args.judge.clone(),
        ..model_flags(&args.model)?
    };
    let evaluator = args.evaluator.as_deref();
    let measure = evaluator.map_or(Measure::Criteria(more), Measure::Evaluator);
    plan(
        flags,
        &args.knowledge,
        global,
        args.allow_exec,
        measure,
        None,
    )
}

/// Resolves the model flags over a configuration, for a command outside of a run.
pub(super) fn models(
    config: Config,
    args: &ModelArgs,
    global: &GlobalArgs,
) -> Result<Plan, CliError> {
    let flags = Settings {
        profile: global.profile.clone(),
        ..model_flags(args)?
    };
    without_criteria(config, &flags, true)
}

/// Rejects model flags without `--llm`.
pub(super) fn check_model(args: &ModelArgs, llm: bool) -> Result<(), CliError> {
    let names_model = args.model.is_some()
        || args.judge_model.is_some()
        || args.provider.is_some()
        || args.base_url.is_some();
    if names_model && !llm {
        return Err(CliError::usage("no model is called without `--llm`")
            .hint("add `--llm`, or remove the model"));
    }
    Ok(())
}

/// Resolves the settings that `reflect worker` needs before it has a task.
#[cfg(feature = "restate")]
pub(super) fn worker(global: &GlobalArgs) -> Result<Plan, CliError> {
    let config = load(global)?;
    let flags = Settings {
        profile: global.profile.clone(),
        ..Settings::default()
    };
    without_criteria(config, &flags, true)
}

/// Resolves the settings of `reflect assess`. It evaluates no drafts, so it reads no criteria.
pub(super) fn assess(args: &AssessArgs, global: &GlobalArgs) -> Result<Plan, CliError> {
    let config = load(global)?;
    let flags = Settings {
        profile: global.profile.clone(),
        reflector: args.reflector,
        ..model_flags(&args.model)?
    };
    without_criteria(config, &flags, true)
}

/// Resolves these flags over a configuration for a command without criteria.
fn without_criteria(config: Config, flags: &Settings, judged: bool) -> Result<Plan, CliError> {
    let resolved = config.resolve(flags, None)?;
    Ok(Plan {
        config,
        resolved,
        criteria: no_criteria(),
        evidence: false,
        judged,
        tools: 0,
    })
}

/// Loads the configuration and the criteria, and applies the flags. `allowed` is `--allow-exec`. `named_in`
/// is the folder of a batch whose rows name the criteria.
fn plan(
    flags: Settings,
    knowledge: &KnowledgeArgs,
    global: &GlobalArgs,
    allowed: bool,
    measure: Measure<'_>,
    named_in: Option<&Path>,
) -> Result<Plan, CliError> {
    let config = load(global)?;
    let flags = Settings {
        profile: global.profile.clone(),
        ..flags
    };
    let first = config.resolve(&flags, None)?;
    let settings = first.settings.clone();
    let reach = |file: &Path| reach(&config, allowed, file);
    if let Measure::Evaluator(file) = measure {
        let mut criteria = criteria::load_spec(file, &reach)?;
        // With a single score, the overall threshold is also that of the criterion.
        if let Some(threshold) = flags.loop_settings.threshold {
            for criterion in &mut criteria.criteria {
                criterion.threshold = threshold;
            }
        }
        let resolved = config.resolve(&flags, Some(&criteria))?;
        return Ok(Plan {
            config,
            resolved,
            criteria,
            evidence: !knowledge.evidence.is_empty(),
            judged: true,
            tools: 0,
        });
    }
    let judged = matches!(measure, Measure::Criteria(_));
    let path = settings.criteria_path.unwrap_or_default();
    let mut criteria = match settings.criteria.as_deref() {
        Some(text) if criteria::is_inline(text) => criteria::parse(text, "criteria")?,
        Some("-") if first.origin("criteria").is_some_and(Origin::is_of_session) => {
            criteria_from_stdin(global)?
        }
        Some(name) => {
            let origin = first.origin("criteria");
            criteria_named(name, named_in, origin, &path)?.read(&reach)?
        }
        None if judged => {
            if !global.quiet {
                printer::say(&format!(
                    "criteria: {DEFAULT_CRITERIA} (built-in); choose others with `--criteria FILE|NAME`"
                ));
            }
            criteria::resolve(DEFAULT_CRITERIA, &path, &reach)?
        }
        None => no_criteria(),
    };
    if let Measure::Criteria(more) | Measure::Nothing(more) = measure {
        let more = more.iter().map(|name| match name.as_str() {
            "-" => criteria_from_stdin(global),
            name => Ok(criteria::resolve(name, &path, &reach)?),
        });
        criteria = criteria::combine(criteria, more.collect::<Result<Vec<_>, CliError>>()?);
    }
    let resolved = config.resolve(&flags, Some(&criteria))?;
    if let Some(threshold) = resolved.settings.loop_settings.threshold {
        criteria.threshold = threshold;
    }
    criteria.judge_settings = resolved.settings.judge.clone();
    Ok(Plan {
        config,
        resolved,
        criteria,
        evidence: !knowledge.evidence.is_empty(),
        judged,
        tools: 0,
    })
}

/// Splits the values of `--criteria`: the first replaces the configured criteria, and the others are added to it.
fn first_and_more(named: &[String]) -> (Option<String>, &[String]) {
    match named.split_first() {
        Some((first, more)) => (Some(first.clone()), more),
        None => (None, &[]),
    }
}

fn criteria_from_stdin(global: &GlobalArgs) -> Result<Criteria, CliError> {
    let text = Input::Stdin.read("the criteria", global.quiet)?;
    Ok(criteria::parse(&text, "<stdin>")?)
}

/// Finds criteria by name. Project files and the rows of a batch (`rows`) are untrusted: they may name only
/// files in their own folder or in the user's `criteria_path`.
pub(super) fn criteria_named(
    name: &str,
    rows: Option<&Path>,
    origin: Option<&Origin>,
    criteria_path: &[PathBuf],
) -> Result<AvailableCriteria, CliError> {
    let found = criteria::locate(name, criteria_path)?;
    let (folder, whose) = match (rows, origin) {
        (Some(folder), _) => (folder, "of the tasks".to_owned()),
        (None, Some(Origin::Project { path, .. })) => {
            let folder = path.parent().unwrap_or(Path::new("."));
            (folder, format!("of {}", path.display()))
        }
        _ => return Ok(found),
    };
    let is_kept = |file: &Path| criteria_path.iter().any(|kept| file.starts_with(kept));
    match &found.path {
        Some(file) if !is_kept(file) && !is_within(file, folder) => Err(CliError::usage(format!(
            "the criteria `{name}` are outside the folder {whose}"
        ))
        .hint(
            "pass them with `--criteria`, or copy them to that folder or to one in your `criteria_path`",
        )),
        _ => Ok(found),
    }
}

/// Whether a file is in a folder, with symbolic links resolved. If the file does not exist, its path decides.
pub(super) fn is_within(file: &Path, folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else {
        return false;
    };
    match (file.canonicalize(), std::path::absolute(file)) {
        (Ok(file), _) => file.starts_with(folder),
        (Err(_), Ok(file)) => {
            let goes_up = file.components().any(|part| part == Component::ParentDir);
            !goes_up && file.starts_with(folder)
        }
        (Err(_), Err(_)) => false,
    }
}

/// Returns the placeholder for a command without criteria.
fn no_criteria() -> Criteria {
    Criteria::new("none", Vec::new())
}

/// Returns which data files this criteria file may read. A file whose code may run may read any file.
pub(super) fn reach(config: &Config, allowed: bool, criteria: &Path) -> FileAccess {
    if allowed || config.trusts(criteria) {
        FileAccess::Anywhere
    } else {
        FileAccess::Folder
    }
}

/// Loads the configuration.
pub(super) fn load(global: &GlobalArgs) -> Result<Config, CliError> {
    let directory = std::env::current_dir()
        .map_err(|error| CliError::failure(format!("cannot get the current directory: {error}")))?;
    let chosen = global
        .config
        .as_ref()
        .map(|path| path.clone().into_os_string());
    let env = |name: &str| match (&chosen, name) {
        (Some(path), "REFLECT_CONFIG") => Some(path.clone()),
        _ => paths::env(name),
    };
    let config = Config::load(&env, &directory)?.assign(&global.set)?;
    if let Some(ignored) = config.ignored_project().filter(|_| !global.quiet) {
        // Batches and workers load the configuration repeatedly.
        static SAID: Once = Once::new();
        let (path, reason) = (ignored.path.display(), ignored.reason);
        SAID.call_once(|| printer::say(&format!("warning: ignoring {path}: {reason}")));
    }
    config
        .providers()
        .values()
        .for_each(|provider| provider.remember_secrets(&env));
    Ok(config)
}

/// Converts the model flags to settings.
fn model_flags(args: &ModelArgs) -> Result<Settings, CliError> {
    Ok(Settings {
        model: args.model.clone(),
        judge_model: args.judge_model.clone(),
        stronger_model: args.stronger_model.clone(),
        provider: args.provider.clone(),
        base_url: args.base_url.clone(),
        offline: args.offline.then_some(true),
        allow_models: args.allow_models.then_some(true),
        num_ctx: args.num_ctx,
        keep_alive: args.keep_alive.clone(),
        think: args.think,
        prompt_dir: args.prompt_dir.clone(),
        temperature: args.temperature,
        top_p: args.top_p,
        seed: args.seed,
        ..call_limits(&args.limits)?
    })
}

/// Converts the call limit flags to settings.
pub(super) fn call_limits(args: &CallLimitArgs) -> Result<Settings, CliError> {
    Ok(Settings {
        retries: args.retries,
        max_tokens: args.max_tokens,
        timeouts: TimeoutSettings {
            connect: duration("--timeout-connect", args.timeout_connect.as_deref())?,
            first_token: duration("--timeout-first-token", args.timeout_first_token.as_deref())?,
            idle: duration("--timeout-idle", args.timeout_idle.as_deref())?,
            total: duration("--timeout", args.timeout_total.as_deref())?,
        },
        ..Settings::default()
    })
}

/// Converts the loop limit flags to settings.
fn limits(args: &LimitArgs) -> Result<LoopSettings, CliError> {
    Ok(LoopSettings {
        max_total_tokens: args.max_total_tokens,
        max_cost: args.max_cost,
        max_time: max_time(args.max_time.as_deref())?,
        ..LoopSettings::default()
    })
}

/// Reads and checks the user's prompt templates, if there are any.
pub(super) fn templates(plan: &Plan) -> Result<Option<Arc<Templates>>, CliError> {
    let folder = plan.settings().prompt_dir.as_deref();
    let templates = folder.map(Templates::read).transpose()?;
    Ok(templates.map(Arc::new))
}

/// Returns the path of the user's configuration file, whether or not it exists.
pub(super) fn user_file(global: &GlobalArgs) -> Result<PathBuf, CliError> {
    global
        .config
        .clone()
        .or_else(|| config::user_file(&paths::env))
        .ok_or_else(|| {
            CliError::failure("no home directory for the configuration")
                .hint("set `REFLECT_CONFIG`")
        })
}

/// Parses `--max-time` into seconds.
pub(super) fn max_time(text: Option<&str>) -> Result<Option<f64>, CliError> {
    let time = duration("--max-time", text)?;
    Ok(time.map(|time| time.get().as_secs_f64()))
}

fn duration(flag: &str, text: Option<&str>) -> Result<Option<HumanDuration>, CliError> {
    text.map(|text| {
        text.parse()
            .map_err(|error| CliError::usage(format!("{flag}: {error}")))
    })
    .transpose()
}
