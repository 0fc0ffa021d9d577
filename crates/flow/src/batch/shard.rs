use std::str::FromStr;

/// One of several shards of the tasks, for parallel processes: every n-th task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u64,
    of: u64,
}

impl Shard {
    /// Whether the task at this position, from 0, is in this shard.
    pub fn has(self, place: u64) -> bool {
        place % self.of == self.index
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Parses `i/n`, with `i` from 0 to `n` - 1, as Slurm and Kubernetes count.
    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/');
        let parts = parts.and_then(|(i, n)| Some((i.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
        match parts {
            Some((index, of)) if index < of => Ok(Self { index, of }),
            Some((_, of)) if of > 0 => Err(format!(
                "the parts of {of} are counted from 0 to {}",
                of - 1
            )),
            _ => Err("it must be i/n, for example 0/4 for the first of four parts".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_in_exactly_one_shard() {
        let shards: Vec<Shard> = (0..7).map(|i| format!("{i}/7").parse().unwrap()).collect();
        for place in 0..100 {
            assert_eq!(shards.iter().filter(|shard| shard.has(place)).count(), 1);
        }
    }

    #[test]
    fn shards_are_counted_from_0() {
        let error = "4/4".parse::<Shard>().unwrap_err();
        assert!(error.contains("from 0 to 3"), "{error}");
        for bad in ["", "1", "a/b", "1/0", "-1/2", "0/0"] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}
