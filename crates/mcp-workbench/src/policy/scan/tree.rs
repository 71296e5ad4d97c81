//! A definition taken apart: its strings and keys with their places, and its objects and arrays as nodes of a graph.

use crate::wire::{Kind, RawJson};

/// A definition, in the order of its text.
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
}

/// One value.
pub(super) struct Node {
    /// The value that holds it; the first is its own.
    parent: usize,
    label: Label,
    pub(super) content: Content,
    /// The values in it.
    pub(super) children: Vec<usize>,
    /// How many values stand around it.
    pub(super) depth: usize,
}

/// How a value is called where it stands.
enum Label {
    Root,
    Key(String),
    Index(usize),
}

/// What a value is.
pub(super) enum Content {
    Text(String),
    Object,
    Array,
    /// A number, a boolean or null.
    Plain,
}

/// A string or a key, and where it stands.
pub(super) struct Passage<'a> {
    pub(super) text: &'a str,
    /// Whether it is the key of a member.
    pub(super) is_key: bool,
    tree: &'a Tree,
    node: usize,
}

impl Passage<'_> {
    /// Its place; of a key, that of the member.
    pub(super) fn pointer(&self) -> String {
        self.tree.pointer(self.node)
    }

    /// Whether it belongs to the pictures of a tool, in which data is at home.
    pub(super) fn is_icon(&self) -> bool {
        let mut node = self.node;
        while self.tree.nodes[node].depth > 1 {
            node = self.tree.nodes[node].parent;
        }
        self.tree.key(node) == Some("icons")
    }
}

impl Tree {
    /// Takes a definition apart. The nesting of messages is bounded, and so is the recursion.
    pub(super) fn of(definition: &RawJson) -> Self {
        let mut tree = Self { nodes: Vec::new() };
        tree.add(definition, 0, Label::Root, 0);
        tree
    }

    fn add(&mut self, value: &RawJson, parent: usize, label: Label, depth: usize) -> usize {
        let node = self.nodes.len();
        let content = match value.kind() {
            Kind::Object => Content::Object,
            Kind::Array => Content::Array,
            Kind::String => Content::Text(value.as_text().unwrap_or_default().into_owned()),
            Kind::Null | Kind::Boolean | Kind::Number => Content::Plain,
        };
        self.nodes.push(Node {
            parent,
            label,
            content,
            children: Vec::new(),
            depth,
        });
        for member in value.members().unwrap_or_default() {
            let label = Label::Key(member.key.into_owned());
            let child = self.add(&member.value, node, label, depth + 1);
            self.nodes[node].children.push(child);
        }
        let elements = value.elements().unwrap_or_default();
        for (index, element) in elements.iter().enumerate() {
            let child = self.add(element, node, Label::Index(index), depth + 1);
            self.nodes[node].children.push(child);
        }
        node
    }

    /// All keys and strings.
    pub(super) fn texts(&self) -> impl Iterator<Item = Passage<'_>> {
        let nodes = self.nodes.iter().enumerate();
        nodes.flat_map(|(node, it)| {
            let text = |text, is_key| Passage {
                text,
                is_key,
                tree: self,
                node,
            };
            let key = self.key(node).map(|key| text(key, true));
            let content = match &it.content {
                Content::Text(content) => Some(text(content, false)),
                _ => None,
            };
            key.into_iter().chain(content)
        })
    }

    /// The key under which a value stands.
    pub(super) fn key(&self, node: usize) -> Option<&str> {
        match &self.nodes[node].label {
            Label::Key(key) => Some(key),
            Label::Root | Label::Index(_) => None,
        }
    }

    /// The member of this name of an object.
    pub(super) fn child(&self, node: usize, name: &str) -> Option<usize> {
        let mut children = self.nodes[node].children.iter().copied();
        children.find(|child| self.key(*child) == Some(name))
    }

    /// What stands under a name in the definition itself.
    pub(super) fn member(&self, name: &str) -> Option<&Content> {
        Some(&self.nodes[self.child(0, name)?].content)
    }

    /// The text of a string.
    pub(super) fn text(&self, node: usize) -> Option<&str> {
        match &self.nodes[node].content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value around another; nothing around the definition.
    pub(super) fn parent(&self, node: usize) -> Option<usize> {
        (node > 0).then(|| self.nodes[node].parent)
    }

    /// The JSON pointer of a value.
    pub(super) fn pointer(&self, node: usize) -> String {
        let mut steps = Vec::new();
        let mut at = node;
        loop {
            match &self.nodes[at].label {
                Label::Root => break,
                Label::Key(key) => steps.push(key.replace('~', "~0").replace('/', "~1")),
                Label::Index(index) => steps.push(index.to_string()),
            }
            at = self.nodes[at].parent;
        }
        let mut pointer = String::new();
        for step in steps.iter().rev() {
            pointer.push('/');
            pointer.push_str(step);
        }
        pointer
    }
}
