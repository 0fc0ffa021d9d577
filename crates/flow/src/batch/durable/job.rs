use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::batch::replan::Adjustment;
use crate::batch::row::Row;
use crate::source::hex;
use crate::types::{Comparison, Criteria, LoopSettings, RecalledMemory, Setup, Task};

/// A task with everything that a worker needs to run it, except its own keys and addresses.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The task's id.
    pub id: String,
    /// The task's line in the input.
    pub line: u64,
    /// The prompt with its context.
    pub task: Task,
    /// How to run the task.
    pub plan: JobPlan,
    /// The rate limits shared by all workers.
    pub rates: Rates,
    /// Whether the run waits for an external decision after each draft.
    #[serde(default)]
    pub asks: bool,
    /// Memories recalled for the task. They change over time, so they are not part of the key.
    #[serde(default, skip_serializing_if = "RecalledMemory::is_empty")]
    pub recalled: RecalledMemory,
    /// What this attempt changes, if the task failed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adjustment: Option<Adjustment>,
}

/// How tasks run: the same for all tasks with the same criteria.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// The criteria that drafts are evaluated with.
    pub criteria: Criteria,
    /// The settings of the loop.
    pub settings: LoopSettings,
    /// The models and their call settings.
    pub setup: Setup,
}

/// The result of a job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Done {
    /// The row of the task.
    #[serde(flatten)]
    pub row: Row,
    /// Whether memory helped the run; `None` if it used none, or if the worker keeps no log to compare with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compared: Option<Comparison>,
}

/// How fast all workers together may call a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// The maximum number of requests per minute.
    pub requests_per_minute: Option<u32>,
    /// The maximum number of tokens per minute, input and output.
    pub tokens_per_minute: Option<u32>,
}

impl Rates {
    /// Whether there are no limits.
    pub fn is_free(self) -> bool {
        self == Self::default()
    }
}

impl Job {
    /// Identifies the job. The same task with the same settings in a batch of the same name has the same key.
    /// `turn` is 0 at first, and increases when a failed job is repeated. Each adjusted attempt has its own
    /// key.
    pub fn key(&self, batch: &str, turn: u32) -> String {
        let setup = &self.plan.setup;
        // The directory, the prices and the recalled memories do not change the task's identity.
        let mut what = serde_json::json!([
            batch,
            turn,
            self.id,
            self.asks,
            self.task,
            self.plan.criteria,
            self.plan.settings,
            setup.settings,
            setup.prompts,
            setup.templates_hash,
            setup.tools,
            setup.evidence_hash,
        ]);
        if let (Some(adjustment), Some(parts)) = (&self.adjustment, what.as_array_mut()) {
            parts.push(serde_json::json!(adjustment));
        }
        let hash = hex(&Sha256::digest(what.to_string())[..16]);
        format!("{}{hash}", key_of(batch))
    }

    /// Returns the writer, as `provider:model`.
    pub fn model(&self) -> &str {
        let model = self.plan.setup.settings["model"].as_str();
        model.unwrap_or_default()
    }

    /// Returns the task with everything that the writer receives.
    pub fn full_task(&self) -> Task {
        let mut task = self.task.clone();
        task.add_recalled(self.recalled.clone());
        if let Some(adjustment) = &self.adjustment {
            adjustment.tell(&mut task);
        }
        task
    }
}

/// Returns the prefix of the keys of a batch.
pub(super) fn key_of(batch: &str) -> String {
    format!("{}-", hex(&Sha256::digest(batch)[..8]))
}

impl JobPlan {
    /// Identifies the plan.
    pub fn key(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        hex(&Sha256::digest(text)[..16])
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::batch::durable) fn job() -> Job {
        let criteria = "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nunit = 'words'\nmax = 9";
        Job {
            id: "a".to_owned(),
            line: 1,
            task: Task::new("Write a line."),
            plan: JobPlan {
                criteria: crate::criteria::parse(criteria, "criteria.toml").unwrap(),
                settings: LoopSettings::default(),
                setup: Setup {
                    directory: "/somewhere".into(),
                    settings: serde_json::json!({"model": "a/b"}),
                    prompts: 1,
                    templates_hash: None,
                    tools: Vec::new(),
                    prices: crate::types::Prices::default(),
                    evidence: Vec::new(),
                    evidence_hash: None,
                },
            },
            rates: Rates::default(),
            asks: false,
            recalled: RecalledMemory::default(),
            adjustment: None,
        }
    }

    fn recalled() -> RecalledMemory {
        let recalled = serde_json::json!({
            "insights": [{"category": "c", "content": "Begin with the end.", "confidence": 0.5}],
            "remembered": [7],
        });
        serde_json::from_value(recalled).unwrap()
    }

    /// Returns the adjustment of an attempt after a network failure.
    fn adjustment(attempt: u32) -> Adjustment {
        let adjustment = serde_json::json!({
            "attempt": attempt,
            "stronger": false,
            "guidance": {"category": "replan", "content": "Write less.", "confidence": 0.5},
        });
        serde_json::from_value(adjustment).unwrap()
    }

    #[test]
    fn the_key_depends_on_the_work_and_not_on_its_location() {
        let one = job();
        let key = one.key("", 0);
        assert_eq!(key.len(), 16 + 1 + 32);
        assert!(key.starts_with(&key_of("")));
        assert!(!one.key("nightly", 0).starts_with(&key_of("")));
        let mut moved = job();
        moved.line = 9;
        moved.recalled = recalled();
        moved.plan.setup.directory = "/elsewhere".into();
        assert_eq!(moved.key("", 0), key);
        let mut others = vec![key, one.key("nightly", 0), one.key("", 1)];
        for change in [
            |job: &mut Job| job.id = "b".to_owned(),
            |job: &mut Job| job.asks = true,
            |job: &mut Job| job.adjustment = Some(adjustment(2)),
            |job: &mut Job| job.adjustment = Some(adjustment(3)),
            |job: &mut Job| job.task = Task::new("Write two lines."),
            |job: &mut Job| job.plan.settings.max_iterations = Some(9),
            |job: &mut Job| job.plan.criteria.threshold = 0.1,
            |job: &mut Job| job.plan.setup.settings = serde_json::json!({"model": "a/c"}),
        ] {
            let mut job = job();
            change(&mut job);
            others.push(job.key("", 0));
        }
        let number = others.len();
        others.sort();
        others.dedup();
        assert_eq!(others.len(), number);
    }

    /// Jobs submitted by earlier versions must keep their keys.
    #[test]
    fn the_key_of_a_first_attempt_has_exactly_these_parts() {
        let job = job();
        let setup = &job.plan.setup;
        let parts = serde_json::json!([
            "nightly",
            1,
            "a",
            false,
            {"prompt": "Write a line."},
            job.plan.criteria,
            job.plan.settings,
            {"model": "a/b"},
            setup.prompts,
            null,
            [],
            null,
        ]);
        let digest = hex(&Sha256::digest(parts.to_string())[..16]);
        let batch = key_of("nightly");
        assert_eq!(job.key("nightly", 1), format!("{batch}{digest}"));
        let json = serde_json::to_value(&job).unwrap();
        assert!(json.get("adjustment").is_none(), "{json}");
        assert!(json.get("recalled").is_none(), "{json}");
    }

    #[test]
    fn the_writer_receives_guidance_and_memory() {
        let mut job = job();
        assert_eq!(job.full_task(), job.task);
        job.recalled = recalled();
        assert_eq!(job.full_task().remembered, [7]);
        assert_eq!(job.full_task().insights[0].content, "Begin with the end.");
        job.adjustment = Some(adjustment(2));
        assert_eq!(job.full_task().insights[1].content, "Write less.");
    }

    #[test]
    fn a_job_round_trips_through_json() {
        let mut one = job();
        one.adjustment = Some(adjustment(2));
        one.recalled = recalled();
        let text = serde_json::to_string(&one).unwrap();
        let back: Job = serde_json::from_str(&text).unwrap();
        assert_eq!(back.key("", 0), one.key("", 0));
        assert_eq!(back.plan, one.plan);
        assert_eq!(
            (back.adjustment, back.recalled),
            (one.adjustment, one.recalled)
        );
    }

    #[test]
    fn a_result_is_a_row_with_or_without_a_comparison() {
        let row = Row {
            run_id: Some(uuid::Uuid::from_u128(1)),
            overall_score: Some(0.25),
            cost: Some(0.1),
            ..Row::invalid(3, None, "it failed".to_owned())
        };
        let compared = Comparison {
            success: Some(true),
            shares: vec![(7, Some(0.5)), (8, None)],
        };
        for compared in [None, Some(compared)] {
            let done = Done {
                row: row.clone(),
                compared: compared.clone(),
            };
            let json = serde_json::to_string(&done).unwrap();
            let back: Done = serde_json::from_str(&json).unwrap();
            assert_eq!((back.row, back.compared), (row.clone(), compared));
        }
        let back: Done = serde_json::from_str(&row.to_line()).unwrap();
        assert_eq!((back.row, back.compared), (row, None));
    }
}
