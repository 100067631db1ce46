use proptest::prelude::*;

use super::*;
use crate::channel::{Convention, Kind};

fn prod() -> Channels {
    Channels::new("PROD").unwrap()
}

const MACHINE: &str = "130.226.258.7";

/// The table of the documents, with their own examples: environment PROD, replicas ONE, TWO and THREE, machine
/// 130.226.258.7, instances HCA_HIGH and ISA.
#[test]
fn names_are_those_of_the_documents() {
    let c = prod();
    let harvester = Instance::new("HarvestControllerApplication", "HIGH").unwrap();
    let indexer = Instance::new("IndexServerApplication", " ").unwrap();
    use Convention::{Competing, Everyone, Instance as This, Plain, Singleton};
    use Kind::{Queue, Topic};
    for (channel, name, kind, convention) in [
        (Ok(c.the_sched()), "PROD_THE_SCHED_COMMON", Queue, Singleton),
        (c.any_haco("HIGH"), "PROD_ANY_HIGHPRIORITY_HACO_COMMON", Queue, Competing),
        (c.any_haco("LOW"), "PROD_ANY_LOWPRIORITY_HACO_COMMON", Queue, Competing),
        (
            c.this_repos_client(MACHINE, &harvester),
            "PROD_THIS_REPOS_CLIENT_COMMON_130_226_258_7_HCA_HIGH",
            Queue,
            This,
        ),
        (Ok(c.the_repos()), "PROD_THE_REPOS_COMMON", Queue, Singleton),
        (c.the_bamon("TWO"), "PROD_THE_BAMON_TWO", Queue, Singleton),
        (c.all_ba("TWO"), "PROD_ALL_BA_TWO", Topic, Everyone),
        (c.any_ba("TWO"), "PROD_ANY_BA_TWO", Queue, Competing),
        (
            c.this_index_client(MACHINE, &indexer),
            "PROD_THIS_INDEX_CLIENT_COMMON_130_226_258_7_ISA",
            Queue,
            This,
        ),
        (Ok(c.index_server()), "PROD_INDEX_SERVER_COMMON", Queue, Plain),
        (Ok(c.monitor()), "PROD_MONITOR_COMMON", Queue, Plain),
        (Ok(c.error()), "PROD_ERROR_COMMON", Queue, Plain),
        (c.the_cr("THREE"), "PROD_THE_CR_THREE", Queue, Singleton),
        // The later channels of NetarchiveSuite, in the documents' order.
        (Ok(c.harvestmon()), "PROD_HARVESTMON_COMMON", Queue, Plain),
        (Ok(c.all_harvester_status()), "PROD_ALL_HARVESTER_STATUS_COMMON", Topic, Everyone),
        (Ok(c.hchan_val_req()), "PROD_HCHAN_VAL_REQ_COMMON", Queue, Plain),
        (Ok(c.hchan_val_resp()), "PROD_HCHAN_VAL_RESP_COMMON", Queue, Plain),
        (c.job_snapshot("SNAPSHOT"), "PROD_JOB_SNAPSHOT_SNAPSHOT_COMMON", Queue, Plain),
        (c.job_partial("FOCUSED"), "PROD_JOB_PARTIAL_FOCUSED_COMMON", Queue, Plain),
        // Grange's own.
        (Ok(c.all_nodes()), "PROD_ALL_NODES_COMMON", Topic, Everyone),
        (
            c.this_node("node1.kb.dk", &Instance::new("node", "a_1").unwrap()),
            "PROD_THIS_NODE_COMMON_node1%2Ekb%2Edk_NODE_a%5F1",
            Queue,
            This,
        ),
        (Ok(c.all_admin()), "PROD_ALL_ADMIN_COMMON", Topic, Everyone),
        (Ok(c.all_replay()), "PROD_ALL_REPLAY_COMMON", Topic, Everyone),
        (Ok(c.any_swap()), "PROD_ANY_SWAP_COMMON", Queue, Competing),
        (Ok(c.any_oai()), "PROD_ANY_OAI_COMMON", Queue, Competing),
        (Ok(c.any_lifecycle()), "PROD_ANY_LIFECYCLE_COMMON", Queue, Competing),
    ] {
        let channel = channel.unwrap();
        assert_eq!((channel.name(), channel.kind(), channel.convention()), (name, kind, convention));
        let back = Channel::parse(name).unwrap();
        assert_eq!(
            (back.prefix(), back.lane(), back.replica(), back.machine(), back.instance()),
            (channel.prefix(), channel.lane(), channel.replica(), channel.machine(), channel.instance()),
            "{name}"
        );
        assert_eq!(back.environment(), "PROD");
    }
}

#[test]
fn the_parts_are_read_back() {
    let channel = Channel::parse("PROD_THIS_REPOS_CLIENT_COMMON_130_226_258_7_HCA_HIGH").unwrap();
    assert_eq!(channel.machine(), Some(MACHINE));
    let instance = channel.instance().unwrap();
    assert_eq!((instance.application(), instance.id()), ("HCA", "HIGH"));
    assert_eq!(Channel::parse("PROD_JOB_PARTIAL_FOCUSED_COMMON").unwrap().lane(), Some("FOCUSED"));
}

#[test]
fn what_is_no_channel_of_ours_is_refused() {
    for name in [
        "",
        "PROD",
        "PROD_",
        "PROD_THE_SCHED",
        "PROD_THE_SCHED_TWO",
        "PROD_THE_SCHED_COMMON_x",
        "PROD_THE_BAMON_COMMON",
        "PROD_THE_BAMON_",
        // The newer NetarchiveSuite order.
        "PROD_COMMON_THE_SCHED",
        "PROD_ALL_BA_TWO_TOPIC",
        "_THE_SCHED_COMMON",
        "PR-OD_THE_SCHED_COMMON",
        // Escaped without need: a second name for one channel.
        "PROD_THE_BAMON_%54WO",
        "PROD_THE_BAMON_%FF",
        "PROD_THIS_NODE_COMMON_host",
        "PROD_THIS_NODE_COMMON_host_node",
        "PROD_JOB_PARTIAL__COMMON",
    ] {
        assert!(Channel::parse(name).is_err(), "{name}");
    }
}

#[test]
fn what_cannot_be_named_is_refused() {
    for environment in ["", "PR OD", "PROD_1", "próð", &"x".repeat(41)] {
        let error = Channels::new(environment).unwrap_err();
        assert_eq!(error.code(), "bus-environment");
    }
    assert!(prod().the_bamon("").is_err());
    assert!(prod().the_bamon("COMMON").is_err());
    assert!(prod().the_bamon(&"x".repeat(200)).is_err());
    assert!(prod().job_partial(" ").is_err());
    assert!(Instance::new("", "1").is_err());
    assert!(Instance::new("role-x", "1").is_err());
}

/// Else a name could be read as two channels.
#[test]
fn no_prefix_begins_another() {
    for one in TABLE {
        for other in TABLE {
            let begins = other.prefix.starts_with(&format!("{}_", one.prefix));
            assert!(!begins, "{} begins {}", one.prefix, other.prefix);
        }
    }
}

proptest! {
    #[test]
    fn any_parts_are_read_back(replica in "\\PC{1,12}", machine in "\\PC{1,20}", id in "\\PC{0,8}", lane in "\\PC{1,8}") {
        let c = prod();
        let instance = Instance::new("harvester", &id).unwrap();
        for channel in [
            c.any_ba(&replica),
            c.this_node(&machine, &instance),
            c.job_snapshot(&lane),
            c.any_haco(&lane),
        ] {
            // Refused is fine (blank, reserved, too long); a name that cannot be read back is not.
            let Ok(channel) = channel else { continue };
            let back = Channel::parse(channel.name()).unwrap();
            prop_assert_eq!(back.name(), channel.name());
            prop_assert_eq!(back.lane(), channel.lane());
            prop_assert_eq!(back.replica(), channel.replica());
            prop_assert_eq!(back.machine(), channel.machine());
            prop_assert_eq!(back.instance(), channel.instance());
        }
    }

    #[test]
    fn no_name_panics(name in "PROD_(THE_BAMON|THIS_NODE|JOB_PARTIAL|ANY)_\\PC{0,30}") {
        let _ = Channel::parse(&name);
    }
}
