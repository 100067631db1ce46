//! Sentences of one's own: `FOLDER/LANGUAGE/*.ftl` replaces single ones, or brings a whole language.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fluent_bundle::FluentResource;
use fluent_syntax::ast::Entry;
use unic_langid::LanguageIdentifier;

use crate::{Language, Texts, built_in, empty};

/// Why a folder of sentences is not taken.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot read {}; the folder of texts holds a folder per language (such as sv) with .ftl files", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} is not named after a language; names are codes such as sv or pt-BR", path.display())]
    NoLanguage { path: PathBuf },
    #[error("{}, line {line}: this is no Fluent message ({what})", path.display())]
    Malformed { path: PathBuf, line: usize, what: String },
}

impl Texts {
    /// Those that come with the program, with what is in `folder` put over them.
    pub fn with_folder(folder: &Path) -> Result<Self, FolderError> {
        let mut languages = built_in();
        let known = known_ids();
        for place in entries(folder)? {
            if !place.is_dir() {
                continue;
            }
            let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // A hidden folder is somebody else's.
            if name.starts_with('.') {
                continue;
            }
            let id: LanguageIdentifier =
                name.parse().map_err(|_| FolderError::NoLanguage { path: place.clone() })?;
            let at = languages.iter().position(|language| language.id == id).unwrap_or_else(|| {
                languages.push(Language { bundle: empty(&id), id });
                languages.len() - 1
            });
            for path in entries(&place)? {
                if path.extension().is_none_or(|end| end != "ftl") {
                    continue;
                }
                let resource = read(&path)?;
                for id in message_ids(&resource).filter(|id| !known.contains(*id)) {
                    tracing::warn!(path = %path.display(), id, "no page shows this text");
                }
                languages[at].bundle.add_resource_overriding(resource);
            }
        }
        Ok(Self { languages: languages.into() })
    }
}

/// What is in a folder, by name, so that which file wins does not depend on the disk.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, FolderError> {
    let failed = |source| FolderError::Io { path: folder.to_owned(), source };
    let mut paths = fs::read_dir(folder)
        .and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()
        })
        .map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn read(path: &Path) -> Result<FluentResource, FolderError> {
    let text =
        fs::read_to_string(path).map_err(|source| FolderError::Io { path: path.to_owned(), source })?;
    let lines = |upto: usize| text.bytes().take(upto).filter(|byte| *byte == b'\n').count() + 1;
    FluentResource::try_new(text.clone()).map_err(|(_, errors)| {
        let first = errors.first();
        FolderError::Malformed {
            path: path.to_owned(),
            line: lines(first.map_or(0, |error| error.pos.start)),
            what: first.map(|error| error.kind.to_string()).unwrap_or_default(),
        }
    })
}

fn message_ids(resource: &FluentResource) -> impl Iterator<Item = &str> {
    resource.entries().filter_map(|entry| match entry {
        Entry::Message(message) => Some(message.id.name),
        _ => None,
    })
}

/// The ids of all sentences: English has them all.
fn known_ids() -> BTreeSet<String> {
    let (_, files) = crate::BUILT_IN[0];
    let ids = |text| message_ids(&crate::read_whole(text)).map(str::to_owned).collect::<Vec<_>>();
    files.into_iter().flat_map(ids).collect()
}
