//! A reader of Perfetto traces that knows nothing of what writes them. Whatever is unsound fails the test.

use std::collections::BTreeMap;
use std::io::Read;

/// A message: its fields' numbers, with a value or bytes each.
struct Message<'a>(Vec<(u64, u64, &'a [u8])>);

impl<'a> Message<'a> {
    fn of(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let tag = varint(&mut bytes);
            match tag & 7 {
                0 => fields.push((tag >> 3, varint(&mut bytes), &[][..])),
                1 => {
                    fields.push((tag >> 3, u64::from_le_bytes(bytes[..8].try_into().unwrap()), &[][..]));
                    bytes = &bytes[8..];
                }
                2 => {
                    let length = varint(&mut bytes) as usize;
                    fields.push((tag >> 3, 0, &bytes[..length]));
                    bytes = &bytes[length..];
                }
                other => panic!("wire type {other}"),
            }
        }
        Self(fields)
    }

    fn has(&self, number: u64) -> bool {
        self.0.iter().any(|field| field.0 == number)
    }

    fn value(&self, number: u64) -> u64 {
        self.0.iter().find(|field| field.0 == number).map_or(0, |field| field.1)
    }

    fn bytes(&self, number: u64) -> &'a [u8] {
        self.0.iter().find(|field| field.0 == number).map_or(&[], |field| field.2)
    }

    fn text(&self, number: u64) -> &'a str {
        std::str::from_utf8(self.bytes(number)).unwrap()
    }

    fn all(&self, number: u64) -> impl Iterator<Item = Message<'a>> {
        self.0.iter().filter(move |field| field.0 == number).map(|field| Message::of(field.2))
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a varint of more than ten bytes")
}

/// What a trace says.
#[derive(Default)]
pub struct Trace {
    /// Count and nanoseconds by track and name.
    pub slices: BTreeMap<(String, String), (u64, u64)>,
    pub instants: Vec<(String, u64)>,
    /// Unit and number of readings by track.
    pub counters: BTreeMap<String, (String, u64)>,
    pub puts: BTreeMap<u64, u64>,
    pub takes: BTreeMap<u64, u64>,
    pub attributes: BTreeMap<String, String>,
    pub torn: bool,
    pub blocks: usize,
}

/// Reads a trace; whatever is unsound in it fails the test.
pub fn read(bytes: &[u8]) -> Trace {
    let mut trace = Trace::default();
    let mut tracks: BTreeMap<u64, (String, u64, String)> = BTreeMap::new();
    let mut open: BTreeMap<u64, Vec<(u64, String)>> = BTreeMap::new();
    let mut last: BTreeMap<u64, u64> = BTreeMap::new();
    for packet in Message::of(bytes).all(1) {
        let mut block = Vec::new();
        if packet.has(50) {
            trace.blocks += 1;
            flate2::read::ZlibDecoder::new(packet.bytes(50)).read_to_end(&mut block).unwrap();
        }
        let plain = [packet];
        let inside: Vec<Message<'_>> =
            if block.is_empty() { plain.into() } else { Message::of(&block).all(1).collect() };
        // Nothing is remembered from block to block: each is read by itself.
        let mut names: BTreeMap<(u64, u64), String> = BTreeMap::new();
        let mut now: BTreeMap<u64, Option<u64>> = BTreeMap::new();
        for packet in &inside {
            let sequence = packet.value(10);
            trace.torn |= packet.has(138);
            for attribute in packet.all(126).flat_map(|list| list.all(1).collect::<Vec<_>>()) {
                let value =
                    if attribute.has(2) { attribute.value(2).to_string() } else { attribute.text(3).to_owned() };
                trace.attributes.insert(attribute.text(1).to_owned(), value);
            }
            if packet.value(13) & 1 != 0 {
                let incremental =
                    packet.all(6).flat_map(|s| s.all(1).collect::<Vec<_>>()).find(|clock| clock.value(3) == 1);
                now.insert(sequence, incremental.map(|clock| clock.value(2)));
            }
            for track in packet.all(60) {
                let own = [track.text(2).to_owned()];
                let process = track.all(3).map(|process| process.text(6).to_owned());
                let thread = track.all(4).map(|thread| thread.text(5).to_owned());
                let name = own.into_iter().chain(process).chain(thread).find(|name| !name.is_empty()).unwrap();
                let unit = track.all(8).map(|counter| counter.text(6).to_owned()).next().unwrap_or_default();
                assert!(
                    tracks.insert(track.value(1), (name, track.value(5), unit)).is_none(),
                    "two tracks of one number"
                );
            }
            for entry in packet.all(12).flat_map(|interned| interned.all(2).collect::<Vec<_>>()) {
                names.insert((sequence, entry.value(1)), entry.text(2).to_owned());
            }
            let Some(event) = packet.all(11).next() else { continue };
            let clock = now.get_mut(&sequence).expect("an event before its sequence's state");
            let time = clock.map_or(packet.value(8), |base| base + packet.value(8));
            if clock.is_some() {
                *clock = Some(time);
                assert!(last.insert(sequence, time).unwrap_or(0) <= time, "time steps back");
            }
            let uuid = event.value(11);
            assert!(tracks.contains_key(&uuid), "a track without a descriptor");
            let name = names.get(&(sequence, event.value(10))).cloned().unwrap_or_else(|| event.text(23).to_owned());
            trace.puts.extend(event.0.iter().filter(|field| field.0 == 47).map(|field| (field.1, time)));
            trace.takes.extend(event.0.iter().filter(|field| field.0 == 48).map(|field| (field.1, time)));
            match event.value(9) {
                1 => open.entry(uuid).or_default().push((time, name)),
                2 => {
                    let (begin, begun) = open.get_mut(&uuid).and_then(Vec::pop).expect("an end without a begin");
                    let row = trace.slices.entry((label(&tracks, uuid), begun)).or_default();
                    *row = (row.0 + 1, row.1 + (time - begin));
                }
                3 => trace.instants.push((name, time)),
                4 => {
                    let row = trace.counters.entry(label(&tracks, uuid)).or_default();
                    *row = (tracks[&uuid].2.clone(), row.1 + 1);
                }
                other => panic!("event of type {other}"),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty), "a slice stays open");
    assert!(trace.takes.iter().all(|(flow, time)| trace.puts[flow] <= *time), "an arrow ends before it begins");
    trace
}

fn label(tracks: &BTreeMap<u64, (String, u64, String)>, mut uuid: u64) -> String {
    let mut names = Vec::new();
    while let Some((name, parent, _)) = tracks.get(&uuid) {
        names.push(name.as_str());
        uuid = *parent;
    }
    assert_eq!(uuid, 0, "a track whose parent is not there");
    names.join(" < ")
}
