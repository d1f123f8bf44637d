//! Stacks as a tree: each frame once below the one that it stands on, so that deep stacks and many names stay cheap.

use crate::intern::Places;
use std::collections::HashMap;

/// The tree's root, which is no frame.
pub(super) const ROOT: u32 = 0;

/// Most that all weights together may be: 73 years of nanoseconds. Only a damaged file has more.
const MOST: u64 = 1 << 61;

/// A frame at its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub parent: u32,
    /// Index into the names.
    pub name: u32,
    /// Its own weight, without what stands on it.
    pub own: u64,
}

/// Frames, a parent before those that stand on it.
#[derive(Clone, Debug)]
pub(super) struct Stacks {
    pub names: Vec<String>,
    pub nodes: Vec<Node>,
    ids: Places,
    places: HashMap<(u32, u32), u32>,
    /// All weights together.
    sum: u64,
}

impl Default for Stacks {
    fn default() -> Self {
        let root = Node { parent: ROOT, name: 0, own: 0 };
        let (ids, places) = (Places::default(), HashMap::new());
        Self { names: vec![String::new()], nodes: vec![root], ids, places, sum: 0 }
    }
}

impl Stacks {
    /// The frame of this name on another one.
    pub(super) fn on(&mut self, parent: u32, name: &str) -> u32 {
        let name = self.id(name).unwrap_or_else(|| {
            let id = self.names.len() as u32;
            self.names.push(name.to_owned());
            self.ids.note(name, id);
            id
        });
        *self.places.entry((parent, name)).or_insert_with(|| {
            self.nodes.push(Node { parent, name, own: 0 });
            self.nodes.len() as u32 - 1
        })
    }

    /// The frame of this name on another one, if there is one.
    pub(super) fn find(&self, parent: u32, name: &str) -> Option<u32> {
        self.places.get(&(parent, self.id(name)?)).copied()
    }

    fn id(&self, name: &str) -> Option<u32> {
        self.ids.find(name, |at| self.names.get(at as usize).is_some_and(|known| known == name))
    }

    /// Adds to a frame's own weight, as far as all of them together stay below what arithmetic can hold.
    pub(super) fn add(&mut self, node: u32, weight: u64) {
        let weight = weight.min(MOST - self.sum);
        self.sum += weight;
        self.nodes[node as usize].own += weight;
    }

    pub(super) fn name(&self, node: u32) -> &str {
        &self.names[self.nodes[node as usize].name as usize]
    }

    /// Weights with all that stands on each frame; the first is the whole.
    pub(super) fn totals(&self) -> Vec<u64> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.own).collect();
        for at in (1..self.nodes.len()).rev() {
            let parent = self.nodes[at].parent as usize;
            totals[parent] += totals[at];
        }
        totals
    }

    /// The same with other names; what then stands in one place is one frame. Also says where each frame went.
    pub(super) fn renamed(&self, rename: impl Fn(&str) -> String) -> (Self, Vec<u32>) {
        let names: Vec<String> = self.names.iter().map(|name| rename(name)).collect();
        let (mut stacks, mut places) = (Self::default(), vec![ROOT]);
        for node in self.nodes.iter().skip(1) {
            let place = stacks.on(places[node.parent as usize], &names[node.name as usize]);
            stacks.add(place, node.own);
            places.push(place);
        }
        (stacks, places)
    }

    /// Visits the frames that `keep` keeps, each before those that stand on it, siblings by name; the second argument is
    /// how many frames are below it.
    pub(super) fn walk(&self, keep: impl Fn(u32) -> bool, mut visit: impl FnMut(u32, usize)) {
        let above = self.above();
        // Backwards, since the last that is put here comes out first.
        let kept = |node: u32| {
            let mut above: Vec<u32> = above.of(node).iter().copied().filter(|node| keep(*node)).collect();
            above.sort_unstable_by(|a, b| self.name(*b).cmp(self.name(*a)));
            above
        };
        let mut open: Vec<(u32, usize)> = kept(ROOT).into_iter().map(|node| (node, 0)).collect();
        while let Some((node, depth)) = open.pop() {
            visit(node, depth);
            open.extend(kept(node).into_iter().map(|child| (child, depth + 1)));
        }
    }

    /// What stands on each frame.
    fn above(&self) -> Above {
        let mut begins = vec![0_u32; self.nodes.len() + 1];
        self.nodes.iter().skip(1).for_each(|node| begins[node.parent as usize + 1] += 1);
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let (mut next, mut nodes) = (begins.clone(), vec![ROOT; self.nodes.len() - 1]);
        for (at, node) in self.nodes.iter().enumerate().skip(1) {
            let place = &mut next[node.parent as usize];
            nodes[*place as usize] = at as u32;
            *place += 1;
        }
        Above { begins, nodes }
    }

    /// The same with each frame's stack as a text: its names with `;` between.
    pub(super) fn walk_paths(&self, keep: impl Fn(u32) -> bool, mut visit: impl FnMut(u32, &str)) {
        let (mut path, mut lengths) = (String::new(), Vec::new());
        self.walk(keep, |node, depth| {
            lengths.truncate(depth);
            path.truncate(lengths.last().copied().unwrap_or(0));
            if depth > 0 {
                path.push(';');
            }
            path.push_str(self.name(node));
            lengths.push(path.len());
            visit(node, &path);
        });
    }

    /// Frames of a stack, the innermost first.
    pub(super) fn upwards(&self, node: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(node), |at| Some(self.nodes[*at as usize].parent)).take_while(|at| *at != ROOT)
    }
}

/// Frames by the one that they stand on: those of a frame are `nodes[begins[frame]..begins[frame + 1]]`.
struct Above {
    begins: Vec<u32>,
    nodes: Vec<u32>,
}

impl Above {
    fn of(&self, node: u32) -> &[u32] {
        &self.nodes[self.begins[node as usize] as usize..self.begins[node as usize + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::{ROOT, Stacks};

    fn stacks(lines: &[(&str, u64)]) -> Stacks {
        let mut stacks = Stacks::default();
        for (path, weight) in lines {
            let node = path.split(';').fold(ROOT, |node, name| stacks.on(node, name));
            stacks.add(node, *weight);
        }
        stacks
    }

    fn listed(stacks: &Stacks) -> Vec<String> {
        let (mut lines, totals) = (Vec::new(), stacks.totals());
        stacks.walk_paths(|_| true, |node, path| lines.push(format!("{path} {}", totals[node as usize])));
        lines
    }

    #[test]
    fn frames_stand_once_and_in_order() {
        let stacks = stacks(&[("b;x", 1), ("a;y;z", 2), ("a", 4), ("a;b", 8), ("b;x", 16)]);
        assert_eq!(listed(&stacks), ["a 14", "a;b 8", "a;y 2", "a;y;z 2", "b 17", "b;x 17"]);
        assert_eq!(stacks.totals()[0], 31);
    }

    #[test]
    fn names_that_become_one_become_one_frame() {
        let (renamed, places) = stacks(&[("a;x 1", 1), ("a;x_1", 2)]).renamed(|name| name.replace(' ', "_"));
        assert_eq!(listed(&renamed), ["a 3", "a;x_1 3"]);
        assert_eq!(places, [0, 1, 2, 2]);
    }
}
