//! Resources that lead nowhere: the far ends of planted links. Content and type follow from the name.

use super::answer::Answer;
use super::dice;

/// What stands at a path that was linked to and has no page of its own.
pub(crate) fn leaf(seed: u64, site: usize, path: &str) -> Answer {
    let path_only = path.split('?').next().unwrap_or_default();
    let name = path_only.rsplit('/').next().unwrap_or_default();
    let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
    let number = dice::mix(&[seed, site as u64, dice::of_text(path)]);
    let random = |start: &[u8], bytes: usize| {
        let mut body = start.to_vec();
        body.resize(start.len() + bytes, 0);
        dice::fill(number, 0, &mut body[start.len()..]);
        body
    };
    match kind {
        "png" => Answer::new(200, "image/png", random(b"\x89PNG\r\n\x1a\n", 300)),
        "gif" => Answer::new(200, "image/gif", random(b"GIF89a", 200)),
        "jpg" => Answer::new(200, "image/jpeg", random(b"\xFF\xD8\xFF\xE0", 500)),
        "webp" => Answer::new(200, "image/webp", random(b"RIFF\0\0\0\0WEBP", 250)),
        "ico" => Answer::new(200, "image/x-icon", random(b"\0\0\x01\0", 120)),
        "svg" => Answer::new(
            200,
            "image/svg+xml",
            format!("<svg xmlns=\"http://www.w3.org/2000/svg\"><desc>{number:x}</desc></svg>\n"),
        ),
        "css" => Answer::new(200, "text/css", format!("body {{ color: #{:06x}; }}\n", number & 0xFF_FFFF)),
        "js" => Answer::new(200, "text/javascript", format!("var n = {};\n", number >> 16)),
        "json" => Answer::new(200, "application/json", format!("{{\"n\": {}}}\n", number >> 16)),
        "xml" => Answer::new(200, "application/xml", format!("<?xml version=\"1.0\"?>\n<n>{number:x}</n>\n")),
        "txt" => Answer::new(200, "text/plain", format!("Note {number:x}.\n")),
        "vtt" => Answer::new(200, "text/vtt", format!("WEBVTT\n\n00:00.000 --> 00:01.000\n{number:x}\n")),
        "mp4" => Answer::new(200, "video/mp4", random(b"\0\0\0\x18ftypmp42", 900)),
        "mp3" => Answer::new(200, "audio/mpeg", random(b"ID3", 700)),
        "ts" => Answer::new(200, "video/mp2t", random(b"G", 1_000)),
        "woff2" => Answer::new(200, "font/woff2", random(b"wOF2", 400)),
        "pdf" => Answer::new(200, "application/pdf", format!("%PDF-1.4\n% {number:x}\n%%EOF\n")),
        "jar" | "bin" | "swf" | "torrent" => Answer::new(200, "application/octet-stream", random(b"", 600)),
        _ => Answer::html(format!(
            "<!DOCTYPE html>\n<html><head><title>Leaf {number:x}</title></head>\n<body><p>Nothing further from here: {number:x}.</p></body></html>\n"
        )),
    }
}
