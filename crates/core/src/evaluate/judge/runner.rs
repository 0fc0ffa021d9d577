use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};

use super::ask::{JudgeClient, JudgeRequest, StoredReply};
use super::copied::{Instructions, merge_alike};
use super::parse_verdict::{self, ParsedVerdict};
use super::question::{Question, Scale, schema};
use super::{JudgeCase, expected, quotes};
use crate::model::{CallEvent, ChatEvent, Message, ModelError, ResponseSchema};
use crate::prompt::Rubric;
use crate::types::{Criterion, JudgeScore, Status};

/// The maximum number of concurrent calls. More would only wait in the server's queue.
const CONCURRENT: usize = 8;

/// The number of samples taken if the server does not return the requested probabilities.
const SAMPLES_INSTEAD: u32 = 3;

/// The token limit of a verdict on one criterion, and the increment per further criterion. Keeps a
/// judge from rambling.
const BASE_TOKENS: u32 = 1024;
const TOKENS_PER_CRITERION: u32 = 192;

/// Returns the initial token limit of a verdict on this number of criteria.
pub(super) fn cap(criteria: usize) -> u32 {
    let criteria = u32::try_from(criteria).unwrap_or(u32::MAX);
    BASE_TOKENS.saturating_add(TOKENS_PER_CRITERION.saturating_mul(criteria))
}

/// A call's index, and the index of a sample within the call.
type SampleKey = (usize, u32);

/// One model and all calls it makes.
pub(super) struct JudgeRunner {
    asker: JudgeClient,
    samples: u32,
    score: JudgeScore,
    calls: Vec<Call>,
}

/// Criteria that are judged in one call.
pub(super) struct Call {
    /// Their indexes among the judge's criteria.
    pub(super) places: Vec<usize>,
    rubric: Rubric,
    /// The instructions, which issues must not copy.
    instructions: Instructions,
    pub(super) questions: Vec<Question>,
    schema: Arc<ResponseSchema>,
    cap: u32,
}

impl Call {
    /// Creates a call about these criteria, each given with its index. Skips criteria that the
    /// judge does not evaluate.
    pub(super) fn new(criteria: &[(usize, &Criterion)]) -> Self {
        let (places, criteria): (Vec<usize>, Vec<&Criterion>) = criteria.iter().copied().unzip();
        let questions: Vec<Question> = (criteria.iter().copied())
            .filter_map(Question::of)
            .collect();
        let rubric = Rubric::new(&criteria);
        let schema = if rubric.states_form() {
            ResponseSchema::any_object()
        } else {
            ResponseSchema::new("verdict", schema(&questions))
        };
        Self {
            schema: Arc::new(schema),
            cap: cap(criteria.len()),
            places,
            instructions: Instructions::new(&rubric.instructions()),
            rubric,
            questions,
        }
    }

    fn read(&self, stored: &StoredReply, draft: &str) -> Result<ParsedVerdict, String> {
        let mut verdict = parse_verdict::read(&stored.text, &self.questions)?;
        for ((answer, question), expected) in verdict
            .answers
            .iter_mut()
            .zip(&self.questions)
            .zip(&stored.expected)
        {
            if let (Scale::Steps, Some(expected)) = (question.scale, expected) {
                answer.score = *expected;
            }
        }
        verdict.has_probabilities = stored.has_probabilities;
        self.instructions.strip(&mut verdict.issues);
        merge_alike(&mut verdict.issues);
        quotes::verify(&mut verdict.issues, draft);
        Ok(verdict)
    }
}

/// The result of one sample.
#[derive(Debug, Clone)]
pub(super) struct SampleResult {
    /// The verdict, or why there is none.
    pub(super) verdict: Result<ParsedVerdict, (Status, String)>,
    /// Whether the verdict came from the cache.
    pub(super) cached: bool,
}

/// Returns the result for a custom prompt that could not be rendered.
fn unfilled(problem: &str) -> SampleResult {
    let problem = format!("its prompt cannot be filled in: {problem}");
    SampleResult {
        verdict: Err((Status::Failed, problem)),
        cached: false,
    }
}

impl JudgeRunner {
    pub(super) fn new(
        asker: JudgeClient,
        samples: u32,
        score: JudgeScore,
        calls: Vec<Call>,
    ) -> Self {
        Self {
            asker,
            samples,
            score,
            calls,
        }
    }

    /// Takes all samples that are not cached: one call first, which brings the shared prefix into
    /// the server's prompt cache, then the others concurrently. Returns a list of samples per call.
    pub(super) async fn judge<'a>(
        &'a self,
        case: &JudgeCase<'_>,
    ) -> Result<Vec<(&'a Call, Vec<SampleResult>)>, ModelError> {
        let enforced = self.asker.enforces();
        let messages: Vec<Result<Vec<Message>, String>> = self
            .calls
            .iter()
            .map(|call| (case.prompts).evaluate(case.draft, &call.rubric, enforced))
            .collect();
        let mut samples_taken: BTreeMap<SampleKey, SampleResult> = BTreeMap::new();
        let mut samples = self.samples;
        let mut warm = false;
        let rest = loop {
            let mut open = self
                .recall((&messages, enforced), samples, case, &mut samples_taken)
                .into_iter();
            // Cached replies may already show that the server returns no probabilities.
            if self.needs_more(samples, &samples_taken) {
                samples = SAMPLES_INSTEAD;
                continue;
            }
            if !warm && let Some((place, call, request)) = open.next() {
                samples_taken.insert(place, self.ask(call, &request, case).await?);
                warm = true;
                if self.needs_more(samples, &samples_taken) {
                    samples = SAMPLES_INSTEAD;
                    continue;
                }
            }
            break open;
        };
        if self.lacks_probabilities(&samples_taken) {
            case.observer.on_event(CallEvent::Chat(&ChatEvent::Notice(format!(
                "{} returns no token probabilities; using the median of {samples} verdicts instead of \
                 the expected score",
                self.asker.model.id()
            ))));
        }
        let rest: Vec<(SampleKey, SampleResult)> = stream::iter(rest)
            .map(|(place, call, request)| async move {
                Ok::<_, ModelError>((place, self.ask(call, &request, case).await?))
            })
            .buffer_unordered(CONCURRENT)
            .try_collect()
            .await?;
        samples_taken.extend(rest);
        let mut by_call: Vec<(&Call, Vec<SampleResult>)> =
            self.calls.iter().map(|call| (call, Vec::new())).collect();
        // In the order of the samples, regardless of which finished first.
        for ((number, _), samples_taken) in samples_taken {
            by_call[number].1.push(samples_taken);
        }
        Ok(by_call)
    }

    /// Takes one more sample than [`JudgeRunner::judge`] did, for each call in order.
    pub(super) async fn again(
        &self,
        case: &JudgeCase<'_>,
    ) -> Result<Vec<SampleResult>, ModelError> {
        let enforced = self.asker.enforces();
        let mut all = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            let messages = case.prompts.evaluate(case.draft, &call.rubric, enforced);
            all.push(match messages {
                Ok(messages) => {
                    let messages = (messages.as_slice(), enforced);
                    let request = self.request(call, messages, self.samples, self.samples + 1);
                    match self.asker.recall(
                        &request,
                        |stored| call.read(stored, case.draft),
                        case.observer,
                    ) {
                        Some(verdict) => SampleResult {
                            verdict: Ok(verdict),
                            cached: true,
                        },
                        None => self.ask(call, &request, case).await?,
                    }
                }
                Err(problem) => unfilled(&problem),
            });
        }
        Ok(all)
    }

    /// Adds cached results to `samples_taken`. Returns the requests that remain, sample by sample.
    fn recall<'a>(
        &'a self,
        (messages, enforced): (&[Result<Vec<Message>, String>], bool),
        samples: u32,
        case: &JudgeCase<'_>,
        samples_taken: &mut BTreeMap<SampleKey, SampleResult>,
    ) -> Vec<(SampleKey, &'a Call, JudgeRequest)> {
        let mut open = Vec::new();
        for sample in 0..samples {
            for (number, (call, messages)) in self.calls.iter().zip(messages).enumerate() {
                let place = (number, sample);
                if samples_taken.contains_key(&place) {
                    continue;
                }
                let messages = match messages {
                    Ok(messages) => messages,
                    Err(problem) => {
                        samples_taken.insert(place, unfilled(problem));
                        continue;
                    }
                };
                let request = self.request(call, (messages, enforced), sample, samples);
                let read = |stored: &StoredReply| call.read(stored, case.draft);
                match self.asker.recall(&request, read, case.observer) {
                    Some(verdict) => {
                        let verdict = Ok(verdict);
                        let cached = true;
                        samples_taken.insert(place, SampleResult { verdict, cached });
                    }
                    None => open.push((place, call, request)),
                }
            }
        }
        open
    }

    /// Returns whether more samples are needed because the server returns no probabilities.
    fn needs_more(&self, samples: u32, samples_taken: &BTreeMap<SampleKey, SampleResult>) -> bool {
        samples < SAMPLES_INSTEAD && self.lacks_probabilities(samples_taken)
    }

    /// Returns whether expected scores are enabled and the server does not return the probabilities
    /// for them.
    fn lacks_probabilities(&self, samples_taken: &BTreeMap<SampleKey, SampleResult>) -> bool {
        self.score == JudgeScore::Expected
            && self.has_steps()
            && samples_taken
                .values()
                .any(|samples_taken| matches!(&samples_taken.verdict, Ok(verdict) if !verdict.has_probabilities))
    }

    /// Returns whether any score is a step of the scale: only steps have an expected score.
    fn has_steps(&self) -> bool {
        let mut questions = self.calls.iter().flat_map(|call| &call.questions);
        questions.any(|question| question.scale == Scale::Steps)
    }

    fn request(
        &self,
        call: &Call,
        (messages, enforced): (&[Message], bool),
        sample: u32,
        samples: u32,
    ) -> JudgeRequest {
        JudgeRequest {
            messages: messages.to_vec(),
            schema: Arc::clone(&call.schema),
            enforced,
            cap: call.cap,
            alternatives: (self.score == JudgeScore::Expected && self.has_steps())
                .then_some(expected::ALTERNATIVES),
            names: call.questions.iter().map(|q| q.name.clone()).collect(),
            sample,
            sampled: samples > 1,
        }
    }

    async fn ask(
        &self,
        call: &Call,
        request: &JudgeRequest,
        case: &JudgeCase<'_>,
    ) -> Result<SampleResult, ModelError> {
        let read = |stored: &StoredReply| call.read(stored, case.draft);
        let verdict = self
            .asker
            .ask(request, case.attempt, read, case.observer)
            .await?;
        Ok(SampleResult {
            verdict: verdict.map_err(|problem| (Status::Unparsed, problem)),
            cached: false,
        })
    }
}
