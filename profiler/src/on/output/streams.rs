//! The streams that device times are of.

use dflash_timeline::record::{Stream, StreamId};

use super::Output;
use crate::StreamKey;

impl Output {
    /// A stream's number in the recording.
    pub(crate) fn device_stream(&mut self, key: StreamKey) -> StreamId {
        if let Some((_, id)) = self.streams.iter().find(|(known, _)| *known == key) {
            return *id;
        }
        let stream = Stream { device: self.hub.device.name(key.device), number: key.stream, rank: self.rank };
        let id = self.stream.as_mut().map_or(StreamId(0), |writer| writer.stream(&stream));
        self.streams.push((key, id));
        id
    }
}
