//! A profile in pprof's format (profile.proto, not compressed), for `go tool pprof`, speedscope and their like.
//!
//! | message | fields |
//! |---|---|
//! | Profile | 1 sample types, 2 samples, 4 locations, 5 functions, 6 texts, 9 begin (unix ns), 10 duration (ns), 11 type of the period, 12 period |
//! | ValueType | 1 type, 2 unit |
//! | Sample | 1 locations, innermost first, 2 values, 3 labels |
//! | Label | 1 key, 2 text |
//! | Location | 1 id, 4 lines |
//! | Line | 1 function |
//! | Function | 1 id, 2 name, 3 name in the file |
//!
//! Texts are numbers into the table of texts, whose first is empty. Each function is one location. Labels: the thread,
//! the lane and its innermost open span.

use std::collections::HashMap;
use std::sync::Arc;

use crate::on::event::Stack;
use crate::on::site;

/// Different stacks that are kept; what comes then is counted as lost.
const STACKS: usize = 1 << 17;

/// Samples that gather, equal ones merged.
#[derive(Debug)]
pub(crate) struct Profile {
    period_ns: u64,
    begin_ns: i64,
    texts: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u64>,
    samples: HashMap<Key, u64>,
}

/// All texts by number; functions outermost first.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    frames: Vec<u64>,
    labels: [u64; 3],
}

const LABELS: [&str; 3] = ["thread", "lane", "span"];

impl Profile {
    pub(crate) fn new(hz: u32) -> Self {
        let period_ns = 1_000_000_000 / u64::from(hz.max(1));
        let begin_ns = dflash_sys::realtime_ns();
        let mut profile =
            Self { period_ns, begin_ns, texts: Vec::new(), numbers: HashMap::new(), samples: HashMap::new() };
        profile.text("");
        profile
    }

    /// Adds a sample; `false`: there is no room for one more stack.
    pub(crate) fn add(&mut self, stack: &Stack) -> bool {
        let lane = stack.lane.as_ref().map_or("", |(name, _)| name);
        let span = stack.spans.last().map_or("", |site| site::name(*site));
        let labels = [&stack.thread, lane, span].map(|text| self.text(text));
        let frames = stack.frames.iter().map(|frame| self.text(frame)).collect();
        let key = Key { frames, labels };
        let room = self.samples.len() < STACKS;
        match self.samples.get_mut(&key) {
            Some(count) => *count += 1,
            None if room => drop(self.samples.insert(key, 1)),
            None => return false,
        }
        true
    }

    fn text(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let (number, text) = (self.texts.len() as u64, Arc::<str>::from(text));
        self.texts.push(Arc::clone(&text));
        self.numbers.insert(text, number);
        number
    }

    /// The file's bytes.
    pub(crate) fn encode(&mut self, seconds: f64) -> Vec<u8> {
        let types = [("samples", "count"), ("cpu", "nanoseconds")]
            .map(|(what, unit)| Message::default().number(1, self.text(what)).number(2, self.text(unit)));
        let keys = LABELS.map(|label| self.text(label));
        let mut samples: Vec<_> = std::mem::take(&mut self.samples).into_iter().collect();
        samples.sort_unstable_by(|(a, _), (b, _)| (&a.frames, a.labels).cmp(&(&b.frames, b.labels)));
        let mut profile = Message::default();
        for value_type in &types {
            profile = profile.message(1, value_type);
        }
        for (key, count) in &samples {
            profile = profile.message(2, &self.sample(key, *count, keys));
        }
        let mut functions: Vec<u64> = samples.iter().flat_map(|(key, _)| key.frames.iter().copied()).collect();
        functions.sort_unstable();
        functions.dedup();
        for name in &functions {
            let line = Message::default().number(1, name + 1);
            profile = profile.message(4, &Message::default().number(1, name + 1).message(4, &line));
        }
        for name in &functions {
            profile = profile.message(5, &Message::default().number(1, name + 1).number(2, *name).number(3, *name));
        }
        for text in &self.texts {
            profile = profile.bytes(6, text.as_bytes());
        }
        let duration_ns = (seconds * 1e9) as u64;
        let profile = profile.number(9, self.begin_ns.unsigned_abs()).number(10, duration_ns);
        profile.message(11, &types[1]).number(12, self.period_ns).0
    }

    /// A location's number is its function's text's, plus 1: 0 is none.
    fn sample(&self, key: &Key, count: u64, labels: [u64; 3]) -> Message {
        let sample = Message::default().numbers(1, key.frames.iter().rev().map(|name| name + 1));
        let sample = sample.numbers(2, [count, count * self.period_ns].into_iter());
        let set = labels.into_iter().zip(key.labels).filter(|(_, text)| *text != 0);
        set.fold(sample, |sample, (label, text)| {
            sample.message(3, &Message::default().number(1, label).number(2, text))
        })
    }
}

/// A protobuf message in the making.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    fn number(mut self, field: u64, value: u64) -> Self {
        varint(&mut self.0, field << 3);
        varint(&mut self.0, value);
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Self {
        varint(&mut self.0, field << 3 | 2);
        varint(&mut self.0, bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, field: u64, message: &Self) -> Self {
        self.bytes(field, &message.0)
    }

    fn numbers(self, field: u64, values: impl Iterator<Item = u64>) -> Self {
        let mut packed = Vec::new();
        values.for_each(|value| varint(&mut packed, value));
        self.bytes(field, &packed)
    }
}

fn varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::{Profile, Stack};

    /// Fields of a message: number, value or bytes.
    fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, Vec<u8>)> {
        let mut found = Vec::new();
        while !bytes.is_empty() {
            let key = read(&mut bytes);
            let value = read(&mut bytes);
            let length = if key & 7 == 2 { value as usize } else { 0 };
            found.push((key >> 3, value, bytes[..length].to_vec()));
            bytes = &bytes[length..];
        }
        found
    }

    fn read(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                break;
            }
        }
        value
    }

    fn packed(mut bytes: &[u8]) -> Vec<u64> {
        std::iter::from_fn(|| (!bytes.is_empty()).then(|| read(&mut bytes))).collect()
    }

    fn stack(thread: &str, frames: &[&str]) -> Stack {
        let frames = frames.iter().map(|f| (*f).into()).collect();
        let lane = Some(("drafter:0".to_owned(), "cpu".to_owned()));
        Stack { time_ns: 0, tid: 1, thread: thread.into(), lane, iteration: None, spans: Vec::new(), frames }
    }

    #[test]
    fn equal_stacks_are_merged_and_read_back() {
        let mut profile = Profile::new(100);
        let deep = stack("a", &["main", "work", "x".repeat(300).as_str()]);
        assert!(profile.add(&deep) && profile.add(&stack("b", &["main"])) && profile.add(&deep));
        let profile = fields(&profile.encode(2.5));
        let of = |field| profile.iter().filter(move |(f, _, _)| *f == field);
        let texts: Vec<String> = of(6).map(|(_, _, text)| String::from_utf8(text.clone()).unwrap()).collect();
        assert_eq!(texts[0], "");
        let name_of = |location: u64| {
            let function = of(4).find_map(|(_, _, l)| {
                let l = fields(l);
                (l[0].1 == location).then(|| fields(&l[1].2)[0].1)
            });
            let names = of(5).find_map(|(_, _, f)| {
                let f = fields(f);
                (Some(f[0].1) == function).then_some(f[1].1)
            });
            texts[names.unwrap() as usize].clone()
        };
        let mut read: Vec<_> = of(2)
            .map(|(_, _, sample)| {
                let sample = fields(sample);
                let names: Vec<String> = packed(&sample[0].2).into_iter().map(name_of).collect();
                let labels: Vec<_> = sample[2..].iter().map(|(_, _, l)| fields(l)).collect();
                let labels: Vec<_> = labels.iter().map(|l| [0, 1].map(|i| texts[l[i].1 as usize].clone())).collect();
                (names, packed(&sample[1].2), labels)
            })
            .collect();
        read.sort();
        let labels = |thread: &str| [["thread", thread], ["lane", "drafter:0"]].map(|l| l.map(str::to_owned)).to_vec();
        assert_eq!(read[0], (vec!["main".to_owned()], vec![1, 10_000_000], labels("b")));
        assert_eq!(read[1], (vec!["x".repeat(300), "work".into(), "main".into()], vec![2, 20_000_000], labels("a")));
        assert_eq!(of(10).next().unwrap().1, 2_500_000_000);
        assert_eq!(of(12).next().unwrap().1, 10_000_000);
    }
}
