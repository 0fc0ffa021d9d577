//! What the reflector says of a workflow: its nodes are the tasks.

use indexmap::IndexMap;

use crate::cli::args::GlobalArgs;
use crate::cli::verdict;
use crate::reflector::{
    ErrorCategory, Plan, PlanAssessment, PlannedTask, TaskError, TaskResult, TaskStatus,
    evaluate_plan,
};
use crate::types::{Event as LoopEvent, ExitCode, ReflectionCriteria};
use crate::workflow::{Event, Failure, Outcome};

/// The nodes that were begun, and how each of them ended. Which others were to follow nobody knows: that depends on
/// what these would have given.
pub(super) struct Nodes {
    criteria: ReflectionCriteria,
    /// The name of the workflow.
    name: String,
    /// By name, what each node does.
    begun: IndexMap<String, String>,
    results: Vec<TaskResult>,
    /// Why the draft of the loop under way is not good enough, if it is not.
    unmet: Option<String>,
}

impl Nodes {
    pub(super) fn new(name: &str, criteria: ReflectionCriteria) -> Self {
        Self {
            criteria,
            name: name.to_owned(),
            begun: IndexMap::new(),
            results: Vec::new(),
            unmet: None,
        }
    }

    /// Takes an event in.
    pub(super) fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::NodeStart { node, action } => {
                self.begun
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
                        let said = error.as_deref().unwrap_or(reason);
                        format!("its draft does not meet the criteria: {said}")
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
        let tasks = self.begun.iter().map(|(node, action)| PlannedTask {
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
            // What fails before any node is the workflow's own.
            if !self.begun.contains_key(node) {
                plan.tasks.push(PlannedTask::new(node));
            }
            let message = failure.message.clone();
            results.push(failed(node, message, category(failure.code)));
        }
        evaluate_plan(&plan, &results, &self.criteria)
    }

    /// Says the verdict where something went wrong, and else to those who want to know more.
    pub(super) fn conclude(&self, outcome: &Outcome, global: &GlobalArgs) {
        if global.quiet || outcome.exit_code == ExitCode::Interrupted {
            return;
        }
        // A fault of the file or of what it was given says nothing about the plan.
        let failure = outcome.failure.as_ref();
        if failure.is_some_and(|(_, failure)| failure.code == ExitCode::Usage) {
            return;
        }
        // One node is no plan: what became of it was said already.
        if self.begun.len() < 2 && global.verbose == 0 {
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

/// What kind of failure an exit code stands for, where it says so; else what was said does.
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
    fn nodes_are_tasks_and_the_one_that_failed_is_the_last() {
        let done = nodes(&["a", "b", "a"]).assess(None);
        assert_eq!((done.total, done.succeeded), (2, 2));
        assert!(done.verdict.success);
        let mut begun = nodes(&["a"]);
        begun.see(&Event::NodeStart {
            node: "b",
            action: "http",
        });
        let failure = Failure::new(ExitCode::Provider, "the request timed out");
        let failed = begun.assess(Some(&("b".to_owned(), failure)));
        assert_eq!((failed.total, failed.failed), (2, 1));
        assert!(!failed.verdict.success && failed.verdict.should_replan);
        let own = Failure::new(ExitCode::Usage, "no way from here");
        let own = nodes(&[]).assess(Some(&("__start__".to_owned(), own)));
        assert_eq!((own.total, own.failed), (1, 1));
        assert!(!own.verdict.should_replan);
    }
}
