use std::collections::BTreeMap;

use indexmap::{IndexMap, IndexSet};
use serde::{Deserialize, Serialize};

use super::assess::{Outcomes, share};
use super::{Episode, ErrorCategory, TaskStatus, cause};
use crate::types::ReflectionCriteria;

/// The minimum number of results of a tool to judge it by.
const KNOWN_TOOL: usize = 2;

/// The minimum number of times among which one can be an outlier.
const LEAST_TIMES: usize = 4;

/// The distance from the median at which a time is an outlier, in multiples of the median distance.
const FAR_OUT: f64 = 5.0;

/// An insight from an episode, for later ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Insight {
    /// What it is about.
    pub category: InsightCategory,
    /// The category of failure, for a failure mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<ErrorCategory>,
    /// The insight in one sentence.
    pub text: String,
    /// The confidence, above 0 and below 1. It grows with the number of observations.
    pub confidence: f64,
    /// The id of the plan it was observed in.
    pub plan_id: String,
    /// The ids of the tasks it was observed in, in the order of their results.
    pub evidence: Vec<String>,
}

/// The subject of an insight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InsightCategory {
    /// How well a tool works.
    ToolEffectiveness,
    /// How tasks fail, and what helps.
    FailureMode,
    /// How long tasks take.
    Performance,
}

impl InsightCategory {
    /// Returns the name, as in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ToolEffectiveness => "tool_effectiveness",
            Self::FailureMode => "failure_mode",
            Self::Performance => "performance",
        }
    }
}

/// Returns the insights from an episode: which tools work, how tasks fail, and which tasks take
/// much longer than similar ones. Stores nothing; the caller does.
pub fn learn_from_episode(episode: &Episode, criteria: &ReflectionCriteria) -> Vec<Insight> {
    let lesson = Lesson {
        episode,
        outcomes: Outcomes::new(&episode.plan, &episode.results),
    };
    let mut insights = lesson.tools(criteria);
    insights.extend(lesson.failures());
    insights.extend(lesson.times(criteria));
    insights
}

struct Lesson<'a> {
    episode: &'a Episode,
    outcomes: Outcomes<'a>,
}

impl<'a> Lesson<'a> {
    fn insight<'t>(
        &self,
        category: InsightCategory,
        text: String,
        confidence: f64,
        evidence: impl IntoIterator<Item = &'t str>,
    ) -> Insight {
        let evidence: IndexSet<&str> = evidence.into_iter().collect();
        Insight {
            category,
            cause: None,
            text,
            confidence,
            plan_id: self.episode.plan.id.clone(),
            evidence: evidence.into_iter().map(str::to_owned).collect(),
        }
    }

    fn tool(&self, id: &str) -> Option<&'a str> {
        self.outcomes.planned.get(id)?.tool.as_deref()
    }

    /// Returns how well each tool with enough results works.
    fn tools(&self, criteria: &ReflectionCriteria) -> Vec<Insight> {
        let mut by_tool: IndexMap<&str, (usize, Vec<&str>)> = IndexMap::new();
        for (id, result) in &self.outcomes.last {
            let Some(tool) = self.tool(id) else {
                continue;
            };
            let ended = matches!(result.status, TaskStatus::Success | TaskStatus::Failed);
            if ended {
                let (done, ids) = by_tool.entry(tool).or_default();
                *done += usize::from(result.status == TaskStatus::Success);
                ids.push(id);
            }
        }
        let known = by_tool
            .into_iter()
            .filter(|(_, (_, ids))| ids.len() >= KNOWN_TOOL);
        known
            .map(|(tool, (done, ids))| {
                let all = ids.len();
                let works = share(done, all) >= criteria.min_success_rate;
                let text = match (works, done) {
                    (true, done) if done == all => {
                        format!("the tool `{tool}` did all {all} of its tasks")
                    }
                    (true, done) => format!("the tool `{tool}` did {done} of its {all} tasks"),
                    (false, done) => format!(
                        "the tool `{tool}` did only {done} of its {all} tasks: use it with care, or another one"
                    ),
                };
                let borne_out = if works { done } else { all - done };
                let confidence = laplace(borne_out, all);
                self.insight(InsightCategory::ToolEffectiveness, text, confidence, ids)
            })
            .collect()
    }

    /// Returns how tasks failed, and what helped.
    fn failures(&self) -> Vec<Insight> {
        let mut by_cause: BTreeMap<ErrorCategory, Vec<&str>> = BTreeMap::new();
        for result in &self.episode.results {
            let is_planned = self.outcomes.planned.contains_key(&*result.task_id);
            if result.status == TaskStatus::Failed && is_planned {
                let category = cause(result.error.as_ref()).category;
                by_cause
                    .entry(category)
                    .or_default()
                    .push(result.task_id.as_str());
            }
        }
        let mut insights = Vec::new();
        for (category, ids) in by_cause {
            let attempts = ids.len();
            let tools: IndexSet<&str> = ids.iter().filter_map(|id| self.tool(id)).collect();
            let with = match tools.first() {
                Some(tool) if tools.len() == 1 => format!(" with the tool `{tool}`"),
                _ => String::new(),
            };
            let times = if attempts == 1 {
                "an attempt".to_owned()
            } else {
                format!("{attempts} attempts")
            };
            let text = format!(
                "{times} failed by {category}{with}: {}",
                category.suggestion()
            );
            let mode = |text, times, ids: &[&str]| Insight {
                cause: Some(category),
                ..self.insight(
                    InsightCategory::FailureMode,
                    text,
                    seen(times),
                    ids.iter().copied(),
                )
            };
            insights.push(mode(text, attempts, &ids));
            let recovered: IndexSet<&str> = ids
                .into_iter()
                .filter(|id| self.outcomes.status(id) == TaskStatus::Success)
                .collect();
            if !recovered.is_empty() {
                let count = recovered.len();
                let text = format!(
                    "trying again helped after failures by {category}: {count} of the tasks were done in the end"
                );
                let recovered: Vec<&str> = recovered.into_iter().collect();
                insights.push(mode(text, count, &recovered));
            }
        }
        insights
    }

    /// Returns tasks that took much longer than others with the same tool.
    fn times(&self, criteria: &ReflectionCriteria) -> Vec<Insight> {
        let mut by_tool: IndexMap<Option<&str>, Vec<(&str, f64)>> = IndexMap::new();
        for (id, result) in &self.outcomes.last {
            if result.status == TaskStatus::Success
                && let Some(seconds) = result.duration()
            {
                by_tool
                    .entry(self.tool(id))
                    .or_default()
                    .push((id, seconds));
            }
        }
        let mut insights = Vec::new();
        for (tool, times) in by_tool {
            if times.len() < LEAST_TIMES {
                continue;
            }
            let usual = median(times.iter().map(|(_, seconds)| *seconds));
            let spread = median(times.iter().map(|(_, seconds)| (seconds - usual).abs()));
            // The median is robust against the outliers themselves. Among equal times, any longer
            // one is an outlier.
            let limit =
                (usual + FAR_OUT * spread).max(usual * criteria.max_execution_time_multiplier);
            let among = tool.map_or("the others".to_owned(), |tool| {
                format!("others of the tool `{tool}`")
            });
            for (id, seconds) in times.iter().filter(|(_, seconds)| *seconds > limit) {
                let text = format!(
                    "the task `{id}` took {seconds:.1} s where {among} took about {usual:.1} s: break it up, or expect \
                     more time of it"
                );
                let category = InsightCategory::Performance;
                insights.push(self.insight(
                    category,
                    text,
                    laplace(times.len(), times.len()),
                    [*id],
                ));
            }
        }
        insights
    }
}

/// Laplace's rule of succession: the probability of the event next time, after it occurred `so` out
/// of `all` times.
fn laplace(so: usize, all: usize) -> f64 {
    share(so + 1, all + 2)
}

/// The confidence after this number of observations: 0.5 after one, then increasing.
fn seen(times: usize) -> f64 {
    share(times, times + 1)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match (values.get(middle), values.len() % 2) {
        (Some(value), 1) => *value,
        (Some(value), _) => f64::midpoint(values[middle - 1], *value),
        (None, _) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reflector::{Plan, PlannedTask, TaskError, TaskResult};

    fn learned(tasks: &[(&str, Option<&str>, TaskResult)]) -> Vec<Insight> {
        let planned = tasks.iter().map(|(id, tool, _)| PlannedTask {
            tool: tool.map(str::to_owned),
            ..PlannedTask::new(*id)
        });
        let episode = Episode {
            plan: Plan {
                id: "p".to_owned(),
                goal: None,
                tasks: planned.collect(),
            },
            results: tasks.iter().map(|(_, _, result)| result.clone()).collect(),
        };
        learn_from_episode(&episode, &ReflectionCriteria::default())
    }

    fn ok(id: &str) -> TaskResult {
        TaskResult::new(id, TaskStatus::Success)
    }

    fn failed(id: &str, error: &str) -> TaskResult {
        TaskResult {
            error: Some(TaskError::new(error)),
            ..TaskResult::new(id, TaskStatus::Failed)
        }
    }

    fn took(id: &str, seconds: f64) -> TaskResult {
        TaskResult {
            seconds: Some(seconds),
            ..ok(id)
        }
    }

    #[test]
    fn tools_are_known_by_what_they_did() {
        let insights = learned(&[
            ("a", Some("x"), ok("a")),
            ("b", Some("x"), ok("b")),
            ("c", Some("y"), ok("c")),
        ]);
        assert_eq!(insights.len(), 1, "one result of `y` says too little");
        assert_eq!(insights[0].category, InsightCategory::ToolEffectiveness);
        assert_eq!(insights[0].text, "the tool `x` did all 2 of its tasks");
        assert!((insights[0].confidence - 0.75).abs() < 1e-9);
        assert_eq!(insights[0].evidence, ["a", "b"]);
        let insights = learned(&[
            ("a", Some("x"), failed("a", "oops")),
            ("b", Some("x"), ok("b")),
        ]);
        assert!(insights[0].text.contains("only 1 of its 2"), "{insights:?}");
    }

    #[test]
    fn failures_are_remembered_by_their_cause_and_the_more_the_surer() {
        let insights = learned(&[
            ("a", Some("x"), failed("a", "timed out")),
            ("b", Some("x"), failed("b", "timed out")),
            ("c", None, failed("c", "no such file")),
        ]);
        let modes: Vec<&Insight> = insights
            .iter()
            .filter(|insight| insight.category == InsightCategory::FailureMode)
            .collect();
        assert_eq!(modes.len(), 2);
        assert_eq!(modes[0].cause, Some(ErrorCategory::Timeout));
        assert!(
            modes[0]
                .text
                .starts_with("2 attempts failed by timeout with the tool `x`")
        );
        assert!(modes[0].confidence > modes[1].confidence);
    }

    #[test]
    fn what_helped_is_remembered() {
        let insights = learned(&[("a", None, failed("a", "timed out")), ("a", None, ok("a"))]);
        assert_eq!(insights.len(), 2);
        assert!(insights[1].text.starts_with("trying again helped"));
    }

    #[test]
    fn a_time_stands_out_among_its_like() {
        let times = [1.0, 1.2, 0.9, 1.1, 10.0, 1.0];
        let tasks: Vec<(String, f64)> = (0..).map(|id: u8| id.to_string()).zip(times).collect();
        let tasks: Vec<_> = tasks
            .iter()
            .map(|(id, seconds)| (id.as_str(), None, took(id, *seconds)))
            .collect();
        let insights = learned(&tasks);
        assert_eq!(insights.len(), 1);
        assert_eq!(insights[0].category, InsightCategory::Performance);
        assert_eq!(insights[0].evidence, ["4"]);
        // Tasks with different tools each.
        let own = [1.0, 5.0, 20.0, 60.0];
        let ids = ["a", "b", "c", "d"];
        let tasks: Vec<_> = (ids.iter().zip(own))
            .map(|(id, seconds)| (*id, None, took(id, seconds)))
            .collect();
        assert!(learned(&tasks).is_empty());
    }

    #[test]
    fn nothing_is_learned_from_nothing() {
        assert!(learned(&[]).is_empty());
        assert!(learned(&[("a", None, TaskResult::new("a", TaskStatus::Pending))]).is_empty());
    }
}
