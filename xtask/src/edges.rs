//! Which crate may know which. Arrows point only downward; what is not in this table is not allowed.
//!
//! Deliberately absent: engines (crawl, oai) reach no db, bus, blob or index; archive knows bits, not WARC;
//! schedule and harvest never name each other; replay reaches neither app nor web; SQL only in db; testkit is
//! below everything.

use crate::manifest::Manifest;

/// The bottom of the suite, open to every crate above it.
const GROUND: &[&str] = &["grange-model", "grange-base"];
const FORMATS: &[&str] = &["warc", "cdx", "urlkey"];
const PORTS: &[&str] = &["grange-db", "grange-bus", "grange-blob"];

/// For each crate, groups of crates it may depend on. Also names crates that are yet to come.
const MAY: &[(&str, &[&[&str]])] = &[
    ("urlkey", &[]),
    ("warc", &[]),
    ("sha512x4", &[]),
    ("htmlscan", &[]),
    ("cdx", &[&["warc", "urlkey"]]),
    ("oaipmh", &[]),
    ("grange-testkit", &[]),
    ("grange-base", &[]),
    ("grange-i18n", &[]),
    ("grange-model", &[&["urlkey", "grange-base"]]),
    ("grange-db", &[GROUND]),
    ("grange-bus", &[GROUND]),
    ("grange-blob", &[GROUND, &["sha512x4"]]),
    ("grange-crawl", &[GROUND, &["warc", "urlkey", "htmlscan"]]),
    ("grange-oai", &[GROUND, &["warc", "oaipmh"]]),
    ("grange-archive", &[GROUND, PORTS]),
    ("grange-batch", &[GROUND, PORTS, FORMATS, &["grange-archive"]]),
    ("grange-index", &[GROUND, PORTS, FORMATS, &["grange-archive", "grange-batch"]]),
    ("grange-schedule", &[GROUND, &["grange-db", "grange-bus"]]),
    (
        "grange-harvest",
        &[GROUND, PORTS, FORMATS, &["grange-crawl", "grange-oai", "grange-index", "grange-archive"]],
    ),
    (
        "grange-replay",
        &[GROUND, PORTS, FORMATS, &["grange-index", "grange-archive", "grange-i18n", "htmlscan"]],
    ),
    ("grange-swap", &[GROUND, &["grange-blob", "grange-i18n", "warc"]]),
    ("grange-package", &[GROUND, PORTS, FORMATS, &["grange-index", "grange-archive"]]),
    ("grange-api", &[GROUND]),
    (
        "grange-app",
        &[GROUND, PORTS, FORMATS, &["grange-index", "grange-archive", "grange-batch", "grange-schedule"]],
    ),
    ("grange-web", &[GROUND, &["grange-app", "grange-api", "grange-i18n"]]),
    (
        "grange-node",
        &[
            GROUND,
            PORTS,
            &["grange-api", "grange-app", "grange-web", "grange-replay", "grange-harvest", "grange-schedule"],
            &[
                "grange-swap",
                "grange-package",
                "grange-index",
                "grange-archive",
                "grange-batch",
                "grange-oai",
                "grange-i18n",
            ],
        ],
    ),
    (
        "grange",
        &[
            GROUND,
            FORMATS,
            &["grange-node", "grange-api", "grange-crawl", "grange-replay", "oaipmh", "grange-swap"],
            // `grange testkit` shows the synthetic web to people and to peers in benches.
            &["grange-testkit"],
        ],
    ),
];

/// One line for every edge that points upward or sideways, and for every crate without a place.
pub(crate) fn check(manifests: &[Manifest]) -> Vec<String> {
    let ours = |name: &str| manifests.iter().any(|manifest| manifest.name == name);
    let mut found = Vec::new();
    for manifest in manifests {
        let Some((_, groups)) = MAY.iter().find(|(name, _)| *name == manifest.name) else {
            found.push(format!("{}: has no place in xtask/src/edges.rs; give it one", manifest.name));
            continue;
        };
        for need in manifest.needs.iter().filter(|need| ours(need)) {
            if !groups.iter().any(|group| group.contains(&need.as_str())) {
                found.push(format!("{} → {need}: this arrow points upward or sideways", manifest.name));
            }
        }
        // Tests may also borrow from the testkit, and from whatever the crate itself may use.
        for need in manifest.test_needs.iter().filter(|need| ours(need) && *need != "grange-testkit") {
            // The backend `swap:` is proven against real servers; it speaks HTTP and shares no code with them.
            let real = manifest.name == "grange-blob" && need == "grange-swap";
            let own = need == &manifest.name || real;
            if !own && !groups.iter().any(|group| group.contains(&need.as_str())) && manifest.name != "grange"
            {
                found.push(format!(
                    "{} → {need} (tests): this arrow points upward or sideways",
                    manifest.name
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn crate_with(name: &str, needs: &[&str]) -> Manifest {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect::<BTreeSet<_>>();
        Manifest { name: name.to_owned(), needs, ..Manifest::default() }
    }

    #[test]
    fn a_planted_upward_edge_is_found() {
        let manifests = [
            crate_with("grange-base", &[]),
            crate_with("grange-db", &["grange-base", "serde"]),
            crate_with("grange-node", &["grange-db"]),
        ];
        assert_eq!(check(&manifests), Vec::<String>::new());
        let planted = [
            crate_with("grange-base", &["grange-db"]),
            crate_with("grange-db", &["grange-node"]),
            crate_with("grange-node", &[]),
            crate_with("grange-misc", &[]),
        ];
        assert_eq!(
            check(&planted),
            [
                "grange-base → grange-db: this arrow points upward or sideways",
                "grange-db → grange-node: this arrow points upward or sideways",
                "grange-misc: has no place in xtask/src/edges.rs; give it one",
            ]
        );
    }

    #[test]
    fn the_table_itself_has_no_cycle() {
        // Every group member must stand earlier in the table than the crate that may use it.
        for (index, (name, groups)) in MAY.iter().enumerate() {
            for need in groups.iter().copied().flatten() {
                let below = MAY[..index].iter().any(|(earlier, _)| earlier == need);
                assert!(below, "{name} may use {need}, which stands above it");
            }
        }
    }
}
