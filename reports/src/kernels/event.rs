//! One event of a Chrome trace: the few fields that count, from whatever stands there. A field of the wrong kind is a
//! missing one; a field that stands twice has its last value.

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// What runs on a device, in Kineto's words.
const ON_DEVICE: [&str; 3] = ["kernel", "gpu_memcpy", "gpu_memset"];

/// An event.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Event {
    /// Its category is one of a device.
    pub on_device: bool,
    /// Begin, microseconds.
    pub ts: Option<f64>,
    /// Duration, microseconds.
    pub dur: Option<f64>,
    /// Kineto gives the device's number as the process, too.
    pub pid: Option<f64>,
    /// `args.device`.
    pub device: Option<f64>,
    /// `args.stream`.
    pub stream: Option<f64>,
    /// The host's thread.
    pub tid: Option<f64>,
    /// Its name is that of a call that waits for a device.
    pub waits: bool,
    /// What it calls its thread, if that is what it says.
    pub thread: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum Key {
    Name,
    Tid,
    Cat,
    Ts,
    Dur,
    Pid,
    Args,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "lowercase")]
enum ArgsKey {
    Device,
    Stream,
    Name,
    #[serde(other)]
    Other,
}

/// Any value, reduced to what an event can use of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Loose {
    /// A whole number, to its last digit.
    Whole(i64),
    /// Another number.
    Fraction(f64),
    /// A text.
    Text(Word),
    /// An object with, perhaps, a device and a stream, or a thread's name.
    Args { device: Option<f64>, stream: Option<f64>, thread: Option<Box<str>> },
    /// Anything else.
    Nothing,
}

/// What a text says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A device's category.
    OnDevice,
    /// A call that waits for a device.
    Waits,
    /// A thread's name.
    Thread(Box<str>),
    /// Nothing that counts.
    Other,
}

impl Word {
    fn of(text: &str) -> Self {
        // "thread 4711 (drafter:0)"
        let named = || text.strip_prefix("thread ")?.split_once('(')?.1.strip_suffix(')');
        match text {
            _ if ON_DEVICE.contains(&text) => Self::OnDevice,
            _ if text.starts_with("cu") && text.ends_with("Synchronize") => Self::Waits,
            _ => named().map_or(Self::Other, |name| Self::Thread(name.into())),
        }
    }
}

impl Loose {
    fn number(self) -> Option<f64> {
        match self {
            Self::Whole(whole) => Some(whole as f64),
            Self::Fraction(fraction) => Some(fraction),
            _ => None,
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_map(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Event, A::Error> {
        let mut event = Event::default();
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Name => event.waits = map.next_value::<Loose>()? == Loose::Text(Word::Waits),
                Key::Tid => event.tid = map.next_value::<Loose>()?.number(),
                Key::Cat => event.on_device = map.next_value::<Loose>()? == Loose::Text(Word::OnDevice),
                Key::Ts => event.ts = map.next_value::<Loose>()?.number(),
                Key::Dur => event.dur = map.next_value::<Loose>()?.number(),
                Key::Pid => event.pid = map.next_value::<Loose>()?.number(),
                Key::Args => {
                    if let Loose::Args { device, stream, thread } = map.next_value()? {
                        (event.device, event.stream, event.thread) = (device, stream, thread);
                    }
                }
                Key::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(event)
    }
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(json: D) -> Result<Self, D::Error> {
        json.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_i64<E: Error>(self, whole: i64) -> Result<Loose, E> {
        Ok(Loose::Whole(whole))
    }

    fn visit_u64<E: Error>(self, whole: u64) -> Result<Loose, E> {
        Ok(i64::try_from(whole).map_or(Loose::Fraction(whole as f64), Loose::Whole))
    }

    fn visit_f64<E: Error>(self, fraction: f64) -> Result<Loose, E> {
        Ok(Loose::Fraction(fraction))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Loose, E> {
        Ok(Loose::Text(Word::of(text)))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Loose, E> {
        Ok(Loose::Nothing)
    }

    fn visit_unit<E: Error>(self) -> Result<Loose, E> {
        Ok(Loose::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Loose, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Loose::Nothing)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
        let (mut device, mut stream, mut thread) = (None, None, None);
        while let Some(key) = map.next_key::<ArgsKey>()? {
            match key {
                ArgsKey::Device => device = map.next_value::<Loose>()?.number(),
                ArgsKey::Stream => stream = map.next_value::<Loose>()?.number(),
                ArgsKey::Name => {
                    if let Loose::Text(Word::Thread(name)) = map.next_value()? {
                        thread = Some(name);
                    }
                }
                ArgsKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Loose::Args { device, stream, thread })
    }
}

#[cfg(test)]
mod tests {
    use super::Event;

    fn event(json: &str) -> Event {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn takes_what_it_understands() {
        let kernel = event(
            r#"{"ph": "X", "cat": "kernel", "ts": 12.5, "dur": 3, "pid": 1, "args": {"device": 0, "stream": 7, "grid": [1, 1]}}"#,
        );
        let expected = Event {
            on_device: true,
            ts: Some(12.5),
            dur: Some(3.0),
            pid: Some(1.0),
            device: Some(0.0),
            stream: Some(7.0),
            ..Event::default()
        };
        assert_eq!(kernel, expected);
        let named = event(r#"{"name": "thread_name", "ph": "M", "tid": 9, "args": {"name": "thread 9 (drafter:0)"}}"#);
        assert_eq!((named.tid, named.thread.as_deref(), named.waits), (Some(9.0), Some("drafter:0"), false));
        assert!(event(r#"{"cat": "cuda_runtime", "name": "cudaStreamSynchronize"}"#).waits);
        assert!(!event(r#"{"cat": "cpu_op", "args": {"device": 0}}"#).on_device);
    }

    #[test]
    fn a_field_of_the_wrong_kind_is_a_missing_one() {
        for odd in ["null", "true", "\"12\"", "[1, {\"a\": 2}]", "{\"device\": 1}"] {
            let event = event(&format!(
                r#"{{"cat": {odd}, "ts": {odd}, "dur": {odd}, "pid": {odd}, "tid": {odd}, "name": {odd}}}"#
            ));
            assert_eq!(event, Event::default(), "{odd}");
        }
        assert_eq!(event(r#"{"args": 5, "cat": "gpu_memcpy", "ts": 1, "ts": 2}"#).ts, Some(2.0), "the last one counts");
    }
}
