//! The pure core of [`KeyedWorkers`](super::KeyedWorkers): which job runs when. No task, no lock, no clock.

use std::collections::{BTreeMap, VecDeque};

/// Jobs waiting and running, in order per key.
///
/// A key is in `keys` exactly while one of its jobs runs or waits; it is in `ready` exactly while it has
/// waiting jobs and none running.
#[derive(Debug)]
pub(super) struct KeyedQueue<K, J> {
    keys: BTreeMap<K, Line<J>>,
    ready: VecDeque<K>,
    running: usize,
    parallel: usize,
}

#[derive(Debug)]
struct Line<J> {
    running: bool,
    waiting: VecDeque<J>,
}

impl<K: Ord + Clone, J> KeyedQueue<K, J> {
    /// A queue that lets this many jobs run at once.
    pub(super) fn new(parallel: usize) -> Self {
        Self {
            keys: BTreeMap::new(),
            ready: VecDeque::new(),
            running: 0,
            parallel,
        }
    }

    /// Adds a job behind the others of its key.
    pub(super) fn push(&mut self, key: K, job: J) {
        let line = self.keys.entry(key.clone()).or_insert_with(|| {
            self.ready.push_back(key);
            Line {
                running: false,
                waiting: VecDeque::new(),
            }
        });
        line.waiting.push_back(job);
    }

    /// The next job that may start now; it counts as running from here on.
    pub(super) fn start_next(&mut self) -> Option<(K, J)> {
        if self.running >= self.parallel {
            return None;
        }
        let key = self.ready.pop_front()?;
        let line = self.keys.get_mut(&key)?;
        let job = line.waiting.pop_front()?;
        line.running = true;
        self.running += 1;
        Some((key, job))
    }

    /// The running job of this key has ended; the key's next one, if any, lines up behind other keys.
    pub(super) fn finished(&mut self, key: &K) {
        let Some(line) = self.keys.get_mut(key) else {
            return;
        };
        line.running = false;
        self.running = self.running.saturating_sub(1);
        if line.waiting.is_empty() {
            self.keys.remove(key);
        } else {
            self.ready.push_back(key.clone());
        }
    }

    /// The keys whose jobs run.
    pub(super) fn running(&self) -> Vec<K> {
        self.keys
            .iter()
            .filter(|(_, line)| line.running)
            .map(|(key, _)| key.clone())
            .collect()
    }

    /// Takes out every job that has not started.
    pub(super) fn take_waiting(&mut self) -> Vec<(K, J)> {
        self.ready.clear();
        let mut taken = Vec::new();
        for (key, line) in &mut self.keys {
            taken.extend(line.waiting.drain(..).map(|job| (key.clone(), job)));
        }
        self.keys.retain(|_, line| line.running);
        taken
    }

    /// True if nothing runs and nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drain_starts(queue: &mut KeyedQueue<u8, u32>) -> Vec<(u8, u32)> {
        std::iter::from_fn(|| queue.start_next()).collect()
    }

    #[test]
    fn one_at_a_time_per_key_and_in_order() {
        let mut queue = KeyedQueue::new(8);
        for job in 1..=3 {
            queue.push(b'a', job);
        }
        queue.push(b'b', 9);
        assert_eq!(drain_starts(&mut queue), [(b'a', 1), (b'b', 9)]);
        queue.finished(&b'a');
        assert_eq!(drain_starts(&mut queue), [(b'a', 2)]);
        queue.finished(&b'b');
        assert_eq!(drain_starts(&mut queue), []);
        queue.finished(&b'a');
        assert_eq!(drain_starts(&mut queue), [(b'a', 3)]);
        queue.finished(&b'a');
        assert!(queue.is_idle());
    }

    #[test]
    fn a_busy_key_does_not_starve_others() {
        let mut queue = KeyedQueue::new(1);
        for job in 1..=3 {
            queue.push(b'a', job);
        }
        queue.push(b'b', 9);
        assert_eq!(drain_starts(&mut queue), [(b'a', 1)]);
        queue.finished(&b'a');
        assert_eq!(drain_starts(&mut queue), [(b'b', 9)]);
    }

    #[test]
    fn what_waits_can_be_taken_back() {
        let mut queue = KeyedQueue::new(1);
        queue.push(b'a', 1);
        assert_eq!(queue.start_next(), Some((b'a', 1)));
        queue.push(b'a', 2);
        queue.push(b'b', 3);
        assert_eq!(queue.take_waiting(), [(b'a', 2), (b'b', 3)]);
        assert!(!queue.is_idle());
        queue.finished(&b'a');
        assert!(queue.is_idle());
    }

    proptest! {
        #[test]
        fn every_job_runs_once_in_the_order_of_its_key(
            steps in prop::collection::vec((0u8..5, any::<bool>()), 1..200),
            parallel in 1usize..5,
        ) {
            let mut queue = KeyedQueue::new(parallel);
            let mut running: Vec<u8> = Vec::new();
            let mut done: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
            let mut given: BTreeMap<u8, Vec<u32>> = BTreeMap::new();
            let start = |queue: &mut KeyedQueue<u8, u32>, running: &mut Vec<u8>, done: &mut BTreeMap<u8, Vec<u32>>| {
                while let Some((key, job)) = queue.start_next() {
                    assert!(!running.contains(&key));
                    running.push(key);
                    assert!(running.len() <= parallel);
                    done.entry(key).or_default().push(job);
                }
            };
            for (job, (key, finish)) in (0u32..).zip(steps) {
                queue.push(key, job);
                given.entry(key).or_default().push(job);
                start(&mut queue, &mut running, &mut done);
                if finish && !running.is_empty() {
                    queue.finished(&running.remove(0));
                    start(&mut queue, &mut running, &mut done);
                }
            }
            while !running.is_empty() {
                queue.finished(&running.remove(0));
                start(&mut queue, &mut running, &mut done);
            }
            prop_assert!(queue.is_idle());
            prop_assert_eq!(done, given);
        }
    }
}
