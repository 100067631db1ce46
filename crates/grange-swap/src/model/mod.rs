//! The life of a collection, explored exhaustively: every order in which servers, messages, clients and crashes can act,
//! within the bounds of [`Bounds`], until no new state appears. All decisions are those of [`crate::lifecycle`] and
//! [`crate::collection::Layout`], which the servers act by.
//!
//! One namespace, up to two collections of that name, one file that belongs to another slice by every number of slices.
//! What is assumed, always to the worse side:
//!
//! - Any server may try to make a collection, all of them at the same time.
//! - A record that any server had on its disk since a server was started may reach that server at any later moment, in any
//!   order, or never. A crash of the receiver ends what was under way to it, as it ends connections.
//! - Every act of more than one step may be cut off after each of them: a line that is cut, a client that leaves, an answer
//!   that is lost.
//! - A crash loses all that is in memory: names held, removals noted, walks done, acts under way.
//! - What was once told about a walk holds for as long as its epoch does.

mod judge;
mod search;
mod state;
mod steps;

pub use search::{Explored, explore};
pub use state::{Bounds, State};

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn holds(bounds: Bounds) -> Explored {
        match explore(bounds, u64::MAX) {
            Ok(explored) => explored,
            Err(broken) => panic!("{broken}"),
        }
    }

    #[test]
    fn every_life_of_a_collection_on_two_servers_keeps_what_it_promised() {
        let none =
            Bounds { servers: 2, creates: 1, puts: 0, deletes: 0, reslices: 0, removals: 0, crashes: 0 };
        let moves = holds(Bounds { puts: 1, deletes: 1, reslices: 1, crashes: 1, ..none });
        let ends = holds(Bounds { creates: 2, puts: 1, removals: 1, crashes: 1, ..none });
        assert!(moves.states > 1000 && ends.states > 1000, "{moves:?} {ends:?}");
    }

    #[test]
    fn every_life_of_a_collection_on_three_servers_keeps_what_it_promised() {
        let none =
            Bounds { servers: 3, creates: 1, puts: 0, deletes: 0, reslices: 0, removals: 0, crashes: 0 };
        let moves = holds(Bounds { puts: 1, deletes: 1, reslices: 1, ..none });
        let ends = holds(Bounds { creates: 2, puts: 1, removals: 1, ..none });
        assert!(moves.states > 1000 && ends.states > 1000, "{moves:?} {ends:?}");
        let removed_while_moving = holds(Bounds { puts: 1, reslices: 1, removals: 1, ..none });
        assert!(removed_while_moving.states > 1000, "{removed_while_moving:?}");
    }
}
