//! The demo: every step works, also told twice on one folder.

use crate::archive_bed::single_with;

#[test]
fn the_story_can_be_told_again() {
    let grange = single_with(&["harvest.min_space_left=1MB"]);
    for _ in 0..2 {
        let told = grange.run(&["demo", "--once", "--json"]).ok().json();
        assert_eq!(told["ok"], true);
        let steps: Vec<_> =
            told["steps"].as_array().unwrap().iter().map(|step| step["what"].clone()).collect();
        assert!(
            steps.contains(&"copy repaired".into()) && steps.contains(&"page found by index".into()),
            "{steps:?}"
        );
    }
}
