//! The triggers of a reflection on the result of a step.

use serde_json::{Value, json};

use super::actions::reflection::{LoopStart, Reflection};
use super::actions::{Action, ActionCall};
use super::event::Event;
use super::failure::Failure;
use super::part::Part;
use super::program::Program;
use super::settings::Settings;
use super::world::ActionContext;
use crate::source::SourceError;

/// The names of the triggers.
const TRIGGERS: [&str; 6] = [
    "completion",
    "step_interval",
    "error",
    "tool_result",
    "manual",
    "quality_drop",
];

const KEYS: [&str; 11] = [
    "triggers",
    "reflection_interval",
    "reflect_on_error",
    "reflect_on_tools",
    "quality_drop_threshold",
    "evaluator",
    "corrector",
    "max_iterations",
    "on_failure",
    "score_threshold",
    "regenerate",
];

/// The `reflection:` of a workflow or of a node.
pub(super) struct Triggers {
    completion: bool,
    /// Reflect after every `interval` steps.
    interval: Option<u64>,
    error: bool,
    /// Nodes and actions whose results are reflected on.
    tools: Vec<String>,
    /// The minimum drop of the score that starts a reflection.
    drop: Option<f64>,
    /// Whether the user may request a reflection.
    manual: bool,
    reflection: Reflection,
}

/// A completed step.
pub(super) struct CompletedStep<'a> {
    /// Its number, counted from 1.
    pub(super) number: u64,
    pub(super) action_name: &'a str,
    /// The score before the step and its own, if known.
    pub(super) scores: (Option<f64>, Option<f64>),
    /// Whether no step follows.
    pub(super) is_last: &'a dyn Fn() -> bool,
}

impl Triggers {
    /// Parses the block.
    pub(super) fn read(part: &Part, settings: &Settings) -> Result<Self, SourceError> {
        part.check_keys(&KEYS)?;
        let fields = part.fields();
        let named: Vec<&str> = match part.get("triggers") {
            None => Vec::new(),
            Some(list) if list.value().is_array() => list
                .items()
                .iter()
                .map(|item| item.word(&TRIGGERS))
                .collect::<Result<_, _>>()?,
            Some(other) => return Err(other.expected("a list of triggers")),
        };
        let is_named = |trigger: &str| named.contains(&trigger);
        let interval = part.get("reflection_interval");
        let tools = part.get("reflect_on_tools");
        let drop = part.get("quality_drop_threshold");
        for (trigger, key, there) in [
            ("step_interval", "reflection_interval", interval.is_some()),
            ("tool_result", "reflect_on_tools", tools.is_some()),
        ] {
            if is_named(trigger) && !there {
                return Err(part.error(&format!("the trigger `{trigger}` needs the key `{key}`")));
            }
        }
        let error = match part.get("reflect_on_error") {
            Some(flag) => flag.flag()?,
            None => is_named("error"),
        };
        let tools: Vec<String> = match &tools {
            None => Vec::new(),
            Some(tools) => tools
                .items()
                .iter()
                .map(|tool| tool.text().map(str::to_owned))
                .collect::<Result<_, _>>()?,
        };
        let drop = match drop {
            Some(part) => Some(part.share()?),
            None => is_named("quality_drop").then_some(0.0),
        };
        let interval = interval
            .map(|part| part.count())
            .transpose()?
            .map(u64::from);
        let any = interval.is_some() || error || !tools.is_empty() || drop.is_some();
        let mut params = fields;
        params.retain(|key, _| !KEYS[..5].contains(&key.as_str()));
        let call = ActionCall {
            owner: part.clone(),
            body: part.clone(),
            params,
            settings: settings.clone(),
        };
        Ok(Self {
            // The default.
            completion: is_named("completion") || (named.is_empty() && !any),
            interval,
            error,
            tools,
            drop,
            manual: is_named("manual"),
            reflection: Reflection::of(&call, None)?,
        })
    }

    pub(super) fn programs(&self, list: &mut Vec<Program>) {
        self.reflection.programs(list);
    }

    /// Returns whether the user may request a reflection.
    pub(super) fn is_manual(&self) -> bool {
        self.manual
    }

    /// Returns the trigger that a step fires, and the reason.
    fn fired_trigger(
        &self,
        step: &CompletedStep<'_>,
        context: &ActionContext<'_>,
    ) -> Option<(&'static str, String)> {
        let node = context.node;
        if self.manual && context.world.manual.iter().any(|asked| asked == node) {
            return Some(("manual", "requested by the user".to_owned()));
        }
        let named = |tool: &String| tool == step.action_name || tool == node;
        if let (Some(least), (Some(before), Some(now))) = (self.drop, step.scores)
            && before - now > least
        {
            let why = format!("the score fell from {before:.2} to {now:.2}");
            return Some(("quality_drop", why));
        }
        if self.tools.iter().any(named) {
            return Some(("tool_result", format!("`{node}` returned a result")));
        }
        if self
            .interval
            .is_some_and(|every| step.number.is_multiple_of(every))
        {
            return Some(("step_interval", format!("step {} ended", step.number)));
        }
        (self.completion && (step.is_last)()).then(|| ("completion", "all steps ended".to_owned()))
    }

    /// Reflects on the result of a step if a trigger fires. The result of the loop replaces it.
    pub(super) async fn after_step(
        &self,
        step: &CompletedStep<'_>,
        action: &dyn Action,
        result: &Value,
        context: &ActionContext<'_>,
    ) -> Option<Result<Value, Failure>> {
        let (trigger, reason) = self.fired_trigger(step, context)?;
        context.world.emit(&Event::Trigger {
            node: context.node,
            trigger,
            reason: &reason,
        });
        let beginning = LoopStart {
            given: Some(action.answer(result).clone()),
            generator: Some(action),
            ..LoopStart::default()
        };
        Some(self.reflection.reflect(context, beginning).await)
    }

    /// Reflects on a failure if a trigger fires.
    pub(super) async fn after_error(
        &self,
        failure: &Failure,
        action: &dyn Action,
        context: &ActionContext<'_>,
    ) -> Option<Result<Value, Failure>> {
        if !self.error || failure.is_final() {
            return None;
        }
        context.world.emit(&Event::Trigger {
            node: context.node,
            trigger: "error",
            reason: &failure.message,
        });
        let beginning = LoopStart {
            generator: Some(action),
            errors: json!([{ "message": failure.message, "path": "", "type": "error" }]),
            ..LoopStart::default()
        };
        Some(self.reflection.reflect(context, beginning).await)
    }
}
