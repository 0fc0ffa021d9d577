//! The embedded engine side by side with llama.cpp, in one run.
//!
//!     cargo bench --bench embedded -- MODEL.gguf [THREADS] [ROUNDS]
//!
//! Each round lets both read and write in turn; the best of all rounds counts, since other work on the
//! machine only ever makes a round slower. llama.cpp comes from the Python package xllamacpp, with the
//! Python that the variable `PYTHON` names; without it only the engine's own speed is told.

#![expect(
    clippy::cast_precision_loss,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark tells its figures"
)]

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::num::NonZeroUsize;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use reflect::embedded::{EmbeddedOptions, Engine, Stop, open_engine};

/// Tokens that are read, and those that are written after them.
const PROMPTS: [usize; 2] = [256, 1024];
const WRITTEN: usize = 64;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|a| a != "--bench");
    let Some(model) = arguments.next() else {
        eprintln!("no model given: cargo bench --bench embedded -- MODEL.gguf [THREADS] [ROUNDS]");
        return;
    };
    let mut number = |default| {
        arguments
            .next()
            .map_or(default, |n| n.parse().expect("a number"))
    };
    let threads: usize = number(1);
    let rounds: usize = number(3);

    let start = Instant::now();
    let options = EmbeddedOptions {
        threads: NonZeroUsize::new(threads),
        context: None,
    };
    let mut engine = open_engine(model.as_ref(), &options).expect("a model");
    println!(
        "loaded in {:.2} s; {threads} thread(s), best of {rounds}",
        start.elapsed().as_secs_f64()
    );
    let mut other = LlamaCpp::start(&model, threads);
    println!(
        "{:<22}{:>12}{:>12}{:>8}",
        "tokens per second", "embedded", "llama.cpp", "ratio"
    );
    for prompt in PROMPTS {
        let (mut ours, mut theirs) = (Speed::default(), Speed::default());
        for _ in 0..rounds {
            ours.keep_best(run(engine.as_mut(), prompt));
            if let Some(other) = &mut other {
                theirs.keep_best(other.run(prompt));
            }
        }
        for (what, ours, theirs) in [
            (format!("reading {prompt}"), ours.read, theirs.read),
            (
                format!("writing {WRITTEN} after {prompt}"),
                ours.write,
                theirs.write,
            ),
        ] {
            println!("{what:<22}{ours:>12.1}{theirs:>12.1}{:>8.2}", ours / theirs);
        }
    }
}

/// Tokens per second.
#[derive(Clone, Copy, Default)]
struct Speed {
    read: f64,
    write: f64,
}

impl Speed {
    fn keep_best(&mut self, other: Self) {
        self.read = self.read.max(other.read);
        self.write = self.write.max(other.write);
    }
}

fn run(engine: &mut dyn Engine, prompt: usize) -> Speed {
    let stop = Stop::default();
    let tokens: Vec<u32> = (0..prompt).map(|_| fastrand::u32(100..40_000)).collect();
    engine.truncate(0);
    let start = Instant::now();
    let mut next = likeliest(engine.eval(&tokens, &stop).expect("logits"));
    let read = start.elapsed();
    let start = Instant::now();
    for _ in 0..WRITTEN {
        next = likeliest(engine.eval(&[next], &stop).expect("logits"));
    }
    let write = start.elapsed();
    Speed {
        read: prompt as f64 / read.as_secs_f64(),
        write: WRITTEN as f64 / write.as_secs_f64(),
    }
}

fn likeliest(logits: &[f32]) -> u32 {
    let best = (0u32..).zip(logits).max_by(|a, b| a.1.total_cmp(b.1));
    best.expect("a token").0
}

struct LlamaCpp {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl LlamaCpp {
    fn start(model: &str, threads: usize) -> Option<Self> {
        let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let mut child = Command::new(python)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/benches/embedded_llama_cpp.py"
            ))
            .args([model, &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let input = child.stdin.take()?;
        let mut output = BufReader::new(child.stdout.take()?).lines();
        let ready = output
            .next()
            .is_some_and(|line| line.is_ok_and(|line| line == "ready"));
        if !ready {
            eprintln!("llama.cpp cannot be run: set PYTHON to a Python with the package xllamacpp");
            return None;
        }
        Some(Self {
            child,
            input,
            output,
        })
    }

    fn run(&mut self, prompt: usize) -> Speed {
        writeln!(self.input, "{prompt} {WRITTEN}").expect("a listener");
        let line = self.output.next().expect("an answer").expect("an answer");
        let mut speeds = line.split(' ').map(|n| n.parse().expect("a number"));
        Speed {
            read: speeds.next().expect("a speed"),
            write: speeds.next().expect("a speed"),
        }
    }
}

impl Drop for LlamaCpp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
