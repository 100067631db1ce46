//! The life of one file in the archive, explored until no new state appears.
//!
//! Every state that deposits, uploads, answers, lost messages, crashes, restored databases, audits, repairs and decisions of
//! two people can lead to is visited once. In none of them is a deposit acknowledged, or a copy called complete, that
//! is not what the depositor handed in. The transitions are those of the program: the state machine of a copy
//! (`store_state::step`), the writes of stores and audits (`copy_row::CopyRow`), the vote (`vote::vote`) and the rule for
//! acknowledging (`store_state::acknowledged`). The conformance suite of `grange-db` compares the rows that the SQL acts
//! write with the same functions, for every row and every answer.
//!
//! What lies on a disk is not part of a state: disks can lose or change bytes at any moment, so every answer is possible
//! at every moment. For the same reason a restored database needs no transition of its own: its rows are those of an earlier
//! state, and the disks are arbitrary in every state. It also makes all replicas alike, so states that differ only in the
//! order of replicas are one.
//!
//! Kinds of replicas matter to one step only: a checksum replica is no source of bytes for a repair. So the states are the same
//! for all kinds, and that audits agree is looked at with every replica in turn as the checksum replica.
//!
//! `cargo test` explores two replicas; `make model` (`GRANGE_MODEL=full`) also three, and four: three with bytes and one of
//! checksums.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use grange_model::store_state::{acknowledged, step};
use grange_model::{
    AuditAnswer, Ballot, CopyRow, CopyState, Presence, StoreAction, StoreEvent, UNREADABLE, UploadState,
    Verdict, vote,
};

/// Uploads that are tried again when the replica says it has nothing; the setting's default is 1.
const RETRIES: u32 = 1;

/// What a replica can answer, or a depositor hand in. The two contents stand for any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Answer {
    Nothing,
    A,
    B,
    Unreadable,
    /// A list names the file with another size; nobody has read it.
    OtherSize,
}

const CONTENTS: [Answer; 2] = [Answer::A, Answer::B];
const ANSWERS: [Answer; 5] = [Answer::Nothing, Answer::A, Answer::B, Answer::Unreadable, Answer::OtherSize];
/// A replica that is asked for the checksum of one file reads it.
const CHECKSUMS: [Answer; 4] = [Answer::Nothing, Answer::A, Answer::B, Answer::Unreadable];

impl Answer {
    const fn text(self) -> &'static str {
        match self {
            Self::Nothing => "",
            Self::A => "A",
            Self::B => "B",
            Self::Unreadable => UNREADABLE,
            Self::OtherSize => "size=9",
        }
    }
}

/// How far the copy is in the deposit or healing under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Turn {
    /// Nothing is under way, or the copy's turn has yet to come.
    Waits,
    /// The next thing to do about it.
    Asks,
    Uploads,
    /// Over, without the depositor's checksum as answer.
    Over,
    /// The replica answered the depositor's checksum.
    AnsweredEqual,
}

/// One copy as its row says, and its part in what is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Copy {
    state: u8,
    presence: u8,
    verdict: u8,
    answer: Answer,
    attempts: u8,
    turn: Turn,
}

const STATES: [UploadState; 5] = [
    UploadState::Unknown,
    UploadState::UploadStarted,
    UploadState::DataUploaded,
    UploadState::UploadCompleted,
    UploadState::UploadFailed,
];
const PRESENCES: [Presence; 3] = [Presence::Unknown, Presence::Ok, Presence::Missing];
const VERDICTS: [Verdict; 3] = [Verdict::Unknown, Verdict::Ok, Verdict::Corrupt];

fn index<T: PartialEq>(all: &[T], one: &T) -> u8 {
    all.iter().position(|other| other == one).unwrap() as u8
}

impl Copy {
    const fn new() -> Self {
        Self { state: 0, presence: 0, verdict: 0, answer: Answer::Nothing, attempts: 0, turn: Turn::Waits }
    }
    const fn state(self) -> UploadState {
        STATES[self.state as usize]
    }
    const fn presence(self) -> Presence {
        PRESENCES[self.presence as usize]
    }
    const fn verdict(self) -> Verdict {
        VERDICTS[self.verdict as usize]
    }
    fn with(self, state: UploadState, presence: Presence, verdict: Verdict, answer: Answer) -> Self {
        let (state, presence) = (index(&STATES, &state), index(&PRESENCES, &presence));
        Self { state, presence, verdict: index(&VERDICTS, &verdict), answer, ..self }
    }
    fn row(self) -> CopyRow<Answer> {
        let checksum = (self.answer != Answer::Nothing).then_some(self.answer);
        CopyRow { state: self.state(), presence: self.presence(), verdict: self.verdict(), checksum }
    }
    fn with_row(self, row: CopyRow<Answer>) -> Self {
        self.with(row.state, row.presence, row.verdict, row.checksum.unwrap_or(Answer::Nothing))
    }
    fn machine(self) -> CopyState {
        CopyState { state: self.state(), attempts: u32::from(self.attempts) }
    }
    fn at(self, machine: CopyState) -> Self {
        Self { state: index(&STATES, &machine.state), attempts: machine.attempts as u8, ..self }
    }
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Work {
    None,
    /// A depositor has these bytes, and waits for an answer.
    Deposit(Answer),
    /// The queue completes copies by the record it saw.
    Healing(Answer),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State<const N: usize> {
    /// The recorded checksum; nothing before the first deposit, or in a database that is older than the file.
    record: Answer,
    work: Work,
    copies: [Copy; N],
}

impl<const N: usize> State<N> {
    fn code(&self) -> u64 {
        let mut copies = self.copies;
        copies.sort_unstable();
        let work = match self.work {
            Work::None => 0,
            Work::Deposit(content) => content as u64,
            Work::Healing(content) => 2 + content as u64,
        };
        let mut code = self.record as u64 * 5 + work;
        for copy in copies {
            for (value, of) in [
                (u64::from(copy.state), 5),
                (u64::from(copy.presence), 3),
                (u64::from(copy.verdict), 3),
                (copy.answer as u64, 5),
                (u64::from(copy.attempts), 2),
                (copy.turn as u64, 5),
            ] {
                code = code * of + value;
            }
        }
        code
    }

    fn decode(mut code: u64) -> Self {
        let mut take = |of: u64| {
            let value = code % of;
            code /= of;
            value
        };
        let mut copies = [Copy::new(); N];
        for copy in copies.iter_mut().rev() {
            copy.turn =
                [Turn::Waits, Turn::Asks, Turn::Uploads, Turn::Over, Turn::AnsweredEqual][take(5) as usize];
            copy.attempts = take(2) as u8;
            copy.answer = ANSWERS[take(5) as usize];
            (copy.verdict, copy.presence, copy.state) = (take(3) as u8, take(3) as u8, take(5) as u8);
        }
        let work = match take(5) {
            0 => Work::None,
            one @ 1..=2 => Work::Deposit(ANSWERS[one as usize]),
            other => Work::Healing(ANSWERS[other as usize - 2]),
        };
        Self { record: ANSWERS[take(5) as usize], work, copies }
    }

    /// The vote, and what it writes: `judge` in `grange-db`.
    fn judge(&mut self) {
        let ballot = |(replica, copy): (usize, &Copy)| Ballot {
            replica,
            presence: copy.presence(),
            checksum: (copy.answer != Answer::Nothing).then(|| copy.answer.text().to_owned()),
        };
        let ballots: Vec<_> = self.copies.iter().enumerate().map(ballot).collect();
        for (replica, verdict) in vote(self.record.text(), &ballots).verdicts {
            let copy = self.copies[replica];
            self.copies[replica] = copy.with(verdict.upload_state(), copy.presence(), verdict, copy.answer);
        }
    }

    fn disputed(&self) -> bool {
        self.copies.iter().any(|copy| copy.row().contradicts(&self.record))
    }

    /// What an audit of one replica writes: `turn` in `grange-db`.
    fn audit(&mut self, replica: usize, answer: Answer) {
        let answer = match answer {
            Answer::Nothing => AuditAnswer::Missing,
            answer => AuditAnswer::Answered(answer),
        };
        let copy = self.copies[replica];
        self.copies[replica] = copy.with_row(copy.row().after_audit(answer, &self.record));
        if self.disputed() {
            self.judge();
        }
    }

    /// What a worker writes about one copy: `advance` in `grange-db`, by the record as it is at that moment.
    fn advance(&mut self, replica: usize, copy: Copy, answered: bool) {
        self.copies[replica] = copy.with_row(copy.row().kept_under(&self.record));
        if answered && self.disputed() {
            self.judge();
        }
    }

    fn all_over(&self) -> bool {
        self.copies.iter().all(|copy| matches!(copy.turn, Turn::Over | Turn::AnsweredEqual))
    }

    fn idle(mut self) -> Self {
        self.work = Work::None;
        for copy in &mut self.copies {
            copy.turn = Turn::Waits;
        }
        self
    }

    fn with_turns(mut self, work: Work) -> Self {
        self = self.idle();
        self.work = work;
        self
    }

    /// Every state that can come next. `Err` names what must never happen.
    fn next(&self, out: &mut Vec<Self>) -> Result<(), String> {
        out.clear();
        if self.work == Work::None {
            for content in CONTENTS {
                let mut next = self.clone();
                if self.record == Answer::Nothing {
                    next.record = content;
                } else if self.record != content {
                    // Refused: nothing changes.
                    continue;
                }
                out.push(next.with_turns(Work::Deposit(content)));
            }
        }
        if self.record == Answer::Nothing {
            return Ok(());
        }
        if self.work == Work::None {
            out.push(self.clone().with_turns(Work::Healing(self.record)));
        } else {
            // A killed process leaves the rows as they are; so does one whose lease was lost.
            out.push(self.clone().idle());
            self.drive(out)?;
        }
        for replica in 0..N {
            for answer in ANSWERS {
                let mut next = self.clone();
                next.audit(replica, answer);
                out.push(next);
            }
            let mut next = self.clone();
            let copy = next.copies[replica];
            next.copies[replica] = copy.with_row(copy.row().after_audit(AuditAnswer::Listed, &self.record));
            out.push(next);
            // A repair of a corrupt copy, or of an undecided one by two people, takes it out and heals.
            let copy = self.copies[replica];
            let wrong = copy.presence() == Presence::Ok && copy.answer != self.record;
            if self.work == Work::None && wrong && copy.verdict() != Verdict::Ok {
                out.push(self.clone().with_turns(Work::Healing(self.record)));
            }
        }
        // Two people decide that the copies are right, also while something is under way.
        let mut next = self.clone();
        next.record = if self.record == Answer::A { Answer::B } else { Answer::A };
        next.judge();
        // Copies without an answer of their own are complete under no record that they did not answer.
        out.push(next);
        Ok(())
    }

    /// One step of the worker: one copy at a time, in any order. Copies under way touch only their own rows, and the vote
    /// is taken anew with each.
    fn drive(&self, out: &mut Vec<Self>) -> Result<(), String> {
        let (reference, begins) = match self.work {
            Work::Deposit(content) => (content, StoreEvent::Deposit),
            Work::Healing(content) => (content, StoreEvent::Due),
            Work::None => return Ok(()),
        };
        let under_way = self.copies.iter().position(|copy| matches!(copy.turn, Turn::Asks | Turn::Uploads));
        let turn_of = |action: Option<StoreAction>, over: Turn| match action {
            Some(StoreAction::AskChecksum) => Turn::Asks,
            Some(StoreAction::Upload) => Turn::Uploads,
            None => over,
        };
        let Some(replica) = under_way else {
            for replica in (0..N).filter(|replica| self.copies[*replica].turn == Turn::Waits) {
                let copy = self.copies[replica];
                let (machine, action) = step(copy.machine(), begins, RETRIES);
                let mut next = self.clone();
                let written = Copy { turn: turn_of(action, Turn::Over), ..copy.at(machine) };
                next.advance(replica, written, false);
                out.push(next);
            }
            return self.end(reference, out);
        };
        let copy = self.copies[replica];
        let mut follow = |event: StoreEvent, written: Copy, answered: bool, over: Turn| {
            let (machine, action) = step(written.machine(), event, RETRIES);
            let mut next = self.clone();
            next.advance(replica, Copy { turn: turn_of(action, over), ..written.at(machine) }, answered);
            out.push(next);
        };
        if copy.turn == Turn::Uploads {
            follow(StoreEvent::Taken, copy, false, Turn::Over);
            follow(StoreEvent::Refused, copy, false, Turn::Over);
            return Ok(());
        }
        follow(StoreEvent::Unanswered, copy, false, Turn::Over);
        for answer in CHECKSUMS {
            let (event, presence, verdict) = match answer {
                Answer::Nothing => (StoreEvent::Missing, Presence::Missing, Verdict::Unknown),
                answer if answer == reference => (StoreEvent::Equal, Presence::Ok, Verdict::Ok),
                _ => (StoreEvent::Different, Presence::Ok, Verdict::Unknown),
            };
            let over = if event == StoreEvent::Equal { Turn::AnsweredEqual } else { Turn::Over };
            follow(event, copy.with(copy.state(), presence, verdict, answer), true, over);
        }
        Ok(())
    }

    /// The end of a deposit or healing: the depositor is answered.
    fn end(&self, reference: Answer, out: &mut Vec<Self>) -> Result<(), String> {
        if !self.all_over() {
            return Ok(());
        }
        let answered = self.copies.iter().map(|copy| copy.turn == Turn::AnsweredEqual);
        // The depositor is refused when the record is another by now.
        let acknowledges =
            matches!(self.work, Work::Deposit(_)) && acknowledged(answered) && self.record == reference;
        if acknowledges && self.copies.iter().any(|copy| copy.turn != Turn::AnsweredEqual) {
            return Err("a deposit was acknowledged that not every replica has answered".to_owned());
        }
        out.push(self.clone().idle());
        Ok(())
    }

    /// What must hold in every state.
    fn broken(&self) -> Option<String> {
        for copy in &self.copies {
            let complete = copy.state() == UploadState::UploadCompleted;
            if complete && copy.answer != self.record {
                return Some(format!("a copy is complete that does not answer the record: {copy:?}"));
            }
            if complete && copy.presence() == Presence::Missing {
                return Some(format!("a missing copy is complete: {copy:?}"));
            }
            if copy.verdict() == Verdict::Ok && copy.answer != self.record {
                return Some(format!("a copy is called good that does not answer the record: {copy:?}"));
            }
            if copy.verdict() == Verdict::Corrupt && copy.answer == self.record {
                return Some(format!("a copy is called corrupt that answers the record: {copy:?}"));
            }
        }
        None
    }

    /// Audit, repair and audit again agree, whatever the disks hold. `disks` are what the replicas have from now on;
    /// `kept` is the checksum replica, if there is one.
    fn audits_agree(&self, disks: &[Answer; N], kept: Option<usize>) -> Option<String> {
        let audited = |state: &Self, disks: &[Answer; N]| {
            let mut next = state.clone();
            for (replica, answer) in disks.iter().enumerate() {
                next.audit(replica, *answer);
            }
            next
        };
        let first = audited(self, disks);
        if audited(&first, disks) != first {
            return Some(format!("a second audit says otherwise: {disks:?}"));
        }
        // What a repair of all does: every missing or corrupt copy is made again from one with bytes that answers the record.
        let repairable =
            |copy: &Copy| copy.presence() == Presence::Missing || copy.verdict() == Verdict::Corrupt;
        let source = (0..N).any(|replica| Some(replica) != kept && disks[replica] == self.record);
        if !source {
            return None;
        }
        let mut repaired = *disks;
        for (disk, copy) in repaired.iter_mut().zip(&first.copies) {
            if repairable(copy) {
                *disk = self.record;
            }
        }
        let last = audited(&first, &repaired);
        for (before, after) in first.copies.iter().zip(&last.copies) {
            // An undecided copy may turn out corrupt when the record has got more voices.
            let was_undecided = before.presence() == Presence::Ok && before.verdict() == Verdict::Unknown;
            if repairable(after) && !was_undecided {
                return Some(format!("a repaired copy is wrong again: {disks:?}, checksum replica {kept:?}"));
            }
            if before.verdict() == Verdict::Ok && after.verdict() != Verdict::Ok {
                return Some(format!("a repair spoiled a good copy: {disks:?}, checksum replica {kept:?}"));
            }
        }
        None
    }

    /// The rows alone, which are all that audits and repairs go by.
    fn rows(&self) -> (Answer, [Copy; N]) {
        let mut copies = self.clone().idle().copies;
        for copy in &mut copies {
            copy.attempts = 0;
        }
        copies.sort_unstable();
        (self.record, copies)
    }
}

/// Fast enough for tens of millions of codes; they are spread by a multiplication.
#[derive(Default)]
struct CodeHasher(u64);

impl Hasher for CodeHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {
        unreachable!("codes are numbers")
    }
    fn write_u64(&mut self, code: u64) {
        let mixed = code.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

type Seen = HashMap<u64, (u64, u32), BuildHasherDefault<CodeHasher>>;

/// How large the space is.
struct Extent {
    states: usize,
    transitions: u64,
    longest_path: u32,
    /// States of the rows in which audits were tried, each with every content of the disks and every kind of replicas.
    audited: usize,
}

/// Visits every state from the empty database on.
fn explore<const N: usize>() -> Extent {
    let start = State::<N> { record: Answer::Nothing, work: Work::None, copies: [Copy::new(); N] };
    let mut seen = Seen::default();
    let mut queue = VecDeque::from([start.code()]);
    seen.insert(start.code(), (0, 0));
    let (mut transitions, mut longest_path, mut out) = (0_u64, 0, Vec::new());
    let mut audited = HashSet::new();
    let mut configurations = vec![[Answer::Nothing; N]];
    for replica in 0..N {
        configurations = configurations
            .into_iter()
            .flat_map(|disks| {
                ANSWERS.map(|answer| {
                    let mut disks = disks;
                    disks[replica] = answer;
                    disks
                })
            })
            .collect();
    }
    while let Some(code) = queue.pop_front() {
        let state = State::<N>::decode(code);
        let depth = seen[&code].1;
        let mut found = state.broken().or_else(|| state.next(&mut out).err());
        if found.is_none() && state.record != Answer::Nothing && audited.insert(state.rows()) {
            let kinds = || (0..N).map(Some).chain([None]);
            let mut tried = configurations.iter().flat_map(|disks| kinds().map(move |kept| (disks, kept)));
            found = tried.find_map(|(disks, kept)| state.audits_agree(disks, kept));
        }
        if let Some(problem) = found {
            panic!("{problem}\n{}", path(&seen, code, State::<N>::decode));
        }
        for next in &out {
            transitions += 1;
            let next = next.code();
            seen.entry(next).or_insert_with(|| {
                queue.push_back(next);
                longest_path = longest_path.max(depth + 1);
                (code, depth + 1)
            });
        }
    }
    Extent { states: seen.len(), transitions, longest_path, audited: audited.len() }
}

/// How a state is reached, for people.
fn path<S: std::fmt::Debug>(seen: &Seen, mut code: u64, decode: fn(u64) -> S) -> String {
    let mut lines = Vec::new();
    loop {
        lines.push(format!("{:?}", decode(code)));
        match seen[&code] {
            (_, 0) => break,
            (from, _) => code = from,
        }
    }
    lines.reverse();
    lines.join("\n")
}

#[test]
fn a_state_is_itself_after_encoding() {
    let mut out = Vec::new();
    let start = State::<3> { record: Answer::B, work: Work::None, copies: [Copy::new(); 3] };
    start.next(&mut out).unwrap();
    for state in out {
        let code = state.code();
        assert_eq!(State::<3>::decode(code).code(), code);
    }
}

#[test]
fn no_reachable_state_acknowledges_or_completes_what_the_depositor_did_not_say() {
    let full = std::env::var_os("GRANGE_MODEL").is_some_and(|size| size == "full");
    let print = |replicas: &str, extent: &Extent| {
        println!(
            "store, {replicas} replicas: {} states, {} transitions, longest path {}; audits agree in all {} states of the rows",
            extent.states, extent.transitions, extent.longest_path, extent.audited
        );
    };
    let two = explore::<2>();
    print("two", &two);
    assert!(two.states > 1_000 && two.audited > 100, "{} states, {} audited", two.states, two.audited);
    if full {
        print("three", &explore::<3>());
        print("four", &explore::<4>());
    }
}
