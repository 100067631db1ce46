//! What happens to acts whose callers leave: a request is cut off, a lease is lost, a time is over.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use grange_model::{NodeId, Role};

use super::{Bed, anna, named, on_both_engines};
use crate::{Db, NewNode, NewUser, NodeHeartbeat, Settings};

on_both_engines! {
    an_act_is_whole_and_in_nobodys_way_when_its_caller_leaves,
}

/// Looks at an act so many times, and leaves; true if it was over by then.
async fn leave_after<T>(looks: usize, act: impl Future<Output = T>) -> bool {
    let mut act = pin!(act);
    let mut looked = 0;
    poll_fn(|context| {
        looked += 1;
        match act.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending if looked > looks => Poll::Ready(false),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}

async fn an_act_is_whole_and_in_nobodys_way_when_its_caller_leaves(bed: &Bed) {
    // One connection: whoever comes next has the very one that was left.
    let settings = Settings { connections_max: 1, ..bed.settings.clone() };
    let db = Db::open(&settings, bed.dir.path(), bed.clock.clone()).await.unwrap();
    let node = NodeId::new();
    let new = NewNode {
        id: node,
        name: "a".to_owned(),
        host: "a".to_owned(),
        roles: Vec::new(),
        version: "0".to_owned(),
        addresses: std::collections::BTreeMap::new(),
        free_bytes: None,
    };
    db.nodes().register(new).await.unwrap();
    let mut left = 0;
    for number in 0..60 {
        let name = format!("user{number}");
        let user = NewUser { name: named(&name), role: Role::Curator, password_hash: None };
        let over = leave_after(number % 12, db.users().create(user, &anna())).await;
        left += usize::from(!over);
        // Another act on the same connection, and what somebody else sees of it.
        let beat = NodeHeartbeat { free_bytes: Some(number as u64), clock_ahead_ms: None };
        db.nodes().heartbeat(node, beat).await.unwrap();
        let seen = bed.db.nodes().get(node).await.unwrap().unwrap();
        assert_eq!(seen.free_bytes, Some(number as u64), "after {left} were left");
        leave_after(number % 5, db.users().list()).await;
        // The user and the line in the book of changes: both or neither.
        let is_there = bed.db.users().get(&named(&name)).await.unwrap().is_some();
        assert!(is_there || !over, "{name} was made");
    }
    assert!(left > 0, "somebody left in the midst");
}
