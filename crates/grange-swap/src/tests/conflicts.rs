use super::bed::Bed;
use crate::place::Point;

/// A directory name whose authority is slice `slice` of `slices`.
fn directory(slices: u32, slice: u32, nth: usize) -> String {
    let all = (0..).map(|n| format!("dir{n}"));
    let mut fit = all.filter(|name| Point::of(name).slice(slices.try_into().unwrap()) == slice);
    fit.nth(nth).unwrap()
}

/// A file below `directory` on slice `slice`.
fn below(directory: &str, slices: u32, slice: u32) -> String {
    let all = (0..).map(|n| format!("{directory}/sub/f{n}"));
    let mut fit = all.into_iter().filter(|name| Point::of(name).slice(slices.try_into().unwrap()) == slice);
    fit.next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_a_file_or_a_directory_on_all_slices() {
    let bed = Bed::new(3, 1).await;
    bed.create("c", 3, true).await;
    for authority in 0..3 {
        for slice in 0..3 {
            // A file first, then something below it on any slice.
            let name = directory(3, authority, slice as usize);
            assert_eq!(bed.put(0, "c", &name, b"file").await, 201);
            assert_eq!(bed.put(1, "c", &below(&name, 3, slice), b"x").await, 409);
            // Something below it first, then a file of the name.
            let name = directory(3, authority, 10 + slice as usize);
            assert_eq!(bed.put(0, "c", &below(&name, 3, slice), b"x").await, 201);
            assert_eq!(bed.put(2, "c", &name, b"file").await, 409);
        }
    }
    assert_eq!(bed.copied("c").len(), 18);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_file_and_a_directory_racing_for_a_name_one_wins() {
    let bed = Bed::new(3, 1).await;
    bed.create("c", 3, true).await;
    for round in 0..12 {
        let name = directory(3, round % 3, 20 + round as usize);
        let under = below(&name, 3, (round + 1) % 3);
        let (file, inside) = tokio::join!(bed.put(0, "c", &name, b"file"), bed.put(1, "c", &under, b"x"));
        assert!(matches!((file, inside), (201, 409) | (409, 201)), "{name}: {file}, {inside}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_authority_nothing_is_guessed() {
    let mut bed = Bed::new(3, 1).await;
    bed.create("c", 3, true).await;
    let known: Vec<_> = (0..3).map(|authority| directory(3, authority, 0)).collect();
    for name in &known {
        for slice in 0..3 {
            assert_eq!(bed.put(0, "c", &below(name, 3, slice), b"x").await, 201);
        }
    }
    let down = bed.servers[0].as_ref().unwrap().node().view();
    let base = format!("http://{}", bed.addresses[2]);
    let slice_of_two =
        down.get("c").unwrap().homes.iter().position(
            |home| matches!(home, crate::view::Home::There { base: other, .. } if **other == *base),
        );
    let lost = slice_of_two.unwrap() as u32;
    bed.stop(2).await;
    bed.sees(0, 1).await;
    bed.sees(1, 1).await;
    let alive = (lost + 1) % 3;
    // A directory nobody knows yet, whose authority is away: refused for now.
    let fresh = directory(3, lost, 1);
    assert_eq!(bed.put(0, "c", &below(&fresh, 3, alive), b"x").await, 503);
    // One that is known, or whose authority is here: taken.
    let other = format!("{}2", below(&known[lost as usize], 3, alive));
    if Point::of(&other).slice(3.try_into().unwrap()) != lost {
        assert_eq!(bed.put(0, "c", &other, b"y").await, 201);
    }
    assert!(bed.copied("c").len() >= 9);
}
