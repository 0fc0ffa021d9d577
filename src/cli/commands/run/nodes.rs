//! The reflector's verdict on a workflow, with its nodes as tasks.

use indexmap::IndexMap;

use crate::cli::args::GlobalArgs;
use crate::cli::verdict;
use crate::reflector::{
    ErrorCategory, Plan, PlanAssessment, PlannedTask, TaskError, TaskResult, TaskStatus,
    evaluate_plan,
};
use crate::types::{Event as LoopEvent, ExitCode, ReflectionCriteria};
use crate::workflow::{Event, Failure, Outcome};

/// The nodes that started, and how each of them ended. Later nodes are unknown, because they depend on the
/// results of earlier ones.
pub(super) struct Nodes {
    criteria: ReflectionCriteria,
    /// The name of the workflow.
    name: String,
    /// What each node does, by name.
    started: IndexMap<String, String>,
    results: Vec<TaskResult>,
    /// Why the draft of the current loop does not meet the criteria, if it does not.
    unmet: Option<String>,
}

impl Nodes {
    pub(super) fn new(name: &str, criteria: ReflectionCriteria) -> Self {
        Self {
            criteria,
            name: name.to_owned(),
            started: IndexMap::new(),
            results: Vec::new(),
            unmet: None,
        }
    }

    /// Records an event.
    pub(super) fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::NodeStart { node, action } => {
                self.started
                    .entry((*node).to_owned())
                    .or_insert_with(|| (*action).to_owned());
                self.unmet = None;
            }
            Event::Loop { event, .. } => {
                if let LoopEvent::RunEnd {
                    success,
                    convergence_reason,
                    error,
                    ..
                } = &event.event
                {
                    let why = || {
                        let reason = convergence_reason.map_or("", |reason| reason.describe());
                        let detail = error.as_deref().unwrap_or(reason);
                        format!("its draft does not meet the criteria: {detail}")
                    };
                    self.unmet = (!success).then(why);
                }
            }
            Event::NodeEnd {
                node, duration_ms, ..
            } => {
                let seconds = std::time::Duration::from_millis(*duration_ms).as_secs_f64();
                let result = match self.unmet.take() {
                    None => TaskResult::new(*node, TaskStatus::Success),
                    Some(why) => failed(node, why, Some(ErrorCategory::Execution)),
                };
                self.results.push(TaskResult {
                    seconds: Some(seconds),
                    ..result
                });
            }
            _ => {}
        }
    }

    /// The verdict on the workflow.
    fn assess(&self, failure: Option<&(String, Failure)>) -> PlanAssessment {
        let tasks = self.started.iter().map(|(node, action)| PlannedTask {
            tool: Some(action.clone()),
            ..PlannedTask::new(node)
        });
        let mut plan = Plan {
            id: self.name.clone(),
            goal: None,
            tasks: tasks.collect(),
        };
        let mut results = self.results.clone();
        if let Some((node, failure)) = failure {
            // A failure before the first node belongs to the workflow.
            if !self.started.contains_key(node) {
                plan.tasks.push(PlannedTask::new(node));
            }
            let message = failure.message.clone();
            results.push(failed(node, message, category(failure.code)));
        }
        evaluate_plan(&plan, &results, &self.criteria)
    }

    /// Prints the verdict if something failed, or with `--verbose`.
    pub(super) fn conclude(&self, outcome: &Outcome, global: &GlobalArgs) {
        if global.quiet || outcome.exit_code == ExitCode::Interrupted {
            return;
        }
        // An error in the file or its input says nothing about the plan.
        let failure = outcome.failure.as_ref();
        if failure.is_some_and(|(_, failure)| failure.code == ExitCode::Usage) {
            return;
        }
        // The result of a single node is already printed.
        if self.started.len() < 2 && global.verbose == 0 {
            return;
        }
        let assessment = self.assess(failure);
        let all_well = assessment.verdict.success && assessment.failed == 0;
        if !all_well || global.verbose > 0 {
            verdict::say(&assessment, &[]);
        }
    }
}

fn failed(node: &str, message: String, category: Option<ErrorCategory>) -> TaskResult {
    TaskResult {
        error: Some(TaskError {
            category,
            ..TaskError::new(message)
        }),
        ..TaskResult::new(node, TaskStatus::Failed)
    }
}

/// The category of a failure by its exit code; `None` if its message determines the category.
fn category(code: ExitCode) -> Option<ErrorCategory> {
    match code {
        ExitCode::Usage => Some(ErrorCategory::Validation),
        ExitCode::Limit => Some(ErrorCategory::Resource),
        ExitCode::NotMet | ExitCode::JudgeUnusable => Some(ErrorCategory::Execution),
        ExitCode::Success | ExitCode::Failure | ExitCode::Provider | ExitCode::Interrupted => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn nodes(ran: &[&str]) -> Nodes {
        let mut nodes = Nodes::new("flow", ReflectionCriteria::default());
        for node in ran {
            nodes.see(&Event::NodeStart {
                node,
                action: "llm.call",
            });
            nodes.see(&Event::NodeEnd {
                node,
                output: &Value::Null,
                duration_ms: 5,
            });
        }
        nodes
    }

    #[test]
    fn assesses_nodes_as_tasks() {
        let done = nodes(&["a", "b", "a"]).assess(None);
        assert_eq!((done.total, done.succeeded), (2, 2));
        assert!(done.verdict.success);
        let mut started = nodes(&["a"]);
        started.see(&Event::NodeStart {
            node: "b",
            action: "http",
        });
        let failure = Failure::new(ExitCode::Provider, "the request timed out");
        let failed = started.assess(Some(&("b".to_owned(), failure)));
        assert_eq!((failed.total, failed.failed), (2, 1));
        assert!(!failed.verdict.success && failed.verdict.should_replan);
        let own = Failure::new(ExitCode::Usage, "no way from here");
        let own = nodes(&[]).assess(Some(&("__start__".to_owned(), own)));
        assert_eq!((own.total, own.failed), (1, 1));
        assert!(!own.verdict.should_replan);
    }
}
