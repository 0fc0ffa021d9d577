//! scratch
use reflect::model::embedded::*;
use std::time::Instant;
fn main() {
    let path = std::env::args().nth(1).expect("gguf");
    let threads: usize = std::env::args().nth(2).map_or(1, |t| t.parse().unwrap());
    let t = Instant::now();
    let options = EmbeddedOptions {
        threads: std::num::NonZeroUsize::new(threads),
        context: None,
        cache_dir: "/tmp/wt/embcache".into(),
    };
    let mut e = open_engine(path.as_ref(), &options).unwrap();
    println!("load {:?}", t.elapsed());
    let stop = Stop::default();
    for n in [256usize, 1024] {
        for _ in 0..3 {
            e.truncate(0);
            let toks: Vec<u32> = (0..n).map(|i| (i * 7919 % 40000 + 100) as u32).collect();
            let t = Instant::now();
            let l = e.eval(&toks, &stop).unwrap();
            let mut best = l
                .iter()
                .enumerate()
                .max_by(|a, b| a.1.total_cmp(b.1))
                .unwrap()
                .0 as u32;
            let pp = n as f64 / t.elapsed().as_secs_f64();
            let t = Instant::now();
            for _ in 0..64 {
                let l = e.eval(&[best], &stop).unwrap();
                best = l
                    .iter()
                    .enumerate()
                    .max_by(|a, b| a.1.total_cmp(b.1))
                    .unwrap()
                    .0 as u32;
            }
            println!("{n}: pp {pp:.1} tg {:.1}", 64.0 / t.elapsed().as_secs_f64());
        }
    }
}
