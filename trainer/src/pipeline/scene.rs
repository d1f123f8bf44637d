//! Queues and settings of a training, from its configuration.

use super::observe::Observer;
use super::order::Order;
use super::parts::Text;
use super::pauses::Pauses;
use super::shared::{Among, Ends, Shared, WaitTime};
use super::work::World;
use super::{BufferedHSQueue, Room, post_loop};
use crate::config::{AsyncPostprocess, Config, Delivery, FeatureCache, bytes};
use dflash_profiler::Profiler;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// What the lanes' surroundings are made of.
pub(super) struct Scene<'a> {
    pub(super) config: &'a Config,
    pub(super) samples: &'a [Text],
    pub(super) profiler: &'a Profiler,
    pub(super) observer: &'a dyn Observer,
    /// Steps that were made by earlier attempts, and which attempt this is.
    pub(super) first: usize,
    pub(super) attempt: u32,
    /// Targets and drafters there are in this process.
    pub(super) targets: usize,
    pub(super) drafters: usize,
    /// This process's drafters among those of all.
    pub(super) among: Among,
    /// Whether the targets are on GPUs.
    pub(super) on_gpu: bool,
    /// Bytes of one token's taps.
    pub(super) token_bytes: u64,
    /// What else has to stop when the queues are abandoned.
    pub(super) also: &'a (dyn Fn() + Sync),
}

impl<'a> Scene<'a> {
    /// The queues, empty.
    pub(super) fn shared<W: World>(&self) -> Shared<'a, W> {
        let (config, pipeline) = (self.config, &self.config.pipeline);
        let strict = pipeline.order == Delivery::Strict;
        let room = self.room();
        let first = (self.first * self.drafters * config.train.accumulate) as u64;
        self.note_capacities(room);
        let hidden_states =
            if strict { BufferedHSQueue::strict(room, first, self.drafters) } else { BufferedHSQueue::arrival(room) };
        let post = |_| BufferedHSQueue::arrival(Room::items(post_loop::DEPTH));
        Shared {
            samples: self.samples,
            steps: config.train.steps,
            first: self.first,
            attempt: self.attempt,
            accumulate: config.train.accumulate,
            targets: self.targets,
            drafters: self.drafters,
            among: self.among,
            strict,
            read_once: pipeline.feature_cache != FeatureCache::Off,
            on_stop: config.checkpoint.on_stop,
            log_every: config.profile.log_every as u64,
            eval_every: config.eval.every,
            batches: BufferedHSQueue::arrival(Room::items(pipeline.batch_queue)),
            hidden_states,
            posts: if self.has_posts() { (0..self.targets).map(post).collect() } else { Vec::new() },
            profiler: self.profiler,
            observer: self.observer,
            target_wait: WaitTime::default(),
            pauses: Pauses::default(),
            warmup: config.profile.warmup_iterations,
            threads: pipeline.threads,
            ends: Ends {
                makers: AtomicUsize::new(self.targets),
                failure: Mutex::default(),
                also: self.also,
                stopping: AtomicBool::new(false),
            },
            warnings: Mutex::default(),
        }
    }

    /// The order of the samples from the first step on, picks for all drafters together, and how many of a pick's samples a
    /// drafter gets.
    pub(super) fn order(&self) -> (Order, usize) {
        let train = &self.config.train;
        let mut order = self.whole_order();
        order.skip((self.first * train.accumulate) as u64);
        (order, train.batch)
    }

    /// Picks of an epoch.
    pub(super) fn epoch(&self) -> u64 {
        self.whole_order().epoch()
    }

    fn whole_order(&self) -> Order {
        let lengths = self.samples.iter().map(|s| s.ids.len()).collect();
        Order::new(lengths, self.config.train.batch * self.among.all, self.config.run.seed)
    }

    fn has_posts(&self) -> bool {
        match self.config.pipeline.async_postprocess {
            AsyncPostprocess::Auto => self.on_gpu,
            AsyncPostprocess::On => true,
            AsyncPostprocess::Off => false,
        }
    }

    /// The hidden states' queue: its bounds, and the largest batch that it will see.
    fn room(&self) -> Room {
        let pipeline = &self.config.pipeline;
        let longest = self.samples.iter().map(|s| s.ids.len() as u64).max().unwrap_or_default();
        Room {
            items: pipeline.hs_queue,
            // Checked with the configuration.
            bytes: bytes(&pipeline.hs_queue_bytes).flatten().unwrap_or(u64::MAX),
            largest: longest * self.token_bytes * self.config.train.batch as u64,
        }
    }

    /// A depth says little without what it could be.
    fn note_capacities(&self, room: Room) {
        let note = |name: &str, unit: &str, value: f64| {
            self.profiler.constant(&format!("queue.{name}.capacity"), unit, value);
        };
        note("batches", "items", self.config.pipeline.batch_queue as f64);
        note("hidden_states", "items", room.items as f64);
        if room.bytes < u64::MAX {
            self.profiler.constant("queue.hidden_states.bytes.most", "bytes", room.bytes as f64);
        }
    }
}
