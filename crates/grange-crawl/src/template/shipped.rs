//! The templates that come with the program.

/// Name and text of each.
pub fn shipped() -> [(&'static str, &'static str); 9] {
    [
        ("default", include_str!("shipped/default.toml")),
        ("front-page", include_str!("shipped/front-page.toml")),
        ("front-page-plus-1", include_str!("shipped/front-page-plus-1.toml")),
        ("host-10-levels", include_str!("shipped/host-10-levels.toml")),
        ("path", include_str!("shipped/path.toml")),
        ("obey-robots", include_str!("shipped/obey-robots.toml")),
        ("low-bandwidth", include_str!("shipped/low-bandwidth.toml")),
        ("no-dedup", include_str!("shipped/no-dedup.toml")),
        ("social-cautious", include_str!("shipped/social-cautious.toml")),
    ]
}
