//! Random steps on the frontier and on a plain model of it: nothing lost, nothing twice, order, one in flight, budgets.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::job::{DomainBudget, Limits, StopReason};

const HOSTS: [(&str, &str); 5] = [
    ("h0.a.org", "a.org"),
    ("h1.a.org", "a.org"),
    ("h2.a.org", "a.org"),
    ("b.org", "b.org"),
    ("c.org", "c.org"),
];

/// Hops, and class and hops as the key has them.
const KINDS: [(&str, (u8, u32)); 4] = [("", (10, 0)), ("L", (40, 1)), ("LL", (40, 2)), ("E", (20, 1))];

const RETRY_MS: i64 = 60_000;

#[derive(Clone, Debug)]
enum Step {
    Add(Vec<(usize, u8, usize)>),
    Next,
    Done {
        which: usize,
        status: i32,
        bytes: u64,
        discovered: Vec<(usize, u8, usize)>,
    },
    /// With a try or without.
    Later {
        which: usize,
        is_try: bool,
    },
    Defer {
        which: usize,
        needs: bool,
    },
    Pass(i64),
    Reopen,
}

fn pages() -> impl Strategy<Value = Vec<(usize, u8, usize)>> {
    proptest::collection::vec((0..HOSTS.len(), 0..12_u8, 0..KINDS.len()), 0..6)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let which = 0..8_usize;
    let step = prop_oneof![
        3 => pages().prop_map(Step::Add),
        10 => Just(Step::Next),
        8 => (which.clone(), prop_oneof![6 => Just(200), 1 => Just(-4), 1 => Just(-9998)], 0..60_u64, pages())
            .prop_map(|(which, status, bytes, discovered)| Step::Done { which, status, bytes, discovered }),
        2 => (which.clone(), any::<bool>()).prop_map(|(which, is_try)| Step::Later { which, is_try }),
        2 => (which, any::<bool>()).prop_map(|(which, needs)| Step::Defer { which, needs }),
        1 => (1..100_000_i64).prop_map(Step::Pass),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..80)
}

#[derive(Default)]
struct Lane {
    in_line: BTreeMap<(u8, u32, u64), String>,
    later: BTreeMap<(i64, u64), String>,
    claimed: Option<(Where, Claim)>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Where {
    InLine((u8, u32, u64)),
    Later((i64, u64)),
}

impl Lane {
    fn head(&self, now: i64) -> Option<(Where, String)> {
        let first = self.in_line.iter().next().filter(|(key, _)| !self.is_claimed(Where::InLine(**key)));
        let due = self.later.iter().next().filter(|((time, _), _)| *time <= now);
        match (first, due) {
            (Some((key, url)), _) if key.0 == 0 => Some((Where::InLine(*key), url.clone())),
            (_, Some((key, url))) => Some((Where::Later(*key), url.clone())),
            (Some((key, url)), None) => Some((Where::InLine(*key), url.clone())),
            (None, None) => None,
        }
    }

    fn is_claimed(&self, place: Where) -> bool {
        self.claimed.as_ref().is_some_and(|(claimed, _)| *claimed == place)
    }

    fn remove(&mut self, place: Where) -> String {
        match place {
            Where::InLine(key) => self.in_line.remove(&key).unwrap(),
            Where::Later(key) => self.later.remove(&key).unwrap(),
        }
    }

    fn len(&self) -> usize {
        self.in_line.len() + self.later.len()
    }
}

struct Model {
    lanes: [Lane; HOSTS.len()],
    seen: BTreeSet<String>,
    spent: BTreeMap<&'static str, (u64, u64)>,
    finished: u64,
    sequence: u64,
    now: i64,
    done: BTreeMap<String, u32>,
}

impl Model {
    fn queue(&mut self, (host, page, kind): (usize, u8, usize)) {
        let url = format!("http://{}/{page}", HOSTS[host].0);
        if self.seen.insert(url.clone()) {
            let (class, hops) = KINDS[kind].1;
            self.sequence += 1;
            self.lanes[host].in_line.insert((class, hops, self.sequence), url);
        }
    }

    fn in_flight(&self, domain: &str) -> u64 {
        let busy = HOSTS.iter().zip(&self.lanes).filter(|((_, of), lane)| {
            *of == domain
                && lane.claimed.as_ref().is_some_and(|(place, _)| !matches!(place, Where::InLine((0, ..))))
        });
        busy.count() as u64
    }

    /// Whether a host's head may be handed out now.
    fn may(&self, host: usize, budgets: &Budgets) -> bool {
        let (domain, lane) = (HOSTS[host].1, &self.lanes[host]);
        lane.claimed.is_none() && lane.head(self.now).is_some() && {
            let (objects, bytes) = self.spent.get(domain).copied().unwrap_or_default();
            let limits = limits(budgets, domain);
            let in_flight = self.in_flight(domain);
            (limits.max_objects < 0 || (objects + in_flight) < limits.max_objects as u64)
                && (limits.max_bytes < 0 || (bytes < limits.max_bytes as u64 && in_flight == 0))
        }
    }
}

fn limits(budgets: &Budgets, domain: &str) -> Limits {
    budgets.domains.get(domain).unwrap_or(&budgets.other_domains).limits
}

fn candidates(pages: &[(usize, u8, usize)]) -> Vec<Candidate> {
    let one = |(host, page, kind): &(usize, u8, usize)| {
        found(&format!("http://{}/{page}", HOSTS[*host].0), KINDS[*kind].0)
    };
    pages.iter().map(one).collect()
}

fn host_of(claim: &Claim) -> usize {
    let text = claim.candidate.url.as_str();
    let host = text.strip_prefix("dns:").or(claim.candidate.url.host_str()).unwrap();
    HOSTS.iter().position(|(name, _)| *name == host).unwrap()
}

fn run(steps: Vec<Step>, max_objects: i64, max_bytes: i64) {
    let mut budgets = Budgets::default();
    let budget = |limits| DomainBudget { limits, ..DomainBudget::default() };
    budgets.domains.insert("a.org".into(), budget(Limits { max_objects, ..Limits::default() }));
    budgets.domains.insert("b.org".into(), budget(Limits { max_bytes, ..Limits::default() }));
    let settings = Settings { park_after: 0, ..impolite() };
    let mut bench = Bench::new(settings, budgets.clone());
    let mut model = Model {
        lanes: Default::default(),
        seen: BTreeSet::new(),
        spent: BTreeMap::new(),
        finished: 0,
        sequence: 0,
        now: 0,
        done: BTreeMap::new(),
    };
    for step in steps {
        take(&step, &mut bench, &mut model);
        compare(&bench, &model);
    }
    // To the end: all that the budgets leave, then all there is.
    for budgets in [budgets, Budgets::default()] {
        bench.budgets = budgets;
        bench.frontier().set_budgets(bench.budgets.clone(), at(model.now));
        while !take(&Step::Next, &mut bench, &mut model) {
            for which in (0..HOSTS.len()).rev() {
                let done = Step::Done { which, status: 200, bytes: 7, discovered: Vec::new() };
                take(&done, &mut bench, &mut model);
            }
            model.now += RETRY_MS / 4;
        }
        compare(&bench, &model);
    }
    assert!(model.lanes.iter().all(|lane| lane.len() == 0), "something was never handed out");
    assert!(model.done.values().all(|times| *times == 1), "{:?}", model.done);
    assert_eq!(model.done.keys().collect::<BTreeSet<_>>(), model.seen.iter().collect(), "lost");
    assert!(bench.frontier().domains(at(model.now)).iter().all(|r| r.stop_reason == StopReason::Completed));
}

/// Does the step on both; true if the frontier said that it is empty.
fn take(step: &Step, bench: &mut Bench, model: &mut Model) -> bool {
    let now = at(model.now);
    let busy: Vec<usize> = (0..HOSTS.len()).filter(|host| model.lanes[*host].claimed.is_some()).collect();
    match step {
        Step::Add(pages) => {
            bench.frontier().add(&candidates(pages), now).unwrap();
            for page in pages {
                model.queue(*page);
            }
        }
        Step::Pass(millis) => model.now += millis,
        Step::Reopen => {
            let resumed = bench.reopen(now);
            let finished = resumed.marks.get("finished").map_or(0, |mark| mark[0].into());
            assert_eq!(finished, model.finished % 256, "marks stand and fall with their batch");
            for lane in &mut model.lanes {
                lane.claimed = None;
            }
        }
        Step::Next => loop {
            match bench.next(model.now) {
                Next::Uri(claim) => {
                    let host = host_of(&claim);
                    assert!(model.may(host, &bench.budgets), "{} was not to be had", claim.candidate.url);
                    let (place, url) = model.lanes[host].head(model.now).unwrap();
                    assert_eq!(claim.candidate.url.as_str(), url, "out of order");
                    model.lanes[host].claimed = Some((place, *claim));
                }
                none => {
                    let left = (0..HOSTS.len()).find(|host| model.may(*host, &bench.budgets));
                    assert_eq!(left, None, "{none:?}, but there is something");
                    let is_idle = model.lanes.iter().all(|lane| lane.claimed.is_none());
                    assert!(is_idle || !matches!(none, Next::Empty));
                    return matches!(none, Next::Empty);
                }
            }
        },
        Step::Done { which, status, bytes, discovered } => {
            let Some(host) = busy.get(*which) else { return false };
            let (place, claim) = model.lanes[*host].claimed.take().unwrap();
            let url = model.lanes[*host].remove(place);
            let finished = Finished { discovered: candidates(discovered), ..done(claim, *status, *bytes) };
            model.finished += 1;
            let mark = ("finished".to_owned(), vec![model.finished as u8]);
            bench.frontier().finish(&[finished], &[mark], now).unwrap();
            if !matches!(place, Where::InLine((0, ..))) {
                *model.done.entry(url).or_default() += 1;
                if *status > 0 {
                    let spent = model.spent.entry(HOSTS[*host].1).or_default();
                    *spent = (spent.0 + 1, spent.1 + bytes);
                }
            }
            for page in discovered {
                model.queue(*page);
            }
        }
        Step::Later { which, is_try } => {
            let Some(host) = busy.get(*which) else { return false };
            if matches!(model.lanes[*host].claimed, Some((Where::InLine((0, ..)), _))) {
                return false;
            }
            let (place, claim) = model.lanes[*host].claimed.take().unwrap();
            let url = model.lanes[*host].remove(place);
            model.sequence += 1;
            model.lanes[*host].later.insert((model.now + RETRY_MS, model.sequence), url);
            let after = Duration::from_millis(RETRY_MS.unsigned_abs());
            let outcome =
                if *is_try { Outcome::Retry { visit: visit(-2, 0), after } } else { Outcome::Wait { after } };
            bench.finish(Finished { claim, outcome, discovered: Vec::new() }, model.now);
        }
        Step::Defer { which, needs } => {
            let Some(host) = busy.get(*which) else { return false };
            let (place, claim) = model.lanes[*host].claimed.take().unwrap();
            let name = format!("dns:{}", HOSTS[*host].0);
            // A prerequisite needs nothing itself.
            let needs = *needs && !matches!(place, Where::InLine((0, ..)));
            let prerequisites = if needs { vec![prerequisite(&name)] } else { Vec::new() };
            bench.finish(
                Finished { claim, outcome: Outcome::Defer { prerequisites }, discovered: Vec::new() },
                model.now,
            );
            if needs {
                model.sequence += 1;
                model.lanes[*host].in_line.insert((0, 1, model.sequence), name);
            }
        }
    }
    false
}

fn compare(bench: &Bench, model: &Model) {
    let counts = bench.frontier().counts(at(model.now));
    let queued: usize = model.lanes.iter().map(Lane::len).sum();
    let in_flight = model.lanes.iter().filter(|lane| lane.claimed.is_some()).count();
    assert_eq!((counts.queued, counts.in_flight), (queued as u64, in_flight as u64));
    assert_eq!(counts.finished, model.finished);
    for result in bench.frontier().domains(at(model.now)) {
        let (objects, bytes) = model.spent.get(result.domain.as_str()).copied().unwrap_or_default();
        assert_eq!((result.objects, result.bytes), (objects, bytes), "{}", result.domain);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, max_shrink_iters: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_frontier_does_what_a_plain_model_does(steps in steps(), objects in -1..9_i64, bytes in -1..150_i64) {
        run(steps, objects, bytes);
    }
}
