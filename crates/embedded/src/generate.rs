use reflect_llama::{EngineError, Stop};

use super::constrain::{Constraint, Constraints};
use super::sampler::{self, Sampler};
use super::slots::{Slot, Slots};
use super::template::ChatTemplate;
use super::utf8::Utf8Assembler;
use super::vocabulary::Vocabulary;
use reflect_base::types::TokenUsage;
use reflect_model::{ChatEvent, ChatRequest, EndReason, ErrorClass, ModelError};

/// A loaded model.
pub(super) struct Loaded {
    pub(super) vocabulary: Vocabulary,
    pub(super) template: ChatTemplate,
    pub(super) slots: Slots,
    /// Created for the first schema; an error message if that fails.
    pub(super) constraints: Option<Result<Constraints, String>>,
}

/// Why a reply ended without [`ChatEvent::End`].
pub(super) enum StreamError {
    /// The receiver of the stream is gone.
    Dropped,
    /// The call failed.
    Failed(ModelError),
}

impl From<ModelError> for StreamError {
    fn from(error: ModelError) -> Self {
        Self::Failed(error)
    }
}

impl From<EngineError> for StreamError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Stopped => Self::Dropped,
            other => Self::Failed(model_error(&other)),
        }
    }
}

impl Loaded {
    /// Answers a chat; `emit` returns whether the receiver still exists.
    pub(super) fn answer(
        &mut self,
        request: &ChatRequest,
        stop: &Stop,
        emit: &mut dyn FnMut(ChatEvent) -> bool,
    ) -> Result<(), StreamError> {
        let mut emit = |event| {
            if emit(event) {
                Ok(())
            } else {
                Err(StreamError::Dropped)
            }
        };
        let prompt = self.prompt(request)?;
        let constraint = match request.schema.as_deref() {
            None => None,
            Some(schema) => match self.constrain(schema.schema()) {
                Ok(constraint) => Some(constraint),
                Err(reason) => {
                    emit(ChatEvent::Notice(format!(
                        "the embedded model cannot enforce the schema `{}` and replies without it: {reason}",
                        schema.name()
                    )))?;
                    None
                }
            },
        };
        let Self {
            vocabulary, slots, ..
        } = self;
        let slot = slots.for_prompt(request.purpose, &prompt);
        let cached = slot.len();
        slot.eval(&prompt[cached..], stop)?;
        let usage = |completion: usize| {
            let count = |n: usize| u64::try_from(n).ok();
            ChatEvent::Usage(TokenUsage::new(
                count(prompt.len()),
                count(completion),
                count(cached),
            ))
        };
        emit(usage(0))?;
        let mut writing = Generation {
            vocabulary,
            slot,
            sampler: Sampler::new(&request.sampling),
            constraint,
            top_logprobs: request.top_logprobs,
            most: request
                .sampling
                .max_tokens
                .map_or(usize::MAX, |most| most as usize),
            written: 0,
            utf8: Utf8Assembler::default(),
        };
        let end = writing.run(stop, &mut emit)?;
        let rest = writing.utf8.finish();
        if !rest.is_empty() {
            emit(ChatEvent::Text(rest))?;
        }
        emit(usage(writing.written))?;
        emit(ChatEvent::End(end))
    }

    /// Converts a conversation to tokens.
    pub(super) fn prompt(&self, request: &ChatRequest) -> Result<Vec<u32>, ModelError> {
        let prompt = self
            .template
            .render(&request.messages, request.think, &self.vocabulary)
            .map_err(|reason| {
                ModelError::new(
                    ErrorClass::Rejected,
                    format!("the model's chat template rejects this conversation: {reason}"),
                )
            })?;
        let tokens = self.vocabulary.encode(&prompt.text, &prompt.hidden);
        let tokens = tokens.map_err(|error| model_error(&error))?;
        let window = self.slots.window();
        if tokens.is_empty() {
            return Err(ModelError::new(
                ErrorClass::Rejected,
                "the model's chat template renders this conversation as an empty prompt",
            ));
        }
        if tokens.len() >= window {
            return Err(ModelError::new(
                ErrorClass::ContextTooLong,
                format!(
                    "the prompt has {} tokens, the context window {window}",
                    tokens.len()
                ),
            )
            .with_hint(
                "shorten the prompt or the context, or use a model with a larger context window",
            ));
        }
        Ok(tokens)
    }

    fn constrain(&mut self, schema: &serde_json::Value) -> Result<Constraint, String> {
        let vocabulary = &self.vocabulary;
        self.constraints
            .get_or_insert_with(|| Constraints::new(vocabulary))
            .as_ref()
            .map_err(Clone::clone)?
            .json(schema)
    }
}

/// A reply while it is generated.
struct Generation<'a> {
    vocabulary: &'a Vocabulary,
    slot: &'a mut Slot,
    sampler: Sampler,
    constraint: Option<Constraint>,
    top_logprobs: Option<u8>,
    most: usize,
    /// The number of tokens generated so far.
    written: usize,
    utf8: Utf8Assembler,
}

impl Generation<'_> {
    /// Generates tokens, starting from the logits after the prompt.
    fn run(
        &mut self,
        stop: &Stop,
        emit: &mut dyn FnMut(ChatEvent) -> Result<(), StreamError>,
    ) -> Result<EndReason, StreamError> {
        loop {
            if self.written >= self.most {
                return Ok(EndReason::Length);
            }
            let allowed = match &mut self.constraint {
                None => None,
                Some(constraint) => Some(constraint.allowed().map_err(|e| constraint_failed(&e))?),
            };
            let logits = self.slot.eval(&[], stop)?;
            let token = self.sampler.choose(logits, allowed.as_ref());
            let token = token.ok_or_else(|| {
                ModelError::new(ErrorClass::Protocol, "no token can follow the reply so far")
            })?;
            self.written += 1;
            if self.vocabulary.is_end(token) {
                return Ok(EndReason::Stop);
            }
            if let Some(top) = self.top_logprobs {
                let token = sampler::logprobs(logits, token, usize::from(top), self.vocabulary);
                emit(ChatEvent::Logprobs(vec![token]))?;
            }
            let text = self.utf8.push(self.vocabulary.bytes(token));
            if !text.is_empty() {
                emit(ChatEvent::Text(text))?;
            }
            if let Some(constraint) = &mut self.constraint
                && constraint
                    .accept(token)
                    .map_err(|e| constraint_failed(&e))?
            {
                return Ok(EndReason::Stop);
            }
            if stop.is_raised() {
                return Err(StreamError::Dropped);
            }
            if self.written >= self.most || self.slot.is_full() {
                return Ok(EndReason::Length);
            }
            self.slot.eval(&[token], stop)?;
        }
    }
}

fn constraint_failed(reason: &str) -> ModelError {
    ModelError::new(
        ErrorClass::Protocol,
        format!("the reply cannot continue within the schema: {reason}"),
    )
}

/// Converts an engine error for callers.
pub(crate) fn model_error(error: &EngineError) -> ModelError {
    let class = match error {
        EngineError::Read { missing: true, .. } => ErrorClass::NotFound,
        EngineError::Full { .. } => ErrorClass::ContextTooLong,
        EngineError::Read { .. }
        | EngineError::Invalid { .. }
        | EngineError::Unsupported { .. }
        | EngineError::Token(_)
        | EngineError::Tokenizer(_)
        | EngineError::Stopped
        | EngineError::Arithmetic(_) => ErrorClass::Rejected,
    };
    let hint = match error {
        EngineError::Read { missing: true, .. } => {
            Some("check the path, or download the model with `reflect models pull`")
        }
        EngineError::Invalid { .. } => {
            Some("the file may be incomplete: download it again with `reflect models pull`")
        }
        EngineError::Unsupported { .. } => {
            Some("choose another GGUF file, or run this one with Ollama or llama.cpp")
        }
        _ => None,
    };
    let message = error.to_string();
    let error = ModelError::new(class, message);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}
