//! Everything that can happen next.

use super::state::{COLLECTIONS, Closing, Copy, Creation, Delete, FILE, Put, State, Told, n};
use crate::collection::{Layout, Spot};
use crate::lifecycle::{self, Adoption, Standing, Step};

/// A name for a step, and the state after it.
pub(super) type Next = (String, State);

/// Names are made only when they are to be read.
pub(super) fn steps(state: &State, named: bool) -> Vec<Next> {
    let mut all = Steps { state, named, next: Vec::new() };
    for collection in 0..COLLECTIONS {
        all.creation(collection);
        all.changes(collection);
        all.uploads(collection);
        all.removals(collection);
        all.copies(collection);
    }
    all.closing();
    all.under_way();
    for server in state.everybody() {
        all.records(server);
        all.faults(server);
    }
    all.next
}

struct Steps<'s> {
    state: &'s State,
    named: bool,
    next: Vec<Next>,
}

fn living(standing: Option<Standing>) -> bool {
    standing.is_some_and(|standing| standing.layout != Layout::Gone)
}

/// Another living collection on a server's partition.
fn name_taken(state: &State, server: usize, collection: usize) -> bool {
    (0..COLLECTIONS).any(|other| other != collection && living(state.servers[server].disk[other]))
}

/// A server is making another collection of the name real.
fn name_held(state: &State, server: usize, collection: usize) -> bool {
    (0..COLLECTIONS).any(|other| {
        let held = matches!(state.creations[other], Creation::Held { .. });
        other != collection && held && state.host(other, 0) == server
    })
}

/// What is on the disk of a server that runs may from now on be under way to all that run.
fn spread(state: &mut State) {
    for collection in 0..COLLECTIONS {
        let mut known = 0;
        for server in state.everybody() {
            if let (false, Some(own)) = (state.servers[server].down, state.servers[server].disk[collection]) {
                known |= 1 << own.epoch;
            }
        }
        for server in state.everybody() {
            if !state.servers[server].down {
                state.servers[server].coming[collection] |= known;
            }
        }
    }
}

/// A server takes a record over, as far as it concerns it.
fn adopt(state: &mut State, server: usize, collection: usize, offered: Standing) {
    let host = state.hosts(collection, offered.layout).any(|host| host == server);
    let taken = name_taken(state, server, collection);
    let here = &mut state.servers[server];
    let own = here.disk[collection].or(here.left[collection]);
    match lifecycle::adoption(own, offered, host || here.tree[collection] != 0, taken) {
        Adoption::Ignore | Adoption::NameTaken => return,
        Adoption::Remember => {
            here.left[collection] = Some(offered);
            return;
        }
        Adoption::Take => {}
    }
    here.removed[collection] = false;
    if offered.layout == Layout::Gone {
        (here.folder, here.file, here.tree[collection]) = (0, 0, 0);
        here.disk[collection] = Some(offered);
    } else if host {
        open(state, server, collection);
        state.servers[server].disk[collection] = Some(offered);
    } else {
        if here.file != 0 {
            state.broken = Some("a slice that was moved away still holds a file");
        }
        let here = &mut state.servers[server];
        (here.folder, here.tree[collection]) = (0, 0);
        (here.disk[collection], here.left[collection]) = (None, Some(offered));
    }
    spread(state);
}

fn open(state: &mut State, server: usize, collection: usize) {
    let here = &mut state.servers[server];
    if here.tree[collection] == 0 {
        if here.folder == 0 {
            here.folder = collection as u8 + 1;
        }
        here.tree[collection] = here.folder;
    }
}

/// A record is decided: durable with the server of slice 0.
fn decide(state: &mut State, collection: usize, standing: Standing) {
    if standing.epoch != state.decided[collection].len() as u64 + 1 {
        state.broken = Some("one epoch names two records");
        return;
    }
    state.decided[collection].push(standing.layout);
    state.settled[collection] = 0;
    let first = state.host(collection, 0);
    adopt(state, first, collection, standing);
    if state.servers[first].disk[collection] != Some(standing) {
        state.broken = Some("the server that decides does not take its own record over");
    }
}

/// Writes through the handle of a collection.
fn write(state: &mut State, server: usize, collection: usize, bytes: u8) {
    let here = &mut state.servers[server];
    if here.tree[collection] == 0 || here.tree[collection] != here.folder {
        state.broken = Some("a tree in the attic takes a write");
        return;
    }
    here.file = bytes;
}

impl Steps<'_> {
    fn push(&mut self, name: impl FnOnce() -> String, change: impl FnOnce(&mut State)) {
        let mut next = self.state.clone();
        change(&mut next);
        if next != *self.state {
            self.next.push((if self.named { name() } else { String::new() }, next));
        }
    }

    fn up(&self, server: usize) -> bool {
        !self.state.servers[server].down
    }

    fn creation(&mut self, u: usize) {
        let state = self.state;
        match state.creations[u] {
            // Collections are numbered in the order in which they are tried.
            Creation::None
                if state.left.creates > 0 && (u == 0 || state.creations[u - 1] != Creation::None) =>
            {
                for first in state.everybody() {
                    for slices in 1..=state.count.min(2) {
                        self.push(
                            || format!("collection {u} of {slices} slices from server {first} is asked for"),
                            |next| {
                                next.left.creates -= 1;
                                next.first[u] = first as u8;
                                next.slices[u] = slices;
                                next.creations[u] = Creation::Asked;
                            },
                        );
                    }
                }
            }
            Creation::Asked => {
                let first = state.host(u, 0);
                let free =
                    lifecycle::name_is_free(name_taken(state, first, u), name_held(state, first, u), true);
                if self.up(first) && free {
                    self.push(
                        || format!("server {first} holds the name for collection {u}"),
                        |next| next.creations[u] = Creation::Held { free: 1 << first, told: 0 },
                    );
                }
                self.push(
                    || format!("making collection {u} is given up"),
                    |next| next.creations[u] = Creation::Over,
                );
            }
            Creation::Held { free, told } => {
                for server in state.everybody() {
                    let here = lifecycle::name_is_free(
                        name_taken(state, server, u),
                        name_held(state, server, u),
                        true,
                    );
                    if free & (1 << server) == 0 && self.up(server) && here {
                        self.push(
                            || format!("the name is free for collection {u} on server {server}"),
                            |next| next.creations[u] = Creation::Held { free: free | 1 << server, told },
                        );
                    }
                }
                for server in state.everybody() {
                    if free == state.all() && told & (1 << server) == 0 && self.up(server) {
                        self.push(
                            || format!("server {server} hears of removals before collection {u}"),
                            |next| {
                                for other in (0..COLLECTIONS).filter(|other| *other != u) {
                                    if let Some(newest) = next.newest(other)
                                        && newest.layout == Layout::Gone
                                    {
                                        adopt(next, server, other, newest);
                                    }
                                }
                                next.creations[u] = Creation::Held { free, told: told | 1 << server };
                            },
                        );
                    }
                }
                if told == state.all() {
                    self.push(
                        || format!("collection {u} is made real"),
                        |next| {
                            next.creations[u] = Creation::Over;
                            let layout = Layout::Stable { slices: n(next.slices[u].into()) };
                            decide(next, u, Standing { epoch: 1, layout });
                        },
                    );
                }
                self.push(
                    || format!("making collection {u} is given up"),
                    |next| next.creations[u] = Creation::Over,
                );
            }
            Creation::None | Creation::Over => {}
        }
    }

    /// Decisions of the server of slice 0.
    fn changes(&mut self, u: usize) {
        let state = self.state;
        let first = state.host(u, 0);
        let Some(own) = state.servers[first].disk[u].filter(|_| self.up(first)) else { return };
        let mut step = |name: &str, step: Step, spend: fn(&mut State)| {
            if let Ok(standing) = lifecycle::next(own, 0, step) {
                self.push(
                    || format!("collection {u}: {name}, epoch {}", standing.epoch),
                    |next| {
                        spend(next);
                        decide(next, u, standing);
                    },
                );
            }
        };
        // One change is decided at a time.
        if state.closing.is_some_and(|closing| usize::from(closing.collection) == u) {
            return;
        }
        if state.left.reslices > 0 {
            for to in 1..=u32::from(state.count) {
                step(&format!("to {to} slices"), Step::Reslice { to: n(to) }, |next| next.left.reslices -= 1);
            }
        }
        let settled = state.hosts(u, own.layout).all(|host| state.settled[u] & (1 << host) != 0);
        if settled {
            step("the move ends", Step::EndMove { epoch: own.epoch }, |_| ());
        }
        step("reopened after a crash", Step::Reopen, |_| ());
        if state.left.removals > 0
            && let Ok(gone) = lifecycle::next(own, 0, Step::RemoveWithFiles)
        {
            self.push(
                || format!("collection {u} is removed with its files"),
                |next| {
                    next.left.removals -= 1;
                    // What is acknowledged before all servers know it goes too; it is said to be removed only then.
                    next.told[u] = Told::Unknown;
                    decide(next, u, gone);
                },
            );
        }
        if state.left.removals > 0
            && state.closing.is_none()
            && let Ok(closed) = lifecycle::next(own, 0, Step::Close)
        {
            self.push(
                || format!("collection {u} is closed, epoch {}", closed.epoch),
                |next| {
                    next.left.removals -= 1;
                    next.closing = Some(Closing { collection: u as u8, epoch: closed.epoch, empty: 0 });
                    decide(next, u, closed);
                },
            );
        }
    }

    /// A removal without files goes on.
    fn closing(&mut self) {
        let state = self.state;
        let Some(closing @ Closing { collection, epoch, empty }) = state.closing else { return };
        let u = usize::from(collection);
        let first = state.host(u, 0);
        let Some(own) = state.servers[first].disk[u].filter(|own| own.epoch == epoch) else { return };
        for server in state.hosts(u, own.layout).collect::<Vec<_>>() {
            let here = &state.servers[server];
            if self.up(server) && here.disk[u] == Some(own) && here.file == 0 {
                self.push(
                    || format!("server {server} finds collection {u} empty"),
                    |next| next.closing = Some(Closing { empty: empty | 1 << server, ..closing }),
                );
            }
        }
        if state.hosts(u, own.layout).all(|host| empty & (1 << host) != 0) {
            if let Ok(gone) = lifecycle::next(own, 0, Step::RemoveEmpty { epoch }) {
                self.push(
                    || format!("collection {u} was empty and is removed"),
                    |next| {
                        next.closing = None;
                        decide(next, u, gone);
                    },
                );
            }
        } else if let Ok(open) = lifecycle::next(own, 0, Step::Reopen) {
            self.push(
                || format!("collection {u} is reopened"),
                |next| {
                    next.closing = None;
                    decide(next, u, open);
                },
            );
        }
    }

    /// The slice of the file on a server by its own record, and where it may still be.
    fn spot(&self, server: usize, u: usize) -> Option<(Standing, Option<usize>)> {
        let own = self.state.servers[server].disk[u].filter(|_| self.up(server))?;
        let Spot { slice, before } = own.layout.spot(FILE)?;
        (self.state.host(u, slice) == server).then(|| (own, before.map(|before| self.state.host(u, before))))
    }

    fn uploads(&mut self, u: usize) {
        let state = self.state;
        let Some(place) = state.puts.iter().position(Option::is_none) else { return };
        if state.left.puts == 0 {
            return;
        }
        for server in state.everybody() {
            let Some((by, before)) = self.spot(server, u) else { continue };
            // The old place answers by the same epoch only, and must not have the file.
            if let Some(old) = before
                && (!self.up(old) || state.servers[old].disk[u] != Some(by) || state.servers[old].file != 0)
            {
                continue;
            }
            self.push(
                || {
                    format!(
                        "an upload to collection {u} has looked around on server {server}, epoch {}",
                        by.epoch
                    )
                },
                |next| {
                    next.left.puts -= 1;
                    let bytes = next.next_bytes;
                    next.next_bytes += 1;
                    next.puts[place] = Some(Put { server: server as u8, collection: u as u8, by, bytes });
                },
            );
        }
    }

    fn removals(&mut self, u: usize) {
        let state = self.state;
        if state.left.deletes == 0 || state.delete.is_some() {
            return;
        }
        for server in state.everybody() {
            let Some((by, before)) = self.spot(server, u) else { continue };
            if let Some(old) = before
                && (!self.up(old) || state.servers[old].disk[u] != Some(by))
            {
                continue;
            }
            self.push(
                || format!("the file of collection {u} is removed at its old place, epoch {}", by.epoch),
                |next| {
                    next.left.deletes -= 1;
                    next.told[u] = Told::Unknown;
                    let mut found = false;
                    if let Some(old) = before {
                        found = next.servers[old].file != 0;
                        next.servers[old].file = 0;
                    }
                    next.delete = Some(Delete { server: server as u8, collection: u as u8, by, found });
                },
            );
        }
    }

    /// Files that wait to be moved.
    fn copies(&mut self, u: usize) {
        let state = self.state;
        for from in state.everybody() {
            let here = &state.servers[from];
            let Some(by) = here.disk[u].filter(|_| self.up(from)) else { continue };
            let Layout::Moving { .. } = by.layout else { continue };
            let Some(Spot { slice, before: Some(before) }) = by.layout.spot(FILE) else { continue };
            let waits = state.host(u, before) == from && here.file != 0;
            if !waits && state.newest(u) == Some(by) {
                self.push(
                    || format!("server {from} has nothing left to move, epoch {}", by.epoch),
                    |next| next.settled[u] |= 1 << from,
                );
            }
            let Some(place) = state.copies.iter().position(Option::is_none) else { continue };
            // One pass carries a file once at a time; another may begin when that was cut off.
            let carried = state.copies.iter().flatten().any(|copy| {
                usize::from(copy.from) == from && usize::from(copy.collection) == u && copy.waited_for
            });
            let to = state.host(u, slice);
            if waits && !carried && self.up(to) {
                self.push(
                    || format!("server {from} sends the file to server {to}, epoch {}", by.epoch),
                    |next| {
                        let (from, to, bytes) = (from as u8, to as u8, next.servers[from].file);
                        let collection = u as u8;
                        next.copies[place] =
                            Some(Copy { collection, by, from, to, bytes, waited_for: true, proven: false });
                    },
                );
            }
        }
    }

    /// Uploads, removals and copies go on or are cut off.
    fn under_way(&mut self) {
        let state = self.state;
        for (place, put) in state.puts.iter().enumerate() {
            let Some(Put { server, collection, by, bytes }) = *put else { continue };
            let (server, u) = (usize::from(server), usize::from(collection));
            self.push(
                || format!("the upload on server {server} ends"),
                |next| {
                    next.puts[place] = None;
                    let gate = next.servers[server].disk[u].map_or(0, |own| own.epoch);
                    if lifecycle::gives_names(gate, by) && next.servers[server].file == 0 {
                        write(next, server, u, bytes);
                        let gone = next.newest(u).is_some_and(|newest| newest.layout == Layout::Gone);
                        let removing = next.delete.is_some_and(|delete| usize::from(delete.collection) == u);
                        next.told[u] = if gone || removing { Told::Unknown } else { Told::Stored(bytes) };
                    }
                },
            );
            self.push(|| format!("the upload on server {server} is cut off"), |next| next.puts[place] = None);
        }
        if let Some(Delete { server, collection, by, found }) = state.delete {
            let (server, u) = (usize::from(server), usize::from(collection));
            self.push(
                || format!("the file is removed on server {server}"),
                |next| {
                    next.delete = None;
                    if next.servers[server].disk[u] == Some(by) {
                        next.servers[server].removed[u] |= matches!(by.layout, Layout::Moving { .. });
                        let here = next.servers[server].file != 0;
                        next.servers[server].file = 0;
                        let upload = next.puts.iter().flatten().any(|put| put.collection == collection);
                        if (here || found) && !upload {
                            next.told[u] = Told::Removed;
                        }
                    }
                },
            );
            self.push(|| "the removal of the file is cut off".to_owned(), |next| next.delete = None);
        }
        for (place, copy) in state.copies.iter().enumerate() {
            let Some(copy) = *copy else { continue };
            let (u, from, to) = (usize::from(copy.collection), usize::from(copy.from), usize::from(copy.to));
            if copy.proven {
                self.push(
                    || format!("server {from} gives up its copy"),
                    |next| {
                        next.copies[place] = None;
                        if next.servers[from].disk[u] == Some(copy.by) {
                            next.servers[from].file = 0;
                        }
                    },
                );
            } else if self.up(to) {
                self.push(
                    || format!("the file arrives at server {to}"),
                    |next| {
                        let here = &next.servers[to];
                        let gate = here.disk[u].map_or(0, |own| own.epoch);
                        let given = lifecycle::gives_names(gate, copy.by) && !here.removed[u];
                        let same = given && here.file == copy.bytes;
                        if given && here.file == 0 {
                            write(next, to, u, copy.bytes);
                        } else if !same {
                            next.copies[place] = None;
                            return;
                        }
                        next.copies[place] = copy.waited_for.then_some(Copy { proven: true, ..copy });
                    },
                );
            }
            if copy.waited_for {
                self.push(
                    || format!("server {from} no longer waits for its copy"),
                    |next| {
                        next.copies[place] = (!copy.proven).then_some(Copy { waited_for: false, ..copy });
                    },
                );
            } else {
                self.push(|| "a copy is lost".to_owned(), |next| next.copies[place] = None);
            }
        }
    }

    /// Records that are under way arrive.
    fn records(&mut self, server: usize) {
        let state = self.state;
        if !self.up(server) {
            return;
        }
        for u in 0..COLLECTIONS {
            for epoch in 1..=state.decided[u].len() as u64 {
                if state.servers[server].coming[u] & (1 << epoch) != 0
                    && let Some(record) = state.record(u, epoch)
                {
                    self.push(
                        || format!("server {server} hears of epoch {epoch} of collection {u}"),
                        |next| adopt(next, server, u, record),
                    );
                }
            }
        }
    }

    fn faults(&mut self, server: usize) {
        let state = self.state;
        if state.servers[server].down {
            self.push(
                || format!("server {server} starts"),
                |next| {
                    next.servers[server].down = false;
                    for u in 0..COLLECTIONS {
                        if living(next.servers[server].disk[u]) {
                            open(next, server, u);
                        }
                    }
                    spread(next);
                },
            );
            return;
        }
        if state.left.crashes == 0 {
            return;
        }
        self.push(
            || format!("server {server} crashes"),
            |next| {
                next.left.crashes -= 1;
                let here = &mut next.servers[server];
                here.down = true;
                (here.tree, here.left) = ([0; COLLECTIONS], [None; COLLECTIONS]);
                (here.removed, here.coming) = ([false; COLLECTIONS], [0; COLLECTIONS]);
                for put in &mut next.puts {
                    *put = put.filter(|put| usize::from(put.server) != server);
                }
                next.delete = next.delete.filter(|delete| usize::from(delete.server) != server);
                for copy in &mut next.copies {
                    // Nobody receives it any more; who sent it no longer waits.
                    *copy = copy.filter(|copy| usize::from(copy.to) != server);
                    if let Some(copy) = copy.as_mut().filter(|copy| usize::from(copy.from) == server) {
                        copy.waited_for = false;
                    }
                    *copy = copy.filter(|copy| copy.waited_for || !copy.proven);
                }
                for u in 0..COLLECTIONS {
                    let under_way = matches!(next.creations[u], Creation::Asked | Creation::Held { .. });
                    if usize::from(next.first[u]) == server && under_way {
                        next.creations[u] = Creation::Over;
                    }
                }
                let decides =
                    |closing: &Closing| usize::from(next.first[usize::from(closing.collection)]) == server;
                if next.closing.as_ref().is_some_and(decides) {
                    next.closing = None;
                }
            },
        );
    }
}
