//! Checks which other users can write the configuration file. It decides which programs are started, so anyone who
//! can write it can run any program under this account.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use crate::visible::visible;

/// Another user can write a file that decides which programs are started, or replace it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{writer} can write to {}, and so run programs as you", path.display())]
pub struct AccessFault {
    /// The file, or the folder in which it can be replaced.
    pub path: PathBuf,
    pub writer: Writer,
}

/// The users that can write a file that only its own user should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Writer {
    /// Every account of the machine.
    Everybody,
    /// Another account, which owns the file.
    Owner(u32),
    /// The members of a group, by its name, or by its number if it has none.
    Group(String),
}

impl fmt::Display for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Everybody => f.write_str("every user of this machine"),
            Self::Owner(user) => write!(f, "another user (uid {user})"),
            Self::Group(group) => write!(f, "every member of the group {}", visible(group)),
        }
    }
}

impl AccessFault {
    /// Returns whether servers are started anyway.
    pub(super) fn is_tolerable(&self) -> bool {
        matches!(self.writer, Writer::Group(_))
    }

    /// Returns the next step for the user.
    pub fn remedy(&self) -> String {
        let path = self.path.display();
        match self.writer {
            Writer::Everybody => format!("chmod o-w '{path}'"),
            Writer::Owner(_) => {
                format!("review it, then make yourself its owner: chown \"$(id -u)\" '{path}'")
            }
            Writer::Group(_) => format!("chmod g-w '{path}'"),
        }
    }
}

/// Returns the worst problem with the permissions of an absolute path.
#[cfg(unix)]
pub(super) fn check(path: &Path) -> Option<AccessFault> {
    unix::check(path)
}

/// Returns a problem if users other than this one and root can write or replace a file. A writable group is not
/// reported.
pub(crate) fn foreign_writer(path: &Path) -> Option<AccessFault> {
    check(path).filter(|fault| !fault.is_tolerable())
}

/// Access control lists of other systems are not read.
#[cfg(not(unix))]
pub(super) fn check(_: &Path) -> Option<AccessFault> {
    None
}

#[cfg(unix)]
mod unix {
    use std::{
        fs::{self, Metadata},
        os::unix::fs::MetadataExt,
        path::Path,
    };

    use super::{AccessFault, Writer};

    const WRITABLE_BY_OTHERS: u32 = 0o002;
    const WRITABLE_BY_GROUP: u32 = 0o020;
    /// In a sticky folder only the owner of a file can replace it.
    const STICKY: u32 = 0o1000;

    pub(super) fn check(path: &Path) -> Option<AccessFault> {
        // The permissions of the link's target count, unless another user can redirect the link.
        if let Some(fault) = link(path) {
            return Some(fault);
        }
        // A file that cannot be examined is reported when it is read.
        let path = fs::canonicalize(path).ok()?;
        let file = fs::metadata(&path).ok()?;
        if !file.is_file() {
            // A pipe, such as the one that a shell creates for `<(…)`, belongs to the user who names it.
            return None;
        }
        let folder = fs::metadata(path.parent()?).ok()?;
        let fault = |path: &Path, writer| AccessFault {
            path: path.into(),
            writer,
        };
        // The worst comes first, since only one problem is reported: strangers before groups, and the file before its
        // folder.
        let in_file = stranger(&file, 0).map(|writer| fault(&path, writer));
        in_file
            .or_else(|| Some(fault(path.parent()?, stranger(&folder, STICKY)?)))
            .or_else(|| Some(fault(&path, by_group(&file, 0)?)))
            .or_else(|| Some(fault(path.parent()?, by_group(&folder, STICKY)?)))
    }

    /// Returns a problem if another user can replace a link.
    fn link(path: &Path) -> Option<AccessFault> {
        let metadata = fs::symlink_metadata(path).ok()?;
        if !metadata.is_symlink() {
            return None;
        }
        let folder = fs::canonicalize(path.parent()?).ok()?;
        let fault = |path: &Path, writer| AccessFault {
            path: path.into(),
            writer,
        };
        let of_folder = stranger(&fs::metadata(&folder).ok()?, STICKY);
        // A link has an owner, but no permissions of its own.
        let of_link = foreign_owner(&metadata);
        { of_folder.map(|writer| fault(&folder, writer)) }
            .or_else(|| of_link.map(|writer| fault(path, writer)))
    }

    /// Returns the user outside of the group who can write to it; `guard` is a mode bit that prevents that.
    fn stranger(metadata: &Metadata, guard: u32) -> Option<Writer> {
        let mode = metadata.mode();
        if mode & WRITABLE_BY_OTHERS != 0 && mode & guard == 0 {
            return Some(Writer::Everybody);
        }
        foreign_owner(metadata)
    }

    fn foreign_owner(metadata: &Metadata) -> Option<Writer> {
        let (own, owner) = (rustix::process::geteuid().as_raw(), metadata.uid());
        // Root can write everything in any case.
        (owner != own && owner != 0).then_some(Writer::Owner(owner))
    }

    /// Returns the group that can write to it, if it has other members; `guard` is a mode bit that prevents that.
    fn by_group(file: &Metadata, guard: u32) -> Option<Writer> {
        if file.mode() & WRITABLE_BY_GROUP == 0 || file.mode() & guard != 0 {
            return None;
        }
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let own = rustix::process::geteuid().as_raw();
        let group =
            super::group_with_others(file.gid(), own, &read("/etc/group"), &read("/etc/passwd"));
        group.map(Writer::Group)
    }
}

/// Returns the name of a group, if it has members other than this user. A group that is missing from the system's
/// files is assumed to have some.
#[cfg(unix)]
fn group_with_others(group: u32, user: u32, groups: &str, users: &str) -> Option<String> {
    let number = group.to_string();
    let own = user.to_string();
    let entry = |line: &&str| line.split(':').nth(2) == Some(&number);
    let Some(line) = groups.lines().find(entry) else {
        return Some(number);
    };
    let mut fields = line.split(':');
    let name = fields.next().unwrap_or_default();
    let members = fields.nth(2).unwrap_or_default().split(',');
    let own_name = users
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&own))
        .and_then(|line| line.split(':').next());
    let mut members = members.filter(|member| !member.is_empty() && Some(*member) != own_name);
    // The line of a group does not name the users whose primary group it is.
    let has_others_by_default = || {
        let mut users = users.lines().map(|line| line.split(':'));
        users.any(|mut fields| {
            let (id, of) = (fields.nth(2), fields.next());
            of == Some(&number) && id.is_some_and(|id| id != own && id != "0")
        })
    };
    (members.next().is_some() || has_others_by_default()).then(|| name.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    #[test]
    fn a_file_or_folder_that_every_user_may_write_is_reported() {
        let cases = [
            (0o600, 0o700, None),
            (0o644, 0o755, None),
            (0o666, 0o755, Some("workbench.json")),
            (0o602, 0o755, Some("workbench.json")),
            (0o644, 0o777, Some("")),
            (0o644, 0o1777, None),
        ];
        for (file_mode, folder_mode, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let folder = folder.path().canonicalize().unwrap();
            let file = folder.join("workbench.json");
            fs::write(&file, "{}").unwrap();
            fs::set_permissions(&file, PermissionsExt::from_mode(file_mode)).unwrap();
            fs::set_permissions(&folder, PermissionsExt::from_mode(folder_mode)).unwrap();
            let expected = expected.map(|name| AccessFault {
                path: if name.is_empty() {
                    folder.clone()
                } else {
                    file.clone()
                },
                writer: Writer::Everybody,
            });
            assert_eq!(check(&file), expected, "{file_mode:o} in {folder_mode:o}");
        }
    }

    #[test]
    fn a_link_is_judged_by_its_target() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().canonicalize().unwrap().join("real.json");
        fs::write(&file, "{}").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        let link = folder.path().join("workbench.json");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let fault = check(&link).expect("everybody may write it");
        assert_eq!(fault.path, file);
    }

    #[test]
    fn a_link_that_others_can_replace_is_reported() {
        let (target, open) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = target.path().join("real.json");
        fs::write(&file, "{}").unwrap();
        let folder = open.path().canonicalize().unwrap();
        let link = folder.join("workbench.json");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(check(&link), None);
        fs::set_permissions(&folder, PermissionsExt::from_mode(0o777)).unwrap();
        let fault = check(&link).expect("everybody may replace it");
        assert_eq!((fault.path, fault.writer), (folder, Writer::Everybody));
    }

    #[test]
    fn a_group_without_other_members_is_accepted() {
        let groups = "root:x:0:\nme:x:1000:\nteam:x:50:me,you\nalone:x:51:me\nusers:x:100:\n";
        let users = "root:x:0:0::/root:/bin/sh\nme:x:1000:1000::/h:/bin/sh\n\
                     you:x:1001:100::/h:/bin/sh\n";
        let cases = [
            (1000, None),
            (51, None),
            (0, None),
            (50, Some("team")),
            (100, Some("users")),
            (77, Some("77")),
        ];
        for (group, expected) in cases {
            let found = group_with_others(group, 1000, groups, users);
            assert_eq!(found.as_deref(), expected, "{group}");
        }
    }
}
