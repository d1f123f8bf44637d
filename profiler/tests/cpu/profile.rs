//! Reads a profile in pprof's format.

use std::collections::HashMap;

#[derive(Debug)]
pub struct Sample {
    /// Innermost first.
    pub frames: Vec<String>,
    pub labels: HashMap<String, String>,
    pub count: u64,
}

impl Sample {
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(String::as_str)
    }

    pub fn has(&self, function: &str) -> bool {
        self.frames.iter().any(|frame| frame.ends_with(function))
    }
}

/// Field, number, bytes.
type Field<'a> = (u64, u64, &'a [u8]);

pub fn read(profile: &[u8]) -> Vec<Sample> {
    let profile = fields(profile);
    let of = |field| profile.iter().filter(move |(f, _, _)| *f == field).map(|(_, _, bytes)| fields(bytes));
    let texts = profile.iter().filter(|(field, _, _)| *field == 6);
    let texts: Vec<&str> = texts.map(|(_, _, text)| std::str::from_utf8(text).unwrap()).collect();
    let text = |number: u64| texts[number as usize].to_owned();
    let names: HashMap<u64, String> = of(5).map(|f| (number(&f, 1), text(number(&f, 2)))).collect();
    let functions: HashMap<u64, u64> = of(4).map(|l| (number(&l, 1), number(&fields(bytes(&l, 4)), 1))).collect();
    let sample = |sample: Vec<Field>| {
        let labels = sample.iter().filter(|(field, _, _)| *field == 3).map(|(_, _, label)| fields(label));
        Sample {
            frames: packed(bytes(&sample, 1)).iter().map(|location| names[&functions[location]].clone()).collect(),
            labels: labels.map(|l| (text(number(&l, 1)), text(number(&l, 2)))).collect(),
            count: packed(bytes(&sample, 2))[0],
        }
    };
    of(2).map(sample).collect()
}

fn number(message: &[Field], field: u64) -> u64 {
    message.iter().find(|(f, _, _)| *f == field).unwrap().1
}

fn bytes<'a>(message: &[Field<'a>], field: u64) -> &'a [u8] {
    message.iter().find(|(f, _, _)| *f == field).unwrap().2
}

fn fields(mut bytes: &[u8]) -> Vec<Field<'_>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let value = varint(&mut bytes);
        let (own, rest) = bytes.split_at(if key & 7 == 2 { value as usize } else { 0 });
        found.push((key >> 3, value, own));
        bytes = rest;
    }
    found
}

fn packed(mut bytes: &[u8]) -> Vec<u64> {
    std::iter::from_fn(|| (!bytes.is_empty()).then(|| varint(&mut bytes))).collect()
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|byte| *byte < 128).unwrap() + 1;
    let (own, rest) = bytes.split_at(length);
    *bytes = rest;
    own.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 127))
}
