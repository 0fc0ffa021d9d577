use std::collections::{BTreeSet, HashMap};

use candle_core::quantized::gguf_file::Value;
use reflect_llama::{EngineError, Gguf};
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{SplitDelimiterBehavior, Tokenizer};

/// The pre-tokenization patterns, from llama.cpp's `llama-vocab.cpp`.
mod patterns {
    pub(super) const LLAMA3: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    pub(super) const QWEN2: &str = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
}

/// Tokens that end a reply by their name, whatever the file says about them (llama.cpp's list).
const END_NAMES: [&str; 10] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "<|end_of_text|>",
    "<end_of_utterance>",
];

/// A model's vocabulary: converts text to tokens and back.
pub(super) struct Vocabulary {
    tokenizer: Tokenizer,
    tokens: Vec<Token>,
    /// Tokens that are matched in text before anything else, longest first.
    special: Vec<Special>,
    ends: BTreeSet<u32>,
    /// The placeholder token for bytes outside the vocabulary, which are dropped.
    unknown: u32,
    bos: Option<u32>,
    eos: u32,
    adds_bos: bool,
}

struct Token {
    /// The bytes that the token adds to the text.
    bytes: Vec<u8>,
    /// Whether it is a control token.
    control: bool,
}

struct Special {
    text: String,
    id: u32,
    /// Whether it is a control token; otherwise it is ordinary text that is a single token.
    control: bool,
}

/// A part of a text: a special token, or the text between two.
enum TextPart<'a> {
    Token(u32),
    Text(&'a str),
}

impl Vocabulary {
    /// Reads the vocabulary from a file.
    pub(super) fn read(file: &Gguf) -> Result<Self, EngineError> {
        match file.text("tokenizer.ggml.model") {
            Some("gpt2") => {}
            Some(other) => {
                return Err(file.unsupported(format!(
                    "unsupported tokenizer `{other}`; supported: byte-level BPE (`gpt2`)"
                )));
            }
            None => return Err(file.invalid("`tokenizer.ggml.model` is missing")),
        }
        let texts = strings(file, "tokenizer.ggml.tokens")?;
        let merges = strings(file, "tokenizer.ggml.merges")?
            .into_iter()
            .map(|merge| {
                merge
                    .split_once(' ')
                    .map(|(a, b)| (a.to_owned(), b.to_owned()))
                    .ok_or_else(|| {
                        file.invalid(format!("the merge `{merge}` does not have two parts"))
                    })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let kinds = file
            .list("tokenizer.ggml.token_type")
            .ok_or_else(|| file.invalid("`tokenizer.ggml.token_type` is missing"))?;
        if kinds.len() != texts.len() || u32::try_from(texts.len()).is_err() {
            return Err(file.invalid("the numbers of tokens and token types differ"));
        }

        let letters = byte_letters();
        let mut tokens = Vec::with_capacity(texts.len());
        let mut special = Vec::new();
        for ((text, kind), id) in texts.iter().zip(kinds).zip(0u32..) {
            let kind = Kind::of(kind);
            let bytes = match kind {
                Kind::Text => text
                    .chars()
                    .map(|c| letters.get(&c).copied())
                    .collect::<Option<Vec<u8>>>()
                    .unwrap_or_else(|| text.as_bytes().to_vec()),
                Kind::UserDefined => text.as_bytes().to_vec(),
                Kind::Control => Vec::new(),
            };
            if kind != Kind::Text && !text.is_empty() {
                special.push(Special {
                    text: text.clone(),
                    id,
                    control: kind == Kind::Control,
                });
            }
            tokens.push(Token {
                bytes,
                control: kind == Kind::Control,
            });
        }
        special.sort_by_key(|special| std::cmp::Reverse(special.text.len()));

        let count = texts.len();
        let id = |key: &str| {
            let id = file.number(&format!("tokenizer.ggml.{key}_token_id"))?;
            (id < count).then(|| u32::try_from(id).ok()).flatten()
        };
        let eos = id("eos").ok_or_else(|| file.invalid("the end-of-sequence token is missing"))?;
        let mut ends = BTreeSet::from([eos]);
        ends.extend(["eot", "eom"].into_iter().filter_map(id));
        ends.extend(
            special
                .iter()
                .filter(|special| END_NAMES.contains(&special.text.as_str()))
                .map(|special| special.id),
        );

        let pre = file.text("tokenizer.ggml.pre").unwrap_or("default");
        let (cut, whole_words) = pre_tokenizer(pre)
            .ok_or_else(|| file.unsupported(format!("unsupported pre-tokenizer `{pre}`")))?;
        // A byte that is not a token becomes this one, so that it separates its neighbours as in llama.cpp, and is
        // dropped later. Text cannot produce a control token in any other way.
        let unknown = special
            .iter()
            .find(|special| special.control)
            .map_or(eos, |special| special.id);
        let vocabulary: Vocab = texts.iter().cloned().zip(0u32..).collect();
        let bpe = BPE::builder()
            .vocab_and_merges(vocabulary, merges)
            .unk_token(texts[unknown as usize].clone())
            .ignore_merges(whole_words)
            .build()
            .map_err(|e| file.invalid(format!("cannot build the tokenizer: {e}")))?;
        let mut tokenizer = Tokenizer::new(bpe);
        tokenizer.with_pre_tokenizer(Some(cut));

        Ok(Self {
            tokenizer,
            tokens,
            special,
            ends,
            unknown,
            bos: id("bos"),
            eos,
            adds_bos: file
                .flag("tokenizer.ggml.add_bos_token")
                .unwrap_or(pre == "llama-bpe"),
        })
    }

    /// Tokenizes a text that contains control tokens. Removes `hidden` from the text after the control tokens are
    /// found, unless it is empty.
    pub(super) fn encode(&self, text: &str, hidden: &str) -> Result<Vec<u32>, EngineError> {
        let mut parts = vec![TextPart::Text(text)];
        for special in &self.special {
            parts = parts
                .into_iter()
                .flat_map(|part| match part {
                    TextPart::Text(text) => split_at(text, special),
                    token @ TextPart::Token(_) => vec![token],
                })
                .collect();
        }
        let mut ids = Vec::new();
        if self.adds_bos
            && let Some(bos) = self.bos
            && !matches!(parts.first(), Some(TextPart::Token(first)) if *first == bos)
        {
            ids.push(bos);
        }
        for part in parts {
            match part {
                TextPart::Token(id) => ids.push(id),
                TextPart::Text(text) if hidden.is_empty() => self.encode_text(text, &mut ids)?,
                TextPart::Text(text) => self.encode_text(&text.replace(hidden, ""), &mut ids)?,
            }
        }
        Ok(ids)
    }

    fn encode_text(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), EngineError> {
        let encoding = self
            .tokenizer
            .encode_fast(text, false)
            .map_err(|e| EngineError::Tokenizer(e.to_string()))?;
        let found = encoding.get_ids().iter().copied();
        ids.extend(found.filter(|&id| id != self.unknown));
        Ok(())
    }

    /// Inserts `hidden` into everything in the text that is a control token, or could become one together with the
    /// following text.
    pub(super) fn escape_control_tokens(&self, text: &str, hidden: &str) -> String {
        let control = || self.special.iter().filter(|special| special.control);
        let mut starts = BTreeSet::new();
        for special in control() {
            let token = special.text.as_str();
            starts.extend(match_positions(text, token));
            for (end, _) in token.char_indices().skip(1) {
                if text.ends_with(&token[..end]) {
                    starts.insert(text.len() - end);
                }
            }
        }
        let mut shielded = String::with_capacity(text.len() + starts.len() * hidden.len());
        let mut done = 0;
        for start in starts {
            let first = text[start..].chars().next().map_or(0, char::len_utf8);
            shielded.push_str(&text[done..start + first]);
            shielded.push_str(hidden);
            done = start + first;
        }
        shielded.push_str(&text[done..]);
        shielded
    }

    /// The bytes that a token adds to the text; empty for control tokens and unknown ones.
    pub(super) fn bytes(&self, id: u32) -> &[u8] {
        self.tokens
            .get(id as usize)
            .map_or(&[], |token| &token.bytes)
    }

    /// Whether a token is a control token.
    pub(super) fn is_control(&self, id: u32) -> bool {
        self.tokens
            .get(id as usize)
            .is_some_and(|token| token.control)
    }

    /// Whether a token ends the reply.
    pub(super) fn is_end(&self, id: u32) -> bool {
        self.ends.contains(&id)
    }

    /// The end-of-sequence token.
    pub(super) fn eos(&self) -> u32 {
        self.eos
    }

    /// All tokens that end a reply.
    pub(super) fn ends(&self) -> impl Iterator<Item = u32> {
        self.ends.iter().copied()
    }

    /// The number of tokens.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The name of a control token, or the text of any other token.
    pub(super) fn name(&self, id: u32) -> String {
        match self.special.iter().find(|special| special.id == id) {
            Some(special) => special.text.clone(),
            None => String::from_utf8_lossy(self.bytes(id)).into_owned(),
        }
    }

    /// The name of the beginning-of-sequence token; empty if there is none.
    pub(super) fn bos_name(&self) -> String {
        self.bos.map_or_else(String::new, |id| self.name(id))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    UserDefined,
    Control,
}

impl Kind {
    /// Converts llama.cpp's number. Unknown (2) and unused (5) tokens are treated as control tokens, which are never
    /// generated.
    fn of(value: &Value) -> Self {
        let number = match value {
            Value::I32(v) => i64::from(*v),
            Value::U32(v) => i64::from(*v),
            _ => 1,
        };
        match number {
            2 | 3 | 5 => Self::Control,
            4 => Self::UserDefined,
            _ => Self::Text,
        }
    }
}

fn strings(file: &Gguf, key: &str) -> Result<Vec<String>, EngineError> {
    file.list(key)
        .ok_or_else(|| file.invalid(format!("`{key}` is missing")))?
        .iter()
        .map(|value| {
            let text = value.to_string().cloned();
            text.map_err(|_| file.invalid(format!("`{key}` contains a value that is not a string")))
        })
        .collect()
}

/// The pre-tokenizer with this name, and whether it looks up whole words before merging.
fn pre_tokenizer(pre: &str) -> Option<(PreTokenizerWrapper, bool)> {
    let bytes = |cut| ByteLevel::new(false, false, cut);
    Some(match pre {
        "gpt-2" | "gpt2" | "default" => (bytes(true).into(), false),
        "smollm" => {
            let steps = vec![Digits::new(true).into(), bytes(true).into()];
            (Sequence::new(steps).into(), false)
        }
        "llama-bpe" | "llama3" | "llama-v3" | "qwen2" => {
            let qwen = pre == "qwen2";
            let pattern = if qwen {
                patterns::QWEN2
            } else {
                patterns::LLAMA3
            };
            let pattern = SplitPattern::Regex(pattern.to_owned());
            let split = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).ok()?;
            let steps = vec![split.into(), bytes(false).into()];
            (Sequence::new(steps).into(), !qwen)
        }
        _ => return None,
    })
}

/// The characters that represent bytes in the vocabulary of byte-level BPE: printable bytes represent themselves, the
/// others map to the characters from U+0100 on, in order (GPT-2's `bytes_to_unicode`).
fn byte_letters() -> HashMap<char, u8> {
    let mut next = 0x100;
    (0..=255u8)
        .map(|byte| {
            let letter = match byte {
                b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF => char::from(byte),
                _ => {
                    next += 1;
                    char::from_u32(next - 1).unwrap_or(char::REPLACEMENT_CHARACTER)
                }
            };
            (letter, byte)
        })
        .collect()
}

fn split_at<'a>(text: &'a str, special: &Special) -> Vec<TextPart<'a>> {
    let mut parts = Vec::new();
    let mut done = 0;
    for (start, found) in text.match_indices(special.text.as_str()) {
        if start > done {
            parts.push(TextPart::Text(&text[done..start]));
        }
        parts.push(TextPart::Token(special.id));
        done = start + found.len();
    }
    if done < text.len() {
        parts.push(TextPart::Text(&text[done..]));
    }
    parts
}

/// All positions of `token` in `text`, including overlapping ones.
fn match_positions(text: &str, token: &str) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find(token) {
        let start = from + at;
        starts.push(start);
        from = start + token.chars().next().map_or(1, char::len_utf8);
    }
    starts
}
