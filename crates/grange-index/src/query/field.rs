//! Fields of a capture by the names that index servers use for them.

use std::fmt::Write as _;

use crate::view::CaptureView;

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    UrlKey,
    Timestamp,
    Url,
    Mime,
    Status,
    Digest,
    Length,
    Offset,
    File,
    Job,
    /// A field that few captures have, by its CDXJ name.
    Extra(String),
}

impl Field {
    /// The field of a name, in any of the dialects.
    pub fn parse(name: &str) -> Self {
        match name {
            "urlkey" => Self::UrlKey,
            "timestamp" => Self::Timestamp,
            "url" | "original" => Self::Url,
            "mime" | "mimetype" => Self::Mime,
            "status" | "statuscode" => Self::Status,
            "digest" => Self::Digest,
            "length" => Self::Length,
            "offset" | "compressedoffset" => Self::Offset,
            "filename" | "file" => Self::File,
            "job" => Self::Job,
            "redirecturl" | "redirect" => Self::Extra("redirect".to_owned()),
            "originalLength" | "originalCompressedLength" => Self::Extra("orig.length".to_owned()),
            "originalOffset" | "originalCompressedoffset" => Self::Extra("orig.offset".to_owned()),
            "originalFilename" | "originalFile" => Self::Extra("orig.filename".to_owned()),
            name => Self::Extra(name.to_owned()),
        }
    }

    /// Appends the field's text; false if the capture does not have it.
    pub fn write(&self, view: &CaptureView<'_>, out: &mut String) -> bool {
        let mut number = |number: Option<u64>| {
            number.is_some_and(|number| {
                // A String never fails to be written to.
                let _ = write!(out, "{number}");
                true
            })
        };
        match self {
            Self::Status => number(view.status().map(u64::from)),
            Self::Length => number(view.length()),
            Self::Offset => number(view.offset()),
            Self::UrlKey => push(out, Some(&*view.surt())),
            Self::Timestamp => {
                let _ = write!(out, "{}", view.time());
                true
            }
            Self::Url => view.url_into(out),
            Self::Mime => push(out, view.mime()),
            Self::Digest => view.digest_into(out),
            Self::File => push(out, Some(view.file()).filter(|file| !file.is_empty())),
            Self::Job => push(out, view.job()),
            Self::Extra(name) => {
                let Some(extra) = view.extra() else { return false };
                let Ok(extra) = serde_json::from_str::<serde_json::Map<_, _>>(extra) else { return false };
                match extra.get(name) {
                    None => false,
                    Some(serde_json::Value::String(text)) => push(out, Some(text)),
                    Some(value) => push(out, Some(&value.to_string())),
                }
            }
        }
    }
}

fn push(out: &mut String, text: Option<&str>) -> bool {
    out.push_str(text.unwrap_or_default());
    text.is_some()
}
