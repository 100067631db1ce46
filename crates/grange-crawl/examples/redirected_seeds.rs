//! Measures the cost of seeds gained by redirects: `cargo run --release -p grange-crawl --example redirected_seeds [N]`.
//! Each gained seed changes the scope once and writes one mark of the frontier, as a running crawl does.

use std::time::Instant;

use grange_crawl::frontier::{self, Frontier};
use grange_crawl::job::Budgets;
use grange_crawl::scope::{LiveScope, Scope, ScopeKind, Settings, Traps};
use jiff::Timestamp;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: usize = std::env::args().nth(1).map_or(Ok(20_000), |text| text.parse())?;
    let seeds: Vec<_> = (0..count).map(|n| format!("http://site{n}.example/")).collect();
    let settings = Settings { kind: ScopeKind::Host, ..Settings::default() };
    let now = Timestamp::now();
    let live = LiveScope::new(Scope::new(&settings, &seeds, &Traps::default(), now)?);
    let folder = std::env::temp_dir().join(format!("redirected-seeds-{}", std::process::id()));
    let (frontier, _) = Frontier::open(&folder, frontier::Settings::default(), Budgets::default(), now)?;
    let began = Instant::now();
    for n in 0..count {
        let target = format!("http://www.site{n}.example/");
        live.change(|scope| scope.with_seeds(&[&target]))?;
    }
    println!("{count} seeds into scope: {:?}", began.elapsed());
    let began = Instant::now();
    for n in 0..count {
        let url = format!("http://www.site{n}.example/");
        frontier.put_marks(&[(format!("seed/{n:032x}"), url.into_bytes())], &[])?;
    }
    println!("{count} marks: {:?}", began.elapsed());
    drop(frontier);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}
