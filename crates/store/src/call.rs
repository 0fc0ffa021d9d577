//! The recorded model calls of a run.

use rusqlite::{Row, params};
use uuid::Uuid;

use super::{Store, StoreError, WithEvent, short_id, to_sql};
use crate::model::{Exchange, Message, Role};
use crate::types::Stamped;

/// How many earlier messages to compare for a shared prefix.
const COMPARED_MESSAGES: usize = 8;
/// The minimum length of a shared prefix, in bytes.
const MIN_SHARED_BYTES: usize = 128;

/// The messages of a run so far. The calls of a run start with the same bytes, because servers cache prompts by
/// prefix. So a prefix that a message shares with an earlier one is stored only once.
#[derive(Debug, Default)]
pub struct Transcript(Vec<Message>);

/// How to store a message.
#[derive(Debug, PartialEq, Eq)]
enum StoredAs {
    /// It is stored already, under this number.
    Known(usize),
    /// It is new, and starts with this many bytes of another message, if any.
    New(Option<(usize, usize)>),
}

impl Transcript {
    fn place(&self, message: &Message) -> StoredAs {
        let mut best: Option<(usize, usize)> = None;
        for (number, known) in self.0.iter().enumerate().rev().take(COMPARED_MESSAGES) {
            let shared = common_prefix_len(&known.content, &message.content);
            if shared == known.content.len()
                && shared == message.content.len()
                && known.role == message.role
            {
                return StoredAs::Known(number);
            }
            if shared >= MIN_SHARED_BYTES && best.is_none_or(|(_, most)| shared > most) {
                best = Some((number, shared));
            }
        }
        StoredAs::New(best)
    }
}

/// The length of the common prefix of two texts in bytes, at a character boundary.
fn common_prefix_len(a: &str, b: &str) -> usize {
    const BLOCK: usize = 64;
    let (bytes_a, bytes_b) = (a.as_bytes(), b.as_bytes());
    let blocks = bytes_a.chunks_exact(BLOCK).zip(bytes_b.chunks_exact(BLOCK));
    let mut end = BLOCK * blocks.take_while(|(a, b)| a == b).count();
    let rest = bytes_a[end..].iter().zip(&bytes_b[end..]);
    end += rest.take_while(|(a, b)| a == b).count();
    while !(a.is_char_boundary(end) && b.is_char_boundary(end)) {
        end -= 1;
    }
    end
}

fn role(name: &str) -> Option<Role> {
    let roles = [Role::System, Role::User, Role::Assistant];
    roles.into_iter().find(|role| role.as_str() == name)
}

fn from_sql(number: i64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

impl Store {
    /// Like [`Store::append`], for the event of a completed call: stores the request and the reply in the same
    /// transaction. `transcript` contains the messages of the run so far: empty for a new run, from [`Store::calls`]
    /// for a resumed one.
    pub fn append_call(
        &mut self,
        run_id: Uuid,
        seq: u64,
        event: &Stamped,
        call: Exchange,
        transcript: &mut Transcript,
    ) -> Result<(), StoreError> {
        let known = transcript.0.len();
        // Values that JSON cannot represent, such as an infinite log-probability, are not found again, so the call is
        // repeated.
        let asked = serde_json::to_string(&call.asked).unwrap_or_default();
        let reply = serde_json::to_string(&call.reply).unwrap_or_default();
        let with_event: WithEvent<'_> = Box::new(|transaction, run| {
            let mut numbers = Vec::with_capacity(call.messages.len());
            for message in call.messages {
                let base = match transcript.place(&message) {
                    StoredAs::Known(number) => {
                        numbers.push(number.to_string());
                        continue;
                    }
                    StoredAs::New(base) => base,
                };
                let number = transcript.0.len();
                let shared = base.map_or(0, |(_, shared)| shared);
                transaction
                    .prepare_cached(
                        "INSERT INTO message (run, n, role, base, shared, rest)
                         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    )?
                    .execute(params![
                        run,
                        to_sql(number),
                        message.role.as_str(),
                        base.map(|(base, _)| to_sql(base)),
                        to_sql(shared),
                        &message.content[shared..],
                    ])?;
                numbers.push(number.to_string());
                transcript.0.push(message);
            }
            transaction
                .prepare_cached(
                    "INSERT INTO call (run, seq, key, asked, messages, reply)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?
                .execute(params![
                    run,
                    to_sql(seq),
                    call.key,
                    asked,
                    numbers.join(" "),
                    reply,
                ])
                .map(drop)
        });
        let appended = self.append_with(run_id, seq, event, Some(with_event));
        if appended.is_err() {
            // None of the messages was stored.
            transcript.0.truncate(known);
        }
        appended
    }

    /// The completed calls of a run in the order in which they ended, each with the number of its event, and their
    /// messages. Unreadable calls are skipped.
    pub fn calls(&self, run_id: Uuid) -> Result<(Vec<(u64, Exchange)>, Transcript), StoreError> {
        type CallRow = (i64, String, String, String, String);
        let wrap = |error| StoreError::from_sqlite(&self.path, error);
        let transcript = self.transcript(run_id)?;
        let rows: Vec<CallRow> = self
            .connection
            .prepare_cached(
                "SELECT call.seq, call.key, call.asked, call.messages, call.reply
                 FROM call JOIN run ON run.n = call.run WHERE run.id = ?1 ORDER BY call.seq",
            )
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| row.try_into();
                statement.query_map([run_id.to_string()], read)?.collect()
            })
            .map_err(wrap)?;
        let mut calls = Vec::with_capacity(rows.len());
        for (seq, key, asked, numbers, reply) in rows {
            let seq = u64::try_from(seq).unwrap_or(0);
            let messages: Option<Vec<Message>> = numbers
                .split_whitespace()
                .map(|number| transcript.0.get(number.parse::<usize>().ok()?).cloned())
                .collect();
            let messages = messages.ok_or_else(|| StoreError::Unreadable {
                run: short_id(run_id),
                seq,
                reason: "a message of the call is missing".to_owned(),
            })?;
            if let (Ok(asked), Ok(reply)) =
                (serde_json::from_str(&asked), serde_json::from_str(&reply))
            {
                let call = Exchange {
                    asked,
                    key,
                    messages,
                    reply,
                };
                calls.push((seq, call));
            }
        }
        Ok((calls, transcript))
    }

    fn transcript(&self, run_id: Uuid) -> Result<Transcript, StoreError> {
        type MessageRow = (usize, String, String, Option<usize>, usize);
        let rows: Vec<MessageRow> = self
            .connection
            .prepare_cached(
                "SELECT message.n, message.role, message.base, message.shared, message.rest
                 FROM message JOIN run ON run.n = message.run
                 WHERE run.id = ?1 ORDER BY message.n",
            )
            .and_then(|mut statement| {
                let read = |row: &Row<'_>| {
                    let base: Option<i64> = row.get(2)?;
                    let base = base.map(from_sql);
                    let shared = from_sql(row.get(3)?);
                    Ok((
                        from_sql(row.get(0)?),
                        row.get(1)?,
                        row.get(4)?,
                        base,
                        shared,
                    ))
                };
                statement.query_map([run_id.to_string()], read)?.collect()
            })
            .map_err(|error| StoreError::from_sqlite(&self.path, error))?;
        let mut transcript = Transcript::default();
        for (number, name, rest, base, shared) in rows {
            let beginning = match base {
                Some(base) => transcript
                    .0
                    .get(base)
                    .and_then(|base| base.content.get(..shared)),
                None => Some(""),
            };
            let (Some(beginning), Some(role), true) =
                (beginning, role(&name), number == transcript.0.len())
            else {
                return Err(StoreError::Unreadable {
                    run: short_id(run_id),
                    seq: number as u64,
                    reason: "the messages of the run are incomplete".to_owned(),
                });
            };
            let message = Message::new(role, format!("{beginning}{rest}"));
            transcript.0.push(message);
        }
        Ok(transcript)
    }
}

/// A call with this request and reply.
#[cfg(test)]
pub(super) fn exchange(key: &str, messages: Vec<Message>, answer: &str) -> Exchange {
    use crate::model::{Asked, Purpose, Reply, Sampling, Think};
    use crate::types::ModelId;

    Exchange {
        asked: Asked {
            model: ModelId {
                provider: "p".to_owned(),
                model: "m".to_owned(),
            },
            purpose: Purpose::Write,
            sampling: Sampling::default(),
            think: Think::default(),
            schema: None,
        },
        key: key.to_owned(),
        messages,
        reply: Reply {
            text: answer.to_owned(),
            ..Reply::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::types::{Event, Phase, SCHEMA_VERSION, Task};

    fn message(role: Role, content: &str) -> Message {
        Message::new(role, content)
    }

    fn call(key: &str, messages: Vec<Message>) -> Exchange {
        exchange(key, messages, "")
    }

    fn stamped(event: Event) -> Stamped {
        Stamped {
            time: jiff::Timestamp::UNIX_EPOCH,
            event,
        }
    }

    fn begin(store: &mut Store) -> Uuid {
        let run_id = Uuid::now_v7();
        let start = Event::RunStart {
            schema_version: SCHEMA_VERSION,
            run_id,
            command: "draft".to_owned(),
            file: None,
            task: Box::new(Task::new("p")),
            criteria: Box::new(reflect_core::criteria::builtin("writing").unwrap()),
            settings: crate::types::LoopSettings::default(),
            models: crate::types::Models {
                writer: None,
                judge: None,
            },
            setup: None,
        };
        store.append(run_id, 0, &stamped(start)).unwrap();
        run_id
    }

    fn event() -> Stamped {
        stamped(Event::Phase {
            phase: Phase::Draft,
            iteration: 1,
        })
    }

    #[test]
    fn calls_round_trip_and_shared_prefixes_are_stored_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.db");
        let mut store = Store::open(&path).unwrap();
        let run_id = begin(&mut store);
        let prompt = "The same prompt for all. ".repeat(400);
        let asked = |end: &str| {
            vec![
                message(Role::System, "You write."),
                message(Role::User, &format!("{prompt}{end}")),
            ]
        };
        let calls: Vec<Exchange> = ["write ä", "judge ö", "judge ö", "write ü", ""]
            .iter()
            .map(|end| call(end, asked(end)))
            .collect();
        let mut transcript = Transcript::default();
        for (seq, call) in (1..).zip(&calls[..3]) {
            store
                .append_call(run_id, seq, &event(), call.clone(), &mut transcript)
                .unwrap();
        }
        // Simulate another process.
        drop(store);
        let mut store = Store::open(&path).unwrap();
        let (found, mut transcript) = store.calls(run_id).unwrap();
        assert_eq!(found.len(), 3);
        for (seq, call) in (4..).zip(&calls[3..]) {
            store
                .append_call(run_id, seq, &event(), call.clone(), &mut transcript)
                .unwrap();
        }
        let (found, _) = store.calls(run_id).unwrap();
        let expected: Vec<(u64, Exchange)> = (1..).zip(calls).collect();
        assert_eq!(found, expected);
        let kept: i64 = store
            .connection
            .query_row("SELECT sum(length(rest)) FROM message", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert!(kept < to_sql(prompt.len()) + 100, "{kept}");
        assert_eq!(store.events(run_id).unwrap().len(), 6);
    }

    #[test]
    fn an_event_and_its_call_are_stored_atomically() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("runs.db")).unwrap();
        let run_id = begin(&mut store);
        let mut transcript = Transcript::default();
        // The number is taken, so writing the event fails.
        let failed = store.append_call(
            run_id,
            0,
            &event(),
            call("k", vec![message(Role::User, "a")]),
            &mut transcript,
        );
        assert!(failed.is_err());
        assert!(store.calls(run_id).unwrap().0.is_empty());
        assert_eq!(store.events(run_id).unwrap().len(), 1);
    }

    #[test]
    fn later_calls_do_not_share_messages_that_were_not_stored() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(&dir.path().join("runs.db")).unwrap();
        let run_id = begin(&mut store);
        let mut transcript = Transcript::default();
        let asked = call("k", vec![message(Role::User, "a")]);
        // The call's number is taken, which fails only after its messages are written.
        store
            .connection
            .execute(
                "INSERT INTO call (run, seq, key, asked, messages, reply)
                 SELECT n, 1, '', '', '', '' FROM run",
                [],
            )
            .unwrap();
        let failed = store.append_call(run_id, 1, &event(), asked.clone(), &mut transcript);
        assert!(failed.is_err());
        assert!(
            store.calls(run_id).unwrap().0.is_empty(),
            "unreadable calls are skipped"
        );
        store.connection.execute("DELETE FROM call", []).unwrap();
        store
            .append_call(run_id, 1, &event(), asked.clone(), &mut transcript)
            .unwrap();
        assert_eq!(store.calls(run_id).unwrap().0, [(1, asked)]);
    }

    proptest! {
        #[test]
        fn the_common_beginning_is_the_longest_one(
            shared in "[aäß漢]{0,90}", a in "[bö]{0,5}", b in "[cü]{0,5}"
        ) {
            let (a, b) = (format!("{shared}{a}"), format!("{shared}{b}"));
            let found = common_prefix_len(&a, &b);
            let by_characters: usize = a
                .chars()
                .zip(b.chars())
                .take_while(|(a, b)| a == b)
                .map(|(c, _)| c.len_utf8())
                .sum();
            prop_assert_eq!(found, by_characters);
        }
    }
}
