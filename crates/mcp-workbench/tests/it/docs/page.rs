//! Pages of the documentation and the blocks in them.

use std::{
    fs,
    path::{Path, PathBuf},
};

pub(super) struct Page {
    /// Its path from the root of the repository.
    pub(super) path: String,
    pub(super) text: String,
}

/// A fenced block of a page.
pub(super) struct Block {
    /// The page that contains it.
    pub(super) page: String,
    /// The line of its fence.
    pub(super) line: usize,
    /// The info string of the fence.
    pub(super) language: String,
    /// The content, without the indentation of the fence.
    pub(super) text: String,
}

impl Block {
    /// Returns its location, for messages.
    pub(super) fn place(&self) -> String {
        format!("{}:{}", self.page, self.line)
    }
}

/// The root of the repository.
pub(super) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    root.unwrap().to_owned()
}

/// All pages: those at the root and those below `docs`.
pub(super) fn pages() -> Vec<Page> {
    let root = root();
    let mut files: Vec<PathBuf> = entries(&root)
        .into_iter()
        .filter(|it| it.is_file())
        .collect();
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.retain(|file| file.extension().is_some_and(|it| it == "md"));
    files.sort();
    let page = |file: PathBuf| Page {
        path: file.strip_prefix(&root).unwrap().display().to_string(),
        text: fs::read_to_string(&file).unwrap(),
    };
    files.into_iter().map(page).collect()
}

/// A page by its path.
pub(super) fn page(path: &str) -> Page {
    let text = fs::read_to_string(root().join(path)).unwrap();
    Page {
        path: path.to_owned(),
        text,
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

impl Page {
    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        let mut open: Option<(usize, Block)> = None;
        for (number, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().strip_prefix("```");
            let indent = line.len() - line.trim_start().len();
            open = match (open.take(), fence) {
                (None, None) => None,
                (None, Some(language)) => Some((indent, self.begin(number + 1, language))),
                (Some((_, block)), Some(_)) => {
                    blocks.push(block);
                    None
                }
                (Some((indent, mut block)), None) => {
                    block.text += line.get(indent..).unwrap_or_default();
                    block.text.push('\n');
                    Some((indent, block))
                }
            };
        }
        assert!(open.is_none(), "{}: a fence is not closed", self.path);
        blocks
    }

    fn begin(&self, line: usize, language: &str) -> Block {
        Block {
            page: self.path.clone(),
            line,
            language: language.trim().to_owned(),
            text: String::new(),
        }
    }

    /// Its lines outside of blocks, with their numbers.
    pub(super) fn prose(&self) -> Vec<(usize, &str)> {
        let mut inside = false;
        let mut prose = Vec::new();
        for (number, line) in self.text.lines().enumerate() {
            let fence = line.trim_start().starts_with("```");
            inside ^= fence;
            if !inside && !fence {
                prose.push((number + 1, line));
            }
        }
        prose
    }
}
