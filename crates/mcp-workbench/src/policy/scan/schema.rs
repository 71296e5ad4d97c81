//! Finds schemas that cost their reader more than their size: too deep, too many parts, or references that
//! multiply. The expanded size is computed without expanding: cycles are merged into one node, and sizes add up
//! from the leaves.

use std::collections::HashMap;

use super::{
    MAX_EXPANDED, MAX_SCHEMA_DEPTH, MAX_SUBSCHEMAS,
    finding::{Finding, Problem},
    tree::{Content, Tree},
};

/// The members of a definition that are schemas.
const SCHEMAS: [&str; 2] = ["inputSchema", "outputSchema"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
/// Keys whose schemas are applied to the same value as the schema that contains them.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const IN_PLACE_MAPS: [&str; 2] = ["dependentSchemas", "dependencies"];

/// Returns true if a definition has enough nesting or references for a schema bomb; most have not.
pub(super) fn may_be_bomb(definition: &str) -> bool {
    let text = definition.as_bytes();
    let brackets = memchr::memchr2_iter(b'{', b'[', text);
    // Every keyword for a reference has a dollar sign, which may be escaped.
    let may_refer = memchr::memchr2(b'$', b'\\', text).is_some();
    // A schema with fewer brackets than levels is not too deep.
    brackets.take(MAX_SCHEMA_DEPTH + 1).count() > MAX_SCHEMA_DEPTH
        || may_refer
            && ["Ref\"", "$ref", "\\u"]
                .iter()
                .any(|part| definition.contains(part))
}

/// Returns the problems of the schemas in a definition.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for name in SCHEMAS {
        if let Some(root) = tree.child(0, name) {
            check_schema(tree, root, &mut findings);
        }
    }
    findings
}

fn check_schema(tree: &Tree, root: usize, findings: &mut Vec<Finding>) {
    let parts = parts_of(tree, root);
    let mut found = |node: usize, problem| findings.push(Finding::at(tree.pointer(node), problem));
    // The limit counts from the schema, not from the definition around it.
    let depth = tree.nodes[root].depth;
    let is_container = |node: &&usize| !tree.nodes[**node].children.is_empty();
    let mut containers = parts.iter().filter(is_container);
    if let Some(deep) = containers.find(|node| tree.nodes[**node].depth - depth >= MAX_SCHEMA_DEPTH)
    {
        found(*deep, Problem::TooDeep);
    }
    let objects = parts
        .iter()
        .filter(|node| matches!(tree.nodes[**node].content, Content::Object));
    if objects.count() > MAX_SUBSCHEMAS {
        found(root, Problem::TooManySubschemas);
    }
    let references = References::of(tree, root, &parts);
    for (node, reference) in &references.unresolved {
        let reference = reference.clone();
        found(*node, Problem::NonLocalReference { reference });
    }
    // Without references nothing can grow, and the parts were counted above.
    if references.resolved.is_empty() {
        return;
    }
    // The first graph has all that a reader may expand. The second has only what applies to one value: a check of a
    // cycle there never ends, while one through `properties` ends with the value.
    let everywhere = Graph::everywhere(tree, root, &parts, &references);
    let in_place = Graph::in_place(tree, root, &parts, &references);
    if everywhere.largest().max(in_place.largest()) > MAX_EXPANDED {
        found(root, Problem::Expansion);
    }
    match in_place.worst_cycle() {
        Cycle::None => {}
        Cycle::Single => found(root, Problem::SelfReference),
        Cycle::Branching => found(root, Problem::Endless),
    }
}

/// Returns a schema and all values in it.
fn parts_of(tree: &Tree, root: usize) -> Vec<usize> {
    let mut parts = vec![root];
    let mut at = 0;
    while let Some(node) = parts.get(at) {
        parts.extend_from_slice(&tree.nodes[*node].children);
        at += 1;
    }
    parts
}

/// The targets of the references in a schema.
struct References {
    /// From the object with the reference to its target.
    resolved: HashMap<usize, Vec<usize>>,
    /// References without a target in the schema.
    unresolved: Vec<(usize, String)>,
}

impl References {
    fn of(tree: &Tree, root: usize, parts: &[usize]) -> Self {
        let names = PartNames::of(tree, root, parts);
        let mut references = Self {
            resolved: HashMap::new(),
            unresolved: Vec::new(),
        };
        for node in parts.iter().copied() {
            let is_reference = tree.key(node).is_some_and(|key| REFERENCES.contains(&key));
            let (true, Some(reference), Some(holder)) =
                (is_reference, tree.text(node), tree.parent(node))
            else {
                continue;
            };
            match names.find(tree, holder, reference) {
                Some(target) => references.resolved.entry(holder).or_default().push(target),
                None => references.unresolved.push((node, reference.to_owned())),
            }
        }
        references
    }
}

/// The names of the parts of a schema.
struct PartNames<'a> {
    root: usize,
    /// By object and key.
    members: HashMap<(usize, &'a str), usize>,
    /// By `$id`, whole and by its last segment.
    ids: HashMap<&'a str, usize>,
    /// By `$anchor`.
    anchors: HashMap<&'a str, usize>,
}

impl<'a> PartNames<'a> {
    fn of(tree: &'a Tree, root: usize, parts: &[usize]) -> Self {
        let (mut ids, mut anchors) = (HashMap::new(), HashMap::new());
        let mut members = HashMap::new();
        for node in parts.iter().copied() {
            let (Some(key), Some(holder)) = (tree.key(node), tree.parent(node)) else {
                continue;
            };
            members.entry((holder, key)).or_insert(node);
            let Some(text) = tree.text(node) else {
                continue;
            };
            match key {
                "$id" | "id" => {
                    ids.insert(text, holder);
                    // References are often relative, such as `item.json` next to `https://example.com/item.json`.
                    ids.insert(last_part(text), holder);
                    // Up to draft 6, an `$id` that begins with `#` was what `$anchor` is now.
                    anchors.insert(text.trim_start_matches('#'), holder);
                }
                "$anchor" | "$dynamicAnchor" => {
                    anchors.insert(text, holder);
                }
                _ => {}
            }
        }
        Self {
            root,
            members,
            ids,
            anchors,
        }
    }

    /// Resolves a reference of an object.
    fn find(&self, tree: &Tree, holder: usize, reference: &str) -> Option<usize> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let fragment = percent_encoding::percent_decode_str(fragment).decode_utf8_lossy();
        // A local reference is relative to the nearest `$id`; many schemas mean the root anyway.
        let bases = if base.is_empty() {
            [self.resource(tree, holder), Some(self.root)]
        } else {
            let ids = &self.ids;
            [
                ids.get(base).or_else(|| ids.get(last_part(base))).copied(),
                None,
            ]
        };
        bases
            .into_iter()
            .flatten()
            .find_map(|base| match fragment.as_ref() {
                "" => Some(base),
                pointer if pointer.starts_with('/') => self.follow(tree, base, pointer),
                anchor => self.anchors.get(anchor).copied(),
            })
    }

    /// Returns the nearest enclosing part with an `$id`, which local references are relative to.
    fn resource(&self, tree: &Tree, holder: usize) -> Option<usize> {
        let mut around = std::iter::successors(Some(holder), |node| tree.parent(*node));
        around.find(|node| *node == self.root || self.members.contains_key(&(*node, "$id")))
    }

    fn follow(&self, tree: &Tree, from: usize, pointer: &str) -> Option<usize> {
        let mut node = from;
        for step in pointer.split('/').skip(1) {
            // In this order (RFC 6901): otherwise `~01` would become `/`.
            let step = step.replace("~1", "/").replace("~0", "~");
            node = match tree.nodes[node].content {
                Content::Array => *tree.nodes[node].children.get(step.parse::<usize>().ok()?)?,
                _ => *self.members.get(&(node, step.as_str()))?,
            };
        }
        Some(node)
    }
}

fn last_part(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or(id)
}

/// A graph of the parts of a schema. Parallel edges count separately.
struct Graph {
    edges: Vec<Vec<usize>>,
    /// The cycle (strongly connected component) of each part. A cycle has a larger number than those it leads to.
    cycles: Vec<usize>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Cycle {
    None,
    Single,
    /// Several cycles through the same parts, which multiply each other.
    Branching,
}

impl Graph {
    /// Builds the graph in which every part leads to its children and to its references.
    fn everywhere(tree: &Tree, root: usize, parts: &[usize], references: &References) -> Self {
        let edges = |node: usize| tree.nodes[node].children.clone();
        Self::new(root, parts, references, edges)
    }

    /// Builds the graph in which a schema leads to those that apply to the same value.
    fn in_place(tree: &Tree, root: usize, parts: &[usize], references: &References) -> Self {
        let edges = |node: usize| {
            let mut edges = Vec::new();
            for child in tree.nodes[node].children.iter().copied() {
                let key = tree.key(child).unwrap_or_default();
                if IN_PLACE.contains(&key) {
                    edges.push(child);
                } else if IN_PLACE_LISTS.contains(&key) || IN_PLACE_MAPS.contains(&key) {
                    edges.extend_from_slice(&tree.nodes[child].children);
                }
            }
            edges
        };
        Self::new(root, parts, references, edges)
    }

    /// Builds a graph. The parts of a schema have consecutive numbers, the schema itself the lowest.
    fn new(
        root: usize,
        parts: &[usize],
        references: &References,
        inner: impl Fn(usize) -> Vec<usize>,
    ) -> Self {
        let mut edges = vec![Vec::new(); parts.len()];
        for node in parts.iter().copied() {
            let referred = references.resolved.get(&node).into_iter().flatten();
            let targets = inner(node).into_iter().chain(referred.copied());
            edges[node - root] = targets.map(|target| target - root).collect();
        }
        let cycles = cycles(&edges);
        Self { edges, cycles }
    }

    /// Returns the largest expanded size of a part.
    fn largest(&self) -> u64 {
        let mut members = vec![Vec::new(); self.edges.len()];
        for (node, cycle) in self.cycles.iter().enumerate() {
            members[*cycle].push(node);
        }
        // Cycles are numbered from the leaves, so the sizes of all targets are known already.
        let mut sizes: Vec<u64> = vec![0; self.edges.len()];
        for (cycle, nodes) in members.iter().enumerate() {
            for node in nodes {
                let outward = self.edges[*node]
                    .iter()
                    .map(|target| self.cycles[*target])
                    .filter(|target| *target != cycle);
                // Each reference can double the size, so that a small schema exceeds any integer.
                let led_to = outward.fold(1_u64, |sum, target| sum.saturating_add(sizes[target]));
                sizes[cycle] = sizes[cycle].saturating_add(led_to);
            }
        }
        sizes.into_iter().max().unwrap_or(0)
    }

    /// Returns the worst cycle of the graph.
    fn worst_cycle(&self) -> Cycle {
        let mut nodes = vec![0_usize; self.edges.len()];
        let mut ways = vec![0_usize; self.edges.len()];
        for (node, targets) in self.edges.iter().enumerate() {
            let cycle = self.cycles[node];
            nodes[cycle] += 1;
            let inside = targets.iter();
            // More edges than parts inside a cycle mean that paths branch and multiply.
            ways[cycle] += inside.filter(|it| self.cycles[**it] == cycle).count();
        }
        let cycles = nodes.iter().zip(&ways).map(|(nodes, ways)| match ways {
            0 => Cycle::None,
            ways if ways > nodes => Cycle::Branching,
            _ => Cycle::Single,
        });
        // The variants are in the order of their severity.
        cycles.max().unwrap_or(Cycle::None)
    }
}

/// Returns the strongly connected component of each part (Tarjan's algorithm, without recursion).
fn cycles(edges: &[Vec<usize>]) -> Vec<usize> {
    const NONE: usize = usize::MAX;
    let (mut order, mut low) = (vec![NONE; edges.len()], vec![NONE; edges.len()]);
    let mut cycles = vec![NONE; edges.len()];
    // `open` is Tarjan's stack, `path` replaces the recursion.
    let (mut open, mut seen, mut done) = (Vec::new(), 0, 0);
    for start in 0..edges.len() {
        let mut path = Vec::new();
        if order[start] == NONE {
            path.push((start, 0));
        }
        while let Some((node, next)) = path.pop() {
            // The first visit. A node comes back after each of its edges, with the index of the next one.
            if next == 0 {
                (order[node], low[node]) = (seen, seen);
                seen += 1;
                open.push(node);
            }
            if let Some(target) = edges[node].get(next).copied() {
                path.push((node, next + 1));
                if order[target] == NONE {
                    path.push((target, 0));
                } else if cycles[target] == NONE {
                    // A node whose cycle is complete cannot be part of this one.
                    low[node] = low[node].min(order[target]);
                }
                continue;
            }
            // No edge leads further back, so that this node and all that were opened after it are one cycle.
            if low[node] == order[node] {
                while let Some(member) = open.pop() {
                    cycles[member] = done;
                    if member == node {
                        break;
                    }
                }
                done += 1;
            }
            // The parent reaches whatever this node reaches.
            if let Some((parent, _)) = path.last() {
                low[*parent] = low[*parent].min(low[node]);
            }
        }
    }
    cycles
}
