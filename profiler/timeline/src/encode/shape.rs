//! What is alike in spans of a name. The table: `encode/span.rs`.

use super::tag;
use crate::record::NameId;
use crate::varint::ROOM;

pub(crate) const INDEX: u8 = 0x01;
pub(crate) const EXPLICIT: u8 = 0x02;
pub(crate) const ZERO: u8 = 0x04;
pub(crate) const DEVICE: u8 = 0x08;
/// Shapes that have numbers.
pub(crate) const SHAPES: usize = 127;
/// Lengths of the gap.
pub(crate) const SHORT: [usize; 4] = [1, 2, 4, 8];
/// Lengths of the others.
pub(crate) const LONG: [usize; 4] = [2, 3, 4, 8];
/// The length of which a signed number has something added, so that it is not negative.
pub(super) const BIASED: u8 = 2;
const BIAS: u64 = 1 << 31;
/// The length of what is out of the ordinary.
pub(super) const LONGEST: u8 = 3;

/// The bits of a number of so many bytes.
const MASKS: [u64; 9] = {
    let mut masks = [0; 9];
    let mut length = 1;
    while length < masks.len() {
        masks[length] = u64::MAX >> (64 - 8 * length);
        length += 1;
    }
    masks
};

/// Where the numbers of a shape stand, by its byte of lengths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Layout {
    /// The bits that each number may have.
    pub masks: [u64; 4],
    /// What is added to the gap and to the device begin.
    pub bias: [u64; 2],
    /// Where the second to fourth number begin.
    pub places: [u8; 3],
    /// Bytes of all.
    pub length: u8,
}

impl Layout {
    pub(crate) fn of(code: u8, flags: u8) -> Self {
        let length = |lengths: [usize; 4], at: u32| lengths[usize::from(code >> at & 3)];
        let on_device = |length: usize| if flags & DEVICE == 0 { 0 } else { length };
        let lengths = [length(SHORT, 0), length(LONG, 2), on_device(length(LONG, 4)), on_device(length(LONG, 6))];
        let bias = |code: u8| if code & 3 == BIASED { BIAS } else { 0 };
        let [a, b, c, d] = lengths;
        Self {
            masks: lengths.map(|length| MASKS[length]),
            bias: [bias(code), if flags & DEVICE == 0 { 0 } else { bias(code >> 4) }],
            places: [a as u8, (a + b) as u8, (a + b + c) as u8],
            length: (a + b + c + d) as u8,
        }
    }

    /// How long each number is.
    pub(super) fn lengths(&self) -> [usize; 4] {
        let [a, b, c] = self.places.map(usize::from);
        [a, b - a, c - b, usize::from(self.length) - c]
    }

    /// The last two only on a device: else they have no place.
    #[inline]
    pub(super) fn write<const ON_DEVICE: bool>(&self, room: &mut [u8; ROOM], numbers: [u64; 4]) {
        let mut put = |at: u8, value: u64| {
            let at = usize::from(at);
            room[at..at + 8].copy_from_slice(&value.to_le_bytes());
        };
        let ([second, third, fourth], [gap, duration, device_begin, device_duration]) = (self.places, numbers);
        put(0, gap);
        put(second, duration);
        if ON_DEVICE {
            put(third, device_begin);
            put(fourth, device_duration);
        }
    }
}

/// The shapes of a block.
#[derive(Debug)]
pub(crate) struct Shapes {
    /// By the block's ids.
    pub(super) names: Vec<OfName>,
    count: u8,
    /// Number of the block, from 1, in the upper half: what is of another one does not count.
    pub(super) block: u64,
}

/// What a block knows of spans of a name.
#[derive(Clone, Debug, Default)]
pub(super) struct OfName {
    /// The index of the next span, if it is the one after the last.
    pub(super) next_index: u64,
    /// Of spans whose index is not, is 0 out of turn: the block's first shape of such spans, and one for those that do
    /// not fit.
    pub(super) shapes: [[Shape; 2]; 2],
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shape {
    /// Block, flags, depth.
    pub(super) key: u64,
    pub(super) layout: Layout,
    /// The bits that each number may not have.
    over: [u64; 4],
    pub(super) tag: u8,
    pub(super) lengths: u8,
}

impl Shape {
    pub(super) fn new(key: u64, lengths: u8, tag: u8) -> Self {
        let layout = Layout::of(lengths, (key >> FLAGS_AT) as u8);
        Self { key, layout, over: layout.masks.map(|mask| !mask), tag, lengths }
    }

    /// The numbers as they are written, if it is the shape of this key and they have its lengths or shorter ones.
    #[inline]
    pub(super) fn fit(&self, key: u64, [gap, duration, device_begin, device_duration]: [u64; 4]) -> Option<[u64; 4]> {
        let ([a, b, c, d], [gap_bias, device_bias]) = (self.over, self.layout.bias);
        let (gap, device_begin) = (gap.wrapping_add(gap_bias), device_begin.wrapping_add(device_bias));
        let over = (gap & a) | (duration & b) | (device_begin & c) | (device_duration & d);
        let fits = over | (key ^ self.key) == 0;
        fits.then_some([gap, duration, device_begin, device_duration])
    }
}

/// Where the flags stand in a key.
pub(super) const FLAGS_AT: u32 = 8;

impl Default for Shapes {
    fn default() -> Self {
        Self { names: Vec::new(), count: 0, block: 1 << 32 }
    }
}

impl Shapes {
    pub(super) fn clear(&mut self) {
        self.count = 0;
        self.block = self.block.wrapping_add(1 << 32);
        self.names.iter_mut().for_each(|name| name.next_index = 0);
    }

    /// What is known of a name.
    pub(super) fn name(&mut self, name: NameId) -> &mut OfName {
        let place = name.0 as usize;
        if place >= self.names.len() {
            self.names.resize(place + 1, OfName::default());
        }
        &mut self.names[place]
    }

    /// A new shape for such a span; `None`: there are no numbers left. Of a name's first span in a block the lengths are
    /// as it needs them; what does not fit there gets the longest that such spans needed so far.
    pub(super) fn add(&mut self, name: NameId, key: u64, lengths: u8) -> Option<Shape> {
        let (flags, count, block) = ((key >> FLAGS_AT) as u8, self.count, self.block);
        if usize::from(count) == SHAPES {
            return None;
        }
        self.count += 1;
        let [first, second] = &mut self.name(name).shapes[usize::from(flags & ZERO != 0)];
        let (shape, lengths) = if first.key < block {
            (first, lengths)
        } else if second.key as u32 == key as u32 {
            let lengths = join(second.lengths, lengths);
            (second, lengths)
        } else {
            (second, lengths)
        };
        *shape = Shape::new(key, lengths, tag::SPAN | count);
        Some(*shape)
    }
}

/// The longer ones of two bytes of lengths.
fn join(a: u8, b: u8) -> u8 {
    [0x03, 0x0c, 0x30, 0xc0].into_iter().map(|number| (a & number).max(b & number)).sum()
}

/// The byte of lengths of a span's numbers.
pub(super) fn lengths([gap, duration, device_begin, device_duration]: [u64; 4], flags: u8) -> u8 {
    let host = signed(gap, 1 << 8, 1 << 16) | length(duration) << 2;
    if flags & DEVICE == 0 {
        return host;
    }
    host | signed(device_begin, 1 << 16, 1 << 24) << 4 | length(device_duration) << 6
}

/// The place of a signed number's length: plain below these two.
fn signed(value: u64, first: u64, second: u64) -> u8 {
    if value < second {
        return u8::from(value >= first);
    }
    if value.wrapping_add(BIAS) >> 32 == 0 { BIASED } else { LONGEST }
}

/// The place of a duration's length among `LONG`.
fn length(value: u64) -> u8 {
    u8::from(value >= 1 << 16) + u8::from(value >= 1 << 24) + u8::from(value >= 1 << 32)
}
