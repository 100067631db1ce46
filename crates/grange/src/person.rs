//! Who sits at this terminal, as the system knows it. Environment variables such as USER are set by whoever runs the
//! command, so they identify nobody.
//!
//! One person has one name here, so a repair that was asked for at a terminal cannot be confirmed there by the same person
//! under another name. In a user namespace everybody chooses the user ids that a process has there, so a process in one
//! identifies nobody: its acts are recorded under a name that says so, and those that compare persons are refused.
//!
//! This guards against mistakes. It does not hold for root, who can take any identity; nor for whoever owns the data folder,
//! who can write to the database itself, or call the node with the key in `run/node.json` under any name.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use grange_model::audit::UNIDENTIFIED;

/// The value of `/proc/self/loginuid` for a process that no log-in started.
const NO_LOGIN: u32 = u32::MAX;

/// The text of `/proc/self/uid_map` outside of user namespaces: all user ids, each as itself. No other namespace has this
/// text, unless root made it.
const ALL_IDS_AS_THEMSELVES: [&str; 3] = ["0", "0", "4294967295"];

/// What the system says of this process.
#[derive(Clone, Copy, Debug)]
struct Identity {
    /// The real user.
    uid: u32,
    /// The user who logged in; `su` and `sudo` leave it as it is.
    login_uid: Option<u32>,
    /// The user who ran `sudo`. Only root's word for it counts.
    sudo_uid: Option<u32>,
    /// The user ids are those of a user namespace.
    mapped: bool,
}

impl Identity {
    fn of_this_process() -> Self {
        let login_uid = of_kernel("loginuid");
        let sudo_uid = std::env::var("SUDO_UID").ok();
        Self {
            uid: rustix::process::getuid().as_raw(),
            login_uid: login_uid.and_then(|text| text.trim().parse().ok()),
            sudo_uid: sudo_uid.and_then(|text| text.parse().ok()),
            mapped: is_mapped(of_kernel("uid_map").as_deref(), cfg!(target_os = "linux")),
        }
    }

    /// The user id of the person; `None` when nothing shows it.
    fn person(self) -> Option<u32> {
        let logged_in = self.login_uid.filter(|uid| *uid != NO_LOGIN);
        let through_sudo = self.sudo_uid.filter(|_| self.uid == 0);
        (!self.mapped).then(|| logged_in.or(through_sudo).unwrap_or(self.uid))
    }
}

/// Whether user ids may be those of a user namespace, by the map of this process. Where Linux shows no map they may be; other
/// systems have no such namespaces.
fn is_mapped(uid_map: Option<&str>, linux: bool) -> bool {
    uid_map.map_or(linux, |text| !text.split_whitespace().eq(ALL_IDS_AS_THEMSELVES))
}

/// The text of a file in `/proc/self`. One that is not the kernel's counts as absent: in a user namespace everybody may mount
/// other files over it.
fn of_kernel(name: &str) -> Option<String> {
    let mut file = File::open(Path::new("/proc/self").join(name)).ok()?;
    #[cfg(target_os = "linux")]
    if rustix::fs::fstatfs(&file).ok()?.f_type != rustix::fs::PROC_SUPER_MAGIC {
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some(text)
}

/// The name of the person at this terminal, for the record of changes: that of the account, or `uid-NUMBER` for an account
/// that is not in `/etc/passwd`. A name that begins with [`UNIDENTIFIED`] is nobody's.
pub(crate) fn name() -> String {
    let identity = Identity::of_this_process();
    let Some(uid) = identity.person() else { return format!("{UNIDENTIFIED}uid-{}", identity.uid) };
    let accounts = std::fs::read_to_string(Path::new("/etc/passwd")).unwrap_or_default();
    account(&accounts, uid).map_or_else(|| format!("uid-{uid}"), str::to_owned)
}

/// The first account with that user id in the text of `/etc/passwd`.
fn account(accounts: &str, uid: u32) -> Option<&str> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _, id) = (fields.next()?, fields.next()?, fields.next()?);
        (!name.is_empty() && id.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_counts_before_the_real_user_and_sudo_counts_for_root_only() {
        for (uid, login_uid, sudo_uid, person) in [
            (1000, None, None, 1000),
            (1000, Some(NO_LOGIN), None, 1000),
            // A service account that several people use.
            (500, Some(1000), None, 1000),
            (0, Some(1001), Some(1000), 1001),
            (0, None, Some(1000), 1000),
            (0, None, None, 0),
            // Anybody can set the variable.
            (1000, None, Some(1001), 1000),
            (1000, Some(NO_LOGIN), Some(0), 1000),
        ] {
            let identity = Identity { uid, login_uid, sudo_uid, mapped: false };
            assert_eq!(identity.person(), Some(person), "{identity:?}");
            let mapped = Identity { mapped: true, ..identity };
            assert_eq!(mapped.person(), None, "{mapped:?}");
        }
    }

    #[test]
    fn user_ids_of_a_user_namespace_identify_nobody() {
        for (uid_map, linux, mapped) in [
            (Some("         0          0 4294967295\n"), true, false),
            (Some("0 0 4294967295"), true, false),
            // `unshare --map-user`, `unshare --map-root-user`, and a namespace in that one.
            (Some("      1001       1000          1\n"), true, true),
            (Some("         0       1000          1\n"), true, true),
            (Some("      1001       1001          1\n"), true, true),
            // Containers.
            (Some("0 100000 65536"), true, true),
            (Some("0 1000 1\n1 100000 65536\n"), true, true),
            (Some("0 0 4294967294"), true, true),
            (Some("0 0 1000\n1000 1000 4294966295\n"), true, true),
            (Some("0 0 4294967295\n1 1 1\n"), true, true),
            // A namespace before its map is written.
            (Some(""), true, true),
            (Some("\n"), true, true),
            // Not mounted, or hidden by another file.
            (None, true, true),
            (None, false, false),
        ] {
            assert_eq!(is_mapped(uid_map, linux), mapped, "{uid_map:?}");
        }
    }

    #[test]
    fn only_files_of_the_kernel_count() {
        assert!(of_kernel("status").is_some_and(|text| text.contains("Uid:")));
        // A folder, a file of another system behind a link, and nothing.
        for name in ["task", "root/etc/passwd", "none"] {
            assert_eq!(of_kernel(name), None, "{name}");
        }
    }

    #[test]
    fn one_user_id_has_one_name() {
        let accounts =
            "root:x:0:0:root:/root:/bin/sh\n+nis\nanna:x:1000:1000::/home/anna:/bin/sh\ntoor:x:0:0::/:\n";
        assert_eq!(account(accounts, 0), Some("root"));
        assert_eq!(account(accounts, 1000), Some("anna"));
        assert_eq!(account(accounts, 1001), None);
        assert_eq!(account(":x:7:", 7), None);
    }
}
