//! The arguments of `reflect mcp`.

use std::path::PathBuf;

use clap::{ArgAction, Args, ValueHint};

use super::{
    AskingArgs, EvaluateArgs, InputFormat, KnowledgeArgs, LoopsArgs, OutputArgs, OutputFormat,
    RunArgs,
};
use crate::types::{Switch, switch};

/// `reflect mcp`.
#[derive(Debug, Clone, Args)]
#[command(
    after_long_help = "\
Examples:
  claude mcp add reflect -- reflect mcp --criteria-dir ~/criteria
  reflect mcp -m ollama:qwen3:8b -n 3 --max-total-tokens 50000
  reflect mcp --criteria-dir ./criteria --allow-exec

The tools are draft, revise, evaluate, list_criteria and show_run. The limits hold for each call; a client can only \
lower them. Clients choose criteria by name: the built-in ones, and NAME.toml in the folders of --criteria-dir.

stdin and stdout carry the protocol; messages go to stderr. The server ends with its input.",
    mut_arg("max_total_tokens", |arg| arg.help("Stop each run once it has used N tokens")),
    mut_arg("max_cost", |arg| arg.help("Stop each run once it has cost X")),
    mut_arg("max_time", |arg| arg.help("Stop each run after this time, for example 90s or 10m")),
)]
pub(in crate::cli) struct McpArgs {
    /// Offer the criteria files in this folder by name; repeatable
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Criteria")]
    pub criteria_dir: Vec<PathBuf>,

    /// What the models know.
    #[command(flatten)]
    pub knowledge: KnowledgeArgs,

    /// Offer the model what earlier runs taught (`reflect memory`), and measure whether it helps
    #[arg(long, action = ArgAction::SetTrue, value_parser = switch(true), hide_short_help = true, help_heading = "Input")]
    pub memory: Switch<bool>,

    /// The loops.
    #[command(flatten)]
    pub loops: LoopsArgs,

    /// Do not record the runs in the run log
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub no_log: bool,
}

impl McpArgs {
    /// Returns the options of a run with these criteria, or with the default ones.
    pub(in crate::cli) fn run(&self, criteria: Option<String>) -> RunArgs {
        let loops = self.loops.clone();
        RunArgs {
            criteria_path: criteria.is_some().then(Vec::new),
            criteria: criteria.into_iter().collect(),
            files: Vec::new(),
            knowledge: self.knowledge.clone(),
            memory: self.memory,
            system: None,
            model: loops.model,
            allow_exec: loops.allow_exec,
            tools: loops.tools,
            judge: loops.judge,
            flow: loops.flow,
            limits: loops.limits,
            asking: AskingArgs::default(),
            diff: false,
            extract: false,
            output: self.output(),
        }
    }

    /// Returns the options of an evaluation by these criteria.
    pub(in crate::cli) fn evaluate(
        &self,
        criteria: String,
        prompt: Option<String>,
    ) -> EvaluateArgs {
        let loops = self.loops.clone();
        EvaluateArgs {
            texts: Vec::new(),
            criteria_path: Some(Vec::new()),
            criteria: vec![criteria],
            evaluator: None,
            input_format: InputFormat::Text,
            prompt,
            prompt_file: None,
            files: Vec::new(),
            knowledge: self.knowledge.clone(),
            system: None,
            threshold: loops.flow.threshold,
            allow_exec: loops.allow_exec,
            model: loops.model,
            judge: loops.judge,
            output: self.output(),
        }
    }

    fn output<F: OutputFormat + Default>(&self) -> OutputArgs<F> {
        OutputArgs {
            no_log: self.no_log,
            ..OutputArgs::default()
        }
    }
}
