use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::source::hex;
use crate::types::{Criteria, LoopSettings, Setup, Task};

/// A task, with all that a machine needs to do it besides keys and addresses of its own.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Job {
    /// The task's id.
    pub id: String,
    /// Its line in the input.
    pub line: u64,
    /// What is to be written.
    pub task: Task,
    /// How.
    pub plan: JobPlan,
    /// What all machines together keep to.
    pub rates: Rates,
    /// Whether somebody outside decides after each draft how it goes on.
    #[serde(default)]
    pub asks: bool,
}

/// How tasks are done: the same for all tasks with the same criteria.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobPlan {
    /// What drafts are measured by.
    pub criteria: Criteria,
    /// How the loop behaves.
    pub settings: LoopSettings,
    /// How models are reached and asked.
    pub setup: Setup,
}

/// How fast one model is asked by all machines together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// The most requests a minute.
    pub requests_per_minute: Option<u32>,
    /// The most tokens a minute, prompts and answers together.
    pub tokens_per_minute: Option<u32>,
}

impl Rates {
    /// Whether nothing is limited.
    pub fn is_free(self) -> bool {
        self == Self::default()
    }
}

impl Job {
    /// What the job is known by: that of the same task, to be done in the same way, for a batch of the same name. The
    /// `turn` is 0; a task that failed is done again as another turn.
    pub fn key(&self, batch: &str, turn: u32) -> String {
        let setup = &self.plan.setup;
        // Neither where it was submitted from nor what it costs makes it another task.
        let what = serde_json::json!([
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
        hex(&Sha256::digest(what.to_string())[..16])
    }
}

impl JobPlan {
    /// What the plan is known by.
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
        }
    }

    #[test]
    fn the_key_is_of_what_is_done_and_not_of_where_it_stands() {
        let one = job();
        let key = one.key("", 0);
        assert_eq!(key.len(), 32);
        let mut moved = job();
        moved.line = 9;
        moved.plan.setup.directory = "/elsewhere".into();
        assert_eq!(moved.key("", 0), key);
        let mut others = vec![key, one.key("nightly", 0), one.key("", 1)];
        for change in [
            |job: &mut Job| job.id = "b".to_owned(),
            |job: &mut Job| job.asks = true,
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

    #[test]
    fn a_job_comes_back_from_json() {
        let one = job();
        let text = serde_json::to_string(&one).unwrap();
        let back: Job = serde_json::from_str(&text).unwrap();
        assert_eq!(back.key("", 0), one.key("", 0));
        assert_eq!(back.plan, one.plan);
    }
}
