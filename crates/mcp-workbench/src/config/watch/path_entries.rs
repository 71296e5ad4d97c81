//! Finds the folder entries that decide which file a path leads to: the one of the file, and those of all links on
//! the way. Folders are watched instead of files, because editors replace files.

use std::{
    collections::VecDeque,
    ffi::OsString,
    fs,
    path::{Component, Path, PathBuf},
};

/// The maximum number of links in a path; one with more is a loop.
const MAX_LINKS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FolderEntry {
    /// The folder, without links.
    pub(super) folder: PathBuf,
    pub(super) name: OsString,
}

/// Returns the entries that decide which file an absolute path leads to. If a part of the path is missing, the last
/// entry is the missing one.
pub(super) fn path_entries(path: &Path) -> Vec<FolderEntry> {
    let mut path_entries = Vec::new();
    let mut at = PathBuf::new();
    let mut links = 0;
    let mut left = parts(path);
    while let Some(part) = left.pop_front() {
        let name = match part {
            Part::Root(root) => {
                at = root;
                continue;
            }
            Part::Up => {
                at.pop();
                continue;
            }
            Part::Name(name) => name,
        };
        let entry = FolderEntry {
            folder: at.clone(),
            name,
        };
        at.push(&entry.name);
        match fs::symlink_metadata(&at) {
            Ok(metadata) if metadata.is_symlink() && links < MAX_LINKS => {
                links += 1;
                let target = fs::read_link(&at).unwrap_or_default();
                at.pop();
                path_entries.push(entry);
                // The rest of the path continues where the link leads.
                for part in parts(&target).into_iter().rev() {
                    left.push_front(part);
                }
            }
            Ok(metadata) if metadata.is_dir() && !left.is_empty() => {}
            // The file itself, or the part that is missing.
            _ => {
                path_entries.push(entry);
                break;
            }
        }
    }
    path_entries
}

/// A part of a path.
enum Part {
    Root(PathBuf),
    Up,
    Name(OsString),
}

fn parts(path: &Path) -> VecDeque<Part> {
    let parts = path.components().filter_map(|component| match component {
        Component::Prefix(_) | Component::CurDir => None,
        Component::RootDir => Some(Part::Root("/".into())),
        Component::ParentDir => Some(Part::Up),
        Component::Normal(name) => Some(Part::Name(name.to_owned())),
    });
    parts.collect()
}
