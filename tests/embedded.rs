//! Tests the embedded model with real weights: compared with llama.cpp, and in all its features.
//!
//! The program's own code downloads the weights (98 MB) once. If that is impossible, the tests print a
//! message and pass, unless `REFLECT_TEST_REQUIRE_ALL=1` is set.
#![cfg(feature = "embedded")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "test helpers, and messages about skipped tests"
)]

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use reflect::embedded::weights::{self, FetchEvent, FetchOptions, ModelSpec};
use reflect::embedded::{EmbeddedModel, EmbeddedOptions, Engine, EngineError, Stop, open_engine};
use reflect::model::{
    ChatEvent, ChatModel, ChatRequest, EndReason, ErrorClass, Message, Purpose, Reply,
    ResponseSchema, Role, Sampling, complete,
};
use reflect::types::ModelId;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OnceCell;

/// Returns the folder that keeps the weights between test runs.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("models")
}

/// Returns the weights. `None`, with a message on stderr, if they cannot be downloaded.
async fn weights() -> Option<PathBuf> {
    static WEIGHTS: OnceCell<Option<PathBuf>> = OnceCell::const_new();
    WEIGHTS
        .get_or_init(|| async {
            let options = FetchOptions::new(folder());
            let mut progress = |event| {
                if !matches!(event, FetchEvent::Progress { .. }) {
                    eprintln!("{event:?}");
                }
            };
            match weights::fetch(&ModelSpec::Default, &options, &mut progress).await {
                Ok(path) => Some(path),
                Err(error) => {
                    let required = std::env::var("REFLECT_TEST_REQUIRE_ALL");
                    assert!(required.as_deref() != Ok("1"), "{error}");
                    eprintln!("SKIPPED, nothing was tested: {error}");
                    None
                }
            }
        })
        .await
        .clone()
}

fn options() -> EmbeddedOptions {
    EmbeddedOptions {
        threads: NonZeroUsize::new(1),
        context: NonZeroUsize::new(2048),
    }
}

fn id() -> ModelId {
    ModelId {
        provider: "embedded".into(),
        model: weights::DEFAULT_MODEL.into(),
    }
}

async fn model() -> Option<EmbeddedModel> {
    Some(EmbeddedModel::open(weights().await?, id(), options()))
}

async fn engine() -> Option<Box<dyn Engine>> {
    Some(open_engine(&weights().await?, &options()).unwrap())
}

fn user(text: &str) -> Vec<Message> {
    vec![Message::new(Role::User, text)]
}

fn request(text: &str, sampling: Sampling) -> ChatRequest {
    let mut request = ChatRequest::new(Purpose::Write, user(text));
    request.sampling = sampling;
    request
}

fn greedy(max_tokens: u32) -> Sampling {
    Sampling {
        temperature: Some(0.0),
        max_tokens: Some(max_tokens),
        ..Sampling::default()
    }
}

async fn ask(model: &EmbeddedModel, request: ChatRequest) -> Reply {
    let (reply, outcome) = complete(model, request, |_| {}).await;
    outcome.unwrap();
    reply
}

fn likeliest(logits: &[f32]) -> u32 {
    let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    u32::try_from(best.unwrap().0).unwrap()
}

#[derive(Deserialize)]
struct Record {
    prompts: Vec<RecordedPrompt>,
}

#[derive(Deserialize)]
struct RecordedPrompt {
    name: String,
    messages: Vec<Message>,
    tokens: Vec<u32>,
    /// With the original weights and llama.cpp's rounding of activations.
    top: Vec<Candidate>,
    /// With the same weights as floats, without that rounding.
    exact: Vec<Candidate>,
}

#[derive(Deserialize)]
struct Candidate {
    id: u32,
    /// `None` for part of a character, which llama.cpp's server does not report.
    logprob: Option<f64>,
}

/// What llama.cpp made of the prompts with the default model.
const RECORD: &str = include_str!("data/embedded/llama_cpp.json");

/// Tiny models with random weights and the chat templates of Qwen2.5 and Qwen3, and what llama.cpp made of the prompts.
const TINY: [(&str, &str); 2] = [
    ("qwen2", include_str!("data/embedded/qwen2.json")),
    ("qwen3", include_str!("data/embedded/qwen3.json")),
];

fn record(text: &str) -> Vec<RecordedPrompt> {
    let record: Record = serde_json::from_str(text).unwrap();
    assert!(record.prompts.len() >= 20);
    record.prompts
}

async fn check_tokens(model: &EmbeddedModel, prompts: Vec<RecordedPrompt>) {
    for prompt in prompts {
        let request = ChatRequest::new(Purpose::Write, prompt.messages);
        let tokens = model.prompt_tokens(request).await.unwrap();
        assert_eq!(tokens, prompt.tokens, "{}", prompt.name);
    }
}

/// Compares the likeliest next tokens with the recorded ones. Log-probabilities may differ by `tolerance`.
fn check_next_token(engine: &mut dyn Engine, prompts: &[RecordedPrompt], tolerance: f64) {
    let mut ambivalent = 0;
    let mut worst: f64 = 0.0;
    for prompt in prompts {
        engine.truncate(0);
        let logits = engine.eval(&prompt.tokens, &Stop::default()).unwrap();
        let total: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
        for theirs in &prompt.exact {
            let ours = f64::from(logits[theirs.id as usize]) - total.ln();
            worst = theirs
                .logprob
                .map_or(worst, |l| worst.max((ours - l).abs()));
        }
        let best = likeliest(logits);
        assert_eq!(best, prompt.exact[0].id, "{}", prompt.name);
        if prompt.top[0].id == prompt.exact[0].id {
            assert_eq!(best, prompt.top[0].id, "{}", prompt.name);
        } else {
            ambivalent += 1;
        }
    }
    eprintln!("log-probabilities differ from llama.cpp's by at most {worst:.4}");
    assert!(worst < tolerance, "{worst}");
    assert!(ambivalent <= 1, "{ambivalent}");
}

#[tokio::test]
async fn token_ids_agree_with_llama_cpp() {
    let Some(model) = model().await else { return };
    check_tokens(&model, record(RECORD)).await;
}

#[tokio::test]
async fn the_next_token_agrees_with_llama_cpp() {
    let Some(mut engine) = engine().await else {
        return;
    };
    check_next_token(&mut *engine, &record(RECORD), 0.01);
}

#[tokio::test]
async fn models_of_the_qwen_family_agree_with_llama_cpp() {
    let options = EmbeddedOptions {
        context: NonZeroUsize::new(4096),
        ..options()
    };
    for (name, text) in TINY {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/embedded/{name}.gguf"));
        let mut engine = open_engine(&file, &options).unwrap();
        // Random weights amplify rounding; llama.cpp's own rounding changes log-probabilities by up to 0.7.
        check_next_token(&mut *engine, &record(text), 0.05);
        let model = EmbeddedModel::open(file, id(), options.clone());
        check_tokens(&model, record(text)).await;
    }
}

#[tokio::test]
async fn a_cached_prefix_gives_the_same_logits_as_a_full_run() {
    let Some(mut engine) = engine().await else {
        return;
    };
    let stop = Stop::default();
    let prompts = record(RECORD);
    let long = prompts.iter().find(|p| p.name == "long english").unwrap();
    let full = engine.eval(&long.tokens, &stop).unwrap().to_vec();
    // One, a few, and many tokens at the end, so that every code path is compared.
    for kept in [long.tokens.len() - 1, long.tokens.len() - 4, 300, 256, 1] {
        engine.truncate(kept);
        assert_eq!(engine.len(), kept);
        let again = engine.eval(&long.tokens[kept..], &stop).unwrap();
        assert_close(again, &full);
    }
    // A fork continues independently.
    engine.truncate(100);
    let mut fork = engine.fork();
    fork.eval(&[5, 6, 7], &stop).unwrap();
    assert_eq!((engine.len(), fork.len()), (100, 103));
    assert_close(engine.eval(&long.tokens[100..], &stop).unwrap(), &full);
    fork.truncate(100);
    assert_close(fork.eval(&long.tokens[100..], &stop).unwrap(), &full);
}

fn assert_close(a: &[f32], b: &[f32]) {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    let worst = differences.fold(0.0, f32::max);
    assert!(worst < 1e-3, "logits differ by {worst}");
}

#[tokio::test]
async fn an_engine_rejects_what_does_not_fit_and_can_be_stopped() {
    let Some(mut engine) = engine().await else {
        return;
    };
    let stop = Stop::default();
    let window = engine.window();
    assert_eq!(window, 2048);
    let error = engine.eval(&vec![5; window + 1], &stop).unwrap_err();
    assert!(matches!(
        error,
        EngineError::Full {
            wanted: 2049,
            window: 2048
        }
    ));
    let error = engine.eval(&[u32::MAX], &stop).unwrap_err();
    assert!(matches!(error, EngineError::Token(u32::MAX)));
    assert!(engine.is_empty());
    stop.raise();
    let error = engine.eval(&[5, 6, 7], &stop).unwrap_err();
    assert!(matches!(error, EngineError::Stopped));
    assert!(engine.is_empty());
}

#[tokio::test]
async fn several_threads_give_the_same_result() {
    let Some(weights) = weights().await else {
        return;
    };
    let prompt = &record(RECORD)[3];
    let mut all = Vec::new();
    for threads in [1, 3] {
        let mut options = options();
        options.threads = NonZeroUsize::new(threads);
        let mut engine = open_engine(&weights, &options).unwrap();
        let mut logits = engine.eval(&prompt.tokens, &Stop::default()).unwrap();
        let token = likeliest(logits);
        logits = engine.eval(&[token], &Stop::default()).unwrap();
        all.push(logits.to_vec());
    }
    assert_close(&all[0], &all[1]);
}

#[tokio::test]
async fn a_later_call_reuses_the_cache_of_either_slot() {
    let Some(model) = model().await else { return };
    let text = "Write one sentence about the sea.";
    let first = ask(&model, request(text, greedy(12))).await;
    let prompt = first.usage.prompt.unwrap();
    assert_eq!(first.usage.cached, Some(0));
    assert_eq!(first.usage.completion, Some(12));
    assert_eq!(first.end, Some(EndReason::Length));

    // The same prompt again: all but the last token is cached, and the reply is the same.
    let again = ask(&model, request(text, greedy(12))).await;
    assert_eq!(again.usage.cached, Some(prompt - 1));
    assert_eq!(again.text, first.text);

    // The reply is cached too when the conversation continues.
    let mut next = request(text, greedy(4));
    next.messages
        .push(Message::new(Role::Assistant, &first.text));
    next.messages.push(Message::new(Role::User, "Shorter."));
    let next = ask(&model, next).await;
    assert!(
        next.usage.cached.unwrap() >= prompt + 10,
        "{:?} after {:?}",
        next.usage,
        first.text
    );

    // The other slot is empty, so the cache of the first one is used.
    let mut judge = request(text, greedy(12));
    judge.purpose = Purpose::Judge;
    let judge = ask(&model, judge).await;
    assert_eq!(judge.usage.cached, Some(prompt - 1));
    assert_eq!(judge.text, first.text);
}

#[tokio::test]
async fn a_dropped_stream_stops_the_work() {
    let Some(model) = model().await else { return };
    {
        let mut stream = model.chat(request("Count from one to one thousand.", greedy(2000)));
        loop {
            match stream.next().await.unwrap().unwrap() {
                ChatEvent::Text(_) => break,
                ChatEvent::End(_) => panic!("the stream ended early"),
                _ => {}
            }
        }
    }
    // The model is free again immediately, not after 2000 tokens.
    let start = std::time::Instant::now();
    let reply = ask(&model, request("Hi", greedy(1))).await;
    assert_eq!(reply.usage.completion, Some(1));
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[tokio::test]
async fn sampling_is_reproducible_and_respects_its_limits() {
    let Some(model) = model().await else { return };
    let text = "Tell me a story about a crab.";
    let sampled = |seed, temperature, top_p| {
        request(
            text,
            Sampling {
                temperature: Some(temperature),
                top_p: Some(top_p),
                seed: Some(seed),
                max_tokens: Some(16),
            },
        )
    };
    let one = ask(&model, sampled(1, 1.5, 1.0)).await.text;
    assert_eq!(ask(&model, sampled(1, 1.5, 1.0)).await.text, one);
    assert_ne!(ask(&model, sampled(2, 1.5, 1.0)).await.text, one);
    // A tiny nucleus gives the most likely token, like temperature 0.
    let greedy = ask(&model, request(text, greedy(16))).await.text;
    assert_eq!(ask(&model, sampled(3, 1.5, 1e-6)).await.text, greedy);
    assert_ne!(one, greedy);
}

#[tokio::test]
async fn log_probabilities_come_with_alternatives() {
    let Some(model) = model().await else { return };
    let prompts = record(RECORD);
    let prompt = prompts.iter().find(|p| p.name == "python").unwrap();
    let mut request = ChatRequest::new(Purpose::Judge, prompt.messages.clone());
    request.sampling = greedy(3);
    request.top_logprobs = Some(5);
    let reply = ask(&model, request).await;
    assert_eq!(reply.logprobs.len(), 3);
    let text: String = reply.logprobs.iter().map(|t| t.token.as_str()).collect();
    assert_eq!(text, reply.text);
    let first = &reply.logprobs[0];
    assert_eq!(first.top.len(), 5);
    assert_eq!(first.top[0], (first.token.clone(), first.logprob));
    for (ours, theirs) in first.top.iter().zip(&prompt.exact) {
        assert!((ours.1 - theirs.logprob.unwrap()).abs() < 0.01, "{ours:?}");
    }
}

#[tokio::test]
async fn a_reply_with_a_schema_is_valid() {
    let Some(model) = model().await else { return };
    let schema = json!({
        "type": "object",
        "properties": {
            "score": {"type": "integer", "minimum": 0, "maximum": 10},
            "verdict": {"enum": ["good", "bad"]},
            "issues": {
                "type": "array",
                "maxItems": 2,
                "items": {"type": "string", "maxLength": 30}
            }
        },
        "required": ["score", "verdict", "issues"],
        "additionalProperties": false
    });
    let validator = jsonschema::validator_for(&schema).unwrap();
    for seed in 0..6 {
        let mut request = request(
            "Judge this draft: \"The see is big.\"",
            Sampling {
                temperature: Some(1.2),
                seed: Some(seed),
                max_tokens: Some(200),
                ..Sampling::default()
            },
        );
        request.schema = Some(Arc::new(ResponseSchema::new("verdict", schema.clone())));
        let reply = ask(&model, request).await;
        assert_eq!(reply.end, Some(EndReason::Stop), "{}", reply.text);
        let value = serde_json::from_str(&reply.text).expect(&reply.text);
        assert!(validator.is_valid(&value), "{value}");
    }
}

#[tokio::test]
async fn an_unenforceable_schema_is_reported_and_ignored() {
    let Some(model) = model().await else { return };
    let mut request = request("Hi", greedy(2));
    request.schema = Some(Arc::new(ResponseSchema::new(
        "odd",
        json!({"type": "no such type"}),
    )));
    let mut notices = Vec::new();
    let (reply, outcome) = complete(&model, request, |event| {
        if let ChatEvent::Notice(notice) = event {
            notices.push(notice.clone());
        }
    })
    .await;
    outcome.unwrap();
    assert_eq!(reply.usage.completion, Some(2));
    assert!(notices.iter().any(|n| n.contains("`odd`")), "{notices:?}");
}

#[tokio::test]
async fn a_too_long_prompt_is_rejected_with_token_counts() {
    let Some(model) = model().await else { return };
    let text = "word ".repeat(3000);
    let (_, outcome) = complete(&model, request(&text, greedy(1)), |_| {}).await;
    let error = outcome.unwrap_err();
    assert_eq!(error.class, ErrorClass::ContextTooLong);
    assert!(error.message.contains("window 2048"), "{error}");
    assert!(error.message.contains("the prompt has 30"), "{error}");
    // The model is still usable afterwards.
    ask(&model, request("Hi", greedy(1))).await;
}

#[tokio::test]
async fn a_reply_ends_at_the_end_of_the_window() {
    let Some(weights) = weights().await else {
        return;
    };
    let mut options = options();
    options.context = NonZeroUsize::new(48);
    let model = EmbeddedModel::open(weights, id(), options);
    assert_eq!(model.info().await.unwrap().context_window, Some(48));
    let reply = ask(&model, request("Tell a long story.", greedy(500))).await;
    assert_eq!(reply.end, Some(EndReason::Length));
    let usage = reply.usage;
    // The last token needs no slot in the window.
    assert_eq!(usage.prompt.unwrap() + usage.completion.unwrap(), 49);
}

#[tokio::test]
async fn a_file_that_is_not_a_model_is_rejected_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.gguf");
    let outcome = |path: PathBuf| async {
        let model = EmbeddedModel::open(path, id(), options());
        let (_, outcome) = complete(&model, request("Hi", greedy(1)), |_| {}).await;
        let info = model.info().await.unwrap_err();
        let error = outcome.unwrap_err();
        assert_eq!(error.class, info.class);
        error
    };
    let error = outcome(path.clone()).await;
    assert_eq!(error.class, ErrorClass::NotFound);
    assert!(error.hint.is_some());
    for bad in [
        &b""[..],
        b"GGUF",
        b"GGUF\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
        b"hello, world",
    ] {
        std::fs::write(&path, bad).unwrap();
        let error = outcome(path.clone()).await;
        assert_eq!(error.class, ErrorClass::Rejected, "{error}");
        assert!(error.message.contains("x.gguf"), "{error}");
    }
}

/// The default model cannot judge: one line says so, nothing is spent on verdicts, and the draft is printed.
#[tokio::test]
async fn the_default_model_drafts_without_judging() {
    let Some(weights) = weights().await else {
        return;
    };
    let home = tempfile::tempdir().unwrap();
    let ran = std::process::Command::new(env!("CARGO_BIN_EXE_reflect"))
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .args(["draft", "Write a sentence about rivers.", "-c", "writing"])
        .args(["--max-tokens", "24", "--seed", "1", "--format", "json"])
        .arg("--model")
        .arg(&weights)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(3), "{stderr}");
    let warned =
        "this model cannot judge, so drafts are evaluated by checks only; not evaluated: `clarity`";
    assert!(stderr.contains(warned), "{stderr}");
    let result: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert!(!result["output"].as_str().unwrap().is_empty());
    assert_eq!(result["history"]["versions"].as_array().unwrap().len(), 1);
}
