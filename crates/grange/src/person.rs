//! Who sits at this terminal, as the system knows it. Environment variables such as USER are set by whoever runs the
//! command, so they identify nobody.
//!
//! One person has one name here, so a repair that was asked for at a terminal cannot be confirmed there by the same person
//! under another name. This does not hold for root, who can take any identity; nor for whoever can write to the data
//! folder, and so to the database itself.

use std::path::Path;

/// The value of `/proc/self/loginuid` for a process that no log-in started.
const NO_LOGIN: u32 = u32::MAX;

/// What the system says of this process.
#[derive(Clone, Copy, Debug)]
struct Identity {
    /// The real user.
    uid: u32,
    /// The user who logged in; `su` and `sudo` leave it as it is.
    login_uid: Option<u32>,
    /// The user who ran `sudo`. Only root's word for it counts.
    sudo_uid: Option<u32>,
}

impl Identity {
    fn of_this_process() -> Self {
        let login_uid = std::fs::read_to_string("/proc/self/loginuid").ok();
        let sudo_uid = std::env::var("SUDO_UID").ok();
        Self {
            uid: rustix::process::getuid().as_raw(),
            login_uid: login_uid.and_then(|text| text.trim().parse().ok()),
            sudo_uid: sudo_uid.and_then(|text| text.parse().ok()),
        }
    }

    /// The user id of the person.
    fn person(self) -> u32 {
        let logged_in = self.login_uid.filter(|uid| *uid != NO_LOGIN);
        let through_sudo = self.sudo_uid.filter(|_| self.uid == 0);
        logged_in.or(through_sudo).unwrap_or(self.uid)
    }
}

/// The name of the person at this terminal, for the record of changes: that of the account, or `uid-NUMBER` for an account
/// that is not in `/etc/passwd`.
pub(crate) fn name() -> String {
    let uid = Identity::of_this_process().person();
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
            let identity = Identity { uid, login_uid, sudo_uid };
            assert_eq!(identity.person(), person, "{identity:?}");
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
