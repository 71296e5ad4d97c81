//! The index: for each word, the tools that contain it, with the impact of the word on each tool.
//!
//! The impact of a word on a tool depends on that tool alone, so a server is added and removed without touching the
//! others. The rarity of a word is computed from the number of its tools at the time of a query.

use std::{
    collections::{BTreeSet, HashMap},
    hash::{BuildHasherDefault, DefaultHasher, Hash as _, Hasher},
};

use ident::{ServerIdentifier, ToolIdentifier, ToolName};

use crate::{
    Field, ServerText, ToolText,
    action::Action,
    key::Keys,
    text::each_text,
    tokens::{Style, each_term},
    weights::{FIELDS, Weights},
};

/// The stored value of the greatest impact, 1.
const FULL_IMPACT: f32 = 65_535.0;

/// A searchable set of tools.
#[derive(Debug, Default)]
pub struct Index {
    pub(crate) weights: Weights,
    pub(crate) terms: Vec<Term>,
    /// The unused positions in `terms`.
    free_terms: Vec<u32>,
    /// Terms by the hash of their text. Two texts with one hash would count as one word, which does no harm.
    lookup: HashMap<u64, u32, BuildHasherDefault<IdentityHasher>>,
    pub(crate) tools: Vec<Option<Tool>>,
    /// The positions of tools by the hashes of their folded names: by the tool's name, and by the server's name with
    /// the tool's.
    pub(crate) named: BTreeSet<(u64, u32)>,
    /// The positions of tools by the fingerprints of their texts.
    pub(crate) prints: BTreeSet<(u64, u32)>,
    /// The unused positions in `tools`.
    free_tools: Vec<u32>,
    pub(crate) servers: HashMap<ServerIdentifier, Server>,
    pub(crate) count: usize,
}

/// A word that occurs in tools.
#[derive(Debug, Default)]
pub(crate) struct Term {
    pub text: Box<str>,
    pub postings: Vec<Posting>,
}

/// An occurrence of a word in a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    /// The position of the tool.
    pub tool: u32,
    /// The impact of the word on the tool, from 0 to [`FULL_IMPACT`].
    impact: u16,
    /// The fields that contain the word, one bit each.
    pub fields: u8,
}

impl Posting {
    /// Returns the impact of the word on the tool, from 0 to 1.
    pub(crate) fn impact(self) -> f32 {
        f32::from(self.impact) * (1.0 / FULL_IMPACT)
    }
}

/// A tool of the index.
#[derive(Debug)]
pub(crate) struct Tool {
    pub identifier: ToolIdentifier,
    pub keys: Keys,
    /// A hash that is equal for tools with equal texts.
    pub fingerprint: u64,
    /// The action of the tool, if its name has a verb.
    pub action: Option<Action>,
}

/// The tools and words of a server, for its removal.
#[derive(Debug, Default)]
pub(crate) struct Server {
    pub tools: Vec<u32>,
    /// The words of its tools, without duplicates.
    terms: Vec<u32>,
}

impl Index {
    /// Returns the number of tools.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Adds a server, or replaces its tools.
    pub fn put<'a>(
        &mut self,
        server: &ServerText<'a>,
        tools: impl IntoIterator<Item = ToolText<'a>>,
    ) {
        let identifier = ServerIdentifier {
            toolbox: server.toolbox.clone(),
            server: server.server.clone(),
        };
        self.remove(&identifier);
        // The words of the server are the same for all of its tools, so they are read once.
        let mut shared = ToolWords::default();
        self.read(server.server.as_str(), Field::Server, &mut shared);
        for about in &server.about {
            self.read(about, Field::About, &mut shared);
        }
        let mut entry = Server::default();
        let mut words = ToolWords::default();
        for tool in tools {
            words.clone_from(&shared);
            let place = self.add(&identifier, &tool, &mut words);
            entry.tools.push(place);
            entry
                .terms
                .extend(words.found.iter().map(|(term, _)| *term));
        }
        entry.terms.sort_unstable();
        entry.terms.dedup();
        entry.terms.shrink_to_fit();
        self.servers.insert(identifier, entry);
        // A server without tools leaves words that no posting refers to.
        self.drop_unused(shared.found.iter().map(|(term, _)| *term));
    }

    pub fn remove(&mut self, server: &ServerIdentifier) {
        let Some(entry) = self.servers.remove(server) else {
            return;
        };
        for place in &entry.tools {
            if let Some(tool) = self.tools[*place as usize].take() {
                self.named.remove(&(tool.keys.name, *place));
                self.named.remove(&(tool.keys.full, *place));
                self.prints.remove(&(tool.fingerprint, *place));
            }
        }
        for term in &entry.terms {
            // The tools are gone from their positions already, which tells their postings from the others.
            let postings = &mut self.terms[*term as usize].postings;
            postings.retain(|posting| self.tools[posting.tool as usize].is_some());
        }
        self.drop_unused(entry.terms.iter().copied());
        self.count -= entry.tools.len();
        self.free_tools.extend(entry.tools);
    }

    /// Returns the position of a word, if a tool contains it.
    pub(crate) fn term(&self, text: &str) -> Option<u32> {
        self.lookup.get(&hash(text)).copied()
    }

    /// Returns the position of a tool.
    pub(crate) fn place(&self, tool: &ToolIdentifier) -> Option<u32> {
        let server = self.servers.get(&tool.server_identifier())?;
        let mut places = server.tools.iter().copied();
        places.find(|place| self.tool(*place).is_some_and(|it| it.identifier == *tool))
    }

    /// Returns the tool at a position.
    pub(crate) fn tool(&self, place: u32) -> Option<&Tool> {
        self.tools.get(place as usize)?.as_ref()
    }

    /// Adds a tool. `words` has the words of its server, to which those of the tool are added.
    fn add(
        &mut self,
        server: &ServerIdentifier,
        tool: &ToolText<'_>,
        words: &mut ToolWords,
    ) -> u32 {
        each_text(tool, &mut |field, text| self.read(text, field, words));
        let entry = Tool {
            identifier: identifier(server, tool.name),
            keys: Keys::new(server.server.as_str(), tool.name.as_str()),
            fingerprint: words.fingerprint(),
            action: Action::of_tool(tool.name.as_str()),
        };
        let (keys, fingerprint) = (entry.keys, entry.fingerprint);
        let place = match self.free_tools.pop() {
            Some(place) => {
                self.tools[place as usize] = Some(entry);
                place
            }
            None => {
                self.tools.push(Some(entry));
                u32::try_from(self.tools.len() - 1).expect("there are not so many tools")
            }
        };
        self.named.extend([(keys.name, place), (keys.full, place)]);
        self.prints.insert((fingerprint, place));
        self.count += 1;
        // After the fingerprint, for which the words have to be in the order of the texts: this sorts them.
        self.post(place, words);
        place
    }

    /// Adds the postings of a tool.
    fn post(&mut self, place: u32, words: &mut ToolWords) {
        // BM25F: occurrences are weighted and normalised by length per field, then saturated once over all fields.
        let share: [f32; FIELDS] = std::array::from_fn(|field| {
            let weight = self.weights.field(Field::ALL[field]);
            let length = words.lengths[field] / weight.usual;
            weight.weight / (1.0 - weight.length + weight.length * length)
        });
        // Sorted by word, so that all fields of a word form one posting.
        words.found.sort_unstable();
        for same in words.found.chunk_by(|a, b| a.0 == b.0) {
            let sum: f32 = same.iter().map(|(_, field)| share[*field as usize]).sum();
            let fields = same
                .iter()
                .fold(0, |bits, (_, field)| bits | 1 << *field as u8);
            let impact = sum / (self.weights.saturation + sum);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is between 0 and 1"
            )]
            let impact = (impact * FULL_IMPACT) as u16;
            let posting = Posting {
                tool: place,
                impact,
                fields,
            };
            self.terms[same[0].0 as usize].postings.push(posting);
        }
    }

    /// Adds the words of a text to `words`.
    fn read(&mut self, text: &str, field: Field, words: &mut ToolWords) {
        let style = match field {
            Field::Name | Field::Server | Field::Parameter => Style::Name,
            Field::Description | Field::ParameterText | Field::About => Style::Prose,
        };
        each_term(text, style, |term| {
            words.found.push((self.intern(term), field));
            words.lengths[field as usize] += 1.0;
        });
    }

    /// Returns the position of a word, and adds the word if it is new.
    fn intern(&mut self, text: &str) -> u32 {
        let hash = hash(text);
        if let Some(term) = self.lookup.get(&hash) {
            return *term;
        }
        let term = Term {
            text: text.into(),
            postings: Vec::new(),
        };
        let place = match self.free_terms.pop() {
            Some(place) => {
                self.terms[place as usize] = term;
                place
            }
            None => {
                self.terms.push(term);
                u32::try_from(self.terms.len() - 1).expect("there are not so many words")
            }
        };
        self.lookup.insert(hash, place);
        place
    }

    /// Removes those words that no tool contains any more.
    fn drop_unused(&mut self, terms: impl Iterator<Item = u32>) {
        for place in terms {
            let term = &mut self.terms[place as usize];
            // A word may come twice, and its position must not become free twice.
            if term.postings.is_empty() && self.lookup.remove(&hash(&term.text)).is_some() {
                *term = Term::default();
                self.free_terms.push(place);
            }
        }
    }
}

/// The words of one tool.
#[derive(Debug, Clone, Default)]
struct ToolWords {
    found: Vec<(u32, Field)>,
    lengths: [f32; FIELDS],
}

impl ToolWords {
    /// Returns a hash that is equal for tools with the same words in name, description and parameter names. A tool
    /// without a description equals only those of servers with the same name and description.
    fn fingerprint(&self) -> u64 {
        let described = self.lengths[Field::Description as usize] > 0.0;
        let mut hasher = DefaultHasher::new();
        // In the order of the texts: other sentences with the same words are another tool.
        for (term, field) in &self.found {
            let counts = match field {
                Field::Name | Field::Description | Field::Parameter => true,
                Field::Server | Field::About => !described,
                Field::ParameterText => false,
            };
            if counts {
                (term, *field as u8).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

fn identifier(server: &ServerIdentifier, tool: &ToolName) -> ToolIdentifier {
    ToolIdentifier {
        toolbox: server.toolbox.clone(),
        server: server.server.clone(),
        tool: tool.clone(),
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// A hasher for keys that already are hashes.
#[derive(Debug, Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 ^= u64::from_le_bytes(word);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}
