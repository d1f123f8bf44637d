//! Where following a long run begins: near its end, with what dates it and sums it up.

use crate::error::Result;
use crate::format::Header;
use crate::listing::Listed;
use crate::part::Window;
use crate::scan::Segment;
use crate::tail::{Tail, Take, open};

/// No time lies in it: clock anchors and accounts are all that is left.
const NO_TIME: Window = Window { from_ns: i64::MAX, to_ns: i64::MIN };

impl Tail {
    /// Begins near the end of a rank's segments; returns the place of the segment to go on with.
    ///
    /// Of earlier attempts the ends are read, for their totals; of this one the first block that is left, for the date.
    pub(crate) fn attach(&mut self, listed: &[Listed], take: &mut Take<'_>) -> Result<usize> {
        let (mut heads, mut bytes) = (Vec::new(), 0);
        for one in listed {
            let segment = open(&one.path)?;
            bytes += segment.as_ref().map_or(Ok(0), Segment::length)?;
            heads.push(segment.as_ref().map_or(Ok(None), Segment::first_header)?);
        }
        if bytes <= self.reach {
            return Ok(0);
        }
        let ends = attempt_ends(&heads);
        for end in &ends {
            self.attach_to(&listed[*end], take)?;
        }
        let first = ends.last().map_or(0, |end| end + 1);
        self.date(&listed[first], take)?;
        let last = listed.len() - 1;
        let newest = open(&listed[last].path)?.map_or(Ok(0), |segment| segment.length())?;
        let begin = if newest < self.reach { last.saturating_sub(1).max(first) } else { last };
        self.attach_to(&listed[begin], take)?;
        Ok(begin)
    }

    /// Reads the end of a segment, which becomes the rank's current one.
    fn attach_to(&mut self, one: &Listed, take: &mut Take<'_>) -> Result<()> {
        let Some(mut segment) = open(&one.path)? else { return Ok(()) };
        segment.attach(self.reach)?;
        self.assembler.rank(one.rank).jump();
        if let Some((_, finished)) = self.current.insert(one.rank, (one.number, segment)) {
            self.say_torn_end(&finished);
        }
        self.read_segment(one, take)?;
        Ok(())
    }

    /// Reads the first block of a segment, for the clock anchor that dates the attempt.
    fn date(&mut self, one: &Listed, take: &mut Take<'_>) -> Result<()> {
        let Some(mut segment) = open(&one.path)? else { return Ok(()) };
        self.set_clock(one, &mut segment)?;
        if let Some(batch) = segment.first_block(&mut self.buffer)? {
            self.assembler.rank(one.rank).jump();
            take(&mut self.assembler, &one.path, one.rank, &batch, Some(NO_TIME));
        }
        Ok(())
    }
}

/// The places of the segments that are the last of an attempt with another one behind it.
fn attempt_ends(heads: &[Option<Header>]) -> Vec<usize> {
    let other = |pair: &[Option<Header>]| match pair {
        [Some(this), Some(next)] => this.stream != next.stream || next.sequence == 0,
        _ => false,
    };
    heads.windows(2).enumerate().filter(|(_, pair)| other(pair)).map(|(at, _)| at).collect()
}
