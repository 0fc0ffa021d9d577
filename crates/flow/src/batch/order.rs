use std::collections::BTreeMap;

use super::row::Row;

/// How far tasks may run ahead of the oldest unfinished one, if rows are written in order.
const AHEAD: u64 = 1024;

/// Puts rows into the order of their tasks, or passes them on immediately.
#[derive(Debug)]
pub(super) struct Order {
    ordered: bool,
    /// The position of the next row to write.
    next: u64,
    /// Rows that wait for earlier ones; `None` for a task without a row.
    held: BTreeMap<u64, Option<Row>>,
}

impl Order {
    pub(super) fn new(ordered: bool) -> Self {
        Self {
            ordered,
            next: 0,
            held: BTreeMap::new(),
        }
    }

    /// Whether the task at this position may start. This bounds the number of waiting rows.
    pub(super) fn admits(&self, place: u64) -> bool {
        !self.ordered || place < self.next + AHEAD
    }

    /// Records the result of a task. Returns the rows that are ready to be written.
    pub(super) fn finished(&mut self, place: u64, row: Option<Row>) -> Vec<Row> {
        if !self.ordered {
            return row.into_iter().collect();
        }
        self.held.insert(place, row);
        let mut due = Vec::new();
        while let Some(row) = self.held.remove(&self.next) {
            self.next += 1;
            due.extend(row);
        }
        due
    }

    /// Returns the rows that still wait for tasks that never started, in order.
    pub(super) fn rest(&mut self) -> Vec<Row> {
        std::mem::take(&mut self.held)
            .into_values()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(place: u64) -> Row {
        Row::invalid(place, None, String::new())
    }

    proptest! {
        #[test]
        fn rows_come_out_in_order_and_once(order in Just((0..50_u64).collect::<Vec<_>>()).prop_shuffle(), without in 0..60_u64) {
            let mut ordered = Order::new(true);
            let mut out = Vec::new();
            for place in order {
                out.extend(ordered.finished(place, (place != without).then(|| row(place))));
            }
            prop_assert!(ordered.rest().is_empty());
            let lines: Vec<u64> = out.iter().map(|row| row.line).collect();
            prop_assert_eq!(lines, (0..50).filter(|place| *place != without).collect::<Vec<_>>());
        }
    }

    #[test]
    fn waiting_rows_are_bounded_and_not_lost() {
        let mut order = Order::new(true);
        assert!(order.admits(AHEAD - 1) && !order.admits(AHEAD));
        assert!(order.finished(2, Some(row(2))).is_empty());
        assert_eq!(order.finished(0, Some(row(0))).len(), 1);
        assert!(order.admits(AHEAD));
        assert_eq!(order.rest().len(), 1);
    }

    #[test]
    fn unordered_rows_pass_immediately() {
        let mut order = Order::new(false);
        assert!(order.admits(u64::MAX));
        assert_eq!(order.finished(7, Some(row(7))).len(), 1);
        assert!(order.finished(8, None).is_empty());
    }
}
