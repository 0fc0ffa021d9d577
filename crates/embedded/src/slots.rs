use reflect_llama::{Engine, EngineError, Stop};

use reflect_model::Purpose;

/// The sequences that are kept between calls, one per purpose, so that judging a text does not evict the writer's
/// conversation.
pub(super) struct Slots {
    write: Slot,
    judge: Slot,
}

/// An engine with a record of its tokens.
pub(super) struct Slot {
    engine: Box<dyn Engine>,
    tokens: Vec<u32>,
}

impl Slots {
    /// Creates two sequences of one model.
    pub(super) fn new(engine: Box<dyn Engine>) -> Self {
        let slot = |engine| Slot {
            engine,
            tokens: Vec::new(),
        };
        Self {
            judge: slot(engine.fork()),
            write: slot(engine),
        }
    }

    /// The maximum number of tokens in a sequence.
    pub(super) fn window(&self) -> usize {
        self.write.engine.window()
    }

    /// The slot for a call, reusing the longest prefix of the prompt that a slot has. At least the last token of the
    /// prompt remains to be evaluated, for its logits.
    pub(super) fn for_prompt(&mut self, purpose: Purpose, prompt: &[u32]) -> &mut Slot {
        let (own, other) = match purpose {
            Purpose::Write => (&mut self.write, &self.judge),
            Purpose::Judge => (&mut self.judge, &self.write),
        };
        let reusable = |slot: &Slot| {
            slot.common_prefix_len(prompt)
                .min(prompt.len().saturating_sub(1))
        };
        if reusable(other) > reusable(own) {
            own.engine = other.engine.fork();
            own.tokens.clone_from(&other.tokens);
        }
        own.truncate(reusable(own));
        own
    }
}

impl Slot {
    /// The number of tokens in the slot.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is no room for another token.
    pub(super) fn is_full(&self) -> bool {
        self.tokens.len() >= self.engine.window()
    }

    /// Appends tokens and returns the logits after the last one.
    pub(super) fn eval(&mut self, tokens: &[u32], stop: &Stop) -> Result<&[f32], EngineError> {
        self.tokens.extend_from_slice(tokens);
        // Keep the record in sync with the engine, even after an error.
        match self.engine.eval(tokens, stop) {
            Ok(_) => {}
            Err(error) => {
                self.tokens.truncate(self.engine.len());
                return Err(error);
            }
        }
        self.engine.eval(&[], stop)
    }

    fn truncate(&mut self, len: usize) {
        self.engine.truncate(len);
        self.tokens.truncate(len);
    }

    fn common_prefix_len(&self, prompt: &[u32]) -> usize {
        let pairs = self.tokens.iter().zip(prompt);
        pairs.take_while(|(a, b)| a == b).count()
    }
}
