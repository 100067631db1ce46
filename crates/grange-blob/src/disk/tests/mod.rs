//! What can happen to a disk store from outside: power, people, worn-out disks.

mod crash;
mod damage;
mod folders;
mod full;
