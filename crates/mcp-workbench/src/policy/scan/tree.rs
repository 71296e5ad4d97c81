//! A parsed definition: its strings and keys with their locations, and its objects and arrays as nodes.

use bytes::Bytes;
use rawjson::RawJson;

/// A definition in document order.
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
}

pub(super) struct Node {
    /// The containing value; the root is its own parent.
    parent: usize,
    label: Label,
    pub(super) content: Content,
    pub(super) children: Vec<usize>,
    /// The number of enclosing values.
    pub(super) depth: usize,
}

/// The name of a value in its container.
enum Label {
    Root,
    Key(String),
    Index(usize),
}

pub(super) enum Content {
    Text(String),
    Object,
    Array,
    /// A number, a boolean or null.
    Plain,
}

/// A string or key with its location.
pub(super) struct Passage<'a> {
    pub(super) text: &'a str,
    /// True for the key of a member.
    pub(super) is_key: bool,
    tree: &'a Tree,
    node: usize,
}

impl Passage<'_> {
    /// Returns the JSON pointer; for a key, that of the member.
    pub(super) fn pointer(&self) -> String {
        self.tree.pointer(self.node)
    }

    /// Returns true if it is part of the tool's icons, which contain encoded data.
    pub(super) fn is_icon(&self) -> bool {
        let mut node = self.node;
        while self.tree.nodes[node].depth > 1 {
            node = self.tree.nodes[node].parent;
        }
        self.tree.key(node) == Some("icons")
    }
}

impl Tree {
    /// Parses a definition in one pass over its text, which is known to be valid.
    pub(super) fn of(definition: &RawJson) -> Self {
        let text = definition.as_str();
        let mut tree = Self { nodes: Vec::new() };
        let mut open: Vec<usize> = Vec::new();
        let mut key = None;
        let mut at = 0;
        while let Some(byte) = text.as_bytes().get(at) {
            let end = at + token_length(&text.as_bytes()[at..]);
            match byte {
                b'{' => open.push(tree.add(&open, &mut key, Content::Object)),
                b'[' => open.push(tree.add(&open, &mut key, Content::Array)),
                b'}' | b']' => drop(open.pop()),
                // In an object, a string without a pending key is the key itself.
                b'"' if key.is_none() && tree.is_object(open.last()) => {
                    key = Some(unquoted(&text[at..end]));
                }
                b'"' => drop(tree.add(&open, &mut key, Content::Text(unquoted(&text[at..end])))),
                b',' | b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => drop(tree.add(&open, &mut key, Content::Plain)),
            }
            at = end;
        }
        tree
    }

    /// Adds a value to the innermost open container.
    fn add(&mut self, open: &[usize], key: &mut Option<String>, content: Content) -> usize {
        let node = self.nodes.len();
        let parent = open.last().copied();
        let label = match (parent, key.take()) {
            (None, _) => Label::Root,
            (_, Some(key)) => Label::Key(key),
            (Some(parent), None) => Label::Index(self.nodes[parent].children.len()),
        };
        if let Some(parent) = parent {
            self.nodes[parent].children.push(node);
        }
        self.nodes.push(Node {
            parent: parent.unwrap_or(0),
            label,
            content,
            children: Vec::new(),
            depth: open.len(),
        });
        node
    }

    fn is_object(&self, node: Option<&usize>) -> bool {
        node.is_some_and(|node| matches!(self.nodes[*node].content, Content::Object))
    }

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

    /// Returns the key of a value.
    pub(super) fn key(&self, node: usize) -> Option<&str> {
        match &self.nodes[node].label {
            Label::Key(key) => Some(key),
            Label::Root | Label::Index(_) => None,
        }
    }

    /// Returns the member of an object by name.
    pub(super) fn child(&self, node: usize, name: &str) -> Option<usize> {
        let mut children = self.nodes[node].children.iter().copied();
        children.find(|child| self.key(*child) == Some(name))
    }

    /// Returns a member of the definition by name.
    pub(super) fn member(&self, name: &str) -> Option<&Content> {
        Some(&self.nodes[self.child(0, name)?].content)
    }

    pub(super) fn text(&self, node: usize) -> Option<&str> {
        match &self.nodes[node].content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the containing value; `None` for the root.
    pub(super) fn parent(&self, node: usize) -> Option<usize> {
        (node > 0).then(|| self.nodes[node].parent)
    }

    /// Returns the JSON pointer of a value.
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

/// Returns the length of the token at the start: a string, a number, a word, or one character.
fn token_length(bytes: &[u8]) -> usize {
    match bytes[0] {
        b'"' => {
            let mut at = 1;
            // The text is valid JSON, so the string ends.
            while bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at + 1
        }
        b'-' | b'0'..=b'9' | b'a'..=b'z' => {
            let ends =
                |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
            bytes.iter().position(ends).unwrap_or(bytes.len())
        }
        _ => 1,
    }
}

/// Decodes a string. A lone surrogate becomes U+FFFD, as in messages.
fn unquoted(quoted: &str) -> String {
    serde_json::from_str(quoted).unwrap_or_else(|_| {
        let repaired = RawJson::parse(&Bytes::from(quoted.to_owned()))
            .ok()
            .and_then(|it| Some(it.as_text()?.into_owned()));
        repaired.unwrap_or_default()
    })
}
