use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn start(asked: Asked) -> Position {
    Position::start(asked, None, 1, at("2026-01-01T00:00:00Z"))
}

fn page(records: u64, token: Option<&str>) -> Seen {
    let response_date = Some(at("2026-01-01T00:00:00Z"));
    Seen { response_date, records, token: token.map(str::to_owned), ..Seen::default() }
}

fn error(code: ErrorCode) -> Seen {
    Seen { errors: vec![OaiError::new(code, "")], ..page(0, None) }
}

/// What follows on each of these pages.
fn walk(position: &mut Position, pages: &[Seen]) -> Vec<Next> {
    let mut tokens = Tokens::default();
    pages.iter().map(|page| position.step(page, &mut tokens, at("2026-01-02T00:00:00Z"))).collect()
}

#[test]
fn a_list_ends_where_it_ends_and_not_before() {
    let size = |size, page: Seen| Seen { size: Some(size), ..page };
    type Case = (&'static str, Vec<Seen>, fn(&Next) -> bool);
    let done = |next: &Next| matches!(next, Next::Done(None));
    let odd = |next: &Next| matches!(next, Next::Done(Some(_)));
    let again = |next: &Next| matches!(next, Next::List(Some(_)));
    let failed = |next: &Next| matches!(next, Next::Fail(_));
    let on = |next: &Next| *next == Next::Page;
    let cases: Vec<Case> = vec![
        ("an unsplit list", vec![page(2, None)], done),
        ("an empty repository", vec![error(ErrorCode::NoRecordsMatch)], done),
        ("two pages", vec![page(2, Some("a")), page(1, None)], done),
        ("an empty page in between", vec![page(2, Some("a")), page(0, Some("b"))], on),
        ("the same token again", vec![page(2, Some("a")), page(2, Some("a"))], odd),
        ("a ring of tokens", vec![page(2, Some("a")), page(2, Some("b")), page(2, Some("a"))], odd),
        ("one token too many", vec![size(2, page(2, Some("a"))), error(ErrorCode::BadResumptionToken)], done),
        (
            "a token too many, told as no records",
            vec![size(2, page(2, Some("a"))), error(ErrorCode::NoRecordsMatch)],
            done,
        ),
        ("an expired token", vec![size(9, page(2, Some("a"))), error(ErrorCode::BadResumptionToken)], again),
        ("no such format", vec![error(ErrorCode::CannotDisseminateFormat)], failed),
        ("an error nobody knows", vec![error(ErrorCode::Other("InternalException".to_owned()))], failed),
    ];
    for (what, pages, expected) in cases {
        let nexts = walk(&mut start(Asked::everything()), &pages);
        assert!(expected(nexts.last().unwrap()), "{what}: {nexts:?}");
    }
    let mut forever = start(Asked::everything());
    let empty: Vec<_> = (0..20).map(|n| page(0, Some(&n.to_string()))).collect();
    assert!(walk(&mut forever, &empty).iter().any(odd), "empty pages without end");
    assert!(forever.shortcoming(true).is_some());
    let mut ring = start(Asked::everything());
    walk(&mut ring, &[page(2, Some("a")), page(2, Some("b"))]);
    let now = at("2026-01-02T00:00:00Z");
    assert!(odd(&ring.began_again(&mut Tokens::default(), now)), "the list again under other tokens");
    assert!(ring.shortcoming(true).is_some());
}

#[test]
fn a_token_that_always_expires_ends_in_failure() {
    let mut position = start(Asked::everything());
    let pages: Vec<_> =
        (0..20).flat_map(|_| [page(2, Some("a")), error(ErrorCode::BadResumptionToken)]).collect();
    let nexts = walk(&mut position, &pages);
    assert_eq!(nexts.iter().filter(|next| matches!(next, Next::List(_))).count(), RESTARTS_MAX as usize);
    assert!(matches!(nexts.last(), Some(Next::Fail(_))));
}

#[test]
fn records_outside_of_the_window_mean_one_list_of_everything() {
    let mut position = start(Asked { from: Some(at("2025-06-01T00:00:00Z")), ..Asked::everything() });
    assert!(!position.is_full());
    let nexts = walk(&mut position, &[Seen { outside: 1, ..page(9, Some("a")) }]);
    assert!(matches!(nexts[..], [Next::List(Some(_))]));
    assert!(position.windows_broken && position.is_full());
    assert_eq!(
        position.request(Granularity::Second),
        Request::ListRecords(Selection::all("oai_dc")),
        "without dates"
    );
    let nexts = walk(&mut position, &[Seen { outside: 5, ..page(9, None) }]);
    assert_eq!(nexts, [Next::Done(None)]);
}

#[test]
fn windows_follow_each_other_to_the_servers_present() {
    let asked = Asked { slices: Slices::Month, ..Asked::everything() };
    let mut position =
        Position::start(asked, Some(at("2025-11-15T00:00:00Z")), 1, at("2026-01-20T00:00:00Z"));
    let nexts = walk(&mut position, &[page(1, None), error(ErrorCode::NoRecordsMatch), page(1, None)]);
    assert_eq!(nexts, [Next::List(None), Next::List(None), Next::Done(None)]);
}

#[test]
fn the_next_harvest_begins_one_granule_before_the_first_answer() {
    let mut position = start(Asked::everything());
    walk(
        &mut position,
        &[page(1, Some("a")), Seen { response_date: Some(at("2026-02-02T00:00:00Z")), ..page(1, None) }],
    );
    assert_eq!(position.next_from(Granularity::Second), Some(at("2025-12-31T23:59:59Z")));
    assert_eq!(position.next_from(Granularity::Day), Some(at("2025-12-31T00:00:00Z")));
    position.asked.until = Some(at("2025-03-01T00:00:00Z"));
    assert_eq!(
        position.next_from(Granularity::Day),
        Some(at("2025-03-01T00:00:00Z")),
        "not beyond what was asked"
    );
    let kept = serde_json::to_string(&position).unwrap();
    assert_eq!(serde_json::from_str::<Position>(&kept).unwrap(), position);
}

#[test]
fn a_list_that_lacks_records_says_why_and_a_whole_one_nothing() {
    let size = |size, page: Seen| Seen { size: Some(size), ..page };
    let error_beside = |page: Seen| Seen { errors: vec![OaiError::new(ErrorCode::BadArgument, "")], ..page };
    for (what, pages, certain, by_size) in [
        ("whole", vec![page(2, Some("a")), page(1, None)], false, false),
        ("as many as it says", vec![size(3, page(2, Some("a"))), size(3, page(1, None))], false, false),
        ("more than it says", vec![size(3, page(2, Some("a"))), size(3, page(2, None))], false, false),
        ("fewer than it says", vec![size(4, page(2, Some("a"))), size(4, page(1, None))], false, true),
        ("fewer than its first page says", vec![size(4, page(2, Some("a"))), page(1, None)], false, true),
        ("its last page says fewer", vec![size(4, page(2, Some("a"))), size(3, page(1, None))], false, false),
        ("a token again", vec![page(2, Some("a")), page(2, Some("a"))], true, true),
        (
            "a token again, enough deliveries",
            vec![size(4, page(2, Some("a"))), page(2, Some("a"))],
            true,
            true,
        ),
        ("an error on its last page", vec![page(2, Some("a")), error_beside(page(1, None))], true, true),
        ("an error on another page", vec![error_beside(page(2, Some("a"))), page(1, None)], false, false),
        (
            "begun again and whole",
            vec![size(9, page(2, Some("a"))), error(ErrorCode::BadResumptionToken), size(3, page(3, None))],
            false,
            false,
        ),
    ] {
        let mut position = start(Asked::everything());
        walk(&mut position, &pages);
        assert!(position.done, "{what}");
        assert_eq!(position.shortcoming(true).is_some(), certain, "{what}");
        assert_eq!(position.shortcoming(false).is_some(), by_size, "{what}");
    }
    // A window that is short makes the harvest so, though those behind it are whole.
    let asked = Asked { slices: Slices::Month, ..Asked::everything() };
    let mut windows = Position::start(asked, Some(at("2025-12-15T00:00:00Z")), 1, at("2026-01-01T00:00:00Z"));
    walk(&mut windows, &[size(5, page(4, None)), page(1, None)]);
    assert!(windows.done && windows.shortcoming(false).is_some());
}

#[test]
fn a_list_that_was_begun_again_is_doubtful() {
    let mut position = start(Asked::everything());
    walk(&mut position, &[page(2, Some("a")), error(ErrorCode::BadResumptionToken), page(3, None)]);
    assert!(position.done && position.doubtful);
}

#[test]
fn a_list_whose_size_changed_while_it_was_read_is_doubtful_unless_sizes_are_estimates() {
    let size = |size, page: Seen| Seen { size: Some(size), ..page };
    let expired = || error(ErrorCode::BadResumptionToken);
    for (what, pages, resized) in [
        ("no size", vec![page(2, Some("a")), page(1, None)], None),
        ("a size on the first page only", vec![size(3, page(2, Some("a"))), page(1, None)], None),
        ("the same size", vec![size(3, page(2, Some("a"))), size(3, page(1, None))], None),
        ("smaller", vec![size(4, page(2, Some("a"))), size(3, page(1, None))], Some((4, 3))),
        ("larger", vec![size(3, page(2, Some("a"))), size(4, page(2, None))], Some((3, 4))),
        (
            "a page without a size in between",
            vec![size(9, page(2, Some("a"))), page(2, Some("b")), size(8, page(4, None))],
            Some((9, 8)),
        ),
        (
            "and back again",
            vec![size(4, page(2, Some("a"))), size(3, page(1, Some("b"))), size(4, page(1, None))],
            Some((4, 3)),
        ),
        ("another list", vec![size(9, page(2, Some("a"))), expired(), size(3, page(3, None))], None),
    ] {
        let mut position = start(Asked::everything());
        walk(&mut position, &pages);
        assert!(position.done, "{what}");
        assert_eq!(position.resized, resized, "{what}");
        if resized.is_some() {
            assert!(position.doubt(false).unwrap().contains("completeListSize"), "{what}");
            assert_eq!(position.doubt(true), None, "{what}");
        }
    }
}

#[test]
fn a_list_that_repeats_records_lacks_some_unless_its_size_is_an_estimate_or_it_was_replaced() {
    let short = |list| {
        let mut repeats = Repeats::default();
        repeats.count(list, 1);
        repeats.end_of_list(ListEnd { list, records: 20, size: 20 });
        repeats
    };
    let position = start(Asked::everything());
    let list = position.list;
    let with = |repeats, windows_broken, skipped| Position {
        windows_broken,
        repeats,
        skipped,
        ..start(Asked::everything())
    };
    for (what, position, lacking, estimated) in [
        ("nothing", position, false, false),
        ("repeated", with(short(list), false, 0), true, false),
        ("repeated in a window", with(short(list - 1), false, 0), true, false),
        ("repeated in a window of a server that ignores them", with(short(list - 1), true, 0), false, false),
        ("repeated in the list of everything", with(short(list), true, 0), true, false),
        ("a record that exists", with(Repeats::default(), false, 1), true, true),
    ] {
        assert_eq!(position.lacking(false).is_some(), lacking, "{what}");
        assert_eq!(position.lacking(true).is_some(), estimated, "{what}, sizes are estimates");
    }
}

#[test]
fn the_end_of_a_list_with_a_size_is_kept_for_its_list() {
    let size = |size, page: Seen| Seen { size: Some(size), ..page };
    let mut position = start(Asked::everything());
    walk(&mut position, &[size(3, page(2, Some("a")))]);
    assert_eq!(position.list_end, None);
    walk(&mut position, &[page(1, None)]);
    assert_eq!(position.list_end, Some(ListEnd { list: position.list, records: 3, size: 3 }));
    let kept = serde_json::to_string(&position).unwrap();
    assert_eq!(serde_json::from_str::<Position>(&kept).unwrap(), position);
}
