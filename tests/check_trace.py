#!/usr/bin/env python3
"""Read a Perfetto trace with the official classes and say what is in it, as an oracle for `dflash trace`.

    pip install perfetto protobuf
    check_trace.py TRACE

Prints one JSON object: `problems` (each with a count; none if the trace is sound), `slices` (count and nanoseconds by
track and name), `counters` (readings by track and unit), `instants`, `flows` (arrows with both ends, the end not before
the begin), `attributes`, `recovered` (the trace says that its source was torn). Exit code 0 sound, 1 not, 2 unreadable,
77 the classes are not installed.
"""
import collections
import json
import sys
import zlib

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb
except ImportError as error:
    print(f"the official classes are not installed ({error}): pip install perfetto protobuf", file=sys.stderr)
    sys.exit(77)

CLEARED, NEEDS_STATE = 1, 2
DELTA_CLOCKS = range(64, 128)
KNOWN_CLOCKS = {1: "REALTIME", 3: "MONOTONIC", 6: "BOOTTIME"}


def unpacked(data, problems):
    """Packets, those of compressed blocks in their place; a block must be readable by itself."""
    for packet in pb.Trace.FromString(data).packet:
        if packet.HasField("compressed_packets"):
            state = set()
            for inner in unpacked(zlib.decompress(packet.compressed_packets), problems):
                sequence = inner.trusted_packet_sequence_id
                if inner.sequence_flags & CLEARED:
                    state.add(sequence)
                if inner.sequence_flags & NEEDS_STATE and sequence not in state:
                    problems["a block that needs another one"] += 1
                yield inner
        else:
            yield packet


class State:
    """What a sequence has said since it was cleared."""

    def __init__(self):
        self.names, self.notes, self.clock, self.now = {}, {}, 0, None

    def take(self, packet):
        if packet.sequence_flags & CLEARED:
            self.__init__()
        self.names.update((entry.iid, entry.name) for entry in packet.interned_data.event_names)
        self.notes.update((entry.iid, entry.name) for entry in packet.interned_data.debug_annotation_names)
        if packet.HasField("trace_packet_defaults"):
            self.clock = packet.trace_packet_defaults.timestamp_clock_id
        for clock in packet.clock_snapshot.clocks:
            if clock.clock_id in DELTA_CLOCKS:
                self.now = clock.timestamp

    def time(self, packet, problems):
        clock = packet.timestamp_clock_id or self.clock
        if clock in DELTA_CLOCKS:
            if self.now is None:
                problems["a delta clock without a begin"] += 1
                self.now = 0
            self.now += packet.timestamp
            return self.now
        if clock not in KNOWN_CLOCKS:
            problems[f"unknown clock {clock}"] += 1
        return packet.timestamp


class Reading:
    def __init__(self):
        self.problems = collections.Counter()
        self.states = collections.defaultdict(State)
        self.tracks, self.events = {}, collections.defaultdict(list)
        self.counters, self.instants = collections.Counter(), collections.Counter()
        self.puts, self.takes, self.attributes = {}, {}, {}
        self.clocks, self.recovered, self.last = set(), False, {}

    def packet(self, packet):
        state = self.states[packet.trusted_packet_sequence_id]
        if not packet.trusted_packet_sequence_id:
            self.problems["packet of no sequence"] += 1
        state.take(packet)
        self.recovered |= packet.HasField("recovered_trace_info")
        if packet.clock_snapshot.primary_trace_clock:
            self.clocks |= {clock.clock_id for clock in packet.clock_snapshot.clocks}
        for attribute in packet.trace_attributes.attribute:
            whole = attribute.HasField("long_value")
            self.attributes[attribute.key] = attribute.long_value if whole else attribute.string_value
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.uuid in self.tracks:
                self.problems["two tracks of one number"] += 1
            self.tracks[track.uuid] = track
        if packet.HasField("track_event"):
            self.event(packet.track_event, state, packet)

    def event(self, event, state, packet):
        time = state.time(packet, self.problems)
        sequence = packet.trusted_packet_sequence_id
        if state.clock in DELTA_CLOCKS and time < self.last.get(sequence, 0):
            self.problems["time steps back in a sequence"] += 1
        self.last[sequence] = time
        name = state.names.get(event.name_iid) if event.name_iid else event.name
        if name is None or any(note.name_iid not in state.notes for note in event.debug_annotations):
            self.problems["a name that was not said"] += 1
        if event.type in (pb.TrackEvent.TYPE_SLICE_BEGIN, pb.TrackEvent.TYPE_SLICE_END):
            begins = event.type == pb.TrackEvent.TYPE_SLICE_BEGIN
            if begins and not name:
                self.problems["slice without a name"] += 1
            self.events[event.track_uuid].append((time, begins, name))
        elif event.type == pb.TrackEvent.TYPE_COUNTER:
            self.counters[event.track_uuid] += 1
        else:
            self.instants[event.track_uuid] += 1
        self.puts.update((flow, time) for flow in event.flow_ids)
        self.takes.update((flow, time) for flow in event.terminating_flow_ids)

    def label(self, uuid):
        names = []
        while uuid in self.tracks and len(names) < 8:
            track = self.tracks[uuid]
            names.append(track.name or track.thread.thread_name or track.process.process_name)
            uuid = track.parent_uuid
        if uuid:
            self.problems["a track whose parent is not there"] += 1
        return " < ".join(names)

    def slices(self):
        found = collections.defaultdict(lambda: [0, 0])
        for uuid, events in self.events.items():
            open_slices = []
            for time, begins, name in sorted(events, key=lambda event: event[0]):  # stable: the file's order
                if begins:
                    open_slices.append((time, name))
                elif open_slices:
                    begin, begun = open_slices.pop()
                    row = found[(self.label(uuid), begun)]
                    row[0] += 1
                    row[1] += time - begin
                else:
                    self.problems["an end without a begin"] += 1
            if open_slices:
                self.problems["a slice that stays open"] += len(open_slices)
        return [{"track": track, "name": name, "count": row[0], "ns": row[1]} for (track, name), row in sorted(found.items())]

    def finish(self):
        slices = self.slices()
        used = set(self.events) | set(self.counters) | set(self.instants)
        if used - set(self.tracks):
            self.problems["events on a track that is not described"] += len(used - set(self.tracks))
        if set(self.takes) - set(self.puts):
            self.problems["arrows that begin nowhere"] += len(set(self.takes) - set(self.puts))
        backwards = [flow for flow, time in self.takes.items() if time < self.puts.get(flow, time)]
        if backwards:
            self.problems["arrows that end before they begin"] += len(backwards)
        if not {3, 6} <= self.clocks:
            self.problems["no snapshot relates the clocks"] += 1
        counters = [
            {"track": self.label(uuid), "unit": self.tracks[uuid].counter.unit_name, "count": count}
            for uuid, count in self.counters.items() if uuid in self.tracks
        ]
        return {
            "problems": self.problems, "slices": slices, "counters": counters, "flows": len(self.takes),
            "instants": {self.label(uuid): count for uuid, count in self.instants.items()},
            "attributes": self.attributes, "recovered": self.recovered,
        }


def main():
    reading = Reading()
    try:
        with open(sys.argv[1], "rb") as file:
            data = file.read()
        for packet in unpacked(data, reading.problems):
            reading.packet(packet)
    except Exception as error:  # whatever the official classes refuse
        print(f"{sys.argv[1]}: unreadable: {error}", file=sys.stderr)
        return 2
    found = reading.finish()
    print(json.dumps(found))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
