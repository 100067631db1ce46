//! `harvestInfo.xml`, version 0.6, and the traps, in the forms in which readers of the papers look for them.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use grange_crawl::scope::Traps;
use grange_model::harvest::Name;
use serde::Deserialize;

use crate::folder::HarvestInfo;
use crate::papers::JobPapers;

/// The info as NetarchiveSuite writes it. Limits are -1 where there are none; runs are counted from 0.
pub(super) fn xml(papers: &JobPapers) -> String {
    let HarvestInfo { job, harvest_comments, audience, schedule, operator, file_prefix, .. } = &papers.info;
    let optional = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let fields = [
        ("version", Some("0.6".to_owned())),
        ("jobId", Some(job.id.to_string())),
        ("channel", Some(job.channel.to_string())),
        ("harvestNum", Some(job.run.saturating_sub(1).to_string())),
        ("origHarvestDefinitionID", Some(job.harvest.to_string())),
        ("maxBytesPerDomain", Some(job.limits.bytes.number().to_string())),
        ("maxObjectsPerDomain", Some(job.limits.objects.number().to_string())),
        ("templateName", Some(job.template.to_string())),
        ("templateDescription", Some(format!("version {}", job.template_version))),
        ("origHarvestDefinitionName", Some(job.harvest_name.to_string())),
        ("origHarvestDefinitionComments", optional(harvest_comments)),
        ("scheduleName", schedule.as_ref().map(Name::to_string)),
        ("harvestFilenamePrefix", Some(file_prefix.clone())),
        ("jobSubmitDate", job.submitted_at.map(|at| at.to_string())),
        ("performer", optional(&papers.organization)),
        ("operator", optional(operator)),
        ("audience", optional(audience)),
    ];
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<harvestInfo>\n");
    for (name, value) in fields {
        if let Some(value) = value {
            // Writing to a String cannot fail.
            let _ = writeln!(xml, "  <{name}>{}</{name}>", escaped(&value));
        }
    }
    xml.push_str("</harvestInfo>\n");
    xml
}

/// Text as XML 1.0 may hold it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// The traps that the crawl was given, from its `job.json`. Nothing else is taken out of that file: it holds passwords.
pub(super) fn traps(job_json: &Path) -> io::Result<Option<String>> {
    #[derive(Deserialize)]
    struct OnlyTraps {
        #[serde(default)]
        traps: Traps,
    }
    let file = match File::open(job_json) {
        // An engine without traps of its own.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let OnlyTraps { traps } = serde_json::from_reader(BufReader::new(file)).map_err(io::Error::from)?;
    let mut text = String::new();
    let mut section = |title: &str, traps: &[String]| {
        if !traps.is_empty() {
            let _ = writeln!(text, "# {title}\n{}", traps.join("\n"));
        }
    };
    section("global lists and the harvest", &traps.global);
    section("the harvest", &traps.harvest);
    for (domain, traps) in &traps.domains {
        section(domain, traps);
    }
    Ok(Some(text))
}
