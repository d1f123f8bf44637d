//! The few messages of TensorFlow's event.proto that scalars need, in protobuf's wire format.
//!
//! | message | field | type |
//! |---|---|---|
//! | Event | 1 wall_time | double |
//! | | 2 step | int64 |
//! | | 3 file_version | string |
//! | | 5 summary | Summary |
//! | Summary | 1 value, repeated | Value |
//! | Value | 1 tag | string |
//! | | 2 simple_value | float |

/// What the first event of a file says.
const VERSION: &str = "brain.Event:2";

/// The event that a file begins with.
pub(super) fn version(unix_seconds: f64) -> Vec<u8> {
    let mut event = double(1, unix_seconds);
    event.extend(bytes(3, VERSION.as_bytes()));
    event
}

/// The scalars of a step.
pub(super) fn scalars(unix_seconds: f64, step: i64, scalars: &[(String, f64)]) -> Vec<u8> {
    let value = |(tag, number): &(String, f64)| {
        let mut value = bytes(1, tag.as_bytes());
        value.extend(key(2, 5));
        value.extend((*number as f32).to_le_bytes());
        bytes(1, &value)
    };
    let summary: Vec<u8> = scalars.iter().flat_map(value).collect();
    let mut event = double(1, unix_seconds);
    event.extend(key(2, 0));
    event.extend(varint(step as u64));
    event.extend(bytes(5, &summary));
    event
}

fn double(field: u64, value: f64) -> Vec<u8> {
    let mut bytes = key(field, 1);
    bytes.extend(value.to_le_bytes());
    bytes
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = key(field, 2);
    bytes.extend(varint(value.len() as u64));
    bytes.extend(value);
    bytes
}

fn key(field: u64, wire: u64) -> Vec<u8> {
    varint(field << 3 | wire)
}

/// Seven bits a byte, the lowest first.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}
