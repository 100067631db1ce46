//! Lists the records and problems of files, for looking at them by hand.
use std::io;
use warc::Reader;

fn main() -> io::Result<()> {
    for path in std::env::args_os().skip(1) {
        let mut reader = Reader::open(&path)?;
        let mut count = 0;
        println!("{} ({:?})", path.display(), reader.container());
        while let Some(mut record) = reader.next()? {
            count += 1;
            let status = record.http()?.and_then(warc::HttpHead::status);
            let check = record.digest_check()?;
            record.finish()?;
            let place = record.place();
            println!(
                "  {}+{} len {:?} {} {} {} {:?} {:?}/{:?}",
                place.offset,
                place.inner,
                record.stored_len(),
                record.kind().as_str(),
                record.date().map(|date| date.to_string()).unwrap_or_default(),
                String::from_utf8_lossy(record.target_uri().unwrap_or_default()),
                status,
                check.block,
                check.payload,
            );
            for problem in record.problems() {
                println!("      ! {} {} {}", problem.offset, problem.kind.code(), problem);
            }
        }
        for problem in reader.problems() {
            println!("  ! {} {} {}", problem.offset, problem.kind.code(), problem);
        }
        println!("  = {count}");
    }
    Ok(())
}
