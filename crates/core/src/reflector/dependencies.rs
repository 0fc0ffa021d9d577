use std::collections::HashMap;

use super::{Plan, TaskResult};

/// Returns the results by their end time if all have one, else in the given order.
pub(super) fn in_time(results: &[TaskResult]) -> Vec<&TaskResult> {
    let mut ordered: Vec<&TaskResult> = results.iter().collect();
    if ordered.iter().all(|result| result.time().is_some()) {
        ordered.sort_by_key(|result| result.time());
    }
    ordered
}

/// The dependencies between tasks.
pub(super) struct Dependencies {
    /// The length of the longest chain of dependent tasks.
    pub(super) longest: usize,
    /// A task in a dependency cycle.
    pub(super) circle: Option<usize>,
}

/// Analyses the dependencies between the tasks of a plan. Ignores names that no task has.
pub(super) fn waiting(plan: &Plan) -> Dependencies {
    let places: HashMap<&str, usize> = plan
        .tasks
        .iter()
        .enumerate()
        .map(|(place, task)| (task.id.as_str(), place))
        .collect();
    let count = plan.tasks.len();
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut open = vec![0_usize; count];
    for (place, task) in plan.tasks.iter().enumerate() {
        for before in task
            .depends_on
            .iter()
            .filter_map(|id| places.get(id.as_str()))
        {
            followers[*before].push(place);
            open[place] += 1;
        }
    }
    let mut depth = vec![1_usize; count];
    let mut ready: Vec<usize> = (0..count).filter(|place| open[*place] == 0).collect();
    let mut longest = 0;
    while let Some(place) = ready.pop() {
        longest = longest.max(depth[place]);
        for next in &followers[place] {
            depth[*next] = depth[*next].max(depth[place] + 1);
            open[*next] -= 1;
            if open[*next] == 0 {
                ready.push(*next);
            }
        }
    }
    Dependencies {
        longest,
        circle: open.iter().position(|open| *open > 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflector::{PlannedTask, TaskStatus};

    fn plan(tasks: &[(&str, &[&str])]) -> Plan {
        Plan {
            id: "p".to_owned(),
            goal: None,
            tasks: tasks
                .iter()
                .map(|(id, before)| PlannedTask {
                    depends_on: before.iter().map(|id| (*id).to_owned()).collect(),
                    ..PlannedTask::new(*id)
                })
                .collect(),
        }
    }

    #[test]
    fn chains_are_measured_and_circles_found() {
        let waits = waiting(&plan(&[
            ("a", &[]),
            ("b", &["a", "none"]),
            ("c", &["a"]),
            ("d", &["b", "c"]),
        ]));
        assert_eq!((waits.longest, waits.circle), (3, None));
        let waits = waiting(&plan(&[("a", &[]), ("b", &["c"]), ("c", &["b"])]));
        assert_eq!((waits.longest, waits.circle), (1, Some(1)));
        assert_eq!(waiting(&plan(&[("a", &["a"])])).circle, Some(0));
        assert_eq!(waiting(&plan(&[])).longest, 0);
    }

    #[test]
    fn times_order_results_only_if_all_have_one() {
        let at = |id: &str, time: Option<&str>| TaskResult {
            finished: time.map(|time| time.parse().unwrap()),
            ..TaskResult::new(id, TaskStatus::Success)
        };
        let ids = |results: &[TaskResult]| -> Vec<String> {
            in_time(results).iter().map(|r| r.task_id.clone()).collect()
        };
        let (late, early) = ("2026-01-01T00:00:02Z", "2026-01-01T00:00:01Z");
        assert_eq!(
            ids(&[at("a", Some(late)), at("b", Some(early))]),
            ["b", "a"]
        );
        assert_eq!(ids(&[at("a", Some(late)), at("b", None)]), ["a", "b"]);
    }
}
