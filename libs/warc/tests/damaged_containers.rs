//! Damage of gzip and zstd files: the good records around it are read, and it has a name.

mod common;

use common::{check_all, gzip, join, record, skippable, zstd};

#[test]
fn containers() {
    let [a, b, c] = [1, 2, 3].map(record);
    let [ga, gb, gc] = [&a, &b, &c].map(|plain| gzip(plain));
    let split = a.len() - 60;
    let mut bad_crc = gb.clone();
    let crc = bad_crc.len() - 8;
    bad_crc[crc] ^= 1;
    let mut corrupt = gb.clone();
    let middle = corrupt.len() / 2;
    corrupt[middle..middle + 12].fill(0xff);
    let cut = &gb[..gb.len() - 20];
    let dictionary =
        b"WARC/1.1\r\nWARC-Type: response\r\nContent-Type: application/http; msgtype=response".repeat(4);
    let [za, zb] = [&a, &b].map(|plain| zstd(plain, &[]));
    let [da, db] = [&a, &b].map(|plain| zstd(plain, &dictionary));
    let mut bad_zstd = za.clone();
    let last = bad_zstd.len() - 1;
    bad_zstd[last] ^= 1;
    let extra = {
        // The member again, with an extra field "sl" and a name.
        let mut header = ga[..10].to_vec();
        header[3] = 4 | 8;
        join(&[&header, &[12, 0, b's', b'l', 8, 0], &[7; 8], b"name\0", &ga[10..]])
    };
    let cases: &[(&str, Vec<u8>, &str, &str)] = &[
        ("plain", join(&[&a, &b, &c]), "1 2 3", ""),
        ("gzip", join(&[&ga, &gb, &gc]), "1 2 3", ""),
        ("extra field", join(&[&extra, &gb]), "1 2", ""),
        ("whole file in one member", gzip(&join(&[&a, &b, &c])), "1 2 3", "several-records-in-member"),
        (
            "two records in a member",
            join(&[&gzip(&join(&[&a, &b])), &gc]),
            "1 2 3",
            "several-records-in-member",
        ),
        (
            "a record over two members",
            join(&[&gzip(&a[..split]), &gzip(&a[split..]), &gb]),
            "1 2",
            "record-spans-members",
        ),
        (
            "a header over two members",
            join(&[&gzip(&a[..50]), &gzip(&a[50..]), &gb]),
            "1 2",
            "record-spans-members",
        ),
        (
            "a header alone in a member, its block lost",
            join(&[&gzip(&a[..a.len() - common::page(1).len() - 4]), &gb]),
            "1 2",
            "content-length-too-long http-no-head",
        ),
        ("an empty member first", join(&[&gzip(b""), &ga, &gb]), "1 2", "empty-member"),
        (
            "empty members between",
            join(&[&ga, &gzip(b""), &gzip(b""), &gb]),
            "1 2",
            "empty-member empty-member",
        ),
        ("junk between", join(&[&ga, b"JUNKJUNK", &gb]), "1 2", "junk-between-members"),
        (
            "junk that looks like a member",
            join(&[&ga, &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 9, 9, 9], &gb]),
            "1 2",
            "corrupt-data",
        ),
        ("junk first", join(&[b"\0\x01garbage", &ga, &gb]), "1 2", "junk-between-members"),
        ("zeros between", join(&[&ga, &[0; 5000], &gb]), "1 2", "zero-padding"),
        ("zeros at the end", join(&[&ga, &gb, &[0; 1024]]), "1 2", "zero-padding"),
        ("junk at the end", join(&[&ga, b"xyz"]), "1", "junk-between-members"),
        ("half a magic at the end", join(&[&ga, &[0x1f, 0x8b]]), "1", "truncated-member"),
        ("wrong checksum", join(&[&ga, &bad_crc, &gc]), "1 2 3", "bad-checksum"),
        (
            "corrupt in the middle",
            join(&[&ga, &corrupt, &gc]),
            "1 example.or 3",
            "corrupt-data unterminated-header http-no-head",
        ),
        ("cut, others follow", join(&[&ga, cut, &gc]), "1 2 3", "bad-checksum"),
        ("cut at the end", join(&[&ga, cut]), "1 2", "truncated-member"),
        ("plain text after members", join(&[&ga, b"not a member at all"]), "1", "junk-between-members"),
        ("zstd", join(&[&za, &zb]), "1 2", ""),
        ("zstd, all in one frame", zstd(&join(&[&a, &b]), &[]), "1 2", "several-records-in-member"),
        (
            "zstd with other skippable frames",
            join(&[&skippable(0, b"x"), &za, &skippable(7, &[1; 99]), &zb]),
            "1 2",
            "",
        ),
        ("zstd with dictionary", join(&[&skippable(13, &dictionary), &da, &db]), "1 2", ""),
        (
            "zstd with packed dictionary",
            join(&[&skippable(13, &zstd(&dictionary, &[])), &da, &db]),
            "1 2",
            "",
        ),
        ("zstd with junk between", join(&[&za, b"JUNK", &zb]), "1 2", "junk-between-members"),
        ("zstd with a wrong checksum", join(&[&bad_zstd, &zb]), "1 2", "bad-checksum"),
        ("zstd cut", join(&[&za, &zb[..zb.len() - 9]]), "1", "truncated-member"),
        ("lz4", vec![0x04, 0x22, 0x4d, 0x18, 0x40, 0x40], "", "unsupported-container"),
        ("nothing", Vec::new(), "", "not-an-archive"),
        ("a sentence", b"This is no archive.\n".to_vec(), "", "not-an-archive"),
        ("an empty member alone", gzip(b""), "", "empty-member"),
        ("a packed sentence", gzip(b"This is no archive.\n"), "", "not-an-archive"),
    ];
    check_all(cases);
}
