//! What was harvested is served again, and read completely by others and by ourselves.

use std::io::{BufRead, BufReader};
use std::process::Command;

use super::bed::{Provider, active, python, state};
use super::{add, counts, exported, grange, harvest};

const SICKLE: &str = "
import sys
from sickle import Sickle
sickle = Sickle(sys.argv[1])
identify = sickle.Identify()
records = list(sickle.ListRecords(metadataPrefix='oai_dc', ignore_deleted=False))
headers = list(sickle.ListIdentifiers(metadataPrefix='oai_dc'))
sets = [one.setSpec for one in sickle.ListSets()]
formats = [one.metadataPrefix for one in sickle.ListMetadataFormats()]
one = sickle.GetRecord(identifier='oai:prov.example:coll1:4', metadataPrefix='oai_dc')
part = list(sickle.ListRecords(metadataPrefix='oai_dc', set='r1:coll1', ignore_deleted=True))
print(len(set(record.header.identifier for record in records)), sum(record.deleted for record in records),
      len(headers), ','.join(sets), ','.join(formats), one.metadata['title'][0], len(part))
";

#[test]
fn others_and_we_ourselves_read_all_that_is_served() {
    let grange = grange();
    let Some(provider) = Provider::start("oaipmh", &grange.path("state"), state(250, 50)) else { return };
    let id = add(&grange, &provider.url);
    harvest(&grange, &id, &[]);
    let mut serving = grange.spawn(&["oai", "serve", "--listen", "127.0.0.1:0"]);
    let mut lines = BufReader::new(serving.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let url = first.split_whitespace().last().unwrap().to_owned();

    let output = Command::new(python().unwrap()).args(["-c", SICKLE, &url]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "250 25 250 r1,r1:coll0,r1:coll1,r1:coll2 oai_dc Numéro 4 & <more>";
    assert!(said.starts_with(expected), "{said}");

    let other = super::grange();
    let copy = add(&other, &url);
    let ended = harvest(&other, &copy, &[]);
    assert_eq!(counts(&ended), [225, 0, 0, 25], "{ended}");
    assert_eq!(exported(&other, &copy), active(250));
    // The same bytes, although they went through two of us.
    let path = "prov.example/coll1/4.xml";
    let read = |grange: &crate::harness::Grange| {
        let text = std::fs::read_to_string(grange.data().join("oai/1").join(path)).unwrap();
        text.contains("Numéro 4 &amp; &lt;more&gt;")
    };
    assert!(read(&grange) && read(&other));
    let again = harvest(&other, &copy, &["--incremental"]);
    assert_eq!((&again["new"], &again["changed"]), (&0.into(), &0.into()), "{again}");
    serving.kill().unwrap();
    serving.wait().unwrap();
    let xml = grange.run(&["oai", "export", &id, "--format", "xml"]).ok().stdout;
    assert_eq!((xml.matches("<record>").count(), xml.matches("status=\"deleted\"").count()), (250, 25));
}
