//! When the result of a step is reflected on.

use serde_json::{Value, json};

use super::actions::reflection::{Beginning, Reflection};
use super::actions::{Action, Call};
use super::event::Event;
use super::failure::Failure;
use super::part::Part;
use super::program::Program;
use super::settings::Settings;
use super::world::Scene;
use crate::source::SourceError;

/// What may bring a reflection about.
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

/// `reflection:` of a workflow or of a node.
pub(super) struct Triggers {
    completion: bool,
    /// Every so many steps.
    interval: Option<u64>,
    error: bool,
    /// Nodes and actions whose results are reflected on.
    tools: Vec<String>,
    /// How far the score must fall.
    drop: Option<f64>,
    /// Where the user asks for it.
    manual: bool,
    reflection: Reflection,
}

/// A step that was done.
pub(super) struct Step<'a> {
    /// Its number, counted from 1.
    pub(super) number: u64,
    pub(super) action_name: &'a str,
    /// The score before it and its own, where there are such.
    pub(super) scores: (Option<f64>, Option<f64>),
    /// Whether nothing follows it.
    pub(super) is_last: &'a dyn Fn() -> bool,
}

impl Triggers {
    /// Reads the block.
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
        let call = Call {
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

    /// Whether the user may ask for a reflection.
    pub(super) fn is_manual(&self) -> bool {
        self.manual
    }

    /// The trigger that a step sets off, and why.
    fn set_off(&self, step: &Step<'_>, scene: &Scene<'_>) -> Option<(&'static str, String)> {
        let node = scene.node;
        if self.manual && scene.world.manual.iter().any(|asked| asked == node) {
            return Some(("manual", "you have asked for it".to_owned()));
        }
        let named = |tool: &String| tool == step.action_name || tool == node;
        if let (Some(least), (Some(before), Some(now))) = (self.drop, step.scores)
            && before - now > least
        {
            let why = format!("the score fell from {before:.2} to {now:.2}");
            return Some(("quality_drop", why));
        }
        if self.tools.iter().any(named) {
            return Some(("tool_result", format!("`{node}` gave a result")));
        }
        if self
            .interval
            .is_some_and(|every| step.number.is_multiple_of(every))
        {
            return Some(("step_interval", format!("step {} is done", step.number)));
        }
        (self.completion && (step.is_last)()).then(|| ("completion", "all is done".to_owned()))
    }

    /// Reflects on the result of a step, if it sets a trigger off; then the loop's result takes its place.
    pub(super) async fn after_step(
        &self,
        step: &Step<'_>,
        action: &dyn Action,
        result: &Value,
        scene: &Scene<'_>,
    ) -> Option<Result<Value, Failure>> {
        let (trigger, reason) = self.set_off(step, scene)?;
        scene.world.emit(&Event::Trigger {
            node: scene.node,
            trigger,
            reason: &reason,
        });
        let beginning = Beginning {
            given: Some(action.answer(result).clone()),
            generator: Some(action),
            ..Beginning::default()
        };
        Some(self.reflection.reflect(scene, beginning).await)
    }

    /// Reflects on a failure, if that sets a trigger off.
    pub(super) async fn after_error(
        &self,
        failure: &Failure,
        action: &dyn Action,
        scene: &Scene<'_>,
    ) -> Option<Result<Value, Failure>> {
        if !self.error || failure.is_final() {
            return None;
        }
        scene.world.emit(&Event::Trigger {
            node: scene.node,
            trigger: "error",
            reason: &failure.message,
        });
        let beginning = Beginning {
            generator: Some(action),
            errors: json!([{ "message": failure.message, "path": "", "type": "error" }]),
            ..Beginning::default()
        };
        Some(self.reflection.reflect(scene, beginning).await)
    }
}
