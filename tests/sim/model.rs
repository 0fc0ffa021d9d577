//! An in-process model that writes and judges in a [`World`].

use std::sync::{Arc, Mutex};

use fastrand::Rng;
use futures_util::{StreamExt as _, stream};
use reflect::model::{
    ChatEvent, ChatModel, ChatRequest, ChatStream, EndReason, ModelError, ModelInfo,
};
use reflect::types::{ModelId, TokenUsage};
use serde_json::{Map, Value, json};

use crate::world::{Noise, World, between, clip, gauss};

/// The judge declares a tie if two drafts differ by less.
const TIE: f64 = 0.02;

/// The number of calls by kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked {
    pub drafts: usize,
    pub judged: usize,
    pub compared: usize,
    pub prompt: usize,
    pub output: usize,
}

impl Asked {
    pub fn calls(self) -> usize {
        self.drafts + self.judged + self.compared
    }
}

struct State {
    rng: Rng,
    asked: Asked,
    /// The first text written.
    first: Option<String>,
}

/// A model for one run.
pub struct SimModel {
    id: ModelId,
    world: World,
    noise: Noise,
    state: Mutex<State>,
}

fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

impl SimModel {
    pub fn new(world: World, noise: Noise, seed: u64) -> Arc<Self> {
        let (rng, asked, first) = (Rng::with_seed(seed), Asked::default(), None);
        Arc::new(Self {
            id: ModelId {
                provider: "sim".to_owned(),
                model: "sim".to_owned(),
            },
            world,
            noise,
            state: Mutex::new(State { rng, asked, first }),
        })
    }

    pub fn asked(&self) -> Asked {
        self.state.lock().unwrap().asked
    }

    /// Returns the true quality of the first valid draft.
    pub fn first(&self) -> f64 {
        let state = self.state.lock().unwrap();
        state
            .first
            .as_ref()
            .map_or(0.0, |text| self.world.truth(text))
    }

    fn answer(&self, request: &ChatRequest, prompt: &str) -> String {
        let mut state = self.state.lock().unwrap();
        let state = &mut *state;
        match &request.schema {
            None => {
                let text = self.world.write(prompt, state.asked.drafts, &mut state.rng);
                state.asked.drafts += 1;
                if !text.starts_with("I'm sorry") {
                    state.first.get_or_insert_with(|| text.clone());
                }
                text
            }
            Some(schema) if schema.schema()["properties"].get("better").is_some() => {
                state.asked.compared += 1;
                let truth = |tag| self.world.truth(between(prompt, tag).unwrap_or_default());
                let noise = self.noise.sigma / 2.0 * gauss(&mut state.rng);
                let difference = truth("draft-a") - truth("draft-b") + noise;
                let better = match difference {
                    d if d.abs() < TIE => "tie",
                    d if d > 0.0 => "A",
                    _ => "B",
                };
                json!({ "reason": "One place decides.", "better": better }).to_string()
            }
            Some(schema) => {
                state.asked.judged += 1;
                let text = between(prompt, "draft").unwrap_or_default();
                self.verdict(schema.schema(), text, &mut state.rng)
                    .to_string()
            }
        }
    }

    fn verdict(&self, schema: &Value, text: &str, rng: &mut Rng) -> Value {
        let noise = self.noise.sigma * gauss(rng);
        let score = clip(self.world.truth(text) + self.noise.bias + noise);
        let asked = schema["properties"]["scores"]["properties"]
            .as_object()
            .unwrap();
        let rounded = (score * 1e4).round() / 1e4;
        let scores: Map<String, Value> = asked
            .keys()
            .map(|name| {
                let reason = "Because of what it says.";
                (name.clone(), json!({ "reason": reason, "score": rounded }))
            })
            .collect();
        let criterion = asked.keys().next().unwrap();
        let issues: Vec<Value> = self
            .world
            .issues(text, score, self.noise, rng)
            .into_iter()
            .map(|(description, quote)| {
                json!({
                    "type": "incorrect", "severity": "minor", "criterion": criterion, "quote": quote,
                    "description": description, "suggested_fix": "Write it better.",
                })
            })
            .collect();
        json!({ "scores": scores, "issues": issues, "confidence": 0.8 })
    }
}

#[async_trait::async_trait]
impl ChatModel for SimModel {
    fn id(&self) -> &ModelId {
        &self.id
    }

    fn chat(&self, request: ChatRequest) -> ChatStream<'_> {
        let all: Vec<&str> = request
            .messages
            .iter()
            .map(|m| m.content.as_str())
            .collect();
        let prompt = all.join("\n");
        let text = self.answer(&request, &prompt);
        let (read, written) = (tokens(&prompt), tokens(&text));
        let asked = &mut self.state.lock().unwrap().asked;
        asked.prompt += read;
        asked.output += written;
        let usage = TokenUsage::new(Some(read as u64), Some(written as u64), None);
        stream::iter([
            Ok(ChatEvent::Text(text)),
            Ok(ChatEvent::Usage(usage)),
            Ok(ChatEvent::End(EndReason::Stop)),
        ])
        .boxed()
    }

    async fn info(&self) -> Result<ModelInfo, ModelError> {
        Ok(ModelInfo::default())
    }
}
