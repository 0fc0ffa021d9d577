use std::cell::{Cell, RefCell};
use std::path::Path;

use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
};

use super::*;
use crate::batch::{Concurrency, Item, Pace, Paced, Status};
use crate::model::ScriptedModel;
use crate::reflector::ErrorCategory;
use crate::types::Task;

/// The kind of a generated line.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Good,
    /// With its own criteria.
    Other,
    /// With invalid criteria.
    Unusable,
    /// Not a task.
    Bad,
}

/// Returns the same loop to all tasks, after a random number of turns.
struct Fake {
    plan: Arc<Loop>,
    turns: Vec<u8>,
    asked: Cell<usize>,
}

#[async_trait::async_trait(?Send)]
impl Host for Fake {
    async fn loop_for(&self, criteria: Option<&str>) -> Result<Arc<Loop>, CriteriaError> {
        let asked = self.asked.get();
        self.asked.set(asked + 1);
        for _ in 0..self.turns[asked % self.turns.len()] {
            tokio::task::yield_now().await;
        }
        match criteria {
            Some("unusable") => Err(CriteriaError("it cannot be used".to_owned())),
            _ => Ok(Arc::clone(&self.plan)),
        }
    }

    fn observer(&self) -> Box<dyn Observer> {
        Box::new(|_: &Stamped| {})
    }
}

/// Collects a maximum number of rows.
struct Kept {
    rows: Vec<Row>,
    most: usize,
}

impl Output for Kept {
    fn row(&mut self, row: &Row, _: Now) -> Result<Flow, String> {
        if self.rows.len() >= self.most {
            return Ok(Flow::End);
        }
        self.rows.push(row.clone());
        Ok(Flow::Go)
    }

    fn changed(&mut self, _: Now) {}
}

fn entry(line: u64, task: Result<Item, String>) -> Entry {
    Entry {
        line,
        id: Some(line.to_string()),
        task,
        bytes: 10,
    }
}

/// Runs a batch whose model gives the same reply to every task, or always fails.
fn rows_of(
    kinds: &[Kind],
    turns: Vec<u8>,
    concurrency: Concurrency,
    options: Options,
    reply: &str,
    most: usize,
) -> (Vec<Row>, Ending) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let gate = Gate::new(Pace {
            concurrency,
            requests_per_minute: None,
            tokens_per_minute: None,
        });
        let script = format!("[[reply]]\ntimes = 0\n{reply}\n");
        let model = ScriptedModel::parse(Path::new("script.toml"), &script).unwrap();
        let model = Arc::new(Paced::new(Arc::new(model), Arc::clone(&gate)));
        let criteria = "name = 'c'\n[[criteria]]\nname = 'short'\nevaluator = 'length'\nunit = 'words'\nmax = 9";
        let criteria = crate::criteria::parse(criteria, "criteria.toml").unwrap();
        let plan = Loop::builder(model, Arc::new(criteria)).build().unwrap();
        let host = Fake {
            plan: Arc::new(plan),
            turns,
            asked: Cell::new(0),
        };
        let (sender, entries) = mpsc::channel(kinds.len().max(1));
        for (line, kind) in (1..).zip(kinds) {
            let criteria = match kind {
                Kind::Good | Kind::Bad => None,
                Kind::Other => Some("other".to_owned()),
                Kind::Unusable => Some("unusable".to_owned()),
            };
            let task = Task::new("Write a line.");
            let task = Ok(Item { task, criteria }).and_then(|item| match kind {
                Kind::Bad => Err("it is no task".to_owned()),
                _ => Ok(item),
            });
            sender.try_send(Ok(entry(line, task))).unwrap();
        }
        drop(sender);
        let mut kept = Kept { rows: Vec::new(), most };
        let drain = CancellationToken::new();
        let tally = Tally::default();
        let hands = Hands::Here(&host);
        let ending = run(entries, &gate, options, hands, &mut kept, tally, &drain).await;
        (kept.rows, ending)
    })
}

const TEXT: &str = "text = 'A line of its own.'\nusage = { prompt = 10, completion = 5 }";

fn kinds() -> impl Strategy<Value = Vec<Kind>> {
    let kind = prop_oneof![
        4 => Just(Kind::Good),
        2 => Just(Kind::Other),
        1 => Just(Kind::Unusable),
        1 => Just(Kind::Bad),
    ];
    proptest::collection::vec(kind, 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_task_has_one_row_in_any_order_of_completion(
        kinds in kinds(),
        turns in proptest::collection::vec(0..12_u8, 1..24),
        at_once in 1..9_usize,
        ordered: bool,
    ) {
        let options = Options { ordered, ..Options::default() };
        let (rows, ending) = rows_of(&kinds, turns, Concurrency::Fixed(at_once), options, TEXT, usize::MAX);
        let mut lines: Vec<u64> = rows.iter().map(|row| row.line).collect();
        if !ordered {
            lines.sort_unstable();
        }
        prop_assert_eq!(lines, (1..=kinds.len() as u64).collect::<Vec<_>>());
        for row in &rows {
            let kind = kinds[usize::try_from(row.line).unwrap() - 1];
            let good = matches!(kind, Kind::Good | Kind::Other);
            prop_assert_eq!(row.status, if good { Status::Met } else { Status::Invalid });
            let id = row.line.to_string();
            prop_assert_eq!(row.id.as_deref(), Some(id.as_str()));
        }
        prop_assert_eq!(ending.tally.rows(), kinds.len() as u64);
        prop_assert_eq!(ending.stop, None);
    }
}

#[test]
fn a_failed_task_has_a_row_but_a_failure_of_all_tasks_has_none() {
    let kinds = [Kind::Good; 5];
    let auto = Concurrency::Auto;
    let failing = "error = { class = 'rejected', message = 'not this' }";
    let (rows, ending) = rows_of(&kinds, vec![1], auto, Options::default(), failing, 99);
    assert_eq!(rows.len(), 5);
    assert!(
        rows.iter()
            .all(|row| row.status == Status::Failed && row.error.is_some())
    );
    assert_eq!(
        (ending.stop.clone(), ending.exit_code()),
        (None, ExitCode::Provider)
    );

    let hopeless = "error = { class = 'quota', message = 'no credit' }";
    let (rows, ending) = rows_of(&kinds, vec![1], auto, Options::default(), hopeless, 99);
    assert!(rows.is_empty());
    assert!(matches!(ending.stop, Some(Stop::Provider(_))));
    assert_eq!(ending.exit_code(), ExitCode::Provider);
}

/// Sends an invalid line while its first task is in progress.
struct AtWork(Cell<Option<mpsc::Sender<io::Result<Entry>>>>);

impl Remote for AtWork {
    fn task(&self, line: u64, id: String, _: Item) -> Result<Box<dyn RemoteTask + '_>, String> {
        if let Some(entries) = self.0.take() {
            let none = entry(line + 1, Err("it is no task".to_owned()));
            entries.try_send(Ok(none)).unwrap();
        }
        Ok(Box::new(Slow(line, id)))
    }
}

/// A task that takes several turns.
struct Slow(u64, String);

#[async_trait::async_trait(?Send)]
impl RemoteTask for Slow {
    fn means(&self) -> Means {
        Means::default()
    }

    async fn attempt(&mut self, _: Option<Adjustment>) -> Option<Row> {
        for _ in 0..9 {
            tokio::task::yield_now().await;
        }
        let row = Row::invalid(self.0, Some(self.1.clone()), "it is done".to_owned());
        let mut token_usage = row.token_usage;
        token_usage.total = Some(100);
        Some(Row { token_usage, ..row })
    }
}

/// Remote tasks report their usage only at the end.
#[tokio::test]
async fn a_limit_is_exceeded_at_most_by_the_tasks_in_progress() {
    let (sender, receiver) = mpsc::channel(64);
    for line in 1..=60 {
        let task = Item {
            task: Task::new("Write a line."),
            criteria: None,
        };
        sender.try_send(Ok(entry(line, Ok(task)))).unwrap();
    }
    drop(sender);
    let gate = Gate::new(Pace {
        concurrency: Concurrency::Fixed(50),
        requests_per_minute: None,
        tokens_per_minute: None,
    });
    let options = Options {
        limits: Limits {
            tokens: Some(1000),
            ..Limits::default()
        },
        ..Options::default()
    };
    let mut output = UnderWay(Vec::new());
    let hands = AtWork(Cell::new(None));
    let ending = run(
        receiver,
        &gate,
        options,
        Hands::Elsewhere(&hands),
        &mut output,
        Tally::default(),
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(ending.stop, Some(Stop::Tokens));
    // Ten tasks reach the limit, and each task in progress counts.
    assert_eq!(output.0.len(), 10);
}

/// Records the line of each row and the number of tasks in progress.
struct UnderWay(Vec<(u64, usize)>);

impl Output for UnderWay {
    fn row(&mut self, row: &Row, now: Now) -> Result<Flow, String> {
        self.0.push((row.line, now.under_way));
        Ok(Flow::Go)
    }

    fn changed(&mut self, _: Now) {}
}

#[tokio::test]
async fn an_invalid_line_does_not_change_the_tasks_in_progress() {
    let (sender, entries) = mpsc::channel(1);
    let task = Item {
        task: Task::new("Write a line."),
        criteria: None,
    };
    sender.try_send(Ok(entry(1, Ok(task)))).unwrap();
    let hands = AtWork(Cell::new(Some(sender)));
    let gate = Gate::new(Pace {
        concurrency: Concurrency::Fixed(2),
        requests_per_minute: None,
        tokens_per_minute: None,
    });
    let mut output = UnderWay(Vec::new());
    run(
        entries,
        &gate,
        Options::default(),
        Hands::Elsewhere(&hands),
        &mut output,
        Tally::default(),
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(output.0, [(2, 1), (1, 1)]);
}

/// The attempts at remote tasks: the line, and the adjustment.
type Tried = Vec<(u64, Option<Adjustment>)>;

/// Fails this many times at each task, using 10 tokens each time, then succeeds.
struct Failing {
    times: u32,
    tried: RefCell<Tried>,
}

impl Remote for Failing {
    fn task(&self, line: u64, id: String, item: Item) -> Result<Box<dyn RemoteTask + '_>, String> {
        match item.criteria {
            Some(_) => Err("it cannot be used".to_owned()),
            None => Ok(Box::new(FailingTask {
                line,
                id,
                left: self.times,
                tried: &self.tried,
            })),
        }
    }
}

struct FailingTask<'a> {
    line: u64,
    id: String,
    left: u32,
    tried: &'a RefCell<Tried>,
}

#[async_trait::async_trait(?Send)]
impl RemoteTask for FailingTask<'_> {
    fn means(&self) -> Means {
        Means {
            stronger: Some("a:strong".to_owned()),
            ..Means::default()
        }
    }

    async fn attempt(&mut self, adjustment: Option<Adjustment>) -> Option<Row> {
        self.tried.borrow_mut().push((self.line, adjustment));
        let failed = Row {
            status: Status::Failed,
            error_category: Some(ErrorCategory::Timeout),
            run_id: Some(Uuid::from_u128(u128::from(self.left))),
            attempts: 1,
            iterations_used: 1,
            token_usage: TokenUsage {
                total: Some(10),
                ..TokenUsage::default()
            },
            ..Row::invalid(self.line, Some(self.id.clone()), "it timed out".to_owned())
        };
        if self.left > 0 {
            self.left -= 1;
            return Some(failed);
        }
        Some(Row {
            status: Status::Met,
            exit_code: ExitCode::Success,
            error: None,
            error_category: None,
            ..failed
        })
    }
}

/// Runs two remote tasks, one of them invalid, that fail this many times. Returns the rows and the attempts.
fn elsewhere(times: u32, options: Options) -> (Vec<Row>, Ending, Tried) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (sender, entries) = mpsc::channel(2);
        for (line, criteria) in [(1, None), (2, Some("unusable".to_owned()))] {
            let task = Task::new("Write a line.");
            sender
                .try_send(Ok(entry(line, Ok(Item { task, criteria }))))
                .unwrap();
        }
        drop(sender);
        let gate = Gate::new(Pace {
            concurrency: Concurrency::Fixed(2),
            requests_per_minute: None,
            tokens_per_minute: None,
        });
        let remote = Failing {
            times,
            tried: RefCell::default(),
        };
        let mut kept = Kept {
            rows: Vec::new(),
            most: 9,
        };
        let drain = CancellationToken::new();
        let hands = Hands::Elsewhere(&remote);
        let tally = Tally::default();
        let ending = run(entries, &gate, options, hands, &mut kept, tally, &drain).await;
        (kept.rows, ending, remote.tried.into_inner())
    })
}

#[test]
fn a_failed_remote_task_is_retried_remotely_in_another_way() {
    let again = Options {
        replan: 3,
        ordered: true,
        ..Options::default()
    };
    let (rows, _, tried) = elsewhere(2, again);
    let row = &rows[0];
    assert_eq!((row.status, row.attempts), (Status::Met, 3));
    assert_eq!((row.replanned.len(), row.iterations_used), (2, 3));
    assert_eq!(row.token_usage.total, Some(30));
    assert_eq!((rows[1].status, rows[1].attempts), (Status::Invalid, 0));
    let [first, second, third] = &tried[..] else {
        panic!("three attempts: {tried:?}");
    };
    assert_eq!(first, &(1, None));
    // No two attempts may look the same.
    assert!(second.1.is_some() && third.1.is_some() && second.1 != third.1);
    let said: Vec<bool> = row
        .replanned
        .iter()
        .map(|it| it.adjusted.contains("the stronger model a:strong writes"))
        .collect();
    assert_eq!(said, [false, true]);
}

#[test]
fn a_failed_remote_task_is_not_retried_without_replan_or_past_a_limit() {
    let (rows, _, tried) = elsewhere(9, Options::default());
    assert_eq!((rows.len(), tried.len()), (2, 1));
    // The second attempt reaches the limit.
    let limited = Options {
        replan: 5,
        limits: Limits {
            tokens: Some(20),
            ..Limits::default()
        },
        ..Options::default()
    };
    let (rows, ending, tried) = elsewhere(9, limited);
    assert_eq!((tried.len(), ending.stop), (2, Some(Stop::Tokens)));
    let attempts: Vec<u32> = rows.iter().map(|row| row.attempts).collect();
    assert!(attempts.contains(&2), "{attempts:?}");
}

#[test]
fn a_batch_stops_at_a_limit_without_a_reader_and_with_fail_fast() {
    let kinds = [Kind::Good; 20];
    let one = Concurrency::Fixed(1);
    let limits = |limits| Options {
        limits,
        ..Options::default()
    };
    let tokens = limits(Limits {
        tokens: Some(31),
        ..Limits::default()
    });
    let (rows, ending) = rows_of(&kinds, vec![0], one, tokens, TEXT, 99);
    assert_eq!((rows.len(), &ending.stop), (3, &Some(Stop::Tokens)));
    assert_eq!(ending.exit_code(), ExitCode::Limit);

    let (rows, ending) = rows_of(&kinds, vec![0], one, Options::default(), TEXT, 4);
    assert_eq!((rows.len(), &ending.stop), (4, &Some(Stop::NoReader)));
    assert_eq!(ending.exit_code(), ExitCode::Success);

    let fast = Options {
        fail_fast: true,
        ..Options::default()
    };
    let failing = "error = { class = 'rejected', message = 'not this' }";
    let (rows, ending) = rows_of(&kinds, vec![0], one, fast, failing, 99);
    assert_eq!((rows.len(), &ending.stop), (1, &Some(Stop::Failed)));
}

#[test]
fn a_retried_task_has_one_row() {
    let kinds = [Kind::Good; 5];
    let again = Options {
        replan: 2,
        ..Options::default()
    };
    // Timeouts are retried immediately.
    let failing = "error = { class = 'transient', message = 'the request timed out' }";
    let (rows, ending) = rows_of(&kinds, vec![1], Concurrency::Fixed(2), again, failing, 99);
    assert_eq!((rows.len(), ending.tally.rows()), (5, 5));
    for row in &rows {
        assert_eq!((row.status, row.attempts), (Status::Failed, 3));
        assert_eq!(row.error_category, Some(ErrorCategory::Timeout));
        assert_eq!((row.replanned.len(), row.iterations_used), (2, 3));
        assert!(row.replanned.iter().all(|it| it.run_id != row.run_id));
    }
    let refused = "error = { class = 'rejected', message = 'not this' }";
    let (rows, _) = rows_of(&kinds, vec![1], Concurrency::Fixed(2), again, refused, 99);
    assert!(
        rows.iter()
            .all(|row| row.attempts == 1 && row.replanned.is_empty())
    );
}

#[test]
fn nothing_is_retried_once_the_batch_stops() {
    let kinds = [Kind::Good; 3];
    let failing = "error = { class = 'transient', message = 'the request timed out' }";
    let options = Options {
        replan: 5,
        limits: Limits {
            tokens: Some(0),
            ..Limits::default()
        },
        ..Options::default()
    };
    // The limit is reached before anything starts.
    let (rows, ending) = rows_of(&kinds, vec![1], Concurrency::Fixed(1), options, failing, 99);
    assert_eq!((rows.len(), ending.stop), (0, Some(Stop::Tokens)));
    let fast = Options {
        replan: 5,
        fail_fast: true,
        ..Options::default()
    };
    let (rows, ending) = rows_of(&kinds, vec![1], Concurrency::Fixed(2), fast, failing, 99);
    assert_eq!(ending.stop, Some(Stop::Failed));
    let attempts: Vec<u32> = rows.iter().map(|row| row.attempts).collect();
    assert_eq!(attempts.first(), Some(&6), "{attempts:?}");
    assert!(attempts.iter().all(|tried| *tried <= 6));
}

proptest! {
    #[test]
    fn attempts_add_up(times in proptest::collection::vec(0.0..100.0_f64, 1..6), outputs in proptest::collection::vec(any::<bool>(), 6)) {
        let row = |(place, time): (usize, &f64)| Row {
            run_id: Some(Uuid::from_u128(place as u128)),
            attempts: 1,
            iterations_used: 1,
            execution_time: Some(*time),
            cost: Some(*time),
            output: outputs[place].then(|| place.to_string()),
            ..Row::invalid(1, Some("a".to_owned()), String::new())
        };
        let mut rows = times.iter().enumerate().map(row);
        let first = rows.next().unwrap();
        let all = rows.fold(first, |sum, row| sum.then(String::new(), row));
        prop_assert_eq!(all.attempts as usize, times.len());
        prop_assert_eq!(all.replanned.len() + 1, times.len());
        let total: f64 = times.iter().sum();
        prop_assert!((all.execution_time.unwrap() - total).abs() < 1e-6);
        prop_assert!((all.cost.unwrap() - total).abs() < 1e-6);
        for (attempt, time) in all.replanned.iter().zip(&times) {
            prop_assert!((attempt.execution_time.unwrap() - time).abs() < 1e-6);
        }
        let last = (0..times.len()).rev().find(|place| outputs[*place]);
        prop_assert_eq!(all.output, last.map(|place| place.to_string()));
        prop_assert_eq!(all.run_id, Some(Uuid::from_u128(times.len() as u128 - 1)));
    }
}
