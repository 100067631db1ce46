use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn limit(number: i64) -> Limit {
    Limit::new(number).unwrap()
}

fn piece(configuration: i64, template: i64, bytes: i64, expected: u64) -> Piece {
    Piece {
        configuration,
        domain: configuration,
        template,
        bytes: limit(bytes),
        objects: Limit::NONE,
        expected,
    }
}

fn jobs(mut pieces: Vec<Piece>, harvest: Limits, settings: &Splitting) -> Vec<Planned> {
    sort(&mut pieces, harvest, settings);
    split(pieces, harvest, true, settings).collect()
}

/// The numbers of the configurations of each job.
fn shape(jobs: &[Planned]) -> Vec<Vec<i64>> {
    jobs.iter()
        .map(|job| job.configurations.iter().map(|(configuration, _)| *configuration).collect())
        .collect()
}

#[test]
fn each_check_of_the_chain_opens_a_new_job() {
    let base = Splitting::default();
    let none = Limits::NONE;
    let harvest = |bytes| Limits { bytes: limit(bytes), ..Limits::NONE };
    let same_domain = |a: Piece, domain| Piece { domain, ..a };
    for (pieces, harvest, settings, expected, why) in [
        (vec![piece(1, 1, -1, 10), piece(2, 1, -1, 10)], none, base.clone(), vec![vec![1, 2]], "alike"),
        (
            vec![same_domain(piece(1, 1, -1, 10), 7), same_domain(piece(2, 1, -1, 10), 7)],
            none,
            base.clone(),
            vec![vec![1], vec![2]],
            "a domain is in a job once",
        ),
        (
            (1..=5).map(|n| piece(n, 1, -1, 10)).collect(),
            none,
            Splitting { config_chunk_size: 2, ..base.clone() },
            vec![vec![1, 2], vec![3, 4], vec![5]],
            "no more than config_chunk_size",
        ),
        (
            vec![piece(1, 1, -1, 10), piece(2, 2, -1, 10)],
            none,
            base.clone(),
            vec![vec![1], vec![2]],
            "one template",
        ),
        (
            vec![piece(1, 1, 100, 10), piece(2, 1, 200, 10)],
            none,
            base.clone(),
            vec![vec![2], vec![1]],
            "byte limits differ",
        ),
        (
            vec![piece(1, 1, 100, 10), piece(2, 1, 200, 10), piece(3, 1, -1, 10)],
            harvest(100),
            base.clone(),
            vec![vec![1, 2, 3]],
            "the harvest's byte limit rules them all",
        ),
        (
            vec![piece(1, 1, 50, 10), piece(2, 1, 200, 10), piece(3, 1, 50, 10)],
            harvest(100),
            base.clone(),
            vec![vec![2], vec![1, 3]],
            "a tighter one than the harvest's goes with its equals",
        ),
        (
            vec![piece(1, 1, -1, 5_000_000), piece(2, 1, -1, 3_000_000), piece(3, 1, -1, 1_000_000)],
            none,
            base.clone(),
            vec![vec![1, 2], vec![3]],
            "no more than max_total_size, which 8,000,000 just is",
        ),
        (
            vec![piece(1, 1, -1, 20_000), piece(2, 1, -1, 200)],
            none,
            base.clone(),
            vec![vec![1, 2]],
            "a hundred times is allowed",
        ),
        (
            vec![piece(1, 1, -1, 20_200), piece(2, 1, -1, 200)],
            none,
            base.clone(),
            vec![vec![1], vec![2]],
            "101 times is not",
        ),
        (
            vec![piece(1, 1, -1, 2001), piece(2, 1, -1, 1)],
            none,
            base.clone(),
            vec![vec![1, 2]],
            "a difference of 2,000 does not count",
        ),
        (
            vec![piece(1, 1, -1, 2002), piece(2, 1, -1, 1)],
            none,
            base.clone(),
            vec![vec![1], vec![2]],
            "one of 2,001 does",
        ),
        (
            vec![piece(1, 1, -1, 100), piece(2, 1, -1, 0)],
            none,
            base.clone(),
            vec![vec![1, 2]],
            "nothing counts as one",
        ),
        (
            vec![piece(1, 1, -1, 9_000_000), piece(2, 1, -1, 8_999_999)],
            none,
            base.clone(),
            vec![vec![1], vec![2]],
            "too large a configuration has a job of its own",
        ),
    ] {
        assert_eq!(shape(&jobs(pieces, harvest, &settings)), expected, "{why}");
    }
}

#[test]
fn object_limits_part_configurations_only_when_asked_to() {
    let with_objects = |n, objects| Piece { objects: limit(objects), ..piece(n, 1, -1, 10) };
    let pieces = || vec![with_objects(1, 10), with_objects(2, 20)];
    let by_objects = Splitting { split_by_object_limit: true, ..Splitting::default() };
    assert_eq!(shape(&jobs(pieces(), Limits::NONE, &Splitting::default())), [vec![1, 2]]);
    assert_eq!(shape(&jobs(pieces(), Limits::NONE, &by_objects)), [vec![1], vec![2]]);
    let harvest = Limits { objects: limit(10), ..Limits::NONE };
    assert_eq!(shape(&jobs(pieces(), harvest, &by_objects)), [vec![1, 2]]);
}

#[test]
fn fixed_count_jobs_hold_equal_budgets_and_so_many() {
    let settings = Splitting {
        method: Method::FixedCount,
        fixed_count_snapshot: 3,
        fixed_count_focused: 1,
        ..Splitting::default()
    };
    let mut pieces: Vec<_> = (1..=4).map(|n| piece(n, 1, 100, n as u64 * 1_000_000)).collect();
    pieces.push(piece(5, 1, 0, 0));
    pieces.push(Piece { objects: Limit::NOTHING, ..piece(6, 1, 100, 0) });
    pieces.push(piece(7, 2, 100, 1));
    assert_eq!(
        shape(&jobs(pieces.clone(), Limits::NONE, &settings)),
        [vec![1, 2, 3], vec![4], vec![5, 6], vec![7]]
    );
    sort(&mut pieces, Limits::NONE, &settings);
    assert_eq!(split(pieces, Limits::NONE, false, &settings).count(), 7, "one each in a selective harvest");
}

#[test]
fn a_job_has_the_limits_of_its_byte_limit_and_the_harvest() {
    let harvest = Limits { bytes: limit(100), objects: limit(7), running_s: limit(60) };
    let made = jobs(vec![piece(1, 1, 50, 1), piece(2, 1, -1, 1)], harvest, &Splitting::default());
    assert_eq!(made[0].limits, harvest);
    assert_eq!(made[1].limits, Limits { bytes: limit(50), ..harvest });
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let sizes = prop_oneof![Just(0u64), 1..50u64, 1000..5000u64, 100_000..9_000_000u64];
    let limits = || prop_oneof![Just(-1i64), Just(0), Just(100), Just(1_000_000)];
    let one = (0..60i64, 0..3i64, limits(), limits(), sizes);
    proptest::collection::vec(one, 0..120).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        numbered
            .map(|(n, (domain, template, bytes, objects, expected))| Piece {
                configuration: n as i64,
                domain,
                template,
                bytes: limit(bytes),
                objects: limit(objects),
                expected,
            })
            .collect()
    })
}

fn settings() -> impl Strategy<Value = Splitting> {
    (any::<bool>(), any::<bool>(), 1..20u32, 1..10_000_000u64, 1..200u64, 0..5000u64).prop_map(
        |(fixed, by_objects, chunk, total, relative, absolute)| Splitting {
            method: if fixed { Method::FixedCount } else { Method::Balanced },
            config_chunk_size: chunk,
            max_total_size: total,
            max_relative_size_difference: relative,
            min_absolute_size_difference: absolute,
            split_by_object_limit: by_objects,
            fixed_count_focused: chunk,
            fixed_count_snapshot: chunk,
        },
    )
}

proptest! {
    #[test]
    fn no_configuration_is_lost_or_doubled_and_every_job_satisfies_the_chain(
        pieces in pieces(), settings in settings(), bytes in prop_oneof![Just(-1i64), Just(100), Just(5000)], snapshot: bool,
    ) {
        let harvest = Limits { bytes: limit(bytes), ..Limits::NONE };
        let by_number: BTreeMap<_, _> = pieces.iter().map(|piece| (piece.configuration, *piece)).collect();
        let mut sorted = pieces.clone();
        sort(&mut sorted, harvest, &settings);
        let made: Vec<_> = split(sorted, harvest, snapshot, &settings).collect();
        let mut placed: Vec<i64> = shape(&made).concat();
        placed.sort_unstable();
        prop_assert_eq!(placed, by_number.keys().copied().collect::<Vec<_>>());
        for job in &made {
            let inside: Vec<_> = job.configurations.iter().map(|(number, _)| by_number[number]).collect();
            let sizes: Vec<_> = inside.iter().map(|piece| piece.expected).collect();
            let domains: HashSet<_> = inside.iter().map(|piece| piece.domain).collect();
            prop_assert_eq!(domains.len(), inside.len());
            prop_assert!(!inside.is_empty() && inside.len() <= settings.config_chunk_size as usize);
            prop_assert!(inside.iter().all(|piece| piece.template == job.template));
            prop_assert_eq!(job.expected_objects, sizes.iter().sum::<u64>());
            prop_assert!(job.configurations.iter().all(|(number, expected)| by_number[number].expected == *expected));
            if settings.method == Method::FixedCount {
                prop_assert!(inside.iter().all(|piece| piece.budget() == inside[0].budget()));
                continue;
            }
            prop_assert!(inside.iter().all(|piece| piece.bytes.tighter(harvest.bytes) == job.limits.bytes));
            // A configuration that is too large by itself still has a job of its own.
            let sum: u64 = sizes.iter().sum();
            let counted = sizes.iter().filter(|size| **size > 0).count();
            prop_assert!(sum <= settings.max_total_size || counted == 1, "{:?}", sizes);
            let (smallest, largest) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            prop_assert!(
                largest - smallest <= settings.min_absolute_size_difference
                    || largest / smallest.max(&1) <= settings.max_relative_size_difference
            );
        }
    }
}
