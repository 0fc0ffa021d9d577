use std::sync::Arc;

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{
    ApproximateTokEnv, InferenceCapabilities, SimpleVob, TokEnv, TokRxInfo, TokTrie,
};
use llguidance::{Matcher, ParserFactory};
use serde_json::{Value, json};

use super::vocabulary::Vocabulary;

/// Creates constraints for one model's tokens. Creating it takes about a tenth of a second, so it is done once.
pub(super) struct Constraints(ParserFactory);

/// Allows only tokens that keep a reply valid against its schema.
pub(super) struct Constraint(Matcher);

impl Constraints {
    /// Prepares the grammar engine for a vocabulary.
    ///
    /// # Errors
    /// A message.
    pub(super) fn new(vocabulary: &Vocabulary) -> Result<Self, String> {
        let count = u32::try_from(vocabulary.len()).map_err(|e| e.to_string())?;
        let words: Vec<Vec<u8>> = (0..count)
            .map(|id| {
                if vocabulary.is_control(id) {
                    let mut word = vec![TokTrie::SPECIAL_TOKEN_MARKER];
                    word.extend_from_slice(vocabulary.name(id).as_bytes());
                    word
                } else {
                    vocabulary.bytes(id).to_vec()
                }
            })
            .collect();
        let ends: Vec<u32> = vocabulary.ends().collect();
        let info = TokRxInfo::new(count, vocabulary.eos());
        let trie = TokTrie::from(&info, &words).with_eos_tokens(&ends);
        // The environment's own tokenization is only used to force several tokens at once, which we do not do.
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let slices = llguidance::earley::SlicedBiasComputer::general_slices();
        let mut factory =
            ParserFactory::new(&environment, InferenceCapabilities::default(), &slices)
                .map_err(|e| e.to_string())?;
        // Keep the library from printing.
        factory.quiet();
        Ok(Self(factory))
    }

    /// A constraint for a JSON Schema.
    ///
    /// # Errors
    /// A message, if the schema uses an unsupported feature.
    pub(super) fn json(&self, schema: &Value) -> Result<Constraint, String> {
        let mut schema = schema.clone();
        if let Some(object) = schema.as_object_mut() {
            // With free white space, small models get stuck writing newlines forever.
            object.entry("x-guidance").or_insert(json!({
                "whitespace_flexible": false,
                "item_separator": ", ",
                "key_separator": ": ",
            }));
        }
        let parser = self
            .0
            .create_parser(TopLevelGrammar::from_json_schema(schema))
            .map_err(|e| format!("{e:#}"))?;
        Ok(Constraint(Matcher::new(Ok(parser))))
    }
}

impl Constraint {
    /// The tokens that are allowed next.
    pub(super) fn allowed(&mut self) -> Result<SimpleVob, String> {
        self.0.compute_mask_or_eos().map_err(|e| e.to_string())
    }

    /// Records a token; returns whether the reply is complete.
    pub(super) fn accept(&mut self, token: u32) -> Result<bool, String> {
        self.0.consume_token(token).map_err(|e| e.to_string())?;
        Ok(self.0.is_stopped())
    }
}
