//! Sets of tasks that can be selected by name.

use super::ifeval;

/// A set of tasks with their criteria.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Sixty built-in tasks with exact checks: commit messages, JSON, summaries, SQL, product
    /// texts, plans, and code with tests.
    Starter,
    /// `IFEval`: instructions that can be verified, downloaded from its publisher.
    IfEval,
}

/// The tasks of a set, as lines for a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskLines {
    /// One JSON object per line.
    pub text: String,
    /// The number of tasks without exact checks, by reason.
    pub skipped: Vec<(String, usize)>,
}

/// The published file of a set has a line that is not a task.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {source}")]
pub struct SetError {
    /// The line, counted from 1.
    pub(super) line: usize,
    /// What is wrong with it.
    pub(super) source: serde_json::Error,
}

/// A published file that contains a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Published {
    /// The host to download it from.
    pub host: &'static str,
    /// Its path on that host. It names a revision, so that the file never changes.
    pub path: &'static str,
    /// Its licence.
    pub licence: &'static str,
    /// The file name to store it under.
    pub file: &'static str,
}

impl Set {
    /// All sets.
    pub const ALL: [Self; 2] = [Self::Starter, Self::IfEval];

    /// Returns the set with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starter => "starter",
            Self::IfEval => "ifeval",
        }
    }

    /// Returns the published file, or `None` for a built-in set.
    pub fn published(self) -> Option<Published> {
        match self {
            Self::Starter => None,
            Self::IfEval => Some(ifeval::PUBLISHED),
        }
    }

    /// Converts the published text to tasks.
    ///
    /// # Errors
    /// If a line of the text cannot be parsed.
    pub fn lines(self, published: &str) -> Result<TaskLines, SetError> {
        match self {
            Self::Starter => Ok(TaskLines {
                text: include_str!("sets/starter.jsonl").to_owned(),
                skipped: Vec::new(),
            }),
            Self::IfEval => ifeval::translate(published),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use serde::Deserialize;

    use super::*;
    use crate::batch::{Entry, InputFormat, Reader, Shape, Tasks};
    use crate::engine::{EvaluateOnce, Text};
    use crate::evaluate::{ExecPermission, Tools};
    use crate::types::{Evaluator, Stamped, Task};
    use tokio_util::sync::CancellationToken;

    fn starter() -> Vec<Entry> {
        let text = Set::Starter.lines("").unwrap().text;
        let reader = Reader::new(text.as_bytes(), InputFormat::Jsonl);
        let mut tasks = Tasks::new(reader, Arc::new(Shape::default()));
        std::iter::from_fn(|| tasks.next_entry().unwrap()).collect()
    }

    /// Returns which checks of a task a text meets. Skips scripts, because their worker is another
    /// program.
    async fn met(entry: &Entry, text: &str) -> Vec<(String, bool)> {
        let item = entry.task.as_ref().unwrap();
        let held = item.criteria.as_deref().expect("criteria of its own");
        let mut criteria = crate::criteria::parse(held, "criteria").unwrap();
        let script = |evaluator: &Evaluator| matches!(evaluator, Evaluator::Script(_));
        criteria.criteria.retain(|it| !script(&it.evaluator));
        let tools = Tools::none().allow(ExecPermission::given_by_user());
        let critique = EvaluateOnce::new(Arc::new(criteria), None, &tools).unwrap();
        let text = Text {
            content: text.to_owned(),
            file: None,
        };
        let cancel = CancellationToken::new();
        let task = Task::default();
        let record = critique
            .run(&task, text, &mut |_: &Stamped| {}, &cancel)
            .await;
        let evaluation = record.versions[0].evaluation.clone().unwrap();
        let each = evaluation.criteria.into_iter();
        each.map(|it| (format!("{}: {:?}", it.name, it.evidence), it.passed))
            .collect()
    }

    #[tokio::test]
    async fn each_starter_task_has_a_solution_and_a_check_that_fails_without_one() {
        #[derive(Deserialize)]
        struct Answer {
            id: String,
            answer: String,
        }
        let answers: BTreeMap<String, String> = include_str!("sets/answers.jsonl")
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .map(|Answer { id, answer }| (id, answer))
            .collect();
        let tasks = starter();
        assert_eq!((tasks.len(), answers.len()), (60, 60));
        let python = std::process::Command::new("python3")
            .arg("-V")
            .output()
            .is_ok();
        for task in &tasks {
            let id = task.id.as_deref().unwrap();
            if id.starts_with("code-") && !python {
                assert!(
                    std::env::var_os("REFLECT_TEST_REQUIRE_ALL").is_none(),
                    "no python3"
                );
                continue;
            }
            for (check, met) in met(task, &answers[id]).await {
                assert!(met, "{id}: the solution fails {check}");
            }
            let item = task.task.as_ref().unwrap();
            let echo = met(task, &item.task.prompt).await;
            assert!(
                echo.iter().any(|(_, met)| !met) || id == "plan-6",
                "{id}: an echo of the prompt passes"
            );
        }
    }
}
