//! What can happen to a disk store from outside: power, people, worn-out disks.

mod crash;
mod damage;
mod folders;
mod full;
mod streams;
mod unreadable;

/// Changes a byte of a file where it lies.
pub(crate) fn flip(path: &std::path::Path) {
    use std::os::unix::fs::{FileExt, PermissionsExt};
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, 0).unwrap();
    file.write_all_at(&[byte[0] ^ 1], 0).unwrap();
    file.sync_all().unwrap();
}
