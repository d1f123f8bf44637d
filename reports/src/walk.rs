//! Walks a timeline iteration by iteration: the one place that decides which span belongs where.

pub use crate::window::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Span};

/// When an iteration ended, monotonic nanoseconds.
pub(crate) fn end_ns(iteration: &Iteration) -> i64 {
    iteration.begin_ns.saturating_add_unsigned(iteration.duration_ns)
}

/// A span in its iteration, with the index of the span around it (`None`: it is a stage).
pub(crate) struct Placed<'a> {
    pub span: &'a Span,
    pub parent: Option<usize>,
}

/// Calls `visit` for every iteration of the window with its spans, parents before children.
/// Returns the number of spans that found no place: their iteration or the span around them was lost.
pub(crate) fn for_each_pass<'a>(
    timeline: &'a Timeline,
    window: &Window,
    mut visit: impl FnMut(&'a Iteration, &[Placed<'a>]),
) -> u64 {
    let mut rest = timeline.spans.as_slice();
    let mut strays = 0;
    let (mut placed, mut around) = (Vec::new(), Vec::new());
    for iteration in &timeline.iterations {
        let begin = rest.iter().take_while(|s| (s.lane, s.begin_ns) < (iteration.lane, iteration.begin_ns)).count();
        strays += numbered(&rest[..begin]);
        rest = &rest[begin..];
        let length = rest.iter().take_while(|s| is_within(s, iteration)).count();
        let (inside, after) = rest.split_at(length);
        rest = after;
        placed.clear();
        strays += place(inside, iteration.number, &mut placed, &mut around);
        if window.has(timeline, iteration) {
            visit(iteration, &placed);
        }
    }
    strays + numbered(rest)
}

/// A span that begins in the very nanosecond in which the iteration ends is the next one's, unless it says otherwise.
pub(crate) fn is_within(span: &Span, iteration: &Iteration) -> bool {
    let end = end_ns(iteration);
    span.lane == iteration.lane
        && (span.begin_ns < end || span.begin_ns == end && span.iteration == Some(iteration.number))
}

fn numbered(spans: &[Span]) -> u64 {
    spans.iter().filter(|s| s.iteration.is_some()).count() as u64
}

/// Finds the span around each span by depth; those that have none although they are deep are counted, not guessed.
pub(crate) fn place<'a>(spans: &'a [Span], number: u64, placed: &mut Vec<Placed<'a>>, around: &mut Vec<usize>) -> u64 {
    let mut strays = 0;
    around.clear();
    for span in spans {
        let depth = usize::from(span.depth);
        around.truncate(depth);
        let parent = depth.checked_sub(1).and_then(|above| around.get(above)).copied();
        let enclosed = depth == 0 || parent.is_some_and(|p| encloses(placed[p].span, span));
        if span.iteration != Some(number) || around.len() < depth || !enclosed {
            strays += u64::from(span.iteration.is_some());
            continue;
        }
        around.push(placed.len());
        placed.push(Placed { span, parent });
    }
    strays
}

fn encloses(outer: &Span, inner: &Span) -> bool {
    let end = |span: &Span| span.begin_ns.saturating_add_unsigned(span.duration_ns);
    end(inner) <= end(outer)
}
