//! `grange cdx index`

use cdx::{ExtraField, Format, IndexOptions, Legend, Records, SortOptions, Sorter, Spelling, index_file};
use urlkey::Dialect;

use super::{FormatName, IndexArgs};
use crate::cli::Common;
use crate::exit::Exit;
use crate::progress::Progress;

/// What one file gave, for the end of the run.
#[derive(Default)]
struct Totals {
    records: u64,
    lines: u64,
    problems: u64,
}

pub(super) fn run(common: &Common, args: &IndexArgs) -> anyhow::Result<Exit> {
    let legend = match args.format {
        FormatName::Cdxj => None,
        FormatName::Cdx9 => Some(Legend::cdx9()),
        FormatName::Cdx11 => Some(Legend::cdx11()),
    };
    let options = IndexOptions {
        format: legend.clone().map_or(Format::Cdxj, Format::Cdx),
        dialect: args.dialect,
        records: if args.all { Records::All } else { Records::Captures },
        post_append: args.post_append,
        // The spelling that goes with the keys of pywb.
        spelling: if args.dialect == Dialect::Ia { Spelling::Python } else { Spelling::default() },
        extra: args.fields.iter().map(|name| ExtraField::parse(name)).collect(),
        ..IndexOptions::default()
    };
    let progress = Progress::over(&args.files);
    let totals = args.out.write(|out| {
        if let Some(legend) = &legend {
            writeln!(out, "{}", legend.line())?;
        }
        if !args.sort {
            return all(args, options, &progress, &mut |line| out.write_all(line));
        }
        let mut sorter = Sorter::new(SortOptions::default());
        let totals = all(args, options, &progress, &mut |line| sorter.push(line))?;
        sorter.finish(out)?;
        Ok(totals)
    })?;
    progress.finish();
    if common.json {
        let Totals { records, lines, problems } = totals;
        errln!("{}", serde_json::json!({ "records": records, "lines": lines, "problems": problems }));
    } else if totals.problems > 0 {
        errln!("{} records, {} lines, {} problems", totals.records, totals.lines, totals.problems);
    }
    Ok(if totals.problems > 0 { Exit::Partial } else { Exit::Ok })
}

fn all(
    args: &IndexArgs,
    mut options: IndexOptions,
    progress: &Progress,
    sink: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> anyhow::Result<Totals> {
    let mut totals = Totals::default();
    for file in &args.files {
        options.filename = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let at = progress.file(file);
        let report = index_file(file, &options, args.threads.max(1), &mut *sink)
            .map_err(|error| anyhow::Error::new(error).context(format!("cannot index {}", file.display())))?;
        at.done(std::fs::metadata(file).map(|meta| meta.len()).unwrap_or_default());
        for problem in report.problems.iter().filter(|problem| problem.kind.level() > warc::Level::Comment) {
            totals.problems += 1;
            progress.suspend(|| {
                errln!("{}\t{}\t{}\t{problem}", file.display(), problem.offset, problem.kind.code());
            });
        }
        totals.records += report.records;
        totals.lines += report.lines;
    }
    Ok(totals)
}
